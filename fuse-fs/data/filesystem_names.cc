// The name calls of the filesystem: the engine's operations, with placement at create and the order
// of data and record at rename.
#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/data/filesystem_impl.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

namespace streamfs::data {

using meta::Attributes;

Result<void> FilesystemImpl::changed() {
  activity_.touch();
  if (barrier_->damaged()) return make_durable(*barrier_, engine_->journal().last(), health_);
  if (!barrier_->waits()) return {};
  if (options_.dirsync) return make_durable(*barrier_, engine_->journal().last(), health_);
  maintenance_->namespace_changed();
  return {};
}

template <typename T>
Result<T> FilesystemImpl::after_change(Result<T> done) {
  if (!done.ok()) {
    if (done.error().code == EROFS) health_.degrade(done.error().message());
    if (barrier_->damaged())
      SFS_TRY(make_durable(*barrier_, engine_->journal().last(), health_));  // may be the cause
    return done;
  }
  SFS_TRY(changed());
  return done;
}

// Adds an inode that lost a name to the orphans if it was its last and there is no reference.
void FilesystemImpl::lost_name(InodeId id) {
  if (engine_->forget(id, 0)) maintenance_->add_orphan(id);
}

Result<Attributes> FilesystemImpl::lookup(InodeId parent, std::string_view name) {
  Result<Attributes> found = engine_->lookup(parent, name);
  const bool by_name = name != "." && name != "..";
  if (found.ok() && by_name && S_ISDIR(found->mode)) directories_.learn(found->id, name);
  return found;
}

// Chooses the vStream of a new inode. A directory gets its parent's hint only; a file also gets
// what rules and contexts say.
placement::Chosen FilesystemImpl::choose(InodeId parent, const Attributes& directory,
                                         std::string_view name, uint32_t mode,
                                         const Requester& who) {
  const VStreamId said = directory.vstream_hinted ? directory.vstream : kDefaultVStream;
  if (S_ISDIR(mode) && !hints_ignored() && said != kDefaultVStream) {
    return {said, placement::Source::kDirectory};
  }
  if (!S_ISREG(mode)) return {};
  const std::string folder = directories_.name(parent);
  return placement_->choose({who.comm, name, folder, said, who.caller.uid});
}

Result<Attributes> FilesystemImpl::create(InodeId parent, std::string_view name, uint32_t mode,
                                          uint64_t rdev, std::string_view symlink_target,
                                          const Requester& who) {
  SFS_TRY(may_change());
  SFS_ASSIGN(const Attributes directory, engine_->attributes(parent));
  const placement::Chosen chosen = choose(parent, directory, name, mode, who);
  const bool hinted = chosen.source == placement::Source::kDirectory;
  Result<Attributes> made = after_change(with_units([&] {
    return engine_->create(
        parent, name,
        {mode, who.caller, rdev, symlink_target, chosen.vstream, hinted, chosen.generation});
  }));
  if (made.ok() && S_ISDIR(mode)) directories_.learn(made->id, name);
  return made;
}

Result<Attributes> FilesystemImpl::create_unnamed(InodeId parent, uint32_t mode,
                                                  const Requester& who) {
  SFS_TRY(may_change());
  SFS_ASSIGN(const Attributes directory, engine_->attributes(parent));
  const placement::Chosen chosen = choose(parent, directory, {}, mode, who);
  const bool hinted = chosen.source == placement::Source::kDirectory;
  return after_change(with_units([&] {
    return engine_->create_unnamed(
        parent, {mode, who.caller, 0, {}, chosen.vstream, hinted, chosen.generation});
  }));
}

Result<Attributes> FilesystemImpl::link(InodeId target, InodeId parent, std::string_view name) {
  SFS_TRY(may_change());
  return after_change(with_units([&] { return engine_->link(target, parent, name); }));
}

Result<void> FilesystemImpl::unlink(InodeId parent, std::string_view name) {
  SFS_TRY(may_change());
  SFS_ASSIGN(const InodeId id, after_change(engine_->unlink(parent, name)));
  lost_name(id);
  return {};
}

Result<void> FilesystemImpl::rmdir(InodeId parent, std::string_view name) {
  SFS_TRY(may_change());
  SFS_ASSIGN(const InodeId id, after_change(engine_->rmdir(parent, name)));
  lost_name(id);
  return {};
}

Result<bool> FilesystemImpl::replaces_file(InodeId to, std::string_view new_name, uint32_t flags) {
  if ((flags & (RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) return false;
  const Result<Attributes> there = engine_->lookup(to, new_name);
  if (!there.ok()) {
    if (there.error().code == ENOENT) return false;
    return there.error();
  }
  forget(there->id, 1);
  return S_ISREG(there->mode);
}

// Makes the data of a file durable, and commits it.
Result<void> FilesystemImpl::commit_data(InodeId id) {
  const auto state = states_.get(id);
  SFS_ASSIGN(const bool absorbed, absorb(id, *state, false));
  if (absorbed) return {};
  SFS_TRY(epochs_->flush_through(state->last_epoch.load(std::memory_order_acquire)));
  return epochs_->commit(id);
}

// If a file replaces another, its data is made durable first: after a crash, readers of that name
// must find it.
Result<void> FilesystemImpl::rename(InodeId from, std::string_view name, InodeId to,
                                    std::string_view new_name, uint32_t flags,
                                    const std::function<void(InodeId)>& push_dirty,
                                    const meta::Caller& caller) {
  SFS_TRY(may_change());
  SFS_ASSIGN(const bool replaces, replaces_file(to, new_name, flags));
  if (replaces) {
    if (!may_wait()) return would_wait();
    SFS_ASSIGN(const Attributes source, engine_->lookup(from, name));
    if (push_dirty) push_dirty(source.id);
    const Result<void> first = commit_data(source.id);
    forget(source.id, 1);
    SFS_TRY(first);
  }
  SFS_ASSIGN(const meta::RenameResult done, after_change(with_units([&] {
               return engine_->rename(from, name, to, new_name, flags, caller);
             })));
  if (done.replaced) lost_name(*done.replaced);
  return {};
}

Result<void> FilesystemImpl::read_directory(
    InodeId directory, uint64_t cookie,
    const std::function<bool(const meta::DirectoryEntry&)>& visit) {
  std::vector<DirectoryNames::Named> directories;
  SFS_TRY(engine_->read_directory(directory, cookie, [&](const meta::DirectoryEntry& entry) {
    if (entry.type == S_IFDIR) directories.push_back({entry.id, std::string(entry.name)});
    return visit(entry);
  }));
  directories_.learn(directories);
  return {};
}

void FilesystemImpl::reference(std::span<const InodeId> ids,
                               const meta::Engine::Referenced& found) {
  engine_->reference(ids, found);
}

void FilesystemImpl::forget(InodeId id, uint64_t count) {
  const bool orphan = engine_->forget(id, count);
  if (orphan && health_.writable().ok()) {
    maintenance_->add_orphan(id);
  } else {
    states_.release(id, epochs_->flushed());
  }
}

Result<Attributes> FilesystemImpl::set_attributes(InodeId id, const meta::AttributeChange& change) {
  SFS_TRY(may_change());
  if (!change.lazily) return after_change(engine_->set_attributes(id, change));
  SFS_ASSIGN(const Attributes now, engine_->set_attributes(id, change));
  if (engine_->dirty(id)) epochs_->touched(id, 0, 0);
  return now;
}

}  // namespace streamfs::data
