// Generated workloads. Each is one short file that cites its source; a seed repeats it bit for bit.
// The tags (vStream and pStream) are the ideal ones: pages that die together have the same.
// Thread safety: none. Memory: one batch and the generator's own tables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {

struct GeneratorOptions {
  uint32_t pages = 0;   // written pages; 0: the workload's default
  uint64_t writes = 0;  // host page writes; 0: ten for each page
  uint64_t seed = 1;
  double hot_writes = 0.9,
         hot_space = 0.1;  // hotcold, shifting: shares of the writes and of the pages that are hot
  double theta = 0.99;     // zipf
  uint64_t period = 0;     // shifting: writes between moves; 0: one for each page
  // rocksdb-levels: the tree's share of the pages, .1 to .9 (0: .7); pages of a table, 16 to a
  // 128th of the pages (0: an 8,192nd of them, at least 16). Compactions need more pages: next()
  // returns ENOSPC if there are none.
  double tree = 0;
  uint32_t table_pages = 0;
  double read_share = 0;  // share of random one-page reads in all pages read and written
};

struct GeneratorKind {
  std::string name;
  std::string what;  // one line, for lists
  uint16_t streams;  // pStreams in its tags
  uint32_t default_pages;
  bool prefill;  // whether it starts on a full device by default
};

const std::vector<GeneratorKind>& generators();

// Errors: EINVAL for an option out of range or an unknown name; the message lists the known names.
Result<const GeneratorKind*> find_generator(const std::string& name);
Result<std::unique_ptr<OpSource>> make_generator(const std::string& name,
                                                 const GeneratorOptions& options);

// The base of the generators. It makes batches of requests, ends the stream after `writes` page
// writes, and restores the seed at a rewind.
class Generator : public OpSource {
 public:
  Result<std::span<const PageOp>> next() final;
  Result<void> rewind() final;

 protected:
  explicit Generator(const GeneratorOptions& options)
      : pages_(options.pages),
        writes_(options.writes),
        seed_(options.seed),
        random_(options.seed) {}

  virtual void request() = 0;  // emits the next request, or calls fail()
  virtual void restart() {}    // resets the generator's state; random_ has its seed again

  // Makes next() return the error until a rewind.
  void fail(Error error) { failed_ = std::move(error); }

  // Emits a page write, or nothing after the last one: the last request may be cut short.
  void write(const PageOp& op) {
    if (written_ == writes_) return;
    ++written_;
    batch_.push_back(op);
  }
  // Writes one page as a request of its own, with `tag` as vStream and pStream.
  void write_page(ssd::Lpn page, uint16_t tag) {
    write({.page = page, .address = page, .request_first = page, .vstream = tag, .pstream = tag});
  }
  void write_run(ssd::Lpn first, uint32_t pages, uint16_t vstream, uint16_t pstream);
  void read_run(ssd::Lpn first, uint32_t pages) {
    for (ssd::Lpn page = first; page < first + pages; ++page)
      batch_.push_back({.page = page,
                        .address = page,
                        .request_first = first,
                        .request_pages = pages,
                        .kind = OpKind::kRead});
  }
  void trim_page(ssd::Lpn page) {
    batch_.push_back({.page = page, .address = page, .request_first = page, .kind = OpKind::kTrim});
  }

  // Facts of a generator that writes every page and trims none.
  StreamFacts all_pages() const {
    return {.footprint_pages = pages_, .peak_live_pages = pages_, .writes = writes_};
  }

  const uint32_t pages_;
  const uint64_t writes_;
  const uint64_t seed_;
  Random random_;
  uint64_t written_ = 0;

 private:
  std::vector<PageOp> batch_;
  std::optional<Error> failed_;
};

std::unique_ptr<OpSource> make_uniform(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_hot_cold(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_zipf(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_shifting(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_fio4(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_emmc3(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_vstream64(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_noisy_neighbours(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_rocksdb_levels(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_smartphone(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_smartphone_steady(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_iozone_sequential(const GeneratorOptions& options);
std::unique_ptr<OpSource> make_iozone_random(const GeneratorOptions& options);

}  // namespace streamfs::lab
