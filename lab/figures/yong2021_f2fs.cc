// Yong 2021, figure 6, on the writes of a real F2FS, which was recorded in a virtual machine.
#include <array>
#include <cstddef>
#include <cstdint>
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
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "lab/workload/trace_source.h"

namespace streamfs::lab::figures {
namespace {

constexpr uint32_t kScale = 256;           // the recorded disk's size, 1 GiB
constexpr double kOnceAround = 0.34;       // this share of the writes fills the disk once
using PStreams = std::array<uint16_t, 8>;  // by vStream
constexpr PStreams kLinux = {0, 0, 0, 0, 0, 1, 2, 0};  // by reclaim unit handle

// The recording, with the pStreams of table II or with others.
class Recorded final : public OpSource {
 public:
  static Result<std::unique_ptr<OpSource>> open(const std::optional<PStreams>& others) {
    SFS_ASSIGN(Recording recording, Recording::f2fs_phone());
    SFS_ASSIGN(std::unique_ptr<TraceSource> trace, TraceSource::open({recording.path()}, {}));
    return std::unique_ptr<OpSource>(new Recorded(std::move(recording), std::move(trace), others));
  }

  Result<std::span<const PageOp>> next() override {
    SFS_ASSIGN(const std::span<const PageOp> ops, trace_->next());
    if (!others_) return ops;
    batch_.assign(ops.begin(), ops.end());
    for (PageOp& op : batch_) op.pstream = others_->at(op.vstream);
    return std::span<const PageOp>(batch_);
  }
  Result<void> rewind() override { return trace_->rewind(); }

 private:
  Recorded(Recording recording, std::unique_ptr<TraceSource> trace,
           const std::optional<PStreams>& others)
      : recording_(std::move(recording)), trace_(std::move(trace)), others_(others) {}

  const Recording recording_;
  const std::unique_ptr<TraceSource> trace_;
  const std::optional<PStreams> others_;
  std::vector<PageOp> batch_;
};

Result<FigureResult> run_f2fs(const FigureOptions& asked) {
  FigureOptions options = asked;
  options.scale = kScale;
  const auto as_linux = [](const GeneratorOptions&) { return Recorded::open(kLinux); };
  const DeviceRun common{
      .preset = "vstream-256g",
      .source = [](const GeneratorOptions&) { return Recorded::open(std::nullopt); },
      .prefill = 0,
      .warmup = kOnceAround};
  SFS_ASSIGN(const ContenderRuns runs,
             ContenderRuns::run(common,
                                {{"Legacy", "legacy"},
                                 {"vStream-SGC", "vstream-sgc"},
                                 {"vStream-NGC", "vstream-ngc"},
                                 {"Manual", "manual"},
                                 {"Auto", "autostream-mq", 3},
                                 {"as Linux 7.2 places it", "manual", 0, as_linux}},
                                options));
  FigureResult result;
  for (size_t i = 1; i < runs.contenders().size(); ++i) {
    const std::string& label = runs.contenders()[i].label;
    std::optional<double> copies, throughput;
    if (label == "vStream-SGC") copies = 0.49, throughput = 1.48;
    result.rows.push_back(
        {label + ", copies", "× Legacy", copies, runs.relative(i, copies_a_byte)});
    result.rows.push_back(
        {label + ", throughput", "× Legacy", throughput, runs.relative(i, mb_a_second)});
    result.rows.push_back({label + ", WAF", "", std::nullopt, runs.measured(i, waf_of)});
  }
  result.rows.push_back({"Legacy, WAF", "", std::nullopt, runs.measured(0, waf_of)});
  result.notes = {
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
          .assumed = {"recorded in a virtual machine, from an empty file system on: photographs, "
                      "apps, two SQLite databases, a browser's cache and a log, 70 to 85 % full, "
                      "3.0 GiB in all (lab/figures/recorded/README.md); one recording",
                      "the device at 1/256, as large as the recorded disk; counting begins when as "
                      "much is written as it holds",
                      "replayed at full speed, with discards in their places, without reads",
                      "as Linux 7.2 places it: by reclaim unit handles as seen on QEMU's FDP SSD, "
                      "warm data 1, cold data 2, all else 0 (tests/vm/test_f2fs.py)"},
          .seeds = 1,
          .run = run_f2fs};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
