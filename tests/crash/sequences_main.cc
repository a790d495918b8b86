// Every sequence of one and of two operations from a list, cut everywhere (the bounded black-box
// method of CrashMonkey and ACE, OSDI 2018); longer ones are drawn at random. A sequence is cut
// only in its last operation: earlier cuts are another sequence's.
//
// The same list runs with META kept twice, where each copy keeps its own choice of what was not
// fenced: all sequences of one operation, and a tenth as many of two as are drawn of a longer
// length. An image is mounted five times there, and all of two would take several times as long as
// everything else together.
//
// usage: sequences [--length N] [--draw COUNT] [--seed S] [--jobs N]
// Prints a line for each length and the number of distinct crash states. Exit code 1: a state was
// wrong, and is shown; 2: wrong option.
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/engine.h"
#include "tests/crash/engine_prover.h"
#include "tests/crash/shares.h"

namespace streamfs::meta {
namespace {

// ---- Operations by path, on the engine

struct Place {
  InodeId parent;
  std::string_view name;
};

// Without keeping a reference.
Result<InodeId> find(Engine& e, InodeId parent, std::string_view name) {
  SFS_ASSIGN(const Attributes found, e.lookup(parent, name));
  e.forget(found.id, 1);
  return found.id;
}

Result<Place> place(Engine& e, std::string_view path) {
  InodeId at = e.root();
  for (;;) {
    const size_t slash = path.find('/');
    if (slash == path.npos) return Place{at, path};
    SFS_ASSIGN(at, find(e, at, path.substr(0, slash)));
    path.remove_prefix(slash + 1);
  }
}

Result<InodeId> node(Engine& e, std::string_view path) {
  SFS_ASSIGN(const Place at, place(e, path));
  return find(e, at.parent, at.name);
}

Result<void> create(Engine& e, std::string_view path, uint32_t mode, std::string_view target = "") {
  SFS_ASSIGN(const Place at, place(e, path));
  SFS_ASSIGN(const Attributes made, e.create(at.parent, at.name, {mode, {}, 0, target, {}, false}));
  e.forget(made.id, 1);
  return {};
}

Result<void> link(Engine& e, std::string_view path, std::string_view other) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  SFS_ASSIGN(const Place at, place(e, other));
  SFS_TRY(e.link(id, at.parent, at.name));
  e.forget(id, 1);
  return {};
}

Result<void> unlink(Engine& e, std::string_view path, bool free) {
  SFS_ASSIGN(const Place at, place(e, path));
  SFS_ASSIGN(const auto gone, e.unlink(at.parent, at.name));
  if (free && e.forget(gone, 0)) return e.free_orphan(gone);
  return {};
}

Result<void> rmdir(Engine& e, std::string_view path) {
  SFS_ASSIGN(const Place at, place(e, path));
  SFS_ASSIGN(const auto gone, e.rmdir(at.parent, at.name));
  if (e.forget(gone, 0)) return e.free_orphan(gone);
  return {};
}

Result<void> rename(Engine& e, std::string_view path, std::string_view other, uint32_t flags = 0) {
  SFS_ASSIGN(const Place from, place(e, path));
  SFS_ASSIGN(const Place to, place(e, other));
  SFS_TRY(e.rename(from.parent, from.name, to.parent, to.name, flags));
  return {};
}

Result<void> write(Engine& e, std::string_view path, uint64_t first, uint64_t count) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  SFS_TRY(write_blocks(e, id, first, count));
  return e.commit_inode(id, 1);
}

Result<void> truncate(Engine& e, std::string_view path, uint64_t blocks, uint64_t then_write = 0) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  SFS_TRY(e.set_size(id, blocks * kBlockSize));
  if (then_write > 0) SFS_TRY(write_blocks(e, id, 0, then_write));
  return e.commit_inode(id, 1);
}

Result<void> punch(Engine& e, std::string_view path, uint64_t first, uint64_t count) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  SFS_TRY(e.remove_range(id, FileBlock{first}, count));
  return e.commit_inode(id, 1);
}

