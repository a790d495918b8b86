#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/types.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

TEST(Attributes, ChangesSurviveACrashAndAbsentFieldsStay) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  const Attributes before = fs.attributes(f);
  fs.clock().advance();
  AttributeChange change;
  change.mode = 0600;
  change.mtime = Timestamp{-5, 999'999'999};
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  fs.crash();
  const Attributes after = fs.attributes(f);
  EXPECT_EQ(after.mode, S_IFREG | 0600U);
  EXPECT_EQ(after.mtime, (Timestamp{-5, 999'999'999}));
  EXPECT_EQ(after.atime, before.atime);
  EXPECT_EQ(after.uid, before.uid);
  EXPECT_EQ(after.ctime, fs.clock().now());
}

TEST(Attributes, TypeBitsCannotBeChanged) {
  Filesystem fs;
  AttributeChange change;
  change.mode = S_IFDIR | 0777;
  const InodeId f = fs.file("f");
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  EXPECT_EQ(fs.attributes(f).mode, S_IFREG | 0777U);
}

TEST(Attributes, AFileGivenAwayLosesItsPrivileges) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  AttributeChange change;
  change.mode = 06755;
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  change = {};
  change.uid = 12;
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  EXPECT_EQ(fs.attributes(f).mode & 07777U, 0755U);
  change = {};
  change.mode = 06745;  // not executable by the group: the bit means mandatory locking
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  change = {};
  change.clear_suid = true;
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  EXPECT_EQ(fs.attributes(f).mode & 07777U, 02745U);
  change.clear_sgid = true;
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  EXPECT_EQ(fs.attributes(f).mode & 07777U, 0745U);
}

TEST(Attributes, AHintIsKeptAndZeroClearsIt) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  AttributeChange change;
  change.vstream = VStreamId{65535};
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  fs.crash();
  EXPECT_EQ(fs.attributes(f).vstream, VStreamId{65535});
  EXPECT_TRUE(fs.attributes(f).vstream_hinted);
  change.vstream = VStreamId{0};
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  EXPECT_FALSE(fs.attributes(f).vstream_hinted);
}

TEST(Attributes, AnUnknownInodeIsStale) {
  Filesystem fs;
  EXPECT_EQ(error_of(fs->attributes(InodeId{0})), ESTALE);
  EXPECT_EQ(error_of(fs->attributes(InodeId{~uint64_t{0}})), ESTALE);
  EXPECT_EQ(error_of(fs->attributes(InodeId{fs.root().value + 1})), ESTALE);
}

TEST(Attributes, SpaceIsCountedAlikeBeforeAndAfterARemount) {
  Filesystem fs;
  for (int i = 0; i < 40; ++i) fs.file("f" + std::to_string(i));
  const Space before = fs->space();
  fs.reopen();
  const Space after = fs->space();
  EXPECT_EQ(before.inodes_free, after.inodes_free);
  EXPECT_EQ(before.free_blocks, after.free_blocks);
  EXPECT_EQ(before.free_units, after.free_units);
  EXPECT_EQ(after.inodes_possible - after.inodes_free, 41U);
}

TEST(Xattrs, AreSetReplacedListedAndRemoved) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  EXPECT_EQ(error_of(fs->get_xattr(f, "user.a")), ENODATA);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.a", "1", XATTR_REPLACE)), ENODATA);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.a", "1", XATTR_CREATE)), 0);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.a", "2", XATTR_CREATE)), EEXIST);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.a", std::string_view("2\0x", 3), 0)), 0);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.empty", "", 0)), 0);
  fs.crash();
  EXPECT_EQ(*fs->get_xattr(f, "user.a"), std::string("2\0x", 3));
  EXPECT_EQ(*fs->get_xattr(f, "user.empty"), "");
  EXPECT_EQ(*fs->list_xattr(f), (std::vector<std::string>{"user.a", "user.empty"}));
  EXPECT_EQ(error_of(fs->remove_xattr(f, "user.a")), 0);
  EXPECT_EQ(error_of(fs->remove_xattr(f, "user.a")), ENODATA);
  EXPECT_EQ(error_of(fs->remove_xattr(f, "user.empty")), 0);
  fs.reopen();
  EXPECT_TRUE(fs->list_xattr(f)->empty());
}

TEST(Xattrs, HoldUpTo64KiBAndNoMore) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  const std::string most(64 * 1024 - 8 - 6, 'v');  // header and name
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.a", std::string(64 * 1024 + 1, 'v'), 0)), E2BIG);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.a", most + "v", 0)), ENOSPC);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.a", most, 0)), 0);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.b", "", 0)), ENOSPC);
  fs.crash();
  EXPECT_EQ(*fs->get_xattr(f, "user.a"), most);
}

TEST(Xattrs, AreNamedInANamespaceThatIsKnown) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  for (const char* known : {"user.a", "trusted.a", "security.a"}) {
    EXPECT_EQ(error_of(fs->set_xattr(f, known, "1", 0)), 0) << known;
  }
  for (const char* unknown : {"a", "system.a", "other.a", "\1"}) {
    EXPECT_EQ(error_of(fs->set_xattr(f, unknown, "1", 0)), EOPNOTSUPP) << unknown;
    EXPECT_EQ(error_of(fs->get_xattr(f, unknown)), EOPNOTSUPP) << unknown;
    EXPECT_EQ(error_of(fs->remove_xattr(f, unknown)), EOPNOTSUPP) << unknown;
  }
  EXPECT_EQ(error_of(fs->set_xattr(f, "user.", "1", 0)), EINVAL);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user." + std::string(251, 'n'), "1", 0)), ERANGE);
  EXPECT_EQ(error_of(fs->set_xattr(f, "user." + std::string(250, 'n'), "1", 0)), 0);
}

