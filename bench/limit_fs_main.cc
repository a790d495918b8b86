// A FUSE server that does nothing: what any of them costs, and so the limit of ours. It connects as
// streamfs does, so the kernel asks it the same; names and attributes lie in ordinary memory, what
// is written is dropped, and reads give zeroes.
//   limit_fs MOUNTPOINT [--io-uring]
// Ends when it is unmounted. Thread safety: one lock around everything. Nothing outlives it.
#include <fuse_lowlevel.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "fuse-fs/frontend/connection.h"
#include "fuse-fs/frontend/kernel_tuning.h"
#include "fuse-fs/frontend/ring_scheduling.h"
#include "fuse-fs/frontend/transport.h"

namespace {

using namespace streamfs;  // NOLINT(google-build-using-namespace): a program's own file

constexpr double kForever = 1e9;  // seconds; nobody else changes anything
constexpr unsigned kThreads = 16;
constexpr size_t kReadMost = 1 << 20;

struct Entry {
  std::string name;
  fuse_ino_t ino = 0;  // 0: gone; its place is a cookie that stays
};

struct Node {
  struct stat attributes{};
  std::vector<Entry> entries;
  std::unordered_map<std::string, size_t> places;
};

class World {
 public:
  World() {
    nodes_.emplace_back();  // number 0 is nobody's
    make_node(S_IFDIR | 0755, getuid(), getgid());
  }

  std::mutex lock;

  Node& node(fuse_ino_t ino) { return nodes_[ino]; }

  fuse_ino_t find(fuse_ino_t parent, const char* name) {
    const Node& directory = nodes_[parent];
    const auto found = directory.places.find(name);
    return found == directory.places.end() ? 0 : directory.entries[found->second].ino;
  }

  fuse_ino_t make(fuse_ino_t parent, const char* name, mode_t mode, const fuse_ctx& caller) {
    const fuse_ino_t ino = make_node(mode & ~caller.umask, caller.uid, caller.gid);
    put(parent, name, ino);
    if (S_ISDIR(mode)) ++nodes_[parent].attributes.st_nlink;
    return ino;
  }

  void put(fuse_ino_t parent, const char* name, fuse_ino_t ino) {
    Node& directory = nodes_[parent];
    const auto [place, fresh] = directory.places.try_emplace(name, directory.entries.size());
    if (fresh) directory.entries.push_back({name, ino});
    directory.entries[place->second].ino = ino;
  }

  fuse_ino_t remove(fuse_ino_t parent, const char* name) {
    Node& directory = nodes_[parent];
    const auto found = directory.places.find(name);
    if (found == directory.places.end()) return 0;
    Entry& entry = directory.entries[found->second];
    const fuse_ino_t ino = entry.ino;
    entry = {};
    directory.places.erase(found);
    if (S_ISDIR(nodes_[ino].attributes.st_mode)) --directory.attributes.st_nlink;
    return ino;
  }

 private:
  fuse_ino_t make_node(mode_t mode, uid_t uid, gid_t gid) {
    const fuse_ino_t ino = nodes_.size();
    struct stat& made = nodes_.emplace_back().attributes;
    made.st_ino = ino;
    made.st_mode = mode;
    made.st_nlink = S_ISDIR(mode) ? 2 : 1;
    made.st_uid = uid, made.st_gid = gid;
    made.st_blksize = kBlockSize;
    clock_gettime(CLOCK_REALTIME_COARSE, &made.st_mtim);
    made.st_atim = made.st_ctim = made.st_mtim;
    return ino;
  }

