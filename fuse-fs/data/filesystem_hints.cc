// Hints: turns a program's hint into a vStream on the inode, and shows it as an xattr.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/control.h"
#include "fuse-fs/data/filesystem_impl.h"

namespace streamfs::data {
namespace {

bool is_virtual(std::string_view name) {
  return name == wire::kVStreamXattr;
}

std::optional<uint32_t> parse_number(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size();
  if (error == std::errc::result_out_of_range && whole) return 65536;  // refused by range
  if (error != std::errc{} || !whole) return std::nullopt;
  return number;
}

}  // namespace

bool FilesystemImpl::hints_ignored() const {
  const placement::Mode mode = placement_->mode();
  return mode == placement::Mode::kOff || mode == placement::Mode::kLearned;
}

Result<HintReply> FilesystemImpl::hint_query(InodeId id) {
  SFS_ASSIGN(const meta::Attributes now, engine_->attributes(id));
  HintReply reply;
  if (const auto info = placement_->info(stored_vstream(now))) reply = reply_of(*info);
  reply.ignored = hints_ignored();
  return reply;
}

VStreamId FilesystemImpl::stored_vstream(const meta::Attributes& attributes) const {
  if (attributes.vstream_hinted) return attributes.vstream;
  return placement_->current(attributes.vstream, attributes.vstream_generation);
}

HintReply FilesystemImpl::reply_of(const placement::VStreamInfo& info) const {
  HintReply reply;
  reply.vstream = info.vstream;
  if (core_->device.info().pstream_count > 1) reply.pstream = info.pstream;
  reply.lifetime_bytes = info.lifetime_bytes;
  reply.name = info.name;
  reply.built_in = info.built_in;
  reply.of_context = info.source == placement::Source::kContext;
  return reply;
}

Result<HintReply> FilesystemImpl::find_vstream(std::string_view name, uint32_t number) {
  std::optional<placement::VStreamInfo> found;
  if (name.empty()) {
    if (number <= UINT16_MAX) found = placement_->info(VStreamId{static_cast<uint16_t>(number)});
  } else {  // asked rarely, so no index is kept for it
    std::vector<placement::VStreamInfo> all = placement_->all();
    const auto named = std::ranges::find(all, name, &placement::VStreamInfo::name);
    if (named != all.end()) found = std::move(*named);
  }
  if (!found) return Error{ENOENT, "no such vStream"};
  return reply_of(*found);
}

HintDevice FilesystemImpl::hint_device() const {
  const blockdev::DeviceInfo& info = core_->device.info();
  return {info.pstream_count, hints_ignored(), info.mechanism};
}

// A mode that ignores hints stores none, so that the inferred vStream stays.
Result<HintReply> FilesystemImpl::apply_hint(InodeId id, Result<VStreamId> vstream) {
  SFS_TRY(may_change());
  SFS_TRY(vstream);
  if (hints_ignored()) return hint_query(id);
  SFS_ASSIGN(const meta::Attributes now, engine_->attributes(id));
  if (!now.vstream_hinted) {
    const uint32_t inferred = now.vstream.value | uint32_t{now.vstream_generation} << 16;
    states_.get(id)->inferred.store(inferred, std::memory_order_relaxed);
  }
  meta::AttributeChange change;
  change.vstream = *vstream;
  if (now.vstream != *vstream || !now.vstream_hinted) SFS_TRY(set_attributes(id, change));
  return hint_query(id);
}

Result<HintReply> FilesystemImpl::hint_number(InodeId id, uint32_t number) {
  return apply_hint(id, placement_->by_number(number));
}

Result<HintReply> FilesystemImpl::hint_name(InodeId id, std::string_view name) {
  return apply_hint(id, placement_->by_name(name, placement::Source::kHint));
}

Result<HintReply> FilesystemImpl::hint_rw(InodeId id, uint32_t rw_hint) {
  const Result<VStreamId> vstream = placement_->by_rw_hint(rw_hint);
  if (vstream.ok() && *vstream == kDefaultVStream) return hint_clear(id);
  return apply_hint(id, vstream);
}

Result<HintReply> FilesystemImpl::hint_clear(InodeId id) {
  SFS_TRY(may_change());
  SFS_ASSIGN(const meta::Attributes now, engine_->attributes(id));
  if (now.vstream_hinted) {
    meta::AttributeChange change;
    change.vstream = kDefaultVStream;
    SFS_TRY(set_attributes(id, change));
  }
  return hint_query(id);
}

Result<void> FilesystemImpl::set_vstream_xattr(InodeId id, std::string_view value) {
  while (!value.empty() && value.back() == '\0') value.remove_suffix(1);
  const auto number = parse_number(value);
  Result<HintReply> done = value.empty() ? hint_clear(id)
                           : number      ? hint_number(id, *number)
                                         : hint_name(id, value);
  SFS_TRY(done);
  return {};
}

Result<std::string> FilesystemImpl::get_xattr(InodeId id, std::string_view name) {
  if (!is_virtual(name)) return engine_->get_xattr(id, name);
  SFS_ASSIGN(const meta::Attributes now, engine_->attributes(id));
  const VStreamId vstream = placement_->shown(stored_vstream(now));
  if (vstream == kDefaultVStream) return Error{ENODATA};
  return placement_->describe(vstream);
}

Result<void> FilesystemImpl::set_xattr(InodeId id, std::string_view name, std::string_view value,
                                       int flags) {
  SFS_TRY(may_change());
  if (is_virtual(name)) return set_vstream_xattr(id, value);
  SFS_TRY(with_units([&] { return engine_->set_xattr(id, name, value, flags); }));
  return changed();
}

// Lists only a vStream that was set by a hint, so that a copy with attributes has labels, not
// guesses.
Result<std::vector<std::string>> FilesystemImpl::list_xattr(InodeId id) {
  SFS_ASSIGN(std::vector<std::string> names, engine_->list_xattr(id));
  SFS_ASSIGN(const meta::Attributes now, engine_->attributes(id));
  if (now.vstream_hinted) names.emplace_back(wire::kVStreamXattr);
  return names;
}

Result<void> FilesystemImpl::remove_xattr(InodeId id, std::string_view name) {
  SFS_TRY(may_change());
  if (is_virtual(name)) return set_vstream_xattr(id, {});
  SFS_TRY(engine_->remove_xattr(id, name));
  return changed();
}

}  // namespace streamfs::data
