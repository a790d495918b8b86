#include "fuse-fs/meta/blob/acl.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "pmem/region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

struct Entry {
  int tag;
  uint16_t permissions;
  uint32_t id = static_cast<uint32_t>(ACL_UNDEFINED_ID);
};

// An ACL as the kernel hands it over.
std::string acl(std::initializer_list<Entry> entries) {
  const posix_acl_xattr_header header{POSIX_ACL_XATTR_VERSION};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  for (const Entry& each : entries) {
    const posix_acl_xattr_entry entry{static_cast<uint16_t>(each.tag), each.permissions, each.id};
    bytes.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  return bytes;
}

std::string acl_of(uint16_t owner, uint16_t user_12, uint16_t group, uint16_t mask,
                   uint16_t other) {
  return acl({{ACL_USER_OBJ, owner},
              {ACL_USER, user_12, 12},
              {ACL_GROUP_OBJ, group},
              {ACL_MASK, mask},
              {ACL_OTHER, other}});
}

uint32_t mode_of(Filesystem& fs, InodeId id) {
  return fs.attributes(id).mode & 07777U;
}

CreateRequest with_umask(uint32_t mode, uint32_t umask) {
  CreateRequest request = node(mode);
  request.caller.umask = umask;
  return request;
}

TEST(AclBytes, WhatIsNoAclIsRefused) {
  EXPECT_EQ(error_of(parse_acl("")), EINVAL);
  EXPECT_EQ(error_of(parse_acl(acl({}))), EINVAL);
  EXPECT_EQ(error_of(parse_acl(std::string("\1\0\0\0", 4))), EOPNOTSUPP);
  EXPECT_EQ(error_of(parse_acl(acl_of(7, 7, 7, 7, 7) + "x")), EINVAL);
  EXPECT_EQ(error_of(parse_acl(acl_of(8, 7, 7, 7, 7))), EINVAL);
  const Entry owner{ACL_USER_OBJ, 7}, group{ACL_GROUP_OBJ, 5}, other{ACL_OTHER, 0};
  EXPECT_EQ(error_of(parse_acl(acl({owner, group, other}))), 0);
  EXPECT_EQ(error_of(parse_acl(acl({owner, group}))), EINVAL);
  EXPECT_EQ(error_of(parse_acl(acl({group, owner, other}))), EINVAL);
  EXPECT_EQ(error_of(parse_acl(acl({owner, owner, group, other}))), EINVAL);
  EXPECT_EQ(error_of(parse_acl(acl({owner, {ACL_USER, 7, 12}, group, other}))), EINVAL) << "mask";
  EXPECT_EQ(error_of(parse_acl(acl({owner, {3, 7}, group, other}))), EINVAL);
}

TEST(AclBytes, DamagedOnesAreFound) {
  const std::string good = encode_default_acl(*parse_acl(acl_of(7, 6, 5, 4, 3)));
  EXPECT_EQ(format_acl(*decode_acl(good)), acl_of(7, 6, 5, 4, 3));
  EXPECT_EQ(error_of(decode_acl("")), EIO);
  EXPECT_EQ(error_of(decode_acl(good + "x")), EIO);
  EXPECT_EQ(error_of(decode_acl(good.substr(0, good.size() - 1))), EIO);
  EXPECT_EQ(error_of(decode_acl("\xff\xff")), EIO);
  EXPECT_EQ(error_of(decode_acl(good.substr(0, 2) + "\xff" + good.substr(3))), EIO);
}

TEST(Acls, SetTheModeAndReadBackAfterACrash) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  const std::string list = acl_of(6, 7, 4, 5, 1);
  ASSERT_EQ(error_of(fs->set_xattr(f, kAccessAclName, list, 0)), 0);
  fs.crash();
  EXPECT_EQ(mode_of(fs, f), 0651U) << "the group's bits are the mask";
  EXPECT_EQ(fs->get_xattr(f, kAccessAclName).value(), list);
  EXPECT_EQ(fs->list_xattr(f).value(), std::vector{std::string(kAccessAclName)});
  EXPECT_EQ(error_of(fs->get_xattr(f, kDefaultAclName)), ENODATA);
  fs.reopen();
  EXPECT_EQ(fs->get_xattr(f, kAccessAclName).value(), list);
}

TEST(Acls, AChmodChangesTheMask) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  ASSERT_EQ(error_of(fs->set_xattr(f, kAccessAclName, acl_of(6, 7, 4, 5, 1), 0)), 0);
  AttributeChange change;
  change.mode = 0720;
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  EXPECT_EQ(fs->get_xattr(f, kAccessAclName).value(), acl_of(7, 7, 4, 2, 0));
}

TEST(Acls, OneThatAModeCanSayIsNotKept) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  ASSERT_EQ(error_of(fs->set_xattr(f, kAccessAclName, acl_of(6, 7, 4, 5, 1), 0)), 0);
  const std::string plain = acl({{ACL_USER_OBJ, 7}, {ACL_GROUP_OBJ, 1}, {ACL_OTHER, 2}});
  ASSERT_EQ(error_of(fs->set_xattr(f, kAccessAclName, plain, 0)), 0);
  EXPECT_EQ(mode_of(fs, f), 0712U);
  EXPECT_EQ(error_of(fs->get_xattr(f, kAccessAclName)), ENODATA);
  EXPECT_EQ(error_of(fs->remove_xattr(f, kAccessAclName)), 0) << "none is as good as removed";
}

