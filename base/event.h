// Log messages for machines. Each event has a 128-bit id: `journalctl MESSAGE_ID=` finds it and
// systemd/streamfs.catalog explains it. Ids never change.
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

// Returns the id in the format of sd_id128, 32 hex digits; empty for kNone.
std::string_view message_id(Event event);

// Logs the message by spdlog. Meanwhile event_in_hand() returns `event` on this thread, for a sink
// that records ids.
void log_event(Event event, spdlog::level::level_enum level, const std::string& message);
// Returns the event that this thread is logging; kNone outside log_event().
Event event_in_hand();

}  // namespace streamfs
