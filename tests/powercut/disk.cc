#include "tests/powercut/disk.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace powercut {

// The block as it reads now, in the cache from now on.
Disk::Block& Disk::block(uint64_t number) {
  const auto [found, fresh] = current_.try_emplace(number);
  if (fresh) {
    found->second.fill(0);
    (void)!pread(image_, found->second.data(), kBlock, static_cast<off_t>(number * kBlock));
  }
  return found->second;
}

int Disk::read(std::span<char> out, uint64_t offset) {
  if (cut_) return -EIO;
  const uint64_t end = std::min(size_, offset + out.size());
  if (offset >= end) return 0;
  const uint64_t length = end - offset;
  if (pread(image_, out.data(), length, static_cast<off_t>(offset)) < 0) return -errno;
  for (uint64_t at = offset; at < end;) {
    const uint64_t next = std::min(end, (at / kBlock + 1) * kBlock);
    if (const auto found = current_.find(at / kBlock); found != current_.end())
      std::memcpy(&out[at - offset], &found->second[at % kBlock], next - at);
    at = next;
  }
  return static_cast<int>(length);
}

void Disk::show(const Write& write) {
  for (uint64_t done = 0; done < write.length;) {
    const uint64_t at = write.offset + done;
    const uint64_t part = std::min(write.length - done, kBlock - at % kBlock);
    char* const to = &block(at / kBlock)[at % kBlock];
    if (write.bytes.empty()) {
      std::memset(to, 0, part);
    } else {
      std::memcpy(to, &write.bytes[done], part);
    }
    done += part;
  }
}

void Disk::keep(Write write) {
  show(write);
  cached_.push_back(std::move(write));
}

// A write that fails has changed some of its sectors.
void Disk::store_part(Write write) {
  for (uint64_t done = 0; done < write.length; done += faults_.sector_bytes) {
    const uint64_t part = std::min(faults_.sector_bytes, write.length - done);
    if (random_() % 2 == 0) continue;
    const auto from = write.bytes.begin() + static_cast<ptrdiff_t>(done);
    keep({write.offset + done, part, {from, from + static_cast<ptrdiff_t>(part)}});
  }
}

int Disk::write(std::span<const char> in, uint64_t offset) {
  if (cut_) return -EIO;
  if (!fits(offset, in.size())) return -ENOSPC;
  Write write{offset, in.size(), {in.begin(), in.end()}};
  if (faults_.fail_one_in != 0 && random_() % faults_.fail_one_in == 0) {
    store_part(std::move(write));
    return -EIO;
  }
  keep(std::move(write));
  return static_cast<int>(in.size());
}

int Disk::discard(uint64_t offset, uint64_t length) {
  if (cut_) return -EIO;
  if (!fits(offset, length)) return -EINVAL;
  keep({offset, length, {}});
  return 0;
}

int Disk::store(const Write& write, uint64_t from, uint64_t length) const {
  static constexpr std::array<char, 64 * kBlock> kZeroes{};
  for (uint64_t done = 0; done < length;) {
    uint64_t part = length - done;
    const char* source = nullptr;
    if (write.bytes.empty()) {
      part = std::min<uint64_t>(part, kZeroes.size());
      source = kZeroes.data();
    } else {
      source = &write.bytes[from + done];
    }
    const auto to = static_cast<off_t>(write.offset + from + done);
    const ssize_t stored = pwrite(image_, source, part, to);
    if (stored <= 0) return -EIO;
    done += static_cast<uint64_t>(stored);
  }
  return 0;
}

int Disk::flush() {
  if (cut_) return -EIO;
  ++flushes_;
  if (faults_.lie) return 0;
  for (const Write& write : cached_) {
    if (const int failed = store(write, 0, write.length); failed != 0) return failed;
  }
  cached_.clear();
  current_.clear();
  return 0;
}

// how: 0 nothing survives, 1 whole writes, 2 sectors, 3 all up to a write that is torn.
void Disk::survive(const Write& write, unsigned how, bool& going) {
  const bool last = how == 3 && random_() % 8 == 0;
  if (how == 0 || !going || (how == 1 && random_() % 2 == 0)) return;
  for (uint64_t from = 0; from < write.length; from += faults_.sector_bytes) {
    const uint64_t part = std::min(faults_.sector_bytes, write.length - from);
    if ((how == 2 || last) && random_() % 2 == 0) continue;
    (void)store(write, from, part);
  }
  going = !last;
}

int Disk::cut(uint64_t seed) {
  if (cut_) return -EIO;
  random_.seed(seed);
  const auto how = static_cast<unsigned>(random_() % 4);
  bool going = true;
  for (const Write& write : cached_) survive(write, how, going);
  cut_ = true;
  return 0;
}

}  // namespace powercut
