// What a device may do while its host sends nothing, and what it did. All of it is best effort:
// data is as safe without. Thread safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace streamfs::blockdev {

// How a device uses idle time.
enum class IdleMeans : uint8_t {
  kNone,      // it needs no word from us, or understands none
  kInCall,    // begin_idle() works until it is told to stop
  kByItself,  // it works by itself between begin_idle() and end_idle()
};

struct IdleCapabilities {
  IdleMeans means = IdleMeans::kNone;
  std::string how = "nothing to do";  // for people
  uint64_t by_itself_ms_max = 0;      // it must not work for longer without us; 0: no limit
};

// How much it wants idle time; kUnknown where it does not tell.
enum class Pressure : uint8_t { kNone, kLow, kHigh, kCritical, kUnknown };

struct IdleLimits {
  std::function<bool()> stop;  // asked before each step; deadlines are its business, too
  double valid_limit = 0.5;    // share of valid pages that a victim may hold: others cost more wear
                               // than they save
};

struct IdleWork {
  bool finished = true;  // nothing is left worth doing
  uint64_t copied_bytes = 0, erases = 0;
};

}  // namespace streamfs::blockdev
