// Placement decides which vStream a file belongs to and which pStream a write of that vStream uses.
//
// A vStream is the only mechanism: a hint, a directory's label, a file-name rule and a program
// context each select one, in this order of precedence. Its lifetime is measured. The daemon's
// model table maps (vStream, shape) to a pStream (base/wire/model_table.h). For a vStream that the
// table does not cover, K-means over measured lifetimes does.
//
// Contexts are a bounded cache (context_cache.h). Each context is measured under a number of its
// own, but its data is shown as its program's vStream until the context earns a vStream. `shown` is
// the vStream that streams, telemetry and models speak of. A number may be used again, so an inode
// keeps a generation beside the number.
//
// Thread safety: any thread may call any method. The calls of the write path take no lock and never
// wait.
// After a crash: tick() stores the vStream table through a Store, so about a second of statistics
// is lost, which is harmless. The daemon stores the model, and adopt_stored() takes it up.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/placement/model_status.h"
#include "learning/placement_model.h"

namespace streamfs::placement {

enum class Mode : uint8_t {
  kOff,          // all data on the default pStream
  kLearned,      // contexts only: hints, directory labels and name rules are ignored
  kHints,        // as kAuto
  kAuto,         // hints, directory labels, name rules and contexts; the default
  kPassthrough,  // vStreams as kAuto; the device maps them, so all data is on the default pStream
};
Result<Mode> parse_mode(std::string_view name);  // EINVAL lists the known ones
std::string_view to_string(Mode mode);

enum class Source : uint8_t { kDefault = 0, kHint, kDirectory, kRule, kContext, kInternal };
std::string_view to_string(Source source);

// The properties of a file at its creation that choose its vStream.
struct CreateContext {
  std::string_view comm;       // thread name of the creator, may be empty
  std::string_view name;       // the file's
  std::string_view directory;  // the parent's own name
  VStreamId parent_vstream;    // the parent directory's label; the default one if it has none
  uint32_t uid = 0;            // of the creator: a user's contexts never displace another's
};
struct Chosen {
  VStreamId vstream;
  Source source = Source::kDefault;
  uint8_t generation = 0;  // stored beside the number; not set for Source::kDirectory
};

struct VStreamInfo {
  VStreamId vstream;
  uint8_t generation = 0;
  Source source = Source::kDefault;
  std::string name, comm, ext, dir;
  bool built_in = false;        // the name is one of streamfs's own and reveals no file's name
  uint64_t lifetime_bytes = 0;  // 0 = not known yet
  uint64_t lifetime_low_bytes = 0, lifetime_high_bytes = 0;  // 95 % confidence (confidence.h)
  uint64_t lifetime_ms = 0;
  uint64_t expected_bytes = 0;  // expected lifetime (expected.h); 0 = none
  uint64_t written_bytes = 0, live_bytes = 0, dead_bytes = 0;
  PStreamId pstream;  // plain_route() of the vStream
};

// When and by which vStream a live block was written, to the 64 KiB that share a stamp.
struct BlockBirth {
  VStreamId vstream;
  PStreamId pstream;         // plain_route() of the vStream, which may differ from the block's
  uint64_t clock_pages = 0;  // the device's clock at the write: pages written before it
  uint64_t now_pages = 0;    // the clock now
};

// The state of a vStream that outlives a mount.
struct SavedVStream {
  VStreamId vstream;  // 0 = the slot is free
  Source source = Source::kDefault;
  std::string name;  // at most kNameMax bytes; empty for a vStream known by its number
  uint64_t lifetime_bytes = 0, lifetime_ms = 0, written_bytes = 0;
  uint8_t generation = 0;
  bool earned = false;  // a context with a vStream of its own
  uint32_t owner = 0;   // of a context: its creator's uid, low 24 bits
};
inline constexpr size_t kNameMax = 31;

// Stores vStreams. fuse-fs/data implements it on META, which placement does not include.
class Store {
 public:
  virtual ~Store() = default;
  virtual std::vector<SavedVStream> load() = 0;  // index = slot
  virtual Result<void> store(uint32_t slot, const SavedVStream& value) = 0;
  virtual uint32_t capacity() const = 0;  // slots
};

// Pages of one request that are contiguous on the device.
struct PageRun {
  VStreamId vstream;
  uint32_t request_pages = 0;  // length of the whole request
  uint32_t offset = 0;         // of the run in the request, pages
  uint32_t pages = 0;
  BlockNo block;           // the first
  uint8_t file_place = 0;  // of the request (learning/steps.h); 0: unknown
};
// A part of a run that goes to one pStream and whose pages all overwrite data of one age class.
struct RoutedRun {
  uint64_t offset_pages;  // in the request
  uint64_t pages;
  PStreamId stream;
  uint8_t age;  // age class of the overwritten data (base/wire/model_table.h)
};

class Placement {
 public:
  struct Options {
    Mode mode = Mode::kAuto;
    uint16_t pstream_count = 1;
    uint64_t capacity_blocks = 0;
    std::array<uint8_t, 16> uuid{};
    std::string profiles_folder, profile;   // of name rules (name_rules.h)
    uint32_t telemetry_capacity = 1 << 16;  // records a ring
    uint64_t remap_pages = 65536;           // K-means after this many page writes
    uint64_t ages_bytes_max = 64 << 20;     // memory for the pages' write times
  };
  // Errors: EINVAL for a pstream_count outside 1..256 or an unknown profile; those of
  // memfd_create(2) and mmap(2).
  static Result<std::unique_ptr<Placement>> open(Store& store, Clock& clock,
                                                 const Options& options);
  virtual ~Placement() = default;
  virtual Mode mode() const = 0;
  // Returns a sentence for each mistake in the profiles of name rules.
  virtual const std::vector<std::string>& complaints() const = 0;

