// uniform: all pages are equally likely. The formulas for greedy and FIFO hold for this workload.
#include <memory>
#include <optional>

#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {
namespace {

class Uniform final : public Generator {
 public:
  explicit Uniform(const GeneratorOptions& options) : Generator(options) {}
  std::optional<StreamFacts> facts() const override { return all_pages(); }

 private:
  void request() override { write_page(random_.below(pages_), 0); }
};

}  // namespace

std::unique_ptr<OpSource> make_uniform(const GeneratorOptions& options) {
  return std::make_unique<Uniform>(options);
}

}  // namespace streamfs::lab
