// The bytes of META. docs/FORMAT.md says the same in prose; the compiler checks the sizes.
//
// Every object lives in a slot whose first word is zero while the slot is free. Its body (all other
// words) is written into the free slot unlogged; one journalled store of the first word publishes
// it. Numbers are little-endian. Offsets are bytes of META unless their comment says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/types.h"

namespace streamfs::meta {

inline constexpr uint32_t kFormatVersion = 2;     // of a new filesystem without an intent log
inline constexpr uint32_t kOldestVersion = 1;     // the oldest that this program reads and writes
inline constexpr uint32_t kUnwrittenVersion = 2;  // the first with unwritten extents and kExtending
inline constexpr uint32_t kIntentVersion = 3;     // the first with an intent log
constexpr bool known_version(uint32_t version) {
  return version >= kOldestVersion && version <= kIntentVersion;
}
inline constexpr uint64_t kUnitSize = 4096;  // heap unit
inline constexpr uint64_t kCellSize = 256;   // an inode; also the reach of one journal patch
inline constexpr uint64_t kSuperOffset[2] = {0, 64 * 1024};
inline constexpr uint64_t kWatermarkOffset = 4096;  // one word, in a line of its own
inline constexpr uint64_t kSuperAreaSize = 68 * 1024;
inline constexpr uint32_t kMaxSegments = 6;
inline constexpr uint32_t kMaxNameLength = 255;
inline constexpr uint32_t kMaxLinks = 0xffff'fff0;
inline constexpr uint64_t kMaxFileBlocks = uint64_t{1} << 32;  // 16 TiB

// A region is a list of segments, so that it can grow without moving.
struct Segment {
  uint64_t offset;  // in META
  uint64_t length;  // bytes, 0 = unused
};
struct SegmentList {
  std::array<Segment, kMaxSegments> segments;
};

// A run of whole MiB of DATA in one word: first block (40 bits) | MiB << 40. 0 = none.
struct BlockRange {
  uint64_t first, count;
};
inline constexpr uint32_t kMaxLogExtensions = 4;
inline constexpr uint64_t kBlocksPerMiB = 1024 * 1024 / kBlockSize;
constexpr uint64_t pack_range(const BlockRange& range) {
  return range.first | range.count / kBlocksPerMiB << 40;
}
constexpr BlockRange unpack_range(uint64_t word) {
  return {word & ((uint64_t{1} << 40) - 1), (word >> 40) * kBlocksPerMiB};
}

enum class RegionKind : uint32_t {
  kRings = 0,    // journal rings, then the intent log's segments; each has kRingSize bytes
  kBlockBitmap,  // 1 bit a data block, 1 = allocated
  kUntrimmed,    // 1 bit a data block, 1 = freed but not yet trimmed
  kChecksums,    // 4 B a data block, 0 = not known
  kHeapMap,      // 1 B a heap unit: UnitKind
  kHeap,         // 4 KiB units
  kVStreams,     // 64 B a vStream
  kCount,
};

struct Superblock {
  uint64_t magic;
  uint32_t version;
  uint32_t checksum;    // CRC32C of the whole superblock with this field zero
  uint64_t generation;  // the valid copy with the larger one counts
  uint8_t uuid[16];
  char label[32];          // NUL-padded
  char data_identity[64];  // of the data device this META belongs to, NUL-padded
  uint64_t meta_size;
  uint64_t data_blocks;
  uint64_t first_data_block;  // below it: the data label and the metadata log
  uint32_t ring_count;
  uint32_t journal_seed;  // random; keeps file contents from passing for a record
  uint32_t features;      // kFeature*
  uint8_t meta_class;     // pmem::MetaClass at mkfs
  uint8_t clean;          // 1 after an orderly unmount
  uint8_t reserved0[2];
  uint64_t root_inode;         // InodeId
  uint64_t orphan_head;        // offset of the first orphan unit
  uint64_t clean_used_inodes;  // for statfs, true when clean; 0 = not known
  uint64_t created_seconds;
  uint64_t attachments;  // to DATA, which counts them too
  // Blocks of DATA beyond the first ones that hold the metadata log's snapshots: BlockRange,
  // packed.
  uint64_t log_extensions[kMaxLogExtensions];
  uint64_t boot;              // of the machine that attached it last, 0 = not known
  uint32_t mirror_token;      // drawn anew when one copy of META goes on without the other
  uint32_t mean_file_blocks;  // META is planned for one file for each so many blocks; 0 = 4
  uint64_t log_end;  // LogEnd, packed, if META is clean and all of it is in the log; else 0
  SegmentList regions[static_cast<size_t>(RegionKind::kCount)];
};
static_assert(sizeof(Superblock) <= kUnitSize);
static_assert(std::has_unique_object_representations_v<Superblock>);
inline constexpr uint64_t kNoBoot = ~uint64_t{0};    // `boot` of a META to be rebuilt from the log
inline constexpr uint32_t kFeatureChecksums = 1;     // data checksums are kept
inline constexpr uint32_t kFeatureMetaLog = 2;       // a metadata log is on the data device
inline constexpr uint32_t kFeatureMirror = 4;        // META is kept twice
inline constexpr uint32_t kFeatureIntentLog = 8;     // META has an intent log
inline constexpr uint32_t kFeatureDeclared = 16;     // META's memory was declared persistent
inline constexpr uint32_t kFeatureTrustMemory = 32;  // the intent log serves on any META class
inline constexpr uint32_t kKnownFeatures = 63;
inline constexpr uint32_t kTunableFeatures =
    kFeatureIntentLog | kFeatureDeclared | kFeatureTrustMemory;

// A block's checksum as it is stored: 0 means "not known".
constexpr uint32_t known_checksum(uint32_t crc) {
  return crc == 0 ? 1 : crc;
}

inline constexpr uint64_t kRingSize = 512 * 1024;

// Heap map. Free units are all zeroes on the media; kDirty ones must be zeroed before they are
// free.
enum class UnitKind : uint8_t {
  kFree = 0,
  kInodes = 1,     // 16 inodes
  kDirectory = 2,  // UnitHeader + 63 directory slots
  kExtents = 3,    // UnitHeader + 126 extent slots
  kBlob = 4,       // UnitHeader + bytes: xattrs, long symlinks
  kOrphans = 5,    // UnitHeader + 504 inode ids
  kDirty = 6,
};

// First line of every heap unit but kInodes.
struct UnitHeader {
  uint64_t owner;     // InodeId + kind in the top byte; 0 = not in use. It is stored last.
  uint64_t next;      // offset of the next unit of this chain, 0 = last
  uint64_t length;    // blobs: payload bytes in this unit
  uint32_t checksum;  // blobs: CRC32C of the payload
  uint32_t reserved0;
  uint64_t reserved[4];
};
static_assert(sizeof(UnitHeader) == kLineSize);

inline constexpr uint32_t kInodesPerUnit = kUnitSize / kCellSize;
inline constexpr uint32_t kDirSlotsPerUnit = 63;
inline constexpr uint32_t kExtentSlotsPerUnit = 126;
inline constexpr uint32_t kOrphansPerUnit = 504;
inline constexpr uint32_t kBlobBytesPerUnit = kUnitSize - sizeof(UnitHeader);

// w0 of an inode: mode | flags << 16 | nlink << 32. Never 0 in a used slot.
inline constexpr uint16_t kInlineExtent0 = 1;  // the inline extent slot 0 is in use
inline constexpr uint16_t kInlineExtent1 = 2;
inline constexpr uint16_t kInlineSymlink = 4;   // the target is in the inline area
inline constexpr uint16_t kTruncating = 8;      // blocks past size are being freed (resumed)
inline constexpr uint16_t kHintedVStream = 16;  // the vStream comes from a hint
inline constexpr uint16_t kHasCapability = 32;  // security.capability is among the attributes
// The flag 64 is reserved: an inode that has it is refused.
inline constexpr uint16_t kExtending = 128;  // written blocks past size become unwritten (resumed)

// An inode, 256 bytes. Words 0–7 are the hot line; words 16–31 mean what the flags say and are
// garbage otherwise, so that creating a file flushes two lines.
struct InodeImage {
  uint16_t mode;
  uint16_t flags;
  uint32_t nlink;
  uint32_t uid;
  uint32_t gid;
  uint64_t size;
  uint64_t mtime;  // PackedTime
  uint64_t ctime;
  uint64_t
      blocks_vstream;  // 4 KiB blocks (40 bits) | the vStream's generation << 40 | vStream << 48
  uint64_t chain;      // first directory or extent unit, 0 = none
  uint32_t generation;
  uint32_t checksum;  // CRC32C of words 0–15 (and inline symlink or attributes), this field zero
  uint64_t atime;
  uint64_t btime;
  uint64_t xattr;               // first blob unit, 0 = none
  uint64_t symlink;             // first blob unit of a long target, 0 = none
  uint64_t rdev;                // of a device
  uint64_t parent;              // directories: InodeId of the parent
  uint64_t self;                // own InodeId
  uint64_t inline_xattr_bytes;  // of extended attributes in the inline area, 0 = none there
  // A symlink target, or two ExtentSlots (words 16–23) and extended attributes (words 24–31). In an
  // inode that can have neither target nor extents, attributes may take all of it.
  uint64_t inline_area[16];
};
static_assert(sizeof(InodeImage) == kCellSize);
static_assert(std::has_unique_object_representations_v<InodeImage>);
inline constexpr uint32_t kInodeWords = kCellSize / kWordSize;
inline constexpr uint32_t kInodeBodyWords = 16;   // the words that create writes
inline constexpr uint32_t kInlineXattrWord = 24;  // of regular files: after the extents
inline constexpr uint32_t kInlineExtents = 2;
inline constexpr uint32_t kInlineSymlinkMax = 128;
using InodeWords = std::array<uint64_t, kInodeWords>;

// A PackedTime has the seconds since 1901-12-13 in 34 bits (to 2446) and nanoseconds in 30.
inline constexpr int64_t kTimeBias = int64_t{1} << 31;

// A directory slot. A name of up to 48 bytes takes one; a longer name continues in the slots that
// follow in the same unit. A slot never moves: readdir cookies are made from its number.
struct DirSlot {
  uint64_t inode;  // InodeId | type << 56 | kContinuation; 0 = free. It is stored last.
  uint32_t name_hash;
  uint16_t name_length;
  uint16_t checksum;  // low 16 bits of CRC32C over the entry's slots, inode word included, this 0
  char name[48];
};
static_assert(sizeof(DirSlot) == kLineSize);
static_assert(std::has_unique_object_representations_v<DirSlot>);
inline constexpr uint64_t kContinuation = uint64_t{1} << 63;  // type is 4 bits, below this one
inline constexpr uint32_t kDirSlotName = 48;
inline constexpr uint32_t kContinuationName = 56;

// An extent maps `length` blocks of the file, from file_block on, to the device's from `block` on.
struct ExtentSlot {
  uint64_t head;   // file_block (40 bits) | kExtent* << 40 | vStream << 48; 0 = free
  uint64_t block;  // device block
  uint32_t length;
  uint32_t checksum;  // CRC32C of the slot with this field zero
  uint64_t reserved;
};
static_assert(sizeof(ExtentSlot) == 32);
inline constexpr uint64_t kExtentUsed = uint64_t{1} << 40;
inline constexpr uint64_t kExtentUnwritten = uint64_t{1} << 41;  // allocated, reads as zeroes
inline constexpr uint64_t kExtentInMeta = uint64_t{1} << 42;     // reserved: data inside META

// A persisted vStream.
inline constexpr uint64_t kVStreamEarned = uint64_t{1} << 32;
struct VStreamSlot {
  uint64_t head;  // number | source << 16 | generation << 24 | kVStream* | owner << 40; 0 = free
  uint64_t lifetime_bytes;
  uint64_t lifetime_ms;
  uint64_t written_bytes;
  char name[32];
};
static_assert(sizeof(VStreamSlot) == kLineSize);

// ---- Journal records (docs/ORDERING.md). A record is RecordHeader, then its sections in this
// order: patches, masks, runs, bodies, proofs; padded with zeroes to a line.
struct RecordHeader {
  uint64_t sequence_words;  // sequence (48 bits) | length in words << 48
  uint32_t checksum;        // CRC32C of the record, this field zero, seeded with journal_seed
  uint32_t body_checksum;   // CRC32C of the bodies as they were at commit
  uint8_t patches;
  uint8_t masks;
  uint8_t bodies;
  uint8_t proofs;
  uint16_t runs;
  uint16_t reserved;
};
static_assert(sizeof(RecordHeader) == 24);

// A patch is the word cell << 32 | word mask, then a value for each bit of the mask, lowest first.
// Its cell is a META offset / kCellSize.
// A mask is three words: offset, mask, value. Replay stores the bits of `value` that `mask` has.
// A run is one word: first block (40 bits) | count << 40 (22 bits) | RunKind << 62.
enum class RunKind : uint8_t { kAllocate = 0, kFree = 1, kTrimmed = 2 };
inline constexpr uint64_t kMaxRunBlocks = (uint64_t{1} << 22) - 1;
// A body is one word: META offset / 8 (48 bits) | length in words << 48. A proof is a sequence.

inline constexpr uint32_t kMaxRecordWords = 4096;  // 32 KiB

// ---- The intent log (intent_log.h). Lines of an entry follow it, as many as `lines` has bits.
struct IntentEntry {
  uint64_t sequence;       // larger than that of the entry before it
  uint64_t block;          // of DATA
  uint64_t lines;          // bit i: line i of the block follows
  uint64_t base;           // META offset of the entry with the other lines; 0: they are zeroes
  uint64_t base_sequence;  // of that entry
  uint64_t inode;          // InodeId of the file that the block was written for
  uint16_t vstream;
  uint16_t reserved0;
  uint32_t checksum;  // CRC32C of the entry and its lines, this field zero, seeded as a record
  uint64_t reserved1;
};
static_assert(sizeof(IntentEntry) == kLineSize);
static_assert(std::has_unique_object_representations_v<IntentEntry>);
static_assert(kBlockSize / kLineSize == 64);

// A slot of the expired word. There are two, in the first two lines of the log; the larger valid
// one counts.
struct ExpiredSlot {
  uint64_t through;   // entries up to this sequence do not count
  uint64_t checksum;  // CRC32C of `through`, seeded as a record, + 2^32; of 0: 0
};
static_assert(sizeof(ExpiredSlot) == 16);

// ---- The data device's first block, so that a lost META can be rebuilt.
struct DataLabel {
  uint64_t magic;
  uint32_t version;
  uint32_t checksum;
  Superblock geometry;       // META's superblock at mkfs or the last grow
  uint64_t log_first_block;  // the metadata log, 0 = none
  uint64_t log_blocks;
  uint64_t snapshot_first_block[2];
  uint64_t snapshot_blocks;  // of each
};

inline constexpr uint64_t kLabelOffset[2] = {0, 2048};  // of its two copies in the first block

// Counts how often META was attached to this DATA. It lies in the last sector of the label's block.
struct AttachmentRecord {
  uint64_t magic;
  uint64_t count;
  uint32_t checksum;      // CRC32C of this record with this field zero
  uint32_t mirror_token;  // of the META that was attached
};
static_assert(sizeof(AttachmentRecord) == 24);
static_assert(std::has_unique_object_representations_v<AttachmentRecord>);
inline constexpr uint64_t kAttachmentOffset = kBlockSize - 512;
static_assert(sizeof(DataLabel) <= kLabelOffset[1] &&
              kLabelOffset[1] + sizeof(DataLabel) <= kAttachmentOffset);

}  // namespace streamfs::meta
