// vStream-FTL (Yong 2021) in the simulated device. The host names vStreams. The device measures
// their lifetimes (the paper's vSLI, ssd/ftl/vstream/lifetimes.h), and every remap_pages maps them
// to its few pStreams (vSCM, algorithm 2). Data of unknown lifetime goes to the default pStream.
//
// Copies have open blocks of their own (vSGC, algorithm 3):
//   kNormal       one for all copies
//   kAware        one for each pStream: that of the page's vStream, by the present map
//   kOwnPStream   one for each pStream: that of the block which the page is copied from. The
//                 difference from kAware is the gain of the look-up in the map
//
// Clustering:
//   kOurs            centroids are seeded, and seeded again (learning/cluster.h)
//   kLiteral         algorithms 1 and 2 as printed. All vStreams begin on the default pStream, so
//                    no other pStream ever has a mean lifetime, and no vStream leaves the default
//   kLiteralSpread   the same, but vStreams begin on the pStreams in turn
//
// The replay calls watch() before the first write. Memory: lifetimes.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lab/placement/policy.h"
#include "ssd/ftl/vstream/lifetimes.h"

namespace streamfs::lab {

enum class VStreamGc : uint8_t { kNormal, kOwnPStream, kAware };
enum class Clustering : uint8_t { kOurs, kLiteral, kLiteralSpread };

class VStream final : public PlacementPolicy {
 public:
  struct Options {
    uint16_t streams;
    VStreamGc gc;
    Clustering clustering;
    uint64_t remap_pages;
  };
  explicit VStream(const Options& options) : options_(options), next_remap_(options.remap_pages) {}

  uint16_t host_classes() const override { return options_.streams; }
  uint16_t classes() const override {
    const int for_copies = options_.gc == VStreamGc::kNormal ? 1 : options_.streams;
    return static_cast<uint16_t>(options_.streams + for_copies);
  }
  ssd::FlashWatcher* watch(const ssd::Geometry& geometry) override;
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override;
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) override;

 private:
  PStreamId pstream(ssd::vstream::Slot slot);
  void remap(uint64_t clock);
  void remap_literally();

  const Options options_;
  std::unique_ptr<ssd::vstream::Lifetimes> lifetimes_;
  std::vector<PStreamId> pstreams_;  // by slot
  uint64_t next_remap_;
};

}  // namespace streamfs::lab