Result<void> hold(Engine& e, std::string_view path, uint64_t first, uint64_t count) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  return preallocate(e, id, first, count);
}

Result<void> unwrite(Engine& e, std::string_view path, uint64_t first, uint64_t count) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  SFS_ASSIGN(SlotRoom room, e.slot_room(3));
  return e.unwrite(id, FileBlock{first}, count, room);
}

Result<void> set_mode(Engine& e, std::string_view path, uint32_t mode) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  AttributeChange change;
  change.mode = mode;
  SFS_TRY(e.set_attributes(id, change));
  return {};
}

Result<void> set_xattr(Engine& e, std::string_view path, const char* name, std::string value) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  return e.set_xattr(id, name, value, 0);
}

// Sets an ACL: with few entries it fits the inode, with many it needs a blob.
Result<void> set_acl(Engine& e, std::string_view path, std::string_view name, uint32_t entries) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  Acl list{7, 5, 4, 6, {}};
  for (uint32_t of = 0; of < entries; ++of) list.named.push_back({of % 2 == 1, 12 + of, 6});
  return e.set_xattr(id, name, format_acl(list), 0);
}

Result<void> remove_xattr(Engine& e, std::string_view path, std::string_view name) {
  SFS_ASSIGN(const InodeId id, node(e, path));
  return e.remove_xattr(id, name);
}

Result<void> unnamed_then_link(Engine& e, std::string_view path) {
  SFS_ASSIGN(const Place at, place(e, path));
  SFS_ASSIGN(const Attributes made,
             e.create_unnamed(at.parent, {S_IFREG | 0600, {}, 0, "", {}, false}));
  SFS_TRY(write_blocks(e, made.id, 0, 1));
  SFS_TRY(e.commit_inode(made.id, 1));
  SFS_TRY(e.link(made.id, at.parent, at.name));
  e.forget(made.id, 2);
  return {};
}

// ---- The list. They start from setup()'s tree:
//   A/foo (3 blocks, user.a)  A/hard = B/hard  B/  bar (1 block, user.b)  E/ (empty)  sym → bar
//   D/ (default ACL)  D/foo (its access ACL)  held (6 unwritten blocks, 3 of them past its end)

using Run = Result<void> (*)(Engine&);
struct Operation {
  const char* name;
  Run run;
};

constexpr uint32_t kFile = S_IFREG | 0644, kDirectory = S_IFDIR | 0755, kSymlink = S_IFLNK | 0777;

Result<void> setup(Engine& e) {
  for (const char* name : {"A", "B", "D", "E"}) SFS_TRY(create(e, name, kDirectory));
  for (const char* name : {"A/foo", "A/hard", "bar"}) SFS_TRY(create(e, name, kFile));
  SFS_TRY(create(e, "sym", kSymlink, "bar"));
  SFS_TRY(link(e, "A/hard", "B/hard"));
  SFS_TRY(write(e, "A/foo", 0, 3));
  SFS_TRY(write(e, "bar", 0, 1));
  SFS_TRY(set_xattr(e, "A/foo", "user.a", "one"));
  SFS_TRY(set_xattr(e, "bar", "user.b", std::string(3000, 'b')));
  SFS_TRY(set_acl(e, "D", kDefaultAclName, 2));
  SFS_TRY(create(e, "D/foo", kFile));
  SFS_TRY(create(e, "held", kFile));
  SFS_TRY(truncate(e, "held", 3));
  SFS_TRY(hold(e, "held", 0, 6));
  e.journal().checkpoint();
  return {};
}

const std::string_view kLongName =
    "a-name-that-is-much-longer-than-one-slot-of-a-directory-and-so-takes-three-of-them-in-a-row-"
    "whatever-it-may-be-good-for";

