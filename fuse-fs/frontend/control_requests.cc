#include "fuse-fs/frontend/control_requests.h"

#include <pwd.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/gate.h"
#include "fuse-fs/frontend/meters.h"
#include "fuse-fs/frontend/metrics_json.h"
#include "fuse-fs/frontend/privileges.h"
#include "fuse-fs/frontend/status_json.h"

namespace streamfs::frontend {
namespace {

using nlohmann::json;

constexpr const char* kDaemonUser = "classifierd";

ControlAnswer refused(int code, const std::string& sentence) {
  return {{{"ok", false}, {"error", sentence}, {"errno", code}}, {}};
}

ControlAnswer refused(const Error& error) {
  return refused(error.code, error.message());
}

ControlAnswer done(json body = json::object()) {
  body["ok"] = true;
  return {std::move(body), {}};
}

ControlAnswer done_or(const Result<void>& result) {
  return result ? done() : refused(result.error());
}

ControlAnswer status(data::Filesystem& fs, const Meters& meters) {
  const Result<data::Status> now = fs.status();
  if (!now) return refused(now.error());
  json body = status_json(*now, fs.geometry().super());
  body["saved"] = meters.savings.now();
  return done(std::move(body));
}

ControlAnswer savings(Meters& meters, const ControlPeer& peer, const json& request) {
  if (!request.contains("report"))
    return done({{"saved", meters.savings.now()}, {"history", meters.savings.history()}});
  if (!peer.is_daemon()) return refused(EACCES, "savings are told by the daemon that is attached");
  const int64_t now_ms = system_clock().now().seconds * 1000;
  return done_or(meters.savings.take(request.at("report"), now_ms));
}

// Returns what the device reports about its garbage collection; null where it reports nothing.
json collection(const blockdev::DeviceInfo& device) {
  json out = {{"gc_mode", nullptr},
              {"victim", nullptr},
              {"spare", nullptr},
              {"erase_unit_blocks", nullptr}};
  if (!device.gc_mode.empty()) out["gc_mode"] = device.gc_mode;
  if (!device.victim.empty()) out["victim"] = device.victim;
  if (device.spare > 0) out["spare"] = device.spare;
  if (device.erase_unit_blocks > 1) out["erase_unit_blocks"] = device.erase_unit_blocks;
  return out;
}

ControlAnswer attach(data::Filesystem& fs, const ControlPeer& peer) {
  const placement::Placement::SharedMemory shared = fs.placement().shared_memory();
  const Result<data::Status> now = fs.status();
  if (!now) return refused(now.error());
  if (!peer.take_daemon_place()) return refused(EBUSY, "a daemon is attached already");
  ControlAnswer answer = done({{"telemetry_bytes", shared.telemetry_bytes},
                               {"model_bytes", shared.model_bytes},
                               {"pstream_count", now->device_info.pstream_count},
                               {"capacity_blocks", fs.geometry().data_blocks()},
                               {"uuid", uuid_text(fs.geometry().super().uuid)},
                               {"device", collection(now->device_info)}});
  answer.fds = {shared.telemetry_fd, shared.model_fd};
  return answer;
}

ControlAnswer record(data::Filesystem& fs, const json& request) {
  if (request.value("stop", false)) return done_or(fs.stop_trace());
  const auto path = request.find("path");
  if (path == request.end() || !path->is_string() || !path->get<std::string>().starts_with('/')) {
    return refused(EINVAL, "record needs an absolute \"path\", or \"stop\": true");
  }
  return done_or(fs.start_trace(path->get<std::string>()));
}

ControlAnswer scrub(data::Filesystem& fs, const json& request) {
  const auto action = request.find("action");
  if (action == request.end() || *action == "status") return done(scrub_json(fs.scrub_status()));
  if (*action == "start") return done_or(fs.start_scrub());
  if (*action != "stop") return refused(EINVAL, "scrub: start, stop or status");
  if (fs.scrub_status().state != data::ScrubStatus::State::kRunning)
    return refused(EALREADY, "no scrub is running");
  fs.stop_scrub();
  return done();
}

// The longest time that a request may keep its connection's thread. A client that wants more asks
// again, so that an unmount need not wait.
constexpr uint64_t kSliceMsMost = 5000;

Result<uint64_t> slice_of(const json& request) {
  const auto found = request.find("ms");
  if (found == request.end()) return kSliceMsMost;
  if (!found->is_number_unsigned()) return Error{EINVAL, "\"ms\" is a number of milliseconds"};
  return std::min(found->get<uint64_t>(), kSliceMsMost);
}

ControlAnswer maintain(data::Filesystem& fs, const json& request, bool before_poweroff) {
  const Result<uint64_t> slice = slice_of(request);
  if (!slice) return refused(slice.error());
  const auto run = before_poweroff ? fs.prepare_poweroff(*slice) : fs.maintain(*slice);
  return run ? done(maintenance_json(*run)) : refused(run.error());
}

ControlAnswer trim(data::Filesystem& fs, const json& request) {
  const Result<uint64_t> slice = slice_of(request);
  if (!slice) return refused(slice.error());
  const auto from = request.find("from");
  if (from != request.end() && !from->is_number_unsigned())
    return refused(EINVAL, "\"from\" is the number of a block");
  const BlockNo first{from == request.end() ? 0 : from->get<uint64_t>()};
  const auto trimmed = fs.trim_free(first, *slice);
  return trimmed ? done(free_trim_json(*trimmed)) : refused(trimmed.error());
}

ControlAnswer grow(data::Filesystem& fs, const json& request) {
  data::GrowOptions options;
  options.dry_run = request.value("dry_run", json(false)) == true;
  const auto size = request.find("meta_size");
  if (size != request.end() && !size->is_number_unsigned()) {
    return refused(EINVAL, "\"meta_size\" is a number of bytes");
  }
  if (size != request.end()) options.meta_bytes = size->get<uint64_t>();
  const Result<data::Grown> grown = fs.grow(options);
  return grown ? done(grown_json(*grown, options.dry_run)) : refused(grown.error());
}

ControlAnswer shutdown(data::Filesystem& fs, const json& request) {
  constexpr std::array<std::pair<std::string_view, data::ShutdownMode>, 3> kModes = {
      {{"default", data::ShutdownMode::kDefault},
       {"logflush", data::ShutdownMode::kLogFlush},
       {"nologflush", data::ShutdownMode::kNoLogFlush}}};
  const auto asked = request.find("mode");
  for (const auto& [name, mode] : kModes) {
    if (asked != request.end() && *asked == name) return done_or(fs.shut_down(mode));
  }
  return refused(EINVAL, "shutdown needs a \"mode\": default, logflush or nologflush");
}

// The learning daemon gets all names because it learns from them. For the metrics that it shows to
// anyone, it asks for built-in names only.
ControlAnswer streams(data::Filesystem& fs, const ControlPeer& peer, const json& request) {
  const bool wanted = request.value("names", json("all")) != "built-in";
  const bool all = wanted && (owns_mount(peer.uid) || daemon_user() == peer.uid);
  const Result<data::Status> now = fs.status();
  return done(streams_json(fs.placement().all(), now ? now->device : blockdev::DeviceStats{},
                           all ? Names::kAll : Names::kBuiltIn));
}

ControlAnswer block(data::Filesystem& fs, const json& request) {
  const auto number = request.find("block");
  if (number == request.end() || !number->is_number_unsigned()) {
    return refused(EINVAL, "block needs a \"block\": which block of 4 KiB of DATA, from 0 on");
  }
  const BlockNo asked{number->get<uint64_t>()};
  const uint64_t blocks = fs.geometry().data_blocks();
  if (asked.value >= blocks) {
    return refused(ERANGE, "block " + std::to_string(asked.value) + " is beyond DATA, which has " +
                               std::to_string(blocks));
  }
  return done(block_json(asked, fs.placement().birth(asked)));
}

ControlAnswer chunks(data::Filesystem& fs) {
  return done(chunks_json(fs.placement().chunk_classes(), fs.geometry().data_blocks()));
}

// Answers the requests that any user may make. nullopt: `op` is none of them.
std::optional<ControlAnswer> look(data::Filesystem& fs, const Meters& meters,
                                  const ControlPeer& peer, const std::string& op,
                                  const json& request) {
  if (op == "status") return status(fs, meters);
  if (op == "streams") return streams(fs, peer, request);
  if (op == "block") return block(fs, request);
  if (op == "chunks") return chunks(fs);
  if (op == "metrics") return done(metrics_json(meters, fs.device_sizes()));
  return std::nullopt;
}

bool only_looks(const std::string& op, const json& request) {
  return op == "scrub" && request.value("action", json("status")) == "status";
}

ControlAnswer answer(data::Filesystem& fs, Meters& meters, const ControlPeer& peer,
                     const std::string& op, const json& request) {
  if (std::optional<ControlAnswer> seen = look(fs, meters, peer, op, request))
    return std::move(*seen);
  if (op == "savings") return savings(meters, peer, request);
  constexpr std::array<std::string_view, 9> kKnown = {
      "attach",           "sync", "record",  "scrub", "grow", "maintain",
      "prepare_poweroff", "trim", "shutdown"};
  if (std::ranges::find(kKnown, op) == kKnown.end())
    return refused(EINVAL, "unknown op \"" + op + "\"");
  // Among changes, the learning daemon's own user may attach, and nothing else.
  const bool daemon = op == "attach" && daemon_user() == peer.uid;
  if (!daemon && !only_looks(op, request) && !owns_mount(peer.uid)) {
    return refused(EACCES, op + " is for root and the user who mounted this");
  }
  if (op == "shutdown") return shutdown(fs, request);
  const data::Gate::Pass pass(fs.gate());
  if (!pass) return refused(EIO, "it is shut down: unmount it");
  if (op == "attach") return attach(fs, peer);
  if (op == "scrub") return scrub(fs, request);
  if (op == "grow") return grow(fs, request);
  if (op == "trim") return trim(fs, request);
  if (op == "maintain" || op == "prepare_poweroff")
    return maintain(fs, request, op == "prepare_poweroff");
  return op == "sync" ? done_or(fs.sync()) : record(fs, request);
}

}  // namespace

ControlAnswer refusal(const Error& error) {
  return refused(error);
}

std::optional<uid_t> daemon_user() {
  std::array<char, 4096> room{};
  passwd entry{};
  passwd* found = nullptr;
  const bool looked = getpwnam_r(kDaemonUser, &entry, room.data(), room.size(), &found) == 0;
  return looked && found != nullptr ? std::optional(entry.pw_uid) : std::nullopt;
}

ControlAnswer answer_control(data::Filesystem& fs, Meters& meters, const ControlPeer& peer,
                             std::string_view line) {
  const json request = json::parse(line, nullptr, false);
  if (!request.is_object()) return refused(EINVAL, "a request is one JSON object a line");
  const auto op = request.find("op");
  if (op == request.end() || !op->is_string()) return refused(EINVAL, "a request needs an \"op\"");
  const auto stop = request.find("stop");
  if (stop != request.end() && !stop->is_boolean()) return refused(EINVAL, "\"stop\" is a boolean");
  return answer(fs, meters, peer, op->get<std::string>(), request);
}

}  // namespace streamfs::frontend
