// Judges the files that a mount finds after a cut. The model keeps the history of each file: each
// value of a sector and each size, with the number of the call that set it. A promise is a call
// that makes earlier calls durable: an fsync, a sync, or a rename over another file.
//
// If META is kept, the names are those after the last call that returned, or after the call that
// the cut interrupted. Each sector and each size has the value that it had at the file's last
// promise, or a later one.
//
// If META is lost, the names are those after some call. All that sync() or a wait of five seconds
// made durable is found. If an effect of call N is found, each fsync and sync before N holds.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/types.h"

namespace streamfs::joint {

// The files that a mount finds. A sector's value is that of all its bytes; kMixed: they differ.
inline constexpr int kMixed = -1;
struct FoundFile {
  uint64_t size = 0;
  std::vector<int> sectors;
  bool operator==(const FoundFile&) const = default;
};
using FoundFiles = std::map<std::string, FoundFile>;

class Model {
 public:
  Model() : names_(1) {}

  // Each call of the filesystem is one of these, with the state after it, and then end_call().
  void create(const std::string& name);
  void unlink(const std::string& name) { next_names_.erase(name); }
  void rename(const std::string& from, const std::string& to);
  void write(const std::string& name, uint64_t offset, uint64_t length, int value);
  void truncate(const std::string& name, uint64_t size);
  void zero(const std::string& name, uint64_t offset, uint64_t length);
  void promise(const std::string& name) { file(name).promises.push_back({call(), false}); }
  void promise_without_meta();  // every file is durable even if META is lost
  void end_call();

  bool has(const std::string& name) const { return next_names_.contains(name); }
  uint64_t size(const std::string& name) { return file(name).sizes.back().value; }
  size_t calls() const { return names_.size() - 1; }
  // Returns a hash of all that check() depends on after so many calls.
  uint64_t fingerprint(size_t calls) const;

  enum class Meta : uint8_t { kKept, kLost };
  // Checks what a cut after `calls` calls left. Returns the first mistake; "": none.
  std::string check(const FoundFiles& found, size_t calls, Meta meta) const;

 private:
  struct Value {
    size_t call;
    uint64_t value;
  };
  struct Promise {
    size_t call;
    bool by_rename;
  };
  using History = std::vector<Value>;
  struct File {
    History sizes;
    std::vector<History> sectors;
    std::vector<Promise> promises;
  };
  using Names = std::map<std::string, size_t>;  // indices of files_

  size_t call() const { return names_.size(); }
  File& file(const std::string& name) { return files_[next_names_.at(name)]; }
  void set(File& file, uint64_t sector, int value);
  size_t last_change(size_t at, size_t before) const;
  size_t evidence(const FoundFiles& found, size_t at) const;
  size_t promised(const File& file, size_t until, size_t renamed_until) const;
  std::string check_at(const FoundFiles& found, size_t calls, Meta meta, size_t at) const;
  static std::string check_file(const FoundFile& found, const File& file, size_t floor,
                                size_t calls);

  std::vector<File> files_;
  std::vector<Names> names_;  // after so many calls
  Names next_names_;
  std::vector<size_t> promised_all_, promised_without_meta_;  // calls
};

}  // namespace streamfs::joint