  std::deque<Node> nodes_;  // by number; never freed
};

bool schedules_rings = false;  // constant once requests come

// Returns the server's state. On a ring thread it also schedules the thread as streamfs does.
World& world(fuse_req_t req) {
  thread_local frontend::RingScheduler mine(schedules_rings);
  mine.request();
  return *static_cast<World*>(fuse_req_userdata(req));
}

fuse_entry_param entry_of(World& all, fuse_ino_t ino) {
  fuse_entry_param entry{};
  entry.ino = ino;
  entry.entry_timeout = entry.attr_timeout = kForever;
  if (ino != 0) entry.attr = all.node(ino).attributes;
  return entry;
}

void op_init(void* /*world*/, fuse_conn_info* connection) {
  frontend::choose_features(connection, false);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  World& all = world(req);
  const std::lock_guard held(all.lock);
  const fuse_entry_param entry = entry_of(all, all.find(parent, name));
  fuse_reply_entry(req, &entry);
}

void op_forget(fuse_req_t req, fuse_ino_t /*ino*/, uint64_t /*count*/) {
  fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t /*count*/, fuse_forget_data* /*forgets*/) {
  fuse_reply_none(req);
}

void op_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* /*file*/) {
  World& all = world(req);
  const std::lock_guard held(all.lock);
  fuse_reply_attr(req, &all.node(ino).attributes, kForever);
}

void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat* wanted, int to_set,
                fuse_file_info* /*file*/) {
  World& all = world(req);
  const std::lock_guard held(all.lock);
  struct stat& now = all.node(ino).attributes;
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) now.st_mode = wanted->st_mode;
  if ((to_set & FUSE_SET_ATTR_UID) != 0) now.st_uid = wanted->st_uid;
  if ((to_set & FUSE_SET_ATTR_GID) != 0) now.st_gid = wanted->st_gid;
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) now.st_size = wanted->st_size;
  if ((to_set & FUSE_SET_ATTR_ATIME) != 0) now.st_atim = wanted->st_atim;
  if ((to_set & FUSE_SET_ATTR_MTIME) != 0) now.st_mtim = wanted->st_mtim;
  fuse_reply_attr(req, &now, kForever);
}

void make(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  World& all = world(req);
  const std::lock_guard held(all.lock);
  const fuse_entry_param entry = entry_of(all, all.make(parent, name, mode, *fuse_req_ctx(req)));
  fuse_reply_entry(req, &entry);
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t /*rdev*/) {
  make(req, parent, name, mode);
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  make(req, parent, name, (mode & 07777) | S_IFDIR);
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  World& all = world(req);
  const std::lock_guard held(all.lock);
  fuse_reply_err(req, all.remove(parent, name) == 0 ? ENOENT : 0);
}

void op_rename(fuse_req_t req, fuse_ino_t from, const char* name, fuse_ino_t to,
               const char* new_name, unsigned flags) {
  if (flags != 0) return void(fuse_reply_err(req, EINVAL));
  World& all = world(req);
  const std::lock_guard held(all.lock);
  const fuse_ino_t moved = all.remove(from, name);
  if (moved != 0) all.put(to, new_name, moved);
  fuse_reply_err(req, moved == 0 ? ENOENT : 0);
}

void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie, bool plus) {
  World& all = world(req);
  std::vector<char> out(size);
  size_t used = 0;
  const std::lock_guard held(all.lock);
  const std::vector<Entry>& entries = all.node(ino).entries;
  for (auto at = static_cast<size_t>(cookie); at < entries.size(); ++at) {
    if (entries[at].ino == 0) continue;
    const fuse_entry_param entry = entry_of(all, entries[at].ino);
    const char* name = entries[at].name.c_str();
    const auto next = static_cast<off_t>(at + 1);
    const size_t took =
        plus ? fuse_add_direntry_plus(req, &out[used], size - used, name, &entry, next)
             : fuse_add_direntry(req, &out[used], size - used, name, &entry.attr, next);
    if (took > size - used) break;
    used += took;
  }
  fuse_reply_buf(req, out.data(), used);
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie, fuse_file_info* /*f*/) {
  list(req, ino, size, cookie, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie,
                    fuse_file_info* /*file*/) {
  list(req, ino, size, cookie, true);
}

void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* /*file*/) {
  static const std::vector<char> zeroes(kReadMost);
  World& all = world(req);
  off_t end = 0;
  {
    const std::lock_guard held(all.lock);
    end = all.node(ino).attributes.st_size;
  }
  const auto there = static_cast<size_t>(std::max<off_t>(end - offset, 0));
  fuse_reply_buf(req, zeroes.data(), std::min({size, there, kReadMost}));
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char* /*bytes*/, size_t size, off_t offset,
              fuse_file_info* /*file*/) {
  World& all = world(req);
  {
    const std::lock_guard held(all.lock);
    struct stat& now = all.node(ino).attributes;
    now.st_size = std::max(now.st_size, offset + static_cast<off_t>(size));
    now.st_blocks = now.st_size / 512;
  }
  fuse_reply_write(req, size);
}

