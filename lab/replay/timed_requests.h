// Joins the page operations of a replay into the host's requests, for the latency model.
// Thread safety: none.
#pragma once

#include <cstdint>

#include "lab/workload/op_source.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"

namespace streamfs::lab {

class TimedRequests {
 public:
  explicit TimedRequests(ssd::LatencyModel& latency) : latency_(latency) {}

  // Call before the FTL writes the page.
  void write(const PageOp& op) {
    if (continues(op)) return;
    end();
    begin(op);
    latency_.begin_write(op.request_pages);
  }

  // `at`: the page's place on flash; kNoPage if it was never written or is trimmed.
  void read(const PageOp& op, ssd::Ppn at) {
    if (!continues(op)) {
      end();
      begin(op);
      read_ = latency_.begin_read(op.request_pages);
    }
    if (run_ > 0 && at == first_ + run_) {
      ++run_;
      return;
    }
    read_run();
    if (at == ssd::kNoPage) return;
    first_ = at;
    run_ = 1;
  }

  // Ends the open request, if there is one.
  void end() {
    if (!open_) return;
    open_ = false;
    if (last_.kind == OpKind::kWrite) {
      latency_.end_write();
      return;
    }
    read_run();
    latency_.end_read(read_);
  }

 private:
  static uint32_t place(const PageOp& op) { return op.address - op.request_first; }

  // Returns whether the page belongs to the open request. The pieces of a write may lie apart; a
  // read has one piece.
  bool continues(const PageOp& op) {
    if (!open_ || op.kind != last_.kind || op.request_pages != last_.request_pages) return false;
    if (place(op) <= place(last_)) return false;
    if (op.kind == OpKind::kRead && op.request_first != last_.request_first) return false;
    last_ = op;
    return true;
  }
  void begin(const PageOp& op) {
    open_ = true;
    last_ = op;
  }
  void read_run() {
    if (run_ > 0) latency_.host_read(read_, first_, run_);
    run_ = 0;
  }

  ssd::LatencyModel& latency_;
  PageOp last_;
  bool open_ = false;
  ssd::LatencyModel::Read read_;
  ssd::Ppn first_ = ssd::kNoPage;
  uint32_t run_ = 0;
};

}  // namespace streamfs::lab
