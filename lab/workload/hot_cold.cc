// hotcold: two temperatures. A share r of the writes goes to a share f of the pages, uniform within
// each (Rosenblum and Ousterhout, SOSP'91; Desnoyers, SYSTOR'12). Tag 0 is hot, 1 cold.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

class HotCold final : public Generator {
 public:
  explicit HotCold(const GeneratorOptions& options)
      : Generator(options),
        hot_writes_(options.hot_writes),
        hot_pages_(std::clamp(static_cast<uint32_t>(options.hot_space * pages_), 1u, pages_ - 1)) {}
  std::optional<StreamFacts> facts() const override { return all_pages(); }
  Tag resident_tag(ssd::Lpn page) const override {
    const uint16_t tag = page < hot_pages_ ? 0 : 1;
    return {tag, tag};
  }

 private:
  void request() override {
    if (random_.unit() < hot_writes_)
      write_page(random_.below(hot_pages_), 0);
    else
      write_page(hot_pages_ + random_.below(pages_ - hot_pages_), 1);
  }

  const double hot_writes_;
  const uint32_t hot_pages_;
};

}  // namespace

std::unique_ptr<OpSource> make_hot_cold(const GeneratorOptions& options) {
  return std::make_unique<HotCold>(options);
}

}  // namespace streamfs::lab
