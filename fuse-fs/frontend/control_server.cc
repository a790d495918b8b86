#include "fuse-fs/frontend/control_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/wire/control.h"
#include "fuse-fs/frontend/control_places.h"
#include "fuse-fs/frontend/control_requests.h"

namespace streamfs::frontend {
namespace {

constexpr size_t kFdsMax = 4;

uid_t peer_uid(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  return known ? peer.uid : static_cast<uid_t>(-1);
}

void attach_fds(msghdr& message, std::span<std::byte> room, const std::vector<int>& fds) {
  const size_t bytes = fds.size() * sizeof(int);
  message.msg_control = room.data();
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), fds.data(), bytes);
}

// The descriptors travel with the first byte.
bool send_line(int fd, const std::string& line, const std::vector<int>& fds) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kFdsMax * sizeof(int))> room{};
  for (size_t sent = 0; sent < line.size();) {
    iovec rest{const_cast<char*>(line.data()) + sent, line.size() - sent};
    msghdr message{};
    message.msg_iov = &rest;
    message.msg_iovlen = 1;
    if (sent == 0 && !fds.empty()) attach_fds(message, room, fds);
    const ssize_t now = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

// Makes the socket's directory. Errors: EPERM, other users may change it, so they could replace the
// socket by their own. A directory of this user that a wide umask has opened is narrowed.
Result<void> make_directory(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory.parent_path(), failed);
  if (failed) return Error{failed.value(), directory.string()};
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
    return Error{errno, directory.string()};
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return Error{errno, directory.string()};
  struct stat found{};
  bool known = fstat(fd, &found) == 0;
  if (known && found.st_uid == geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    known = fchmod(fd, 0755) == 0 && fstat(fd, &found) == 0;
  close(fd);
  const bool ours = known && (found.st_uid == 0 || found.st_uid == geteuid());
  if (ours && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return Error{EPERM, directory.string() + " can be changed by other users"};
}

// Names of files and threads need not be UTF-8, but an answer must be.
std::string text_of(const ControlAnswer& answer) {
  return answer.body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string control_directory() {
  if (geteuid() == 0) return "/run/streamfs";
  const char* runtime = secure_getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return std::string(runtime) + "/streamfs";
  return fmt::format("/tmp/streamfs-{}", geteuid());
}

Result<std::unique_ptr<ControlServer>> ControlServer::open(data::Filesystem& fs, Meters& meters,
                                                           std::string path) {
  std::unique_ptr<ControlServer> server(new ControlServer(fs, meters, std::move(path)));
  SFS_TRY(server->listen());
  server->acceptor_ = std::thread([raw = server.get()] { raw->accept_all(); });
  return server;
}

Result<void> ControlServer::listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) return Error{ENAMETOOLONG, path_};
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  SFS_TRY(make_directory(std::filesystem::path(path_).parent_path()));
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0) return Error{errno, "control socket"};
  unlink(path_.c_str());  // The lock on META says that no other mount of it is alive.
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path_.c_str(), 0666) != 0 || ::listen(listener_, 8) != 0) {
    return Error{errno, path_};
  }
  return {};
}

ControlServer::~ControlServer() {
  if (listener_ >= 0) {
    shutdown(listener_, SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    close(listener_);
    unlink(path_.c_str());
  }
  {
    const MutexLock lock(mutex_);
    for (Connection& each : connections_) {
      if (!each.ended) shutdown(each.fd, SHUT_RDWR);
    }
  }
  // The acceptor has ended, so the list does not change any more.
  for (Connection& each : connections_) each.thread.join();
  for (const Connection& each : connections_) close(each.fd);
}

void ControlServer::sweep() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (!it->ended) {
      ++it;
      continue;
    }
    it->thread.join();
    close(it->fd);
    places_.give_back(it->uid);
    it = connections_.erase(it);
  }
}

void ControlServer::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) return;
    const MutexLock lock(mutex_);
    sweep();
    admit(fd);
  }
}

void ControlServer::refuse(int fd, const Error& why) {
  // The socket's buffer is empty, so this thread does not wait for the peer.
  send_line(fd, text_of(refusal(why)), {});
  close(fd);
}

void ControlServer::admit(int fd) {
  const uid_t uid = peer_uid(fd);
  if (const Result<void> place = places_.take(uid); !place) return refuse(fd, place.error());
  Connection& connection = connections_.emplace_back();
  connection.fd = fd;
  connection.uid = uid;
  try {
    connection.thread = std::thread([this, &connection] { talk(connection); });
  } catch (const std::system_error&) {
    connections_.pop_back();
    places_.give_back(uid);
    refuse(fd, Error{EAGAIN, "the mount cannot start a thread for this command"});
  }
}

void ControlServer::talk(Connection& connection) {
  std::string pending;
  std::array<char, 4096> buffer{};
  for (bool going = true; going;) {
    const ssize_t got = recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) break;
    pending.append(buffer.data(), static_cast<size_t>(got));
    for (size_t end = 0; going && (end = pending.find('\n')) != std::string::npos;) {
      going = reply_to(connection, pending.substr(0, end));
      pending.erase(0, end + 1);
    }
    if (pending.size() > wire::kControlRequestMax) going = false;
  }
  const Connection* self = &connection;
  daemon_.compare_exchange_strong(self, nullptr);
  shutdown(connection.fd, SHUT_RDWR);  // The peer sees the end now, not at the next sweep.
  connection.ended = true;
}

bool ControlServer::reply_to(Connection& connection, const std::string& line) {
  const ControlPeer peer{connection.uid,
                         [this, &connection] {
                           const Connection* nobody = nullptr;
                           return daemon_.compare_exchange_strong(nobody, &connection);
                         },
                         [this, &connection] { return daemon_ == &connection; }};
  const ControlAnswer answer = answer_control(fs_, meters_, peer, line);
  return send_line(connection.fd, text_of(answer), answer.fds);
}

}  // namespace streamfs::frontend
