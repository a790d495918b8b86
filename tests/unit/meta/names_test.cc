// Names, links and renames, and what a crash leaves of them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

constexpr uint32_t kNoReplace = 1, kExchange = 2, kWhiteout = 4;

CreateRequest symlink_to(std::string_view target) {
  CreateRequest request = node(S_IFLNK | 0777);
  request.symlink_target = target;
  return request;
}

TEST(Names, AnEmptyFilesystemHoldsOnlyItself) {
  Filesystem fs;
  const Attributes root = fs.attributes(fs.root());
  EXPECT_TRUE(S_ISDIR(root.mode));
  EXPECT_EQ(root.nlink, 2U);
  EXPECT_TRUE(fs.names(fs.root()).empty());
  EXPECT_EQ(fs.lookup_error("x"), ENOENT);
  EXPECT_EQ(fs->lookup(fs.root(), ".")->id, fs.root());
  EXPECT_EQ(fs->lookup(fs.root(), "..")->id, fs.root());
}

TEST(Names, AnInodeOfAnyTypeIsFoundByItsNumberWhileItHasAName) {
  Filesystem fs;
  const InodeId file = fs.file("f");
  const InodeId directory = fs.directory("d");
  const auto symlink = fs->create(fs.root(), "s", symlink_to("f"));
  ASSERT_TRUE(symlink.ok());
  fs.crash();  // nobody has looked any of them up since
  for (const InodeId id : {file, directory, symlink->id}) {
    const auto found = fs->lookup(id, ".");
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->id, id);
  }
  EXPECT_EQ(fs->lookup(directory, "..")->id, fs.root());
  EXPECT_EQ(error_of(fs->lookup(file, "..")), ENOTDIR);
  ASSERT_EQ(fs.unlink("f"), 0);
  EXPECT_EQ(error_of(fs->lookup(file, ".")), ESTALE) << "an orphan";
  fs.forget_and_free(file);
  for (const InodeId gone : {file, InodeId{0}, InodeId{~uint64_t{0}}, InodeId{uint64_t{1} << 57}})
    EXPECT_EQ(error_of(fs->lookup(gone, ".")), ESTALE);
}

TEST(Names, ARemovedDirectoryLiesNowhere) {
  Filesystem fs;
  const InodeId above = fs.directory("above");
  const InodeId below = fs.directory("below", above);
  ASSERT_TRUE(fs->rmdir(above, "below").ok());
  ASSERT_TRUE(fs->rmdir(fs.root(), "above").ok());
  EXPECT_EQ(error_of(fs->lookup(below, "..")), ESTALE);
  EXPECT_EQ(error_of(fs->lookup(below, ".")), ESTALE);
}

TEST(Names, ACreatedFileKeepsItsAttributesAcrossACrashAndAClose) {
  Filesystem fs;
  CreateRequest request = node(S_IFREG | 0640);
  request.caller = {.uid = 5, .gid = 6};
  request.vstream = VStreamId{9};
  request.vstream_hinted = true;
  const auto made = fs->create(fs.root(), "f", request);
  ASSERT_TRUE(made.ok());
  for (const bool clean : {false, true}) {
    clean ? fs.reopen() : fs.crash();
    const auto found = fs->lookup(fs.root(), "f");
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->id, made->id);
    EXPECT_EQ(found->mode, S_IFREG | 0640U);
    EXPECT_EQ(found->uid, 5U);
    EXPECT_EQ(found->gid, 6U);
    EXPECT_EQ(found->nlink, 1U);
    EXPECT_EQ(found->vstream, VStreamId{9});
    EXPECT_TRUE(found->vstream_hinted);
    EXPECT_EQ(found->btime, made->btime);
    EXPECT_EQ(found->generation, made->generation);
  }
}

