// Rename: move, replace, exchange; one record each.
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1U
#define RENAME_EXCHANGE 2U
#define RENAME_WHITEOUT 4U
#endif

namespace streamfs::meta {

// Two names that have been looked up. Their directories and the inodes they lead to are locked.
struct Engine::Rename {
  Inode& from;
  Inode& to;
  Directory& from_names;
  Directory& to_names;
  Directory::Found source;
  std::optional<Directory::Found> target;
  Inode& moved;
  Inode* replaced;         // or exchanged; null without a target
  const Caller* whiteout;  // the caller that leaves one behind, or null
};

Result<RenameResult> Engine::rename(InodeId from, std::string_view name, InodeId to,
                                    std::string_view new_name, uint32_t flags,
                                    const Caller& caller) {
  SFS_TRY(writable());
  SFS_TRY(check_name(name));
  SFS_TRY(check_name(new_name));
  const uint32_t alone = RENAME_NOREPLACE | RENAME_WHITEOUT;  // not beside an exchange
  const bool clash = (flags & RENAME_EXCHANGE) != 0 && (flags & alone) != 0;
  if (clash || (flags & ~(alone | RENAME_EXCHANGE)) != 0) return Error{EINVAL, "rename flags"};
  std::unique_lock one_at_a_time(rename_mutex_, std::defer_lock);
  if (from != to) one_at_a_time.lock();
  for (Hints hints{from, to};;) {
    SFS_ASSIGN(const auto done, try_rename(from, name, to, new_name, flags, caller, hints));
    if (done) return *done;
  }
}

// Returns nullopt if another thread has locked an inode that the names lead to. The caller tries
// again with `hints`, which then has these inodes.
Result<std::optional<RenameResult>> Engine::try_rename(InodeId from, std::string_view name,
                                                       InodeId to, std::string_view new_name,
                                                       uint32_t flags, const Caller& caller,
                                                       Hints& hints) {
  InodeLocks locks;
  SFS_TRY(lock_all(locks, {from, to}, hints));
  SFS_ASSIGN(Directory * from_names, entries(locks[from]));
  SFS_ASSIGN(const auto source, from_names->find(name));
  SFS_ASSIGN(Directory * to_names, entries(locks[to]));
  SFS_ASSIGN(const auto target, to_names->find(new_name));
  if (!source) return Error{ENOENT};
  hints = {source->id, target ? target->id : source->id};
  for (const InodeId id : hints) {
    SFS_ASSIGN(const bool locked, try_lock(locks, id));
    if (!locked) return std::optional<RenameResult>();
  }
  Rename rename{locks[from],
                locks[to],
                *from_names,
                *to_names,
                *source,
                target,
                locks[source->id],
                target ? &locks[target->id] : nullptr,
                (flags & RENAME_WHITEOUT) != 0 ? &caller : nullptr};
  SFS_TRY(check_rename(rename, flags));
  if (rename.replaced == &rename.moved) {
    return std::optional(RenameResult{rename.moved.id, std::nullopt});  // two names of one inode
  }
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  SFS_ASSIGN(const RenameResult result, exchange&& target
                                            ? exchange_names(rename, *target, *rename.replaced)
                                            : move_name(rename, new_name));
  return std::optional(result);
}

Result<void> Engine::check_rename(const Rename& rename, uint32_t flags) {
  if (rename.to.committed.nlink == 0) return Error{ENOENT, "removed directory"};
  if (is_directory(rename.moved.committed) && &rename.from != &rename.to) {
    SFS_TRY(check_not_inside(rename.moved.id, rename.to.id));
  }
  if ((flags & RENAME_NOREPLACE) != 0 && rename.target) return Error{EEXIST};
  if ((flags & RENAME_EXCHANGE) == 0) return check_replaced(rename);
  if (!rename.target) return Error{ENOENT};
  if (is_directory(rename.replaced->committed) && &rename.from != &rename.to) {
    SFS_TRY(check_not_inside(rename.replaced->id, rename.from.id));
  }
  return {};
}

Result<void> Engine::check_replaced(const Rename& rename) {
  const bool moves_directory = is_directory(rename.moved.committed);
  if (!rename.target) {
    const bool arrives = moves_directory && &rename.from != &rename.to;
    return arrives && rename.to.committed.nlink >= kMaxLinks ? Result<void>(Error{EMLINK})
                                                             : Result<void>();
  }
  const bool over_directory = is_directory(rename.replaced->committed);
  if (moves_directory && !over_directory) return Error{ENOTDIR};
  if (!moves_directory && over_directory) return Error{EISDIR};
  if (!over_directory || rename.replaced == &rename.moved) return {};
  SFS_ASSIGN(const Directory* names, entries(*rename.replaced));
  if (!names->empty()) return Error{ENOTEMPTY};
  return {};
}

// Parents change only under the rename mutex, so the way up does not change meanwhile.
Result<void> Engine::check_not_inside(InodeId moved, InodeId directory) const {
  const uint64_t deepest = heap_.total() * kInodesPerUnit;
  InodeId at = directory;
  for (uint64_t depth = 0; depth <= deepest; ++depth) {
    if (at == moved) return Error{EINVAL, "a directory into itself"};
    if (at == root()) return {};
    if (!heap_.is_inode_slot(at)) break;
    at = InodeId{region_.load(inode_offset(at) + offsetof(InodeImage, parent))};
  }
  return Error{EIO, "a directory's parents lead nowhere"};
}

// Adds what a move changes besides names: the inode's ctime, a directory's parent, link counts.
void Engine::put_moved(Change& change, Inode& moved, Inode& from, Inode& to) {
  change.next(moved).ctime = now();
  if (!is_directory(moved.committed) || &from == &to) return;
  change.next(moved).parent = to.id.value;
  --change.next(from).nlink;
  ++change.next(to).nlink;
}

// Removes the old name, or gives it to a whiteout, with which overlay filesystems hide a name of a
// lower layer.
Result<std::optional<Engine::NewInode>> Engine::put_vacate(Change& change, Rename& rename) {
  if (rename.whiteout == nullptr) {
    rename.from_names.put_remove(change.tx, rename.source);
    return std::optional<NewInode>();
  }
  const CreateRequest request{S_IFCHR, *rename.whiteout, 0, {}, {}, false};
  SFS_ASSIGN(NewInode made, prepare_inode(change, rename.from, request, 1));
  rename.from_names.put_replace(change.tx, rename.source, made.slot.id(), S_IFCHR);
  return std::optional(std::move(made));
}

Result<RenameResult> Engine::move_name(Rename& rename, std::string_view new_name) {
  Change change = this->change();
  SFS_ASSIGN(auto whiteout, put_vacate(change, rename));
  Directory::Insertion insertion;
  Orphans::Claim orphan;
  if (rename.target) {
    rename.to_names.put_replace(change.tx, *rename.target, rename.source.id, rename.source.type);
    SFS_ASSIGN(orphan, put_drop_name(change, *rename.replaced));
    if (is_directory(rename.replaced->committed)) --change.next(rename.to).nlink;
  } else {
    SFS_ASSIGN(insertion, rename.to_names.put_insert(change.tx, new_name, rename.source.id,
                                                     rename.source.type, change.next(rename.to)));
  }
  put_moved(change, rename.moved, rename.from, rename.to);
  touch(change, rename.from);
  touch(change, rename.to);
  SFS_ASSIGN(const TxId committed,
             whiteout ? commit_new(change, *whiteout).first : change.commit());
  if (!rename.target) rename.to_names.inserted(std::move(insertion));
  if (!whiteout) rename.from_names.removed(rename.source, committed);
  orphan.keep();
  RenameResult result{rename.moved.id, std::nullopt};
  if (rename.replaced != nullptr) result.replaced = rename.replaced->id;
  return result;
}

Result<RenameResult> Engine::exchange_names(Rename& rename, const Directory::Found& target,
                                            Inode& other) {
  Change change = this->change();
  rename.from_names.put_replace(change.tx, rename.source, target.id, target.type);
  rename.to_names.put_replace(change.tx, target, rename.source.id, rename.source.type);
  put_moved(change, rename.moved, rename.from, rename.to);
  put_moved(change, other, rename.to, rename.from);
  touch(change, rename.from);
  touch(change, rename.to);
  SFS_TRY(change.commit());
  return RenameResult{rename.moved.id, std::nullopt};
}

}  // namespace streamfs::meta
