// An unmounted filesystem that is given an intent log or loses it, cut at any point in between.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/format_pair.h"
#include "fuse-fs/pair/pair.h"
#include "fuse-fs/pair/tune_pair.h"
#include "pmem/recording_region.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

namespace fs = std::filesystem;
using pair::TuneOptions;

constexpr uint64_t kMetaBytes = 4 << 20, kLogBytes = 1 << 20;
constexpr size_t kBytes = 100'000;

TuneOptions enable(std::optional<uint64_t> bytes = kLogBytes) {
  TuneOptions options;
  options.intent_log = TuneOptions::IntentLog::kEnable;
  options.intent_log_bytes = bytes;
  return options;
}

TuneOptions disable() {
  TuneOptions options;
  options.intent_log = TuneOptions::IntentLog::kDisable;
  return options;
}

// META and DATA in files; META is in memory, which may be declared persistent.
class Tune : public testing::Test {
 protected:
  Tune() : folder_(make_folder("/dev/shm")), meta_(folder_ / "META"), data_(folder_ / "DATA") {
    std::ofstream(data_).flush();
    fs::resize_file(data_, 64 << 20);
    make(true);
  }
  ~Tune() override { fs::remove_all(folder_); }
  static fs::path make_folder(const fs::path& parent) {
    std::string pattern = (parent / "streamfs-tune-XXXXXX").string();
    return ::mkdtemp(pattern.data());
  }
  void make(bool meta_log) {
    pair::FormatPairOptions format;
    format.force = true;
    format.meta_size = kMetaBytes;
    format.meta_log = meta_log;
    ASSERT_TRUE(pair::format_pair(meta_, data_, format, system_clock()).ok());
    use([](Filesystem& mounted) {
      const InodeId id = mounted.create(mounted.root(), "f", 0100644, 0, {}, {})->id;
      EXPECT_TRUE(mounted.write(id, 0, Rig::filled(kBytes, 7)).ok());
    });
  }
  // Mounts the filesystem, calls `work` and unmounts it.
  template <typename Work>
  void use(const Work& work) {
    MountOptions options;
    options.wait_seconds = 0;
    const auto mounted = Filesystem::mount(meta_, data_, options, system_clock());
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
    work(**mounted);
    const Result<void> done = (*mounted)->unmount();
    EXPECT_TRUE(done.ok()) << done.error().message();
  }
  void lengthen_meta(uint64_t by) { fs::resize_file(meta_, fs::file_size(meta_) + by); }
  Result<pair::Tuned> tune(const TuneOptions& options) {
    return pair::tune_pair(meta_, data_, options);
  }
  static void expect_file(Filesystem& mounted) {
    const auto found = mounted.lookup(mounted.root(), "f");
    ASSERT_TRUE(found.ok());
    std::vector<std::byte> content(kBytes);
    EXPECT_EQ(mounted.read(found->id, 0, content).value(), kBytes);
    EXPECT_EQ(content, Rig::filled(kBytes, 7));
  }
  void expect_intent_log(uint64_t bytes, bool serves) {
    use([&](Filesystem& mounted) {
      const IntentStatus status = mounted.status()->intent;
      EXPECT_EQ(status.bytes, bytes);
      EXPECT_EQ(status.serves, serves);
      expect_file(mounted);
      const InodeId id = mounted.create(mounted.root(), "g", 0100644, 0, {}, {})->id;
      EXPECT_TRUE(mounted.write(id, 0, Rig::filled(4096, 1)).ok());
      EXPECT_TRUE(mounted.fsync(id, false).ok());
      EXPECT_EQ(mounted.status()->intent.fsyncs, serves ? 1U : 0U);
      EXPECT_TRUE(mounted.unlink(mounted.root(), "g").ok());
    });
  }

  const fs::path folder_;
  const std::string meta_, data_;
};

