// Sets a flag for the duration of a scope.
// Thread safety: any thread may read the flag. Requires: at most one scope per flag at a time.
#pragma once

#include <atomic>

namespace streamfs {

class SetWhile {
 public:
  explicit SetWhile(std::atomic<bool>& flag) : flag_(flag) { flag_ = true; }
  ~SetWhile() { flag_ = false; }
  SetWhile(const SetWhile&) = delete;
  SetWhile& operator=(const SetWhile&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace streamfs
