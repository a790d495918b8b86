// A mount as the kernel sees it, over a filesystem that only remembers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/io_sizes.h"
#include "base/log_histogram.h"
#include "base/types.h"
#include "base/wire/hint_ioctl.h"
#include "fuse-fs/frontend/op_times.h"
#include "fuse-fs/frontend/session.h"
#include "tests/unit/frontend/fake_filesystem.h"
#include "tests/unit/frontend/mounted.h"

namespace streamfs::frontend {
namespace {

class Mount : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "mounting needs root and /dev/fuse";
    mounted_ = std::make_unique<Mounted>();
    ASSERT_EQ(mounted_->error, "");
  }
  std::string path(const std::string& name) const { return mounted_->path(name); }
  FakeFilesystem& fs() { return mounted_->fs; }
  std::unique_ptr<Mounted> mounted_;
};

class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0644)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  ssize_t put(const std::string& bytes) const { return write(fd_, bytes.data(), bytes.size()); }

 private:
  int fd_;
};

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct stat stat_of(const std::string& path) {
  struct stat out{};
  EXPECT_EQ(lstat(path.c_str(), &out), 0) << path;
  return out;
}

TEST_F(Mount, WhatIsWrittenIsRead) {
  put(path("a"), "hello");
  EXPECT_EQ(content(path("a")), "hello");
  EXPECT_EQ(stat_of(path("a")).st_size, 5);
}

TEST(MountTimes, EachRequestIsTimedUnderItsNameAlsoWhereAWorkerEndsIt) {
  if (!can_mount()) GTEST_SKIP() << "mounting needs root and /dev/fuse";
  OpTimes times;
  Session::Options options;
  options.context.op_times = &times;
  {
    const Mounted mounted(options);
    ASSERT_EQ(mounted.error, "");
    ASSERT_EQ(mkdir(mounted.path("d").c_str(), 0755), 0);
    put(mounted.path("a"), "hello");
    put(mounted.path("b"), "hello");
    ASSERT_EQ(rename(mounted.path("a").c_str(), mounted.path("b").c_str()), 0);  // by a worker
  }
  const auto count = [&](Op op) {
    const LogHistogram found = times.of(op);
    EXPECT_EQ(found.sum > 0, found.count() > 0);
    return found.count();
  };
  EXPECT_EQ(count(Op::kMkdir), 1U);
  EXPECT_EQ(count(Op::kRename), 1U);
  EXPECT_EQ(count(Op::kUnlink), 0U);
  EXPECT_GE(count(Op::kWrite), 2U);
}