TEST_F(Tune, GivesADeclaredMetaAnIntentLogThatServes) {
  lengthen_meta(kLogBytes);
  TuneOptions options = enable();
  EXPECT_EQ(tune(options).error().code, EINVAL) << "it would not serve";
  options.declared_persistent = true;
  const Result<pair::Tuned> tuned = tune(options);
  ASSERT_TRUE(tuned.ok()) << tuned.error().message();
  EXPECT_EQ(meta::intent_log_bytes(tuned->before), 0U);
  EXPECT_EQ(meta::intent_log_bytes(tuned->after), kLogBytes);
  EXPECT_EQ(tuned->after.version, meta::kIntentVersion);
  EXPECT_EQ(tuned->after.meta_size, kMetaBytes + kLogBytes);
  expect_intent_log(kLogBytes, true);
  EXPECT_TRUE(tune(enable()).ok()) << "it is done already";
  TuneOptions trust = enable();
  trust.trust_memory = true;
  EXPECT_EQ(tune(trust).error().code, EINVAL) << "it is declared persistent";
  EXPECT_EQ(tune(enable(2 * kLogBytes)).error().code, EEXIST);
  expect_intent_log(kLogBytes, true);
}

TEST_F(Tune, GivesATrustedMetaAnIntentLogIfThereIsALogOnData) {
  lengthen_meta(kLogBytes);
  TuneOptions options = enable();
  options.trust_memory = true;
  ASSERT_TRUE(tune(options).ok());
  expect_intent_log(kLogBytes, pair::boot_of_machine() != 0);
  make(false);
  EXPECT_EQ(tune(options).error().code, EINVAL);
}

TEST_F(Tune, SaysHowMuchRoomIsMissing) {
  TuneOptions options = enable(std::nullopt);
  options.declared_persistent = true;
  lengthen_meta(1 << 20);
  const Result<pair::Tuned> refused = tune(options);
  EXPECT_EQ(refused.error().code, ENOSPC);
  EXPECT_NE(refused.error().context.find("7.0 MiB larger, to 12582912 bytes"), std::string::npos)
      << refused.error().context;
  expect_intent_log(0, false);
  lengthen_meta(7 << 20);
  ASSERT_TRUE(tune(options).ok());
  expect_intent_log(8 << 20, true);
}

TEST_F(Tune, AMetaInUseOrNotCleanIsRefused) {
  TuneOptions options = enable();
  options.declared_persistent = true;
  options.wait_seconds = 0;
  lengthen_meta(kLogBytes);
  use([&](Filesystem&) { EXPECT_EQ(tune(options).error().code, EBUSY); });
  {
    MountOptions mount;
    const auto killed = Filesystem::mount(meta_, data_, mount, system_clock());
    ASSERT_TRUE(killed.ok());
    ASSERT_TRUE((*killed)->create((*killed)->root(), "k", 0100644, 0, {}, {}).ok());
  }
  EXPECT_EQ(tune(options).error().code, EUCLEAN);
  expect_intent_log(0, false);
  EXPECT_TRUE(tune(options).ok());
}

TEST_F(Tune, ADisabledLogLeavesItsRoomToALaterOne) {
  TuneOptions options = enable();
  options.declared_persistent = true;
  lengthen_meta(kLogBytes);
  ASSERT_TRUE(tune(disable()).ok()) << "there is none";
  ASSERT_TRUE(tune(options).ok());
  expect_intent_log(kLogBytes, true);
  ASSERT_TRUE(tune(disable()).ok());
  expect_intent_log(0, false);
  EXPECT_EQ(tune(enable(kLogBytes / 2)).error().code, EINVAL) << "it has more room than that";
  const Result<pair::Tuned> again = tune(enable(std::nullopt));
  ASSERT_TRUE(again.ok()) << "META is declared already: " << again.error().message();
  EXPECT_EQ(again->after.meta_size, kMetaBytes + kLogBytes);
  expect_intent_log(kLogBytes, true);
}

TEST_F(Tune, ALogWithEntriesThatCountIsNotDisabled) {
  TuneOptions options = enable();
  options.declared_persistent = true;
  lengthen_meta(kLogBytes);
  ASSERT_TRUE(tune(options).ok());
  {
    const auto killed = Filesystem::mount(meta_, data_, {}, system_clock());
    ASSERT_TRUE(killed.ok());
    const InodeId id = (*killed)->create((*killed)->root(), "k", 0100644, 0, {}, {})->id;
    ASSERT_TRUE((*killed)->write(id, 0, Rig::filled(4096, 1)).ok());
    ASSERT_TRUE((*killed)->fsync(id, false).ok());
  }
  EXPECT_EQ(tune(disable()).error().code, EUCLEAN);
  pair::OpenPair open = pair::open_pair(meta_, data_, {}).value();
  open.super.clean = 1;  // as fsck marks it
  EXPECT_EQ(pair::tune_open_pair(open, disable()).error().code, EBUSY);
}

