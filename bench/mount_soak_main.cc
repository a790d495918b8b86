// Uses a mounted filesystem from several threads for as many operations as one likes, and checks
// what it says: each thread knows the files of its own folder by heart. An operation that is not
// over within its deadline is named ({"late": …}) and ends the program. Most operations reach the
// server: half of the data passes the page cache, and names that are looked up were never looked up
// before. Prints a line of JSON after each part of the work, with the count of each kind in the
// last.
//   mount_soak FOLDER --operations 1000000 --threads 4 --seed 1 --parts 10 --deadline 30
// Exits 1 when the filesystem said something wrong, 3 when it did not answer in time.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/types.h"

namespace {

using streamfs::kBlockSize;

constexpr size_t kFiles = 200, kBlocksMax = 16;
constexpr uint64_t kFsyncOf = 50;  // one call of so many is one: it takes as long as many others
constexpr int kWrong = 1, kLate = 3;

uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(since).count());
}

struct alignas(kBlockSize) Blocks {
  std::array<uint64_t, kBlocksMax * kBlockSize / sizeof(uint64_t)> words;
};
constexpr size_t kWords = kBlockSize / sizeof(uint64_t);

class Worker {
 public:
  Worker(std::string folder, uint64_t seed) : folder_(std::move(folder)), random_(seed) {}
  void begin();  // makes the folder it works in
  void run(std::atomic<int64_t>& left);
  // The start of this thread's operation, 0 if there is none, and the operation's name.
  std::atomic<uint64_t> began_ns{0};
  std::atomic<const char*> doing{""};
  std::array<uint64_t, 16> counts{};

 private:
  struct File {
    std::string name;            // empty: there is none
    std::vector<uint64_t> tags;  // by block; 0 reads as zeroes
    uint32_t mode = 0644;
  };
  using Operation = bool (Worker::*)();  // false: there was nothing to do it to
  struct Kind {
    const char* name;
    uint64_t weight;
    Operation run;
  };
  static const std::vector<Kind>& kinds();
  friend nlohmann::json counts_of(const std::vector<std::unique_ptr<Worker>>& workers);

