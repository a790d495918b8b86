// Placement: which vStream does a write belong to, and which pStream does that vStream use now?
//
// A vStream is the only mechanism. A hint, a directory's attribute, a file-name rule and a program
// context all end as one: hint > directory > name rule > context > default. Its lifetime is
// measured, never trusted; the model table (the daemon's) or, without one, K-means over measured
// lifetimes maps it to a pStream. The shape of the request (base/wire/model_table.h) goes with
// every page down to here.
//
// Contexts are a bounded cache (context_cache.h). Each context is measured under a number of its
// own, but its data is shown as its program's vStream until the context earns a vStream. `shown` is
// the vStream that streams, telemetry and models speak of. A number may be used again, so an inode
// keeps a generation beside the number.
//
// Thread safety: every method, any thread. route() and the telemetry calls take no lock, allocate
// nothing and never wait. Crash: the vStream table is persisted through a Store at checkpoints of
// its own (losing the last second of statistics is harmless); the model is not.
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

namespace streamfs::placement {

enum class Mode : uint8_t {
  kOff,      // everything on the default pStream
  kLearned,  // contexts only: hints and name rules are ignored (and said to be)
  kHints,    // hints, directory attributes and name rules; other files on their context
  kAuto,     // all of them: the default
};
Result<Mode> parse_mode(std::string_view name);  // EINVAL lists the known ones
std::string_view to_string(Mode mode);

enum class Source : uint8_t { kDefault = 0, kHint, kDirectory, kRule, kContext, kInternal };
std::string_view to_string(Source source);

// What is known when a file is created.
struct CreateContext {
  std::string_view comm;       // thread name of the creator, may be empty
  std::string_view name;       // the file's
  std::string_view directory;  // the parent's own name
  VStreamId parent_vstream;    // if the parent directory has one said by someone
  uint32_t uid = 0;            // of the creator: a user's contexts never displace another's
};
struct Chosen {
  VStreamId vstream;
  Source source = Source::kDefault;
  uint8_t generation = 0;  // to be kept beside the number
};

struct VStreamInfo {
  VStreamId vstream;
  uint8_t generation = 0;
  Source source = Source::kDefault;
  std::string name, comm, ext, dir;
  bool built_in = false;  // the name is one of streamfs's own, so it says nothing about any file
  uint64_t lifetime_bytes = 0;                               // 0 = not known yet
  uint64_t lifetime_low_bytes = 0, lifetime_high_bytes = 0;  // 95 % confidence (confidence.h)
  uint64_t lifetime_ms = 0;
  uint64_t expected_bytes = 0;  // what was said of its lifetime (expected.h); 0 = nothing
  uint64_t written_bytes = 0, live_bytes = 0, dead_bytes = 0;
  PStreamId pstream;  // of a plain new write
};

// A block that lives, as far as placement knows it: to the 64 KiB around it.
struct BlockBirth {
  VStreamId vstream;
  PStreamId pstream;         // of a plain new write of that vStream, now
  uint64_t clock_pages = 0;  // when it was written
  uint64_t now_pages = 0;
};

// What is kept of a vStream from one mount to the next.
struct SavedVStream {
  VStreamId vstream;  // 0 = the slot is free
  Source source = Source::kDefault;
  std::string name;  // at most kNameMax bytes; empty for one known by its number
  uint64_t lifetime_bytes = 0, lifetime_ms = 0, written_bytes = 0;
  uint8_t generation = 0;
  bool earned = false;  // a context with a vStream of its own
  uint32_t owner = 0;   // of a context: its creator's uid, low 24 bits
};
inline constexpr size_t kNameMax = 31;

// Where vStreams are kept: META, through the floor above, because placement never sees it.
class Store {
 public:
  virtual ~Store() = default;
  virtual std::vector<SavedVStream> load() = 0;  // index = slot
  virtual Result<void> store(uint32_t slot, const SavedVStream& value) = 0;
  virtual uint32_t capacity() const = 0;  // slots
};

// Pages of one request that lie one after the other on the device.
struct PageRun {
  VStreamId vstream;
  uint32_t request_pages = 0;  // of the whole request
  uint32_t offset = 0;         // of the run in it
  uint32_t pages = 0;
  BlockNo block;  // of the first
};
// A part of it that goes to one pStream, and overwrites what is of one age or nothing.
struct RoutedRun {
  uint64_t offset_pages;  // in the request
  uint64_t pages;
  PStreamId stream;
  uint8_t age;  // class (base/wire/model_table.h)
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
    uint64_t ages_bytes_max = 64 << 20;     // of memory, for when pages were written
  };
  static Result<std::unique_ptr<Placement>> open(Store& store, Clock& clock,
                                                 const Options& options);
  virtual ~Placement() = default;
  virtual Mode mode() const = 0;
  // What is wrong in profiles of name rules, a sentence each.
  virtual const std::vector<std::string>& complaints() const = 0;

  // ---- At create and on hints
  virtual Chosen choose(const CreateContext& context) = 0;
  // ENOSPC when all 65,535 are in use, EINVAL for an empty or over-long name.
  virtual Result<VStreamId> by_name(std::string_view name, Source source) = 0;
  virtual Result<VStreamId> by_number(uint32_t number) = 0;    // ERANGE outside 1..65535
  virtual Result<VStreamId> by_rw_hint(uint32_t rw_hint) = 0;  // EINVAL unknown
  // Returns `stored`, or the default vStream if that number's generation is not `generation`.
  virtual VStreamId current(VStreamId stored, uint8_t generation) const = 0;
  virtual VStreamId shown(VStreamId vstream) const = 0;
  // Returns what is known of the vStream that `vstream` is shown as.
  virtual std::optional<VStreamInfo> info(VStreamId vstream) = 0;
  virtual std::vector<VStreamInfo> all() = 0;
  // Nothing of what was not written since the mount, or does not live.
  virtual std::optional<BlockBirth> birth(BlockNo block) = 0;
  // "name" or "number", as the xattr shows it.
  virtual std::string describe(VStreamId vstream) = 0;

  // ---- On the write path
  virtual PStreamId route(VStreamId vstream, uint32_t request_pages, uint32_t offset,
                          uint8_t age) const = 0;
  virtual PStreamId plain_route(VStreamId vstream) const = 0;  // of a plain new write
  // Splits it; adds to `out`. `overwrite`: of what lives there.
  virtual void route_run(const PageRun& run, bool overwrite, std::vector<RoutedRun>& out) const = 0;
  // After the device took it. Births (and the deaths they cause) are measured here. `age` and
  // `stream` are as routed.
  virtual void wrote(const PageRun& run, PStreamId stream, uint8_t age) = 0;
  virtual void trimmed(BlockNo first, uint64_t pages) = 0;
  virtual void grow(uint64_t capacity_blocks) = 0;  // before anything is written there

  // ---- For the control server
  struct SharedMemory {
    int telemetry_fd;  // owned by the placement
    int model_fd;
    uint64_t telemetry_bytes, model_bytes;
  };
  virtual SharedMemory shared_memory() = 0;
  // Called about once a second, off the write path: adopts a newly published model if it is valid,
  // remaps by K-means if there is none, persists the vStream table. Returns a sentence to log.
  virtual std::optional<std::string> tick() = 0;
  // pStreams that nothing is to go to for long, each once; for the device to release. One thread.
  virtual std::vector<PStreamId> take_released() = 0;
  virtual ModelStatus model_status() = 0;
};

}  // namespace streamfs::placement
