// The control socket as streamctl and the daemon meet it, and who gets in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fuse-fs/frontend/control_places.h"
#include "fuse-fs/frontend/control_server.h"
#include "fuse-fs/frontend/meters.h"
#include "tests/unit/frontend/fake_filesystem.h"
#include "tests/unit/frontend/savings_report.h"

namespace streamfs::frontend {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr uid_t kOther = 4711;

class ControlSocket : public ::testing::Test {
 protected:
  ControlSocket() {
    std::string pattern = std::filesystem::temp_directory_path() / "streamfs-control.XXXXXX";
    folder_ = mkdtemp(pattern.data());
    auto opened = ControlServer::open(fs_, meters_, folder_ + "/made/here.sock");
    EXPECT_TRUE(opened.ok());
    server_ = std::move(opened).value();
  }
  ~ControlSocket() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  FakeFilesystem fs_;
  Meters meters_;
  std::string folder_;
  std::unique_ptr<ControlServer> server_;
};

class Client {
 public:
  explicit Client(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() {
    close(fd_);
    for (const int fd : fds) close(fd);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  bool connected() const { return connected_; }
  void say(const std::string& text) const {
    (void)!send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Returns a line, or the bytes before the end.
  std::string hear() {
    std::string line;
    char byte = 0;
    while (receive(byte) && byte != '\n') line.push_back(byte);
    return line;
  }
  json ask(const std::string& text) {
    say(text + "\n");
    return json::parse(hear(), nullptr, false);
  }
  std::vector<int> fds;

 private:
  bool receive(char& byte) {
    alignas(cmsghdr) char room[CMSG_SPACE(4 * sizeof(int))] = {};
    iovec into{&byte, 1};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    if (recvmsg(fd_, &message, 0) != 1) return false;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
      fds.resize((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      std::memcpy(fds.data(), CMSG_DATA(header), fds.size() * sizeof(int));
    }
    return true;
  }
  int fd_;
  bool connected_ = false;
};

TEST_F(ControlSocket, RequestsAreAnsweredInOrderHoweverTheyArrive) {
  Client client(server_->path());
  client.say("{\"op\": \"sync\"}\n{\"op\": ");
  EXPECT_THAT(client.hear(), HasSubstr("\"ok\":true"));
  client.say("\"dance\"}\n{\"op\": \"streams\"}\n");
  EXPECT_THAT(client.hear(), HasSubstr("dance"));
  EXPECT_THAT(client.hear(), HasSubstr("wal"));
}

TEST_F(ControlSocket, AttachHandsOverBothMemories) {
  Client client(server_->path());
  const json answer = client.ask(R"({"op": "attach"})");
  EXPECT_EQ(answer.at("telemetry_bytes"), 64);
  EXPECT_EQ(answer.at("model_bytes"), 128);
  EXPECT_TRUE(answer.at("device").at("gc_mode").is_null()) << "a file does not tell";
  EXPECT_TRUE(answer.at("device").at("victim").is_null());
  EXPECT_TRUE(answer.at("device").at("spare").is_null());
  ASSERT_EQ(client.fds.size(), 2U);
  char first = 0;
  char second = 0;
  EXPECT_EQ(pread(client.fds[0], &first, 1, 0), 1);
  EXPECT_EQ(pread(client.fds[1], &second, 1, 0), 1);
  EXPECT_EQ(first, 'T');
  EXPECT_EQ(second, 'M');
}

TEST_F(ControlSocket, OneDaemonAtATimeUntilItHangsUp) {
  auto first = std::make_unique<Client>(server_->path());
  Client second(server_->path());
  EXPECT_EQ(first->ask(R"({"op": "attach"})").at("ok"), true);
  EXPECT_EQ(second.ask(R"({"op": "attach"})").at("errno"), EBUSY);
  EXPECT_EQ(second.ask(R"({"op": "status"})").at("ok"), true);
  first.reset();
  json answer = json::object();
  for (int i = 0; i < 200 && answer.value("ok", false) == false; ++i) {
    answer = second.ask(R"({"op": "attach"})");
    if (!answer.value("ok", false)) usleep(5000);
  }
  EXPECT_EQ(answer.at("ok"), true);
}

TEST_F(ControlSocket, TheDaemonIsTheConnectionThatAttached) {
  Client daemon(server_->path());
  const std::string line = json({{"op", "savings"}, {"report", savings_report()}}).dump();
  EXPECT_EQ(daemon.ask(line).at("errno"), EACCES);
  EXPECT_EQ(daemon.ask(R"({"op": "attach"})").at("ok"), true);
  EXPECT_EQ(daemon.ask(line).at("ok"), true);
  EXPECT_EQ(Client(server_->path()).ask(line).at("errno"), EACCES);
}

// Connects as another user. Only this thread becomes that user, and only until the call returns.
std::unique_ptr<Client> connected_as(uid_t uid, const std::string& path) {
  std::unique_ptr<Client> client;
  std::thread([&] {
    if (syscall(SYS_setresuid, -1, uid, -1) == 0) client = std::make_unique<Client>(path);
  }).join();
  return client;
}

TEST_F(ControlSocket, WhoeverHoldsAllItMayShutsOutNobodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be several users";
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  std::vector<std::unique_ptr<Client>> held;
  for (int i = 0; i < 40; ++i) {
    held.push_back(connected_as(kOther, server_->path()));
    ASSERT_TRUE(held.back() != nullptr && held.back()->connected());
  }
  EXPECT_EQ(held.at(7)->ask(R"({"op": "status"})").at("ok"), true);
  const json turned_away = held.at(8)->ask(R"({"op": "status"})");
  EXPECT_EQ(turned_away.at("ok"), false);
  EXPECT_EQ(turned_away.at("errno"), EUSERS);
  EXPECT_THAT(turned_away.at("error").get<std::string>(), HasSubstr("user 4711 holds 8"));
  EXPECT_EQ(Client(server_->path()).ask(R"({"op": "sync"})").at("ok"), true) << "root";
  EXPECT_EQ(connected_as(4712, server_->path())->ask(R"({"op": "status"})").at("ok"), true);
  held.clear();
  json answer = json::object();
  for (int i = 0; i < 200 && !answer.value("ok", false); ++i) {
    answer = connected_as(kOther, server_->path())->ask(R"({"op": "status"})");
    if (!answer.value("ok", false)) usleep(5000);
  }
  EXPECT_EQ(answer.at("ok"), true) << "places that were given back";
}

TEST(ControlPlaces, ManyUsersTogetherLeaveSomeToTheDaemonRootAndWhoMounted) {
  constexpr uid_t kOwner = 1000, kDaemon = 300;
  ControlPlaces places(kOwner, kDaemon);
  const auto takes = [&](uid_t uid) {
    size_t count = 0;
    while (count < 100 && places.take(uid).ok()) ++count;
    return count;
  };
  EXPECT_EQ(takes(kOther), ControlPlaces::kOfOneUser);
  EXPECT_EQ(takes(kOther + 1), ControlPlaces::kOfOneUser);
  EXPECT_EQ(takes(kOther + 2), 0U);
  EXPECT_EQ(takes(kDaemon), ControlPlaces::kOfOneUser);
  EXPECT_EQ(takes(kOwner), ControlPlaces::kOfOwner);
  EXPECT_EQ(takes(0), 8U) << "all that is left";
  places.give_back(kDaemon);
  EXPECT_EQ(takes(kOther + 2), 0U);
  EXPECT_EQ(takes(0), 1U);
}

TEST_F(ControlSocket, NamesThatAreNoTextDoNotSpoilAnAnswer) {
  Client client(server_->path());
  const json answer = client.ask(R"({"op": "streams"})");
  EXPECT_THAT(answer.at("streams").at(0).at("dir").get<std::string>(), HasSubstr("caf"));
}

TEST_F(ControlSocket, ARequestWithoutEndIsCutOff) {
  Client client(server_->path());
  const std::string endless(200 * 1024, 'x');
  client.say(endless);
  EXPECT_EQ(client.hear(), "");
  Client next(server_->path());
  EXPECT_EQ(next.ask(R"({"op": "status"})").at("ok"), true);
}

TEST_F(ControlSocket, TheNextMountReplacesASocketLeftBehind) {
  const std::string path = folder_ + "/left.sock";
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(left, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(left);
  const auto server = ControlServer::open(fs_, meters_, path);
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(Client(path).ask(R"({"op": "status"})").at("ok"), true);
}

TEST_F(ControlSocket, WhereOthersCouldReplaceItThereIsNone) {
  const std::string folder = folder_ + "/shared";
  mkdir(folder.c_str(), 0);
  for (const mode_t mode : {0777U, 0775U}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_TRUE(ControlServer::open(fs_, meters_, folder + "/here.sock").ok());
    struct stat narrowed{};
    ASSERT_EQ(stat(folder.c_str(), &narrowed), 0);
    EXPECT_EQ(narrowed.st_mode & 0777U, 0755U) << "ours, so it is mended";
  }
  std::filesystem::create_symlink(folder, folder_ + "/link");
  EXPECT_FALSE(ControlServer::open(fs_, meters_, folder_ + "/link/here.sock").ok());
  EXPECT_TRUE(ControlServer::open(fs_, meters_, folder + "/here.sock").ok());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(folder.c_str(), kOther, 0), 0);
  const auto opened = ControlServer::open(fs_, meters_, folder + "/here.sock");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, EPERM);
  EXPECT_FALSE(std::filesystem::exists(folder + "/here.sock"));
}

TEST_F(ControlSocket, ADirectoryIsMadeForItsOwnerWhateverTheUmask) {
  const mode_t before = umask(0);
  const auto opened = ControlServer::open(fs_, meters_, folder_ + "/fresh/here.sock");
  umask(before);
  EXPECT_TRUE(opened.ok());
}

TEST_F(ControlSocket, EndingItHangsUpOnEveryoneAndTakesTheSocketAway) {
  Client client(server_->path());
  EXPECT_EQ(client.ask(R"({"op": "status"})").at("ok"), true);
  const std::string path = server_->path();
  server_.reset();
  EXPECT_EQ(client.hear(), "");
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace streamfs::frontend
