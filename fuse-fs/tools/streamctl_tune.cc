#include "fuse-fs/tools/streamctl_tune.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "fuse-fs/frontend/status_json.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/pair/tune_pair.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {
namespace {

using pair::TuneOptions;
constexpr const char* kIntentLogName = "intent-log";

struct TuneArguments {
  std::string data, meta, enable, disable, meta_class;
  TuneOptions options;
};

// Reads "intent-log" or "intent-log=SIZE".
Result<void> read_enabled(const std::string& text, TuneOptions& options) {
  const size_t equals = text.find('=');
  options.intent_log = TuneOptions::IntentLog::kEnable;
  if (equals == std::string::npos) return {};
  SFS_ASSIGN(options.intent_log_bytes, parse_size(text.substr(equals + 1)));
  return {};
}

// Makes an unknown feature or an unreadable size an error of the command line.
CLI::Validator feature() {
  return {[](const std::string& text) -> std::string {
            if (text.substr(0, text.find('=')) != kIntentLogName)
              return "\"" + text + "\" is no feature that can be enabled; intent-log is";
            TuneOptions unused;
            const Result<void> read = read_enabled(text, unused);
            return read ? "" : read.error().context;
          },
          ""};
}

nlohmann::json tuned_json(const pair::Tuned& tuned) {
  const auto has = [&](uint32_t feature) { return (tuned.after.features & feature) != 0; };
  return {{"uuid", frontend::uuid_text(tuned.after.uuid)},
          {"version", tuned.after.version},
          {"meta_bytes", tuned.after.meta_size},
          {"intent_log_bytes_before", meta::intent_log_bytes(tuned.before)},
          {"intent_log_bytes", meta::intent_log_bytes(tuned.after)},
          {"meta_declared_persistent", has(meta::kFeatureDeclared)},
          {"trust_memory", has(meta::kFeatureTrustMemory)}};
}

void print_tuned(const pair::Tuned& tuned, const Style& style) {
  const auto text = [&](const meta::Superblock& super) {
    const uint64_t bytes = meta::intent_log_bytes(super);
    return bytes == 0 ? std::string("none") : bytes_text(bytes, style);
  };
  fmt::print("intent log  {}, was {}\n", text(tuned.after), text(tuned.before));
  fmt::print("META        {}, was {}\n", bytes_text(tuned.after.meta_size, style),
             bytes_text(tuned.before.meta_size, style));
  fmt::print("{}", trust_lines(tuned.after.features, "            "));
}

Result<void> tune(const TuneArguments& arguments, const Style& style) {
  log_to_stderr(Talk::kWarnings);
  TuneOptions options = arguments.options;
  if (!arguments.enable.empty()) SFS_TRY(read_enabled(arguments.enable, options));
  if (!arguments.disable.empty()) options.intent_log = TuneOptions::IntentLog::kDisable;
  options.declared_persistent = !arguments.meta_class.empty();
  if (!options.mirror_path.empty()) options.mirror_path = absolute_path(options.mirror_path);
  SFS_ASSIGN(const pair::Tuned tuned, pair::tune_pair(absolute_path(arguments.meta),
                                                      absolute_data(arguments.data), options));
  if (style.json) {
    print_json(tuned_json(tuned));
  } else {
    print_tuned(tuned, style);
  }
  return {};
}

}  // namespace

void declare_tune(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command =
      commands.add(app, "tune", "Give an unmounted filesystem an intent log, or take it away",
                   [arguments](const Style& style) { return tune(*arguments, style); });
  command->add_option("DATA", arguments->data, "The data device")->required();
  command->add_option("--meta", arguments->meta, "Use this metadata device")->required();
  command->add_option("--mirror", arguments->options.mirror_path, "Use this second copy of META");
  CLI::Option* enable =
      command
          ->add_option("--enable", arguments->enable,
                       "Use the part of META behind its formatted size for an intent log of SIZE "
                       "(default: a sixteenth of META, at least 8M)")
          ->type_name("intent-log[=SIZE]")
          ->check(feature());
  CLI::Option* disable = command
                             ->add_option("--disable", arguments->disable,
                                          "Stop using the intent log; keep its room for a later "
                                          "one")
                             ->type_name("intent-log")
                             ->check(CLI::IsMember({kIntentLogName}))
                             ->excludes(enable);
  command->parse_complete_callback([enable, disable] {
    if (!*enable && !*disable) throw CLI::RequiredError("--enable or --disable");
  });
  CLI::Option* declared =
      command
          ->add_option("--meta-class", arguments->meta_class,
                       "Declare that META is memory which keeps its content without power, as "
                       "memory with a battery does")
          ->check(CLI::IsMember({"persistent"}))
          ->type_name("persistent")
          ->needs(enable);
  command
      ->add_flag("--trust-memory", arguments->options.trust_memory,
                 "Use the intent log although META loses its content without power: a power cut "
                 "takes the fsyncs of the last 5 seconds, in order")
      ->needs(enable)
      ->excludes(declared);
}

}  // namespace streamfs::tools