// The superblock is the new one, and the label is the old one.
TEST_F(Tune, ACutBeforeTheLabelIsCompletedBeforeAnythingIsPromised) {
  std::vector<char> before(meta::kAttachmentOffset), after(before.size());
  lengthen_meta(kLogBytes);
  std::ifstream(data_).read(before.data(), static_cast<std::streamsize>(before.size()));
  TuneOptions options = enable();
  options.declared_persistent = true;
  ASSERT_TRUE(tune(options).ok());
  std::ifstream(data_).read(after.data(), static_cast<std::streamsize>(after.size()));
  ASSERT_NE(before, after);
  std::fstream(data_, std::ios::in | std::ios::out)
      .write(before.data(), static_cast<std::streamsize>(before.size()));
  {
    const pair::OpenPair pair = pair::open_pair(meta_, data_, {}).value();
    EXPECT_EQ(pair.region->meta_class(), pmem::MetaClass::kPersistent);
    EXPECT_EQ(pair.label.geometry.features, pair.super.features);
    EXPECT_EQ(pair::read_label(*pair.device)->geometry.features, pair.super.features);
  }
  expect_intent_log(kLogBytes, true);
}

// ---- Cuts

// A closed filesystem on devices that a test can cut. META's medium has room for a log, full of
// other data.
struct Closed {
  Closed() {
    Rig::Options options = Rig::with_log(pmem::MetaClass::kPersistent);
    options.meta_bytes = kMetaBytes;
    device =
        std::make_unique<blockdev::FaultyDevice>(std::make_unique<RamDevice>(options.blocks), true);
    auto region = pmem::make_memory_region(kMetaBytes, options.meta_class);
    meta::FormatOptions format;
    format.data_blocks = options.blocks;
    format.meta_log = true;
    format.data_identity = device->info().identity;
    EXPECT_TRUE(pair::format_open_pair(*region, *device, format, clock).ok());
    const pmem::Region* const view = region.get();
    const auto mounted = mount(std::move(region));
    const InodeId id = mounted->create(mounted->root(), "f", 0100644, 0, {}, {})->id;
    EXPECT_TRUE(mounted->write(id, 0, Rig::filled(kBytes, 7)).ok());
    EXPECT_TRUE(mounted->unmount().ok());
    words.assign((kMetaBytes + kLogBytes) / kWordSize, 0);
    std::memcpy(words.data(), view->at(0), kMetaBytes);
    for (uint64_t at = kMetaBytes / kWordSize; at < words.size(); at += 256) words[at] = ~at;
  }
  std::unique_ptr<FilesystemImpl> mount(std::unique_ptr<pmem::Region> region) {
    pair::OpenPair pair = open(std::move(region));
    EXPECT_TRUE(pair::attach(pair).ok());
    EXPECT_TRUE(pair::renew_label(pair).ok());
    auto opened = FilesystemImpl::open(std::move(pair), {}, clock, false);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(opened).value();
  }
  pair::OpenPair open(std::unique_ptr<pmem::Region> region) {
    pair::OpenPair pair;
    pair.region = std::move(region);
    pair.device = std::make_unique<BorrowedDevice>(static_cast<blockdev::Device&>(*device));
    pair.super = meta::load_superblock(*pair.region, true).value();
    pair.label = pair::read_label(*device).value();
    return pair;
  }

  RigClock clock;
  std::unique_ptr<blockdev::FaultyDevice> device;
  std::vector<uint64_t> words;
};

