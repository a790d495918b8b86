// usage: fuzz_seeds FOLDER
// Writes what the fuzzers begin with into FOLDER/{image,fsck,journal,log,model}: every operation,
// and every kind of damage to every part of the images and models, with and without right
// checksums.
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/damage.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace streamfs::fuzz {
namespace {

constexpr uint8_t kKindsOfOperation = 16;
constexpr uint8_t kKindsOfRecordItem = 8, kKindsOfModelItem = 8;

class Seeds {
 public:
  explicit Seeds(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(const Input& input) {
    const std::vector<uint8_t> bytes = to_bytes(input);
    std::ofstream file(folder_ / ("seed" + std::to_string(count_++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void operations() {
    for (uint8_t what = 0; what < kKindsOfOperation; ++what) {
      for (uint8_t choice = 0; choice < kImages; ++choice) {
        Input input{choice, {}, {}};
        for (uint8_t i = 0; i < 20; ++i) {
          input.operations.push_back({what, byte(), byte(), byte()});
        }
        input.flags |= kReadTwice;
        add(input);
        for (Operation& each : input.operations) each.what = byte();
        add(input);
      }
    }
  }
  void damage() {
    for (uint8_t kind = 0; kind < static_cast<uint8_t>(DamageKind::kCount); ++kind) {
      for (uint8_t i = 0; i < 12; ++i) {
        Input input{static_cast<uint8_t>(i % kImages), {}, {}};
        if (i % 4 != 0) input.flags |= kFixChecksums;
        input.items.push_back({kind, byte(), half(), value()});
        for (int more = 0; more < 6; ++more) {
          input.operations.push_back({byte(), byte(), byte(), byte()});
        }
        add(input);
      }
    }
  }
  void model() {
    for (uint8_t kind = 0; kind < kKindsOfModelItem; ++kind) {
      for (uint8_t i = 0; i < 16; ++i) {
        Input input{static_cast<uint8_t>(i % 4), {}, {}};
        if (i % 8 != 0) input.flags |= kFixChecksums;
        input.items.push_back({kind, byte(), half(), value()});
        for (int more = 0; more < 6; ++more) {
          input.operations.push_back({byte(), byte(), byte(), byte()});
        }
        add(input);
      }
    }
  }
  void records() {
    for (uint8_t kind = 0; kind < kKindsOfRecordItem; ++kind) {
      for (uint8_t i = 0; i < 12; ++i) {
        Input input{static_cast<uint8_t>(i % kImages), {}, {}};
        for (uint8_t item = 0; item < 4; ++item) {
          const uint8_t argument = i % 4 == 0 ? 0x80 : byte() & 0x7f;
          input.items.push_back({kind, argument, half(), value()});
          if (item % 2 == 1) input.items.push_back({5, 0, 0, 0});
        }
        add(input);
      }
    }
  }

 private:
  uint8_t byte() { return static_cast<uint8_t>(random_()); }
  uint16_t half() { return static_cast<uint16_t>(random_()); }
  uint64_t value() { return random_() % 3 == 0 ? random_() % 64 : uint64_t{1} << random_() % 64; }

  std::filesystem::path folder_;
  std::minstd_rand random_{1};
  int count_ = 0;
};

void write_all(const std::filesystem::path& folder) {
  for (const char* name : {"image", "fsck", "journal", "log", "model"}) {
    Seeds seeds(folder / name);
    const std::string target = name;
    if (target != "fsck") seeds.operations();
    if (target == "journal") {
      seeds.records();
    } else if (target == "model") {
      seeds.model();
    } else {
      seeds.damage();
    }
  }
}

}  // namespace
}  // namespace streamfs::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  streamfs::fuzz::write_all(argv[1]);
  return 0;
}
