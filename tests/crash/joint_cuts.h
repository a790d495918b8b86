// Makes from one record of META and DATA the states that both may have together after a power cut.
//
// A cut is made before each fence of META, before each flush and each run of writes of DATA, at
// each mark, and at the end. At a cut, stores to META that no fence covers may be lost
// (recording_region.h, under both store models). Writes to DATA that no flush covers may be lost,
// too: a block holds its flushed content, the content of any later write, or sectors of several
// of them.
//
// Thread safety: none. After a crash: memory only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pmem/recording_region.h"
#include "tests/crash/joint_device.h"

namespace streamfs::joint {

struct Record {
  const std::vector<uint64_t>& meta;  // as the record began
  const std::vector<pmem::RecordingRegion::Event>& meta_events;
  const BlockTable& data;  // the same
  const std::vector<MemoryDevice::Event>& data_events;
};

struct State {
  std::vector<uint64_t>& meta;  // visit() leaves it unchanged
  const BlockTable& data;
  size_t marks;  // calls that had returned before the cut
  uint64_t meta_hash;
  std::function<std::string()> description;  // place of the cut, and the lost parts
};

struct CutOptions {
  size_t exhaustive_up_to = 32;  // combinations at one cut and store model; more are sampled
  size_t samples = 8;            // random combinations at a sampled cut
  size_t singles_max = 12;       // most parts of META, and of DATA, kept or lost by themselves
  uint64_t seed = 1;
  uint64_t copy_bytes = 0;  // unless 0, META is two copies of so many bytes
  size_t from_mark = 0;     // skips earlier cuts
};

// Visits the states, some of them more than once. A part is a line or word of META, or a block of
// DATA, that may have lost stores or writes. A cut with at most exhaustive_up_to combinations of
// parts visits all of them. A larger cut visits these combinations:
// - all parts of META or none, with all parts of DATA or none;
// - one part of META or DATA kept alone, or lost alone;
// - random choices.
// Each cut with unflushed blocks also visits two states with torn blocks. Stops when visit()
// returns false.
void each_state(const Record& record, const CutOptions& options,
                const std::function<bool(const State&)>& visit);

}  // namespace streamfs::joint
