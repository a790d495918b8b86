// Names: lookup, create, link, remove, read. Rename is in engine_rename.cc.
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"

namespace streamfs::meta {

namespace {

// Adds the body that a create writes: words 1 to 15, and the used part of the inline area.
void put_inode_body(Transaction& tx, InodeId id, const InodeImage& image) {
  const auto words = std::bit_cast<InodeWords>(image);
  const auto put = [&](size_t first, size_t end) {
    tx.body(inode_offset(id) + first * kWordSize, std::span(words).subspan(first, end - first));
  };
  const bool all = (image.flags & kInlineSymlink) != 0;
  const size_t xattrs = image.inline_xattr_bytes == 0 ? size_t{kInodeWords}
                        : is_regular(image)           ? size_t{kInlineXattrWord}
                                                      : size_t{kInodeBodyWords};
  if (all || xattrs == kInodeBodyWords) return put(1, kInodeWords);
  put(1, kInodeBodyWords);
  if (xattrs < kInodeWords) put(xattrs, kInodeWords);
}

}  // namespace

void Engine::touch(Change& change, Inode& directory) {
  InodeImage& next = change.next(directory);
  next.mtime = next.ctime = now();
}

// Returns the inode that a name leads to. Errors: EIO, there is none.
Result<InodeRef> Engine::named(InodeId id) {
  auto ref = cache_.get(id);
  if (!ref && ref.error().code == ESTALE) return Error{EIO, "a name leads to no inode"};
  return ref;
}

// Looks up the inode of a file handle: of any type, known to the caller by its number alone.
Result<Attributes> Engine::lookup_itself(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  if (inode->committed.nlink == 0) return Error{ESTALE, "no such inode"};
  return referenced(*inode);
}

Result<Attributes> Engine::lookup(InodeId parent, std::string_view name) {
  if (name == ".") return lookup_itself(parent);
  InodeRef child;
  {
    SFS_ASSIGN(const Locked directory, lock_directory(parent));
    if (name == "..") {
      if (directory->committed.nlink == 0) return Error{ESTALE, "a removed directory"};
      SFS_ASSIGN(child, cache_.get(InodeId{directory->committed.parent}));
    } else {
      SFS_TRY(check_name(name));
      SFS_ASSIGN(const Directory* names, entries(*directory));
      SFS_ASSIGN(const auto found, names->find(name));
      if (!found) return Error{ENOENT};
      SFS_ASSIGN(child, named(found->id));
    }
    // Counted while the name still leads there, so that the inode cannot be freed in between.
    cache_.add_lookup(*child);
  }
  const std::unique_lock lock(child->mutex);
  if (!child->alive) return Error{ESTALE, "no such inode"};
  return attributes_of(*child);
}

// ---- Create

Result<Engine::NewInode> Engine::prepare_inode(Change& change, const Inode& parent,
                                               const CreateRequest& request, uint32_t nlink) {
  SFS_ASSIGN(InodeSlots::Claim slot, slots_.take());
  NewInode made{std::move(slot), {}, {}, {}, {}};
  // Words 16–31 stay as they are in META, because the image must mirror META. All copies of META
  // must have the same words; a crash may have left others in one of them.
  region_.equalise(0, inode_offset(made.slot.id()), kCellSize);
  auto blank = std::bit_cast<InodeWords>(load_image(region_, made.slot.id()));
  std::fill_n(blank.begin(), kInodeBodyWords, 0);
  InodeImage& image = made.image;
  image = std::bit_cast<InodeImage>(blank);
  image.mode = static_cast<uint16_t>(request.mode);
  image.nlink = nlink;
  image.uid = request.caller.uid;
  image.gid = request.caller.gid;
  if ((parent.committed.mode & S_ISGID) != 0) {
    image.gid = parent.committed.gid;
    if (is_directory(image)) image.mode |= S_ISGID;
  }
  image.mtime = image.ctime = image.atime = image.btime = now();
  image.generation = made.slot.generation();
  image.rdev = S_ISCHR(image.mode) || S_ISBLK(image.mode) ? request.rdev : 0;
  image.self = made.slot.id().value;
  if (is_directory(image)) image.parent = parent.id.value;
  set_vstream(image, request.vstream, request.vstream_generation, request.vstream_hinted);
  if (is_symlink(image)) SFS_TRY(put_symlink(change, made, request.symlink_target));
  SFS_ASSIGN(made.xattrs,
             put_permissions(change, made.slot.id(), image, parent, request.caller.umask));
  image.checksum = inode_checksum(image);
  made.slot.put(change.tx);
  return made;
}

Result<void> Engine::put_symlink(Change& change, NewInode& made, std::string_view target) {
  if (target.empty()) return Error{ENOENT};
  if (target.size() >= kBlockSize) return Error{ENAMETOOLONG};
  made.image.size = target.size();
  if (target.size() <= kInlineSymlinkMax) {
    made.image.flags |= kInlineSymlink;
    std::fill_n(made.image.inline_area, std::size(made.image.inline_area), 0);
    std::memcpy(made.image.inline_area, target.data(), target.size());
    return {};
  }
  SFS_ASSIGN(made.long_symlink, put_blob(change.tx, heap_, made.slot.id(), target));
  made.image.symlink = made.long_symlink.first;
  return {};
}

// Commits a new inode. It is in memory and locked before anyone can find it in META. Steps that can
// fail come before this call, because the body marks the slot's generation as used.
std::pair<Result<TxId>, Locked> Engine::commit_new(Change& change, NewInode& made) {
  std::unique_lock<Mutex> lock;
  InodeRef inode = cache_.insert(made.slot.id(), made.image, lock);
  put_inode_body(change.tx, made.slot.id(), made.image);
  change.tx.patch(inode_offset(made.slot.id()), std::bit_cast<InodeWords>(made.image)[0]);
  const Result<TxId> committed = change.commit();
  if (!committed) {
    inode->alive = false;
    cache_.erase(*inode);
    return {committed.error(), Locked{std::move(inode), std::move(lock)}};
  }
  made.slot.keep();
  made.long_symlink.keep();
  made.xattrs.keep();
  made.orphan.keep();
  return {committed, Locked{std::move(inode), std::move(lock)}};
}

Result<Attributes> Engine::create(InodeId parent, std::string_view name,
                                  const CreateRequest& request) {
  SFS_TRY(writable());
  SFS_TRY(check_name(name));
  SFS_ASSIGN(const Locked directory, lock_directory(parent));
  if (directory->committed.nlink == 0) return Error{ENOENT, "removed directory"};
  SFS_ASSIGN(Directory * names, entries(*directory));
  SFS_ASSIGN(const auto found, names->find(name));
  if (found) return Error{EEXIST};
  const bool is_dir = S_ISDIR(request.mode);
  if (is_dir && directory->committed.nlink >= kMaxLinks) return Error{EMLINK};
  Change change = this->change();
  SFS_ASSIGN(NewInode made, prepare_inode(change, *directory, request, is_dir ? 2 : 1));
  InodeImage& next = change.next(*directory);
  SFS_ASSIGN(auto insertion,
             names->put_insert(change.tx, name, made.slot.id(), request.mode & S_IFMT, next));
  if (is_dir) ++next.nlink;
  touch(change, *directory);
  const auto [committed, inode] = commit_new(change, made);
  SFS_TRY(committed);
  names->inserted(std::move(insertion));
  return referenced(*inode);
}

Result<Attributes> Engine::create_unnamed(InodeId parent, const CreateRequest& request) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked directory, lock_directory(parent));
  if (directory->committed.nlink == 0) return Error{ENOENT, "removed directory"};
  if (!S_ISREG(request.mode)) return Error{EINVAL, "only regular files can be unnamed"};
  Change change = this->change();
  SFS_ASSIGN(NewInode made, prepare_inode(change, *directory, request, 0));
  SFS_ASSIGN(made.orphan, orphans_.claim(made.slot.id()));
  made.orphan.put(change.tx);
  const auto [committed, inode] = commit_new(change, made);
  SFS_TRY(committed);
  return referenced(*inode);
}

