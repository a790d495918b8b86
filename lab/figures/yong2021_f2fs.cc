// Yong 2021, figure 6, on the writes of a real F2FS, which was recorded in a virtual machine.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/figures/comparison_rows.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/recorded/recording.h"
#include "lab/figures/yong_findings.h"
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "lab/workload/trace_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab::figures {
namespace {

constexpr uint32_t kScale = 256;                // the recorded disk's size, 1 GiB
constexpr double kOnceAround = 0.34;            // this share of the writes fills the disk once
constexpr uint64_t kPhasePages = 77;            // a tenth of an erase block
constexpr ssd::Lpn kPhasePage = (1 << 18) - 1;  // the disk's last; the recording does not have it
using PStreams = std::array<uint16_t, 8>;       // by vStream
constexpr PStreams kLinux = {0, 0, 0, 0, 0, 1, 2, 0};  // by reclaim unit handle

// Changes to the recording. `phase` untagged writes of one page precede it, so that its requests
// lie elsewhere in the erase blocks; a replay has no randomness of its own.
struct Changes {
  std::optional<PStreams> pstreams = {};  // instead of table II's
  bool discards = true;
  uint64_t phase = 0;
};

class Recorded final : public OpSource {
 public:
  static Result<std::unique_ptr<OpSource>> open(const Changes& changes) {
    SFS_ASSIGN(Recording recording, Recording::f2fs_phone());
    SFS_ASSIGN(std::unique_ptr<TraceSource> trace, TraceSource::open({recording.path()}, {}));
    return std::unique_ptr<OpSource>(new Recorded(std::move(recording), std::move(trace), changes));
  }

  Result<std::span<const PageOp>> next() override {
    batch_.clear();
    if (!begun_)
      batch_.assign(changes_.phase, PageOp{.page = kPhasePage,
                                           .address = kPhasePage,
                                           .request_first = kPhasePage,
                                           .vstream = UINT16_MAX});
    begun_ = true;
    while (batch_.empty()) {
      SFS_ASSIGN(const std::span<const PageOp> ops, trace_->next());
      if (ops.empty()) break;
      std::ranges::copy_if(ops, std::back_inserter(batch_), [&](const PageOp& op) {
        return changes_.discards || op.kind != OpKind::kTrim;
      });
    }
    if (changes_.pstreams)
      for (PageOp& op : batch_)
        if (op.vstream != UINT16_MAX) op.pstream = changes_.pstreams->at(op.vstream);
    return std::span<const PageOp>(batch_);
  }
  Result<void> rewind() override {
    begun_ = false;
    return trace_->rewind();
  }

 private:
  Recorded(Recording recording, std::unique_ptr<TraceSource> trace, const Changes& changes)
      : recording_(std::move(recording)), trace_(std::move(trace)), changes_(changes) {}

