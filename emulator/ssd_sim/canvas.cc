#include "emulator/ssd_sim/canvas.h"

#include <zconf.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"

namespace streamfs::emulator::ssd_sim {
namespace {

// Five columns a letter, the least bit on top.
struct Letter {
  char letter;
  std::array<uint8_t, 5> columns;
};
constexpr Letter kLetters[] = {
    {'0', {0x3e, 0x51, 0x49, 0x45, 0x3e}}, {'1', {0x00, 0x42, 0x7f, 0x40, 0x00}},
    {'2', {0x42, 0x61, 0x51, 0x49, 0x46}}, {'3', {0x21, 0x41, 0x45, 0x4b, 0x31}},
    {'4', {0x18, 0x14, 0x12, 0x7f, 0x10}}, {'5', {0x27, 0x45, 0x45, 0x45, 0x39}},
    {'6', {0x3c, 0x4a, 0x49, 0x49, 0x30}}, {'7', {0x01, 0x71, 0x09, 0x05, 0x03}},
    {'8', {0x36, 0x49, 0x49, 0x49, 0x36}}, {'9', {0x06, 0x49, 0x49, 0x29, 0x1e}},
    {'a', {0x20, 0x54, 0x54, 0x54, 0x78}}, {'b', {0x7f, 0x48, 0x44, 0x44, 0x38}},
    {'c', {0x38, 0x44, 0x44, 0x44, 0x28}}, {'d', {0x38, 0x44, 0x44, 0x48, 0x7f}},
    {'e', {0x38, 0x54, 0x54, 0x54, 0x18}}, {'f', {0x08, 0x7e, 0x09, 0x01, 0x02}},
    {'g', {0x18, 0xa4, 0xa4, 0xa4, 0x7c}}, {'h', {0x7f, 0x08, 0x04, 0x04, 0x78}},
    {'i', {0x00, 0x44, 0x7d, 0x40, 0x00}}, {'j', {0x40, 0x80, 0x84, 0x7d, 0x00}},
    {'k', {0x7f, 0x10, 0x28, 0x44, 0x00}}, {'l', {0x00, 0x41, 0x7f, 0x40, 0x00}},
    {'m', {0x7c, 0x04, 0x18, 0x04, 0x78}}, {'n', {0x7c, 0x08, 0x04, 0x04, 0x78}},
    {'o', {0x38, 0x44, 0x44, 0x44, 0x38}}, {'p', {0xfc, 0x24, 0x24, 0x24, 0x18}},
    {'q', {0x18, 0x24, 0x24, 0x24, 0xfc}}, {'r', {0x7c, 0x08, 0x04, 0x04, 0x08}},
    {'s', {0x48, 0x54, 0x54, 0x54, 0x20}}, {'t', {0x04, 0x3f, 0x44, 0x40, 0x20}},
    {'u', {0x3c, 0x40, 0x40, 0x20, 0x7c}}, {'v', {0x1c, 0x20, 0x40, 0x20, 0x1c}},
    {'w', {0x3c, 0x40, 0x30, 0x40, 0x3c}}, {'x', {0x44, 0x28, 0x10, 0x28, 0x44}},
    {'y', {0x1c, 0xa0, 0xa0, 0xa0, 0x7c}}, {'z', {0x44, 0x64, 0x54, 0x4c, 0x44}},
    {'.', {0x00, 0x60, 0x60, 0x00, 0x00}}, {'-', {0x08, 0x08, 0x08, 0x08, 0x08}},
    {'_', {0x40, 0x40, 0x40, 0x40, 0x40}}, {',', {0x00, 0x50, 0x30, 0x00, 0x00}},
    {'/', {0x20, 0x10, 0x08, 0x04, 0x02}}, {'+', {0x08, 0x08, 0x3e, 0x08, 0x08}},
    {':', {0x00, 0x36, 0x36, 0x00, 0x00}}, {'(', {0x00, 0x1c, 0x22, 0x41, 0x00}},
    {')', {0x00, 0x41, 0x22, 0x1c, 0x00}}, {'%', {0x23, 0x13, 0x08, 0x64, 0x62}},
    {'?', {0x02, 0x01, 0x51, 0x09, 0x06}}, {' ', {0x00, 0x00, 0x00, 0x00, 0x00}}};

// Capitals look like small letters, unknown ones like question marks.
const Letter& shape_of(char letter) {
  const auto small = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto* found = std::ranges::find(kLetters, small, &Letter::letter);
  return found == std::end(kLetters) ? *std::ranges::find(kLetters, '?', &Letter::letter) : *found;
}

void append_word(std::string& bytes, uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift & 0xff);
}

void append_chunk(std::string& file, std::string_view kind, std::string_view content) {
  append_word(file, static_cast<uint32_t>(content.size()));
  std::string checked(kind);
  checked += content;
  file += checked;
  std::vector<Bytef> bytes(checked.begin(), checked.end());
  append_word(file, static_cast<uint32_t>(crc32(0, bytes.data(), static_cast<uInt>(bytes.size()))));
}

}  // namespace

Canvas::Canvas(int width, int height)
    : width_(width),
      height_(height),
      pixels_(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, 0xff) {
  SFS_ASSERT(width > 0 && height > 0);
}

void Canvas::rectangle(int x, int y, int width, int height, Colour colour) {
  for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row) {
    for (int column = std::max(x, 0); column < std::min(x + width, width_); ++column) {
      uint8_t* pixel = &pixels_[static_cast<size_t>(row * width_ + column) * 3];
      pixel[0] = colour.red;
      pixel[1] = colour.green;
      pixel[2] = colour.blue;
    }
  }
}

void Canvas::text(int x, int y, std::string_view words, Colour colour, int scale) {
  for (const char letter : words) {
    const Letter& shape = shape_of(letter);
    for (int column = 0; column < 5; ++column)
      for (int row = 0; row < 8; ++row)
        if ((shape.columns[static_cast<size_t>(column)] >> row & 1) != 0)
          rectangle(x + column * scale, y + row * scale, scale, scale, colour);
    x += 6 * scale;
  }
}

// PNG, W3C 2003: header, one zlib stream of rows with filter 0, end.
std::string Canvas::png() const {
  std::string file("\x89PNG\r\n\x1a\n", 8);
  std::string header;
  append_word(header, static_cast<uint32_t>(width_));
  append_word(header, static_cast<uint32_t>(height_));
  header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits each of red, green, blue
  append_chunk(file, "IHDR", header);
  std::vector<Bytef> rows;
  const size_t row_bytes = static_cast<size_t>(width_) * 3;
  for (size_t at = 0; at < pixels_.size(); at += row_bytes) {
    rows.push_back(0);
    rows.insert(rows.end(), pixels_.begin() + static_cast<ptrdiff_t>(at),
                pixels_.begin() + static_cast<ptrdiff_t>(at + row_bytes));
  }
  uLongf size = compressBound(rows.size());
  std::vector<Bytef> packed(size);
  SFS_ASSERT(compress(packed.data(), &size, rows.data(), rows.size()) == Z_OK);
  append_chunk(file, "IDAT",
               std::string(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(size)));
  append_chunk(file, "IEND", {});
  return file;
}

}  // namespace streamfs::emulator::ssd_sim
