// The metadata engine's promise, broken at every point of every operation: after any cut the file
// tree is exactly what it was before the operation or after it, whatever returned is there, and no
// invariant is hurt.
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/engine.h"
#include "tests/crash/engine_prover.h"

namespace streamfs::meta {
namespace {

class EngineCrash : public testing::Test {
 protected:
  using Step = EngineProver::Step;

  void SetUp() override {
    Engine& e = *engine_;
    dir_ = make(e, e.root(), "dir", S_IFDIR | 0755);
    empty_ = make(e, e.root(), "empty", S_IFDIR | 0755);
    file_ = make(e, dir_, "file", S_IFREG | 0644);
    other_ = make(e, e.root(), "other", S_IFREG | 0600);
    write(e, file_, 0, 3);
    e.journal().checkpoint();
  }

  static InodeId make(Engine& e, InodeId parent, std::string_view name, uint32_t mode) {
    const auto made = e.create(parent, name, CreateRequest{mode, {}, 0, "", {}, false});
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? made->id : InodeId{};
  }

  // Finishes and commits a write of `count` blocks at `first`, new or over what is there.
  static void write(Engine& e, InodeId id, uint64_t first, uint64_t count, bool commit = true) {
    ASSERT_TRUE(write_blocks(e, id, first, count).ok());
    if (commit) {
      ASSERT_TRUE(e.commit_inode(id, 1).ok());
    }
  }

  void expect_whole_or_nothing(const std::vector<Step>& steps) {
    const EngineProver::Outcome outcome = prover_.prove(steps);
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
    EXPECT_GT(outcome.images, steps.size());
    RecordProperty("images", static_cast<int>(outcome.images));
    std::printf("%s: %llu crash images\n",
                testing::UnitTest::GetInstance()->current_test_info()->name(),
                static_cast<unsigned long long>(outcome.images));
  }

  Step creating(std::string name, uint32_t mode, std::string target = "") {
    return [this, name, mode, target](Engine& e) {
      ASSERT_TRUE(e.create(dir_, name, CreateRequest{mode, {}, 0, target, {}, false}).ok());
    };
  }
  Step renaming(InodeId from, std::string name, InodeId to, std::string new_name,
                uint32_t flags = 0) {
    return [=](Engine& e) {
      const auto done = e.rename(from, name, to, new_name, flags);
      ASSERT_TRUE(done.ok()) << done.error().message();
    };
  }
  Step chmod_of(InodeId id, uint32_t mode) {
    return [=](Engine& e) {
      AttributeChange change;
      change.mode = mode;
      ASSERT_TRUE(e.set_attributes(id, change).ok());
    };
  }
  Step writing(InodeId id, uint64_t first, uint64_t count) {
    return [=](Engine& e) { write(e, id, first, count); };
  }
  Step preallocating(InodeId id, uint64_t first, uint64_t count) {
    return [=](Engine& e) { ASSERT_TRUE(preallocate(e, id, first, count).ok()); };
  }
  Step unwriting(InodeId id, uint64_t first, uint64_t count) {
    return [=](Engine& e) {
      auto room = e.slot_room(3);
      ASSERT_TRUE(room.ok() && e.unwrite(id, FileBlock{first}, count, *room).ok());
    };
  }
  Step checkpointing() {
    return [](Engine& e) { e.journal().checkpoint(); };
  }
  Step xattr(InodeId id, std::string name, std::string value) {
    return [=](Engine& e) { ASSERT_TRUE(e.set_xattr(id, name, value, 0).ok()); };
  }