TEST(Names, EveryKindOfNodeIsKeptAcrossACrash) {
  Filesystem fs;
  const auto make = [&](const char* name, uint32_t type) {
    CreateRequest request = node(type | 0600);
    request.rdev = 0x105;
    ASSERT_TRUE(fs->create(fs.root(), name, request).ok());
  };
  make("fifo", S_IFIFO);
  make("device", S_IFCHR);
  make("disk", S_IFBLK);
  make("socket", S_IFSOCK);
  make("file", S_IFREG);
  fs.crash();
  for (const char* const name : {"fifo", "socket", "file"})
    EXPECT_EQ(fs->lookup(fs.root(), name)->rdev, 0U) << "only a device has a number";
  EXPECT_EQ(fs->lookup(fs.root(), "disk")->rdev, 0x105U);
  EXPECT_TRUE(S_ISFIFO(fs->lookup(fs.root(), "fifo")->mode));
  EXPECT_EQ(fs->lookup(fs.root(), "device")->rdev, 0x105U);
  EXPECT_TRUE(S_ISSOCK(fs->lookup(fs.root(), "socket")->mode));
}

TEST(Names, SymlinksOfEveryLengthReadBack) {
  Filesystem fs;
  for (const size_t length : {1U, 127U, 128U, 129U, 4032U, 4033U, 4095U}) {
    const std::string name = "s" + std::to_string(length), target(length, 'x');
    ASSERT_TRUE(fs->create(fs.root(), name, symlink_to(target)).ok());
  }
  fs.crash();
  for (const size_t length : {1U, 127U, 128U, 129U, 4032U, 4033U, 4095U}) {
    const auto found = fs->lookup(fs.root(), "s" + std::to_string(length));
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->size, length);
    const auto target = fs->read_symlink(found->id);
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(*target, std::string(length, 'x'));
  }
  EXPECT_EQ(error_of(fs->read_symlink(fs.root())), EINVAL);
  const std::string too_long(4096, 'x');
  EXPECT_EQ(error_of(fs->create(fs.root(), "t", symlink_to(too_long))), ENAMETOOLONG);
}

TEST(Names, ImpossibleNamesAreRefused) {
  Filesystem fs;
  EXPECT_EQ(error_of(fs->create(fs.root(), "", node(S_IFREG))), EINVAL);
  EXPECT_EQ(error_of(fs->create(fs.root(), "a/b", node(S_IFREG))), EINVAL);
  EXPECT_EQ(error_of(fs->create(fs.root(), ".", node(S_IFREG))), EINVAL);
  EXPECT_EQ(error_of(fs->create(fs.root(), std::string_view("a\0b", 3), node(S_IFREG))), EINVAL);
  EXPECT_EQ(error_of(fs->create(fs.root(), std::string(256, 'n'), node(S_IFREG))), ENAMETOOLONG);
  EXPECT_EQ(fs.lookup_error(std::string(256, 'n')), ENAMETOOLONG);
}

TEST(Names, NamesOfEveryLengthAreKeptAndGoAway) {
  Filesystem fs;
  for (size_t length = 1; length <= 255; ++length) fs.file(std::string(length, 'n'));
  fs.crash();
  EXPECT_EQ(fs.names(fs.root()).size(), 255U);
  for (size_t length = 1; length <= 255; length += 2)
    EXPECT_EQ(fs.unlink(std::string(length, 'n')), 0);
  for (size_t length = 1; length <= 255; length += 2) fs.file(std::string(length, 'm'));
  fs.reopen();
  for (size_t length = 1; length <= 255; ++length) {
    EXPECT_EQ(fs.exists(std::string(length, 'n')), length % 2 == 0) << length;
    EXPECT_EQ(fs.exists(std::string(length, 'm')), length % 2 == 1) << length;
  }
}

TEST(Names, ANameIsTakenOnlyOnce) {
  Filesystem fs;
  fs.file("a");
  EXPECT_EQ(error_of(fs->create(fs.root(), "a", node(S_IFREG))), EEXIST);
  EXPECT_EQ(error_of(fs->create(fs.root(), "a", node(S_IFDIR))), EEXIST);
}

TEST(Names, OnlyDirectoriesHoldNames) {
  Filesystem fs;
  const InodeId file = fs.file("a");
  EXPECT_EQ(fs.lookup_error("x", file), ENOTDIR);
  EXPECT_EQ(error_of(fs->create(file, "x", node(S_IFREG))), ENOTDIR);
  EXPECT_EQ(error_of(fs->unlink(file, "x")), ENOTDIR);
  EXPECT_EQ(error_of(fs->link(file, file, "x")), EPERM);
  EXPECT_EQ(error_of(fs->rename(fs.root(), "a", file, "x", 0)), ENOTDIR);
}