TEST(MountSizes, ReadsAndWritesAreCountedByTheirSize) {
  if (!can_mount()) GTEST_SKIP() << "mounting needs root and /dev/fuse";
  IoSizes sizes;
  Session::Options options;
  options.context.direct_io = true;
  options.context.io_sizes = &sizes;
  {
    const Mounted mounted(options);
    ASSERT_EQ(mounted.error, "");
    const File file(mounted.path("a"), O_CREAT | O_RDWR);
    const std::string bytes(5000, 'x');
    for (int i = 0; i < 3; ++i) ASSERT_EQ(pwrite(file.fd(), bytes.data(), 5000, 0), 5000);
    std::string read(7, ' ');
    ASSERT_EQ(pread(file.fd(), read.data(), 7, 0), 7);
  }
  const LogHistogram writes = sizes.of(IoSizes::Kind::kWrite);
  EXPECT_EQ(writes.counts[LogBuckets::of(5000)], 3U);
  EXPECT_EQ(writes.sum, 15'000U);
  EXPECT_EQ(sizes.of(IoSizes::Kind::kRead).counts[LogBuckets::of(7)], 1U);
  EXPECT_EQ(sizes.of(IoSizes::Kind::kRead).count(), 1U);
}

TEST_F(Mount, OpeningForTruncationEmptiesAFileAlthoughThereIsNoOpenRequest) {
  put(path("a"), "long old content");
  {
    const File truncated(path("a"), O_WRONLY | O_TRUNC);
  }
  EXPECT_EQ(stat_of(path("a")).st_size, 0);
  put(path("a"), "new");
  EXPECT_EQ(content(path("a")), "new");
}

TEST_F(Mount, WritesGatherInThePageCache) {
  const File file(path("a"), O_CREAT | O_RDWR);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(file.put("0123456789"), 10);
  EXPECT_EQ(fs().writes, 0);
  ASSERT_EQ(::fsync(file.fd()), 0);
  EXPECT_LE(fs().writes, 3);
  EXPECT_EQ(fs().syncs, 1);
}

TEST_F(Mount, TimesOfWritesAreTheKernelsUnlessNothingIsCached) {
  Session::Options uncached;
  uncached.context.direct_io = true;
  Mounted direct(uncached);
  for (Mounted* each : {mounted_.get(), &direct}) {
    const File file(each->path("a"), O_CREAT | O_RDWR);
    ASSERT_EQ(file.put("data"), 4);
    ASSERT_EQ(::fsync(file.fd()), 0);
    EXPECT_EQ(each->fs.writes, 1);
    EXPECT_EQ(each->fs.writes_that_move_times, each == &direct ? 1 : 0);
  }
}

TEST_F(Mount, AFileOpenAndDirtyShowsItsDataToSeekAndNeverSeemsEmpty) {
  const File file(path("a"), O_CREAT | O_RDWR);
  ASSERT_EQ(pwrite(file.fd(), "data", 4, 1 << 20), 4);
  EXPECT_EQ(fs().writes, 0) << "nothing was dirty: the test tests nothing";
  EXPECT_GT(stat_of(path("a")).st_blocks, 0);
  EXPECT_EQ(lseek(file.fd(), 0, SEEK_DATA), 1 << 20);
  EXPECT_EQ(lseek(file.fd(), 0, SEEK_HOLE), 0);
}

TEST_F(Mount, ManySeeksAtOnceLeaveAThreadForTheWritesTheyWaitFor) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([this, i] {
      const File file(path("f" + std::to_string(i)), O_CREAT | O_RDWR);
      EXPECT_EQ(pwrite(file.fd(), "data", 4, 8192), 4);
      EXPECT_EQ(lseek(file.fd(), 0, SEEK_DATA), 8192);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Mount, ADirtyFileRenamedOverAnotherIsPushedFirst) {
  put(path("old"), "old");
  const File file(path("new"), O_CREAT | O_RDWR);
  ASSERT_EQ(file.put("new content"), 11);
  const int before = fs().writes;
  ASSERT_EQ(::rename(path("new").c_str(), path("old").c_str()), 0);
  EXPECT_EQ(fs().pushes, 1);
  EXPECT_EQ(fs().writes, before + 1);
  EXPECT_EQ(content(path("old")), "new content");
}

TEST_F(Mount, ARenameToANewNameReplacesNothing) {
  put(path("a"), "x");
  ASSERT_EQ(::rename(path("a").c_str(), path("b").c_str()), 0);
  EXPECT_EQ(fs().pushes, 0);
  EXPECT_EQ(content(path("b")), "x");
  EXPECT_EQ(access(path("a").c_str(), F_OK), -1);
}

TEST_F(Mount, RenameFlagsReachTheFilesystem) {
  put(path("a"), "A");
  put(path("b"), "B");
  EXPECT_EQ(renameat2(AT_FDCWD, path("a").c_str(), AT_FDCWD, path("b").c_str(), RENAME_NOREPLACE),
            -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(renameat2(AT_FDCWD, path("a").c_str(), AT_FDCWD, path("b").c_str(), RENAME_EXCHANGE),
            0);
  EXPECT_EQ(content(path("a")), "B");
}

TEST_F(Mount, ANameThatIsNotThereIsAskedForOnce) {
  EXPECT_EQ(access(path("missing").c_str(), F_OK), -1);
  const int asked = fs().lookups;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(access(path("missing").c_str(), F_OK), -1);
  EXPECT_EQ(fs().lookups, asked);
}

TEST_F(Mount, AttributesAreAskedForOnce) {
  put(path("a"), "x");
  stat_of(path("a"));
  const int asked = fs().attribute_reads + fs().lookups;
  for (int i = 0; i < 10; ++i) stat_of(path("a"));
  EXPECT_EQ(fs().attribute_reads + fs().lookups, asked);
}

TEST_F(Mount, AFileUnlinkedWhileOpenLivesUntilItIsClosed) {
  const size_t before = fs().inodes();
  {
    const File file(path("a"), O_CREAT | O_RDWR);
    ASSERT_EQ(file.put("still here"), 10);
    ASSERT_EQ(::unlink(path("a").c_str()), 0);
    char bytes[10] = {};
    EXPECT_EQ(pread(file.fd(), bytes, 10, 0), 10);
    EXPECT_EQ(std::string(bytes, 10), "still here");
    EXPECT_EQ(fs().inodes(), before + 1);
  }
  for (int i = 0; i < 100 && fs().inodes() > before; ++i) usleep(10000);
  EXPECT_EQ(fs().inodes(), before);
}

TEST_F(Mount, ATemporaryFileHasNoNameUntilItIsLinked) {
#if FUSE_VERSION < 317
  GTEST_SKIP() << "this libfuse has no TMPFILE";
#endif
  const File file(path(""), O_TMPFILE | O_RDWR);
  ASSERT_GE(file.fd(), 0) << std::strerror(errno);
  ASSERT_EQ(file.put("x"), 1);
  const std::string self = "/proc/self/fd/" + std::to_string(file.fd());
  ASSERT_EQ(linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path("t").c_str(), AT_SYMLINK_FOLLOW), 0);
  EXPECT_EQ(content(path("t")), "x");
}

TEST_F(Mount, ListsLargeDirectoriesWhole) {
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(::mknod(path("n" + std::to_string(i)).c_str(), S_IFREG | 0644, 0), 0);
  }
  size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator(path(""))) {
    EXPECT_EQ(stat_of(each.path()).st_size, 0);
    ++count;
  }
  EXPECT_EQ(count, 3000U);
  EXPECT_GT(fs().looked_ahead, 0U);
}