const std::array kOperations = {
    Operation{"create A/new", [](Engine& e) { return create(e, "A/new", kFile); }},
    Operation{"create new", [](Engine& e) { return create(e, "new", kFile); }},
    Operation{"create long", [](Engine& e) { return create(e, kLongName, kFile); }},
    Operation{"mkdir A/dir", [](Engine& e) { return create(e, "A/dir", kDirectory); }},
    Operation{"mkdir E/dir", [](Engine& e) { return create(e, "E/dir", kDirectory); }},
    Operation{"mknod A/fifo", [](Engine& e) { return create(e, "A/fifo", S_IFIFO | 0600); }},
    Operation{"symlink A/short",
              [](Engine& e) { return create(e, "A/short", kSymlink, "../bar"); }},
    Operation{"symlink long",
              [](Engine& e) { return create(e, "long", kSymlink, std::string(900, 'x')); }},
    Operation{"tmpfile, link A/new", [](Engine& e) { return unnamed_then_link(e, "A/new"); }},
    Operation{"link A/foo B/foo", [](Engine& e) { return link(e, "A/foo", "B/foo"); }},
    Operation{"link bar A/bar", [](Engine& e) { return link(e, "bar", "A/bar"); }},
    Operation{"unlink A/foo, kept open", [](Engine& e) { return unlink(e, "A/foo", false); }},
    Operation{"unlink A/foo", [](Engine& e) { return unlink(e, "A/foo", true); }},
    Operation{"unlink bar", [](Engine& e) { return unlink(e, "bar", true); }},
    Operation{"unlink A/hard", [](Engine& e) { return unlink(e, "A/hard", true); }},
    Operation{"unlink sym", [](Engine& e) { return unlink(e, "sym", true); }},
    Operation{"rmdir E", [](Engine& e) { return rmdir(e, "E"); }},
    Operation{"rename A/foo A/moved", [](Engine& e) { return rename(e, "A/foo", "A/moved"); }},
    Operation{"rename A/foo B/foo", [](Engine& e) { return rename(e, "A/foo", "B/foo"); }},
    Operation{"rename A/foo bar", [](Engine& e) { return rename(e, "A/foo", "bar"); }},
    Operation{"rename bar A/foo", [](Engine& e) { return rename(e, "bar", "A/foo"); }},
    Operation{"rename bar B/hard", [](Engine& e) { return rename(e, "bar", "B/hard"); }},
    Operation{"rename bar long", [](Engine& e) { return rename(e, "bar", kLongName); }},
    Operation{"rename E B/E", [](Engine& e) { return rename(e, "E", "B/E"); }},
    Operation{"rename A E", [](Engine& e) { return rename(e, "A", "E"); }},
    Operation{"rename A B/A", [](Engine& e) { return rename(e, "A", "B/A"); }},
    Operation{"exchange A/foo bar",
              [](Engine& e) { return rename(e, "A/foo", "bar", RENAME_EXCHANGE); }},
    Operation{"exchange A/foo B",
              [](Engine& e) { return rename(e, "A/foo", "B", RENAME_EXCHANGE); }},
    Operation{"rename A/foo A/moved, whiteout",
              [](Engine& e) { return rename(e, "A/foo", "A/moved", RENAME_WHITEOUT); }},
    Operation{"rename bar B/hard, whiteout",
              [](Engine& e) { return rename(e, "bar", "B/hard", RENAME_WHITEOUT); }},
    Operation{"create D/new", [](Engine& e) { return create(e, "D/new", kFile); }},
    Operation{"mkdir D/dir", [](Engine& e) { return create(e, "D/dir", kDirectory); }},
    Operation{"access ACL of A/foo",
              [](Engine& e) { return set_acl(e, "A/foo", kAccessAclName, 2); }},
    Operation{"no access ACL of D/foo",
              [](Engine& e) { return remove_xattr(e, "D/foo", kAccessAclName); }},
    Operation{"chmod D/foo", [](Engine& e) { return set_mode(e, "D/foo", 0640); }},
    Operation{"long default ACL of A",
              [](Engine& e) { return set_acl(e, "A", kDefaultAclName, 30); }},
    Operation{"no default ACL of D",
              [](Engine& e) { return remove_xattr(e, "D", kDefaultAclName); }},
    Operation{"chmod A/foo", [](Engine& e) { return set_mode(e, "A/foo", 0400); }},
    Operation{"chmod A", [](Engine& e) { return set_mode(e, "A", 0700); }},
    Operation{"setxattr A/foo replaced",
              [](Engine& e) { return set_xattr(e, "A/foo", "user.a", "two"); }},
    Operation{"setxattr bar large",
              [](Engine& e) { return set_xattr(e, "bar", "user.c", std::string(5000, 'c')); }},
    Operation{"removexattr bar", [](Engine& e) { return remove_xattr(e, "bar", "user.b"); }},
    Operation{"append A/foo", [](Engine& e) { return write(e, "A/foo", 3, 2); }},
    Operation{"append bar", [](Engine& e) { return write(e, "bar", 1, 1); }},
    Operation{"overwrite A/foo", [](Engine& e) { return write(e, "A/foo", 1, 1); }},
    Operation{"overwrite and extend bar", [](Engine& e) { return write(e, "bar", 0, 3); }},
    Operation{"write A/foo beyond a hole", [](Engine& e) { return write(e, "A/foo", 9, 2); }},
    Operation{"truncate A/foo 1", [](Engine& e) { return truncate(e, "A/foo", 1); }},
    Operation{"truncate A/foo 0, write", [](Engine& e) { return truncate(e, "A/foo", 0, 2); }},
    Operation{"truncate bar longer", [](Engine& e) { return truncate(e, "bar", 6); }},
    Operation{"punch A/foo", [](Engine& e) { return punch(e, "A/foo", 1, 1); }},
    Operation{"preallocate A/foo", [](Engine& e) { return hold(e, "A/foo", 1, 7); }},
    Operation{"unwrite A/foo", [](Engine& e) { return unwrite(e, "A/foo", 1, 1); }},
    Operation{"write into held", [](Engine& e) { return write(e, "held", 1, 1); }},
    Operation{"write over the end of held", [](Engine& e) { return write(e, "held", 2, 3); }},
    Operation{"truncate held 2", [](Engine& e) { return truncate(e, "held", 2); }},
    Operation{"checkpoint",
              [](Engine& e) {
                e.journal().checkpoint();
                return Result<void>();
              }},
};

