// How many metadata operations a second a mounted filesystem does, one after the other by one
// thread: plain system calls on files of a folder of its own, which is gone afterwards. With the
// server of a FUSE mount named, also the CPU time that all of its threads took for one. Prints one
// line of JSON, by operation: {"per_second", "server_us"}.
//   mount_meter FOLDER --files 10000 --server PID
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/types.h"

namespace {

using streamfs::kBlockSize;

void need(bool done, const char* what) {
  if (done) return;
  fmt::print(stderr, "mount_meter: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

class Fd {
 public:
  Fd(int folder, const char* name, int flags, mode_t mode = 0)
      : fd_(openat(folder, name, flags | O_CLOEXEC, mode)) {
    need(fd_ >= 0, name);
  }
  ~Fd() { close(fd_); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// CPU time of all threads that a process has now, in ns. A thread that ends meanwhile is missed.
uint64_t cpu_ns(pid_t process) {
  uint64_t sum = 0;
  if (process == 0) return sum;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
    uint64_t ran = 0;
    std::ifstream(thread.path() / "schedstat") >> ran;
    sum += ran;
  }
  return sum;
}

class Meter {
 public:
  Meter(const std::string& folder, int files, pid_t server)
      : files_(files), server_(server), folder_(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY) {}

  nlohmann::json run() {
    time("create", [&](int i) { Fd(at(), name("f", i), O_WRONLY | O_CREAT | O_EXCL, 0644); });
    time("stat", [&](int i) { look_at(name("f", i)); });
    time("negative lookup", [&](int i) {
      struct stat found{};
      need(fstatat(at(), name("none", i), &found, 0) != 0 && errno == ENOENT, "a name that is not");
    });
    fill();
    time("open, read 4 KiB", [&](int i) {
      const Fd file(at(), name("f", i), O_RDONLY);
      need(read(file.get(), page_.data(), page_.size()) == kBlockSize, "read");
    });
    time("chmod", [&](int i) { need(fchmodat(at(), name("f", i), 0600, 0) == 0, "chmod"); });
    time("rename", [&](int i) {
      const std::string from = name("f", i);
      need(renameat(at(), from.c_str(), at(), name("g", i)) == 0, "rename");
    });
    time("mkdir", [&](int i) { need(mkdirat(at(), name("d", i), 0755) == 0, "mkdir"); });
    measure("readdir and stat", [&] { return list(); });
    time("unlink", [&](int i) { need(unlinkat(at(), name("g", i), 0) == 0, "unlink"); });
    time("rmdir", [&](int i) { need(unlinkat(at(), name("d", i), AT_REMOVEDIR) == 0, "rmdir"); });
    return found_;
  }

 private:
  int at() const { return folder_.get(); }

  const char* name(const char* kind, int i) {
    name_ = fmt::format("{}{:07}", kind, i);
    return name_.c_str();
  }

  void look_at(const char* name) const {
    struct stat found{};
    need(fstatat(at(), name, &found, AT_SYMLINK_NOFOLLOW) == 0, "stat");
  }

  // Contents, written back before the clock starts again.
  void fill() {
    for (int i = 0; i < files_; ++i) {
      const Fd file(at(), name("f", i), O_WRONLY);
      need(write(file.get(), page_.data(), page_.size()) == kBlockSize, "write");
    }
    need(syncfs(at()) == 0, "syncfs");
  }

  int list() const {
    DIR* directory = fdopendir(openat(at(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    need(directory != nullptr, "opendir");
    int entries = 0;
    for (const dirent* each = readdir(directory); each != nullptr; each = readdir(directory)) {
      look_at(each->d_name);
      ++entries;
    }
    closedir(directory);
    return entries;
  }

  void time(const char* what, const std::function<void(int)>& once) {
    measure(what, [&] {
      for (int i = 0; i < files_; ++i) once(i);
      return files_;
    });
  }

  void measure(const char* what, const std::function<int()>& work) {
    const uint64_t cpu = cpu_ns(server_);
    const auto begin = std::chrono::steady_clock::now();
    const int done = work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    found_[what]["per_second"] = done / took.count();
    if (server_ == 0) return;
    found_[what]["server_us"] = static_cast<double>(cpu_ns(server_) - cpu) / 1000 / done;
  }

  int files_;
  pid_t server_;  // 0: none
  Fd folder_;
  std::string name_;
  std::array<char, kBlockSize> page_{};
  nlohmann::json found_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Metadata operations a second on a mounted filesystem.", "mount_meter");
  std::string folder;
  int files = 10'000;
  app.add_option("FOLDER", folder, "on the filesystem to be measured")->required();
  app.add_option("--files", files, "how many")->check(CLI::PositiveNumber);
  pid_t server = 0;
  app.add_option("--server", server, "process that serves the mount")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  std::string own = folder + "/meter.XXXXXX";
  need(mkdtemp(own.data()) != nullptr, "mkdtemp");
  const nlohmann::json found = Meter(own, files, server).run();
  need(rmdir(own.c_str()) == 0, "rmdir");
  fmt::print("{}\n", found.dump());
}
