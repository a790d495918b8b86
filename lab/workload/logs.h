// Generates jobs that each write their own region from front to back, again and again. A page lives
// for one round of its job. The synthetic workloads of several papers are built on this.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/workload/generator.h"

namespace streamfs::lab {

struct Job {
  uint32_t share;  // of the pages, relative to the other jobs' shares
  uint16_t vstream, pstream;
};

enum class Turn : uint8_t {
  kRoundRobin,
  kRandom,  // parallel jobs of equal speed
};

class Logs final : public Generator {
 public:
  static constexpr uint32_t kRequestPages = 32;  // 128 KiB

  Logs(const GeneratorOptions& options, std::span<const Job> jobs, Turn turn);
  std::optional<StreamFacts> facts() const override;
  Tag resident_tag(ssd::Lpn page) const override;

 private:
  struct Region {
    ssd::Lpn first;
    uint32_t pages;
    uint32_t cursor;
    Job job;
  };

  void request() override;
  void restart() override;

  std::vector<Region> regions_;
  const Turn turn_;
  size_t next_ = 0;
};

}  // namespace streamfs::lab