// ---- Proving

struct Tally {
  uint64_t sequences = 0, in_recovery = 0, wrong = 0;
};

using Sequence = std::vector<size_t>;  // indices of kOperations

class Sequences {
 public:
  explicit Sequences(EngineProver::Kept kept) : kept_(kept) {
    EngineProver prover(kept);
    const Result<void> done = setup(prover.engine());
    if (!done.ok()) throw std::runtime_error("set-up: " + done.error().message());
    start_ = prover.words();
  }

  const std::unordered_set<uint64_t>& seen() const { return seen_; }

  // Nothing is counted if an operation has nothing to work on.
  void prove(const Sequence& sequence, Tally& tally) {
    EngineProver prover(start_, kept_);
    bool runs = true;
    std::vector<EngineProver::Step> steps;
    for (const size_t index : sequence) {
      steps.emplace_back(
          [&runs, index](Engine& e) { runs = runs && kOperations.at(index).run(e).ok(); });
    }
    EngineProver::Options options;
    options.explore.from_mark = sequence.size() - 1;
    options.explore.seen = &seen_;
    options.go_on = [&runs] { return runs; };
    const EngineProver::Outcome outcome = prover.prove(steps, options);
    if (!runs) return;
    ++tally.sequences;
    tally.in_recovery += outcome.in_recovery;
    tally.wrong += outcome.wrong.size();
    for (const std::string& wrong : outcome.wrong) {
      std::string names;
      for (const size_t index : sequence) names += std::string("; ") + kOperations.at(index).name;
      fmt::print("WRONG {}: {}\n", names.substr(2), wrong);
    }
  }

