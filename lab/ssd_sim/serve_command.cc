// ssd-sim serve: serves an emulated SSD as the only file of a FUSE filesystem, for a loop device.
//
// The kernel has no streams here: all data goes to stream 0, and copies of garbage collection to a
// frontier of their own, as in a drive without streams. The file uses direct I/O, because the loop
// device and the filesystem on it have caches enough. A write that has returned is therefore in the
// emulated SSD. fallocate(PUNCH_HOLE) trims, fsync flushes.
#include <fcntl.h>
#include <fmt/format.h>
#include <fuse_lowlevel.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "base/exit_codes.h"
#include "base/result.h"
#include "base/types.h"
#include "lab/ssd_sim/commands.h"
#include "lab/ssd_sim/served_file.h"
#include "ssd/geometry.h"
#include "ssd/idle_worker.h"
#include "ssd/ssd.h"

namespace streamfs::lab::ssd_sim {
namespace {

constexpr fuse_ino_t kFile = 2;
constexpr const char* kFileName = "ssd.img";
constexpr double kForever = 86400;
constexpr unsigned kMaxRequestBytes = 1 << 20;
constexpr unsigned kThreads = 4;
constexpr unsigned kMaxBackground = 64;  // in real time each sleeps in a thread of its own

ServedFile& served(fuse_req_t req) {
  return *static_cast<ServedFile*>(fuse_req_userdata(req));
}

// Prints the reason for the user who runs the server. The program that asked gets only a number.
int reported(const Error& error) {
  fmt::print(stderr, "ssd-sim: {}\n", error.message());
  return error.code;
}

void reply(fuse_req_t req, const Result<void>& done) {
  fuse_reply_err(req, done.ok() ? 0 : reported(done.error()));
}

struct stat attributes(const ServedFile& file, fuse_ino_t ino) {
  struct stat st{};
  st.st_ino = ino;
  st.st_uid = getuid();
  st.st_gid = getgid();
  st.st_mode = ino == kFile ? S_IFREG | 0600 : S_IFDIR | 0700;
  st.st_nlink = ino == kFile ? 1 : 2;
  st.st_size = ino == kFile ? static_cast<off_t>(file.size()) : 0;
  st.st_blocks = st.st_size / 512;
  st.st_blksize = ssd::kPageBytes;
  return st;
}

void op_init(void*, fuse_conn_info* conn) {
  conn->max_write = kMaxRequestBytes;
  conn->max_background = kMaxBackground;
  conn->congestion_threshold = 48;
  conn->want &= ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ);  // a copy is cheaper than a pipe here
  conn->want |= conn->capable & static_cast<unsigned>(FUSE_CAP_ASYNC_DIO);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (parent != FUSE_ROOT_ID || std::strcmp(name, kFileName) != 0) {
    fuse_reply_err(req, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kFile;
  entry.attr = attributes(served(req), kFile);
  entry.attr_timeout = entry.entry_timeout = kForever;
  fuse_reply_entry(req, &entry);
}

void op_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  const struct stat st = attributes(served(req), ino);
  fuse_reply_attr(req, &st, kForever);
}

// A device has no size to change; times and modes are not kept.
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat*, int to_set, fuse_file_info*) {
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    fuse_reply_err(req, EPERM);
    return;
  }
  op_getattr(req, ino, nullptr);
}

void op_readdir(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  char buffer[1024];
  size_t used = 0;
  const std::pair<const char*, fuse_ino_t> entries[] = {
      {".", FUSE_ROOT_ID}, {"..", FUSE_ROOT_ID}, {kFileName, kFile}};
  for (off_t i = offset; i < static_cast<off_t>(std::size(entries)); ++i) {
    const struct stat st = attributes(served(req), entries[i].second);
    const size_t room = std::min(size, sizeof(buffer)) - used;
    const size_t need = fuse_add_direntry(req, buffer + used, room, entries[i].first, &st, i + 1);
    if (need > room) break;
    used += need;
  }
  fuse_reply_buf(req, buffer, used);
}

void op_open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (ino != kFile) {
    fuse_reply_err(req, EISDIR);
    return;
  }
  fi->direct_io = 1;
#if FUSE_VERSION >= 315
  fi->parallel_direct_writes = 1;
#endif
  fuse_reply_open(req, fi);
}

