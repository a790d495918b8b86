// The other end of the control socket: what streamctl says to a mounted streamfs.
// Thread safety: one thread at a time on a client.
#pragma once

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/result.h"

namespace streamfs::tools {

// The mountpoint above a path. ENOENT.
Result<std::string> mount_root(const std::string& path);

class ControlClient {
 public:
  // To the streamfs mounted at (or above) `path`. ENODATA: not a streamfs, or without a socket.
  static Result<ControlClient> connect(const std::string& path);
  ~ControlClient();
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&&) = delete;
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // The answer without its "ok"; the error the filesystem gave otherwise.
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