  EngineProver prover_;
  Engine* engine_ = &prover_.engine();
  InodeId dir_, empty_, file_, other_;
};

TEST_F(EngineCrash, Create) {
  expect_whole_or_nothing({creating("new", S_IFREG | 0644)});
}
TEST_F(EngineCrash, CreateWithALongName) {
  expect_whole_or_nothing({creating(std::string(200, 'n'), S_IFREG | 0644)});
}
TEST_F(EngineCrash, PreallocateAndWriteIntoIt) {
  expect_whole_or_nothing({preallocating(file_, 2, 8), writing(file_, 4, 2), writing(file_, 6, 1),
                           preallocating(other_, 0, 5), writing(other_, 4, 1)});
}
TEST_F(EngineCrash, WrittenBlocksBecomeUnwritten) {
  expect_whole_or_nothing({unwriting(file_, 1, 1), writing(file_, 1, 1), unwriting(file_, 0, 3)});
}
TEST_F(EngineCrash, Mkdir) {
  expect_whole_or_nothing({creating("sub", S_IFDIR | 0755)});
}
TEST_F(EngineCrash, Mknod) {
  expect_whole_or_nothing({creating("fifo", S_IFIFO | 0644)});
}
TEST_F(EngineCrash, Symlink) {
  expect_whole_or_nothing({creating("link", S_IFLNK | 0777, "../target")});
}
TEST_F(EngineCrash, SymlinkWithALongTarget) {
  expect_whole_or_nothing({creating("link", S_IFLNK | 0777, std::string(1000, 't'))});
}
TEST_F(EngineCrash, Link) {
  expect_whole_or_nothing(
      {[this](Engine& e) { ASSERT_TRUE(e.link(file_, e.root(), "second").ok()); }});
}
TEST_F(EngineCrash, Unlink) {
  expect_whole_or_nothing({[this](Engine& e) { ASSERT_TRUE(e.unlink(dir_, "file").ok()); }});
}
TEST_F(EngineCrash, UnlinkThenFree) {
  expect_whole_or_nothing({[this](Engine& e) { ASSERT_TRUE(e.unlink(dir_, "file").ok()); },
                           [this](Engine& e) {
                             ASSERT_TRUE(e.forget(file_, 1));
                             ASSERT_TRUE(e.free_orphan(file_).ok());
                           },
                           checkpointing(), creating("again", S_IFREG | 0644)});
}
TEST_F(EngineCrash, Rmdir) {
  expect_whole_or_nothing({[](Engine& e) { ASSERT_TRUE(e.rmdir(e.root(), "empty").ok()); }});
}
TEST_F(EngineCrash, Rename) {
  expect_whole_or_nothing({renaming(dir_, "file", dir_, "moved")});
}
TEST_F(EngineCrash, RenameIntoAnotherDirectory) {
  expect_whole_or_nothing({renaming(dir_, "file", empty_, "moved")});
}
TEST_F(EngineCrash, RenameOverAFileAlwaysLeavesTheName) {
  expect_whole_or_nothing({renaming(dir_, "file", engine_->root(), "other")});
}
TEST_F(EngineCrash, RenameOfADirectory) {
  expect_whole_or_nothing({renaming(engine_->root(), "dir", empty_, "sub")});
}
TEST_F(EngineCrash, RenameOverAnEmptyDirectory) {
  expect_whole_or_nothing({renaming(engine_->root(), "dir", engine_->root(), "empty")});
}
TEST_F(EngineCrash, RenameNoReplace) {
  expect_whole_or_nothing({renaming(dir_, "file", empty_, "moved", RENAME_NOREPLACE)});
}
TEST_F(EngineCrash, RenameExchange) {
  expect_whole_or_nothing({renaming(dir_, "file", engine_->root(), "other", RENAME_EXCHANGE)});
}
TEST_F(EngineCrash, RenameWhiteout) {
  expect_whole_or_nothing({renaming(dir_, "file", engine_->root(), "other", RENAME_WHITEOUT)});
}
TEST_F(EngineCrash, SetAttributes) {
  expect_whole_or_nothing({chmod_of(file_, 0400)});
}
TEST_F(EngineCrash, SetXattrReplaceAndRemove) {
  expect_whole_or_nothing({xattr(file_, "user.a", "one"), xattr(file_, "user.a", "two"),
                           xattr(file_, "user.b", std::string(5000, 'x')), [this](Engine& e) {
                             ASSERT_TRUE(e.remove_xattr(file_, "user.a").ok());
                           }});
}
TEST_F(EngineCrash, SetACLsThenChmodThenCreateUnderOne) {
  const Acl list{7, 5, 4, 7, {{false, 12, 6}, {true, 13, 4}}};
  InodeId made;
  expect_whole_or_nothing(
      {xattr(file_, std::string(kAccessAclName), format_acl(list)), chmod_of(file_, 0640),
       xattr(dir_, std::string(kDefaultAclName), format_acl(list)),
       [&](Engine& e) { made = make(e, dir_, "new", S_IFREG | 0666); },
       [&](Engine& e) { ASSERT_TRUE(e.set_xattr(made, "user.a", "1", 0).ok()); },
       [this](Engine& e) { make(e, dir_, "sub", S_IFDIR | 0777); }});
}
TEST_F(EngineCrash, CreateUnderALongACL) {
  Acl list{7, 5, 4, 7, {}};
  for (uint32_t id = 0; id < 40; ++id) list.named.push_back({true, id, 4});
  expect_whole_or_nothing({xattr(dir_, std::string(kDefaultAclName), format_acl(list)),
                           [this](Engine& e) { make(e, dir_, "new", S_IFREG | 0666); }});
}
TEST_F(EngineCrash, WriteNewBlocks) {
  expect_whole_or_nothing({writing(other_, 0, 4)});
}
TEST_F(EngineCrash, WriteManyExtents) {
  expect_whole_or_nothing({writing(other_, 0, 1), writing(other_, 4, 1), writing(other_, 8, 1),
                           writing(other_, 12, 1)});
}
TEST_F(EngineCrash, OverwriteInPlace) {
  expect_whole_or_nothing({writing(file_, 1, 1)});
}
TEST_F(EngineCrash, Truncate) {
  expect_whole_or_nothing({[this](Engine& e) {
    ASSERT_TRUE(e.set_size(file_, kBlockSize).ok());
    ASSERT_TRUE(e.commit_inode(file_, 1).ok());
  }});
}
TEST_F(EngineCrash, TruncateThenWriteIsNeverEmpty) {
  expect_whole_or_nothing({[this](Engine& e) {
    ASSERT_TRUE(e.set_size(file_, 0).ok());
    write(e, file_, 0, 2, false);
    ASSERT_TRUE(e.commit_inode(file_, 1).ok());
  }});
}
TEST_F(EngineCrash, PunchAHole) {
  expect_whole_or_nothing({[this](Engine& e) {
    ASSERT_TRUE(e.remove_range(file_, FileBlock{1}, 1).ok());
    ASSERT_TRUE(e.commit_inode(file_, 1).ok());
  }});
}

// The checkpointer never runs here: everything is told by the rings alone.
TEST_F(EngineCrash, CreateThenSetAttributesLosesNothing) {
  InodeId id;
  expect_whole_or_nothing({[&](Engine& e) { id = make(e, dir_, "new", S_IFREG | 0644); },
                           [&](Engine& e) { chmod_of(id, 0400)(e); },
                           [&](Engine& e) { chmod_of(id, 0440)(e); }});
}
TEST_F(EngineCrash, CreateThenAppendLosesNothing) {
  InodeId id;
  expect_whole_or_nothing({[&](Engine& e) { id = make(e, dir_, "new", S_IFREG | 0644); },
                           [&](Engine& e) { write(e, id, 0, 1); },
                           [&](Engine& e) { write(e, id, 1, 2); }});
}
TEST_F(EngineCrash, MkdirThenCreateLosesNothing) {
  InodeId id;
  expect_whole_or_nothing({[&](Engine& e) { id = make(e, dir_, "sub", S_IFDIR | 0755); },
                           [&](Engine& e) { make(e, id, "one", S_IFREG | 0644); },
                           [&](Engine& e) { make(e, id, "two", S_IFDIR | 0755); }});
}

}  // namespace
}  // namespace streamfs::meta
