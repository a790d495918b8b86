// The vStream-FTL's map of vStreams to pStreams (vSCM, Yong 2021, algorithm 2). It measures the
// lifetimes of vStreams (lifetimes.h) and maps them again each remap_pages host pages. Data of
// unknown lifetime belongs to the default pStream.
//
// Clustering:
//   kOurs            centroids are seeded, and seeded again (learning/cluster.h)
//   kLiteral         algorithms 1 and 2 as printed. All vStreams begin on the default pStream, so
//                    no other pStream ever has a mean lifetime, and no vStream leaves the default
//   kLiteralSpread   the same, but vStreams begin on the pStreams in turn
//
// Thread safety: none. Memory: lifetimes.h, and 2 bytes a vStream.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "ssd/ftl/vstream/lifetimes.h"
#include "ssd/geometry.h"

namespace streamfs::ssd::vstream {

enum class Clustering : uint8_t { kOurs, kLiteral, kLiteralSpread };

class StreamMap {
 public:
  struct Options {
    uint16_t streams;  // pStreams
    uint64_t remap_pages;
    Clustering clustering = Clustering::kOurs;
  };
  StreamMap(const Geometry& geometry, const Options& options)
      : options_(options), lifetimes_(geometry), next_remap_(options.remap_pages) {}

  // The owner reports programs, copies and deaths to it.
  Lifetimes& lifetimes() { return lifetimes_; }
  const Lifetimes& lifetimes() const { return lifetimes_; }

  PStreamId of(Slot slot);
  // Maps the vStreams again if that is due, and returns whether it was. Call it before each host
  // write; `clock`: host pages written.
  bool advance(uint64_t clock) {
    const bool due = clock >= next_remap_;
    if (due) remap(clock);
    return due;
  }
  // Goes on with a device with data at this clock. Call it after the last restore() of lifetimes().
  void restore(uint64_t clock) {
    next_remap_ = clock + options_.remap_pages;
    lifetimes_.begin_window(clock);
  }
  void restore(Slot slot, PStreamId pstream);

 private:
  void remap(uint64_t clock);
  void remap_literally();

  const Options options_;
  Lifetimes lifetimes_;
  std::vector<PStreamId> pstreams_;  // by slot
  uint64_t next_remap_;
};

}  // namespace streamfs::ssd::vstream
