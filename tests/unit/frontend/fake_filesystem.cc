#include "tests/unit/frontend/fake_filesystem.h"

#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::frontend {

using meta::Attributes;

FakeFilesystem::FakeFilesystem() {
  const MutexLock lock(mutex_);
  Node& root = nodes_[kRoot.value];
  root.attributes.id = kRoot;
  root.attributes.mode = S_IFDIR | 0755;
  root.attributes.nlink = 2;
  root.attributes.uid = geteuid();
  root.attributes.gid = getegid();
  root.references = 1;
}

std::string FakeFilesystem::last_comm() const {
  const MutexLock lock(mutex_);
  return last_comm_;
}

int64_t FakeFilesystem::references(std::string_view name) const {
  const MutexLock lock(mutex_);
  const Node& root = nodes_.at(kRoot.value);
  const auto found = root.children.find(name);
  return found == root.children.end() ? -1 : nodes_.at(found->second).references;
}

size_t FakeFilesystem::inodes() const {
  const MutexLock lock(mutex_);
  return nodes_.size();
}

Result<FakeFilesystem::Node*> FakeFilesystem::find(InodeId id) {
  const auto found = nodes_.find(id.value);
  if (found == nodes_.end()) return Error{ESTALE};
  return &found->second;
}

Result<FakeFilesystem::Node*> FakeFilesystem::child(InodeId parent, std::string_view name) {
  SFS_ASSIGN(Node * directory, find(parent));
  const auto found = directory->children.find(name);
  if (found == directory->children.end()) return Error{ENOENT};
  return find(InodeId{found->second});
}

FakeFilesystem::Node& FakeFilesystem::make(uint32_t mode, const data::Requester& who) {
  last_comm_ = who.comm;
  const uint64_t id = next_++;
  Node& node = nodes_[id];
  node.attributes.id = InodeId{id};
  node.attributes.generation = 7;
  node.attributes.mode = mode;
  node.attributes.nlink = S_ISDIR(mode) ? 2 : 1;
  node.attributes.uid = who.caller.uid;
  node.attributes.gid = who.caller.gid;
  const Timestamp now = system_clock().now();
  node.attributes.atime = node.attributes.mtime = node.attributes.ctime = now;
  node.attributes.btime = {now.seconds - 1000, 5};  // unlike the others on purpose
  node.references = 1;
  return node;
}

void FakeFilesystem::free_if_unused(InodeId id) {
  const auto found = nodes_.find(id.value);
  if (found != nodes_.end() && found->second.references <= 0 &&
      found->second.attributes.nlink == 0) {
    nodes_.erase(found);
  }
}

Result<Attributes> FakeFilesystem::lookup(InodeId parent, std::string_view name) {
  ++lookups;
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * found, name == "." ? find(parent) : child(parent, name));
  ++found->references;
  return found->attributes;
}

Result<Attributes> FakeFilesystem::create(InodeId parent, std::string_view name, uint32_t mode,
                                          uint64_t rdev, std::string_view symlink_target,
                                          const data::Requester& who) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * directory, find(parent));
  if (directory->children.contains(name)) return Error{EEXIST};
  Node& node = make(mode, who);
  node.attributes.rdev = rdev;
  node.symlink = symlink_target;
  node.attributes.size = symlink_target.size();
  directory->children[std::string(name)] = node.attributes.id.value;
  return node.attributes;
}

Result<Attributes> FakeFilesystem::create_unnamed(InodeId /*parent*/, uint32_t mode,
                                                  const data::Requester& who) {
  const MutexLock lock(mutex_);
  Node& node = make(mode, who);
  node.attributes.nlink = 0;
  return node.attributes;
}

Result<Attributes> FakeFilesystem::link(InodeId target, InodeId parent, std::string_view name) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * node, find(target));
  SFS_ASSIGN(Node * directory, find(parent));
  directory->children[std::string(name)] = target.value;
  ++node->attributes.nlink;
  ++node->references;
  return node->attributes;
}

Result<void> FakeFilesystem::drop_name(InodeId parent, std::string_view name) {
  SFS_ASSIGN(Node * node, child(parent, name));
  if (!node->children.empty()) return Error{ENOTEMPTY};
  const InodeId id = node->attributes.id;
  node->attributes.nlink -= S_ISDIR(node->attributes.mode) ? 2 : 1;
  SFS_ASSIGN(Node * directory, find(parent));
  directory->children.erase(directory->children.find(name));
  free_if_unused(id);
  return {};
}

Result<void> FakeFilesystem::unlink(InodeId parent, std::string_view name) {
  const MutexLock lock(mutex_);
  return drop_name(parent, name);
}

