// bench/maintain's device: an emulated SSD under bursts with idle time between, or under files that
// are deleted with and without trims. Prints a JSON object with the device's counters, on its
// virtual clock. The work is the same whatever the device does in between; nothing here takes the
// wall's time into account.
//   maintain_device --image FILE idle --utilisation 0.9 --burst 64M --idle 1 [--off]
//   maintain_device --image FILE trim --trims none|misaligned|joined|aligned
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/background.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/ssd.h"
#include "ssd/stats.h"

namespace streamfs::bench {
namespace {

using nlohmann::json;
using ssd::kPageBytes;

struct Options {
  std::string image;
  uint64_t user_bytes = 512 * kMiB, unit_bytes = kPageBytes, burst_bytes = 64 * kMiB, seed = 1;
  uint64_t in_all_bytes = 1536 * kMiB;  // written while it is counted
  double spare = 0.047, utilisation = 0.9, idle_seconds = 1;
  double hot_writes = 0.5, hot_space = 0.5;  // uniform
  bool off = false;
  std::string trims = "aligned";
};

// The emulated SSD and a host that writes to it. A device that fails ends the program.
class Host {
 public:
  explicit Host(const Options& options) : options_(options), random_(options.seed) {
    ssd::GeometryRequest request;
    request.user_bytes = options.user_bytes;
    request.spare = options.spare;
    request.streams = 1;
    request.map_unit_bytes = options.unit_bytes;
    request.nand = ssd::NandShape{4, 1, 1, 2, 4, ssd::Cell::kMlc};
    const auto geometry = need(ssd::plan_geometry(request));
    must(ssd::Image::create(options.image, geometry, true));
    ssd_ = need(ssd::Ssd::open(options.image, {}));
    pages_ = geometry.user_pages;
  }

  uint64_t pages() const { return pages_; }
  ssd::Ssd& ssd() { return *ssd_; }
  uint64_t draw(uint64_t below) { return random_() % below; }

  void write(uint64_t page, uint64_t pages) {
    must(ssd_->write(page, ConstBytes(bytes_).first(pages * kPageBytes), {}, {}));
  }
  void fill(uint64_t pages) {
    for (uint64_t at = 0; at < pages; at += kMost) write(at, std::min(kMost, pages - at));
  }
  // Requests of `size` pages, aligned to their size, on the first `live` pages.
  void overwrite(uint64_t live, uint64_t count, uint64_t size = 1) {
    const uint64_t places = live / size;
    const auto hot = std::max<uint64_t>(
        1, static_cast<uint64_t>(static_cast<double>(places) * options_.hot_space));
    std::uniform_real_distribution<double> share(0, 1);
    for (uint64_t i = 0; i < count; i += size) {
      const bool to_hot = share(random_) < options_.hot_writes || hot == places;
      write((to_hot ? draw(hot) : hot + draw(places - hot)) * size, size);
    }
  }

  static void must(const Result<void>& done) {
    if (!done.ok()) fail(done.error());
  }
  template <typename T>
  static T need(Result<T> value) {
    if (!value.ok()) fail(value.error());
    return std::move(*value);
  }

