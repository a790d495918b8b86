// The programs' duties towards systemd, logind and fsck(8).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <systemd/sd-bus-vtable.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "fuse-fs/tools/configured.h"
#include "fuse-fs/tools/suspend_watch.h"
#include "fuse-fs/tools/watchdog.h"
#include "tests/support/temporary.h"

namespace streamfs::tools {
namespace {

using std::chrono::milliseconds;

class Heard {
 public:
  void add(const std::string& lines) {
    const MutexLock lock(mutex_);
    lines_.push_back(lines);
  }
  size_t count() const {
    const MutexLock lock(mutex_);
    return lines_.size();
  }
  std::string last() const {
    const MutexLock lock(mutex_);
    return lines_.empty() ? "" : lines_.back();
  }
  bool grows_beyond(size_t count) const {
    for (int i = 0; i < 2000 && this->count() <= count; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    return this->count() > count;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ SFS_GUARDED_BY(mutex_);
};

TEST(WatchdogTest, SpeaksWhileTheMountAnswersAndIsSilentWhenItDoesNot) {
  Heard heard;
  std::atomic<bool> answers{true};
  Watchdog dog({[&] { return answers.load(); }, [] { return std::string("fine"); },
                [&](const std::string& lines) { heard.add(lines); }},
               milliseconds(1));
  EXPECT_TRUE(heard.grows_beyond(3));
  EXPECT_EQ(heard.last(), "WATCHDOG=1\nSTATUS=fine");
  answers = false;
  std::this_thread::sleep_for(milliseconds(20));
  const size_t then = heard.count();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(heard.count(), then);
  dog.unmounting();
  EXPECT_TRUE(heard.grows_beyond(then)) << "draining is no hang";
}

TEST(WatchdogTest, DoesNothingUnasked) {
  Heard heard;
  {
    const Watchdog dog({[] { return true; }, [] { return std::string(); },
                        [&](const std::string& lines) { heard.add(lines); }},
                       milliseconds(0));
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(heard.count(), 0u);
}

// The other end of a bus that has no daemon: it grants inhibitors and says when sleep begins.
class Logind {
 public:
  Logind() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    sd_id128_t id{};
    sd_id128_randomize(&id);
    sd_bus_new(&bus_);
    sd_bus_set_fd(bus_, ends[0], ends[0]);
    sd_bus_set_server(bus_, 1, id);
    sd_bus_negotiate_fds(bus_, 1);
    static const std::array<sd_bus_vtable, 3> methods = {
        {SD_BUS_VTABLE_START(0),
         SD_BUS_METHOD("Inhibit", "ssss", "h", &Logind::inhibit, SD_BUS_VTABLE_UNPRIVILEGED),
         SD_BUS_VTABLE_END}};
    sd_bus_add_object_vtable(bus_, nullptr, "/org/freedesktop/login1",
                             "org.freedesktop.login1.Manager", methods.data(), this);
    sd_bus_start(bus_);
    sd_bus_new(&client_);
    sd_bus_set_fd(client_, ends[1], ends[1]);
    sd_bus_negotiate_fds(client_, 1);
    thread_ = std::thread([this] { run(); });
    sd_bus_start(client_);
  }
  ~Logind() {
    ended_ = true;
    thread_.join();
    sd_bus_close_unref(bus_);
    if (pipe_ >= 0) close(pipe_);
  }
  Logind(const Logind&) = delete;
  Logind& operator=(const Logind&) = delete;

  sd_bus* client() { return client_; }  // the caller frees it
  void say(bool sleeps) { says_ = sleeps ? 1 : 0; }
  bool was_let_go(int wait_ms) const {
    pollfd end{pipe_, POLLIN, 0};
    return poll(&end, 1, wait_ms) == 1 && (end.revents & POLLHUP) != 0;
  }
  int granted() const { return granted_; }

 private:
  static int inhibit(sd_bus_message* message, void* self, sd_bus_error*) {
    auto& logind = *static_cast<Logind*>(self);
    const char *what = nullptr, *who = nullptr, *why = nullptr, *mode = nullptr;
    sd_bus_message_read(message, "ssss", &what, &who, &why, &mode);
    if (std::string(what) != "sleep" || std::string(mode) != "delay") return -EINVAL;
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return -errno;
    if (logind.pipe_ >= 0) close(logind.pipe_);
    logind.pipe_ = ends[0];
    ++logind.granted_;
    const int sent = sd_bus_reply_method_return(message, "h", ends[1]);
    close(ends[1]);
    return sent;
  }
  void tell(int sleeps) {
    sd_bus_message* message = nullptr;
    sd_bus_message_new_signal(bus_, &message, "/org/freedesktop/login1",
                              "org.freedesktop.login1.Manager", "PrepareForSleep");
    sd_bus_message_set_sender(message, "org.freedesktop.login1");
    sd_bus_message_append(message, "b", sleeps);
    sd_bus_send(bus_, message, nullptr);
    sd_bus_message_unref(message);
  }
  void run() {
    while (!ended_) {
      if (const int says = says_.exchange(-1); says >= 0) tell(says);
      while (sd_bus_process(bus_, nullptr) > 0) {
      }
      sd_bus_wait(bus_, 2000);
    }
  }

  sd_bus *bus_ = nullptr, *client_ = nullptr;
  std::atomic<int> says_{-1}, granted_{0}, pipe_{-1};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

bool step_until(SuspendWatch& watch, const std::function<bool()>& holds) {
  for (int i = 0; i < 500 && !holds(); ++i)
    if (!watch.step(10'000).ok()) return false;
  return holds();
}

TEST(SuspendWatchTest, WorkIsDoneBeforeTheMachineMaySleepAndAgainTheNextTime) {
  Logind logind;
  int prepared = 0;
  bool held_meanwhile = false;
  auto watch = SuspendWatch::open(logind.client(), [&] {
    ++prepared;
    held_meanwhile = !logind.was_let_go(20);
  });
  ASSERT_TRUE(watch.ok()) << watch.error().message();
  EXPECT_TRUE((*watch)->holds());
  EXPECT_FALSE(logind.was_let_go(0));
  for (int night = 1; night <= 2; ++night) {
    logind.say(true);
    ASSERT_TRUE(step_until(**watch, [&] { return !(*watch)->holds(); }));
    EXPECT_EQ(prepared, night);
    EXPECT_TRUE(held_meanwhile);
    EXPECT_TRUE(logind.was_let_go(2000));
    logind.say(false);
    ASSERT_TRUE(step_until(**watch, [&] { return (*watch)->holds(); }));
    EXPECT_EQ(logind.granted(), night + 1);
    EXPECT_FALSE(logind.was_let_go(0));
  }
}

class ConfiguredTest : public testing::Test {
 protected:
  ConfiguredTest() { std::filesystem::create_directories(folder_.file("units/srv")); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.file(name)) << text;
  }
  std::optional<ConfiguredMeta> meta_of(const std::string& data) {
    return configured_meta(data, folder_.file("fstab"), folder_.file("units"));
  }

  TemporaryDirectory folder_;
};

TEST_F(ConfiguredTest, FstabSaysWhereMetaIs) {
  write("fstab",
        "/dev/sda1 / ext4 defaults 0 1\n"
        "emu:/srv/ssd /srv/data streamfs noauto,meta=/srv/META,mirror=/b,nofail 0 2\n"
        "/dev/sdb /x fuse.streamfs meta=/y\\,z 0 2\n");
  EXPECT_EQ(meta_of("emu:/srv/ssd").value().meta, "/srv/META");
  EXPECT_EQ(meta_of("emu:/srv/ssd").value().mirror, "/b");
  EXPECT_EQ(meta_of("/dev/sdb").value().meta, "/y,z");
  EXPECT_FALSE(meta_of("/dev/sda1"));
  EXPECT_FALSE(meta_of("/srv/ssd"));
}

TEST_F(ConfiguredTest, AUnitsFileSaysItToo) {
  write("units/srv/a b.conf", "DATA='/srv/a b'\nMETA=\"/m\"\nOPTIONS=ro,mirror=/n\n");
  write("units/other", "DATA=/z\nMETA=/z\n");
  EXPECT_EQ(meta_of("/srv/a b").value().meta, "/m");
  EXPECT_EQ(meta_of("/srv/a b").value().mirror, "/n");
  EXPECT_FALSE(meta_of("/z"));
}

}  // namespace
}  // namespace streamfs::tools
