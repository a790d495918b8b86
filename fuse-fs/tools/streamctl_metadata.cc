#include "fuse-fs/tools/streamctl_metadata.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "fuse-fs/frontend/status_json.h"
#include "fuse-fs/pair/metadata_dump.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {
namespace {

void print(const MetadataArguments& arguments, const char* done, const pair::MetadataDump& dump) {
  const std::string uuid = frontend::uuid_text(dump.super.uuid);
  if (arguments.style.json) {
    const nlohmann::json answer = {{"uuid", uuid},
                                   {"file", arguments.file},
                                   {"file_bytes", dump.bytes},
                                   {"meta_bytes", dump.super.meta_size}};
    print_json(answer);
    return;
  }
  fmt::print("{} {}: META of {}, {} of {} in use\n", done, arguments.file, uuid,
             bytes_text(dump.bytes, arguments.style),
             bytes_text(dump.super.meta_size, arguments.style));
}

}  // namespace

Result<void> dump_metadata(const MetadataArguments& arguments) {
  log_to_stderr(Talk::kWarnings);
  SFS_ASSIGN(const pair::MetadataDump dump,
             pair::dump_metadata(absolute_path(arguments.meta), absolute_data(arguments.data),
                                 absolute_path(arguments.file)));
  print(arguments, "written to", dump);
  return {};
}

Result<void> restore_metadata(const MetadataArguments& arguments) {
  log_to_stderr(Talk::kWarnings);
  pair::RestoreDumpOptions options;
  options.force = arguments.force;
  options.degraded = arguments.degraded;
  if (!arguments.mirror.empty()) options.mirror_path = absolute_path(arguments.mirror);
  SFS_ASSIGN(const pair::MetadataDump dump,
             pair::restore_dump(absolute_path(arguments.file), absolute_path(arguments.meta),
                                absolute_data(arguments.data), options));
  print(arguments, "restored from", dump);
  return {};
}

}  // namespace streamfs::tools
