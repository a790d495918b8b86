// Reduces a file's creator and names to few distinct contexts: numbers are folded, so that worker 7
// and worker 8, 000012.log and 000013.log share a context.
// Thread safety: pure functions. After a crash: a context is parsed again from its stored name.
#pragma once

#include <string>
#include <string_view>

namespace streamfs::placement {

struct Context {
  std::string comm{}, ext{}, dir{};  // an empty part stands for any value
  friend bool operator==(const Context&, const Context&) = default;
};

// The context of all programs that copy trees (cp, rsync, tar, unzip and the like). They write
// other programs' files once, so names and directories do not predict how long the copies live.
inline constexpr std::string_view kCopier = "[copier]";
bool is_copier(std::string_view comm);

// Strips trailing numbers: "kworker/3" → "kworker", "pool-thread-12" → "pool-thread-".
std::string fold_comm(std::string_view comm);
// Returns the part after the last dot, or "#" if that part or the whole name is a number. Empty if
// there is no dot, only a leading one, or more than 16 bytes after it.
std::string fold_extension(std::string_view name);
// Replaces each number by "#": "data-0012" → "data-#".
std::string fold_directory(std::string_view directory);

// Returns "ctx:comm:ext:dir". If that exceeds 31 bytes: its first 22 and a hash of the whole.
std::string context_name(const Context& context);
// Returns the parts of a context_name(). A shortened name gives only what it holds: the program,
// the extension if it is whole, and the rest without the hash as the directory.
Context parse_context_name(std::string_view name);

// Returns the context of a file that thread `comm` creates as `name` in the directory `directory`.
Context context_of(std::string_view comm, std::string_view name, std::string_view directory);

}  // namespace streamfs::placement