Result<Attributes> Engine::link(InodeId target, InodeId parent, std::string_view name) {
  SFS_TRY(writable());
  SFS_TRY(check_name(name));
  if (target == parent) return Error{EPERM, "hard link to a directory"};
  InodeLocks locks;
  for (const InodeId id : {target, parent}) {
    SFS_ASSIGN(InodeRef ref, cache_.get(id));
    locks.add(std::move(ref));
  }
  locks.lock();
  Inode& inode = locks[target];
  Inode& directory = locks[parent];
  if (!inode.alive || !directory.alive) return Error{ESTALE, "no such inode"};
  if (!is_directory(directory.committed)) return Error{ENOTDIR};
  if (is_directory(inode.committed)) return Error{EPERM, "hard link to a directory"};
  if (directory.committed.nlink == 0) return Error{ENOENT, "removed directory"};
  SFS_ASSIGN(Directory * names, entries(directory));
  SFS_ASSIGN(const auto found, names->find(name));
  if (found) return Error{EEXIST};
  if (inode.committed.nlink >= kMaxLinks) return Error{EMLINK};
  Change change = this->change();
  SFS_ASSIGN(auto insertion,
             names->put_insert(change.tx, name, target, inode.committed.mode & S_IFMT,
                               change.next(directory)));
  const bool was_orphan = inode.committed.nlink == 0;
  if (was_orphan) orphans_.put_remove(change.tx, target);
  if (was_orphan) change.next(inode).mtime = inode.mtime;  // not committed while it was an orphan
  ++change.next(inode).nlink;
  change.next(inode).ctime = now();
  touch(change, directory);
  SFS_TRY(change.commit());
  if (was_orphan) orphans_.removed(target);
  names->inserted(std::move(insertion));
  return referenced(inode);
}

