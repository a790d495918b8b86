// Predicts lifetimes from many life tables that each saw few pages: contexts that share a program,
// an extension or a directory share what they know. Each level groups the cells by some of their
// features, from coarse to fine. A prediction starts with the mean of the coarsest level that knows
// any. Each finer level moves it towards its own mean, weighted by its evidence against `kappa`
// pages: a context seen ten times changes little, one seen a million times decides.
// Thread safety: const after fit(). Crash: memory only.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "classifierd/src_core/life_table.h"

namespace streamfs::classifier {

// The features that a level groups by; a level is a bitwise or of these.
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
  double mean_log2 = 0;  // of the lifetime in pages written
  double evidence = 0;   // pages with a known outcome in the finest level's group
};

class Backoff {
 public:
  // `levels`: from coarse to fine. `deadband_log2`: a level of shapes moves the prediction only if
  // its mean differs by at least so much. `prior_log2`: the prediction if no level knows any.
  Backoff(std::vector<uint32_t> levels, double kappa, double deadband_log2, double prior_log2);
  // Replaces all that is known by these cells. `contexts`: by vStream; later ones are unknown.
  void fit(std::span<const CellLife> cells, std::vector<VStreamContext> contexts);
  // Predicts a chunk class that no cell has as class 0, with no evidence.
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
  std::vector<VStreamContext> contexts_;            // by vStream; later ones are unknown
  std::vector<std::unordered_map<uint64_t, Known>> known_;
};

}  // namespace streamfs::classifier
