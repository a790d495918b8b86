// vStream-FTL (Yong 2021): the host names vStreams, the device measures their lifetimes (vSLI,
// ssd/ftl/vstream/lifetimes.h) and maps them to its few pStreams every remap_pages (vSCM, algorithm
// 2). Data of unknown lifetime goes to the default pStream. Copies have open blocks of their own.
// kNormal: one for all. kAware: one for each pStream, chosen by the VSID's current pStream (vSGC,
// algorithm 3). kOwnPStream: one for each pStream, chosen by the source block's pStream; the
// difference from kAware is the gain of the second look-up.
//
// kLiteral never moves a vStream off the default pStream: all begin there, so no other pStream has
// a mean lifetime. kLiteralSpread starts them on the pStreams in turn. kOurs clusters with seeded
// and re-seeded centroids (learning/cluster.h).
// In the device only. Memory: lifetimes.h.
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
