#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "learning/placement_model.h"
#include "learning/request.h"
#include "tests/fuzz/targets.h"

namespace streamfs::fuzz {
namespace {

constexpr uint32_t kPStreams = 16;
constexpr size_t kFieldBytes = offsetof(wire::ModelBuffer, row_of);  // all that are no large arrays

// A sound model with two rows, two classes, and weights.
std::unique_ptr<wire::ModelBuffer> make_sound(wire::ModelServes serves) {
  auto out = std::make_unique<wire::ModelBuffer>();
  out->generation = 1;
  out->pstream_count = kPStreams;
  std::strcpy(out->kind, "life-table");
  out->serves = serves;
  out->classes = 2;
  out->live_pages = 1 << 20;
  out->edges[0] = 4;
  out->pstreams[1] = kPStreams - 1;
  out->table_rows = 2;
  for (uint32_t v = 0; v < wire::kModelVStreams; ++v) out->row_of[v] = v % 2;
  for (uint32_t i = 0; i < 2 * wire::kShapes; ++i) {
    out->entries[i] = i % kPStreams;
    out->expected[i] = i % 40;
  }
  for (uint32_t i = 0; i < wire::kModelChunks; ++i) out->chunks[i] = i % wire::kChunkClasses;
  for (uint32_t i = 0; i < wire::kModelRows; ++i)
    for (uint32_t j = 0; j < wire::kModelLandmarks; ++j)
      out->weights[i][j] = static_cast<int8_t>(i * 31 + j * 7);
  return out;
}

// Changes a buffer as items say, and undoes it: a copy of 6 MB a run would take most of the time.
class Damaged {
 public:
  explicit Damaged(wire::ModelBuffer& model)
      : bytes_(std::as_writable_bytes(std::span(&model, 1))) {}
  ~Damaged() {
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) bytes_[it->first] = it->second;
  }
  Damaged(const Damaged&) = delete;
  Damaged& operator=(const Damaged&) = delete;

  void apply(const Item& item) {
    using B = wire::ModelBuffer;
    const size_t wide = item.where | size_t{item.argument} << 16;
    switch (item.kind % 8) {
      case 0:  // a word of the fields
        return set(item.where % (kFieldBytes / 4) * 4, item.value, 4);
      case 1:  // a byte of them
        return set(item.where % kFieldBytes, item.value, 1);
      case 2:
        return set(offsetof(B, edges) + item.argument % wire::kModelClasses * 4, item.value, 4);
      case 3:
        return set(offsetof(B, row_of) + size_t{2} * item.where, item.value, 2);
      case 4:
        return set(offsetof(B, entries) + wide % wire::kModelEntries, item.value, 1);
      case 5:
        return set(offsetof(B, chunks) + wide % wire::kModelChunks, item.value, 1);
      case 6:
        return set(offsetof(B, weights) + wide % sizeof(B::weights), item.value, 1);
      default:
        return set(offsetof(B, expected) + wide % wire::kModelEntries, item.value, 1);
    }
  }
  void set(size_t at, uint64_t value, size_t length) {
    for (size_t i = 0; i < length; ++i) {
      before_.emplace_back(at + i, bytes_[at + i]);
      bytes_[at + i] = static_cast<std::byte>(value >> 8 * i);
    }
  }

 private:
  const std::span<std::byte> bytes_;
  std::vector<std::pair<size_t, std::byte>> before_;
};

// Returns the request that an operation describes.
learning::Request request_of(const Operation& operation) {
  const uint32_t pages = 1 + operation.which % 32;
  const uint32_t offset = operation.how % 8;
  return {.page = uint64_t{operation.other} << (operation.how % 34),
          .pages = pages,
          .whole_pages = pages + offset + operation.how % 3,
          .offset = offset,
          .vstream = static_cast<uint16_t>(operation.what | operation.which << 8),
          .age = static_cast<uint8_t>(operation.what % wire::kAgeClasses)};
}

void place_all(const learning::PlacementModel& model, uint32_t pstreams, const Input& input) {
  const std::bitset<256> named = model.pstreams();
  SFS_ASSERT(named.any());
  for (size_t stream = pstreams; stream < named.size(); ++stream) SFS_ASSERT(!named.test(stream));
  learning::PlacementModel::Cursor cursor;
  for (const Operation& operation : input.operations) {
    const learning::Request request = request_of(operation);
    for (uint32_t i = 0; i < request.pages; ++i)
      SFS_ASSERT(named.test(model.place(request, i, cursor).value));
    if (operation.how % 2 == 0) cursor = {};
  }
}

}  // namespace

void run_model(const Input& input) {
  static const auto table = make_sound(wire::ModelServes::kTable);
  static const auto logistic = make_sound(wire::ModelServes::kLogistic);
  static learning::PlacementModel adopted;
  wire::ModelBuffer& base = (input.flags & 1) == 0 ? *table : *logistic;
  Damaged damaged(base);
  for (const Item& item : input.items) damaged.apply(item);
  if ((input.flags & kFixChecksums) != 0)
    damaged.set(offsetof(wire::ModelBuffer, checksum), crc32c(wire::summed(base)), 4);

  const uint32_t pstreams = (input.flags & 2) == 0 ? kPStreams : 256;
  if (!adopted.deserialize(base, pstreams)) return;
  for (const char c : adopted.kind()) SFS_ASSERT(c > ' ' && c < 127);
  SFS_ASSERT(std::ranges::max(adopted.chunks()) < wire::kChunkClasses);
  place_all(adopted, pstreams, input);
}

}  // namespace streamfs::fuzz
