// mkfs.streamfs --meta META DATA: makes an empty filesystem on a pair of devices.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/human_bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/frontend/status_json.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/pair/format_pair.h"
#include "fuse-fs/pair/pair.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/output.h"
#include "pmem/region.h"

namespace {

using namespace streamfs;         // NOLINT(google-build-using-namespace): a program's own file
using namespace streamfs::tools;  // NOLINT(google-build-using-namespace)

constexpr const char* kProgram = "mkfs.streamfs";
// mkfs warns if fewer files fit than one for each of these bytes. They are more than the plan's,
// because the reserve and rounding take a part of it.
constexpr uint64_t kFewFilesBytes = meta::kMeanFileBytes + meta::kMeanFileBytes / 8;

struct Words {
  std::string meta, data, mirror, meta_size, mean_file_size, uuid, intent_log, meta_class;
  bool quiet = false;
  bool as_json = false;
  bool restore = false;
  bool no_checksums = false;
  bool meta_log = true;
  bool degraded = false;
};

void declare(CLI::App& app, Words& words, pair::FormatPairOptions& options) {
  app.add_option("--meta", words.meta, "Use this metadata device; a missing file is created")
      ->required();
  app.add_option("DATA", words.data,
                 "The data device: a block device, a file, an NVMe /dev/ngXnY, or emu:PATH")
      ->required();
  app.add_option("--mirror", words.mirror, "Keep META on this device, too");
  app.add_option("--meta-size", words.meta_size,
                 "Make a new META file this large (default: room for an eighth of its files)")
      ->type_name("SIZE");
  app.add_option("--mean-file-size", words.mean_file_size,
                 "Let META grow until it has room for one file in each SIZE of DATA (default 16K)")
      ->type_name("SIZE");
  app.add_option("-L,--label", options.label, "Set the label, at most 31 bytes");
  app.add_option("-U,--uuid", words.uuid, "Set the UUID (default: random)");
  app.add_flag("-f,--force", options.force, "Overwrite existing content of DATA and META");
  app.add_flag("-n,--dry-run", options.dry_run, "Print what would be made; write nothing");
  app.add_flag("-q,--quiet", words.quiet, "Print errors only");
  app.add_flag("--json", words.as_json, "Print JSON");
  app.add_flag("--no-checksums", words.no_checksums, "Keep no data checksums");
  app.add_flag("--meta-log,!--no-meta-log", words.meta_log,
               "Log metadata on DATA, so that META can be rebuilt (default), or do not");
  app.add_option("--intent-log", words.intent_log,
                 "Keep small fsyncs in so much of META until they are written to DATA, or none "
                 "(default: a sixteenth of a persistent META, at least 8M)")
      ->type_name("SIZE|none");
  auto* declared = app.add_option("--meta-class", words.meta_class,
                                  "Declare that META is memory which keeps its content without "
                                  "power, as memory with a battery does")
                       ->check(CLI::IsMember({"persistent"}))
                       ->type_name("persistent");
  app.add_flag("--trust-memory", options.trust_memory,
               "Use the intent log although META loses its content without power: a power cut "
               "takes the fsyncs of the last 5 seconds, in order")
      ->excludes(declared);
  auto* restore = app.add_flag(
      "--restore", words.restore,
      "Make no new filesystem: rebuild a META that is lost or old from the log on DATA");
  app.add_flag("--degraded", words.degraded, "Rebuild one copy of a META that is kept twice")
      ->needs(restore);
  for (CLI::Option* option : app.get_options()) {
    const bool goes_along = option->get_required() || option->check_name("--quiet") ||
                            option->check_name("--json") || option->check_name("--mirror") ||
                            option->check_name("--degraded") || option->check_name("--help") ||
                            option->check_name("--version");
    if (option != restore && !goes_along) restore->excludes(option);
  }
}

Result<std::array<uint8_t, 16>> parse_uuid(const std::string& text) {
  const Error bad{EINVAL, fmt::format("\"{}\" is no UUID", text)};
  std::string digits;
  for (const char c : text) {
    if (c != '-') digits.push_back(c);
  }
  if (digits.size() != 32 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) {
    return bad;
  }
  std::array<uint8_t, 16> uuid{};
  for (size_t i = 0; i < uuid.size(); ++i) {
    uuid[i] = static_cast<uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  }
  return uuid;
}

Result<void> read_words(const Words& words, pair::FormatPairOptions& options) {
  if (!words.meta_size.empty()) {
    SFS_ASSIGN(options.meta_size, parse_size(words.meta_size));
  }
  if (!words.mean_file_size.empty()) {
    SFS_ASSIGN(options.mean_file_bytes, parse_size(words.mean_file_size));
  }
  if (options.mean_file_bytes == 0) return Error{EINVAL, "--mean-file-size is 0"};
  if (!words.uuid.empty()) {
    SFS_ASSIGN(options.uuid, parse_uuid(words.uuid));
  }
  if (options.label.size() > 31) return Error{EINVAL, "the label is longer than 31 bytes"};
  if (words.intent_log == "none") {
    options.intent_log_bytes = 0;
  } else if (!words.intent_log.empty()) {
    SFS_ASSIGN(options.intent_log_bytes, parse_size(words.intent_log));
  }
  options.declared_persistent = !words.meta_class.empty();
  if (options.trust_memory && !words.meta_log)
    return Error{EINVAL, "--trust-memory needs the log of META on DATA"};
  options.checksums = !words.no_checksums;
  options.meta_log = words.meta_log;
  return {};
}

// Gives the root directory to an ordinary user who makes a filesystem, who could not write to it
// otherwise.
Result<void> give_root_to_caller(const std::string& meta, const std::string& mirror,
                                 const std::string& data) {
  if (geteuid() == 0) return {};
  data::MountOptions options;
  options.mirror_path = mirror;
  SFS_ASSIGN(const auto fs, data::Filesystem::mount(meta, data, options, system_clock()));
  meta::AttributeChange owner;
  owner.uid = geteuid();
  owner.gid = getegid();
  SFS_ASSIGN(const meta::Attributes changed, fs->set_attributes(fs->root(), owner));
  SFS_ASSERT(changed.uid == geteuid());
  return fs->unmount();
}

Result<void> restore_meta(const Words& words, const std::string& meta, const std::string& mirror,
                          const std::string& data) {
  pair::PairOptions options;
  options.restore_meta = true;
  options.mirror_path = mirror;
  options.degraded = words.degraded;
  SFS_ASSIGN(const pair::OpenPair pair, pair::open_pair(meta, data, options));
  SFS_TRY(pair.region->sync());
  if (words.as_json) {
    print_json({{"restored", words.meta}, {"uuid", frontend::uuid_text(pair.super.uuid)}});
  } else if (!words.quiet) {
    fmt::print("rebuilt {} of filesystem {} from the log on {}\n", words.meta,
               frontend::uuid_text(pair.super.uuid), words.data);
  }
  return {};
}

// Prints how the space of META and DATA is used.
void print_budget(const meta::Superblock& super) {
  const nlohmann::json layout = frontend::layout_json(super);
  if (!layout.is_object()) return;
  const auto bytes = [&](const char* key) { return layout.at(key).get<uint64_t>(); };
  const uint64_t maps = bytes("bitmap_bytes") + bytes("untrimmed_bytes") + bytes("heap_map_bytes");
  fmt::print("  META holds {} of journal, {} of checksums, {} of maps, {} for inodes and names\n",
             human_bytes(bytes("journal_bytes")), human_bytes(bytes("checksum_bytes")),
             human_bytes(maps), human_bytes(bytes("heap_bytes")));
  fmt::print("  DATA holds {} of label, metadata log and snapshots, {} for files\n",
             human_bytes(bytes("reserved_bytes")),
             human_bytes(bytes("data_bytes") - bytes("reserved_bytes")));
}

// Shows long steps while they run, on a terminal only.
void show_progress_on_terminal(const Words& words, pair::FormatPairOptions& options) {
  if (words.quiet || isatty(STDERR_FILENO) != 1) return;
  options.progress = [](std::string_view step) {
    fmt::print(stderr, "\r\033[K{}", step == "done" ? "" : fmt::format("{} ...", step));
  };
}

void print_report(const Words& words, const pair::FormatPairOptions& options,
                  const pair::Formatted& made) {
  const bool log = (made.super.features & meta::kFeatureMetaLog) != 0;
  const bool checksums = (made.super.features & meta::kFeatureChecksums) != 0;
  const uint64_t data_bytes = made.super.data_blocks * kBlockSize;
  fmt::print("{}filesystem {}{}{}\n", options.dry_run ? "Would make: " : "",
             frontend::uuid_text(made.super.uuid), options.label.empty() ? "" : " ", options.label);
  const auto share = [&](uint64_t bytes) {
    return 100.0 * static_cast<double>(bytes) / static_cast<double>(data_bytes);
  };
  fmt::print("  META  {}: {}, {} ({:.2f} % of DATA){}\n", words.meta,
             pmem::to_string(made.meta_class), human_bytes(made.super.meta_size),
             share(made.super.meta_size), log ? ", logged on DATA" : "");
  if (made.meta_size_max > made.super.meta_size) {
    fmt::print("        grows by itself to at most {} ({:.2f} % of DATA)\n",
               human_bytes(made.meta_size_max), share(made.meta_size_max));
  }
  fmt::print("{}", trust_lines(made.super.features, "        "));
  if (const uint64_t bytes = meta::intent_log_bytes(made.super); bytes > 0)
    fmt::print("        intent log of {}\n", human_bytes(bytes));
  else if (made.meta_class == pmem::MetaClass::kPersistent && words.intent_log.empty())
    fmt::print("        no intent log, as META is small; --intent-log SIZE makes one\n");
  if (!words.mirror.empty()) fmt::print("        {}: the same again\n", words.mirror);
  fmt::print("  DATA  {}: {} device, {}, {} stream{}{}\n", words.data, made.device.kind,
             human_bytes(data_bytes), made.device.pstream_count,
             made.device.pstream_count == 1 ? "" : "s", checksums ? ", checksums" : "");
  print_budget(made.super);
  fmt::print("  room for {} files in directories of 8 (one for each {} of data)\n",
             made.inodes_possible,
             human_bytes(made.inodes_possible == 0 ? 0 : data_bytes / made.inodes_possible));
}

nlohmann::json formatted_json(const Words& words, const pair::FormatPairOptions& options,
                              const pair::Formatted& made) {
  return {{"dry_run", options.dry_run},
          {"uuid", frontend::uuid_text(made.super.uuid)},
          {"label", options.label},
          {"meta", words.meta},
          {"meta_class", pmem::to_string(made.meta_class)},
          {"meta_log", (made.super.features & meta::kFeatureMetaLog) != 0},
          {"intent_log_bytes", meta::intent_log_bytes(made.super)},
          {"meta_declared_persistent", (made.super.features & meta::kFeatureDeclared) != 0},
          {"trust_memory", (made.super.features & meta::kFeatureTrustMemory) != 0},
          {"mirror", words.mirror.empty() ? nlohmann::json() : nlohmann::json(words.mirror)},
          {"data", words.data},
          {"device", made.device.kind},
          {"pstreams", made.device.pstream_count},
          {"checksums", (made.super.features & meta::kFeatureChecksums) != 0},
          {"inodes_possible", made.inodes_possible},
          {"meta_bytes_max", made.meta_size_max},
          {"layout", frontend::layout_json(made.super)}};
}

void warn_if_few(const pair::Formatted& made) {
  const uint64_t data_bytes = made.super.data_blocks * kBlockSize;
  if (made.inodes_possible >= data_bytes / kFewFilesBytes) return;
  fmt::print(
      "  note: META is the limit before DATA if files are smaller than {} on average; "
      "--meta-size or --mean-file-size makes room for more\n",
      human_bytes(made.inodes_possible == 0 ? 0 : data_bytes / made.inodes_possible));
}

void warn_if_unprotected(const pair::Formatted& made) {
  if ((made.super.features & meta::kFeatureMetaLog) != 0) return;
  if (made.meta_class != pmem::MetaClass::kPersistent) {
    fmt::print(
        "  note: META reaches its medium in no particular order, and no log on DATA says which: "
        "after a power cut it is checked, and fsck repairs what it finds, names may be lost\n");
  } else if ((made.super.features & meta::kFeatureMirror) == 0) {
    fmt::print(
        "  note: META is neither logged on DATA nor kept twice: losing it loses all files\n");
  }
}

int run(int argc, char** argv) {
  CLI::App app("Makes an empty streamfs on a pair of devices.", kProgram);
  Words words;
  pair::FormatPairOptions options;
  prepare(app);
  app.footer(kExitCodesHelp);
  declare(app, words, options);
  if (const auto code = parse(app, argc, argv)) return *code;
  if (const Result<void> read = read_words(words, options); !read) {
    return fail(kProgram, Failure{exit_code::kUsage, read.error().context});
  }
  log_to_stderr(Talk::kWarnings);
  const std::string meta = absolute_path(words.meta);
  const std::string data = absolute_data(words.data);
  if (!words.mirror.empty()) options.mirror_path = absolute_path(words.mirror);
  if (meta == options.mirror_path) {
    return fail(kProgram,
                Failure{exit_code::kUsage, "META and its mirror are the same; give two places"});
  }
  if (const auto path = blockdev::path_of(data); meta == path || options.mirror_path == path) {
    return fail(kProgram,
                Failure{exit_code::kUsage, "META and DATA are the same; give two devices"});
  }
  if (words.restore) {
    const Result<void> restored = restore_meta(words, meta, options.mirror_path, data);
    return restored ? exit_code::kOk : fail(kProgram, restored.error());
  }
  show_progress_on_terminal(words, options);
  const Result<pair::Formatted> made = pair::format_pair(meta, data, options, system_clock());
  if (!made && options.progress) fmt::print(stderr, "\n");
  if (!made) return fail(kProgram, made.error());
  if (!options.dry_run) {
    const Result<void> given = give_root_to_caller(meta, options.mirror_path, data);
    if (!given) return fail(kProgram, given.error());
  }
  if (words.quiet) return exit_code::kOk;
  if (words.as_json) {
    print_json(formatted_json(words, options, *made));
    return exit_code::kOk;
  }
  print_report(words, options, *made);
  warn_if_few(*made);
  warn_if_unprotected(*made);
  return exit_code::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  return guarded(kProgram, [=] { return run(argc, argv); });
}
