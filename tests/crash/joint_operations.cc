#include "tests/crash/joint_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "tests/crash/joint_rig.h"

namespace streamfs::joint {
namespace list {

// A record cannot replace so many extents, so the fsync is refused and its batch is taken back.
constexpr uint64_t kScatteredBlocks = 48;

// A transaction of a database: its record is synced in the journal before its page changes.
void transact(Actor& a, uint64_t page) {
  a.write_blocks("journal", a.blocks("journal"), 1);
  a.fsync("journal", true);
  a.write_blocks("pages", page, 1);
}

void replace(Actor& a, const char* name) {
  a.unlink(name);
  a.reclaim();
  a.create(name);
  a.write_blocks(name, 0, 2);
}

constexpr std::array kOperations = {
    Operation{"write a", [](Actor& a) { a.write_blocks("a", 1, 1); }},
    Operation{"write and fsync a",
              [](Actor& a) {
                a.write_blocks("a", 0, 1);
                a.fsync("a");
              }},
    Operation{"append to a, fdatasync",
              [](Actor& a) {
                a.write_blocks("a", a.blocks("a"), 2);
                a.fsync("a", true);
              }},
    Operation{"write sectors of a, fsync",
              [](Actor& a) {
                a.write("a", 3, 7);
                a.fsync("a");
              }},
    Operation{"fsync a", [](Actor& a) { a.fsync("a"); }},
    Operation{"fdatasync a", [](Actor& a) { a.fsync("a", true); }},
    Operation{"fsync pages", [](Actor& a) { a.fsync("pages"); }},
    Operation{"transaction", [](Actor& a) { transact(a, 0); }},
    Operation{"transaction, fdatasync pages",
              [](Actor& a) {
                transact(a, 1);
                a.fsync("pages", true);
              }},
    Operation{"two transactions",
              [](Actor& a) {
                transact(a, 2);
                transact(a, 2);
              }},
    Operation{"sync", [](Actor& a) { a.sync(); }},
    Operation{"timer, idle", [](Actor& a) { a.timer(1000); }},
    Operation{"timer, home", [](Actor& a) { a.timer(4000); }},
    Operation{"age", [](Actor& a) { a.age(); }},
    Operation{"timer, home; write and fsync a at its flush",
              [](Actor& a) {
                a.before_flush([](Actor& within) {
                  within.write_blocks("a", 2, 1);
                  within.fsync("a");
                });
                a.timer(4000);
              }},
    Operation{"append to b, timer; write and fsync a at its first write",
              [](Actor& a) {
                a.write_blocks("b", 3, 1);
                a.before_write([](Actor& within) {
                  within.write_blocks("a", 1, 1);
                  within.fsync("a");
                });
                a.timer(4000);
              }},
    Operation{"reclaim", [](Actor& a) { a.reclaim(); }},
    Operation{"truncate a", [](Actor& a) { a.truncate("a", 12); }},
    Operation{"truncate a, fsync",
              [](Actor& a) {
                a.truncate("a", 8);
                a.fsync("a");
              }},
    Operation{"truncate a to 0, write, fsync",
              [](Actor& a) {
                a.truncate("a", 0);
                a.write_blocks("a", 0, 2);
                a.fsync("a");
              }},
    Operation{"lengthen a, fsync",
              [](Actor& a) {
                a.truncate("a", 60);
                a.fsync("a");
              }},
    Operation{"punch a", [](Actor& a) { a.punch("a", 1, 1); }},
    Operation{"punch a, fsync",
              [](Actor& a) {
                a.punch("a", 0, 2);
                a.fsync("a");
              }},
    Operation{"zero a range of a, write into it, fsync",
              [](Actor& a) {
                a.zero("a", 0, 2);
                a.write_blocks("a", 1, 1);
                a.fsync("a");
              }},
    Operation{"preallocate a, write, fsync",
              [](Actor& a) {
                a.preallocate("a", 6, 3);
                a.write_blocks("a", 7, 1);
                a.fsync("a");
              }},
    Operation{"unlink a", [](Actor& a) { a.unlink("a"); }},
    Operation{"unlink a, reuse, fsync new",
              [](Actor& a) {
                a.unlink("a");
                a.reclaim();
                a.create("new");
                a.write_blocks("new", 0, 4);
                a.fsync("new");
              }},
    Operation{"replace pages, fsync",
              [](Actor& a) {
                replace(a, "pages");
                a.fsync("pages");
              }},
    Operation{"replace journal", [](Actor& a) { replace(a, "journal"); }},
    Operation{"rename a to pages", [](Actor& a) { a.rename("a", "pages"); }},
    Operation{"write a, rename to pages",
              [](Actor& a) {
                a.write_blocks("a", 0, 2);
                a.rename("a", "pages");
              }},
    Operation{"create and fsync new",
              [](Actor& a) {
                a.create("new");
                a.write_blocks("new", 0, 1);
                a.fsync("new");
              }},
    Operation{"write b in place", [](Actor& a) { a.write_blocks("b", 0, 1); }},
    Operation{"write sectors of b in place, fsync",
              [](Actor& a) {
                a.write("b", 9, 5);
                a.fsync("b");
              }},
    Operation{"write much of a at once", [](Actor& a) { a.write_blocks("a", 0, 66); }},
    Operation{"write much of b at once, fsync",
              [](Actor& a) {
                a.write_blocks("b", 0, 66);
                a.fsync("b");
              }},
    Operation{"overwrite scattered, fsync",
              [](Actor& a) {
                a.write_scattered("scattered", kScatteredBlocks);
                a.fsync("scattered");
              }},
};

// Files: a (4 blocks), b (3, never synced by itself), journal and pages (3 each).
void home(Actor& a) {
  for (const char* name : {"a", "b", "journal", "pages"}) a.create(name);
  a.write_blocks("a", 0, 4);
  a.write_blocks("b", 0, 3);
  a.write_blocks("journal", 0, 1);
  a.write_blocks("pages", 0, 3);
  a.sync();
}

void logged(Actor& a) {
  home(a);
  a.write_blocks("a", 1, 2);
  a.fsync("a");
  transact(a, 0);
  a.fsync("pages");
}

void cached(Actor& a) {
  logged(a);
  a.create("gone");
  a.write_blocks("gone", 0, 4);
  a.fsync("gone");
  a.unlink("gone");
  a.write_blocks("a", 0, 1);
  transact(a, 1);
}

// The entries' blocks are on DATA, but the metadata log on DATA has none of their records.
void half_home(Actor& a) {
  logged(a);
  a.write_blocks("b", 2, 2);
  a.timer(1000);
  a.write_blocks("pages", 2, 1);
}

void cut(Actor& a) {
  logged(a);
  a.cut_and_mount();
}

void scattered(Actor& a) {
  home(a);
  a.create("scattered");
  a.write_scattered("scattered", kScatteredBlocks);
  a.fsync("scattered");
  a.sync();
}

constexpr std::array kStarts = {
    Operation{"home", home},     Operation{"logged", logged},
    Operation{"cached", cached}, Operation{"half home", half_home},
    Operation{"cut", cut},       Operation{"scattered", scattered},
};

// Returns whether a sequence with the start "scattered" has no operation that uses its extra file.
// The same sequence with the start "home" covers it.
bool repeats(const Sequence& sequence) {
  return sequence.start + 1 == kStarts.size() &&
         std::ranges::find(sequence.operations, kOperations.size() - 1) ==
             sequence.operations.end();
}

}  // namespace list

std::span<const Operation> operations() {
  return list::kOperations;
}
std::span<const Operation> starts() {
  return list::kStarts;
}

std::string Sequence::text() const {
  std::string text = joint::starts()[start].name;
  for (const size_t index : operations)
    text += fmt::format("; {}", joint::operations()[index].name);
  return text;
}

std::string Sequence::numbers() const {
  std::string text = std::to_string(start);
  for (const size_t index : operations) text += fmt::format(".{}", index);
  return text;
}

uint64_t sequences(size_t length) {
  uint64_t all = starts().size();
  for (size_t i = 0; i < length; ++i) all *= operations().size();
  return all;
}

// The start and the operations are digits of the number, the start the last one.
std::optional<Sequence> sequence_of(uint64_t number, size_t length) {
  Sequence sequence;
  sequence.start = number % starts().size();
  number /= starts().size();
  for (size_t at = 0; at < length; ++at) {
    sequence.operations.push_back(number % operations().size());
    number /= operations().size();
  }
  return list::repeats(sequence) ? std::nullopt : std::optional(sequence);
}

std::optional<Sequence> parse_sequence(const std::string& numbers) {
  std::vector<size_t> all;
  std::istringstream in(numbers);
  for (std::string number; std::getline(in, number, '.');)
    all.push_back(std::strtoul(number.c_str(), nullptr, 10));
  const auto known = [](size_t index) { return index < operations().size(); };
  const bool right =
      all.size() > 1 && all[0] < starts().size() && std::all_of(all.begin() + 1, all.end(), known);
  if (!right) return std::nullopt;
  return Sequence{all[0], {all.begin() + 1, all.end()}};
}

}  // namespace streamfs::joint
