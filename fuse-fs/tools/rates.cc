#include "fuse-fs/tools/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/log_histogram.h"
#include "fuse-fs/tools/histograms.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

json difference(const json& before, const json& after, const char* key) {
  const auto now = after.find(key);
  if (now == after.end() || !now->is_number()) return {};
  const uint64_t was = count_of(before, key), is = now->get<uint64_t>();
  return is >= was ? is - was : is;
}

json ratio(const json& above, const json& below) {
  if (!above.is_number() || !below.is_number() || below.get<uint64_t>() == 0) return {};
  return above.get<double>() / below.get<double>();
}

json total_of(const json& written, const json& copied) {
  if (!written.is_number() || !copied.is_number()) return {};
  return written.get<uint64_t>() + copied.get<uint64_t>();
}

json streams_between(const json& before, const json& after) {
  json out = json::array();
  const json none = json::object();
  for (const json& now : after) {
    const json& was = out.size() < before.size() ? before.at(out.size()) : none;
    const json written = difference(was, now, "written_bytes");
    const json copied = difference(was, now, "gc_bytes");
    out.push_back({{"stream", out.size()},
                   {"written_bytes", written},
                   {"gc_bytes", copied},
                   {"waf", ratio(total_of(written, copied), written)}});
  }
  return out;
}

}  // namespace

json latencies_between(const json& before, const json& after) {
  const auto histograms = histograms_between(before, after, Measure::kTimes);
  json out = json::object();
  for (const char* op : {"read", "write", "fsync"}) {
    if (!histograms) {
      out[op] = json();
      continue;
    }
    const auto found = std::ranges::find(*histograms, op, &NamedHistogram::name);
    out[op] = percentiles_json(found == histograms->end() ? LogHistogram() : found->values);
  }
  return out;
}

json difference_of(const json& before, const json& after, double seconds) {
  const json& was = before.at("device");
  const json& now = after.at("device");
  json out = {{"seconds", seconds}, {"app_bytes", difference(before, after, "app_bytes")}};
  for (const char* key :
       {"written_bytes", "read_bytes", "trimmed_bytes", "flushes", "nand_bytes", "gc_bytes"})
    out[key] = difference(was, now, key);
  out["waf"] = ratio(out.at("nand_bytes"), out.at("written_bytes"));
  out["nand_per_app_byte"] = ratio(out.at("nand_bytes"), out.at("app_bytes"));
  out["streams"] =
      streams_between(was.value("streams", json::array()), now.value("streams", json::array()));
  return out;
}

std::string per_second(const json& interval, const json& object, const char* key,
                       const Style& style) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return "-";
  return rate_text(found->get<double>() / interval.at("seconds").get<double>(), style);
}

std::string short_ratio(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return "-";
  return fmt::format("{:.2f}", found->get<double>());
}

}  // namespace streamfs::tools