TEST(Names, DirectoriesCountTheirChildren) {
  Filesystem fs;
  const InodeId d = fs.directory("d");
  const InodeId e = fs.directory("e", d);
  fs.file("f", d);
  EXPECT_EQ(fs.attributes(fs.root()).nlink, 3U);
  EXPECT_EQ(fs.attributes(d).nlink, 3U);
  EXPECT_EQ(fs->lookup(e, "..")->id, d);
  EXPECT_EQ(error_of(fs->rmdir(fs.root(), "d")), ENOTEMPTY);
  EXPECT_EQ(error_of(fs->rmdir(d, "f")), ENOTDIR);
  EXPECT_EQ(error_of(fs->unlink(d, "e")), EISDIR);
  EXPECT_EQ(error_of(fs->rmdir(d, "e")), 0);
  EXPECT_EQ(fs.attributes(d).nlink, 2U);
  EXPECT_EQ(error_of(fs->create(e, "late", node(S_IFREG))), ENOENT);
  EXPECT_EQ(fs.unlink("f", d), 0);
  EXPECT_EQ(error_of(fs->rmdir(fs.root(), "d")), 0);
  EXPECT_EQ(fs.attributes(fs.root()).nlink, 2U);
  EXPECT_EQ(error_of(fs->rmdir(fs.root(), ".")), EINVAL);
  EXPECT_EQ(error_of(fs->rmdir(fs.root(), "..")), ENOTEMPTY);
}

TEST(Names, AChangeOfNamesShowsInTheTimesOfBothSides) {
  Filesystem fs;
  const InodeId d = fs.directory("d");
  const InodeId f = fs.file("f", d);
  fs.clock().advance();
  ASSERT_TRUE(fs->rename(d, "f", fs.root(), "g", 0).ok());
  const Timestamp now = fs.clock().now();
  EXPECT_EQ(fs.attributes(d).mtime, now);
  EXPECT_EQ(fs.attributes(d).ctime, now);
  EXPECT_EQ(fs.attributes(fs.root()).mtime, now);
  EXPECT_EQ(fs.attributes(f).ctime, now);
  EXPECT_NE(fs.attributes(f).mtime, now);
}

TEST(Names, ChildrenOfASetGroupIdDirectoryTakeItsGroup) {
  Filesystem fs;
  const InodeId d = fs.directory("d");
  AttributeChange change;
  change.mode = 02775;
  change.gid = 77;
  ASSERT_TRUE(fs->set_attributes(d, change).ok());
  EXPECT_EQ(fs.attributes(fs.file("f", d)).gid, 77U);
  const Attributes below = fs.attributes(fs.directory("e", d));
  EXPECT_EQ(below.gid, 77U);
  EXPECT_NE(below.mode & S_ISGID, 0U);
}

TEST(Links, AFileLivesUntilItsLastNameIsGone) {
  Filesystem fs;
  const InodeId f = fs.file("a");
  const auto linked = fs->link(f, fs.root(), "b");
  ASSERT_TRUE(linked.ok());
  EXPECT_EQ(linked->nlink, 2U);
  EXPECT_EQ(fs.unlink("a"), 0);
  EXPECT_EQ(fs.attributes(f).nlink, 1U);
  EXPECT_FALSE(fs->forget(f, 2));
  fs.crash();
  EXPECT_EQ(fs->lookup(fs.root(), "b")->id, f);
  EXPECT_EQ(fs.unlink("b"), 0);
  fs.forget_and_free(f);
  EXPECT_EQ(error_of(fs->attributes(f)), ESTALE);
}

TEST(Links, DirectoriesCannotBeLinked) {
  Filesystem fs;
  const InodeId d = fs.directory("d");
  fs.file("a");
  EXPECT_EQ(error_of(fs->link(d, fs.root(), "e")), EPERM);
  EXPECT_EQ(error_of(fs->link(fs.root(), d, "e")), EPERM);
  EXPECT_EQ(error_of(fs->link(fs->lookup(fs.root(), "a")->id, fs.root(), "d")), EEXIST);
}

TEST(Rename, AFileMovesAcrossDirectoriesWhole) {
  Filesystem fs;
  const InodeId d = fs.directory("d");
  const InodeId f = fs.file("f");
  const auto moved = fs->rename(fs.root(), "f", d, "g", 0);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->moved, f);
  EXPECT_FALSE(moved->replaced.has_value());
  fs.crash();
  EXPECT_EQ(fs.lookup_error("f"), ENOENT);
  EXPECT_EQ(fs->lookup(d, "g")->id, f);
}

