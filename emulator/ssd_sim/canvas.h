// A picture: rectangles and words in letters of 5 × 8, saved as PNG.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace streamfs::emulator::ssd_sim {

struct Colour {
  uint8_t red, green, blue;
};

class Canvas {
 public:
  Canvas(int width, int height);  // white

  // What lies outside is not drawn.
  void rectangle(int x, int y, int width, int height, Colour colour);
  // The upper left corner; letters are 6 × 8 times `scale`, with their gaps.
  void text(int x, int y, std::string_view words, Colour colour, int scale = 2);
  static int text_width(std::string_view words, int scale = 2) {
    return static_cast<int>(words.size()) * 6 * scale;
  }

  std::string png() const;

 private:
  int width_, height_;
  std::vector<uint8_t> pixels_;  // red, green, blue; row by row
};

}  // namespace streamfs::emulator::ssd_sim
