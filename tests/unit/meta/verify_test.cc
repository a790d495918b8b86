// verify() finds what has rotted in META, object by object, and nothing where all is well.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/layout.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

class Verify : public ::testing::Test {
 protected:
  std::span<std::byte> meta() {
    return {const_cast<std::byte*>(fs_.region().at(0)), fs_.region().size()};
  }
  // Changes a byte of this text wherever it lies in META; old journal records hold it, too.
  void rot(std::string_view text) {
    const std::string_view all(reinterpret_cast<const char*>(meta().data()), meta().size());
    int found = 0;
    for (size_t at = all.find(text); at != std::string_view::npos; at = all.find(text, at)) {
      meta()[at] ^= std::byte{4};
      ++found;
    }
    ASSERT_GT(found, 0) << text;
  }
  int verify(InodeId id) {
    const Result<void> done = fs_->verify(id);
    return done.ok() ? 0 : done.error().code;
  }
  std::vector<InodeId> all() {
    std::vector<InodeId> ids;
    for (InodeId at{0};;) {
      const auto some = fs_->inodes_after(at, 3);
      if (some.empty()) return ids;
      ids.insert(ids.end(), some.begin(), some.end());
      at = some.back();
    }
  }

  Filesystem fs_;
};

TEST_F(Verify, EveryInodeIsVisitedOnceAndSound) {
  std::vector<InodeId> made{fs_.root()};
  for (int i = 0; i < 50; ++i) made.push_back(fs_.file("f" + std::to_string(i)));
  const InodeId gone = fs_.file("gone");
  EXPECT_EQ(fs_.unlink("gone"), 0);
  fs_.forget_and_free(gone);
  std::ranges::sort(made);
  EXPECT_EQ(all(), made);
  for (const InodeId id : made) EXPECT_EQ(verify(id), 0);
  EXPECT_EQ(verify(gone), ESTALE);
}

TEST_F(Verify, ARottenNameIsItsDirectorysDamage) {
  const InodeId directory = fs_.directory("d");
  fs_.file("unmistakable", directory);
  fs_->journal().checkpoint();
  EXPECT_EQ(verify(directory), 0);
  fs_.reopen();
  rot("unmistakable");
  EXPECT_EQ(verify(directory), EIO);
  EXPECT_EQ(verify(fs_.root()), 0);
  fs_.abandon();
}

TEST_F(Verify, ARottenInodeAttributeTargetOrExtentIsFound) {
  const InodeId attribute = fs_.file("attribute");
  ASSERT_TRUE(fs_->set_xattr(attribute, "user.large", std::string(3000, 'q'), 0).ok());
  CreateRequest request = node(S_IFLNK | 0777);
  const std::string target = "elsewhere/" + std::string(1000, 'z');
  request.symlink_target = target;
  const InodeId symlink = fs_->create(fs_.root(), "symlink", request)->id;
  const InodeId extents = fs_.file("extents");
  for (uint64_t i = 0; i < 40; ++i) fs_.write(extents, 2 * i, 1);
  fs_.commit(extents);
  const InodeId plain = fs_.file("plain");
  fs_.reopen();
  for (const InodeId id : {attribute, symlink, extents, plain}) EXPECT_EQ(verify(id), 0);
  rot("qqqqqqqq");
  EXPECT_EQ(verify(attribute), EIO);
  rot("elsewhere/zz");
  EXPECT_EQ(verify(symlink), EIO);
  meta()[load_image(fs_.region(), extents).chain + sizeof(UnitHeader) + kWordSize] ^= std::byte{1};
  EXPECT_EQ(verify(extents), EIO);
  meta()[plain.value * kCellSize + 20] ^= std::byte{1};
  EXPECT_EQ(verify(plain), EIO);
  fs_.abandon();
}

}  // namespace
}  // namespace streamfs::meta
