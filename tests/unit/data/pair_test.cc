// Making and opening pairs of real files.
#include "fuse-fs/data/pair.h"

#include <gtest/gtest.h>
#include <stdlib.h>

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
#include "fuse-fs/data/format_pair.h"

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
  static FormatPairOptions options(bool force = false) {
    FormatPairOptions out;
    out.force = force;
    out.meta_size = 16 << 20;
    out.meta_log = false;
    out.wait_seconds = 0;
    return out;
  }
  Result<Formatted> format(const std::string& meta, const std::string& device, bool force = false) {
    return format_pair(meta, device, options(force), system_clock());
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
  EXPECT_NE(error(a, path("ma")).context.find("META first"), std::string::npos);
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

TEST_F(Pair, ADryRunWritesNothing) {
  const std::string device = data("d");
  FormatPairOptions dry = options();
  dry.dry_run = true;
  const auto planned = format_pair(path("m"), device, dry, system_clock());
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
