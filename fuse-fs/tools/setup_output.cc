#include "fuse-fs/tools/setup_output.h"

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/setup_machine.h"
#include "fuse-fs/tools/setup_proposal.h"
#include "pmem/region.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

constexpr size_t kColumns = 100;

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "+-.:=@_/,%";
  std::string quoted;
  bool plain = !word.empty();
  for (const char c : word) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    plain = plain && (letter || kPlain.find(c) != std::string_view::npos);
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return plain ? word : "'" + quoted + "'";
}

// Breaks a text into lines of at most kColumns; all but the first begin with `indent` blanks.
std::string filled(std::string_view text, size_t indent) {
  std::istringstream in{std::string(text)};
  std::string out;
  size_t column = indent;
  for (std::string word; in >> word;) {
    const bool first = out.empty();
    if (!first && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string title(std::string_view text, const Style& style) {
  return "\n" + inked(text, Ink::kTitle, style) + "\n";
}

std::string row(std::string_view name, std::string_view text, size_t width) {
  return fmt::format("  {:<{}}  {}\n", name, width, filled(text, width + 4));
}

std::string disk_text(const Disk& disk, const Style& style) {
  std::string out = disk.device;
  if (disk.device != disk.node) out += " (" + disk.node + ")";
  out += ": " + disk.kind;
  if (!disk.model.empty()) out += " " + printable(disk.model);
  if (disk.bytes != 0) out += ", " + bytes_text(disk.bytes, style);
  out += disk.streams > 1 ? fmt::format(", {} streams by {}", disk.streams, disk.mechanism)
                          : std::string(", no streams");
  return out + (disk.flush_is_free ? ", a flush is free" : ", a flush counts");
}

std::string chosen_text(const Proposal& proposal, const Style& style) {
  constexpr size_t kWidth = 5;
  std::string out = inked("A streamfs at " + proposal.mountpoint, Ink::kTitle, style) + "\n";
  out += row("DATA", disk_text(proposal.data, style), kWidth);
  return out + row("META",
                   fmt::format("{}: {}, class {}", proposal.meta, proposal.meta_kind,
                               pmem::to_string(proposal.meta_class)),
                   kWidth);
}

std::string consequences_text(const Proposal& proposal, const Style& style) {
  constexpr size_t kWidth = 19;
  std::string out = title("What happens at", style);
  for (const Consequence& each : proposal.consequences) out += row(each.event, each.effect, kWidth);
  return out;
}

std::string steps_text(const Proposal& proposal, const Style& style) {
  std::string out = title("Steps", style);
  for (const Step& each : proposal.steps) {
    out += fmt::format("  {}\n      {}\n", step_text(each), filled(each.why, 6));
    std::istringstream lines(each.content);
    for (std::string line; std::getline(lines, line);) out += "        " + line + "\n";
  }
  return out;
}

std::string refusals_text(const Proposal& proposal, const Style& style) {
  if (proposal.refused.empty()) return {};
  std::string out = title("Not used", style);
  for (const Refusal& each : proposal.refused) {
    out += "  " + filled(each.device + " " + printable(each.why), 4) + "\n";
    if (!each.remedy.empty()) out += "      " + each.remedy + "\n";
  }
  return out;
}

std::string notes_text(const Proposal& proposal, const Style& style) {
  if (proposal.notes.empty()) return {};
  std::string out = title("Notes", style);
  for (const std::string& each : proposal.notes) out += "  - " + filled(each, 4) + "\n";
  return out;
}

json step_json(const Step& step) {
  const bool is_file = step.command.empty();
  return {{"command", step.command},
          {"file", is_file ? json(step.file) : json(nullptr)},
          {"content", is_file ? json(step.content) : json(nullptr)},
          {"why", step.why}};
}

json data_json(const Disk& disk) {
  return {{"device", disk.device},       {"node", disk.node},
          {"kind", disk.kind},           {"model", disk.model},
          {"bytes", disk.bytes},         {"pstreams", disk.streams},
          {"mechanism", disk.mechanism}, {"flush_is_free", disk.flush_is_free}};
}

json meta_json(const Proposal& proposal) {
  const std::string& space = proposal.pmem_namespace;
  return {{"path", proposal.meta},
          {"class", pmem::to_string(proposal.meta_class)},
          {"kind", proposal.meta_kind},
          {"pmem_namespace", space.empty() ? json(nullptr) : json(space)}};
}

}  // namespace

std::string step_text(const Step& step) {
  if (step.command.empty()) return "write " + step.file;
  std::string out;
  for (const std::string& each : step.command) out += (out.empty() ? "" : " ") + shell_word(each);
  return out;
}

std::string proposal_text(const Proposal& proposal, const Style& style) {
  if (!proposal.possible()) return refusals_text(proposal, style);
  return chosen_text(proposal, style) + consequences_text(proposal, style) +
         refusals_text(proposal, style) + notes_text(proposal, style) + steps_text(proposal, style);
}

json proposal_json(const Proposal& proposal) {
  json out = {{"mountpoint", proposal.mountpoint},
              {"data", proposal.possible() ? data_json(proposal.data) : json(nullptr)},
              {"meta", proposal.possible() ? meta_json(proposal) : json(nullptr)},
              {"units", proposal.units},
              {"steps", json::array()},
              {"consequences", json::array()},
              {"refused", json::array()},
              {"notes", proposal.notes}};
  for (const Step& each : proposal.steps) out["steps"].push_back(step_json(each));
  for (const Consequence& each : proposal.consequences)
    out["consequences"].push_back({{"event", each.event}, {"effect", each.effect}});
  for (const Refusal& each : proposal.refused)
    out["refused"].push_back({{"device", each.device},
                              {"why", each.why},
                              {"remedy", each.remedy.empty() ? json(nullptr) : json(each.remedy)}});
  return out;
}

}  // namespace streamfs::tools