  void need(bool right, const char* what, const std::string& of) const {
    if (right) return;
    const int error = errno;
    fmt::print(stderr, "mount_soak: {} of {}: errno {} ({})\n", what, of, error,
               std::strerror(error));
    std::fflush(stderr);
    std::_Exit(kWrong);
  }
  uint64_t below(uint64_t end) { return random_() % end; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string new_name() { return fmt::format("n{}", ++names_); }
  File* some_file();
  File* no_file();
  int open_some(const File& file, int flags);

  bool create();
  bool unlink();
  bool rename();
  bool write();
  bool read();
  bool truncate();
  bool change_mode();
  bool look_up();
  bool list();
  bool sync();
  bool folders();
  bool attributes();

  const std::string folder_;
  std::mt19937_64 random_;
  uint64_t names_ = 0, tags_ = 0;
  std::array<File, kFiles> files_;
  std::unique_ptr<Blocks> buffer_ = std::make_unique<Blocks>();
};

const std::vector<Worker::Kind>& Worker::kinds() {
  static const std::vector<Kind> all = {{"create", 14, &Worker::create},
                                        {"unlink", 10, &Worker::unlink},
                                        {"rename", 10, &Worker::rename},
                                        {"write", 18, &Worker::write},
                                        {"read", 18, &Worker::read},
                                        {"truncate", 3, &Worker::truncate},
                                        {"chmod", 8, &Worker::change_mode},
                                        {"lookup", 8, &Worker::look_up},
                                        {"list", 1, &Worker::list},
                                        {"fsync", 2, &Worker::sync},
                                        {"mkdir + rmdir", 2, &Worker::folders},
                                        {"xattr", 6, &Worker::attributes}};
  return all;
}

Worker::File* Worker::some_file() {
  File& file = files_.at(below(kFiles));
  return file.name.empty() ? nullptr : &file;
}

Worker::File* Worker::no_file() {
  File& file = files_.at(below(kFiles));
  return file.name.empty() ? &file : nullptr;
}

int Worker::open_some(const File& file, int flags) {
  if (below(2) == 0) flags |= O_DIRECT;
  const int fd = ::open(path(file.name).c_str(), flags | O_CLOEXEC);
  need(fd >= 0, "open", path(file.name));
  return fd;
}

bool Worker::create() {
  File* file = no_file();
  if (file == nullptr) return false;
  file->name = new_name();
  const int fd = ::open(path(file->name).c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
  need(fd >= 0, "create", path(file->name));
  need(close(fd) == 0, "close", path(file->name));
  return true;
}

bool Worker::unlink() {
  File* file = some_file();
  if (file == nullptr) return false;
  need(::unlink(path(file->name).c_str()) == 0, "unlink", path(file->name));
  *file = {};
  return true;
}

bool Worker::rename() {
  File* file = some_file();
  if (file == nullptr) return false;
  File* over = below(4) == 0 ? some_file() : nullptr;
  if (over == file) return false;
  const std::string name = over != nullptr ? over->name : new_name();
  need(::rename(path(file->name).c_str(), path(name).c_str()) == 0, "rename", path(file->name));
  if (over != nullptr) *over = {};
  file->name = name;
  return true;
}

bool Worker::write() {
  File* file = some_file();
  if (file == nullptr) return false;
  const size_t first = below(std::min(file->tags.size() + 1, kBlocksMax));
  const size_t count = 1 + below(std::min<size_t>(kBlocksMax - first, 4));
  file->tags.resize(std::max(file->tags.size(), first + count));
  for (size_t i = 0; i < count; ++i) {
    file->tags[first + i] = ++tags_ << 8 | below(256);
    std::fill_n(&buffer_->words.at(i * kWords), kWords, file->tags[first + i]);
  }
  const int fd = open_some(*file, O_WRONLY);
  const auto bytes = static_cast<ssize_t>(count * kBlockSize);
  need(pwrite(fd, buffer_.get(), count * kBlockSize, static_cast<off_t>(first * kBlockSize)) ==
           bytes,
       "write", path(file->name));
  need(close(fd) == 0, "close", path(file->name));
  return true;
}

bool Worker::read() {
  File* file = some_file();
  if (file == nullptr) return false;
  const int fd = open_some(*file, O_RDONLY);
  const ssize_t got = pread(fd, buffer_.get(), sizeof(Blocks), 0);
  close(fd);
  need(got == static_cast<ssize_t>(file->tags.size() * kBlockSize), "size read", path(file->name));
  for (size_t i = 0; i < file->tags.size(); ++i) {
    const uint64_t* words = &buffer_->words.at(i * kWords);
    const uint64_t tag = file->tags[i];
    need(std::all_of(words, words + kWords, [tag](uint64_t word) { return word == tag; }),
         "content", path(file->name));
  }
  return true;
}

bool Worker::truncate() {
  File* file = some_file();
  if (file == nullptr) return false;
  file->tags.resize(below(kBlocksMax + 1));
  const auto size = static_cast<off_t>(file->tags.size() * kBlockSize);
  need(::truncate(path(file->name).c_str(), size) == 0, "truncate", path(file->name));
  return true;
}

bool Worker::change_mode() {
  File* file = some_file();
  if (file == nullptr) return false;
  file->mode = 0600 | static_cast<uint32_t>(below(64));
  need(chmod(path(file->name).c_str(), file->mode) == 0, "chmod", path(file->name));
  struct stat found{};
  need(stat(path(file->name).c_str(), &found) == 0, "stat", path(file->name));
  need((found.st_mode & 07777) == file->mode, "mode", path(file->name));
  need(static_cast<uint64_t>(found.st_size) == file->tags.size() * kBlockSize, "size",
       path(file->name));
  return true;
}

bool Worker::look_up() {
  struct stat found{};
  const std::string absent = path(new_name());
  need(stat(absent.c_str(), &found) != 0 && errno == ENOENT, "lookup", absent);
  return true;
}

bool Worker::list() {
  DIR* directory = opendir(folder_.c_str());
  need(directory != nullptr, "opendir", folder_);
  size_t seen = 0;
  while (readdir(directory) != nullptr) ++seen;
  closedir(directory);
  const auto there = [](const File& file) { return !file.name.empty(); };
  need(seen == 2 + static_cast<size_t>(std::ranges::count_if(files_, there)), "names", folder_);
  return true;
}

bool Worker::sync() {
  File* file = below(kFsyncOf) == 0 ? some_file() : nullptr;
  if (file == nullptr) return false;
  const int fd = open_some(*file, O_RDONLY);
  need(fsync(fd) == 0, "fsync", path(file->name));
  close(fd);
  return true;
}

bool Worker::folders() {
  const std::string name = path(new_name());
  need(mkdir(name.c_str(), 0755) == 0, "mkdir", name);
  need(rmdir(name.c_str()) == 0, "rmdir", name);
  return true;
}

bool Worker::attributes() {
  File* file = some_file();
  if (file == nullptr) return false;
  const std::string name = path(file->name);
  const uint64_t value = ++tags_;
  uint64_t found = 0;
  need(setxattr(name.c_str(), "user.soak", &value, sizeof value, 0) == 0, "setxattr", name);
  need(getxattr(name.c_str(), "user.soak", &found, sizeof found) == sizeof found && found == value,
       "getxattr", name);
  return true;
}

void Worker::run(std::atomic<int64_t>& left) {
  const std::vector<Kind>& all = kinds();
  uint64_t weights = 0;
  for (const Kind& kind : all) weights += kind.weight;
  while (left.load(std::memory_order_relaxed) > 0) {
    uint64_t drawn = below(weights);
    size_t chosen = 0;
    for (; drawn >= all[chosen].weight; ++chosen) drawn -= all[chosen].weight;
    doing.store(all[chosen].name, std::memory_order_relaxed);
    began_ns.store(now_ns(), std::memory_order_relaxed);
    const bool done = (this->*all[chosen].run)();
    began_ns.store(0, std::memory_order_relaxed);
    if (!done) continue;
    ++counts.at(chosen);
    left.fetch_sub(1, std::memory_order_relaxed);
  }
}

nlohmann::json counts_of(const std::vector<std::unique_ptr<Worker>>& workers) {
  nlohmann::json out;
  for (size_t i = 0; i < Worker::kinds().size(); ++i) {
    uint64_t sum = 0;
    for (const auto& worker : workers) sum += worker->counts.at(i);
    out[Worker::kinds()[i].name] = sum;
  }
  return out;
}

struct Settings {
  std::string folder;
  uint64_t operations = 1'000'000, threads = 4, seed = 1, parts = 10, deadline_s = 30;
};

void Worker::begin() {
  doing = "mkdir";
  began_ns = now_ns();
  need(mkdir(folder_.c_str(), 0755) == 0, "mkdir", folder_);
  began_ns = 0;
}

// Ends the program when a worker's operation is late.
void watch(const std::vector<std::unique_ptr<Worker>>& workers, uint64_t deadline_s,
           const std::atomic<bool>& over) {
  while (!over.load()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    for (const auto& worker : workers) {
      const uint64_t began = worker->began_ns.load(), now = now_ns();
      if (began == 0 || now < began + deadline_s * 1'000'000'000) continue;
      // Told first: a thread that waits for its answer cannot be ended before the server is.
      fmt::print("{}\n", nlohmann::json{{"late", worker->doing.load()}}.dump());
      std::fflush(stdout);
      std::_Exit(kLate);
    }
  }
}

void soak(const Settings& settings) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t n = 0; n < settings.threads; ++n) {
    workers.push_back(std::make_unique<Worker>(fmt::format("{}/soak{}", settings.folder, n),
                                               settings.seed * 1000 + n));
  }
  std::atomic<bool> over{false};
  std::thread watchdog([&] { watch(workers, settings.deadline_s, over); });
  const uint64_t began = now_ns();
  for (const auto& worker : workers) worker->begin();
  for (uint64_t part = 1; part <= settings.parts; ++part) {
    std::atomic<int64_t> left{static_cast<int64_t>(settings.operations / settings.parts)};
    std::vector<std::thread> threads;
    for (const auto& worker : workers) threads.emplace_back([&] { worker->run(left); });
    for (std::thread& thread : threads) thread.join();
    nlohmann::json line = {{"part", part},
                           {"seconds", static_cast<double>(now_ns() - began) / 1e9}};
    if (part == settings.parts) line["counts"] = counts_of(workers);
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }
  over = true;
  watchdog.join();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Uses a mounted filesystem and checks what it says.", "mount_soak");
  Settings settings;
  app.add_option("FOLDER", settings.folder, "Where to work; empty")->required();
  app.add_option("--operations", settings.operations, "In all");
  app.add_option("--threads", settings.threads, "At once")->check(CLI::Range(1, 64));
  app.add_option("--seed", settings.seed, "Another one does other things");
  app.add_option("--parts", settings.parts, "Lines of output")->check(CLI::Range(1, 1000));
  app.add_option("--deadline", settings.deadline_s, "Seconds an operation may take");
  CLI11_PARSE(app, argc, argv);
  soak(settings);
  return 0;
}
