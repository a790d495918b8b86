// The operations of joint_main.cc, the states of a filesystem that sequences of them start from,
// and the sequences by number. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/crash/joint_rig.h"

namespace streamfs::joint {

struct Operation {
  const char* name;
  void (*run)(Actor&);
};
std::span<const Operation> operations();
std::span<const Operation> starts();

// The start, and then the operations: indices of the lists.
struct Sequence {
  size_t start = 0;
  std::vector<size_t> operations;

  std::string text() const;     // for people
  std::string numbers() const;  // the argument of --only
};
// Returns the number of sequences of so many operations.
uint64_t sequences(size_t length);
// Returns sequence `number` of these; nullopt: it does the same as another one.
std::optional<Sequence> sequence_of(uint64_t number, size_t length);
std::optional<Sequence> parse_sequence(const std::string& numbers);

}  // namespace streamfs::joint