TEST_F(Mount, ReferencesOfReaddirplusAreGivenBack) {
  put(path("a"), "x");
  for (const auto& each : std::filesystem::directory_iterator(path(""))) stat_of(each.path());
  std::ofstream("/proc/sys/vm/drop_caches") << 2;
  for (int i = 0; i < 100 && fs().references("a") > 0; ++i) usleep(10000);
  EXPECT_EQ(fs().references("a"), 0);
}

TEST_F(Mount, TheCreatorsThreadNameGoesAlong) {
  std::thread([this] {
    pthread_setname_np(pthread_self(), "my-writer");
    put(path("a"), "x");
  }).join();
  EXPECT_EQ(fs().last_comm(), "my-writer");
}

TEST_F(Mount, MappedPagesAreShared) {
  const File file(path("a"), O_CREAT | O_RDWR);
  ASSERT_EQ(ftruncate(file.fd(), 8192), 0);
  void* map = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  ASSERT_NE(map, MAP_FAILED);
  std::memcpy(static_cast<char*>(map) + 4096, "mapped", 6);
  char bytes[6] = {};
  EXPECT_EQ(pread(file.fd(), bytes, 6, 4096), 6);
  EXPECT_EQ(std::string(bytes, 6), "mapped");
  ASSERT_EQ(msync(map, 8192, MS_SYNC), 0);
  munmap(map, 8192);
  EXPECT_GE(fs().writes, 1);
}