TEST(TuneCut, MetaIsTheOldOneOrHasAnEmptyLog) {
  Closed closed;
  auto owned = std::make_unique<pmem::RecordingRegion>(closed.words);
  pmem::RecordingRegion& region = *owned;
  pair::OpenPair pair = closed.open(std::move(owned));
  region.start_recording();
  ASSERT_TRUE(pair::tune_open_pair(pair, enable()).ok());
  region.mark();
  int with_log = 0, without = 0;
  pmem::ExploreOptions explore;
  explore.exhaustive_up_to = 32;
  explore.samples = 16;
  pmem::each_crash_image(region.initial(), region.events(), explore, [&](const auto& image) {
    pmem::ScratchRegion cut(image.words);
    const auto super = meta::load_superblock(cut, true);
    EXPECT_TRUE(super.ok()) << image.description();
    if (!super.ok()) return false;
    const meta::Geometry geometry = meta::Geometry::from(*super).value();
    if (geometry.intent_segments() == 0) {
      EXPECT_EQ(super->meta_size, kMetaBytes) << image.description();
      EXPECT_EQ(super->version, meta::kFormatVersion) << image.description();
      EXPECT_EQ(image.marks, 0U);
      ++without;
    } else {
      const auto log = meta::IntentLog::open(cut, geometry);
      EXPECT_TRUE(log.ok()) << image.description();
      EXPECT_EQ((*log)->entries_found(), 0U);
      for (uint64_t at = kMetaBytes; at < super->meta_size; at += kWordSize)
        EXPECT_EQ(cut.load(at), 0U) << at << ": " << image.description();
      ++with_log;
    }
    EXPECT_TRUE(meta::check(cut, *super, {})->sound()) << image.description();
    return !HasFailure();
  });
  EXPECT_GT(without, 0);
  EXPECT_GT(with_log, 0);
}

// Each write and flush of DATA fails in turn, then the power goes, with META kept or lost.
TEST(TuneCut, DataNamesTheOldMetaOrTheNewOne) {
  int with_log = 0, without = 0, completed = 0;
  bool done = false;
  for (uint64_t step = 0; !done; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    Closed closed;
    blockdev::FaultyDevice& device = *closed.device;
    auto owned = std::make_unique<pmem::RecordingRegion>(closed.words);
    const pmem::RecordingRegion& region = *owned;
    pair::OpenPair pair = closed.open(std::move(owned));
    blockdev::Faults faults;
    (step % 2 == 0 ? faults.fail_writes_after : faults.fail_flushes_after) = step / 4;
    faults.tear_failing_writes = step % 4 == 0;
    device.set_faults(faults);
    done = pair::tune_open_pair(pair, enable()).ok();
    device.set_faults({});
    device.power_cut(step);
    device.power_on();
    const meta::DataLabel label = pair::read_label(device).value();
    const bool tuned = meta::intent_log_bytes(label.geometry) == kLogBytes;
    EXPECT_TRUE(tuned || (meta::intent_log_bytes(label.geometry) == 0 && !done));
    ++(tuned ? with_log : without);
    {  // META is lost
      auto rebuilt = pmem::make_memory_region(label.geometry.meta_size, pmem::MetaClass::kVolatile);
      pair::LogBlocks log(device);
      ASSERT_TRUE(meta::restore_from_log(*rebuilt, label, log).ok());
      const meta::Superblock super = meta::load_superblock(*rebuilt, true).value();
      EXPECT_EQ(meta::intent_log_bytes(super), tuned ? kLogBytes : 0);
      EXPECT_TRUE(meta::check(*rebuilt, super, {})->sound());
    }
    auto kept =
        pmem::make_memory_region(closed.words.size() * kWordSize, pmem::MetaClass::kPersistent);
    kept->store(0, region.words());
    const auto mounted = closed.mount(std::move(kept));
    const uint64_t bytes = mounted->status()->intent.bytes;
    EXPECT_TRUE(bytes == kLogBytes || (bytes == 0 && !tuned));
    EXPECT_EQ(meta::intent_log_bytes(pair::read_label(device)->geometry), bytes);
    completed += bytes == kLogBytes && !tuned ? 1 : 0;
    const InodeId id = mounted->lookup(mounted->root(), "f")->id;
    std::vector<std::byte> content(kBytes);
    EXPECT_EQ(mounted->read(id, 0, content).value(), kBytes);
    EXPECT_EQ(content, Rig::filled(kBytes, 7));
    EXPECT_TRUE(mounted->unmount().ok());
    ASSERT_LT(step, 40U);
  }
  EXPECT_GT(with_log, 0);
  EXPECT_GT(without, completed);
  EXPECT_GT(completed, 0) << "META was changed, and DATA was not";
}

}  // namespace
}  // namespace streamfs::data
