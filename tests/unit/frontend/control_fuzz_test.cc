// Requests that nobody would send: drawn from a grammar, damaged, and sent by strangers, by root
// and over a socket. None ends the process, none grows it, and no stranger changes anything.
// STREAMFS_LONG: ten million of them; else as many as take seconds. The seed is printed.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/process_memory.h"
#include "base/wire/control.h"
#include "fuse-fs/frontend/control_requests.h"
#include "fuse-fs/frontend/control_server.h"
#include "fuse-fs/frontend/meters.h"
#include "tests/unit/frontend/fake_filesystem.h"

namespace streamfs::frontend {
namespace {

constexpr uid_t kFuzzStranger = 4711;
constexpr uint64_t kGrownMost = 8 << 20;  // memory that an allocator may keep
constexpr uint64_t kSeed = 20261124;

uint64_t requests_of(uint64_t quick, uint64_t all) {
  return std::getenv("STREAMFS_LONG") != nullptr ? all : quick;
}

class Requests {
 public:
  explicit Requests(uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string line = draw(8) == 0 ? noise() : object();
    for (uint64_t damages = draw(4) == 0 ? draw(4) : 0; damages > 0; --damages) damage(line);
    std::ranges::replace(line, '\n', ' ');
    return line;
  }
  uint64_t draw(uint64_t below) { return random_() % below; }

