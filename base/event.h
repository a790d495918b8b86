// Log messages that machines look for: each has a name and a 128-bit id, by which `journalctl
// MESSAGE_ID=` finds it and systemd/streamfs.catalog explains it. Ids never change.
// Thread safety: any thread.
#pragma once

#include <spdlog/common.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace streamfs {

enum class Event : uint8_t {
  kNone,  // any other message
  kMounted,
  kUnmounted,
  kReadOnly,
  kModelRefused,
  kIoError,
  kDataDamaged,
  kMetaDegraded,
  kScrubDone,
  kMetaFull,
};

// As sd_id128 is written; empty for kNone.
std::string_view message_id(Event event);

// To the log, as spdlog does it; a sink that keeps ids asks event_in_hand() for this one's.
void log_event(Event event, spdlog::level::level_enum level, const std::string& message);
Event event_in_hand();

}  // namespace streamfs