// ---- Remove

// Locks directories, and the inodes of `more` that exist, in order. The inode that a name leads to
// is known only while its directory is locked, and waiting for it then would violate the order of
// locks. Callers therefore only try_lock() it, which nearly always succeeds. If it fails, they
// unlock everything, lock it again with that inode among `more`, and look the name up anew.
Result<void> Engine::lock_all(InodeLocks& locks, std::initializer_list<InodeId> directories,
                              std::span<const InodeId> more) {
  for (const InodeId id : directories) {
    if (locks.contains(id)) continue;
    SFS_ASSIGN(InodeRef ref, cache_.get(id));
    locks.add(std::move(ref));
  }
  for (const InodeId id : more) {
    if (locks.contains(id)) continue;
    // An inode that is gone or damaged does not matter before a name is found to lead to it.
    if (auto ref = cache_.get(id)) locks.add(std::move(ref).value());
  }
  locks.lock();
  for (const InodeId id : directories) {
    if (!locks[id].alive) return Error{ESTALE, "no such inode"};
    if (!is_directory(locks[id].committed)) return Error{ENOTDIR};
  }
  return {};
}

Result<bool> Engine::try_lock(InodeLocks& locks, InodeId id) {
  if (locks.contains(id)) return locks[id].alive;  // false if freed since: all is locked anew
  SFS_ASSIGN(InodeRef ref, named(id));
  if (!locks.try_lock(std::move(ref))) return false;
  if (!locks[id].alive) return Error{EIO, "a name leads to no inode"};  // its link count was wrong
  return true;
}

Result<Orphans::Claim> Engine::put_drop_name(Change& change, Inode& inode) {
  InodeImage& next = change.next(inode);
  next.nlink = is_directory(next) || next.nlink == 0 ? 0 : next.nlink - 1;
  next.ctime = now();
  if (next.nlink > 0) return Orphans::Claim();
  SFS_ASSIGN(Orphans::Claim orphan, orphans_.claim(inode.id));
  orphan.put(change.tx);
  return orphan;
}