 private:
  template <size_t N>
  std::string_view one_of(const std::array<std::string_view, N>& words) {
    return words[draw(N)];
  }
  std::string object() {
    static constexpr std::array<std::string_view, 16> kOps = {
        "status",  "streams", "block",    "attach",           "sync", "record", "scrub",
        "grow",    "trim",    "maintain", "prepare_poweroff", "",     "dance",  "savings",
        "metrics", "shutdown"};
    static constexpr std::array<std::string_view, 12> kKeys = {
        "path", "stop",  "action", "meta_size", "dry_run", "ms",
        "from", "block", "op",     "report",    "",        "\\u0000"};
    std::string text = draw(16) == 0 ? "{" : "{\"op\": \"" + std::string(one_of(kOps)) + "\"";
    for (uint64_t fields = draw(4); fields > 0; --fields) {
      if (text.size() > 1) text += ", ";
      text += "\"" + std::string(one_of(kKeys)) + "\": " + value(0);
    }
    return text + "}";
  }
  std::string value(int depth) {
    static constexpr std::array<std::string_view, 22> kValues = {"0",
                                                                 "1",
                                                                 "-1",
                                                                 "18446744073709551615",
                                                                 "18446744073709551616",
                                                                 "1e308",
                                                                 "1e999",
                                                                 "-0.0",
                                                                 "7.5",
                                                                 "true",
                                                                 "false",
                                                                 "null",
                                                                 "\"\"",
                                                                 "\"/x\"",
                                                                 "\"relative\"",
                                                                 "\"stop\"",
                                                                 "\"start\"",
                                                                 "\"status\"",
                                                                 "\"\\ud800\"",
                                                                 "\"\\u0000\"",
                                                                 "\"/refuse\"",
                                                                 "\"\xff\xfe\""};
    if (depth < 3 && draw(12) == 0) return "[" + value(depth + 1) + ", " + value(depth + 1) + "]";
    if (depth < 3 && draw(12) == 0) return "{\"op\": " + value(depth + 1) + "}";
    if (draw(200) == 0) return "\"" + std::string(draw(5000), 'x') + "\"";
    if (draw(400) == 0) return std::string(draw(wire::kControlRequestMax / 2), '[');
    return std::string(one_of(kValues));
  }
  std::string noise() {
    std::string bytes(draw(64), '\0');
    for (char& each : bytes) each = static_cast<char>(draw(256));
    return bytes;
  }
  void damage(std::string& line) {
    if (line.empty()) return;
    const size_t at = draw(line.size());
    switch (draw(4)) {
      case 0:
        line[at] = static_cast<char>(draw(256));
        break;
      case 1:
        line.erase(at, 1 + draw(4));
        break;
      case 2:
        line.insert(at, line.substr(draw(line.size()), draw(8)));
        break;
      default:
        line.resize(at);
    }
  }
  std::mt19937_64 random_;
};

// Expects flat memory after a first part, in which everything is allocated once.
class FlatMemory {
 public:
  void begin() { begun_ = process_memory().anonymous_bytes; }
  void expect_flat() const {
    if (kSanitized) return;  // their shadows and quarantines grow
    EXPECT_LE(process_memory().anonymous_bytes, begun_ + kGrownMost);
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kSanitized = true;
#elif defined(__has_feature)
  static constexpr bool kSanitized =
      __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
  static constexpr bool kSanitized = false;
#endif
  uint64_t begun_ = 0;
};

TEST(ControlFuzz, NoRequestEndsTheProcessGrowsItOrGivesAStrangerAnything) {
  const uint64_t wanted = requests_of(100'000, 10'000'000);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  FakeFilesystem fs;
  Meters meters;
  Requests requests(kSeed);
  FlatMemory memory;
  uint64_t done = 0, refused = 0, fds = 0;
  for (uint64_t i = 0; i < wanted; ++i) {
    if (i == wanted / 10) memory.begin();
    const std::string line = requests.next();
    const ControlAnswer answer =
        answer_control(fs, meters, {kFuzzStranger, [] { return true; }}, line);
    ASSERT_TRUE(answer.body.is_object() && answer.body.contains("ok")) << line;
    ++(answer.body["ok"] == true ? done : refused);
    fds += answer.fds.size();
    ASSERT_FALSE(
        answer.body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).empty());
  }
  memory.expect_flat();
  EXPECT_GT(done, wanted / 100) << "what is sent should not be nonsense only";
  EXPECT_GT(refused, wanted / 100);
  EXPECT_EQ(fds, 0u);
  EXPECT_EQ(fs.syncs + fs.scrubs_started + fs.scrubs_stopped, 0);
  EXPECT_FALSE(fs.maintained_ms || fs.prepared_ms || fs.grown_with.meta_bytes);
  EXPECT_FALSE(fs.grown_with.dry_run);
}

TEST(ControlFuzz, RootsRequestsAreAllAnswered) {
  const uint64_t wanted = requests_of(50'000, 1'000'000);
  SCOPED_TRACE("seed " + std::to_string(kSeed + 1));
  FakeFilesystem fs;
  Meters meters;
  Requests requests(kSeed + 1);
  FlatMemory memory;
  for (uint64_t i = 0; i < wanted; ++i) {
    if (i == wanted / 10) memory.begin();
    const std::string line = requests.next();
    const auto every_other = [&] { return i % 2 == 0; };
    const ControlAnswer answer = answer_control(fs, meters, {0, every_other, every_other}, line);
    ASSERT_TRUE(answer.body.contains("ok")) << line;
    ASSERT_LE(fs.maintained_ms.value_or(0), 5000u) << line;
    ASSERT_LE(fs.prepared_ms.value_or(0), 5000u) << line;
  }
  memory.expect_flat();
  EXPECT_GT(fs.syncs, 0);
}

class FuzzedSocket : public ::testing::Test {
 protected:
  FuzzedSocket() {
    std::string pattern = std::filesystem::temp_directory_path() / "streamfs-fuzz.XXXXXX";
    folder_ = mkdtemp(pattern.data());
    auto opened = ControlServer::open(fs_, meters_, folder_ + "/sock");
    EXPECT_TRUE(opened.ok());
    server_ = std::move(opened).value();
  }
  ~FuzzedSocket() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  int connected() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, server_->path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  static size_t descriptors() {
    size_t count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
      ++count;
    return count;
  }
  FakeFilesystem fs_;
  Meters meters_;
  std::string folder_;
  std::unique_ptr<ControlServer> server_;
};

// Every line that is sent whole is answered by one; whoever hangs up at any place costs nothing.
TEST_F(FuzzedSocket, EveryLineHasItsAnswerWhateverTheOthersWere) {
  const uint64_t wanted = requests_of(20'000, 1'000'000), a_connection = 200;
  SCOPED_TRACE("seed " + std::to_string(kSeed + 2));
  Requests requests(kSeed + 2);
  FlatMemory memory;
  const size_t before = descriptors();
  for (uint64_t sent = 0; sent < wanted; sent += a_connection) {
    if (sent >= wanted / 10 && sent < wanted / 10 + a_connection) memory.begin();
    const int fd = connected();
    std::string text;
    for (uint64_t i = 0; i < a_connection; ++i) {
      std::string line = requests.next();
      line.resize(std::min<size_t>(line.size(), 512));  // an unread answer must not stop the server
      text += line + "\n";
    }
    std::thread writer([&] {
      for (size_t at = 0; at < text.size();) {
        const size_t some = std::min<size_t>(text.size() - at, 1 + requests.draw(3000));
        const ssize_t now = send(fd, text.data() + at, some, MSG_NOSIGNAL);
        if (now <= 0) break;
        at += static_cast<size_t>(now);
      }
      shutdown(fd, SHUT_WR);
    });
    uint64_t answers = 0;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = recv(fd, buffer.data(), buffer.size(), 0)) > 0;)
      answers += static_cast<uint64_t>(std::count(buffer.data(), buffer.data() + got, '\n'));
    writer.join();
    close(fd);
    ASSERT_EQ(answers, a_connection);
  }
  memory.expect_flat();
  const int last = connected();  // at whose arrival the ended are swept away
  close(last);
  EXPECT_LE(descriptors(), before + 4);
}

TEST_F(FuzzedSocket, WhoHangsUpInTheMiddleOrNeverReadsHindersNobody) {
  Requests requests(kSeed + 3);
  for (int i = 0; i < 2000; ++i) {
    const int fd = connected();
    const std::string line = requests.next();
    (void)!send(fd, line.data(), requests.draw(line.size() + 1), MSG_NOSIGNAL);
    close(fd);
  }
  const int deaf = connected();
  const std::string many(4000, '\n');
  (void)!send(deaf, many.data(), many.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // Where none of those who hung up has been seen off yet, the next is turned away.
  ssize_t got = 0;
  for (int tries = 0; got <= 0 && tries < 1000; ++tries) {
    const int fd = connected();
    (void)!send(fd, "{\"op\": \"sync\"}\n", 15, MSG_NOSIGNAL);
    char byte = 0;
    got = recv(fd, &byte, 1, 0);
    close(fd);
    if (got <= 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(got, 1);
  close(deaf);
}

}  // namespace
}  // namespace streamfs::frontend
