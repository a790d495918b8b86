#include "fuse-fs/frontend/status_json.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "base/waiting.h"
#include "base/wire/control.h"
#include "base/wire/model_table.h"
#include "fuse-fs/blockdev/stats_json.h"
#include "fuse-fs/frontend/ring_threads.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::frontend {
namespace {

using nlohmann::json;

double ratio(uint64_t above, uint64_t below) {
  return below == 0 ? 0 : static_cast<double>(above) / static_cast<double>(below);
}

json meta_json(const data::Status& status) {
  return {{"fences", status.pmem.fences},
          {"lines_flushed", status.pmem.lines_flushed},
          {"words_programmed", status.pmem.words_programmed},
          {"syncs", status.pmem.syncs},
          {"mended", status.pmem.mended},
          {"metadata_words", status.metadata_words.programmed},
          {"block_words", status.metadata_words.of_blocks},
          {"checkpoint_block_words", status.journal.checkpoint_block_words},
          {"words_ratio", ratio(status.metadata_words.programmed, status.metadata_words.of_blocks)},
          {"commits", status.journal.commits},
          {"commit_fences", status.journal.commit_fences},
          {"commit_lines", status.journal.commit_lines},
          {"checkpoints", status.journal.checkpoints},
          {"log_bytes", status.log_bytes}};
}

json intent_json(const data::IntentStatus& intent) {
  return {{"serves", intent.serves},
          {"declared_persistent", intent.declared_persistent},
          {"trust_memory", intent.trust_memory},
          {"bytes", intent.bytes},
          {"used_bytes", intent.used_bytes},
          {"fsync_bytes_max", intent.fsync_bytes_max},
          {"fsyncs", intent.fsyncs},
          {"entries", intent.entries},
          {"delta_entries", intent.delta_entries},
          {"absorbed_bytes", intent.absorbed_bytes},
          {"recovered_blocks", intent.recovered_blocks},
          {"refused",
           {{"on_device", intent.refused_on_device},
            {"large", intent.refused_large},
            {"full", intent.refused_full},
            {"old", intent.refused_old}}}};
}

json room_json(const data::MetaRoom& room) {
  return {{"bytes", room.bytes},
          {"bytes_max", room.bytes_max},
          {"grows", room.grows},
          {"advice", room.advice}};
}

json space_json(const meta::Space& space) {
  return {{"data_blocks", space.data_blocks},         {"free_blocks", space.free_blocks},
          {"heap_units", space.heap_units},           {"free_units", space.free_units},
          {"inodes_possible", space.inodes_possible}, {"inodes_free", space.inodes_free}};
}

json model_json(const placement::ModelStatus& model) {
  return {{"adopted", model.adopted},
          {"generation", model.generation},
          {"stored", model.stored},
          {"kind", model.kind},
          {"looked_at", model.looked_at},
          {"adoptions", model.adoptions},
          {"refused", model.refused},
          {"refusal", model.refusal},
          {"telemetry_records", model.telemetry_records}};
}

const char* name_of(blockdev::Pressure pressure) {
  constexpr std::array<const char*, 5> kNames = {"none", "low", "high", "critical", "unknown"};
  return kNames.at(static_cast<size_t>(pressure));
}

json idle_json(const data::IdleStatus& idle) {
  constexpr std::array<const char*, 5> kStates = {"off", "busy", "working", "rested", "on battery"};
  return {{"state", kStates.at(static_cast<size_t>(idle.state))},
          {"device", idle.how},
          {"pressure", name_of(idle.pressure)},
          {"periods", idle.periods},
          {"interrupted", idle.interrupted},
          {"failed", idle.failed},
          {"last_error", idle.last_error},
          {"copied_bytes", idle.copied_bytes},
          {"erases", idle.erases},
          {"slowest_stop_us", idle.slowest_stop_us},
          {"poweroffs_prepared", idle.poweroffs_prepared}};
}

// Returns a NUL-padded text of the superblock.
std::string padded_text(const char* text, size_t size) {
  return {text, strnlen(text, size)};
}

}  // namespace

