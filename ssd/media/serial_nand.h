// A NAND die behind a slow bus that does one operation after another, as in the devices of Lee
// (Samsung). It has pages with spare areas, with or without data, and a clock. The power can be cut
// at any program or erase.
//
// Thread safety: none. After a crash: cut_after() simulates one. From the cut until power_on(),
// program(), copy(), erase() and read() fail with EIO and change no page; spare() still answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ssd/ftl/nand.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

// Times of whole operations: array, bus and driver together.
struct SerialTiming {
  uint64_t read_ns = 0, spare_read_ns = 0, program_ns = 0, erase_ns = 0;
};

class SerialNand final : public Nand {
 public:
  struct Operations {
    uint64_t reads = 0, spare_reads = 0, programs = 0, erases = 0;
  };

  // page_bytes 0: without data. Programs assert the rules of NAND.
  SerialNand(const Geometry& geometry, uint32_t page_bytes, const SerialTiming& timing);

  uint32_t page_bytes() const override { return page_bytes_; }
  int program(Ppn at, const Spare& spare, const std::byte* data) override;
  int copy(Ppn from, Ppn to, const Spare& spare) override;
  int erase(BlockIndex block) override;
  int read(Ppn at, std::byte* data) override;  // padding: zeroes; torn or erased: EIO
  std::optional<Spare> spare(Ppn at) override;

  const Operations& operations() const { return operations_; }
  uint64_t busy_ns() const { return busy_ns_; }

  // Cuts the power after `operations` more programs and erases, inside the next one. `seed` decides
  // whether that one is done, torn or not begun. Only tests call it: it is the medium's seam for
  // power cuts, as NandFaults is that of the other media.
  void cut_after(uint64_t operations, uint64_t seed);
  bool powered() const { return powered_; }
  void power_on();

 private:
  enum class Fate : uint8_t { kDone, kTorn, kNotBegun };
  struct Page {
    Spare spare;
    bool programmed = false;
  };

  Fate operate();
  int put(Ppn at, const Spare& spare, const std::byte* data);
  std::byte* data_at(Ppn at) { return data_.data() + size_t{at} * page_bytes_; }

  const uint32_t pages_per_block_, page_bytes_;
  const SerialTiming timing_;
  std::vector<Page> pages_;
  std::vector<std::byte> data_;
  std::vector<uint32_t> written_;  // by block: programmed pages
  Operations operations_;
  uint64_t busy_ns_ = 0;
  Ppn in_register_ = kNoPage;              // the page read last
  uint64_t left_ = UINT64_MAX, seed_ = 0;  // operations before the cut
  bool powered_ = true;
};

}  // namespace streamfs::ssd
