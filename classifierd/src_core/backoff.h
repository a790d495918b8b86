// From many thin life tables to one good guess: contexts that share a program, an extension or a
// directory share what they know. Each level groups the cells by some of their features, from
// coarse to fine; a level's own mean counts as its evidence against `kappa` pages of the coarser
// guess, so that a context seen ten times speaks softly and one seen a million times decides.
// Thread safety: const after fit(). Crash: nothing persistent.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "classifierd/src_core/life_table.h"

namespace streamfs::classifier {

// The features that a level groups by; a level is an or of these.
enum Feature : uint32_t {
  kComm = 1,
  kExtension = 2,
  kDirectory = 4,
  kVStream = 8,
  kOverwrite = 16,
  kAge = 32,  // implies kOverwrite
  kEnd = 64,  // place in the request
  kShape = kAge | kEnd,
  kChunk = 128,  // class of the chunk
};

struct VStreamContext {
  uint32_t comm = 0, extension = 0, directory = 0;  // ids given by the caller; 0 = unknown
};

struct Estimate {
  double mean_log2 = 0;  // of life in pages
  double evidence = 0;   // pages of the finest level's own experience
};

class Backoff {
 public:
  Backoff(std::vector<uint32_t> levels, double kappa, double deadband_log2, double prior_log2);
  void fit(std::span<const CellLife> cells, std::vector<VStreamContext> contexts);
  // A chunk class that no cell has is taken for class 0, and has no evidence. and has no evidence.
  Estimate predict(uint16_t vstream, uint32_t shape) const;

 private:
  struct Known {
    double mean_log2;
    double evidence;
  };
  uint64_t key(size_t level, uint16_t vstream, uint32_t shape) const;

  std::vector<uint32_t> levels_;
  double kappa_;
  double deadband_log2_;
  double prior_log2_;
  std::bitset<wire::kChunkClasses> chunk_classes_;  // of the cells
  std::vector<VStreamContext> contexts_;            // by vStream; those beyond are unknown
  std::vector<std::unordered_map<uint64_t, Known>> known_;
};

}  // namespace streamfs::classifier