std::string uuid_text(const std::array<uint8_t, 16>& uuid) {
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

std::string uuid_text(const uint8_t (&uuid)[16]) {
  std::array<uint8_t, 16> copy{};
  std::copy(std::begin(uuid), std::end(uuid), copy.begin());
  return uuid_text(copy);
}

json status_json(const data::Status& status, const meta::Superblock& super) {
  const uint64_t nand = status.device.nand_known ? status.device.nand_bytes : 0;
  return {{"schema", wire::kJsonSchema},
          {"uuid", uuid_text(super.uuid)},
          {"label", padded_text(super.label, sizeof super.label)},
          {"meta_class", pmem::to_string(status.meta_class)},
          {"meta_trust", status.intent.declared_persistent ? "declared"
                         : status.intent.trust_memory      ? "trusted"
                                                           : "detected"},
          {"meta_medium", status.meta_medium},
          {"meta_log", status.meta_log},
          {"mirror", !status.mirrored                 ? "none"
                     : status.mirror_degraded.empty() ? "in step"
                                                      : "degraded"},
          {"mirror_reason", status.mirror_degraded},
          {"placement", status.placement_mode},
          {"pstreams", status.device_info.pstream_count},
          {"device_kind", status.device_info.kind},
          {"device_mechanism", status.device_info.mechanism},
          {"device_mechanism_reason", status.device_info.why},
          {"device_transport", status.device_info.transport},
          {"kernel_transport", status.kernel_transport},
          {"kernel_transport_reason", status.kernel_transport_why},
          {"ring_waits", waits_while_trying()},
          {"ring_major_faults", ring_thread_faults()},
          {"app_bytes", status.app_bytes},
          {"nand_per_app_byte",
           status.device.nand_known ? json(ratio(nand, status.app_bytes)) : json()},
          {"device", blockdev::to_json(status.device)},
          {"meta", meta_json(status)},
          {"intent_log", intent_json(status.intent)},
          {"space", space_json(status.space)},
          {"meta_room", room_json(status.meta_room)},
          {"layout", layout_json(super)},
          {"memory",
           {{"anonymous_bytes", status.process.anonymous_bytes},
            {"mapped_bytes", status.process.mapped_bytes},
            {"cache_bytes", status.cache_bytes},
            {"cache_bytes_max", status.cache_bytes_max},
            {"held_bytes", status.write_cache_bytes}}},
          {"never_written_bytes", status.never_written_bytes},
          {"model", model_json(status.model)},
          {"idle", idle_json(status.idle)},
          {"epochs", status.epochs},
          {"dirty_inodes", status.dirty_inodes},
          {"checksum_errors", status.checksum_errors},
          {"trims_pending_blocks", status.trims_pending_blocks},
          {"degraded_read_only", status.degraded_read_only},
          {"degraded_reason", status.degraded_reason}};
}

json layout_json(const meta::Superblock& super) {
  const auto geometry = meta::Geometry::from(super);
  if (!geometry.ok()) return {};
  const auto bytes = [&](meta::RegionKind kind) { return geometry->region_bytes(kind); };
  return {{"data_bytes", super.data_blocks * kBlockSize},
          {"reserved_bytes", geometry->reserved_blocks() * kBlockSize},
          {"meta_bytes", super.meta_size},
          {"superblock_bytes", meta::kSuperAreaSize},
          {"journal_bytes", bytes(meta::RegionKind::kRings) - meta::intent_log_bytes(super)},
          {"intent_log_bytes", meta::intent_log_bytes(super)},
          {"bitmap_bytes", bytes(meta::RegionKind::kBlockBitmap)},
          {"untrimmed_bytes", bytes(meta::RegionKind::kUntrimmed)},
          {"checksum_bytes", bytes(meta::RegionKind::kChecksums)},
          {"heap_map_bytes", bytes(meta::RegionKind::kHeapMap)},
          {"heap_bytes", bytes(meta::RegionKind::kHeap)},
          {"vstream_bytes", bytes(meta::RegionKind::kVStreams)}};
}

json maintenance_json(const data::MaintenanceRun& run) {
  return {{"finished", run.finished},
          {"copied_bytes", run.copied_bytes},
          {"erases", run.erases},
          {"device", run.how}};
}

json free_trim_json(const data::FreeTrim& trim) {
  return {{"bytes", trim.bytes}, {"next", trim.next ? json(trim.next->value) : json()}};
}

json scrub_json(const data::ScrubStatus& scrub) {
  constexpr std::array<const char*, 4> kStates = {"never", "running", "stopped", "done"};
  json findings = json::array();
  for (const auto& [inode, what] : scrub.findings) {
    findings.push_back({{"inode", inode.value}, {"what", what}});
  }
  return {{"state", kStates.at(static_cast<size_t>(scrub.state))},
          {"inodes", scrub.inodes},
          {"inodes_in_all", scrub.inodes_in_all},
          {"bytes", scrub.bytes},
          {"damaged", scrub.damaged},
          {"mended", scrub.mended},
          {"findings", std::move(findings)}};
}

json grown_json(const data::Grown& grown, bool dry_run) {
  const auto sizes = [](const data::Grown::Size& each) {
    return json{{"data_bytes", each.data_bytes},
                {"meta_bytes", each.meta_bytes},
                {"inodes_possible", each.inodes_possible}};
  };
  return {{"before", sizes(grown.before)},
          {"after", sizes(grown.after)},
          {"data_fixed", grown.data_fixed},
          {"dry_run", dry_run}};
}

namespace {

// Returns the share of all garbage collection's copies that went to this pStream; null if the
// device does not report it.
json copied_share(const blockdev::DeviceStats& device, PStreamId stream) {
  if (device.gc_bytes == 0 || stream.value >= device.streams.size()) return {};
  return ratio(device.streams[stream.value].gc_bytes, device.gc_bytes);
}

}  // namespace

json streams_json(const std::vector<placement::VStreamInfo>& streams,
                  const blockdev::DeviceStats& device, Names names) {
  json list = json::array();
  for (const placement::VStreamInfo& each : streams) {
    const auto shown = [&](const std::string& name, bool harmless = false) {
      return names == Names::kAll || harmless ? name : std::string();
    };
    list.push_back({{"vstream", each.vstream.value},
                    {"generation", each.generation},
                    {"source", placement::to_string(each.source)},
                    {"name", shown(each.name, each.built_in)},
                    {"comm", shown(each.comm)},
                    {"ext", shown(each.ext)},
                    {"dir", shown(each.dir)},
                    {"lifetime_bytes", each.lifetime_bytes},
                    {"lifetime_low_bytes", each.lifetime_low_bytes},
                    {"expected_bytes", each.expected_bytes},
                    {"lifetime_high_bytes", each.lifetime_high_bytes},
                    {"lifetime_ms", each.lifetime_ms},
                    {"written_bytes", each.written_bytes},
                    {"live_bytes", each.live_bytes},
                    {"dead_bytes", each.dead_bytes},
                    {"pstream", each.pstream.value},
                    {"pstream_gc_share", copied_share(device, each.pstream)}});
  }
  return {{"streams", std::move(list)}};
}

json block_json(BlockNo block, const std::optional<placement::BlockBirth>& birth) {
  if (!birth) return {{"block", block.value}, {"known", false}};
  return {{"block", block.value},
          {"known", true},
          {"vstream", birth->vstream.value},
          {"pstream", birth->pstream.value},
          {"written_clock_bytes", birth->clock_pages * kBlockSize},
          {"age_bytes", (birth->now_pages - birth->clock_pages) * kBlockSize}};
}

json chunks_json(std::span<const uint8_t> classes, uint64_t data_blocks) {
  constexpr uint64_t kCellsMax = 4096;
  const uint64_t chunks = (data_blocks + wire::kChunkPages - 1) / wire::kChunkPages;
  const uint64_t per_cell = std::max<uint64_t>(1, (chunks + kCellsMax - 1) / kCellsMax);
  using Counts = std::array<uint64_t, wire::kChunkClasses>;
  Counts all{};
  std::string map;
  for (uint64_t first = 0; first < chunks; first += per_cell) {
    const uint64_t end = std::min(first + per_cell, chunks);
    const uint64_t known = std::clamp<uint64_t>(classes.size(), first, end);
    Counts cell{};
    for (uint64_t chunk = first; chunk < known; ++chunk) ++cell[classes[chunk]];
    cell[0] += end - known;
    for (size_t cls = 0; cls < all.size(); ++cls) all[cls] += cell[cls];
    map += static_cast<char>('0' + (std::ranges::max_element(cell) - cell.begin()));
  }
  return {{"chunk_bytes", wire::kChunkPages * kBlockSize},
          {"chunks", all},
          {"chunks_a_cell", per_cell},
          {"map", map}};
}

}  // namespace streamfs::frontend
