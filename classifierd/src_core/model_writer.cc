#include "classifierd/src_core/model_writer.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "base/result.h"
#include "base/wire/magic.h"
#include "base/wire/model_table.h"
#include "base/wire/record_check.h"
#include "base/wire/stored_model.h"
#include "base/wire/telemetry.h"
#include "classifierd/src_core/predictor.h"
#include "learning/path_weights.h"
#include "learning/placement_model.h"
#include "learning/request.h"

namespace streamfs::classifier {

using wire::ModelBuffer;
using wire::ModelHeader;

namespace {

// Copies `from` and fills the rest with zeroes.
void fill(std::span<uint8_t> to, std::span<const uint8_t> from) {
  std::ranges::fill(std::ranges::copy(from, to.begin()).out, to.end(), uint8_t{0});
}

void put(const ServingLogistic& logistic, ModelBuffer& out) {
  const std::vector<float>& edges = logistic.model.edges(logistic.cut);
  if (logistic.pstreams.size() != edges.size() + 1)
    throw std::invalid_argument("model: a pStream for each class is needed");
  out.classes = static_cast<uint32_t>(logistic.pstreams.size());
  out.live_pages = logistic.model.model().landmarks().live_pages();
  std::ranges::copy(edges, out.edges);
  std::ranges::copy(logistic.pstreams, out.pstreams);
  const learning::WeightRows rows = logistic.model.model().weights().rows();
  static_assert(sizeof(out.weights) == rows.size_bytes());
  std::memcpy(out.weights, rows.data(), sizeof(out.weights));
}

}  // namespace

ModelWriter::ModelWriter(int fd) : map_(fd, SharedMap::Access::kReadWrite, wire::kModelBytes) {
  if (header().magic != wire::kModelMagic) throw std::runtime_error("model: wrong magic");
  if (header().version != wire::kModelVersion) throw std::runtime_error("model: unknown version");
  if (header().buffer_size != sizeof(ModelBuffer)) {
    throw std::runtime_error("model: unknown buffer size");
  }
}

void ModelWriter::prepare(const ServingTable& table, uint32_t pstream_count, uint64_t clock_pages,
                          std::string_view kind, const std::optional<ServingLogistic>& logistic) {
  is_prepared_ = false;
  const auto& [expected, chunks] = table.known;
  if (!expected.is_sound() || expected.rows.size() > wire::kModelEntries ||
      table.pstreams.size() != expected.rows.size() || chunks.classes.size() > wire::kModelChunks)
    throw std::invalid_argument("model: wrong size");
  if (kind.size() > wire::kModelKindBytes) throw std::invalid_argument("model: kind too long");
  const uint64_t next = generation() + 1;
  ModelBuffer& idle = buffer(next);
  // A filesystem that sees any of what follows also sees that the other buffer is active.
  std::atomic_thread_fence(std::memory_order_release);
  idle.generation = next;
  idle.pstream_count = pstream_count;
  idle.clock_pages = clock_pages;
  std::ranges::fill(idle.kind, '\0');
  std::ranges::copy(kind, idle.kind);
  idle.table_rows = static_cast<uint32_t>(expected.rows.size() / wire::kShapes);
  std::ranges::copy(expected.row_of, idle.row_of);
  fill(idle.entries, table.pstreams);
  fill(idle.expected, expected.rows);
  fill(idle.chunks, chunks.classes);
  idle.serves = logistic ? wire::ModelServes::kLogistic : wire::ModelServes::kTable;
  idle.classes = 1;
  idle.live_pages = 1;
  std::ranges::fill(idle.pstreams, uint8_t{0});
  if (logistic) put(*logistic, idle);
  idle.checksum = crc32c(wire::summed(idle));
  const Result<void> taken = prepared_.deserialize(idle, pstream_count);
  if (!taken.ok()) throw std::invalid_argument("model: " + taken.error().context);
  is_prepared_ = true;
}

uint64_t ModelWriter::publish() {
  if (!is_prepared_ || prepared_.generation() <= generation())
    throw std::logic_error("model: none is prepared");
  header().active.store(prepared_.generation(), std::memory_order_release);
  return prepared_.generation();
}

std::vector<uint8_t> ModelWriter::place(std::span<const wire::TelemetryRecord> records) const {
  if (!is_prepared_) throw std::logic_error("model: none is prepared");
  std::vector<uint8_t> out;
  learning::PlacementModel::Cursor cursor;
  for (const wire::TelemetryRecord& record : records) {
    if (!believable(record, wire::kCapacityBlocksMax) || record.kind == wire::TelemetryKind::kTrim)
      continue;
    const learning::Request request = request_of(record);
    for (uint32_t i = 0; i < record.pages; ++i)
      out.push_back(static_cast<uint8_t>(prepared_.place(request, i, cursor).value));
  }
  return out;
}

std::unique_ptr<wire::StoredModel> ModelWriter::stored(std::span<const uint16_t> uses) const {
  if (!is_prepared_ || prepared_.generation() != generation())
    throw std::logic_error("model: the prepared one is not published");
  if (uses.size() != wire::kModelVStreams) throw std::invalid_argument("model: wrong size");
  auto out = std::make_unique<wire::StoredModel>();
  out->magic = wire::kStoredModelMagic;
  out->version = wire::kStoredModelVersion;
  out->model_version = wire::kModelVersion;
  out->buffer_size = sizeof(ModelBuffer);
  std::ranges::copy(header().uuid, out->uuid);
  std::ranges::copy(uses, out->uses);
  out->model = prepared_.serialized();
  out->checksum = crc32c(wire::summed(*out));
  return out;
}

void ModelWriter::heartbeat(uint64_t now_ms) {
  header().heartbeat.store(now_ms, std::memory_order_relaxed);
}

uint64_t ModelWriter::generation() const {
  return header().active.load(std::memory_order_acquire);
}

std::vector<uint8_t> ModelWriter::uuid() const {
  return {std::begin(header().uuid), std::end(header().uuid)};
}

ModelHeader& ModelWriter::header() const {
  return *reinterpret_cast<ModelHeader*>(map_.data());
}

ModelBuffer& ModelWriter::buffer(uint64_t generation) const {
  std::byte* const first = map_.data() + sizeof(ModelHeader);
  return *reinterpret_cast<ModelBuffer*>(first + (generation % 2) * sizeof(ModelBuffer));
}

}  // namespace streamfs::classifier
