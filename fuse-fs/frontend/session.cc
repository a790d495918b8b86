#include "fuse-fs/frontend/session.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/holder.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/frontend/connection.h"
#include "fuse-fs/frontend/fuse_log.h"
#include "fuse-fs/frontend/kernel_tuning.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/patience.h"
#include "fuse-fs/frontend/transport.h"

namespace streamfs::frontend {
namespace {

constexpr int kBusyTries = 20;
constexpr auto kBusyPause = std::chrono::milliseconds(100);
constexpr auto kQuietPause = std::chrono::milliseconds(50);
constexpr int kQuietPolls = 6, kMaxPolls = 200, kEndPolls = 20;

class Arguments {
 public:
  Arguments() { add("streamfs"); }
  ~Arguments() { fuse_opt_free_args(&args_); }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  void add(const std::string& argument) { fuse_opt_add_arg(&args_, argument.c_str()); }
  void option(const std::string& value) { add("-o"), add(value); }
  fuse_args* get() { return &args_; }

 private:
  fuse_args args_ = FUSE_ARGS_INIT(0, nullptr);
};

// Escapes commas, at which libfuse splits options.
std::string escaped(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == ',' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

void fill(Arguments& arguments, const Session::Options& options, const TransportChoice& transport) {
  arguments.option("subtype=streamfs");
  arguments.option("fsname=" + escaped(options.source));
  arguments.option("default_permissions");
  arguments.option("noatime");  // as it is: kernel FUSE leaves access times to the server
  if (options.allow_other) arguments.option("allow_other");
  // The kernel's defaults for a mount by root; libfuse begins with nosuid and nodev. The last
  // option of a kind counts. For other users fusermount3 sets nosuid and nodev.
  if (geteuid() == 0) arguments.option("suid,dev");
  for (const std::string& each : options.mount_options) arguments.option(each);
  if (transport.io_uring)
    arguments.option("io_uring,io_uring_q_depth=" + std::to_string(transport.entries));
  if (options.debug) arguments.add("-d");
}

}  // namespace

namespace {

// Returns whether a filesystem is mounted there. An automount's own mount does not count, because
// it is there to be mounted over.
bool is_mount_root(const std::string& directory, const struct stat& found) {
  struct stat above{};
  struct statfs kind{};
  if (stat((directory + "/..").c_str(), &above) != 0 || above.st_dev == found.st_dev) return false;
  return statfs(directory.c_str(), &kind) == 0 && kind.f_type != AUTOFS_SUPER_MAGIC;
}

bool has_content(const std::string& directory) {
  std::error_code unreadable;  // the kernel decides about a directory that cannot be read
  const std::filesystem::directory_iterator first(directory, unreadable);
  return !unreadable && first != std::filesystem::directory_iterator();
}

Result<void> check_hides_nothing(const std::string& mountpoint, const struct stat& found) {
  const char* what = is_mount_root(mountpoint, found) ? "is a mountpoint already"
                     : has_content(mountpoint)        ? "is not empty"
                                                      : nullptr;
  if (what == nullptr) return {};
  return Error{ENOTEMPTY, mountpoint + " " + what + "; -o nonempty mounts over it"};
}

}  // namespace

Result<void> check_mountpoint(const std::string& mountpoint, bool nonempty) {
  struct stat found{};
  if (stat(mountpoint.c_str(), &found) != 0) {
    if (errno == ENOTCONN) {
      return Error{ENOTCONN, mountpoint + " is a dead mount: run `fusermount3 -u -z " + mountpoint +
                                 "` and try again"};
    }
    return Error{errno, "mountpoint " + mountpoint};
  }
  if (!S_ISDIR(found.st_mode)) return Error{ENOTDIR, "mountpoint " + mountpoint};
  if (!nonempty) SFS_TRY(check_hides_nothing(mountpoint, found));
  if (access("/dev/fuse", F_OK) != 0) {
    return Error{ENODEV,
                 "/dev/fuse is missing: run `modprobe fuse`, or give the container the "
                 "device"};
  }
  return {};
}

namespace {

// Unmounts with fusermount3, as users without privileges do.
bool run_fusermount(const std::string& mountpoint, bool lazily) {
  std::vector<const char*> command = {"fusermount3", "-u", "-q"};
  if (lazily) command.push_back("-z");
  command.insert(command.end(), {"--", mountpoint.c_str(), nullptr});
  pid_t child = 0;
  int status = 0;
  return posix_spawnp(&child, command[0], nullptr, nullptr, const_cast<char**>(command.data()),
                      environ) == 0 &&
         waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Makes the kernel write dirty pages back. Since 6.16 the kernel's syncfs starts FUSE's write-back
// without waiting for it, so this waits until no WRITE has come for a while.
void write_back(const std::string& mountpoint, data::Filesystem& fs) {
  const int fd = open(mountpoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  syncfs(fd);
  close(fd);
  uint64_t seen = UINT64_MAX;
  for (int quiet = 0, polls = 0; quiet < kQuietPolls && polls < kMaxPolls; ++polls) {
    const auto status = fs.status();
    const uint64_t written = status ? status->app_bytes : seen;
    quiet = written == seen ? quiet + 1 : 0;
    seen = written;
    std::this_thread::sleep_for(kQuietPause);
  }
}

}  // namespace

namespace {

// Returns the error of a failed mount. errno is libfuse's own and says nothing about fusermount3,
// which mounts for ordinary users.
int mount_error(int code, const std::string& said) {
  if (geteuid() == 0 || code == EINVAL) return code;
  return said.find("exec fusermount") != std::string::npos ? ENODEV : EPERM;
}

}  // namespace

Session::Session(data::Filesystem& fs, Clock& clock, Options options)
    : options_(std::move(options)), context_(fs, clock, options_.context) {
  context_.on_init = [this](fuse_conn_info* connection) { set_up(connection); };
  fs.on_shut_down([this](InodeId id) {
    fuse_lowlevel_notify_inval_inode(session_, context_.number(id), 0, 0);
  });
  context_.push_dirty = [this](InodeId id) {
    const InHand::Elsewhere waiting;  // for the kernel's WRITEs
    return context_.dispatcher.push(
        [this, id] { fuse_lowlevel_notify_inval_inode(session_, context_.number(id), 0, 0); });
  };
}

Result<std::unique_ptr<Session>> Session::mount(data::Filesystem& fs, Clock& clock,
                                                const Options& options) {
  SFS_TRY(check_mountpoint(options.mountpoint, options.nonempty));
  SFS_ASSIGN(TransportChoice transport, choose_transport(options.transport, options.enable_uring));
  std::unique_ptr<Session> session(new Session(fs, clock, options));
  session->transport_ = std::move(transport);
  begin_capture();
  const Result<void> opened = session->open();
  const std::string said = end_capture();
  if (opened) return session;
  const Error& failure = opened.error();
  return Error{mount_error(failure.code, said), said.empty() ? failure.context : said};
}

Result<void> Session::open() {
  Arguments arguments;
  fill(arguments, options_, transport_);
  const fuse_lowlevel_ops ops = operations(options_.context.direct_io);
  session_ = fuse_session_new(arguments.get(), &ops, sizeof ops, &context_);
  if (session_ == nullptr) return Error{EINVAL, "mount options"};
  errno = 0;
  if (fuse_session_mount(session_, options_.mountpoint.c_str()) != 0) {
    return Error{errno == 0 ? EPERM : errno, "mounting at " + options_.mountpoint};
  }
  mounted_ = true;
  connection_ = connection_of(options_.mountpoint);
  guard();
  return {};
}

void Session::guard() const {
  if (options_.guard == nullptr) return;
  if (const Result<void> guarded = options_.guard->watch(connection_); !guarded)
    spdlog::info(
        "{0}: no connection guard: {1}; if streamfs is killed and programs hang, run "
        "`umount -f {0}`",
        options_.mountpoint, guarded.error().message());
}

Session::~Session() {
  context_.fs().on_shut_down({});
  if (session_ == nullptr) return;
  if (mounted_) fuse_session_unmount(session_);
  context_.dispatcher.finish();  // answers lie in buffers of the session
  fuse_session_destroy(session_);
}

Wakes Session::wakes() {
  const Result<data::Status> now = context_.fs().status();
  return now && now->device_info.in_process ? Wakes::kSameCpu : Wakes::kAnyCpu;
}

void Session::set_up(fuse_conn_info* connection) {
  choose_features(connection, options_.context.direct_io);
  context_.acls = offers_acls(connection);
  context_.kernel_keeps_times = !options_.context.direct_io && offers_writeback(connection);
  if (!transport_.io_uring) refuse_io_uring(connection);
  if (transport_.io_uring) context_.dispatcher.expect_rings(transport_.entries, wakes());
  kernel_ = connection;
}

// libfuse starts its rings after INIT's handler has returned.
Result<void> Session::confirm_transport() {
  if (transport_.io_uring && !has_io_uring(kernel_)) {
    SFS_ASSIGN(transport_, without_rings(options_.transport));
  }
  context_.fs().served_by(to_string(transport_), transport_.why);
  return {};
}

void Session::announce(const std::function<void()>& ready) {
  struct statvfs answer{};
  struct stat root{};
  if (statvfs(options_.mountpoint.c_str(), &answer) != 0 ||
      stat(options_.mountpoint.c_str(), &root) != 0) {
    return;  // serve() says why
  }
  if (const Result<void> confirmed = confirm_transport(); !confirmed) {
    refused_ = confirmed.error();
    fuse_session_exit(session_);
    return;
  }
  raise_limits(root.st_dev, options_.io_flusher);
  if (context_.kernel_keeps_times) watch_free_space(root.st_dev);
  ready();
}

void Session::watch_free_space(dev_t device) {
  context_.full_disk.start({
      .free_bytes = [this] { return context_.fs().space().free_blocks * kBlockSize; },
      .limit_dirty =
          [this, device](std::optional<uint64_t> bytes) {
            limit_dirty(device, bytes, options_.io_flusher);
          },
      .expire_attributes =
          [this](InodeId id) {
            fuse_lowlevel_notify_inval_inode(session_, context_.number(id), -1, 0);
          },
  });
}

void Session::give_up() const {
  spdlog::error("no answer for {} s: {} ends here. What was durable is; unmount and mount again",
                options_.request_timeout_s, options_.mountpoint);
  if (const auto done = end_connection(connection_); !done)
    spdlog::error("the kernel does not end {}: {}", options_.mountpoint, done.error().message());
}

Result<void> Session::serve(const std::function<void()>& ready) {
  std::optional<Patience> patience;
  if (options_.request_timeout_s > 0)
    patience.emplace(
        context_.in_hand,
        Patience::Limit{std::chrono::seconds(options_.request_timeout_s), [this] { give_up(); }});
  std::thread announcer([this, &ready] { announce(ready); });
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, options_.threads);
  const int result = fuse_session_loop_mt(session_, config);
  {
    const MutexLock lock(telling_);
    ended_ = true;
  }
  fuse_loop_cfg_destroy(config);
  announcer.join();
  context_.fs().on_shut_down({});  // before the connection's descriptor is closed
  // No thread answers any more. Closing the connection ends the requests that still wait.
  fuse_session_unmount(session_);
  mounted_ = false;
  context_.full_disk.stop();
  if (refused_) return *refused_;
  if (result < 0) return Error{-result, "serving " + options_.mountpoint};
  return {};
}

bool Session::try_unmount(bool lazily) const {
  if (geteuid() != 0) return run_fusermount(options_.mountpoint, lazily);
  // MNT_FORCE fails requests that come later; requests in flight have been answered by then.
  const int flags = lazily ? MNT_DETACH | MNT_FORCE : 0;
  return umount2(options_.mountpoint.c_str(), flags) == 0 || errno == EINVAL;
}

// Returns whether the connection goes on after an unmount, which ends it at once unless something
// else holds the mount.
bool Session::goes_on() const {
  for (int polls = 0; polls < kEndPolls; ++polls) {
    if (ended_ || !is_connected(connection_)) return false;
    std::this_thread::sleep_for(kQuietPause);
  }
  return !ended_;
}

// No path leads to the mount, so the dirty pages are pushed inode by inode.
void Session::end_detached() {
  if (!goes_on()) return;
  const std::string holder = mount_holder(connection_);
  spdlog::warn("{} is detached here and still held by {}: ending the connection",
               options_.mountpoint, holder.empty() ? "an open file" : holder);
  for (const InodeId id : context_.fs().known_to_kernel()) {
    const MutexLock lock(telling_);
    if (ended_) return;
    context_.push_dirty(id);
  }
  if (const auto done = end_connection(connection_); !done)
    spdlog::error("the kernel does not end {}: {}", options_.mountpoint, done.error().message());
  fuse_session_exit(session_);
}

void Session::request_unmount() {
  for (int tried = 0; tried < kBusyTries; ++tried) {
    if (try_unmount(false)) return end_detached();
    std::this_thread::sleep_for(kBusyPause);
  }
  spdlog::warn("{} is still in use: writing back what is dirty and going away all the same",
               options_.mountpoint);
  write_back(options_.mountpoint, context_.fs());
  try_unmount(true);
  end_detached();
  fuse_session_exit(session_);
}

}  // namespace streamfs::frontend