TEST(Rename, AReplacedFileLosesItsNameInTheSameStep) {
  Filesystem fs;
  const InodeId a = fs.file("a"), b = fs.file("b");
  const auto moved = fs->rename(fs.root(), "a", fs.root(), "b", 0);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->replaced, b);
  EXPECT_EQ(fs.attributes(b).nlink, 0U);
  EXPECT_EQ(fs->lookup(fs.root(), "b")->id, a);
  fs.forget_and_free(b);
}

TEST(Rename, FollowsTheRulesOfReplacing) {
  Filesystem fs;
  const InodeId d = fs.directory("d"), full = fs.directory("full");
  const InodeId f = fs.file("f");
  fs.file("x", full);
  const InodeId inner = fs.directory("inner", d);
  const auto rename = [&](InodeId from, const char* name, InodeId to, const char* new_name,
                          uint32_t flags = 0) {
    return error_of(fs->rename(from, name, to, new_name, flags));
  };
  EXPECT_EQ(rename(fs.root(), "none", fs.root(), "y"), ENOENT);
  EXPECT_EQ(rename(fs.root(), "d", fs.root(), "f"), ENOTDIR);
  EXPECT_EQ(rename(fs.root(), "f", fs.root(), "d"), EISDIR);
  EXPECT_EQ(rename(fs.root(), "d", fs.root(), "full"), ENOTEMPTY);
  EXPECT_EQ(rename(fs.root(), "d", d, "self"), EINVAL);
  EXPECT_EQ(rename(fs.root(), "d", inner, "deep"), EINVAL);
  EXPECT_EQ(rename(d, "inner", fs.root(), "d"), ENOTEMPTY);
  EXPECT_EQ(rename(fs.root(), "f", fs.root(), "full", kNoReplace), EEXIST);
  EXPECT_EQ(rename(fs.root(), "f", fs.root(), "none", kExchange), ENOENT);
  EXPECT_EQ(rename(fs.root(), "f", fs.root(), "g", kNoReplace | kExchange), EINVAL);
  EXPECT_EQ(rename(fs.root(), "f", fs.root(), "g", 8), EINVAL);
  EXPECT_EQ(rename(fs.root(), "f", fs.root(), "g", kNoReplace), 0);
  EXPECT_EQ(fs->lookup(fs.root(), "g")->id, f);
}

TEST(Rename, TwoNamesOfOneFileStayBoth) {
  Filesystem fs;
  const InodeId f = fs.file("a");
  ASSERT_TRUE(fs->link(f, fs.root(), "b").ok());
  const auto moved = fs->rename(fs.root(), "a", fs.root(), "b", 0);
  ASSERT_TRUE(moved.ok());
  EXPECT_FALSE(moved->replaced.has_value());
  EXPECT_TRUE(fs.exists("a"));
  EXPECT_TRUE(fs.exists("b"));
  EXPECT_EQ(fs.attributes(f).nlink, 2U);
}

TEST(Rename, AMovedDirectoryKnowsItsNewParent) {
  Filesystem fs;
  const InodeId a = fs.directory("a"), b = fs.directory("b"), c = fs.directory("c", a);
  const InodeId old = fs.directory("old", b);
  const auto moved = fs->rename(a, "c", b, "old", 0);
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->replaced, old);
  EXPECT_EQ(fs.attributes(a).nlink, 2U);
  EXPECT_EQ(fs.attributes(b).nlink, 3U);
  EXPECT_EQ(fs->lookup(c, "..")->id, b);
  fs.forget_and_free(old);
  fs.crash();
  EXPECT_EQ(fs->lookup(b, "old")->id, c);
  EXPECT_EQ(fs->lookup(c, "..")->id, b);
}

TEST(Rename, ExchangeSwapsAFileAndADirectory) {
  Filesystem fs;
  const InodeId a = fs.directory("a"), b = fs.directory("b");
  const InodeId d = fs.directory("d", a), f = fs.file("f", b);
  ASSERT_TRUE(fs->rename(a, "d", b, "f", kExchange).ok());
  EXPECT_EQ(fs.attributes(a).nlink, 2U);
  EXPECT_EQ(fs.attributes(b).nlink, 3U);
  fs.crash();
  EXPECT_EQ(fs->lookup(a, "d")->id, f);
  EXPECT_EQ(fs->lookup(b, "f")->id, d);
  EXPECT_EQ(fs->lookup(d, "..")->id, b);
  EXPECT_EQ(error_of(fs->rename(fs.root(), "b", b, "f", kExchange)), EINVAL);
}

