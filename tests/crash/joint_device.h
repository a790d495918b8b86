// A data device in memory for joint_cuts.h. A BlockTable holds one pointer for each block, so a
// state after a cut costs a copy of the pointers only. A MemoryDevice reads and writes a table and
// can record its writes and flushes.
// Thread safety: none. After a crash: joint_cuts.h makes the contents that the record allows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"

namespace streamfs::joint {

inline constexpr uint64_t kSectorBytes = 512;

// A content of a block and its hash, which is 0 for zeroes.
struct Content {
  std::array<std::byte, kBlockSize> bytes;
  uint64_t hash;
};

// Owns contents. A pointer to one stays valid as long as the store.
class Contents {
 public:
  const Content* add(ConstBytes block);
  // Returns a torn block: sector i comes from `from` if bit i of `sectors` is set, and else from
  // `rest`. A null pointer stands for a block of zeroes.
  const Content* torn(const Content* from, const Content* rest, uint8_t sectors);

 private:
  std::deque<Content> all_;
};

// The content of each block; null: zeroes.
class BlockTable {
 public:
  explicit BlockTable(uint64_t blocks) : blocks_(blocks) {}
  uint64_t size() const { return blocks_.size(); }
  const Content* at(uint64_t block) const { return blocks_[block]; }
  void put(uint64_t block, const Content* content);
  uint64_t hash() const { return hash_; }  // equal for equal contents of all blocks

 private:
  std::vector<const Content*> blocks_;
  uint64_t hash_ = 0;
};

class MemoryDevice final : public blockdev::Device {
 public:
  struct Event {
    enum class Kind : uint8_t { kWrite, kFlush } kind;
    size_t after;  // events of META before it
    uint64_t block = 0;
    const Content* content = nullptr;
  };
  // New contents belong to `contents`; both outlive the device.
  MemoryDevice(BlockTable& table, Contents& contents);
  // Records from here on. `position` returns the number of events of META until now.
  void record(std::function<size_t()> position) { position_ = std::move(position); }
  const std::vector<Event>& events() const { return events_; }
  // Calls `call` once, before the next event of this kind. Null takes the last call back.
  void before_next(Event::Kind kind, std::function<void()> call) {
    hook_kind_ = kind;
    hook_ = std::move(call);
  }

  const blockdev::DeviceInfo& info() const override { return info_; }
  void write(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag,
             blockdev::Completion done) override;
  void read(BlockNo first, Bytes bytes, blockdev::Completion done) override;
  Result<void> flush() override;
  // Fills the blocks with noise, which no file may show.
  Result<void> trim(BlockNo first, uint64_t count) override;
  Result<blockdev::DeviceStats> stats() override { return blockdev::DeviceStats{}; }
  blockdev::Placement placement(PStreamId) const override { return {}; }

 private:
  void put(uint64_t block, const Content* content);
  void call_hook(Event::Kind kind);

  BlockTable& table_;
  Contents& contents_;
  blockdev::DeviceInfo info_;
  std::function<size_t()> position_;
  std::vector<Event> events_;
  Event::Kind hook_kind_{};
  std::function<void()> hook_;
};

}  // namespace streamfs::joint
