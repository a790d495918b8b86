// The client's end of the control socket, with which streamctl talks to a mounted streamfs.
// Thread safety: one thread at a time uses a client.
#pragma once

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/result.h"

namespace streamfs::tools {

// Returns the mountpoint above a path. Errors: ENOENT.
Result<std::string> mount_root(const std::string& path);

class ControlClient {
 public:
  // Connects to the streamfs that is mounted at (or above) `path`. Errors: ENODATA, it is no
  // streamfs, or has no socket.
  static Result<ControlClient> connect(const std::string& path);
  ~ControlClient();
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&&) = delete;
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // Sends a request. Returns the answer without its "ok". Errors: those that the filesystem gave.
  Result<nlohmann::json> ask(const nlohmann::json& request);

 private:
  ControlClient(int fd, std::string mount) : fd_(fd), mount_(std::move(mount)) {}
  Result<std::string> read_line();
  Error hung_up() const { return {ECONNRESET, "the streamfs at " + mount_ + " hung up"}; }
  int fd_;
  std::string mount_;
  std::string pending_;
};

}  // namespace streamfs::tools