TEST(Rename, AWhiteoutStaysInTheOldPlace) {
  Filesystem fs;
  const InodeId a = fs.directory("a"), f = fs.file("f", a), over = fs.file("over", a);
  ASSERT_TRUE(fs->rename(a, "f", fs.root(), "moved", kWhiteout, {.uid = 12, .gid = 34}).ok());
  ASSERT_TRUE(fs->rename(fs.root(), "moved", a, "over", kWhiteout).ok());
  fs.crash();
  EXPECT_EQ(fs->lookup(a, "over")->id, f);
  EXPECT_EQ(fs.attributes(over).nlink, 0U);
  const Attributes whiteout = *fs->lookup(a, "f");
  EXPECT_EQ(whiteout.mode, uint32_t{S_IFCHR});
  EXPECT_EQ(whiteout.rdev, 0U);
  EXPECT_EQ(whiteout.uid, 12U);
  EXPECT_EQ(whiteout.gid, 34U);
  EXPECT_TRUE(S_ISCHR(fs->lookup(fs.root(), "moved")->mode));
  const auto both = fs->rename(a, "over", fs.root(), "moved", kWhiteout | kExchange);
  EXPECT_EQ(error_of(both), EINVAL);
}

TEST(Links, MoreThanAnInodeCountsAreTooMany) {
  Filesystem fs;
  const InodeId f = fs.file("f"), d = fs.directory("d");
  for (const InodeId id : {f, d}) fs.set_link_count(id, kMaxLinks);
  EXPECT_EQ(error_of(fs->link(f, d, "one")), EMLINK);
  EXPECT_EQ(error_of(fs->create(d, "sub", node(S_IFDIR | 0755))), EMLINK);
  fs.directory("e");
  EXPECT_EQ(error_of(fs->rename(fs.root(), "e", d, "e", 0)), EMLINK);
  fs.abandon();
}

TEST(Reading, GoesOnAfterAnEntryWhileEntriesAreDeleted) {
  Filesystem fs;
  for (int i = 0; i < 500; ++i) fs.file("f" + std::to_string(i));
  std::set<std::string> seen;
  uint64_t cookie = 0;
  for (bool more = true; more;) {
    std::vector<std::string> some;
    ASSERT_TRUE(fs->read_directory(fs.root(), cookie, [&](const DirectoryEntry& entry) {
                    if (some.size() == 7) return false;
                    cookie = entry.next_cookie;
                    if (entry.name != "." && entry.name != "..") some.emplace_back(entry.name);
                    return true;
                  }).ok());
    more = !some.empty();
    for (const std::string& name : some) {
      EXPECT_TRUE(seen.emplace(name).second) << name;
      EXPECT_EQ(fs.unlink(name), 0);
    }
  }
  EXPECT_EQ(seen.size(), 500U);
  EXPECT_TRUE(fs.names(fs.root()).empty());
}

TEST(Reading, AnEntryRefusedComesAgain) {
  Filesystem fs;
  fs.file("a");
  std::vector<std::string> seen;
  ASSERT_TRUE(fs->read_directory(fs.root(), 2, [&](const DirectoryEntry& entry) {
                  seen.emplace_back(entry.name);
                  return false;
                }).ok());
  ASSERT_TRUE(fs->read_directory(fs.root(), 2, [&](const DirectoryEntry& entry) {
                  seen.emplace_back(entry.name);
                  return true;
                }).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "a"}));
}

// Names as a listing has them after everything up to a cookie was listed and looked ahead of.
std::vector<std::string> names_ahead(Filesystem& fs, uint64_t cookie, size_t most,
                                     const std::function<void()>& meanwhile) {
  fs->look_ahead(fs.root(), cookie, most);
  meanwhile();
  std::vector<std::string> names;
  std::vector<InodeId> ids;
  EXPECT_TRUE(fs->read_directory(fs.root(), cookie, [&](const DirectoryEntry& entry) {
                  names.emplace_back(entry.name);
                  ids.push_back(entry.id);
                  return true;
                }).ok());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(fs->lookup(fs.root(), names[i])->id, ids[i]) << names[i];
  }
  return names;
}