  // ---- At create and on hints
  // Returns the vStream of a new file, by the order of precedence above. A rule or context that has
  // no vStream yet gets one. If that is impossible, the next cue counts, and at last the default.
  virtual Chosen choose(const CreateContext& context) = 0;
  // Returns the vStream of this name, made if new. Errors: ENOSPC if all numbers for names are in
  // use; EINVAL for a name that is empty, longer than kNameMax or holds a NUL.
  virtual Result<VStreamId> by_name(std::string_view name, Source source) = 0;
  // Returns the vStream of this number, made if new. Errors: ERANGE outside 1..65535.
  virtual Result<VStreamId> by_number(uint32_t number) = 0;
  // Returns the default vStream for "none" and "not set". Errors: EINVAL for an unknown hint, and
  // those of by_name().
  virtual Result<VStreamId> by_rw_hint(uint32_t rw_hint) = 0;
  // Returns `stored`, or the default vStream if that number's generation is not `generation`.
  virtual VStreamId current(VStreamId stored, uint8_t generation) const = 0;
  virtual VStreamId shown(VStreamId vstream) const = 0;  // the vStream that it is shown as
  // Returns the vStream that the device is told for a write of `vstream`.
  virtual VStreamId told(VStreamId vstream) const = 0;
  // Returns the measurements of the vStream that `vstream` is shown as; nothing if it is unknown.
  virtual std::optional<VStreamInfo> info(VStreamId vstream) = 0;
  virtual std::vector<VStreamInfo> all() = 0;
  // Returns nothing for a block that is dead or was not written since the mount.
  virtual std::optional<BlockBirth> birth(BlockNo block) = 0;
  // Returns the vStream's name, or its number as text, as the xattr shows it.
  virtual std::string describe(VStreamId vstream) = 0;

  // ---- On the write path
  // Returns the pStream of the page at `offset` of a request, in a chunk without a class. A
  // logistic model answers from its table.
  virtual PStreamId route(VStreamId vstream, uint32_t request_pages, uint32_t offset,
                          uint8_t age) const = 0;
  // Returns the pStream of an early page of a long request that overwrites nothing.
  virtual PStreamId plain_route(VStreamId vstream) const = 0;
  // Returns the pStream of the first blocks of an epoch (data/epoch_stream.h) that a write of
  // `vstream` to `block` begins. A logistic model gives `first`, the pStream of the write's first
  // page; a table gives that of an early page of a long request in the block's chunk.
  virtual PStreamId epoch_route(VStreamId vstream, BlockNo block, PStreamId first) const = 0;
  // Appends to `out` the parts of the run, one for each change of pStream or age class.
  // `overwrite`: the run overwrites data in place. `cursor`: the same for all runs of a request,
  // which come in order; a new one for each request.
  using Cursor = learning::PlacementModel::Cursor;
  virtual void route_run(const PageRun& run, bool overwrite, Cursor& cursor,
                         std::vector<RoutedRun>& out) const = 0;
  // Counts the births of a routed run and the deaths they cause, and sends telemetry. Requires: the
  // device completed the write; `stream` and `age` are as routed.
  virtual void wrote(const PageRun& run, PStreamId stream, uint8_t age) = 0;
  // Counts the deaths of these blocks, and sends telemetry.
  virtual void trimmed(BlockNo first, uint64_t pages) = 0;
  // Tells placement that DATA has grown. Requires: nothing was written to the new blocks yet.
  virtual void grow(uint64_t capacity_blocks) = 0;

  // Adopts the model that the daemon stored during an earlier mount, in `path`: a file, or the
  // folder of the daemon's state. The next model that is published replaces it. vStreams whose
  // number was used again since are placed as if they were younger than the model. Returns a
  // sentence for the log. Requires: nothing was written since the mount, and the mode is not off.
  // Errors, with the path: those of read_stored_model() and PlacementModel::deserialize().
  virtual Result<std::string> adopt_stored(const std::string& path) = 0;

  // ---- For the control server
  struct SharedMemory {
    int telemetry_fd;  // owned by the placement
    int model_fd;
    uint64_t telemetry_bytes, model_bytes;
  };
  virtual SharedMemory shared_memory() = 0;
  // Called about once a second, off the write path. Adopts a newly published model if it is valid
  // (not in mode off), remaps by K-means after each `remap_pages`, splits contexts and stores
  // changed vStreams. Returns a sentence to log, if any.
  virtual std::optional<std::string> tick() = 0;
  // Returns and forgets the pStreams that the model stopped using; the device may release them.
  virtual std::vector<PStreamId> take_released() = 0;
  virtual ModelStatus model_status() = 0;
  // Returns the class of each chunk of 1 MiB by the model in use, up to the last one with a class.
  virtual std::vector<uint8_t> chunk_classes() = 0;
};

}  // namespace streamfs::placement