 private:
  static constexpr uint64_t kMost = 256;
  [[noreturn]] static void fail(const Error& error) {
    fmt::print(stderr, "maintain_device: {}\n", error.message());
    std::exit(1);
  }
  const Options& options_;
  std::mt19937_64 random_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kMost * kPageBytes, std::byte{1});
  std::unique_ptr<ssd::Ssd> ssd_;
  uint64_t pages_ = 0;
};

void print(Host& host, json more) {
  more.update(ssd::to_json(host.ssd().stats()));
  more["wear_most"] = host.ssd().wear().most;
  fmt::print("{}\n", more.dump());
}

// Random overwrites of 4 KiB in bursts. Runs with and without idle work have the same idle time.
void run_idle(const Options& options) {
  Host host(options);
  const auto live = static_cast<uint64_t>(static_cast<double>(host.pages()) * options.utilisation);
  const uint64_t burst = options.burst_bytes / kPageBytes;
  ssd::IdleLimits limits;
  limits.idle_ns = static_cast<uint64_t>(options.idle_seconds * 1e9);
  if (options.off) limits.pages = 0;
  host.fill(live);
  uint64_t finished = 0, bursts = 0;
  const auto bursts_of = [&](uint64_t pages) {
    for (uint64_t written = 0; written < pages; written += burst, ++bursts) {
      host.overwrite(live, burst);
      const auto report = host.ssd().run_idle(limits);
      if (report.end == ssd::IdleReport::End::kNothingLeft) ++finished;
    }
  };
  host.overwrite(live, host.pages());
  bursts_of(host.pages());
  host.ssd().reset_stats();
  finished = bursts = 0;
  bursts_of(options.in_all_bytes / kPageBytes);
  print(host, {{"bursts", bursts}, {"bursts_all_done", finished}});
}

// The files' part of the device: as many files as fit, of 1 to 8 units each, one after the other.
// Half of them are deleted, the database beside them is overwritten, they are written anew.
struct File {
  uint64_t first, pages;
  bool there = true;
};

class Files {
 public:
  Files(Host& host, uint64_t from, uint64_t unit, uint64_t shift) : host_(host), unit_(unit) {
    for (uint64_t at = from + shift;;) {
      const uint64_t pages = (1 + host.draw(8)) * unit;
      if (at + pages > host.pages()) break;
      all_.push_back({at, pages});
      at += pages;
    }
  }
  void write_missing() {
    for (File& file : all_) {
      host_.write(file.first, file.pages);
      file.there = true;
    }
  }
  // Requires: all files exist.
  void remove_half(const std::string& trims) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (host_.draw(2) == 0) continue;
      all_[i].there = false;
      if (trims != "none") trim(i, trims == "joined");
    }
  }
  uint64_t there_pages() const {
    uint64_t sum = 0;
    for (const File& file : all_) sum += file.there ? file.pages : 0;
    return sum;
  }

 private:
  // `joined` extends the trim to whole units on the side where the neighbouring file is gone.
  void trim(size_t at, bool joined) {
    uint64_t first = all_[at].first, end = first + all_[at].pages;
    if (joined && at > 0 && !all_[at - 1].there) first = round_down(first, unit_);
    if (joined && at + 1 < all_.size() && !all_[at + 1].there) end = round_up(end, unit_);
    Host::must(host_.ssd().trim(first, end - first));
  }
  Host& host_;
  const uint64_t unit_;
  std::vector<File> all_;
};

void run_trims(const Options& options) {
  Host host(options);
  const uint64_t unit = options.unit_bytes / kPageBytes;
  const uint64_t database = round_down(host.pages() * 6 / 10, unit);
  const uint64_t shift = options.trims == "aligned" || options.trims == "none" ? 0 : unit / 2;
  Files files(host, database, unit, shift);
  host.fill(database);
  files.write_missing();
  const uint64_t part = host.pages() / 4;  // of overwrites a round
  double seconds = 0;
  uint64_t overwritten = 0;
  const auto round = [&] {
    files.remove_half(options.trims);
    const auto before = host.ssd().stats();
    host.overwrite(database, part, unit);
    const auto after = host.ssd().stats();
    const auto seconds_of = [](const ssd::SsdStats& stats) {
      return stats.time.simulated_mb_per_s == 0
                 ? 0
                 : static_cast<double>(stats.written_bytes) / 1e6 / stats.time.simulated_mb_per_s;
    };
    seconds += seconds_of(after) - seconds_of(before);
    overwritten += after.written_bytes - before.written_bytes;
    files.write_missing();
  };
  for (int i = 0; i < 6; ++i) round();
  host.ssd().reset_stats();
  seconds = 0;
  overwritten = 0;
  while (host.ssd().stats().written_bytes < options.in_all_bytes) round();
  print(host, {{"overwrite_mb_per_s", static_cast<double>(overwritten) / 1e6 / seconds}});
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("An emulated SSD with idle time, or with trims, on its virtual clock.");
  app.add_option("--image", options.image, "Made anew.")->required();
  app.add_option("--size", options.user_bytes)->transform(CLI::AsSizeValue(false));
  app.add_option("--write", options.in_all_bytes)->transform(CLI::AsSizeValue(false));
  app.add_option("--unit", options.unit_bytes)->transform(CLI::AsSizeValue(false));
  app.add_option("--op", options.spare);
  app.add_option("--seed", options.seed);
  CLI::App* idle = app.add_subcommand("idle", "Bursts of random overwrites.");
  idle->add_option("--utilisation", options.utilisation)->check(CLI::Range(0.1, 1.0));
  idle->add_option("--burst", options.burst_bytes)->transform(CLI::AsSizeValue(false));
  idle->add_option("--idle", options.idle_seconds, "Seconds between bursts.");
  idle->add_option("--hot-writes", options.hot_writes);
  idle->add_option("--hot-space", options.hot_space);
  idle->add_flag("--off", options.off, "Idle time is there and nothing is done in it.");
  CLI::App* trim = app.add_subcommand("trim", "Files deleted beside random overwrites.");
  trim->add_option("--trims", options.trims)
      ->check(CLI::IsMember({"none", "misaligned", "joined", "aligned"}));
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  if (*idle) {
    run_idle(options);
  } else {
    run_trims(options);
  }
  return 0;
}

}  // namespace
}  // namespace streamfs::bench

int main(int argc, char** argv) {
  return streamfs::bench::run(argc, argv);
}
