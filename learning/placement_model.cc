#include "learning/placement_model.h"

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "learning/classes.h"
#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/path_model.h"
#include "learning/path_weights.h"
#include "learning/request.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {
namespace {

using wire::ModelBuffer;
static_assert(wire::kModelRows == kRows && wire::kModelLandmarks == kLandmarks);
static_assert(wire::kModelClasses >= Classes::kCountMax);

constexpr uint64_t kLivePagesMax = uint64_t{1} << 40;

// Returns the text up to the first NUL.
std::string_view kind_of(const ModelBuffer& model) {
  return {std::begin(model.kind), std::find(std::begin(model.kind), std::end(model.kind), '\0')};
}

bool is_kind(std::string_view text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return text.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::span<const float> edges_of(const ModelBuffer& model) {
  return std::span(model.edges).first(model.classes - 1);
}

Result<void> check_logistic(const ModelBuffer& model) {
  if (model.classes < 1 || model.classes > wire::kModelClasses)
    return Error{EINVAL, "a number of classes that cannot be"};
  if (model.live_pages < 1 || model.live_pages > kLivePagesMax)
    return Error{EINVAL, "live pages that cannot be"};
  const std::span<const float> edges = edges_of(model);
  if (!std::ranges::all_of(edges, [](float edge) { return std::isfinite(edge); }) ||
      !std::ranges::is_sorted(edges))
    return Error{EINVAL, "its classes are out of order"};
  return {};
}

}  // namespace

Result<void> PlacementModel::deserialize(const ModelBuffer& published, uint32_t pstream_count) {
  *buffer_ = published;  // before it is checked: the publisher may change it meanwhile
  const ModelBuffer& model = *buffer_;
  if (model.pstream_count == 0 || model.pstream_count > pstream_count)
    return Error{EINVAL, "made for another number of pStreams"};
  if (crc32c(wire::summed(model)) != model.checksum) return Error{EINVAL, "wrong checksum"};
  if (model.table_rows < 1 || model.table_rows > wire::kModelTableRows ||
      std::ranges::max(model.row_of) >= model.table_rows)
    return Error{EINVAL, "its table has a row that is not there"};
  if (std::ranges::max(model.chunks) >= wire::kChunkClasses)
    return Error{EINVAL, "a chunk class that is not there"};
  if (std::ranges::max(model.entries) >= model.pstream_count ||
      std::ranges::max(model.pstreams) >= model.pstream_count)
    return Error{EINVAL, "names a pStream that is not there"};
  if (!is_kind(kind_of(model))) return Error{EINVAL, "its kind is no name"};
  if (model.serves != wire::ModelServes::kTable && model.serves != wire::ModelServes::kLogistic)
    return Error{EINVAL, "an unknown part serves"};
  SFS_TRY(check_logistic(model));
  landmarks_ = Landmarks(model.live_pages);
  return {};
}

PStreamId PlacementModel::place(const Request& request, uint32_t index, Cursor& cursor) const {
  Request known = request;
  known.chunks = {buffer_->chunks};
  if (is_logistic()) {
    known.expected = table_of(buffer_->expected).row(request.vstream);
    return by_lifetime(known, index, cursor);
  }
  return in_table(VStreamId{request.vstream}, known.shape(index));
}

PStreamId PlacementModel::by_lifetime(const Request& request, uint32_t index,
                                      Cursor& cursor) const {
  const PathView view = path_view(request, index);
  if (!cursor.placed || !view.like(cursor.view)) {
    // std::array has the layout of the array that it wraps.
    const auto* const rows = reinterpret_cast<const WeightRow*>(buffer_->weights);
    cursor.lifetime = lifetime_of(tokens_of(view), WeightRows(rows, kRows), landmarks_);
    cursor.view = view;
  }
  const std::span<const float> edges = edges_of(*buffer_);
  const bool follows = cursor.placed && request.follows(index, cursor.page);
  cursor.cls =
      follows ? class_after(cursor.cls, cursor.lifetime, edges) : class_of(cursor.lifetime, edges);
  cursor.page = view.page;
  cursor.placed = true;
  return PStreamId{buffer_->pstreams[cursor.cls]};
}

std::string PlacementModel::kind() const {
  return std::string(kind_of(*buffer_));
}

std::bitset<256> PlacementModel::pstreams() const {
  std::bitset<256> found;
  if (is_logistic()) {
    for (const uint8_t pstream : std::span(buffer_->pstreams).first(buffer_->classes))
      found.set(pstream);
    return found;
  }
  const size_t entries = size_t{buffer_->table_rows} * wire::kShapes;
  for (const uint8_t pstream : std::span(buffer_->entries).first(entries)) found.set(pstream);
  return found;
}

}  // namespace streamfs::learning