TEST(Acls, BelongWhereTheyMeanSomething) {
  Filesystem fs;
  const std::string list = acl_of(7, 7, 7, 7, 7);
  EXPECT_EQ(error_of(fs->set_xattr(fs.file("f"), kDefaultAclName, list, 0)), EACCES);
  CreateRequest request = node(S_IFLNK | 0777);
  request.symlink_target = "target";
  const InodeId link = fs->create(fs.root(), "link", request)->id;
  EXPECT_EQ(error_of(fs->set_xattr(link, kAccessAclName, list, 0)), EOPNOTSUPP);
  EXPECT_EQ(error_of(fs->set_xattr(fs.root(), kAccessAclName, "nonsense", 0)), EINVAL);
}

TEST(Acls, WhoeverIsNotInTheGroupLosesSetgid) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  AttributeChange change;
  change.mode = 02755;
  ASSERT_TRUE(fs->set_attributes(f, change).ok());
  const std::string list = acl_of(7, 7, 5, 5, 5);
  ASSERT_EQ(error_of(fs->set_xattr(f, kAccessAclName, list, 0)), 0);
  EXPECT_EQ(mode_of(fs, f), 02755U);
  ASSERT_EQ(error_of(fs->set_xattr(f, kAccessAclName, list, kXattrKillSgid)), 0);
  EXPECT_EQ(mode_of(fs, f), 0755U);
}

TEST(DefaultAcls, TakeTheUmasksPlace) {
  Filesystem fs;
  const InodeId plain = fs.directory("plain"), shared = fs.directory("shared");
  ASSERT_EQ(error_of(fs->set_xattr(shared, kDefaultAclName, acl_of(7, 6, 5, 7, 4), 0)), 0);
  EXPECT_EQ(fs->create(plain, "f", with_umask(S_IFREG | 0666, 022))->mode & 0777U, 0644U);
  EXPECT_EQ(fs->create_unnamed(plain, with_umask(S_IFREG | 0666, 022))->mode & 0777U, 0644U);
  const auto file = fs->create(shared, "f", with_umask(S_IFREG | 0666, 077));
  const auto unnamed = fs->create_unnamed(shared, with_umask(S_IFREG | 0620, 077));
  fs.crash();
  EXPECT_EQ(mode_of(fs, file->id), 0664U);
  EXPECT_EQ(fs->get_xattr(file->id, kAccessAclName).value(), acl_of(6, 6, 5, 6, 4));
  EXPECT_EQ(error_of(fs->get_xattr(file->id, kDefaultAclName)), ENODATA);
  EXPECT_EQ(fs->get_xattr(unnamed->id, kAccessAclName).value(), acl_of(6, 6, 5, 2, 0));
}

TEST(DefaultAcls, GoDownIntoDirectoriesButNotIntoSymlinks) {
  Filesystem fs;
  const InodeId shared = fs.directory("shared");
  const std::string list = acl_of(7, 6, 5, 7, 4);
  ASSERT_EQ(error_of(fs->set_xattr(shared, kDefaultAclName, list, 0)), 0);
  const InodeId sub = fs->create(shared, "sub", with_umask(S_IFDIR | 0777, 022))->id;
  CreateRequest request = with_umask(S_IFLNK | 0777, 022);
  request.symlink_target = "target";
  const InodeId link = fs->create(shared, "link", request)->id;
  const InodeId fifo = fs->create(sub, "fifo", with_umask(S_IFIFO | 0640, 022))->id;
  fs.reopen();
  EXPECT_EQ(fs->get_xattr(sub, kDefaultAclName).value(), list);
  EXPECT_EQ(fs->get_xattr(sub, kAccessAclName).value(), list);
  EXPECT_EQ(mode_of(fs, link), 0777U);
  EXPECT_TRUE(fs->list_xattr(link)->empty());
  EXPECT_EQ(fs->get_xattr(fifo, kAccessAclName).value(), acl_of(6, 6, 5, 4, 0));
}

TEST(DefaultAcls, OfManyEntriesAreInheritedToo) {
  Filesystem fs;
  const InodeId shared = fs.directory("shared");
  Acl many = *parse_acl(acl_of(7, 6, 5, 7, 4));
  for (uint32_t id = 100; id < 1000; ++id) many.named.push_back({true, id, 5});
  ASSERT_EQ(error_of(fs->set_xattr(shared, kDefaultAclName, format_acl(many), 0)), 0);
  const InodeId f = fs->create(shared, "f", with_umask(S_IFREG | 0666, 022))->id;
  fs.crash();
  many.owner = 6, many.mask = 6;
  EXPECT_EQ(fs->get_xattr(f, kAccessAclName).value(), format_acl(many));
  EXPECT_EQ(fs.unlink("f", shared), 0);
  fs.forget_and_free(f);
}

TEST(DefaultAcls, ACreateUnderOneIsStillOneFence) {
  Filesystem fs;
  const InodeId shared = fs.directory("shared");
  ASSERT_EQ(error_of(fs->set_xattr(shared, kDefaultAclName, acl_of(7, 6, 5, 7, 4), 0)), 0);
  fs.file("first", shared);
  fs->journal().checkpoint();
  const pmem::Counters before = fs.region().counters();
  ASSERT_TRUE(fs->create(shared, "f", node(S_IFREG | 0644)).ok());
  ASSERT_TRUE(fs->create(shared, "d", node(S_IFDIR | 0755)).ok());
  const pmem::Counters after = fs.region().counters();
  EXPECT_EQ(after.fences - before.fences, 2U);
  EXPECT_LE(after.lines_flushed - before.lines_flushed, 6U + 8U);
}

}  // namespace
}  // namespace streamfs::meta
