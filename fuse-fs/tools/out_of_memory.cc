#include "fuse-fs/tools/out_of_memory.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "base/exit_codes.h"

namespace streamfs::tools {
namespace {

constexpr size_t kForTheMessage = size_t{1} << 20;

// The reserve is freed before the message is written, because writing takes memory.
std::atomic<void*>& reserve() {
  static std::atomic<void*> memory{nullptr};
  return memory;
}

[[noreturn]] void stop() {
  if (void* const memory = reserve().exchange(nullptr)) {
    std::free(memory);
    spdlog::critical(
        "out of memory: the mount ends here. Durable data is safe; give the mount more memory "
        "(MemoryMax=, ulimit -v) or less cache (cache_mib, write_behind_mib), unmount and mount "
        "again");
    spdlog::logger* const logger = spdlog::default_logger_raw();
    logger->flush();
  }
  _exit(exit_code::kIo);
}

// Ends the process for an exception that no thread of the mount catches: a bad_alloc that no
// operator new threw, or a thread that cannot be started.
[[noreturn]] void stop_or_abort() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    stop();
  } catch (const std::system_error& failure) {
    if (failure.code() == std::errc::resource_unavailable_try_again) stop();
    spdlog::critical("{}", failure.what());
  } catch (const std::exception& other) {
    spdlog::critical("{}", other.what());
  }
  std::abort();
}

}  // namespace

void stop_when_out_of_memory() {
  reserve() = std::malloc(kForTheMessage);
  std::set_new_handler(stop);
  std::set_terminate(stop_or_abort);
}

}  // namespace streamfs::tools
