#include "fuse-fs/tools/control_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "base/wire/control.h"

namespace streamfs::tools {

Result<std::string> mount_root(const std::string& path) {
  std::error_code failed;
  std::filesystem::path at = std::filesystem::canonical(path, failed);
  if (failed) return Error{failed.value(), path};
  struct stat here{};
  struct stat above{};
  if (stat(at.c_str(), &here) != 0) return Error{errno, path};
  while (at.has_relative_path() && stat(at.parent_path().c_str(), &above) == 0 &&
         above.st_dev == here.st_dev) {
    at = at.parent_path();
  }
  return at.string();
}

namespace {

// Returns the server's sentence without its end, which Error::message() will add again.
std::string without_reason(const nlohmann::json& refusal) {
  std::string sentence = refusal.value("error", std::string("refused"));
  const std::string reason = ": " + std::generic_category().message(refusal.value("errno", EIO));
  if (sentence.ends_with(reason)) sentence.resize(sentence.size() - reason.size());
  return sentence;
}

}  // namespace

Result<ControlClient> ControlClient::connect(const std::string& path) {
  SFS_ASSIGN(const std::string root, mount_root(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (getxattr(root.c_str(), wire::kControlXattr, address.sun_path, sizeof address.sun_path - 1) <=
      0) {
    return Error{EMEDIUMTYPE, path + " is not on a mounted streamfs; give its mountpoint"};
  }
  ControlClient client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), root);
  if (::connect(client.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error{errno, std::string("control socket ") + address.sun_path};
  }
  return client;
}

ControlClient::ControlClient(ControlClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      mount_(std::move(other.mount_)),
      pending_(std::move(other.pending_)) {}

ControlClient::~ControlClient() {
  if (fd_ >= 0) close(fd_);
}

Result<std::string> ControlClient::read_line() {
  std::array<char, 65536> buffer{};
  for (;;) {
    const size_t end = pending_.find('\n');
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
    if (got <= 0) return hung_up();
    pending_.append(buffer.data(), static_cast<size_t>(got));
  }
}

Result<nlohmann::json> ControlClient::ask(const nlohmann::json& request) {
  const std::string line = request.dump() + "\n";
  const ssize_t sent = send(fd_, line.data(), line.size(), MSG_NOSIGNAL);
  // A server that turns this client away closes the connection, with the reason in it.
  const bool ended = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
  if (!ended && sent != static_cast<ssize_t>(line.size())) return hung_up();
  SFS_ASSIGN(const std::string answer, read_line());
  nlohmann::json body = nlohmann::json::parse(answer, nullptr, false);
  if (!body.is_object() || !body.contains("ok")) return Error{EPROTO, "answer of streamfs"};
  if (!body.value("ok", false)) {
    return Error{body.value("errno", EIO), without_reason(body)};
  }
  body.erase("ok");
  return body;
}

}  // namespace streamfs::tools
