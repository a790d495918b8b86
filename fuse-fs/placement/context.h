// What a file's creator and names say about its data, reduced to few distinct contexts: numbers are
// folded, so that worker 7 and worker 8, 000012.log and 000013.log are one.
// Thread safety: pure functions. Crash: a context's name is all that persists of it.
#pragma once

#include <string>
#include <string_view>

namespace streamfs::placement {

struct Context {
  std::string comm{}, ext{}, dir{};  // empty where backed off
  friend bool operator==(const Context&, const Context&) = default;
};

// The context of all programs that copy trees (cp, rsync, tar, unzip and their like): they write
// what others made, once, so their files' names and directories say nothing of its lifetime.
inline constexpr std::string_view kCopier = "[copier]";
bool is_copier(std::string_view comm);

// "kworker/3" → "kworker", "pool-thread-12" → "pool-thread-".
std::string fold_comm(std::string_view comm);
// After the last dot, "#" if that is a number or if the name is nothing but one; else empty.
std::string fold_extension(std::string_view name);
// "data-0012" → "data-#".
std::string fold_directory(std::string_view directory);

// "ctx:comm:ext:dir"; where that is over 31 bytes, its first 22 and a hash of the whole.
std::string context_name(const Context& context);
// The parts as far as the name still holds them: the program always, the extension where it was
// kept whole, and as the directory the rest without the hash.
Context parse_context_name(std::string_view name);

// A file's context.
Context context_of(std::string_view comm, std::string_view name, std::string_view directory);

}  // namespace streamfs::placement
