// The log as systemd's journal keeps it: with priority, message id (base/event.h) and fields that
// say which mount it was (STREAMFS_MOUNTPOINT, STREAMFS_DATA).
// Thread safety: any thread, once journal_fields() were set.
#pragma once

#include <spdlog/common.h>

#include <string>
#include <vector>

namespace streamfs::tools {

// "NAME=value" each, sent along with every message. Set before any thread is started.
std::vector<std::string>& journal_fields();

// Null: the journal does not listen.
spdlog::sink_ptr journal_sink();

// Whether what is written to stderr goes to the journal: a service's does.
bool stderr_is_journal();

}  // namespace streamfs::tools
