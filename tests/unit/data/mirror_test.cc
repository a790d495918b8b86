// A META that is kept twice, in real files: which copy a mount believes, and what becomes of the
// other.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/format_pair.h"
#include "fuse-fs/pair/pair.h"

namespace streamfs::data {
namespace {

namespace fs = std::filesystem;

class MirroredPair : public testing::Test {
 protected:
  MirroredPair() {
    std::string pattern = (fs::temp_directory_path() / "streamfs-mirror-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    device_ = data("d");
    a_ = path("a");
    b_ = path("b");
    EXPECT_TRUE(make(a_, b_, device_).ok());
  }
  ~MirroredPair() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string data(const std::string& name) const {
    std::ofstream(path(name)).flush();
    fs::resize_file(path(name), 64 << 20);
    return path(name);
  }
  static Result<pair::Formatted> make(const std::string& meta, const std::string& mirror,
                                      const std::string& device) {
    pair::FormatPairOptions out;
    out.meta_size = 12 << 20;
    out.meta_log = false;
    out.wait_seconds = 0;
    out.mirror_path = mirror;
    return pair::format_pair(meta, device, out, system_clock());
  }
  MountOptions options(const std::string& mirror) const {
    MountOptions out;
    out.wait_seconds = 0;
    out.mirror_path = mirror;
    out.degraded = mirror.empty();
    return out;
  }
  using Mounted = std::unique_ptr<Filesystem>;
  Result<Mounted> mount(const std::string& meta, const std::string& mirror) {
    return Filesystem::mount(meta, device_, options(mirror), system_clock());
  }
  // Makes a file that is durable; the server is then killed, or unmounts.
  void use(const std::string& meta, const std::string& mirror, const std::string& name,
           bool kill = false) {
    auto mounted = mount(meta, mirror);
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
    const InodeId root = (*mounted)->root();
    const auto made = (*mounted)->create(root, name, 0100644, 0, {}, {});
    ASSERT_TRUE(made.ok()) << made.error().message();
    ASSERT_TRUE((*mounted)->fsync(made->id, false).ok());
    if (kill) return;
    ASSERT_TRUE((*mounted)->unmount().ok());
  }
  // Returns the names that a mount of these finds; with "" as mirror, a mount of one copy alone.
  std::string found(const std::string& meta, const std::string& mirror, std::string* state) {
    auto mounted = mount(meta, mirror);
    if (!mounted.ok()) return mounted.error().message();
    std::string names;
    const auto read =
        (*mounted)->read_directory((*mounted)->root(), 0, [&](const meta::DirectoryEntry& entry) {
          if (entry.name != "." && entry.name != "..") names += std::string(entry.name) + " ";
          return true;
        });
    EXPECT_TRUE(read.ok());
    const Status status = (*mounted)->status().value();
    EXPECT_TRUE(status.mirrored);
    if (state != nullptr) *state = status.mirror_degraded;
    EXPECT_TRUE((*mounted)->unmount().ok());
    return names;
  }
  std::string found(const std::string& meta, const std::string& mirror) {
    std::string degraded;
    std::string names = found(meta, mirror, &degraded);
    EXPECT_EQ(degraded.empty(), !mirror.empty()) << degraded;
    return names;
  }
  Error refusal(const std::string& meta, const MountOptions& options) {
    const auto mounted = Filesystem::mount(meta, device_, options, system_clock());
    EXPECT_FALSE(mounted.ok());
    return mounted.ok() ? Error{0} : mounted.error();
  }
  static bool says(const Error& error, const char* what) {
    return error.context.find(what) != std::string::npos;
  }
  static void wipe(const std::string& file) {
    const auto size = fs::file_size(file);
    fs::resize_file(file, 0);
    fs::resize_file(file, size);
  }
  // As a mount that the power leaves after META's attachment and before DATA's.
  void attach_only(const std::string& meta) {
    auto pair = pair::open_pair(meta, device_, options(""));
    ASSERT_TRUE(pair.ok()) << pair.error().message();
    pair->super.mirror_token += 77;
    ++pair->super.attachments;
    ASSERT_TRUE(meta::store_superblock(*pair->region, pair->super).ok());
  }
  void change_superblock(const std::string& meta, const std::function<void(meta::Superblock&)>& f) {
    auto region = pmem::open_region(meta, {}).value();
    meta::Superblock super = meta::load_superblock(*region, false).value();
    f(super);
    ASSERT_TRUE(meta::store_superblock(*region, super).ok());
  }

  fs::path folder_;
  std::string device_, a_, b_;
};

TEST_F(MirroredPair, EitherCopyAloneHasEverythingAfterAKill) {
  for (const bool lose_first : {true, false}) {
    const std::string& lost = lose_first ? a_ : b_;
    const std::string name = lose_first ? "one" : "two";
    use(a_, b_, name, true);
    fs::rename(lost, path("away"));
    std::string degraded;
    EXPECT_NE(found(a_, b_, &degraded).find(name), std::string::npos);
    EXPECT_NE(degraded.find(lost), std::string::npos) << "and it is said what is missing";
    fs::rename(path("away"), lost);  // stale by now
    EXPECT_NE(found(a_, b_).find(name), std::string::npos) << "in step again";
  }
  EXPECT_EQ(found(a_, b_), "one two ");
}

TEST_F(MirroredPair, ACopyThatStoodStillIsMadeAnewAndNeverBelieved) {
  use(a_, b_, "old");
  fs::copy_file(b_, path("stale"));
  use(a_, b_, "new");
  fs::copy_file(path("stale"), b_, fs::copy_options::overwrite_existing);
  EXPECT_EQ(found(b_, a_), "old new ") << "whatever place it is named in";
  wipe(a_);
  EXPECT_EQ(found(a_, b_), "old new ");
  fs::remove(b_);
  std::string degraded;
  EXPECT_EQ(found(a_, b_, &degraded), "old new ");
  EXPECT_NE(degraded, "");
  EXPECT_FALSE(fs::exists(b_)) << "what is missing is not made unasked";
}

TEST_F(MirroredPair, ACopyThatWentOnAloneIsTheOneThatCounts) {
  use(a_, b_, "both");
  use(b_, "", "alone", true);
  EXPECT_EQ(found(a_, b_), "both alone ");
  EXPECT_EQ(found(a_, ""), "both alone ");
}

TEST_F(MirroredPair, TwoCopiesCannotBothGoOnAlone) {
  use(a_, b_, "both");
  use(a_, "", "on-a");
  const Error refused = refusal(b_, options(""));
  EXPECT_EQ(refused.code, EMEDIUMTYPE);
  EXPECT_TRUE(says(refused, "older copy")) << refused.context;
}

// The first was attached alone, but never used: the power went before DATA knew of it.
TEST_F(MirroredPair, AnAttachmentThatDATADoesNotKnowForksNothing) {
  use(a_, b_, "both");
  attach_only(a_);
  use(b_, "", "on-b", true);
  EXPECT_TRUE(says(refusal(a_, options("")), "older copy"));
  EXPECT_EQ(found(a_, b_), "both on-b ");
}

TEST_F(MirroredPair, PlacesMayBeSwapped) {
  use(a_, b_, "one");
  use(b_, a_, "two");
  EXPECT_EQ(found(a_, b_), "one two ");
}

TEST_F(MirroredPair, OneOfTwoIsNotForgottenByMistake) {
  MountOptions forgotten = options("");
  forgotten.degraded = false;
  const Error refused = refusal(a_, forgotten);
  EXPECT_EQ(refused.code, EMEDIUMTYPE);
  EXPECT_TRUE(says(refused, "mirror=") && says(refused, "degraded")) << refused.context;
}

TEST_F(MirroredPair, WhatIsNoCopyIsRefusedWithASentenceAndLeftAlone) {
  EXPECT_TRUE(says(refusal(a_, options(a_)), "the same"));
  const std::string other_device = data("d2");
  ASSERT_TRUE(make(path("c"), path("e"), other_device).ok());
  EXPECT_TRUE(says(refusal(a_, options(path("c"))), "another filesystem"));
  EXPECT_TRUE(says(refusal(path("c"), options(path("e"))), "another filesystem"));
  const std::string mine = path("mine");
  std::ofstream(mine) << std::string(12 << 20, 'x');
  EXPECT_EQ(refusal(a_, options(mine)).code, EMEDIUMTYPE);
  EXPECT_EQ(std::ifstream(mine).get(), 'x');
  std::ofstream(path("short")) << std::string(9000, 'x');
  EXPECT_EQ(refusal(a_, options(path("short"))).code, EMEDIUMTYPE);
  EXPECT_EQ(refusal(a_, options(device_)).code, EBUSY);
  EXPECT_EQ(make(path("f"), path("f"), data("d3")).error().code, EMEDIUMTYPE);
  EXPECT_EQ(make(path("g"), mine, data("d4")).error().code, EEXIST);
  EXPECT_FALSE(fs::exists(path("g")));
}

TEST_F(MirroredPair, TheSmallerPlaceMustHoldThePlan) {
  std::ofstream(path("small")) << std::string();
  fs::resize_file(path("small"), 256 << 10);
  const auto refused = make(path("big"), path("small"), data("d2"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ENOSPC);
}

TEST_F(MirroredPair, AnUnfinishedCopyIsMadeAgain) {
  use(a_, b_, "one", true);
  {
    auto region = pmem::open_region(b_, {}).value();
    for (const uint64_t at : meta::kSuperOffset) region->store_word(at, wire::kUnfinishedMagic);
    for (uint64_t at = 5 << 20; at < 6 << 20; at += kWordSize) region->store_word(at, 1);
  }
  EXPECT_EQ(found(a_, b_), "one ");
  EXPECT_EQ(found(b_, ""), "one ");
}

TEST_F(MirroredPair, DamagedSuperblocksAreReplacedByTheOtherCopys) {
  use(a_, b_, "one");
  {
    auto region = pmem::open_region(a_, {}).value();
    for (const uint64_t at : meta::kSuperOffset) region->store_word(at + 96, 1);
  }
  EXPECT_EQ(found(a_, b_), "one ");
  fs::remove(b_);
  EXPECT_EQ(found(a_, ""), "one ");
}

TEST_F(MirroredPair, AReadOnlyMountLeavesAnOlderCopyAsItIs) {
  use(a_, b_, "both");
  use(a_, "", "alone");
  const auto before = fs::last_write_time(b_);
  MountOptions looking = options(b_);
  looking.read_only = true;
  auto mounted = Filesystem::mount(a_, device_, looking, system_clock());
  ASSERT_TRUE(mounted.ok()) << mounted.error().message();
  EXPECT_TRUE((*mounted)->lookup((*mounted)->root(), "alone").ok());
  EXPECT_NE((*mounted)->status()->mirror_degraded, "");
  EXPECT_TRUE((*mounted)->unmount().ok());
  EXPECT_EQ(fs::last_write_time(b_), before);
}

// The power went between the copies' stores of the same superblock: nothing is older.
TEST_F(MirroredPair, ACutBetweenTheSuperblocksOfTheCopiesLeavesThemInStep) {
  use(a_, b_, "one", true);
  for (const std::string& ahead : {a_, b_}) {
    const uint8_t clean = ahead == a_ ? 1 : 0;
    change_superblock(ahead, [clean](meta::Superblock& super) { super.clean = clean; });
    auto pair = pair::open_pair(a_, device_, options(b_));
    ASSERT_TRUE(pair.ok()) << pair.error().message();
    EXPECT_EQ(pair->region->copies(), 2U);
    EXPECT_EQ(pair->super.clean, clean);
    EXPECT_TRUE(pair->region->alike(0, kBlockSize) && pair->region->alike(64 << 10, kBlockSize));
  }
}

// No ring tells which pages of a plain file were not written back when the machine went down.
TEST_F(MirroredPair, AfterARebootWithoutUnmountTheSecondIsMadeAnew) {
  use(a_, b_, "one", true);
  for (const std::string& copy : {a_, b_})
    change_superblock(copy, [](meta::Superblock& super) { super.boot ^= 1; });
  {
    auto region = pmem::open_region(b_, {}).value();
    const auto geometry = meta::Geometry::from(meta::load_superblock(*region, false).value());
    const uint64_t lost = geometry->unit_offset(5);
    region->store(lost, std::vector<uint64_t>(kBlockSize / kWordSize));
    region->store_word(geometry->region_offset(meta::RegionKind::kBlockBitmap, 0), 0);
  }
  EXPECT_EQ(found(a_, b_), "one ");
  use(b_, "", "two");
}

TEST_F(MirroredPair, AFilesystemWithoutGetsASecondCopyWhenAskedFor) {
  device_ = data("d2");
  pair::FormatPairOptions once;
  once.meta_size = 12 << 20;
  once.meta_log = false;
  ASSERT_TRUE(pair::format_pair(path("c"), device_, once, system_clock()).ok());
  use(path("c"), "", "one");
  EXPECT_TRUE(says(refusal(path("c"), options(path("e"))), "--resync"));
  MountOptions asked = options(path("e"));
  asked.make_mirror = true;
  ASSERT_TRUE(pair::open_pair(path("c"), device_, asked).ok());
  EXPECT_EQ(found(path("c"), path("e")), "one ");
  EXPECT_EQ(found(path("e"), ""), "one ");
}

}  // namespace
}  // namespace streamfs::data
