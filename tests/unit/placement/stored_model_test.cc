#include "fuse-fs/placement/stored_model.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "base/wire/model_table.h"
#include "base/wire/stored_model.h"
#include "fuse-fs/placement/placement.h"
#include "tests/unit/placement/memory_store.h"
#include "tests/unit/placement/published_model.h"

namespace streamfs::placement {
namespace {

constexpr std::array<uint8_t, 16> kStoredUuid = {1, 0xab};
constexpr uint64_t kStoredCapacity = 1 << 16;

class StoredModel : public testing::Test {
 protected:
  StoredModel() { std::filesystem::create_directory(folder_); }
  ~StoredModel() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Placement> mount(uint16_t pstreams = 4) {
    Placement::Options options;
    options.pstream_count = pstreams;
    options.capacity_blocks = kStoredCapacity;
    options.uuid = kStoredUuid;
    clock_.ms += 1'000'000;  // the next first generation
    return std::move(Placement::open(store_, clock_, options)).value();
  }
  // A model whose row 0 goes to pStream 2 and whose row 1 goes to 3. Row 1 is that of `known`.
  static std::unique_ptr<wire::StoredModel> stored(const std::optional<VStreamInfo>& known = {}) {
    auto out = std::make_unique<wire::StoredModel>();
    out->magic = wire::kStoredModelMagic;
    out->version = wire::kStoredModelVersion;
    out->model_version = wire::kModelVersion;
    out->buffer_size = sizeof(wire::ModelBuffer);
    std::ranges::copy(kStoredUuid, out->uuid);
    wire::ModelBuffer& model = out->model;
    model.generation = 7;
    model.pstream_count = 4;
    model.clock_pages = 1'000'000;
    std::strcpy(model.kind, "life-table");
    model.classes = 1;
    model.live_pages = 1;
    model.table_rows = 2;
    std::fill_n(model.entries, wire::kShapes, uint8_t{2});
    std::fill_n(model.entries + wire::kShapes, wire::kShapes, uint8_t{3});
    if (known) {
      model.row_of[known->vstream.value] = 1;
      out->uses[known->vstream.value] = static_cast<uint16_t>(known->generation + 1);
    }
    sum(*out);
    return out;
  }
  static void sum(wire::StoredModel& model) {
    model.model.checksum = crc32c(wire::summed(model.model));
    model.checksum = crc32c(wire::summed(model));
  }
  void write(std::span<const std::byte> bytes, mode_t mode = 0600) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  void write(const wire::StoredModel& model, mode_t mode = 0600) const {
    write(std::as_bytes(std::span(&model, 1)), mode);
  }
  // Returns the reason for which the file is not used; empty: it is adopted.
  std::string refusal() {
    const auto placement = mount();
    const auto adopted = placement->adopt_stored(folder_);
    EXPECT_EQ(placement->model_status().adopted, adopted.ok());
    if (adopted) return "";
    EXPECT_TRUE(adopted.error().context.starts_with(path_ + ": ")) << adopted.error().context;
    return adopted.error().context.substr(path_.size() + 2);
  }
  static VStreamInfo named(Placement& placement, const char* name) {
    return *placement.info(*placement.by_name(name, Source::kHint));
  }
  static PStreamId route(const Placement& placement, VStreamId vstream) {
    return placement.route(vstream, 1, 0, wire::kAgeNew);
  }

