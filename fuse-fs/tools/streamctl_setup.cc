#include "fuse-fs/tools/streamctl_setup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/command_set.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/setup_machine.h"
#include "fuse-fs/tools/setup_output.h"
#include "fuse-fs/tools/setup_proposal.h"

namespace streamfs::tools {
namespace {

struct SetupArguments {
  std::string mountpoint = "/srv/data", data, meta;
  bool dry_run = false, yes = false, force = false;
};

// Refuses a mountpoint that is taken: mounted, or not an empty directory.
Result<void> check_mountpoint(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return {};
  if (!std::filesystem::is_directory(path, failed)) return Error{ENOTDIR, path};
  struct stat here{}, above{};
  const std::string parent = std::filesystem::path(path).parent_path();
  if (stat(path.c_str(), &here) != 0 || stat(parent.c_str(), &above) != 0)
    return Error{errno, path};
  if (here.st_dev != above.st_dev)
    return Error{EEXIST, path + " is a mountpoint already; name another directory"};
  if (std::filesystem::is_empty(path, failed)) return {};
  return Error{EEXIST, path + " is not empty; name another directory"};
}

std::string content_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Refuses to replace a configuration that says anything else.
Result<void> check_configuration(const Proposal& proposal) {
  std::error_code failed;
  if (!std::filesystem::exists(proposal.config_file, failed)) return {};
  if (content_of(proposal.config_file) == proposal.config) return {};
  return Error{EEXIST, proposal.config_file + " exists and says something else; -f overwrites it"};
}

// Runs a command. Its output goes to stderr if `quiet`, because stdout then has JSON.
Result<void> run_command(const std::vector<std::string>& command, bool quiet) {
  std::vector<char*> words;
  for (const std::string& each : command) words.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return Error{ENOMEM};
  if (quiet) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return Error{spawned, command[0]};
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return Error{errno, command[0]};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{
      EIO, fmt::format("{} failed{}", command[0],
                       WIFEXITED(status) ? fmt::format(" with exit code {}", WEXITSTATUS(status))
                                         : std::string())};
}

// Writes the file so that a power cut leaves it whole or absent.
Result<void> write_durably(const std::string& path, const std::string& content) {
  SFS_ASSIGN(OutputFile file, OutputFile::create(path));
  SFS_TRY(file.write(content));
  if (fchmod(file.fd(), 0644) != 0 || fsync(file.fd()) != 0) return Error{errno, path};
  SFS_TRY(file.commit());
  const std::string folder = std::filesystem::path(path).parent_path();
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Error{errno, folder};
  const bool synced = fsync(fd) == 0;
  const int code = errno;
  close(fd);
  return synced ? Result<void>() : Error{code, folder};
}

// Runs the steps in their order and stops at the first that fails.
Result<void> carry_out(const Proposal& proposal, const Style& style) {
  for (size_t i = 0; i < proposal.steps.size(); ++i) {
    const Step& step = proposal.steps[i];
    fmt::print(style.json ? stderr : stdout, "+ {}\n", step_text(step));
    std::fflush(stdout);
    const Result<void> done = step.command.empty() ? write_durably(step.file, step.content)
                                                   : run_command(step.command, style.json);
    if (done) continue;
    std::string left;
    for (size_t j = i + 1; j < proposal.steps.size(); ++j)
      left += (left.empty() ? "; left to do after it: " : " && ") + step_text(proposal.steps[j]);
    return Error{EALREADY,  // a whole sentence
                 fmt::format("step {} of {}, {}: {}{}", i + 1, proposal.steps.size(),
                             step_text(step), done.error().message(), left)};
  }
  return {};
}

bool user_agrees() {
  fmt::print("\nRun these steps? [y/N] ");
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes" || answer == "Y";
}

bool decided(const SetupArguments& arguments, const Style& style) {
  if (arguments.dry_run || arguments.yes || style.json) return arguments.yes;
  return user_agrees();
}

// Accepts a path that a line of /etc/streamfs can hold as it is.
CLI::Validator plain_path() {
  return {[](const std::string& text) -> std::string {
            const bool bad = text.empty() || text == "/" || text.back() == '\\' ||
                             text.find_first_of("\n\"'$`\\") != std::string::npos;
            return bad ? "'" + text + "' is \"/\", empty, or has a quote, $ or backslash" : "";
          },
          ""};
}

Result<Proposal> proposed(const SetupArguments& arguments) {
  const Questions questions = ask_devices();
  const Machine machine = read_machine("/", questions);
  Wish wish;
  wish.mountpoint = absolute_path(arguments.mountpoint);
  while (wish.mountpoint.size() > 1 && wish.mountpoint.ends_with('/')) wish.mountpoint.pop_back();
  if (!arguments.meta.empty()) wish.meta = absolute_path(arguments.meta);
  if (!arguments.data.empty()) wish.data = named_disk(machine, arguments.data, questions);
  SFS_TRY(check_mountpoint(wish.mountpoint));
  return propose(machine, wish);
}

Result<void> setup(const SetupArguments& arguments, const Style& style) {
  log_to_stderr(Talk::kWarnings);
  SFS_ASSIGN(const Proposal proposal, proposed(arguments));
  if (!style.json) fmt::print("{}", proposal_text(proposal, style));
  nlohmann::json answer = proposal_json(proposal);
  answer["done"] = false;
  if (!proposal.possible()) {
    if (style.json) print_json(answer);
    if (geteuid() != 0) return Error{EACCES, "the machine's devices"};
    return Error{ENOMSG, "no device is free to be DATA; free one, or name one with --data"};
  }
  if (decided(arguments, style)) {
    if (!arguments.force) SFS_TRY(check_configuration(proposal));
    SFS_TRY(carry_out(proposal, style));
    answer["done"] = true;
  }
  if (style.json) print_json(answer);
  return {};
}

}  // namespace

void declare_setup(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<SetupArguments>();
  CLI::App* command = commands.add(
      app, "setup",
      "Look at the machine, propose DATA, META and units with their consequences, and set them up "
      "once you agree",
      [arguments](const Style& style) { return setup(*arguments, style); });
  command
      ->add_option("MOUNTPOINT", arguments->mountpoint,
                   "An empty or missing directory (default /srv/data)")
      ->check(plain_path());
  command->add_option("--data", arguments->data, "Use this data device instead of the best one")
      ->check(plain_path());
  command
      ->add_option("--meta", arguments->meta,
                   "Use this devdax device or file for META instead of the best one")
      ->check(plain_path());
  CLI::Option* dry_run =
      command->add_flag("-n,--dry-run", arguments->dry_run, "Print the proposal; change nothing");
  command->add_flag("-y,--yes", arguments->yes, "Run the steps without a question")
      ->excludes(dry_run);
  command->add_flag("-f,--force", arguments->force,
                    "Overwrite another configuration of MOUNTPOINT; devices are never overwritten");
  command->parse_complete_callback([command, arguments] {
    const bool decides = arguments->yes || arguments->dry_run || command->count("--json") > 0;
    if (!decides && isatty(STDIN_FILENO) != 1)
      throw CLI::RequiredError("--yes or --dry-run: standard input is no terminal to ask, and it");
  });
}

}  // namespace streamfs::tools
