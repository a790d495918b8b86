// Types for the maintenance that a device does in idle time. It is best effort and never needed for
// the safety of data. Thread safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace streamfs::blockdev {

// The way in which a device uses idle time.
enum class IdleMeans : uint8_t {
  kNone,      // it takes no command for idle time, or needs none
  kInCall,    // begin_idle() works until limits.stop returns true
  kByItself,  // it works by itself between begin_idle() and end_idle()
};

struct IdleCapabilities {
  IdleMeans means = IdleMeans::kNone;
  std::string how = "nothing to do";  // for people
  uint64_t by_itself_ms_max = 0;      // end_idle() must follow within this time; 0: no limit
};

// The urgency of the device's need for idle time.
enum class Pressure : uint8_t { kNone, kLow, kHigh, kCritical, kUnknown };

struct IdleLimits {
  std::function<bool()> stop;  // called before each step; it also enforces deadlines
  double valid_limit = 0.5;    // largest share of valid pages in a victim: copying more costs more
                               // wear than it saves
};

struct IdleWork {
  bool finished = true;  // nothing is left worth doing
  uint64_t copied_bytes = 0, erases = 0;
};

}  // namespace streamfs::blockdev
