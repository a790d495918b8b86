// Sends the log to systemd's journal, with priority, message id (base/event.h) and fields that name
// the mount (STREAMFS_MOUNTPOINT, STREAMFS_DATA).
// Thread safety: any thread, once journal_fields() are set.
#pragma once

#include <spdlog/common.h>

#include <string>
#include <vector>

namespace streamfs::tools {

// The "NAME=value" fields that every message gets. Requires: they are set before any thread starts.
std::vector<std::string>& journal_fields();

// Returns a sink for the journal; null: the journal does not listen.
spdlog::sink_ptr journal_sink();

// Returns whether stderr goes to the journal, as a service's does.
bool stderr_is_journal();

}  // namespace streamfs::tools
