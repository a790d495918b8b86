// Many threads on one small tree: nothing deadlocks, nothing is lost, and check() finds nothing.
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

constexpr int kThreads = 4;

class Worker {
 public:
  Worker(Filesystem& fs, std::vector<InodeId> directories, uint64_t seed)
      : fs_(fs), directories_(std::move(directories)), random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) step();
  }

 private:
  uint64_t below(uint64_t end) { return random_() % end; }
  InodeId directory() { return directories_[below(directories_.size())]; }
  std::string name() { return "n" + std::to_string(below(8)); }

  void step() {
    switch (below(8)) {
      case 0:
        return make(S_IFREG | 0644);
      case 1:
        return make(S_IFDIR | 0755);
      case 2:
        return drop(fs_->unlink(directory(), name()));
      case 3:
        return drop(fs_->rmdir(directory(), name()));
      case 4:
        return move();
      case 5:
        return touch();
      case 6:
        return write();
      default:
        return list();
    }
  }
  void drop(const Result<InodeId>& gone) {
    if (gone) drop(*gone, 0);
  }
  void drop(InodeId id, uint64_t references) {
    if (!fs_->forget(id, references)) return;
    const auto freed = fs_->free_orphan(id);
    EXPECT_TRUE(freed.ok()) << freed.error().message();
  }
  void make(uint32_t mode) {
    const auto made = fs_->create(directory(), name(), node(mode));
    if (made) drop(made->id, 1);
  }
  void move() {
    const uint32_t flags = below(3) == 0 ? 2 : 0;
    const auto moved = fs_->rename(directory(), name(), directory(), name(), flags);
    if (moved && moved->replaced) drop(*moved->replaced, 0);
  }
  void touch() {
    const auto found = fs_->lookup(directory(), name());
    if (!found) return;
    AttributeChange change;
    change.mode = static_cast<uint32_t>(below(0777));
    EXPECT_TRUE(fs_->set_attributes(found->id, change).ok());
    const bool linked = fs_->link(found->id, directory(), name()).ok();
    drop(found->id, linked ? 2 : 1);
  }
  void write() {
    const auto found = fs_->lookup(directory(), name());
    if (!found) return;
    if (S_ISREG(found->mode)) {
      const auto run = fs_->blocks().reserve(1 + below(8), PStreamId{1}, std::nullopt);
      if (run) finish(found->id, *run);
    }
    drop(found->id, 1);
  }
  void finish(InodeId id, BlockRun run) {
    WriteResult result;
    result.added.push_back({FileBlock{below(64)}, run.first, run.count, kDefaultVStream});
    result.end_offset = (result.added[0].first.value + run.count) * kBlockSize;
    result.epoch = 1;
    for (uint64_t i = 0; i < run.count; ++i) {
      result.checksums.push_back({BlockNo{run.first.value + i}, 1});
    }
    EXPECT_TRUE(fs_->finish_write(id, result).ok());
    if (below(2) == 0) {
      EXPECT_TRUE(fs_->set_size(id, below(64) * kBlockSize).ok());
    }
    EXPECT_TRUE(fs_->commit_inode(id, 1).ok());
  }
  void list() {
    EXPECT_TRUE(
        fs_->read_directory(directory(), 0, [](const DirectoryEntry&) { return true; }).ok());
  }

  Filesystem& fs_;
  std::vector<InodeId> directories_;
  std::mt19937_64 random_;
};

TEST(Threads, OnOneTreeLoseNothing) {
  Filesystem fs({.meta_bytes = 32 << 20});
  fs->journal().start_checkpointer();
  std::vector<InodeId> directories{fs.root()};
  for (int i = 0; i < 4; ++i) directories.push_back(fs.directory("d" + std::to_string(i)));
  // Kept by the tests' own references; a rename may move them, but nobody else frees them.
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= kThreads; ++seed) {
    threads.emplace_back([&fs, directories, seed] { Worker(fs, directories, seed).run(5000); });
  }
  for (std::thread& thread : threads) thread.join();
  fs.reopen();
  EXPECT_TRUE(fs->leftover_orphans().empty());
}

// The file is the older one, so its lock comes before the directory's, and a name is found with the
// directory's held.
TEST(Threads, RemovingNamesOfAFileThatOthersLinkDoNotDeadlock) {
  Filesystem fs({.meta_bytes = 32 << 20});
  const InodeId file = fs.file("file");
  const InodeId directory = fs.directory("directory");
  ASSERT_LT(file, directory);
  const auto repeat = [](const auto& operation) {
    return std::thread([&operation] {
      for (int i = 0; i < 20000; ++i) operation(i % 2 == 0 ? "n0" : "n1");
    });
  };
  const auto link = [&](const char* name) { (void)fs->link(file, directory, name); };
  const auto unlink = [&](const char* name) { (void)fs->unlink(directory, name); };
  const auto rename = [&](const char* name) {
    (void)fs->rename(directory, name, directory, "n2", 0);
    (void)fs->rename(directory, "n2", directory, name, 0);
  };
  std::vector<std::thread> threads;
  threads.push_back(repeat(link));
  threads.push_back(repeat(unlink));
  threads.push_back(repeat(rename));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fs->attributes(file)->nlink, 1 + fs.names(directory).size());
  fs.reopen();
}

TEST(Threads, CreatingInDirectoriesOfTheirOwnDoNotMeet) {
  Filesystem fs({.meta_bytes = 32 << 20});
  fs->journal().start_checkpointer();
  std::vector<InodeId> directories;
  for (int i = 0; i < kThreads; ++i) directories.push_back(fs.directory("d" + std::to_string(i)));
  std::vector<std::thread> threads;
  for (const InodeId directory : directories) {
    threads.emplace_back([&fs, directory] {
      for (int i = 0; i < 2000; ++i) fs.file("f" + std::to_string(i), directory);
      for (int i = 0; i < 2000; i += 2) EXPECT_EQ(fs.unlink("f" + std::to_string(i), directory), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  fs.crash();
  EXPECT_EQ(fs->leftover_orphans().size(), kThreads * 1000U);
  for (const InodeId directory : directories) EXPECT_EQ(fs.names(directory).size(), 1000U);
}

}  // namespace
}  // namespace streamfs::meta
