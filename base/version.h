// The version that every program prints. CMakeLists.txt must name the same one.
// Thread safety: a constant.
#pragma once

namespace streamfs {

inline constexpr const char* kVersion = "streamfs 0.1.0";

}  // namespace streamfs
