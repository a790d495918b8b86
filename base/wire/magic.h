// The first bytes of every medium, file and shared memory that streamfs writes, so that a program
// can name what lies on a device. docs/FORMAT.md describes each format.
// Thread safety: constants only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace streamfs::wire {

// Returns the value whose little-endian bytes are `text`.
template <typename Word = uint64_t>
constexpr Word magic(const char (&text)[sizeof(Word) + 1]) {
  Word value = 0;
  for (size_t i = sizeof(Word); i-- > 0;)
    value = static_cast<Word>(value << 8) | static_cast<unsigned char>(text[i]);
  return value;
}
static_assert(magic("SSTRFS01") == 0x3130534652545353);

// ---- META
inline constexpr uint64_t kSuperMagic = magic("SSTRFS01");
inline constexpr uint64_t kUnfinishedMagic =
    magic("SFSCPY01");  // both superblocks of an unfinished copy

// ---- DATA
inline constexpr uint64_t kDataMagic = magic("SSDATA01");        // the label
inline constexpr uint64_t kAttachmentMagic = magic("SSATCH01");  // the label's count of attachments
inline constexpr uint64_t kChunkMagic = magic("SFSLOG01");       // a chunk of the metadata log
inline constexpr uint64_t kSnapshotMagic = magic("SFSDSN01");    // a snapshot of META

// ---- Files
inline constexpr uint64_t kDumpMagic = magic("SSDUMP01");         // `streamctl metadata dump`
inline constexpr uint64_t kTraceMagic = magic("SFSTRC01");        // a trace
inline constexpr uint64_t kStoredModelMagic = magic("SFSMDF01");  // the daemon's model
inline constexpr uint64_t kImageMagic = magic("STFESSD1");        // an emulated SSD

// ---- Shared memory
inline constexpr uint64_t kModelMagic = magic("SFSMDL01");
inline constexpr uint64_t kTelemetryMagic = magic("SFSTLM01");

// ---- Inside emulated SSDs
inline constexpr uint64_t kHybridMagic = magic("SHYFTL01");  // the hybrid FTL's memory
inline constexpr uint32_t kContextPageMagic =
    magic<uint32_t>("EMGC");  // the eMMC FTL's log of contexts

}  // namespace streamfs::wire