 private:
  const EngineProver::Kept kept_;
  std::vector<uint64_t> start_;
  std::unordered_set<uint64_t> seen_;
};

struct Work {
  size_t length;
  uint64_t draw;  // 0: all sequences of this length
  uint64_t seed;
  size_t jobs;
  EngineProver::Kept kept;
};

using Share = shares::Share<Tally>;

// Proves every jobs-th sequence.
Share prove_share(const Work& work, size_t job) {
  Sequences sequences(work.kept);
  Share share;
  std::mt19937_64 random(work.seed);
  Sequence sequence(work.length);
  uint64_t all = 1;
  for (size_t i = 0; i < work.length; ++i) all *= kOperations.size();
  const uint64_t count = work.draw == 0 ? all : work.draw;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t digits = work.draw == 0 ? i : random();
    for (size_t& index : sequence) {
      index = digits % kOperations.size();
      digits /= kOperations.size();
    }
    if (i % work.jobs == job) sequences.prove(sequence, share.tally);
  }
  share.states.assign(sequences.seen().begin(), sequences.seen().end());
  return share;
}

// The sum of the processes' work, and whether all of them lived.
struct Done {
  Tally tally;
  bool lived = true;
};

Done prove(const Work& work, std::unordered_set<uint64_t>& states) {
  Done done;
  const size_t before = states.size();
  done.lived = shares::run(
      work.jobs, [&](size_t job) { return prove_share(work, job); },
      [&](const Share& share) {
        states.insert(share.states.begin(), share.states.end());
        done.tally.sequences += share.tally.sequences;
        done.tally.in_recovery += share.tally.in_recovery;
        done.tally.wrong += share.tally.wrong;
      });
  fmt::print("length {}{}: {} sequences{}, {} new crash states, {} more in recovery, {} wrong\n",
             work.length, work.kept == EngineProver::Kept::kTwice ? ", META kept twice" : "",
             done.tally.sequences,
             work.draw == 0 ? ", all that can run" : fmt::format(" of {} drawn", work.draw),
             states.size() - before, done.tally.in_recovery, done.tally.wrong);
  return done;
}

int run(size_t length_max, uint64_t draw, uint64_t seed, size_t jobs) {
  using enum EngineProver::Kept;
  std::vector<Work> works;
  for (size_t length = 1; length <= length_max; ++length)
    works.push_back({length, length > 2 ? draw : 0, seed, jobs, kOnce});
  for (size_t length = 1; length <= std::min<size_t>(length_max, 2); ++length)
    works.push_back({length, length > 1 ? div_round_up(draw, 10) : 0, seed, jobs, kTwice});
  std::unordered_set<uint64_t> once, twice;
  uint64_t wrong = 0;
  bool all_lived = true;
  for (const Work& work : works) {
    const Done done = prove(work, work.kept == kOnce ? once : twice);
    wrong += done.tally.wrong;
    all_lived = all_lived && done.lived;
  }
  fmt::print("{} distinct crash states, {} of META kept twice, {} wrong{}\n",
             once.size() + twice.size(), twice.size(), wrong, all_lived ? "" : "; a process died");
  return wrong == 0 && all_lived ? 0 : 1;
}

}  // namespace
}  // namespace streamfs::meta

int main(int argc, char** argv) {
  size_t length = 3, jobs = 2;
  uint64_t draw = 900, seed = 1;
  CLI::App app("Cut the power everywhere in sequences of operations.");
  app.add_option("--length", length, "Up to so many operations.")->check(CLI::Range(1, 5));
  app.add_option("--draw", draw,
                 "Sequences drawn of each length above 2; a tenth as many of 2 of META kept twice.")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "Of what is drawn.");
  app.add_option("--jobs", jobs, "Processes.")->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);
  return streamfs::meta::run(length, draw, seed, jobs);
}
