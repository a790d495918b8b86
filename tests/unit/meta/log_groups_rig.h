// A metadata log that follows data, on the simulated hardware of metadata_log_rig.h. bring_home()
// writes no data: the tests look at when it is called.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/log_reader.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/snapshot.h"
#include "pmem/region.h"
#include "tests/unit/meta/metadata_log_rig.h"

namespace streamfs::meta {

inline constexpr uint64_t kChangesOfAChunk = 27'000;  // a chunk holds no more

class LogGroups : public MetadataLogTest {
 protected:
  void SetUp() override {
    MetadataLogTest::SetUp();
    follow(log_->end());
    create(0, 10);
    bring_home();
    fsync();
  }
  // Attaches again and follows data. `end`: as for attach().
  void follow(uint64_t end) {
    attach_again(end);
    log_->follow_data([this](bool stopped) -> Result<TxId> {
      events_ += stopped ? 'B' : 'b';
      const TxId last = stopped ? journal_->last() : journal_->quiesce();
      if (on_bring_home) on_bring_home();
      if (failing_calls.contains(calls_++)) return Error{EAGAIN};
      return last;
    });
  }
  void bring_home() { log_->data_is_home(journal_->last()); }

  void change_many(uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) change(0, ++value_);
  }
  // Gives META so many pages that no snapshot is due before a group of two chunks.
  void make_snapshots_large() {
    for (uint64_t page = 0; page < 260; ++page) create(page * kUnitSize / kCellSize, 1);
    bring_home();
    fsync();
    ASSERT_TRUE(log_->renew().ok());
  }

  // META as a restore makes it from a device in this state.
  std::vector<std::byte> restored(ForgetfulDevice& device) const {
    const auto target = pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
    const auto done = restore_from_log(*target, label_, device);
    EXPECT_TRUE(done.ok()) << done.error().message();
    return {target->at(0), target->at(0) + kMetaSize};
  }
  uint64_t value_in(const std::vector<std::byte>& meta) const {
    uint64_t value = 0;
    std::memcpy(&value, &meta[object(0) + 2 * kWordSize], sizeof(value));
    return value;
  }
  uint64_t restored_value() { return value_in(restored(device_)); }

  bool is_in_log(BlockNo at) const { return at.value - label_.log_first_block < label_.log_blocks; }
  bool is_header(BlockNo at) const {
    return at.value == snapshot_area(label_, 0).front().first ||
           at.value == snapshot_area(label_, 1).front().first;
  }
  // Notes each write as 'c', a chunk; 'h', the header of a snapshot; 'p', its pages or index.
  void note_writes() {
    events_.clear();
    device_.on_write_to = [this](BlockNo at) {
      events_ += is_in_log(at) ? 'c' : is_header(at) ? 'h' : 'p';
      if (is_in_log(at)) chunk_places_.push_back(at);
      if (events_.back() == 'h' && on_header) on_header();
      if (events_.back() == 'p' && on_first_page) std::exchange(on_first_page, {})();
    };
  }
  // Returns what happened, each letter once for any number of times in a row.
  std::string events() {
    device_.on_write_to = {};
    std::string once;
    for (const char event : events_)
      if (once.empty() || once.back() != event) once += event;
    return once;
  }

  std::vector<LogChunk> chunks_after(const SnapshotHeader& snapshot) {
    std::vector<LogChunk> out;
    for (LogReader reader(label_, snapshot, device_);;) {
      const auto chunk = reader.next();
      if (!chunk.ok() || !chunk->has_value()) return out;
      out.push_back(**chunk);
    }
  }
  // Writes the group that is pending, and returns the blocks at which its chunks begin.
  std::vector<BlockNo> places_of_group() {
    note_writes();
    fsync();
    device_.on_write_to = {};
    return std::exchange(chunk_places_, {});
  }
  void tear(BlockNo at) {
    ASSERT_TRUE(device_.write(at, std::vector<std::byte>(kBlockSize, std::byte{0x5a})).ok());
  }
  // Changes the header of a chunk. The checksum stays right.
  void change_header(BlockNo at, const std::function<void(LogChunkHeader&)>& change) {
    std::vector<std::byte> block(kBlockSize);
    ASSERT_TRUE(device_.read(at, block).ok());
    LogChunkHeader header;
    std::memcpy(&header, block.data(), sizeof(header));
    change(header);
    header.checksum = 0;
    header.checksum = crc32c(std::as_bytes(std::span(&header, 1)));
    std::memcpy(block.data(), &header, sizeof(header));
    ASSERT_TRUE(device_.write(at, block).ok());
  }

  std::function<void()> on_bring_home, on_header, on_first_page;
  std::set<uint64_t> failing_calls;  // of bring_home, from 0
  uint64_t calls_ = 0;
  uint64_t value_ = 0;  // of the last change
  std::string events_;
  std::vector<BlockNo> chunk_places_;
};

}  // namespace streamfs::meta
