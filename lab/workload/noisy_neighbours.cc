// noisy: one stream that overwrites its third of the pages in order, and two that overwrite theirs
// at random, all equally often: the load under which real FDP drives were seen at a WAF of 2.6 to
// 4.5 in spite of a handle for each (WARP, FAST'26). Tags 0 sequential, 1 and 2 random.
#include <cstdint>
#include <memory>
#include <optional>

#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

class NoisyNeighbours final : public Generator {
 public:
  explicit NoisyNeighbours(const GeneratorOptions& options)
      : Generator(options), third_(pages_ / 3), sequential_(pages_ - 2 * third_) {}
  std::optional<StreamFacts> facts() const override { return all_pages(); }
  Tag resident_tag(ssd::Lpn page) const override {
    const auto tag =
        static_cast<uint16_t>(page < sequential_ ? 0 : 1 + (page - sequential_) / third_);
    return {tag, tag};
  }

 private:
  void request() override {
    write_page(next_, 0);
    next_ = (next_ + 1) % sequential_;
    for (uint16_t tag = 1; tag <= 2; ++tag)
      write_page(sequential_ + (tag - 1u) * third_ + random_.below(third_), tag);
  }
  void restart() override { next_ = 0; }

  const uint32_t third_, sequential_;
  ssd::Lpn next_ = 0;
};

}  // namespace

std::unique_ptr<OpSource> make_noisy_neighbours(const GeneratorOptions& options) {
  return std::make_unique<NoisyNeighbours>(options);
}

}  // namespace streamfs::lab