TEST_F(Mount, OwnersModesTimesAndDevicesPassThrough) {
  put(path("a"), "x");
  ASSERT_EQ(chmod(path("a").c_str(), 04711), 0);
  EXPECT_EQ(stat_of(path("a")).st_mode, static_cast<mode_t>(S_IFREG | 04711));
  ASSERT_EQ(chown(path("a").c_str(), 12, 34), 0);
  EXPECT_EQ(stat_of(path("a")).st_mode, static_cast<mode_t>(S_IFREG | 0711)) << "setuid survived";
  EXPECT_EQ(stat_of(path("a")).st_gid, 34U);
  const timespec times[2] = {{1000, 1}, {-2000, 999999999}};
  ASSERT_EQ(utimensat(AT_FDCWD, path("a").c_str(), times, 0), 0);
  EXPECT_EQ(stat_of(path("a")).st_mtim.tv_sec, -2000);
  EXPECT_EQ(stat_of(path("a")).st_mtim.tv_nsec, 999999999);
  ASSERT_EQ(::mknod(path("null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  EXPECT_EQ(stat_of(path("null")).st_rdev, makedev(1, 3));
  ASSERT_EQ(::symlink("to/somewhere", path("s").c_str()), 0);
  EXPECT_EQ(std::filesystem::read_symlink(path("s")), "to/somewhere");
}

TEST_F(Mount, BirthTimeIsToldToWhoAsks) {
#if FUSE_VERSION < 318
  GTEST_SKIP() << "this libfuse has no STATX";
#endif
  put(path("a"), "x");
  struct statx out{};
  ASSERT_EQ(::statx(AT_FDCWD, path("a").c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &out), 0);
  ASSERT_NE(out.stx_mask & STATX_BTIME, 0U);
  EXPECT_EQ(out.stx_btime.tv_nsec, 5U);
  EXPECT_EQ(out.stx_size, 1U);
}

TEST_F(Mount, AttributesOfAnyNameButAclsAreKept) {
  put(path("a"), "x");
  const auto set = [&](const char* name) {
    return setxattr(path("a").c_str(), name, "value", 5, 0);
  };
  ASSERT_EQ(set("user.mine"), 0);
  char value[16] = {};
  EXPECT_EQ(getxattr(path("a").c_str(), "user.mine", value, sizeof value), 5);
  EXPECT_EQ(getxattr(path("a").c_str(), "user.mine", value, 2), -1);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(getxattr(path("a").c_str(), "user.other", value, sizeof value), -1);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_EQ(listxattr(path("a").c_str(), value, sizeof value), 10);
  EXPECT_EQ(removexattr(path("a").c_str(), "user.mine"), 0);
  EXPECT_EQ(listxattr(path("a").c_str(), value, sizeof value), 0);
}

TEST_F(Mount, AHintReachesTheInodeAndTheAnswerComesBack) {
  const File file(path("a"), O_CREAT | O_RDWR);
  streamfs_hint hint{};
  hint.version = STREAMFS_HINT_VERSION;
  hint.command = STREAMFS_HINT_NAME;
  std::strcpy(hint.name, "wal");
  ASSERT_EQ(ioctl(file.fd(), STREAMFS_IOC_HINT, &hint), 0) << std::strerror(errno);
  EXPECT_EQ(hint.number, 42);
  EXPECT_EQ(hint.pstream, 3);
  EXPECT_EQ(hint.lifetime_bytes, 12345U);
  EXPECT_STREQ(hint.name, "wal");
  hint.command = STREAMFS_HINT_NUMBER;
  hint.number = 0;
  EXPECT_EQ(ioctl(file.fd(), STREAMFS_IOC_HINT, &hint), -1);
  EXPECT_EQ(errno, ERANGE);
  hint.version = 99;
  EXPECT_EQ(ioctl(file.fd(), STREAMFS_IOC_HINT, &hint), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ioctl(file.fd(), FIONREAD + 1, &hint), -1);
}

TEST_F(Mount, ADirectoryTakesHintsToo) {
  const File directory(path(""), O_RDONLY | O_DIRECTORY);
  streamfs_hint hint{};
  hint.version = STREAMFS_HINT_VERSION;
  hint.command = STREAMFS_HINT_NUMBER;
  hint.number = 9;
  ASSERT_EQ(ioctl(directory.fd(), STREAMFS_IOC_HINT, &hint), 0) << std::strerror(errno);
  EXPECT_EQ(hint.number, 9);
}

TEST_F(Mount, SpaceIsCountedInBlocks) {
  struct statvfs space{};
  ASSERT_EQ(::statvfs(path("").c_str(), &space), 0);
  EXPECT_EQ(space.f_frsize, kBlockSize);
  EXPECT_EQ(space.f_blocks, 1000U);
  EXPECT_EQ(space.f_bavail, 600U);
  EXPECT_EQ(space.f_files, 160U);
  EXPECT_EQ(space.f_namemax, 255U);
}

TEST_F(Mount, DirtyPagesAreWrittenBackBeforeTheMountGoesAway) {
  const File file(path("a"), O_CREAT | O_RDWR);
  ASSERT_EQ(file.put("unsaved"), 7);
  EXPECT_EQ(fs().writes, 0);
  mounted_->session().request_unmount();  // busy: the file is open
  EXPECT_EQ(fs().writes, 1);
}

TEST(MountRefused, WhereTheMountpointIsNoDirectory) {
  if (!can_mount()) GTEST_SKIP() << "mounting needs root and /dev/fuse";
  FakeFilesystem fs;
  Session::Options options;
  options.mountpoint = "/dev/null";
  EXPECT_EQ(Session::mount(fs, system_clock(), options).error().code, ENOTDIR);
  options.mountpoint = "/nowhere/at/all";
  EXPECT_EQ(Session::mount(fs, system_clock(), options).error().code, ENOENT);
}

TEST(MountRefused, WhereItWouldHideContentAndForAnOptionNobodyKnows) {
  if (!can_mount()) GTEST_SKIP() << "mounting needs root and /dev/fuse";
  FakeFilesystem fs;
  Session::Options options;
  options.mountpoint = std::filesystem::temp_directory_path();
  EXPECT_EQ(Session::mount(fs, system_clock(), options).error().code, ENOTEMPTY);
  options.nonempty = true;
  options.mount_options = {"no_such_option"};
  EXPECT_EQ(Session::mount(fs, system_clock(), options).error().code, EINVAL);
}

}  // namespace
}  // namespace streamfs::frontend