  const Recording recording_;
  const std::unique_ptr<TraceSource> trace_;
  const Changes changes_;
  bool begun_ = false;
  std::vector<PageOp> batch_;
};

MakeSource recorded(const Changes& changes) {
  return [changes](const GeneratorOptions& made) {
    Changes shifted = changes;
    shifted.phase = (made.seed - 1) * kPhasePages;
    return Recorded::open(shifted);
  };
}

// Divides the same flash into erase blocks of 1/16 the size, on fewer dies: times do not compare.
void shrink_blocks(ssd::GeometryRequest& device) {
  if (!device.nand) return;
  ssd::NandShape& nand = *device.nand;
  nand.planes /= 2;
  nand.dies /= 2;
  nand.chips /= 4;
  device.blocks *= 16;
  device.low_water *= 16;
}

// A variant of the replay: with or without discards, in the device's erase blocks or smaller ones.
struct Setting {
  std::string name;  // is part of the labels
  bool discards = true;
  std::function<void(ssd::GeometryRequest&)> alter = {};
};

std::vector<Contender> contenders(const Setting& setting) {
  std::vector<Contender> all = {{"Legacy", "legacy"},
                                {"vStream-SGC", "vstream-sgc"},
                                {"vStream-NGC", "vstream-ngc"},
                                {"Manual", "manual"},
                                {"Auto", "autostream-mq", 3}};
  if (setting.name.empty()) {
    all.push_back({"Auto, chunks of 1 MiB", "autostream-mq", 3, {}, true});
    all.push_back({"as Linux 7.2 places it", "manual", 0, recorded({.pstreams = kLinux})});
  }
  return all;
}

void add_rows(FigureResult& result, const Setting& setting, const ContenderRuns& runs) {
  const bool plain = setting.name.empty();
  for (size_t i = 1; i < runs.contenders().size(); ++i) {
    const std::string label = runs.contenders()[i].label + setting.name;
    const auto paper = [&](double value) {
      return plain && i == 1 ? std::optional(value) : std::nullopt;
    };
    result.rows.push_back(
        {label + ", copies", "× Legacy", paper(0.49), runs.relative(i, copies_a_byte)});
    if (plain)
      result.rows.push_back(
          {label + ", throughput", "× Legacy", paper(1.48), runs.relative(i, mb_a_second)});
  }
  for (size_t i = 0; i < (plain ? runs.contenders().size() : 1); ++i)
    result.rows.push_back({runs.contenders()[i].label + setting.name + ", WAF", "", std::nullopt,
                           runs.measured(i, waf_of)});
  result.findings.push_back(beside_ngc("On the recording" + setting.name,
                                       runs.gap("vStream-NGC", "vStream-SGC", copies_a_byte)));
}

Result<FigureResult> run_f2fs(const FigureOptions& asked) {
  FigureOptions options = asked;
  options.scale = kScale;
  FigureResult result;
  for (const Setting& setting :
       {Setting{""}, Setting{" in small blocks", true, shrink_blocks},
        Setting{" without discards", false},
        Setting{" without discards in small blocks", false, shrink_blocks}}) {
    const DeviceRun common{.preset = "vstream-256g",
                           .alter = setting.alter,
                           .source = recorded({.discards = setting.discards}),
                           .prefill = 0,
                           .warmup = kOnceAround};
    SFS_ASSIGN(const ContenderRuns runs, ContenderRuns::run(common, contenders(setting), options));
    add_rows(result, setting, runs);
  }
  result.notes = {
      "vSGC sorts the pages that garbage collection copies. F2FS discards freed space, so the "
      "device copies few pages under vStreams. vSGC then has little to sort, and its open blocks "
      "for copies take more of the spare than NGC's: in small blocks they do not. Without "
      "discards, there are copies to sort.",
      "AutoStream's chunk of 1 MiB is a 262,144th of the source's device, which is one page here. "
      "A chunk of 1 MiB is half a segment of F2FS's log and holds all lifetimes of its stream.",
      "Linux places by the temperature of data only, so nodes and the file system's metadata share "
      "a handle with hot data. Table II and vStreams separate them."};
  return result;
}

}  // namespace

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
Figure yong2021_f2fs() {
  return {.name = "yong2021-f2fs",
          .source = "Yong 2021, figure 6",
          .shows = "throughput and copies of a recording of Linux 7.2's F2FS",
          .unsaid = {"the trace, as in yong2021-fig6"},
          .assumed =
              {"recorded in a virtual machine, from an empty file system on: photographs, "
               "apps, two SQLite databases, a browser's cache and a log, 70 to 85 % full, "
               "3.0 GiB in all (lab/figures/recorded/README.md); one recording, replayed from five "
               "positions in an erase block",
               "the device at 1/256, as large as the recorded disk; counting begins when as "
               "much is written as it holds",
               "replayed at full speed, with discards in their places, without reads",
               "small blocks: a sixteenth of the device's erase block, 192 KiB",
               "as Linux 7.2 places it: by reclaim unit handles as seen on QEMU's FDP SSD, "
               "warm data 1, cold data 2, all else 0 (tests/vm/test_f2fs.py)"},
          .seeds = 5,
          .run = run_f2fs};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
