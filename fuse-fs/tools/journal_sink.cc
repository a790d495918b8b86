// CODE_FILE and similar fields would name this file for every message.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "fuse-fs/tools/journal_sink.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syslog.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/event.h"

namespace streamfs::tools {
namespace {

constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

int priority_of(spdlog::level::level_enum level) {
  if (level >= spdlog::level::critical) return LOG_CRIT;
  if (level >= spdlog::level::err) return LOG_ERR;
  if (level >= spdlog::level::warn) return LOG_WARNING;
  return level >= spdlog::level::info ? LOG_INFO : LOG_DEBUG;
}

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::vector<std::string> lines = {
        "MESSAGE=" + std::string(message.payload.data(), message.payload.size()),
        fmt::format("PRIORITY={}", priority_of(message.level)), "SYSLOG_IDENTIFIER=streamfs"};
    const auto id = message_id(event_in_hand());
    if (!id.empty()) lines.push_back("MESSAGE_ID=" + std::string(id));
    lines.insert(lines.end(), journal_fields().begin(), journal_fields().end());
    std::vector<iovec> parts;
    parts.reserve(lines.size());
    for (std::string& line : lines) parts.push_back({line.data(), line.size()});
    sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
  }
  void flush_() override {}
};

}  // namespace

std::vector<std::string>& journal_fields() {
  static std::vector<std::string> fields;
  return fields;
}

spdlog::sink_ptr journal_sink() {
  if (access(kJournalSocket, W_OK) != 0) return nullptr;
  return std::make_shared<JournalSink>();
}

bool stderr_is_journal() {
  const char* told = secure_getenv("JOURNAL_STREAM");
  struct stat here{};
  if (told == nullptr || fstat(STDERR_FILENO, &here) != 0) return false;
  return fmt::format("{}:{}", here.st_dev, here.st_ino) == told;
}

}  // namespace streamfs::tools
