#include "base/event.h"

#include <spdlog/spdlog.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace streamfs {
namespace {

constexpr std::array<std::string_view, 10> kMessageIds = {
    "",
    "a04eeb48ad21414185818fad54a31133",
    "42c677dbc6064ce3987503ca81dd5ed9",
    "2483b103c2a54a7285aabef0510359d3",
    "29ef8cbb941247baa3b9abf16be087dd",
    "04c91a55e4094a3ca3ce870d53e889ee",
    "7191a834deaa4a74a2188e84157ddd13",
    "005ee91a5a7546d2ade71d8685674978",
    "465f11e7ae444ebb98147d5e3aa5f17b",
    "9f6d0ce1a4d84f47b7f1f0a3f6c2c9b5",
};
static_assert(kMessageIds.size() == static_cast<size_t>(Event::kMetaFull) + 1);

Event& this_threads() {
  thread_local Event event = Event::kNone;
  return event;
}

}  // namespace

std::string_view message_id(Event event) {
  return kMessageIds[static_cast<size_t>(event)];
}

void log_event(Event event, spdlog::level::level_enum level, const std::string& message) {
  this_threads() = event;
  spdlog::log(level, "{}", message);
  this_threads() = Event::kNone;
}

Event event_in_hand() {
  return this_threads();
}

}  // namespace streamfs