Result<void> FakeFilesystem::rmdir(InodeId parent, std::string_view name) {
  const MutexLock lock(mutex_);
  return drop_name(parent, name);
}

Result<void> FakeFilesystem::rename(InodeId from, std::string_view name, InodeId to,
                                    std::string_view new_name, uint32_t flags,
                                    const std::function<void(InodeId)>& push_dirty,
                                    const meta::Caller& /*caller*/) {
  InodeId moved;
  bool over = false;
  {
    const MutexLock lock(mutex_);
    SFS_ASSIGN(Node * node, child(from, name));
    moved = node->attributes.id;
    over = child(to, new_name).ok();
  }
  if (over && (flags & RENAME_NOREPLACE) != 0) return Error{EEXIST};
  if (over && (flags & RENAME_EXCHANGE) == 0) ++pushes, push_dirty(moved);
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * source, find(from));
  SFS_ASSIGN(Node * target, find(to));
  if ((flags & RENAME_EXCHANGE) != 0) {
    std::swap(source->children.find(name)->second, target->children.find(new_name)->second);
    return {};
  }
  if (over) SFS_TRY(drop_name(to, new_name));
  source->children.erase(source->children.find(name));
  target->children[std::string(new_name)] = moved.value;
  return {};
}

Result<void> FakeFilesystem::read_directory(
    InodeId directory, uint64_t cookie,
    const std::function<bool(const meta::DirectoryEntry&)>& visit) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(const Node* node, find(directory));
  uint64_t at = 0;
  for (const char* dot : {".", ".."}) {
    if (at++ >= cookie && !visit({dot, directory, S_IFDIR, at})) return {};
  }
  for (const auto& [name, id] : node->children) {
    const uint32_t type = nodes_.at(id).attributes.mode & S_IFMT;
    if (at++ >= cookie && !visit({name, InodeId{id}, type, at})) return {};
  }
  return {};
}

void FakeFilesystem::reference(std::span<const InodeId> ids,
                               const meta::Engine::Referenced& found) {
  const MutexLock lock(mutex_);
  for (size_t place = 0; place < ids.size(); ++place) {
    const Result<Node*> node = find(ids[place]);
    if (!node.ok()) continue;
    ++(*node)->references;
    found(place, (*node)->attributes);
  }
}

void FakeFilesystem::forget(InodeId id, uint64_t count) {
  const MutexLock lock(mutex_);
  const auto found = nodes_.find(id.value);
  if (found == nodes_.end()) return;
  found->second.references -= static_cast<int64_t>(count);
  free_if_unused(id);
}

Result<Attributes> FakeFilesystem::attributes(InodeId id) {
  ++attribute_reads;
  const MutexLock lock(mutex_);
  SFS_ASSIGN(const Node* node, find(id));
  return node->attributes;
}

Result<Attributes> FakeFilesystem::set_attributes(InodeId id, const meta::AttributeChange& change) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * node, find(id));
  Attributes& now = node->attributes;
  if (change.mode) now.mode = (now.mode & S_IFMT) | *change.mode;
  if (change.clear_suid) now.mode &= ~static_cast<uint32_t>(S_ISUID | S_ISGID);
  now.uid = change.uid.value_or(now.uid);
  now.gid = change.gid.value_or(now.gid);
  now.atime = change.atime.value_or(now.atime);
  now.mtime = change.mtime.value_or(now.mtime);
  now.ctime = change.ctime.value_or(now.ctime);
  return now;
}

Result<std::string> FakeFilesystem::read_symlink(InodeId id) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(const Node* node, find(id));
  return node->symlink;
}

Result<std::string> FakeFilesystem::get_xattr(InodeId id, std::string_view name) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(const Node* node, find(id));
  const auto found = node->xattrs.find(name);
  if (found == node->xattrs.end()) return Error{ENODATA};
  return found->second;
}

Result<void> FakeFilesystem::set_xattr(InodeId id, std::string_view name, std::string_view value,
                                       int flags) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * node, find(id));
  if ((flags & XATTR_CREATE) != 0 && node->xattrs.contains(name)) return Error{EEXIST};
  node->xattrs[std::string(name)] = value;
  return {};
}

Result<std::vector<std::string>> FakeFilesystem::list_xattr(InodeId id) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(const Node* node, find(id));
  std::vector<std::string> names;
  for (const auto& [name, value] : node->xattrs) names.push_back(name);
  return names;
}

Result<void> FakeFilesystem::remove_xattr(InodeId id, std::string_view name) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * node, find(id));
  const auto found = node->xattrs.find(name);
  if (found == node->xattrs.end()) return Error{ENODATA};
  node->xattrs.erase(found);
  return {};
}

