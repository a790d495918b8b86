// A directory that goes away with the test, and pages whose content names them.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/types.h"

namespace streamfs {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/streamfs-test.XXXXXX";
    SFS_ASSERT(mkdtemp(path_.data()) != nullptr);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// `pages` pages, each full of words made of its number and `version`; version 0 is all zeroes.
inline std::vector<std::byte> content(uint64_t first_page, uint64_t pages, uint64_t version) {
  std::vector<std::byte> bytes(pages * kBlockSize);
  if (version == 0) return bytes;
  std::vector<uint64_t> words(bytes.size() / 8);
  uint64_t* const word = words.data();  // not words[i], which is a call where nothing is optimized
  for (uint64_t i = 0, end = words.size(); i < end; ++i)
    word[i] = (first_page + i / 512) << 32 ^ version * 0x9e3779b97f4a7c15 ^ i % 512;
  std::memcpy(bytes.data(), word, bytes.size());
  return bytes;
}

// As ==, which goes byte by byte.
inline bool same_bytes(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace streamfs
