// The placement model: a table of pStreams and a logistic model, one of which places data. The
// filesystem, the daemon's shadow devices and the replay evaluate this class, so a model means the
// same to all of them. base/wire/model_table.h is its serial form.
// Thread safety: const methods, any thread. place() takes no lock and allocates nothing.
// Crash: memory only.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "learning/landmarks.h"
#include "learning/request.h"
#include "learning/table.h"
#include "learning/write_view.h"

namespace streamfs::learning {

class PlacementModel {
 public:
  // Remembers the last page of a request that place() has placed. Each request has a cursor of its
  // own. If another model is adopted within a request, pages that are alike keep the lifetime that
  // the earlier model gave.
  struct Cursor {
    bool placed = false;  // false: none was
    uint64_t page = 0;
    uint32_t cls = 0;
    PathView view;       // of this page, or of an earlier page that is alike
    float lifetime = 0;  // of `view`
  };

  // Replaces this model by a published one, for a device of `pstream_count` pStreams. After an
  // error this model is undefined. Errors: EINVAL, with the reason, for a checksum that is wrong, a
  // pStream that the device does not have, a kind with impossible characters, or numbers out of
  // their range. Requires: no other thread uses the model.
  Result<void> deserialize(const wire::ModelBuffer& published, uint32_t pstream_count);

  // Makes this the model of a mount that begins: it has learned up to clock 0. Requires:
  // deserialize() succeeded.
  void begin_mount() { buffer_->clock_pages = 0; }

  // Returns the pStream of the page at `index` of a request. Does not read the request's `expected`
  // and `chunks`: it uses the model's own.
  PStreamId place(const Request& request, uint32_t index, Cursor& cursor) const;
  // Returns the table's pStream.
  PStreamId in_table(VStreamId vstream, uint32_t shape) const {
    return PStreamId{table_of(buffer_->entries).row(vstream.value)[shape]};
  }

  // Returns the serial form of the model.
  const wire::ModelBuffer& serialized() const { return *buffer_; }
  // Returns whether the logistic model serves, else the table does.
  bool is_logistic() const { return buffer_->serves == wire::ModelServes::kLogistic; }
  uint64_t generation() const { return buffer_->generation; }
  uint64_t clock_pages() const { return buffer_->clock_pages; }
  std::string kind() const;
  // The class of each chunk (base/wire/model_table.h).
  std::span<const uint8_t> chunks() const { return buffer_->chunks; }
  // Returns the pStreams that place() may return.
  std::bitset<256> pstreams() const;

 private:
  Table table_of(std::span<const uint8_t> rows) const { return {buffer_->row_of, rows}; }
  // Places by the logistic model. Requires: `request` has the model's `expected` and `chunks`.
  PStreamId by_lifetime(const Request& request, uint32_t index, Cursor& cursor) const;

  std::unique_ptr<wire::ModelBuffer> buffer_ = std::make_unique<wire::ModelBuffer>();
  Landmarks landmarks_{1};
};

}  // namespace streamfs::learning