void op_read(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  const auto bytes = served(req).read(static_cast<uint64_t>(offset), size);
  if (!bytes.ok()) {
    fuse_reply_err(req, reported(bytes.error()));
    return;
  }
  fuse_reply_buf(req, reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

void op_write(fuse_req_t req, fuse_ino_t, const char* data, size_t size, off_t offset,
              fuse_file_info*) {
  const ConstBytes bytes = std::as_bytes(std::span(data, size));
  const Result<void> done = served(req).write(static_cast<uint64_t>(offset), bytes);
  if (done.ok())
    fuse_reply_write(req, size);
  else
    reply(req, done);
}

void op_fallocate(fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t length,
                  fuse_file_info*) {
  const auto from = static_cast<uint64_t>(offset), count = static_cast<uint64_t>(length);
  const bool frees = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
  if (mode != 0 && !frees) {
    fuse_reply_err(req, EOPNOTSUPP);
    return;
  }
  reply(req, frees ? served(req).punch(from, count) : Result<void>());
}

void op_fsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info*) {
  reply(req, served(req).flush());
}

void op_flush(fuse_req_t req, fuse_ino_t, fuse_file_info*) {
  fuse_reply_err(req, 0);
}

void op_statfs(fuse_req_t req, fuse_ino_t) {
  struct statvfs st{};
  st.f_bsize =
      served(req).map_unit_bytes();  // the loop device takes this for its discard granularity
  st.f_frsize = ssd::kPageBytes;
  st.f_blocks = served(req).size() / ssd::kPageBytes;
  st.f_namemax = 255;
  fuse_reply_statfs(req, &st);
}

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops ops = [] {
    fuse_lowlevel_ops table{};
    table.init = op_init;
    table.lookup = op_lookup;
    table.getattr = op_getattr;
    table.setattr = op_setattr;
    table.readdir = op_readdir;
    table.open = op_open;
    table.read = op_read;
    table.write = op_write;
    table.fallocate = op_fallocate;
    table.fsync = op_fsync;
    table.flush = op_flush;
    table.statfs = op_statfs;
    return table;
  }();
  return ops;
}

struct SessionDeleter {
  void operator()(fuse_session* session) const {
    fuse_remove_signal_handlers(session);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
  }
};
struct ConfigDeleter {
  void operator()(fuse_loop_config* config) const { fuse_loop_cfg_destroy(config); }
};

int serve_until_unmounted(fuse_session* session, unsigned threads) {
  const std::unique_ptr<fuse_loop_config, ConfigDeleter> config(fuse_loop_cfg_create());
  fuse_loop_cfg_set_clone_fd(config.get(), 1);
  fuse_loop_cfg_set_max_threads(config.get(), threads);
  fuse_loop_cfg_set_idle_threads(config.get(), threads);
  // > 0: a signal asked us to stop, which is a clean end too.
  return fuse_session_loop_mt(session, config.get()) >= 0 ? exit_code::kOk : exit_code::kIo;
}

class ServeCommand final : public Command {
 public:
  explicit ServeCommand(CLI::App& parent)
      : Command(parent.add_subcommand(
            "serve", "Serve an image as MOUNTPOINT/ssd.img, for a loop device (streams off).")) {
    app_->add_option("path", path_, "The image file.")->required();
    app_->add_option("mountpoint", mountpoint_, "An empty directory.")->required();
    app_->add_flag("-f,--foreground", foreground_, "Stay in the foreground.");
    app_->add_flag("--allow-other", allow_other_, "Let other users open it, too.");
    app_->add_option("--idle-gc", idle_ms_,
                     "Collect garbage in the background after so many ms without a request "
                     "(default: never, so that counters do not depend on the machine's speed).")
        ->check(CLI::Range(1u, 3'600'000u))
        ->option_text("MS");
    app_->add_flag("--real-time", real_time_,
                   "Answer no sooner than the flash would, times FACTOR.")
        ->check(CLI::Range(1e-3, 1e6))
        ->transform([](const std::string& value) { return value == "true" ? "1" : value; })
        ->option_text("[=FACTOR]");
  }

  int run() override {
    Result<std::unique_ptr<ssd::Ssd>> ssd =
        ssd::Ssd::open(path_, {.real_time = real_time_, .streams_off = true});
    if (!ssd.ok()) return fail(ssd.error());
    ssd::IdleWorker idle(**ssd, std::chrono::milliseconds(idle_ms_));
    ServedFile file(**ssd, idle);
    mountpoint_ = std::filesystem::absolute(mountpoint_);  // a daemon's directory is /
    return mount_and_serve(file, idle);
  }

 private:
  int mount_and_serve(ServedFile& file, ssd::IdleWorker& idle) {
    std::string options = "fsname=ssd-sim,subtype=ssd-sim,default_permissions";
    if (allow_other_) options += ",allow_other";
    const char* arguments[] = {"ssd-sim", "-o", options.c_str(), nullptr};
    fuse_args args = FUSE_ARGS_INIT(3, const_cast<char**>(arguments));
    const std::unique_ptr<fuse_session, SessionDeleter> session(
        fuse_session_new(&args, &operations(), sizeof(fuse_lowlevel_ops), &file));
    fuse_opt_free_args(&args);
    if (session == nullptr || fuse_session_mount(session.get(), mountpoint_.c_str()) != 0) {
      fmt::print(stderr, "ssd-sim: cannot mount on {}\n", mountpoint_);
      return exit_code::kNoFuse;
    }
    if (fuse_set_signal_handlers(session.get()) != 0 || fuse_daemonize(foreground_ ? 1 : 0) != 0) {
      fmt::print(stderr, "ssd-sim: cannot start serving\n");
      return exit_code::kIo;
    }
    if (idle_ms_ > 0) idle.start();
    return serve_until_unmounted(session.get(), real_time_ > 0 ? kMaxBackground : kThreads);
  }

  std::string path_;
  std::string mountpoint_;
  bool foreground_ = false;
  bool allow_other_ = false;
  unsigned idle_ms_ = 0;  // 0: never
  double real_time_ = 0;  // 0: as fast as the machine can
};

}  // namespace

std::unique_ptr<Command> make_serve_command(CLI::App& parent) {
  return std::make_unique<ServeCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
