// A medium that fails under a mapping: nobody dies of it, what is lost is known to be, and what is
// not ours is left to whoever had it. A file that is cut short fails for real.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/types.h"
#include "pmem/mirror_region.h"
#include "pmem/region.h"

namespace streamfs::pmem {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kBytes = 16 * kBlockSize;
constexpr uint64_t kOnes = ~uint64_t{0};

class BusErrors : public testing::Test {
 public:
  BusErrors() {
    std::string pattern = (fs::temp_directory_path() / "streamfs-bus-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~BusErrors() override { fs::remove_all(folder_); }

 protected:
  std::string file(const std::string& name) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path).flush();
    fs::resize_file(path, kBytes);
    return path;
  }
  static std::unique_ptr<Region> open(const std::string& path) {
    return open_region(path, {}).value();
  }

  fs::path folder_;
};

// Read past the end of a file that no watch covers.
void fail_elsewhere(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR);
  void* map = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
  fs::resize_file(path, 0);
  (void)*static_cast<volatile uint64_t*>(map);
}

TEST_F(BusErrors, ALoadOfWhatIsLostIsOnesAndTheRestIsWhole) {
  const std::string path = file("a");
  const auto region = open(path);
  region->store_word(0, 7);
  region->store_word(8 * kBlockSize, 8);
  ASSERT_TRUE(region->sync().ok());
  EXPECT_EQ(region->lost(), 0U);
  fs::resize_file(path, 8 * kBlockSize);
  EXPECT_EQ(region->load(8 * kBlockSize), kOnes);
  EXPECT_EQ(region->load(9 * kBlockSize - kWordSize), kOnes);
  EXPECT_EQ(region->lost(), 1U) << "the page, once";
  EXPECT_EQ(region->load(0), 7U);
  const auto synced = region->sync();
  ASSERT_FALSE(synced.ok());
  EXPECT_EQ(synced.error().code, EIO);
  EXPECT_NE(synced.error().context.find(path), std::string::npos);
}

TEST_F(BusErrors, AStoreToWhatIsLostIsKnownNotToBeKept) {
  const std::string path = file("a");
  const auto region = open(path);
  fs::resize_file(path, 0);
  region->store_word(64, 5);
  EXPECT_EQ(region->load(64), 5U);
  EXPECT_EQ(region->load(72), kOnes);
  EXPECT_FALSE(region->sync().ok());
}

TEST_F(BusErrors, ThreadsThatMeetInLostPagesSeeOnesOnly) {
  const std::string path = file("a");
  const auto region = open(path);
  fs::resize_file(path, 0);
  std::atomic<uint64_t> others{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t at = 0; at < kBytes; at += kWordSize) others += region->load(at) != kOnes;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(others, 0U);
  EXPECT_GE(region->lost(), kBytes / kBlockSize);
}

TEST_F(BusErrors, OneRegionsLossIsNotAnothers) {
  const std::string path = file("a");
  const auto lost = open(path), whole = open(file("b"));
  fs::resize_file(path, 0);
  EXPECT_EQ(lost->load(0), kOnes);
  EXPECT_EQ(whole->lost(), 0U);
  EXPECT_TRUE(whole->sync().ok());
}

TEST_F(BusErrors, AMirrorGoesOnWithTheCopyThatIsWhole) {
  const std::string path = file("a");
  MirrorRegion mirror(open(path), open(file("b")));
  std::string why;
  mirror.on_copy_dropped([&](Region&, const std::string& said) -> Result<void> {
    why = said;
    return {};
  });
  mirror.store_word(64, 9);
  fs::resize_file(path, 0);
  EXPECT_EQ(mirror.load(64), kOnes) << "the first time";
  EXPECT_GT(mirror.lost(), 0U);
  EXPECT_EQ(mirror.copies(), 1U);
  EXPECT_EQ(mirror.load(64), 9U) << "then from the other";
  EXPECT_EQ(mirror.copy(0).load(64), 9U);
  EXPECT_FALSE(mirror.equalise(0, 64, 8));
  mirror.store_word(72, 1);
  EXPECT_EQ(mirror.load(72), 1U);
  EXPECT_EQ(why, "") << "nobody was told yet";
  EXPECT_TRUE(mirror.sync().ok());
  EXPECT_NE(why.find(path), std::string::npos);
  EXPECT_EQ(mirror.lost(), 0U);
  EXPECT_EQ(mirror.load(64), 9U);
}

using BusErrorsDeathTest = BusErrors;

TEST_F(BusErrorsDeathTest, ElsewhereTheyStillKill) {
  const std::string path = file("a"), other = file("b");
  EXPECT_EXIT(
      {
        signal(SIGBUS, SIG_DFL);  // a sanitizer has its own
        const auto region = open(path);
        fail_elsewhere(other);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        signal(SIGBUS, SIG_DFL);
        const auto region = open(path);
        raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

// A handler that the program had before.
void their_handler(int) {
  _exit(42);
}
void install_theirs() {
  struct sigaction theirs{};
  theirs.sa_handler = their_handler;
  sigaction(SIGBUS, &theirs, nullptr);
}
bool theirs_is_installed() {
  struct sigaction now{};
  sigaction(SIGBUS, nullptr, &now);
  return now.sa_handler == their_handler;
}

TEST_F(BusErrorsDeathTest, TheHandlerOfBeforeIsAskedAboutOthersAndIsBackAtTheEnd) {
  const std::string path = file("a"), other = file("b"), third = file("c");
  EXPECT_EXIT(
      {
        install_theirs();
        const auto region = open(path);
        open(third).reset();
        fail_elsewhere(other);
      },
      testing::ExitedWithCode(42), "");
  EXPECT_EXIT(
      {
        install_theirs();
        open(path).reset();
        _exit(theirs_is_installed() ? 43 : 1);
      },
      testing::ExitedWithCode(43), "");
}

}  // namespace
}  // namespace streamfs::pmem
