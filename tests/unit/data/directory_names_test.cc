#include "fuse-fs/data/directory_names.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/types.h"

namespace streamfs::data {
namespace {

TEST(DirectoryNames, AListingIsLearnedAsItsEntriesWouldBeOneByOne) {
  DirectoryNames names;
  names.learn(InodeId{1}, "old");
  const std::vector<DirectoryNames::Named> listed = {
      {InodeId{1}, "new"}, {InodeId{2}, "."}, {InodeId{3}, "other"}, {InodeId{4}, ".."}};
  names.learn(listed);
  EXPECT_EQ(names.name(InodeId{1}), "new");
  EXPECT_EQ(names.name(InodeId{2}), "");
  EXPECT_EQ(names.name(InodeId{3}), "other");
  EXPECT_EQ(names.name(InodeId{4}), "");
}

}  // namespace
}  // namespace streamfs::data
