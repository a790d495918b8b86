#include "learning/tokens.h"

#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/mix.h"
#include "learning/write_view.h"

namespace streamfs::learning {
namespace {

class Writer {
 public:
  explicit Writer(std::span<Token> out) : out_(out) {}
  // Adds the next token: a hash of its index and these values.
  void put(std::initializer_list<uint64_t> values) {
    uint64_t hash = next_ + 1;
    for (const uint64_t value : values) hash = (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29);
    out_[next_++] = static_cast<Token>(mix64(hash) >> (64 - 8 * sizeof(Token)));
  }

 private:
  std::span<Token> out_;
  uint32_t next_ = 0;
};

void put_alone(const WriteView& w, Writer& to) {
  for (const uint8_t value : {w.length, w.offset, w.tail, w.age, w.last, w.before, w.run, w.overlap,
                              w.mean_1m, w.trimmed_16m}) {
    to.put({value});
  }
}

void put_shapes(const WriteView& w, Writer& to) {
  to.put({w.length, w.tail, w.offset, w.age});
  to.put({w.last, w.age, w.alive, w.length});
  to.put({w.trim_length, w.alive, w.length, w.run});
  to.put({w.overlap, w.overlaps_mean, w.tail, w.length});
  to.put({w.left_last, w.right_last, w.age, w.tail});
  to.put({w.left_age, w.right_age, w.length});
}

void put_places(const WriteView& w, Writer& to) {
  const uint64_t at_1m = w.page >> 8, at_16m = w.page >> 12, at_128m = w.page >> 15;
  to.put({at_1m});
  to.put({at_1m, w.length, w.tail});
  to.put({at_1m, w.age, w.last});
  to.put({at_16m});
  to.put({at_16m, w.length, w.tail, w.offset});
  to.put({at_16m, w.age, w.alive});
  to.put({at_16m, w.last, w.before, w.alive});
  to.put({at_128m, w.run, w.length});
  to.put({w.mean_1m, w.length, w.tail, w.overlap});
  to.put({w.trimmed_16m, w.length, w.tail, w.age});
  to.put({w.trimmed_1m, w.mean_64k, w.age});
}

void put_contexts(const WriteView& w, Writer& to) {
  to.put({w.vstream});
  to.put({w.vstream, w.length, w.tail});
  to.put({w.vstream, w.alive, w.age, w.tail});
  to.put({w.vstream, w.run, w.overlap});
  to.put({w.vstream, w.last, w.alive});
  to.put({w.expected});
  to.put({w.expected, w.last, w.age});
  to.put({w.expected, w.length, w.tail});
  to.put({w.expected, w.mean_1m});
  to.put({w.expected, w.age, w.alive, w.tail});
  to.put({w.expected, w.overlap, w.run});
}

}  // namespace

Tokens<kHistoryTokens> tokens_of(const WriteView& write) {
  Tokens<kHistoryTokens> out{};
  Writer to(out);
  put_alone(write, to);
  put_shapes(write, to);
  put_places(write, to);
  put_contexts(write, to);
  to.put({});  // bias
  return out;
}

Tokens<kPathTokens> tokens_of(const PathView& w) {
  const uint64_t at_1m = w.page >> 8, at_16m = w.page >> 12, at_128m = w.page >> 15;
  Tokens<kPathTokens> out{};
  Writer to(out);
  for (const uint8_t value : {w.length, w.offset, w.tail, w.age}) to.put({value});
  to.put({w.length, w.tail, w.offset, w.age});
  to.put({w.age, w.length});
  to.put({at_1m});
  to.put({at_1m, w.length, w.tail});
  to.put({at_1m, w.age});
  to.put({at_16m});
  to.put({at_16m, w.length, w.tail, w.offset});
  to.put({at_16m, w.age});
  to.put({at_128m, w.length, w.age});
  to.put({w.vstream});
  to.put({w.vstream, w.length, w.tail});
  to.put({w.vstream, w.age, w.tail});
  to.put({w.expected});
  to.put({w.expected, w.length, w.tail});
  to.put({w.expected, w.age, w.tail});
  to.put({w.file_place});
  to.put({w.file_place, w.length, w.tail});
  to.put({w.file_place, w.age});
  to.put({w.file_place, w.vstream});
  to.put({});  // bias
  return out;
}

}  // namespace streamfs::learning
