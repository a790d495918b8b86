// Trees of links as Linux 7.2 has them for NVDIMMs.
#include "pmem/persistence_domain.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace streamfs::pmem {
namespace {

namespace fs = std::filesystem;

class PersistenceDomain : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "streamfs-sys-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    sys_ = fs::canonical(pattern);
  }
  void TearDown() override { fs::remove_all(sys_); }

  fs::path region(const std::string& name, const std::string& domain) const {
    const fs::path path = sys_ / "devices/platform/ACPI0012:00/ndbus0" / name;
    fs::create_directories(path);
    std::ofstream(path / "persistence_domain") << domain << '\n';
    return path;
  }
  fs::path device(const fs::path& path, const char* kind, unsigned minor_number) const {
    fs::create_directories(path);
    const fs::path numbers = sys_ / "dev" / kind;
    fs::create_directories(numbers);
    fs::create_directory_symlink(path, numbers / ("250:" + std::to_string(minor_number)));
    return path;
  }
  std::string domain(const char* kind, unsigned minor_number) const {
    return persistence_domain(sys_, kind, makedev(250, minor_number));
  }

  fs::path sys_;
};

TEST_F(PersistenceDomain, OfADevdaxDeviceIsItsRegions) {
  device(region("region0", "memory_controller") / "dax0.1/dax0.0", "char", 0);
  device(region("region1", "cpu_cache") / "dax1.1/dax1.0", "char", 1);
  EXPECT_EQ(domain("char", 0), kDomainMemoryController);
  EXPECT_EQ(domain("char", 1), kDomainCpuCache);
}

TEST_F(PersistenceDomain, OfABlockDeviceAndItsPartitionIsTheirRegions) {
  const fs::path disk = device(region("region1", "cpu_cache") / "pfn1.0/block/pmem1", "block", 0);
  device(disk / "pmem1p1", "block", 1);
  EXPECT_EQ(domain("block", 0), kDomainCpuCache);
  EXPECT_EQ(domain("block", 1), kDomainCpuCache);
}

TEST_F(PersistenceDomain, OfAMappedDeviceIsTheWorstBeneathIt) {
  const fs::path good = device(region("region0", "cpu_cache") / "block/pmem0", "block", 0);
  const fs::path less = device(region("region1", "memory_controller") / "block/pmem1", "block", 1);
  const fs::path disk = device(sys_ / "devices/pci0000:00/nvme0n1", "block", 2);
  unsigned number = 3;
  const auto mapped = [&](const fs::path& one, const fs::path& other) {
    const fs::path slaves =
        device(sys_ / "devices/virtual/block" / ("dm-" + std::to_string(number)), "block", number) /
        "slaves";
    fs::create_directories(slaves);
    fs::create_directory_symlink(one, slaves / "a");
    fs::create_directory_symlink(other, slaves / "b");
    return domain("block", number++);
  };
  // Either order, because a folder may be read in any.
  EXPECT_EQ(mapped(good, less), kDomainMemoryController);
  EXPECT_EQ(mapped(less, good), kDomainMemoryController);
  EXPECT_EQ(mapped(good, disk), kDomainUnknown);
  EXPECT_EQ(mapped(disk, good), kDomainUnknown);
  EXPECT_EQ(mapped(good, good), kDomainCpuCache);
}

TEST_F(PersistenceDomain, OfAnythingElseIsUnknown) {
  device(sys_ / "devices/pci0000:00/nvme0n1", "block", 0);
  device(region("region0", "something new") / "block/pmem0", "block", 1);
  const fs::path circle = device(sys_ / "devices/virtual/block/dm-0", "block", 2);
  fs::create_directories(circle / "slaves");
  fs::create_directory_symlink(circle, circle / "slaves/dm-0");
  for (const unsigned number : {0U, 1U, 2U, 3U}) EXPECT_EQ(domain("block", number), kDomainUnknown);
}

}  // namespace
}  // namespace streamfs::pmem
