// ssd-sim import: converts traces of other formats to ours.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "base/exit_codes.h"
#include "base/output_file.h"
#include "base/result.h"
#include "lab/import/import.h"
#include "lab/ssd_sim/commands.h"
#include "lab/ssd_sim/progress.h"
#include "trace/trace.h"

namespace streamfs::lab::ssd_sim {
namespace {

struct Imported {
  uint64_t reads = 0, writes = 0, trims = 0;
  uint64_t& of(trace::TraceOp op) {
    return op == trace::TraceOp::kRead ? reads : op == trace::TraceOp::kWrite ? writes : trims;
  }
  uint64_t all() const { return reads + writes + trims; }
};

class ImportCommand final : public Command {
 public:
  explicit ImportCommand(CLI::App& parent)
      : Command(parent.add_subcommand("import", "Convert a trace of another format.")) {
    app_->add_option("format", format_, fmt::format("{}.", fmt::join(import_formats(), ", ")))
        ->required()
        ->check(CLI::IsMember(import_formats()));
    app_->add_option("file", path_, "The trace, plain or gzipped.")->required();
    app_->add_option(
            "-o,--output", output_,
            "Write to this file: CSV if it ends in .csv or .csv.gz, else binary; .gz compresses.")
        ->required();
    app_->add_option("--device", options_.device,
                     "Take this device of a trace with several: fio: the file's name; blkparse and "
                     "f2fs: major,minor; msr: host.disk; alibaba: the id.");
    app_->add_option("--action", action_, "Take these events of blkparse: D, Q or C.")
        ->check(CLI::IsMember({"D", "Q", "C"}))
        ->capture_default_str();
    app_->footer(kExitCodes);
  }

  int run() override {
    options_.blk_action = action_[0];
    ProgressBar bar;
    const Result<Imported> done = convert(bar);
    bar.clear();
    if (!done.ok()) return fail(done.error());
    fmt::print("{}: {} writes, {} reads, {} trims; {} lines skipped\n", output_, done->writes,
               done->reads, done->trims, skipped_);
    return exit_code::kOk;
  }

 private:
  Result<Imported> convert(ProgressBar& bar) {
    SFS_ASSIGN(const std::unique_ptr<Importer> importer, make_importer(format_, path_, options_));
    SFS_ASSIGN(OutputFile file, OutputFile::create(output_));
    SFS_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer,
               trace::TraceWriter::onto(file.fd(), output_));
    bar.set_label("requests:");
    Imported imported;
    for (trace::TraceRecord record;;) {
      SFS_ASSIGN(const bool more, importer->next(record));
      if (!more) break;
      ++imported.of(record.op);
      writer->append(record);
      if (imported.all() % 65536 == 0) bar.show(imported.all(), 0);
    }
    skipped_ = importer->skipped();
    if (imported.all() == 0)
      return Error{EINVAL,
                   fmt::format("{}: no request{} in {} lines", path_,
                               options_.device.empty() ? "" : " of " + options_.device, skipped_)};
    SFS_TRY(writer->close());
    SFS_TRY(file.commit());
    return imported;
  }

  std::string format_, path_, output_;
  std::string action_ = "D";
  ImportOptions options_;
  uint64_t skipped_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_import_command(CLI::App& parent) {
  return std::make_unique<ImportCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
