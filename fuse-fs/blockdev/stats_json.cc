#include "fuse-fs/blockdev/stats_json.h"

#include <nlohmann/json.hpp>

#include "ssd/stats.h"

namespace streamfs::blockdev {
DeviceStats device_stats(const ssd::SsdStats& ssd) {
  DeviceStats stats;
  stats.written_bytes = ssd.written_bytes;
  stats.read_bytes = ssd.read_bytes;
  stats.trimmed_bytes = ssd.trimmed_bytes;
  stats.flushes = ssd.flushes;
  stats.nand_known = ssd.nand_known;
  stats.nand_bytes = ssd.nand_bytes;
  stats.gc_bytes = ssd.gc_bytes;
  stats.pad_bytes = ssd.pad_bytes;
  stats.erases = ssd.erases;
  stats.media_errors = ssd.media_errors;
  stats.live_bytes = ssd.live_bytes;
  stats.peak_live_bytes = ssd.peak_live_bytes;
  stats.physical_bytes = ssd.physical_bytes;
  stats.effective_spare = ssd.effective_spare().value_or(0);
  stats.latency_p50_us = ssd.time.write.p50_us;
  stats.latency_p99_us = ssd.time.write.p99_us;
  stats.latency_p999_us = ssd.time.write.p999_us;
  for (const ssd::StreamUse& use : ssd.streams)
    stats.streams.push_back({use.written_bytes, use.gc_bytes});
  stats.ftl_counts = ssd.ftl_counts;
  return stats;
}

nlohmann::json to_json(const DeviceStats& stats) {
  ssd::SsdStats ssd;
  ssd.written_bytes = stats.written_bytes;
  ssd.read_bytes = stats.read_bytes;
  ssd.trimmed_bytes = stats.trimmed_bytes;
  ssd.flushes = stats.flushes;
  ssd.nand_bytes = stats.nand_bytes;
  ssd.gc_bytes = stats.gc_bytes;
  ssd.pad_bytes = stats.pad_bytes;
  ssd.erases = stats.erases;
  ssd.media_errors = stats.media_errors;
  ssd.live_bytes = stats.live_bytes;
  ssd.peak_live_bytes = stats.peak_live_bytes;
  ssd.physical_bytes = stats.physical_bytes;
  ssd.time.write.p50_us = stats.latency_p50_us;
  ssd.time.write.p99_us = stats.latency_p99_us;
  ssd.time.write.p999_us = stats.latency_p999_us;
  for (const StreamStats& use : stats.streams)
    ssd.streams.push_back({use.written_bytes, use.gc_bytes});
  ssd.ftl_counts = stats.ftl_counts;
  ssd.nand_known = stats.nand_known && stats.inside_known;
  nlohmann::json json = ssd::to_json(ssd);
  if (ssd.nand_known || !stats.nand_known) return json;
  ssd.nand_known = true;
  json["nand_bytes"] = stats.nand_bytes;
  if (const auto waf = ssd.waf()) json["waf"] = *waf;
  return json;
}

}  // namespace streamfs::blockdev