TEST(Xattrs, SmallOnesTakeNoUnitAndLiveBesideExtentsAndTargets) {
  Filesystem fs;
  const InodeId f = fs.file("f"), d = fs.directory("d");
  CreateRequest request = node(S_IFLNK | 0777);
  request.symlink_target = "target";
  const InodeId link = fs->create(fs.root(), "link", request)->id;
  const uint64_t before = fs->space().free_units;
  fs.write(f, 0, 1), fs.write(f, 8, 1);
  fs.commit(f);
  const std::string most(64 - 8 - 6, 'v');  // beside two extents
  ASSERT_EQ(error_of(fs->set_xattr(f, "user.a", most, 0)), 0);
  ASSERT_EQ(error_of(fs->set_xattr(d, "user.a", most + most, 0)), 0);
  EXPECT_EQ(fs->space().free_units, before);
  ASSERT_EQ(error_of(fs->set_xattr(link, "trusted.a", "1", 0)), 0);
  fs.crash();
  EXPECT_EQ(*fs->get_xattr(f, "user.a"), most);
  EXPECT_EQ(*fs->get_xattr(d, "user.a"), most + most);
  EXPECT_EQ(*fs->get_xattr(link, "trusted.a"), "1");
  EXPECT_EQ(*fs->read_symlink(link), "target");
  EXPECT_EQ(fs->map(f, FileBlock{0}, 9)->size(), 3U);
  ASSERT_EQ(error_of(fs->set_xattr(f, "user.b", "too much", 0)), 0);
  EXPECT_EQ(fs->space().free_units, before - 2);  // the symlink's and this
  ASSERT_EQ(error_of(fs->remove_xattr(f, "user.b")), 0);
  EXPECT_EQ(fs->space().free_units, before - 1);
  fs.reopen();
  EXPECT_EQ(*fs->get_xattr(f, "user.a"), most);
}

TEST(Xattrs, ACapabilityGoesWhenTheFileIsWrittenOrGivenAway) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  for (const bool given : {false, true}) {
    ASSERT_EQ(error_of(fs->set_xattr(f, "security.capability", "caps", 0)), 0);
    ASSERT_EQ(error_of(fs->set_xattr(f, "user.a", "1", 0)), 0);
    AttributeChange change;
    change.uid = 12;
    ASSERT_TRUE(given ? fs->set_attributes(f, change).ok() : fs->drop_capability(f).ok());
    fs.crash();
    EXPECT_EQ(error_of(fs->get_xattr(f, "security.capability")), ENODATA);
    EXPECT_EQ(*fs->get_xattr(f, "user.a"), "1");
  }
  const uint64_t commits = fs->journal().stats().commits;
  ASSERT_TRUE(fs->drop_capability(f).ok());
  EXPECT_EQ(fs->journal().stats().commits, commits) << "nothing to drop, nothing written";
}

TEST(Xattrs, TheirUnitsComeBackWhenReplacedAndWhenTheFileGoes) {
  Filesystem fs;
  const uint64_t before = fs->space().free_units;
  const InodeId f = fs.file("f");
  const uint64_t with_file = fs->space().free_units;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(error_of(fs->set_xattr(f, "user.a", std::string(9000, 'a'), 0)), 0) << i;
  }
  EXPECT_EQ(fs->space().free_units, with_file - 3);
  EXPECT_EQ(fs.unlink("f"), 0);
  fs.forget_and_free(f);
  EXPECT_EQ(fs->space().free_units, with_file);
  EXPECT_LT(with_file, before);     // the inode's and the directory's unit stay
  fs.file("f", fs.directory("d"));  // in units that held attributes: they read as zeroes
  EXPECT_EQ(fs.names(fs->lookup(fs.root(), "d")->id).size(), 1U);
}

TEST(Attributes, TimesOutsideOfWhatAnInodeHoldsAreItsFirstAndItsLast) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  AttributeChange change;
  change.atime = Timestamp{-(int64_t{1} << 40), 5};
  change.mtime = Timestamp{int64_t{1} << 40, 5};
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  fs.crash();
  EXPECT_EQ(fs.attributes(f).atime.seconds, -(int64_t{1} << 31));
  EXPECT_EQ(fs.attributes(f).mtime.seconds, (int64_t{1} << 34) - 1 - (int64_t{1} << 31));
}

TEST(VStreams, TheTableIsKeptAcrossACrash) {
  Filesystem fs;
  ASSERT_GE(fs->vstream_capacity(), 1024U);
  VStreamSlot slot{};
  slot.head = 5;
  slot.written_bytes = 99;
  std::ranges::copy(std::string_view("logs"), slot.name);
  const uint32_t last = fs->vstream_capacity() - 1;
  ASSERT_TRUE(fs->store_vstream(last, slot).ok());
  EXPECT_EQ(error_of(fs->store_vstream(last + 1, slot)), EINVAL);
  fs.crash();
  const auto table = fs->load_vstreams();
  EXPECT_EQ(table.size(), fs->vstream_capacity());
  EXPECT_EQ(table[last].written_bytes, 99U);
  EXPECT_STREQ(table[last].name, "logs");
  EXPECT_EQ(table[0].head, 0U);
}

}  // namespace
}  // namespace streamfs::meta