TEST(Reading, WhatIsReadAheadIsWhatIsThere) {
  Filesystem fs;
  for (size_t i = 0; i < 150; ++i) fs.file(std::string(1 + i % 90, 'x') + std::to_string(i));
  const std::vector<std::string> all = fs.names(fs.root());
  for (const size_t most : {0U, 1U, 70U, 150U, 1000U}) {
    EXPECT_EQ(names_ahead(fs, 2, most, [] {}), all) << most;
    EXPECT_EQ(fs.names(fs.root()), all);
  }
}

TEST(Reading, WhatChangesAfterItWasReadAheadShows) {
  Filesystem fs;
  for (const char* name : {"a", "b", "c", "d"}) fs.file(name);
  using Names = std::vector<std::string>;
  const auto after = [&](const std::function<void()>& change) {
    return names_ahead(fs, 2, 100, change);
  };
  EXPECT_EQ(after([&] { fs.file("e"); }), (Names{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(after([&] { EXPECT_EQ(fs.unlink("b"), 0); }), (Names{"a", "c", "d", "e"}));
  EXPECT_EQ(after([&] { fs.file("B"); }), (Names{"a", "B", "c", "d", "e"}));
  const auto rename = [&](const char* from, const char* to, uint32_t flags) {
    EXPECT_TRUE(fs->rename(fs.root(), from, fs.root(), to, flags).ok());
  };
  EXPECT_EQ(after([&] { rename("a", "c", 0); }), (Names{"B", "c", "d", "e"}));
  EXPECT_EQ(after([&] { rename("d", "e", kExchange); }), (Names{"B", "c", "d", "e"}));
}

// As readdirplus does; the small cache has given up most of the inodes by then.
TEST(Reading, ReferencesAreTakenTogether) {
  for (const uint64_t cache_bytes : {uint64_t{1}, Size{}.cache_bytes}) {
    Filesystem fs({.cache_bytes = cache_bytes});
    std::vector<InodeId> ids;
    for (int i = 0; i < 300; ++i) ids.push_back(fs.file("f" + std::to_string(i)));
    ASSERT_EQ(fs.unlink("f7"), 0);
    fs.forget_and_free(ids[7]);
    std::map<size_t, InodeId> found;
    fs->reference(ids, [&](size_t place, const Attributes& attributes) {
      EXPECT_TRUE(found.emplace(place, attributes.id).second);
    });
    EXPECT_EQ(found.size(), ids.size() - 1);
    EXPECT_FALSE(found.contains(7));
    for (const auto& [place, id] : found) EXPECT_EQ(id, ids[place]);
    ASSERT_EQ(fs.unlink("f8"), 0);
    EXPECT_FALSE(fs->forget(ids[8], 1)) << "of the creation; there is one more";
    EXPECT_TRUE(fs->forget(ids[8], 1));
    ASSERT_TRUE(fs->free_orphan(ids[8]).ok());
  }
}

TEST(Reading, AHundredThousandEntriesStayFindable) {
  Filesystem fs({.meta_bytes = 96 << 20});
  constexpr int kEntries = 100'000;
  for (int i = 0; i < kEntries; ++i) {
    const auto made = fs->create(fs.root(), "file" + std::to_string(i), node(S_IFREG));
    ASSERT_TRUE(made.ok()) << made.error().message();
    fs->forget(made->id, 1);
  }
  fs.crash();
  for (int i = 0; i < kEntries; i += 97) EXPECT_TRUE(fs.exists("file" + std::to_string(i)));
  EXPECT_EQ(fs.names(fs.root()).size(), static_cast<size_t>(kEntries));
  for (int i = 0; i < kEntries; ++i) {
    const auto gone = fs->unlink(fs.root(), "file" + std::to_string(i));
    ASSERT_TRUE(gone.ok());
    ASSERT_TRUE(fs->forget(*gone, 0));
    ASSERT_TRUE(fs->free_orphan(*gone).ok());
  }
  EXPECT_TRUE(fs.names(fs.root()).empty());
}

}  // namespace
}  // namespace streamfs::meta
