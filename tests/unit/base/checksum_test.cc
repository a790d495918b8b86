#include "base/checksum.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace streamfs {
namespace {

ConstBytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// RFC 3720, B.4: the check value, and 32 bytes of zeroes, of ones, ascending.
TEST(Crc32c, IsTheStandards) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  std::array<std::byte, 32> some{};
  EXPECT_EQ(crc32c(some), 0x8a9136aaU);
  some.fill(std::byte{0xff});
  EXPECT_EQ(crc32c(some), 0x62a8ab43U);
  for (size_t i = 0; i < some.size(); ++i) some[i] = std::byte(i);
  EXPECT_EQ(crc32c(some), 0x46dd794eU);
}

TEST(Crc32c, OfPartsInTurnIsThatOfTheWhole) {
  EXPECT_EQ(crc32c(bytes_of("6789"), crc32c(bytes_of("12345"))), 0xe3069283U);
  std::array<std::byte, 9> to{};
  EXPECT_EQ(copy_crc32c(to, bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c(to), 0xe3069283U);
}

TEST(Crc32c, OfEachPartIsThePartsOwn) {
  for (const size_t size : {1U, 64U, 100U, 4096U, 4097U}) {
    for (const size_t parts : {0U, 1U, 2U, 33U}) {
      std::vector<std::byte> bytes(size * parts);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 + i / 251);
      std::vector<uint32_t> crcs(parts);
      crc32c_each(bytes, crcs);
      for (size_t i = 0; i < parts; ++i)
        EXPECT_EQ(crcs[i], crc32c(ConstBytes(bytes).subspan(i * size, size))) << size << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace streamfs
