// Reads all metadata and data once, so that damage is found while a backup still exists.
//
// Runs in a thread of its own. While programs read or write, it rests nine times as long as it
// works. A block whose checksum is not known yet is accepted and its checksum stored, as by any
// read.
// Thread safety: any thread. After a crash: nothing; the next mount does not continue a scrub.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/core.h"
#include "fuse-fs/data/data_path.h"
#include "fuse-fs/data/filesystem.h"

namespace streamfs::data {

class Scrub {
 public:
  // `traffic` returns a count that grows with each request of a program.
  Scrub(Core& core, DataPath& path, std::function<uint64_t()> traffic)
      : core_(core), path_(path), traffic_(std::move(traffic)) {}
  ~Scrub() { stop(); }

  // Starts a scrub from the beginning and returns at once. Errors: EBUSY, a scrub is under way.
  Result<void> start();
  void stop();  // waits until the scrub has ended, if there is one
  ScrubStatus status() const;

 private:
  void run();
  void visit(InodeId id);
  void read_data(InodeId id, uint64_t size);
  void find_bad_blocks(InodeId id, uint64_t offset, uint64_t length);
  void damaged(InodeId id, std::string what);
  void give_way(uint64_t worked_ns);

  Core& core_;
  DataPath& path_;
  const std::function<uint64_t()> traffic_;
  std::atomic<bool> stopping_{false};
  uint64_t seen_traffic_ = 0;   // the thread's own
  uint64_t mended_before_ = 0;  // written before the thread starts
  Mutex starting_;              // one start() or stop() at a time; before mutex_
  std::thread thread_ SFS_GUARDED_BY(starting_);
  mutable Mutex mutex_;  // leaf
  ScrubStatus status_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
