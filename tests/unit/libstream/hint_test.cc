// The C API's promises, on a fake mount and beside it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "libstream/include/libstream.h"
#include "tests/unit/libstream/fake_mount.h"

namespace {

class Fd {
 public:
  explicit Fd(const std::string& path, int flags = O_RDWR)
      : fd_(open(path.c_str(), flags | O_CLOEXEC)) {}
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { close(fd_); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

stream_vstream named(const char* name) {
  stream_vstream stream;
  EXPECT_EQ(stream_open(&stream, name), 0);
  return stream;
}

stream_vstream numbered(unsigned number) {
  stream_vstream stream;
  EXPECT_EQ(stream_open_number(&stream, number), 0);
  return stream;
}

TEST(Hint, AFileTaggedByNameIsFoundAgainByQuery) {
  const TemporaryFolder mount;
  const Fd file(mount.file("a"));
  const stream_vstream stream = named("invoices");
  EXPECT_EQ(stream_tag_fd(file.get(), &stream), STREAM_HONOURED);
  stream_info info;
  EXPECT_EQ(stream_query_fd(file.get(), &info), STREAM_HONOURED);
  EXPECT_STREQ(info.name, "invoices");
  EXPECT_EQ(info.vstream, 100u);
}

TEST(Hint, AFileTaggedByNumberOnItsPathIsFoundAgain) {
  const TemporaryFolder mount;
  const std::string path = mount.file("a");
  const stream_vstream stream = numbered(65535);
  EXPECT_EQ(stream_tag_path(path.c_str(), &stream), STREAM_HONOURED);
  stream_info info;
  EXPECT_EQ(stream_query_path(path.c_str(), &info), STREAM_HONOURED);
  EXPECT_EQ(info.vstream, 65535u);
}

TEST(Hint, LifetimesGoThroughAndAreTakenBack) {
  const TemporaryFolder mount;
  const std::string path = mount.file("a");
  const Fd file(path);
  stream_info info;
  EXPECT_EQ(stream_hint_fd(file.get(), STREAM_LIFE_SHORT), STREAM_HONOURED);
  EXPECT_EQ(stream_query_fd(file.get(), &info), STREAM_HONOURED);
  EXPECT_EQ(info.life, unsigned{STREAM_LIFE_SHORT});
  EXPECT_EQ(stream_hint_path(path.c_str(), STREAM_LIFE_EXTREME), STREAM_HONOURED);
  EXPECT_EQ(stream_query_fd(file.get(), &info), STREAM_HONOURED);
  EXPECT_EQ(info.life, unsigned{STREAM_LIFE_EXTREME});
  EXPECT_EQ(stream_hint_fd(file.get(), STREAM_LIFE_NOT_SET), STREAM_HONOURED);
  EXPECT_EQ(stream_query_fd(file.get(), &info), STREAM_HONOURED);
  EXPECT_EQ(info.life, unsigned{STREAM_LIFE_NOT_SET});
  EXPECT_EQ(stream_hint_fd(file.get(), STREAM_LIFE_MEDIUM), STREAM_HONOURED);
  EXPECT_EQ(stream_clear_path(path.c_str()), STREAM_HONOURED);
  EXPECT_EQ(stream_query_fd(file.get(), &info), STREAM_HONOURED);
  EXPECT_EQ(info.life, unsigned{STREAM_LIFE_NOT_SET});
  EXPECT_EQ(stream_hint_fd(file.get(), static_cast<stream_life>(6)), -EINVAL);
}

TEST(Hint, ADirectoryKeepsItsLabelInTheAttribute) {
  const TemporaryFolder mount;
  const std::string path = mount.folder("d");
  const stream_vstream by_name = named("cache");
  const stream_vstream by_number = numbered(4207);
  EXPECT_EQ(stream_tag_directory(path.c_str(), &by_name), STREAM_HONOURED);
  EXPECT_EQ(fake_mount().attributes[path], "cache");
  EXPECT_EQ(stream_tag_directory(path.c_str(), &by_number), STREAM_HONOURED);
  EXPECT_EQ(fake_mount().attributes[path], "4207");
  EXPECT_EQ(stream_clear_directory(path.c_str()), STREAM_HONOURED);
  EXPECT_EQ(stream_clear_directory(path.c_str()), STREAM_HONOURED) << "nothing left to clear";
  EXPECT_TRUE(fake_mount().attributes.empty());
}

TEST(Hint, AMountThatAnswersForFilesOnlyStillTakesDirectories) {
  const TemporaryFolder mount;
  fake_mount().errno_of_every_answer = EISDIR;
  const stream_vstream stream = named("cache");
  EXPECT_EQ(stream_tag_directory(mount.path().c_str(), &stream), STREAM_HONOURED);
}

TEST(Hint, LifetimesInBytesAndSecondsAreOneVStreamForEachPowerOfFour) {
  const auto bytes = [](uint64_t value) {
    stream_vstream stream;
    return stream_open_bytes(&stream, value) == 0 ? std::string(stream.name) : "refused";
  };
  const auto seconds = [](uint64_t value) {
    stream_vstream stream;
    return stream_open_seconds(&stream, value) == 0 ? std::string(stream.name) : "refused";
  };
  EXPECT_EQ(bytes(0), "refused");
  EXPECT_EQ(bytes(1), "life-1B");
  EXPECT_EQ(bytes(64 << 20), "life-64MiB");
  EXPECT_EQ(bytes((32 << 20) - 1), "life-16MiB");
  EXPECT_EQ(bytes(32 << 20), "life-64MiB");
  EXPECT_EQ(bytes(UINT64_MAX), "life-4EiB");
  EXPECT_EQ(seconds(0), "refused");
  EXPECT_EQ(seconds(1), "life-1s");
  EXPECT_EQ(seconds(60), "life-64s");
  EXPECT_EQ(seconds(3600), "life-4096s");
  EXPECT_EQ(seconds(UINT64_MAX), "life-4611686018427387904s");
}

TEST(Hint, AVStreamAndTheDeviceCanBeAskedAboutThroughAnyFile) {
  const TemporaryFolder mount;
  const Fd file(mount.file("a"));
  stream_info info;
  const stream_vstream invoices = named("invoices");
  EXPECT_EQ(stream_measure_fd(file.get(), &invoices, &info), STREAM_HONOURED);
  EXPECT_EQ(info.lifetime_bytes, 12345u);
  const stream_vstream seven = numbered(7);
  EXPECT_EQ(stream_measure_path(mount.path().c_str(), &seven, &info), STREAM_HONOURED);
  const stream_vstream other = named("other");
  EXPECT_EQ(stream_measure_fd(file.get(), &other, &info), -ENOENT);
  EXPECT_EQ(info.lifetime_bytes, 0u);
  stream_device device;
  EXPECT_EQ(stream_device_path(mount.path().c_str(), &device), STREAM_HONOURED);
  EXPECT_EQ(device.pstreams, 8u);
  EXPECT_EQ(device.takes_labels, 1u);
  EXPECT_STREQ(device.mechanism, "emulated");
  EXPECT_EQ(stream_device_path("/", &device), STREAM_NOT_STREAMFS);
}

TEST(Hint, AFilesystemOlderThanTheLibraryIsSaidToBe) {
  const TemporaryFolder mount;
  fake_mount().older = true;
  const Fd file(mount.file("a"));
  const stream_vstream stream = named("invoices");
  stream_info info;
  stream_device device;
  EXPECT_EQ(stream_tag_fd(file.get(), &stream), STREAM_HONOURED) << "what it knows still works";
  EXPECT_EQ(stream_measure_fd(file.get(), &stream, &info), -ENOSYS);
  EXPECT_EQ(stream_device_fd(file.get(), &device), -ENOSYS);
  EXPECT_EQ(device.pstreams, 0u);
  fake_mount().older = false;
}

TEST(Hint, ATreeIsLabelledWithAllThatIsInItAndNoLinkIsFollowed) {
  const TemporaryFolder mount;
  const std::string top = mount.folder("top");
  mount.folder("top/deep");
  mount.file("top/a");
  mount.file("top/deep/b");
  const std::string outside = mount.file("outside");
  std::filesystem::create_symlink(outside, top + "/link");
  const stream_vstream stream = named("all");
  uint64_t labelled = 0;
  EXPECT_EQ(stream_tag_tree(top.c_str(), &stream, &labelled), STREAM_HONOURED);
  EXPECT_EQ(labelled, 4u);
  EXPECT_STREQ(fake_mount().files[top + "/deep/b"].name, "all");
  EXPECT_EQ(fake_mount().attributes[top + "/deep"], "all");
  EXPECT_EQ(fake_mount().files.count(outside), 0u);
  EXPECT_EQ(stream_tag_tree((top + "/none").c_str(), &stream, nullptr), -ENOENT);
  EXPECT_EQ(stream_tag_tree("/proc/self/attr", &stream, &labelled), STREAM_NOT_STREAMFS);
  EXPECT_EQ(labelled, 0u);
}

TEST(Hint, ClosedDescriptorsAreErrorsAndOthersKindsAreNothing) {
  const stream_vstream stream = named("any");
  stream_info info;
  stream_device device;
  const int closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(closed);
  for (const int fd : {closed, -1}) {
    EXPECT_EQ(stream_tag_fd(fd, &stream), -EBADF);
    EXPECT_EQ(stream_hint_fd(fd, STREAM_LIFE_SHORT), -EBADF);
    EXPECT_EQ(stream_clear_fd(fd), -EBADF);
    EXPECT_EQ(stream_query_fd(fd, &info), -EBADF);
    EXPECT_EQ(stream_measure_fd(fd, &stream, &info), -EBADF);
    EXPECT_EQ(stream_device_fd(fd, &device), -EBADF);
  }
  const Fd null("/dev/null");
  EXPECT_EQ(stream_hint_fd(null.get(), STREAM_LIFE_SHORT), STREAM_NOT_STREAMFS)
      << "a character device that is no NVMe namespace";
}

TEST(Hint, FilesAndDirectoriesAreNotMistakenForEachOther) {
  const TemporaryFolder mount;
  const std::string file = mount.file("f");
  const std::string folder = mount.folder("d");
  const stream_vstream stream = named("x");
  EXPECT_EQ(stream_tag_path(folder.c_str(), &stream), -EISDIR);
  EXPECT_EQ(stream_tag_fd(Fd(folder, O_RDONLY).get(), &stream), -EISDIR);
  EXPECT_EQ(stream_tag_directory(file.c_str(), &stream), -ENOTDIR);
  EXPECT_TRUE(fake_mount().asked.empty());
}

TEST(Hint, ElsewhereNothingIsDoneAndSaidSo) {
  const TemporaryFolder folder;
  fake_mount().root.clear();
  const std::string path = folder.file("a");
  const Fd file(path);
  const stream_vstream stream = named("x");
  stream_info info;
  EXPECT_EQ(stream_tag_fd(file.get(), &stream), STREAM_NOT_STREAMFS);
  EXPECT_EQ(stream_tag_path(path.c_str(), &stream), STREAM_NOT_STREAMFS);
  EXPECT_EQ(stream_tag_directory(folder.path().c_str(), &stream), STREAM_NOT_STREAMFS);
  EXPECT_EQ(stream_clear_directory(folder.path().c_str()), STREAM_NOT_STREAMFS);
  EXPECT_EQ(stream_hint_fd(file.get(), STREAM_LIFE_LONG), STREAM_NOT_STREAMFS);
  EXPECT_EQ(stream_clear_fd(file.get()), STREAM_NOT_STREAMFS);
  std::memset(&info, 0x7f, sizeof(info));
  EXPECT_EQ(stream_query_fd(file.get(), &info), STREAM_NOT_STREAMFS);
  EXPECT_EQ(info.vstream, 0u);
  EXPECT_STREQ(info.name, "");
}

TEST(Hint, PipesSocketsAndDevicesAreNeverAsked) {
  const TemporaryFolder mount;
  fake_mount().root = "/";
  int pipes[2], sockets[2];
  ASSERT_EQ(pipe(pipes), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  const Fd ends[] = {Fd(pipes[0]), Fd(pipes[1]), Fd(sockets[0]), Fd(sockets[1]), Fd("/dev/null")};
  for (const Fd& end : ends) {
    EXPECT_EQ(stream_hint_fd(end.get(), STREAM_LIFE_SHORT), STREAM_NOT_STREAMFS);
  }
  EXPECT_EQ(stream_hint_path("/dev/null", STREAM_LIFE_SHORT), STREAM_NOT_STREAMFS);
  EXPECT_TRUE(fake_mount().asked.empty());
}

TEST(Hint, WhatCannotBeDoneIsAnErrnoAndErrnoItselfIsLeftAlone) {
  const TemporaryFolder mount;
  const std::string path = mount.file("a");
  const Fd file(path);
  const stream_vstream stream = named("x");
  errno = 4711;
  EXPECT_EQ(stream_tag_fd(-1, &stream), -EBADF);
  EXPECT_EQ(stream_tag_path("/nonexistent/a", &stream), -ENOENT);
  EXPECT_EQ(stream_tag_directory("/nonexistent/a", &stream), -ENOENT);
  fake_mount().errno_of_every_answer = ENOSPC;
  EXPECT_EQ(stream_tag_fd(file.get(), &stream), -ENOSPC);
  EXPECT_EQ(stream_hint_path(path.c_str(), STREAM_LIFE_LONG), -ENOSPC);
  fake_mount().errno_of_every_answer = ENOTTY;
  EXPECT_EQ(stream_tag_fd(file.get(), &stream), STREAM_NOT_STREAMFS);
  EXPECT_EQ(errno, 4711);
}

TEST(Hint, AMountThatTakesNoLabelsIsNotSaidToHaveHonouredOne) {
  const TemporaryFolder mount;
  const Fd file(mount.file("a"));
  fake_mount().takes_labels = false;
  const stream_vstream by_name = named("x");
  const stream_vstream by_number = numbered(7);
  stream_info info;
  EXPECT_EQ(stream_tag_fd(file.get(), &by_name), -EOPNOTSUPP);
  EXPECT_EQ(stream_tag_fd(file.get(), &by_number), -EOPNOTSUPP);
  EXPECT_EQ(stream_hint_fd(file.get(), STREAM_LIFE_SHORT), -EOPNOTSUPP);
  EXPECT_EQ(stream_tag_directory(mount.path().c_str(), &by_name), -EOPNOTSUPP);
  EXPECT_EQ(stream_query_fd(file.get(), &info), STREAM_HONOURED);
  fake_mount().errno_of_every_answer = EOPNOTSUPP;
  EXPECT_EQ(stream_hint_fd(file.get(), STREAM_LIFE_SHORT), -EOPNOTSUPP);
}

TEST(Hint, NamesThatTheFilesystemCouldNotKeepAreRefused) {
  stream_vstream stream;
  EXPECT_EQ(stream_open(&stream, ""), -EINVAL);
  EXPECT_EQ(stream_open(&stream, "a/b"), -EINVAL);
  EXPECT_EQ(stream_open(&stream, "a\n"), -EINVAL);
  EXPECT_EQ(stream_open(&stream, "42"), -EINVAL) << "an attribute of 42 is a number";
  EXPECT_EQ(stream_open(&stream, std::string(32, 'a').c_str()), -ENAMETOOLONG);
  EXPECT_EQ(stream_open(&stream, std::string(31, 'a').c_str()), 0);
  EXPECT_EQ(stream_open(&stream, "fürs-archiv 2"), 0);
  EXPECT_EQ(stream_open_number(&stream, 0), -EINVAL);
  EXPECT_EQ(stream_open_number(&stream, 65536), -EINVAL);
}

TEST(Hint, AStructFilledByHandIsCheckedBeforeUse) {
  const TemporaryFolder mount;
  const Fd file(mount.file("a"));
  stream_vstream stream{};
  EXPECT_EQ(stream_tag_fd(file.get(), &stream), -EINVAL);
  stream.number = 70000;
  EXPECT_EQ(stream_tag_fd(file.get(), &stream), -EINVAL);
  std::memset(stream.name, 'a', sizeof(stream.name));
  EXPECT_EQ(stream_tag_path(mount.file("a").c_str(), &stream), -EINVAL) << "no closing NUL";
  EXPECT_EQ(stream_tag_directory(mount.path().c_str(), &stream), -EINVAL);
}

TEST(Hint, AnotherFilesystemIsAskedOnceASecondAndAMountInItsPlaceIsNoticed) {
  const TemporaryFolder folder;
  const Fd file(folder.file("a"));
  fake_mount().root.clear();
  fake_mount().questions_elsewhere = 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));  // forget earlier tests' answers
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) stream_hint_fd(file.get(), STREAM_LIFE_SHORT);
  const auto seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(fake_mount().questions_elsewhere, 1);
  EXPECT_LE(fake_mount().questions_elsewhere, 2 + seconds);
  fake_mount().root = folder.path();
  fake_mount().device = 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  EXPECT_EQ(stream_hint_fd(file.get(), STREAM_LIFE_SHORT), STREAM_HONOURED);
}

TEST(Hint, ThreadsMayAskAtTheSameTime) {
  const TemporaryFolder folder;
  const Fd file(folder.file("a"));
  fake_mount().root.clear();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        wrong += stream_hint_fd(file.get(), STREAM_LIFE_SHORT) != STREAM_NOT_STREAMFS;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
