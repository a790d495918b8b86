// A fake filesystem really mounted through the session under test, in a directory of its own.
// Thread safety: one test thread. The destructor unmounts, lazily if it must.
#pragma once

#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "fuse-fs/frontend/session.h"
#include "fuse-fs/frontend/transport.h"
#include "tests/unit/frontend/fake_filesystem.h"

namespace streamfs::frontend {

inline bool can_mount() {
  return geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0;
}

class Mounted {
 public:
  explicit Mounted(Session::Options options = {}) {
    std::string pattern = std::filesystem::temp_directory_path() / "streamfs-frontend.XXXXXX";
    root_ = mkdtemp(pattern.data());
    options.source = "fake";
    options.mountpoint = root_;
    options.transport = Transport::kDev;  // on every machine
    auto opened = Session::mount(fs, system_clock(), options);
    if (!opened) {
      error = opened.error().message();
      return;
    }
    session_ = std::move(opened).value();
    std::promise<void> answers;
    server_ = std::thread(
        [this, &answers] { (void)session_->serve([&answers] { answers.set_value(); }); });
    answers.get_future().wait();
  }
  ~Mounted() {
    if (session_) session_->request_unmount();
    if (server_.joinable()) server_.join();
    session_.reset();
    rmdir(root_.c_str());
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  Session& session() { return *session_; }

  FakeFilesystem fs;
  std::string error;

 private:
  std::string root_;
  std::unique_ptr<Session> session_;
  std::thread server_;
};

}  // namespace streamfs::frontend
