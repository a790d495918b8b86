// A flag that is set while a scope runs.
// Thread safety: the flag's; one scope at a time may hold it.
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
