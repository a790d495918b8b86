// Making and opening pairs of real files.
#include "fuse-fs/pair/pair.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/format_pair.h"

namespace streamfs::data {
namespace {

class Pair : public testing::Test {
 protected:
  Pair() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "streamfs-pair-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Pair() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string data(const std::string& name, uint64_t bytes = 64 << 20) const {
    const std::string file = path(name);
    std::ofstream(file).flush();
    std::filesystem::resize_file(file, bytes);
    return file;
  }
  static pair::FormatPairOptions options(bool force = false) {
    pair::FormatPairOptions out;
    out.force = force;
    out.meta_size = 16 << 20;
    out.meta_log = false;
    out.wait_seconds = 0;
    return out;
  }
  Result<pair::Formatted> format(const std::string& meta, const std::string& device,
                                 bool force = false) {
    return pair::format_pair(meta, device, options(force), system_clock());
  }
  static Result<std::unique_ptr<Filesystem>> mount(const std::string& meta,
                                                   const std::string& device) {
    MountOptions options;
    options.wait_seconds = 0;
    return Filesystem::mount(meta, device, options, system_clock());
  }
  std::filesystem::path folder_;
};

TEST_F(Pair, AFileOutlivesUnmountAndMount) {
  const std::string device = data("d");
  ASSERT_TRUE(format(path("m"), device).ok());
  const std::vector<std::byte> bytes(100'000, std::byte{'x'});
  {
    auto fs = mount(path("m"), device);
    ASSERT_TRUE(fs.ok()) << fs.error().message();
    const InodeId id = (*fs)->create((*fs)->root(), "f", 0100644, 0, {}, {})->id;
    ASSERT_TRUE((*fs)->write(id, 0, bytes).ok());
    ASSERT_TRUE((*fs)->unmount().ok());
  }
  auto fs = mount(path("m"), device);
  ASSERT_TRUE(fs.ok());
  std::vector<std::byte> out(100'000);
  EXPECT_EQ((*fs)->read((*fs)->lookup((*fs)->root(), "f")->id, 0, out).value(), out.size());
  EXPECT_EQ(out, bytes);
  EXPECT_TRUE((*fs)->unmount().ok());
}

TEST_F(Pair, AReadOnlyMountReadsAndRefuses) {
  const std::string device = data("d");
  ASSERT_TRUE(format(path("m"), device).ok());
  MountOptions options;
  options.read_only = true;
  auto fs = Filesystem::mount(path("m"), device, options, system_clock());
  ASSERT_TRUE(fs.ok()) << fs.error().message();
  EXPECT_EQ((*fs)->create((*fs)->root(), "f", 0100644, 0, {}, {}).error().code, EROFS);
  EXPECT_TRUE((*fs)->unmount().ok());
}

TEST_F(Pair, WrongPairsAreRefusedWithASentence) {
  const std::string a = data("a"), b = data("b");
  ASSERT_TRUE(format(path("ma"), a).ok());
  ASSERT_TRUE(format(path("mb"), b).ok());
  const auto error = [&](const std::string& meta, const std::string& device) {
    const auto fs = mount(meta, device);
    EXPECT_FALSE(fs.ok());
    return fs.ok() ? Error{0} : fs.error();
  };
  EXPECT_EQ(error(path("ma"), b).code, EMEDIUMTYPE);
  EXPECT_NE(error(path("ma"), b).context.find("different filesystems"), std::string::npos);
  EXPECT_EQ(error(a, path("ma")).code, EMEDIUMTYPE);
  EXPECT_NE(error(a, path("ma")).context.find("--meta"), std::string::npos);
  EXPECT_EQ(error(path("ma"), data("empty")).code, EMEDIUMTYPE);
  EXPECT_EQ(error(data("m-empty", 16 << 20), a).code, EMEDIUMTYPE);
  EXPECT_EQ(error(path("absent"), a).code, ENOENT);
}

TEST_F(Pair, WhatIsThereIsNotOverwrittenUnasked) {
  const std::string device = data("d");
  ASSERT_TRUE(format(path("m"), device).ok());
  EXPECT_EQ(format(path("m2"), device).error().code, EEXIST);
  EXPECT_FALSE(std::filesystem::exists(path("m2"))) << "and nothing is left behind";
  EXPECT_EQ(format(path("m"), data("d2")).error().code, EEXIST);
  EXPECT_TRUE(format(path("m"), device, true).ok());
}

TEST_F(Pair, AForeignSignatureIsSeenAndWipedByForce) {
  const std::string device = data("d");
  {  // the magic of an ext superblock is not enough for libblkid; swap space is simple
    std::fstream file(device, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4086);
    file << "SWAPSPACE2";
    file.seekp(1024);
    const char version[12] = {1, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0};
    file.write(version, sizeof version);
  }
  const auto refused = format(path("m"), device);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().context.find("swap"), std::string::npos) << refused.error().context;
  ASSERT_TRUE(format(path("m"), device, true).ok());
  std::ifstream file(device, std::ios::binary);
  file.seekg(4086);
  std::string left(10, 'x');
  file.read(left.data(), 10);
  EXPECT_NE(left, "SWAPSPACE2");
}

// A filesystem with a metadata log and one file, unmounted.
class LoggedPair : public Pair {
 protected:
  void make(const std::string& meta) {
    pair::FormatPairOptions logged = options();
    logged.meta_log = true;
    const auto made = pair::format_pair(meta, device_, logged, system_clock());
    ASSERT_TRUE(made.ok()) << made.error().message();
    add_file(meta, "first");
  }
  void add_file(const std::string& meta, const std::string& name) {
    auto fs = mount(meta, device_);
    ASSERT_TRUE(fs.ok()) << fs.error().message();
    ASSERT_TRUE((*fs)->create((*fs)->root(), name, 0100644, 0, {}, {}).ok());
    ASSERT_TRUE((*fs)->unmount().ok());
  }
  Error refusal(const std::string& meta, const std::string& device) {
    const auto fs = mount(meta, device);
    EXPECT_FALSE(fs.ok());
    return fs.ok() ? Error{0} : fs.error();
  }
  Result<pair::OpenPair> restored(const std::string& meta) {
    MountOptions rebuild;
    rebuild.wait_seconds = 0;
    rebuild.restore_meta = true;
    return pair::open_pair(meta, device_, rebuild);
  }
  static bool says(const Error& error, const char* what) {
    return error.context.find(what) != std::string::npos;
  }
  const std::string device_ = data("d");
};

TEST_F(LoggedPair, AMetaThatIsNotThereIsNeitherMadeNorMistaken) {
  make(path("m"));
  const Error missing = refusal(path("typo"), device_);
  EXPECT_EQ(missing.code, ENOENT);
  EXPECT_TRUE(says(missing, "fsck.streamfs --restore --meta")) << missing.context;
  EXPECT_FALSE(std::filesystem::exists(path("typo")));
  EXPECT_EQ(refusal(data("empty", 16 << 20), device_).code, EMEDIUMTYPE);
  add_file(path("m"), "second");
}

TEST_F(LoggedPair, ALostMetaComesBackWhenAskedFor) {
  make(path("m"));
  std::filesystem::remove(path("m"));
  {
    const auto pair = restored(path("new"));
    ASSERT_TRUE(pair.ok()) << pair.error().message();
  }
  EXPECT_EQ(restored(path("new")).error().code, EEXIST) << "it is whole";
  auto fs = mount(path("new"), device_);
  ASSERT_TRUE(fs.ok()) << fs.error().message();
  EXPECT_TRUE((*fs)->lookup((*fs)->root(), "first").ok());
  EXPECT_TRUE((*fs)->unmount().ok());
}

TEST_F(LoggedPair, AnotherFileIsNotTakenForALostMeta) {
  make(path("m"));
  const std::string mine = path("mine");
  std::ofstream(mine) << std::string(16 << 20, 'x');
  EXPECT_EQ(restored(mine).error().code, EMEDIUMTYPE);
  std::ifstream file(mine);
  EXPECT_EQ(file.get(), 'x');
}

TEST_F(LoggedPair, AnOlderCopyOfMetaIsRefusedAndCanBeRebuilt) {
  make(path("m"));
  std::filesystem::copy_file(path("m"), path("old"));
  add_file(path("m"), "second");
  const Error older = refusal(path("old"), device_);
  EXPECT_EQ(older.code, EMEDIUMTYPE);
  EXPECT_TRUE(says(older, "older copy") && says(older, "--restore")) << older.context;
  {
    const auto pair = restored(path("old"));
    ASSERT_TRUE(pair.ok()) << pair.error().message();
  }
  add_file(path("old"), "third");
  EXPECT_TRUE(says(refusal(path("m"), device_), "older copy")) << "there is one line of descent";
}

TEST_F(LoggedPair, AVolatileMetaComesBackInAVolatilePlaceOnly) {
  const std::string memory = "/dev/shm/streamfs-pair-" + std::to_string(::getpid());
  make(memory);
  std::filesystem::remove(memory);
  const Error elsewhere = refusal(path("disk"), device_);
  EXPECT_EQ(elsewhere.code, ENOENT);
  EXPECT_FALSE(std::filesystem::exists(path("disk")));
  add_file(memory, "second");
  std::filesystem::remove(memory);
}

TEST_F(Pair, AnOlderCopyOfEitherHalfIsRefused) {
  const std::string device = data("d");
  ASSERT_TRUE(format(path("m"), device).ok());
  const auto mount_once = [&] {
    auto fs = mount(path("m"), device);
    ASSERT_TRUE(fs.ok()) << fs.error().message();
    ASSERT_TRUE((*fs)->unmount().ok());
  };
  mount_once();
  std::filesystem::copy_file(path("m"), path("old-m"));
  std::filesystem::copy_file(device, path("old-d"));
  mount_once();
  const auto error = [&](const std::string& meta, const std::string& on) {
    const auto fs = mount(meta, on);
    return fs.ok() ? std::string() : fs.error().context;
  };
  EXPECT_NE(error(path("old-m"), device).find("older copy of this filesystem's META"),
            std::string::npos);
  EXPECT_NE(error(path("m"), path("old-d")).find("older copy of this filesystem's DATA"),
            std::string::npos);
  mount_once();
}

// META is written first: a cut between the two halves leaves it ahead by one.
TEST_F(Pair, ACutBetweenTheTwoHalvesStillMounts) {
  const std::string device = data("d");
  ASSERT_TRUE(format(path("m"), device).ok());
  for (int cut = 0; cut < 2; ++cut) {
    MountOptions options;
    options.wait_seconds = 0;
    auto pair = pair::open_pair(path("m"), device, options);
    ASSERT_TRUE(pair.ok()) << pair.error().message();
    ++pair->super.attachments;
    ASSERT_TRUE(meta::store_superblock(*pair->region, pair->super).ok());
    pair = Error{EIO};
    auto fs = mount(path("m"), device);
    ASSERT_TRUE(fs.ok()) << fs.error().message();
    ASSERT_TRUE((*fs)->unmount().ok());
  }
}

TEST_F(Pair, CutsOneAfterTheOtherBetweenTheTwoHalvesStillMount) {
  const std::string device = data("d");
  ASSERT_TRUE(format(path("m"), device).ok());
  ASSERT_TRUE((*mount(path("m"), device))->unmount().ok());  // mkfs writes no count to DATA
  bool level = true;  // DATA's count is META's: a mount writes it once, and else twice
  for (const uint64_t writes : {0U, 1U, 0U, 0U, 1U, 1U, 2U, 1U, 0U}) {
    MountOptions options;
    options.wait_seconds = 0;
    auto pair = pair::open_pair(path("m"), device, options);
    ASSERT_TRUE(pair.ok()) << pair.error().message();
    auto faulty = std::make_unique<blockdev::FaultyDevice>(std::move(pair->device), false);
    faulty->set_faults({.fail_writes_after = writes});
    pair->device = std::move(faulty);
    const uint64_t needed = level ? 1 : 2;
    level = pair::attach(*pair).ok();
    EXPECT_EQ(level, writes >= needed);
  }
  auto fs = mount(path("m"), device);
  ASSERT_TRUE(fs.ok()) << fs.error().message();
  ASSERT_TRUE((*fs)->unmount().ok());
}

TEST_F(Pair, ADryRunWritesNothing) {
  const std::string device = data("d");
  pair::FormatPairOptions dry = options();
  dry.dry_run = true;
  const auto planned = pair::format_pair(path("m"), device, dry, system_clock());
  ASSERT_TRUE(planned.ok());
  EXPECT_GT(planned->inodes_possible, 1000U);
  EXPECT_FALSE(std::filesystem::exists(path("m")));
  EXPECT_TRUE(format(path("m"), device).ok()) << "still empty";
}

TEST_F(Pair, ACopiedPairStillMounts) {
  const std::string device = data("d");
  ASSERT_TRUE(format(path("m"), device).ok());
  std::filesystem::copy_file(device, path("copy"));
  auto fs = mount(path("m"), path("copy"));
  ASSERT_TRUE(fs.ok()) << fs.error().message();
  EXPECT_TRUE((*fs)->unmount().ok());
}

}  // namespace
}  // namespace streamfs::data