meta::Space FakeFilesystem::space() {
  return {.data_blocks = 1000,
          .free_blocks = 600,
          .heap_units = 10,
          .free_units = 5,
          .inodes_possible = 160,
          .inodes_free = 80};
}

Result<size_t> FakeFilesystem::read(InodeId id, uint64_t offset, Bytes out) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(const Node* node, find(id));
  if (offset >= node->bytes.size()) return size_t{0};
  const size_t length = std::min(out.size(), node->bytes.size() - offset);
  std::memcpy(out.data(), node->bytes.data() + offset, length);
  return length;
}

Result<void> FakeFilesystem::write(InodeId id, uint64_t offset, ConstBytes in,
                                   meta::WriteTimes times) {
  ++writes;
  if (times == meta::WriteTimes::kNow) ++writes_that_move_times;
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * node, find(id));
  if (node->bytes.size() < offset + in.size()) node->bytes.resize(offset + in.size());
  std::memcpy(node->bytes.data() + offset, in.data(), in.size());
  node->attributes.size = node->bytes.size();
  node->attributes.blocks = div_round_up(node->bytes.size(), kBlockSize);
  return {};
}

Result<void> FakeFilesystem::truncate(InodeId id, uint64_t size) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * node, find(id));
  node->bytes.resize(size);
  node->attributes.size = size;
  node->attributes.blocks = div_round_up(size, kBlockSize);
  return {};
}

Result<void> FakeFilesystem::allocate(InodeId id, int mode, uint64_t offset, uint64_t length) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * node, find(id));
  if (mode != 0) return Error{EOPNOTSUPP};
  node->bytes.resize(std::max<size_t>(node->bytes.size(), offset + length));
  node->attributes.size = node->bytes.size();
  return {};
}

// Whole blocks of zeroes are holes.
Result<uint64_t> FakeFilesystem::seek(InodeId id, uint64_t offset, int whence) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(const Node* node, find(id));
  const std::string& bytes = node->bytes;
  if (offset >= bytes.size()) return Error{ENXIO};
  for (uint64_t at = offset; at < bytes.size(); at = round_down(at, kBlockSize) + kBlockSize) {
    const auto block = std::string_view(bytes).substr(round_down(at, kBlockSize), kBlockSize);
    const bool hole = block.find_first_not_of('\0') == std::string_view::npos;
    if (hole == (whence == SEEK_HOLE)) return at;
  }
  if (whence == SEEK_HOLE) return uint64_t{bytes.size()};
  return Error{ENXIO};
}

Result<void> FakeFilesystem::fsync(InodeId /*id*/, bool /*data_only*/) {
  ++syncs;
  on_fsync();
  return {};
}

Result<void> FakeFilesystem::sync() {
  ++syncs;
  return {};
}

Result<data::HintReply> FakeFilesystem::hint(InodeId id, const std::string* name, uint32_t number) {
  const MutexLock lock(mutex_);
  SFS_ASSIGN(Node * node, find(id));
  if (name != nullptr) node->hint = *name, node->attributes.vstream = VStreamId{42};
  if (number > 0xffff) return Error{ERANGE};
  if (number != 0) node->attributes.vstream = VStreamId{static_cast<uint16_t>(number)};
  return data::HintReply{node->attributes.vstream, PStreamId{3}, 12345, node->hint, false};
}

Result<data::HintReply> FakeFilesystem::hint_number(InodeId id, uint32_t number) {
  if (number == 0) return Error{ERANGE};
  return hint(id, nullptr, number);
}
Result<data::HintReply> FakeFilesystem::hint_name(InodeId id, std::string_view name) {
  const std::string text(name);
  return hint(id, &text, 0);
}
Result<data::HintReply> FakeFilesystem::hint_rw(InodeId id, uint32_t rw_hint) {
  if (rw_hint > 5) return Error{EINVAL};
  return hint(id, nullptr, 100 + rw_hint);
}
Result<data::HintReply> FakeFilesystem::hint_clear(InodeId id) {
  return hint(id, nullptr, 0);
}
Result<data::HintReply> FakeFilesystem::hint_query(InodeId id) {
  return hint(id, nullptr, 0);
}

Result<data::Status> FakeFilesystem::status() {
  data::Status status;
  status.meta_class = pmem::MetaClass::kSynced;
  status.app_bytes = 4096;
  status.device.nand_known = true;
  status.device.written_bytes = 8192;
  status.device.nand_bytes = 12288;
  status.pmem.fences = 3;
  return status;
}

Result<void> FakeFilesystem::start_trace(const std::string& path) {
  if (path == "/refuse") return Error{EACCES, path};
  return {};
}

}  // namespace streamfs::frontend
