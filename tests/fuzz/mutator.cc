// How libFuzzer changes inputs here: an item or an operation at a time, with values that mean
// something to the images (offsets, numbers of inodes, owners, blocks). Bytes at random now and
// then.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/layout.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/input.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace streamfs::fuzz {
namespace {

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  void mutate(Input& input) {
    const uint64_t changes = 1 + below(3);
    for (uint64_t i = 0; i < changes; ++i) {
      const bool items = below(3) != 0;
      if (below(16) == 0) {
        input.flags ^= static_cast<uint8_t>(1U << below(8));
      } else if (items) {
        change(input.items, kItemsMax, [this](Item& item) { change_item(item); });
      } else {
        change(input.operations, kOperationsMax,
               [this](Operation& each) { change_operation(each); });
      }
    }
  }
  uint64_t below(uint64_t end) { return random_() % end; }

 private:
  uint8_t byte() { return static_cast<uint8_t>(random_()); }
  // Adds one, drops one, copies one, or changes one.
  template <typename T, typename Change>
  void change(std::vector<T>& all, size_t most, Change&& change_one) {
    const uint64_t how = below(8);
    if (all.empty() || (how < 2 && all.size() < most)) {
      T fresh{};
      for (int i = 0; i < 4; ++i) change_one(fresh);
      all.insert(all.begin() + static_cast<std::ptrdiff_t>(below(all.size() + 1)), fresh);
      return;
    }
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(below(all.size()));
    if (how == 2) {
      all.erase(at);
    } else if (how == 3 && all.size() < most) {
      T copy = *at;
      change_one(copy);
      all.insert(at, copy);
    } else {
      change_one(*at);
    }
  }

  void change_item(Item& item) {
    switch (below(6)) {
      case 0:
        item.kind = byte();
        break;
      case 1:
        item.argument = byte();
        break;
      case 2:
        item.where = static_cast<uint16_t>(random_());
        break;
      case 3:  // a neighbour: the next word of the same object
        item.where = static_cast<uint16_t>(item.where + below(9) - 4);
        break;
      default:
        item.value = value(item.value);
    }
  }

  void change_operation(Operation& operation) {
    uint8_t* const fields[] = {&operation.what, &operation.which, &operation.other, &operation.how};
    *fields[below(4)] = byte();
  }

  uint64_t value(uint64_t old) {
    const Image& base = image(0);
    const uint64_t live = base.live[below(base.live.size())];
    const uint64_t unit = base.geometry.unit_offset(below(base.geometry.heap_units()));
    const InodeId id{(unit / meta::kCellSize) + below(meta::kInodesPerUnit)};
    switch (below(12)) {
      case 0:
        return below(70);
      case 1:
        return uint64_t{1} << below(64);
      case 2:
        return ~uint64_t{0} >> below(64);
      case 3:
        return old + below(33) - 16;
      case 4:
        return base.words.get()[live / kWordSize];
      case 5:
        return live;
      case 6:
        return unit;
      case 7:
        return id.value | (below(2) == 0 ? 0 : below(16) << 56);
      case 8:
        return meta::unit_owner(id, static_cast<meta::UnitKind>(below(7)));
      case 9:
        return below(kDataBlocks + 2);
      case 10:
        return old ^ uint64_t{1} << below(64);
      default:
        return random_() | uint64_t{random_()} << 32;
    }
  }

  std::minstd_rand random_;
};

size_t put(const Input& input, uint8_t* data, size_t most) {
  const std::vector<uint8_t> bytes = to_bytes(input);
  const size_t size = std::min(bytes.size(), most);
  std::memcpy(data, bytes.data(), size);
  return size;
}

}  // namespace
}  // namespace streamfs::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  streamfs::fuzz::Mutator mutator(seed);
  if (mutator.below(16) == 0) return LLVMFuzzerMutate(data, size, most);
  streamfs::fuzz::Input input = streamfs::fuzz::parse({data, size});
  mutator.mutate(input);
  return streamfs::fuzz::put(input, data, most);
}

// The damage of one with the operations of the other, and some of the other's damage.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                            const uint8_t* second, size_t second_size, uint8_t* out,
                                            size_t most, unsigned seed) {
  using streamfs::fuzz::parse;
  streamfs::fuzz::Mutator mutator(seed);
  streamfs::fuzz::Input input = parse({first, first_size});
  const streamfs::fuzz::Input other = parse({second, second_size});
  input.operations = other.operations;
  for (const auto& item : other.items) {
    if (mutator.below(2) == 0 && input.items.size() < streamfs::fuzz::kItemsMax) {
      input.items.push_back(item);
    }
  }
  return streamfs::fuzz::put(input, out, most);
}