Result<void> Engine::check_removable(Inode& inode, bool directory) {
  if (!directory)
    return is_directory(inode.committed) ? Result<void>(Error{EISDIR}) : Result<void>();
  if (!is_directory(inode.committed)) return Error{ENOTDIR};
  if (!inode.directory && inode.committed.chain == 0) return {};  // never had a name in it
  SFS_ASSIGN(const Directory* names, entries(inode));
  if (!names->empty()) return Error{ENOTEMPTY};
  return {};
}

Result<InodeId> Engine::remove_name(InodeId parent, std::string_view name, bool directory) {
  SFS_TRY(writable());
  SFS_TRY(check_name(name));
  for (InodeId id = parent;;) {
    InodeLocks locks;
    SFS_TRY(lock_all(locks, {parent}, {&id, 1}));
    Inode& from = locks[parent];
    SFS_ASSIGN(const Directory* names, entries(from));
    SFS_ASSIGN(const auto found, names->find(name));
    if (!found) return Error{ENOENT};
    id = found->id;
    SFS_ASSIGN(const bool locked, try_lock(locks, id));
    if (locked) return remove_found(from, *found, locks[id], directory);
  }
}

Result<InodeId> Engine::remove_found(Inode& from, const Directory::Found& found, Inode& inode,
                                     bool directory) {
  SFS_TRY(check_removable(inode, directory));
  Change change = this->change();
  from.directory->put_remove(change.tx, found);
  SFS_ASSIGN(Orphans::Claim orphan, put_drop_name(change, inode));
  if (directory) --change.next(from).nlink;
  touch(change, from);
  SFS_ASSIGN(const TxId committed, change.commit());
  from.directory->removed(found, committed);
  orphan.keep();
  return inode.id;
}

Result<InodeId> Engine::unlink(InodeId parent, std::string_view name) {
  return remove_name(parent, name, false);
}

Result<InodeId> Engine::rmdir(InodeId parent, std::string_view name) {
  if (name == ".") return Error{EINVAL};
  if (name == "..") return Error{ENOTEMPTY};
  return remove_name(parent, name, true);
}

// ---- Read

namespace {

constexpr uint64_t kSelfCookie = 1, kParentCookie = 2, kFirstSlotCookie = 3;

uint64_t slot_after(uint64_t cookie) {
  return cookie < kFirstSlotCookie ? 0 : cookie - kFirstSlotCookie + 1;
}

}  // namespace

Result<void> Engine::read_directory(InodeId id, uint64_t cookie,
                                    const std::function<bool(const DirectoryEntry&)>& visit) {
  SFS_ASSIGN(const Locked directory, lock_directory(id));
  SFS_ASSIGN(const Directory* names, entries(*directory));
  const InodeId parent{directory->committed.parent};
  if (cookie < kSelfCookie && !visit({".", id, S_IFDIR, kSelfCookie})) return {};
  if (cookie < kParentCookie && !visit({"..", parent, S_IFDIR, kParentCookie})) return {};
  names->visit(slot_after(cookie), [&](uint32_t slot, const DirEntry& entry) {
    return visit({entry.name, entry.id, entry.type, slot + kFirstSlotCookie});
  });
  return {};
}

void Engine::look_ahead(InodeId id, uint64_t cookie, size_t most) {
  std::vector<InodeId> ids;
  {
    const Result<Locked> directory = lock_directory(id);
    if (!directory || !(*directory)->directory) return;
    ids = (*directory)->directory->read_ahead(slot_after(cookie), most);
  }
  cache_.warm(ids);
}

Result<Attributes> Engine::reference(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  return referenced(*inode);
}

void Engine::reference(std::span<const InodeId> ids, const Referenced& found) {
  const std::vector<size_t> rest = cache_.add_lookups(
      ids, [&](size_t place, const Inode& inode) { found(place, attributes_of(inode)); });
  for (const size_t place : rest) {
    if (const Result<Attributes> one = reference(ids[place])) found(place, *one);
  }
}

}  // namespace streamfs::meta
