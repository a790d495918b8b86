// The client's end of the control socket, with which streamctl talks to a mounted streamfs.
// Thread safety: one thread at a time uses a client.
#pragma once

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/result.h"

namespace streamfs::tools {

// Returns the root of the filesystem on which a path lies. Errors: those of realpath(3).
Result<std::string> mount_root(const std::string& path);

class ControlClient {
 public:
  // Connects to the streamfs that is mounted at (or above) `path`. Errors: those of mount_root();
  // EMEDIUMTYPE, it is no streamfs, or has no socket; those of connect(2).
  static Result<ControlClient> connect(const std::string& path);
  ~ControlClient();
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&&) = delete;
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // Sends a request and waits for the answer, which it returns without its "ok". Errors: those that
  // the filesystem gave; ECONNRESET, it hung up; EPROTO, the line is no answer.
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
