#include "lab/ssd_sim/picture.h"

#include <fmt/format.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"

namespace streamfs::lab::ssd_sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOverride = "STREAMFS_PYTHON";
// The module's exit code if matplotlib cannot be imported; pictures.py has the same number.
constexpr int kNoMatplotlib = 69;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Returns the directory of this program.
fs::path program_directory() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// Returns the directory of modules of the packages classifierd and streamfs-lab.
fs::path packaged_modules() {
  return program_directory().parent_path() / "lib/streamfs/classifierd";
}

// Returns the Python interpreter: the system's for the package's modules, that of the virtual
// environment for a build.
std::string interpreter() {
  const char* named = std::getenv(kOverride);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (named != nullptr && *named != '\0') return named;
  const fs::path built = program_directory() / STREAMFS_PYTHON;
  return !is_there(packaged_modules()) && is_there(built) ? built.lexically_normal().string()
                                                          : "/usr/bin/python3";
}

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each)
    if (!std::string_view(*each).starts_with("PYTHONPATH=")) all.emplace_back(*each);
  const char* given = std::getenv("PYTHONPATH");  // NOLINT(concurrency-mt-unsafe)
  std::string paths = given == nullptr ? "" : given;
  if (is_there(packaged_modules()))
    paths = packaged_modules().string() + (paths.empty() ? "" : ":" + paths);
  if (!paths.empty()) all.push_back("PYTHONPATH=" + paths);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// A file in memory, closed at the end.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) (void)::close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }

  Result<void> write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t wrote = ::write(fd_, text.data(), text.size());
      if (wrote < 0) return Error{errno, "memory for the results"};
      text.remove_prefix(static_cast<size_t>(wrote));
    }
    return ::lseek(fd_, 0, SEEK_SET) == 0 ? Result<void>{} : Error{errno, "lseek"};
  }

  std::string content() const {
    std::string text;
    std::array<char, 65536> part{};
    (void)::lseek(fd_, 0, SEEK_SET);
    for (ssize_t got = 0; (got = ::read(fd_, part.data(), part.size())) > 0;)
      text.append(part.data(), static_cast<size_t>(got));
    return text;
  }

 private:
  const int fd_;
};

// Returns the exit code, or −1 for a program that a signal ended.
Result<int> run(std::vector<std::string> command, int in, int out, int err) {
  std::vector<std::string> variables = environment();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, command[0].c_str(), &actions, nullptr,
                                  pointers(command).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Error{failed, command[0]};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return Error{errno, "waitpid"};
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

Error no_python(const std::string& python, const char* lacks) {
  return {ENOPKG,
          fmt::format("cannot draw: {} has no {}; install it (apt-get install streamfs-lab) "
                      "or name a Python that has it in {}",
                      python, lacks, kOverride)};
}

Result<std::string> drawn(const std::string& results, const char* format) {
  const MemoryFile in("results"), out("picture"), errors("errors");
  if (in.fd() < 0 || out.fd() < 0 || errors.fd() < 0) return Error{errno, "memfd_create"};
  SFS_TRY(in.write(results));
  const std::string python = interpreter();
  const Result<int> code =
      run({python, "-m", "streamfs_lab.pictures", format}, in.fd(), out.fd(), errors.fd());
  if (!code.ok())
    return Error{code.error().code,
                 fmt::format("cannot draw with {}; name a Python that has matplotlib in {}", python,
                             kOverride)};
  const std::string said = last_line(errors.content());
  if (*code == kNoMatplotlib) return no_python(python, "matplotlib");
  if (said.find("No module named") != std::string::npos) return no_python(python, "streamfs_lab");
  if (*code != 0) return Error{EIO, fmt::format("cannot draw with {}: {}", python, said)};
  return out.content();
}

}  // namespace

void PictureFiles::add_options(CLI::App& app) {
  app.add_option("--png", png, "Draw the results into this file, at 200 dpi.");
  app.add_option("--svg", svg, "Draw the results into this file, as vector graphics.");
}

Result<void> PictureFiles::draw(const nlohmann::json& results) const {
  for (const auto& [path, format] : {std::pair{&png, "png"}, std::pair{&svg, "svg"}}) {
    if (path->empty()) continue;
    SFS_ASSIGN(const std::string picture, drawn(results.dump(), format));
    SFS_TRY(write_whole(*path, picture));
  }
  return {};
}

}  // namespace streamfs::lab::ssd_sim