void op_fsync(fuse_req_t req, fuse_ino_t /*ino*/, int /*datasync*/, fuse_file_info* /*file*/) {
  fuse_reply_err(req, 0);
}

void op_fallocate(fuse_req_t req, fuse_ino_t /*ino*/, int /*mode*/, off_t /*offset*/,
                  off_t /*length*/, fuse_file_info* /*file*/) {
  fuse_reply_err(req, 0);
}

void op_getxattr(fuse_req_t req, fuse_ino_t /*ino*/, const char* /*name*/, size_t /*size*/) {
  fuse_reply_err(req, ENODATA);
}

void op_statfs(fuse_req_t req, fuse_ino_t /*ino*/) {
  struct statvfs out{};
  out.f_bsize = out.f_frsize = kBlockSize;
  out.f_blocks = out.f_bfree = out.f_bavail = out.f_files = out.f_ffree = 1 << 30;
  out.f_namemax = 255;
  fuse_reply_statfs(req, &out);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.init = op_init, ops.statfs = op_statfs;
  ops.lookup = op_lookup, ops.forget = op_forget, ops.forget_multi = op_forget_multi;
  ops.getattr = op_getattr, ops.setattr = op_setattr, ops.getxattr = op_getxattr;
  ops.mknod = op_mknod, ops.mkdir = op_mkdir;
  ops.unlink = op_unlink, ops.rmdir = op_unlink, ops.rename = op_rename;
  ops.readdir = op_readdir, ops.readdirplus = op_readdirplus;
  ops.read = op_read, ops.write = op_write, ops.fallocate = op_fallocate;
  ops.fsync = op_fsync, ops.fsyncdir = op_fsync;
  return ops;
}

// The kernel's limits are raised as streamfs raises them, once the mount answers.
void raise_limits_of(const std::string& mountpoint, bool flusher) {
  struct stat root{};
  if (stat(mountpoint.c_str(), &root) == 0) frontend::raise_limits(root.st_dev, flusher);
}

int serve(fuse_session* session, const std::string& mountpoint) {
  if (fuse_session_mount(session, mountpoint.c_str()) != 0) return 1;
  const bool flusher = frontend::become_io_flusher();
  std::thread tuner(raise_limits_of, mountpoint, flusher);
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, kThreads);
  const int result = fuse_session_loop_mt(session, config);
  fuse_loop_cfg_destroy(config);
  tuner.join();
  fuse_session_unmount(session);
  return result < 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A FUSE server that does nothing: the limit of every other.", "limit_fs");
  std::string mountpoint;
  bool io_uring = false;
  app.add_option("MOUNTPOINT", mountpoint)->required()->check(CLI::ExistingDirectory);
  app.add_flag("--io-uring", io_uring, "take requests over io_uring");
  CLI11_PARSE(app, argc, argv);

  fuse_args arguments = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&arguments, "limit_fs");
  fuse_opt_add_arg(&arguments, "-ofsname=limit_fs,subtype=limit_fs,default_permissions");
  const std::string depth = std::to_string(frontend::kQueueEntries);
  if (io_uring) fuse_opt_add_arg(&arguments, ("-oio_uring,io_uring_q_depth=" + depth).c_str());
  schedules_rings = io_uring && frontend::may_use_sched_idle();
  World all;
  const fuse_lowlevel_ops ops = operations();
  fuse_session* session = fuse_session_new(&arguments, &ops, sizeof ops, &all);
  fuse_opt_free_args(&arguments);
  if (session == nullptr) return 1;
  const int exit_code = serve(session, mountpoint);
  fuse_session_destroy(session);
  return exit_code;
}