  const std::string folder_ = testing::TempDir() + "stored-" + std::to_string(::getpid());
  const std::string path_ = folder_ + "/01ab0000000000000000000000000000.model";
  MemoryStore store_;
  ManualClock clock_;
};

TEST_F(StoredModel, TheNextMountPlacesByItUntilAnotherIsPublished) {
  const auto first = mount();
  const VStreamInfo log = named(*first, "log");
  first->tick();  // stores the vStream
  write(*stored(log));

  const auto next = mount();
  EXPECT_EQ(*next->adopt_stored(folder_), "model 7 (life-table) adopted from " + path_);
  EXPECT_EQ(named(*next, "log").vstream, log.vstream);
  EXPECT_EQ(route(*next, log.vstream).value, 3);
  EXPECT_EQ(route(*next, kDefaultVStream).value, 2);
  ModelStatus status = next->model_status();
  EXPECT_TRUE(status.adopted && status.stored);
  EXPECT_EQ(status.generation, 7U);
  EXPECT_EQ(status.looked_at, 0U) << "nothing was published on this mount";
  EXPECT_FALSE(next->tick()) << "nothing is published";

  const auto memory = next->shared_memory();
  PublishedModel daemon(memory.model_fd, memory.model_bytes);
  daemon.publish(1, [](uint32_t) { return 1; });
  EXPECT_EQ(next->tick(), "model 1 (life-table) adopted");
  EXPECT_EQ(route(*next, log.vstream).value, 1);
  status = next->model_status();
  EXPECT_FALSE(status.stored);
  EXPECT_EQ(status.generation, 1U);
  EXPECT_EQ(next->take_released(), (std::vector{PStreamId{2}, PStreamId{3}}));
}

TEST_F(StoredModel, ANumberThatWasUsedAgainHasNoRowOfTheModel) {
  const auto first = mount();
  VStreamInfo log = named(*first, "log");
  first->tick();
  ++log.generation;  // the model knows another use of the number
  write(*stored(log));
  const auto next = mount();
  ASSERT_TRUE(next->adopt_stored(path_).ok());
  EXPECT_EQ(route(*next, log.vstream), next->info(log.vstream)->pstream);
  EXPECT_NE(route(*next, log.vstream).value, 3);
  EXPECT_EQ(route(*next, kDefaultVStream).value, 2);
}

TEST_F(StoredModel, ANumberThatNoMountStoredHasNoRowOfItsOwn) {
  const auto first = mount();
  const VStreamInfo log = named(*first, "log");  // not stored: the mount was killed
  write(*stored(log));
  const auto next = mount();
  ASSERT_TRUE(next->adopt_stored(path_).ok());
  const VStreamInfo other = named(*next, "other");
  ASSERT_EQ(other.vstream, log.vstream);
  EXPECT_NE(route(*next, other.vstream).value, 3);
}

TEST_F(StoredModel, AVStreamBornSinceTheMountIsNotTheModels) {
  write(*stored());
  const auto next = mount();
  ASSERT_TRUE(next->adopt_stored(path_).ok());
  next->wrote({kDefaultVStream, 1, 0, 1, BlockNo{0}}, kDefaultPStream, wire::kAgeNew);
  const VStreamInfo young = named(*next, "young");
  EXPECT_EQ(young.pstream.value, 1) << "a free one, not the row of vStreams that have none";
}

TEST_F(StoredModel, EveryFaultIsRefusedWithItsReason) {
  const auto refusal_after = [&](auto spoil, bool summed = true) {
    const auto model = stored();
    spoil(*model);
    if (summed) sum(*model);
    write(*model);
    return refusal();
  };
  using S = wire::StoredModel;
  EXPECT_EQ(refusal_after([](S&) {}), "");
  EXPECT_EQ(refusal_after([](S& s) { s.magic ^= 1; }), "no stored model");
  EXPECT_EQ(refusal_after([](S& s) { ++s.version; }), "another version");
  EXPECT_EQ(refusal_after([](S& s) { --s.model_version; }), "another version");
  EXPECT_EQ(refusal_after([](S& s) { ++s.buffer_size; }), "another size");
  EXPECT_EQ(refusal_after([](S& s) { s.uuid[15] ^= 1; }), "made for another filesystem");
  const std::string sum = "wrong checksum of the file";
  EXPECT_EQ(refusal_after([](S& s) { s.checksum ^= 1; }, false), sum);
  EXPECT_EQ(refusal_after([](S& s) { s.uses[wire::kModelVStreams - 1] ^= 1; }, false), sum);
  EXPECT_EQ(refusal_after([](S& s) { ++s.model.generation; }, false), sum);
  EXPECT_EQ(refusal_after([](S& s) { s.model.chunks[wire::kModelChunks - 1] ^= 1; }, false), sum);
  EXPECT_EQ(refusal_after([](S& s) { s.model.pstream_count = 5; }),
            "made for another number of pStreams");
  EXPECT_EQ(refusal_after([](S& s) { s.model.entries[0] = 4; }),
            "names a pStream that is not there");
  EXPECT_EQ(refusal_after([](S& s) { s.model.row_of[9] = 2; }),
            "its table has a row that is not there");
  EXPECT_EQ(refusal_after([](S& s) { s.model.kind[0] = '/'; }), "its kind is no name");
}

TEST_F(StoredModel, OnlyAFileThatNobodyElseMayChangeIsRead) {
  const auto model = stored();
  write(*model, 0640);
  EXPECT_EQ(refusal(), "");
  write(*model, 0660);
  EXPECT_EQ(refusal(), "other users may change it");
  write(*model, 0602);
  EXPECT_EQ(refusal(), "other users may change it");
  const auto bytes = std::as_bytes(std::span(model.get(), 1));
  write(bytes.first(bytes.size() - 1));
  EXPECT_EQ(refusal(), "not as long as a stored model");
  write(bytes.first(0));
  EXPECT_EQ(refusal(), "not as long as a stored model");
  std::filesystem::rename(path_, folder_ + "/other");
  std::filesystem::create_symlink(folder_ + "/other", path_);
  EXPECT_EQ(refusal(), "Too many levels of symbolic links");
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), "no regular file") << "and it does not wait for a writer";
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(refusal(), "no regular file");
  std::filesystem::remove(path_);
  EXPECT_EQ(mount()->adopt_stored(folder_).error().code, ENOENT);
  EXPECT_EQ(mount()->adopt_stored(folder_ + "/none").error().code, ENOENT);
}

TEST_F(StoredModel, RandomBytesWithRightChecksumsNeverGiveAPStreamThatIsNotThere) {
  constexpr uint32_t kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto first = mount();
  const VStreamInfo log = named(*first, "log");
  first->tick();
  int adopted = 0;
  for (int round = 0; round < 60; ++round) {
    const auto model = stored(log);
    const auto bytes = std::as_writable_bytes(std::span(model.get(), 1));
    for (uint32_t i = 0; i < 1 + random() % 4; ++i) {
      const size_t head = offsetof(wire::StoredModel, model.entries);
      bytes[random() % (random() % 2 == 0 ? head : bytes.size())] ^= std::byte(1 << random() % 8);
    }
    sum(*model);
    write(*model);
    const auto placement = mount();
    if (!placement->adopt_stored(path_)) continue;
    ++adopted;
    for (const VStreamId v : {kDefaultVStream, log.vstream}) {
      for (uint32_t offset = 0; offset < 4; ++offset) {
        ASSERT_LT(placement->route(v, 4, offset, wire::kAgeOld).value, 4) << "round " << round;
      }
    }
  }
  EXPECT_GT(adopted, 5);
  EXPECT_LT(adopted, 55);
}

}  // namespace
}  // namespace streamfs::placement
