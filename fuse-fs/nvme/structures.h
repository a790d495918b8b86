// The structures that NVMe commands transfer: identify structures, directive parameters and log
// pages, with only the fields that streamfs uses. Names and meanings are those of the documents in
// command.h. Every length inside is checked, because controllers fill them in.
// Errors: decoders of variable length return EIO for corrupt bytes.
// Thread safety: values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/fields.h"

namespace streamfs::nvme {

inline constexpr size_t kIdentifyBytes = 4096;

// Read and write a structure of fixed fields. decode() requires at least T::kBytes bytes.
template <typename T>
T decode(ConstBytes bytes) {
  SFS_ASSERT(bytes.size() >= T::kBytes);
  T value;
  T::each_field(Reader{bytes}, value);
  return value;
}
template <typename T>
std::vector<std::byte> encode(const T& value) {
  std::vector<std::byte> bytes(T::kBytes);
  T::each_field(Writer{bytes}, value);
  return bytes;
}

// Identify, CNS 01h.
struct ControllerIdentity {
  static constexpr size_t kBytes = kIdentifyBytes;
  std::array<uint8_t, 20> serial{};
  std::array<uint8_t, 40> model{};
  std::array<uint8_t, 8> firmware{};
  uint8_t mdts = 0;  // log2 of the limit in pages, taken as 4 KiB, the smallest; 0: no limit
  uint32_t version = 0;
  uint32_t ctratt = 0;
  uint16_t oacs = 0;
  uint16_t oncs = 0;
  uint8_t vwc = 0;

  static constexpr uint32_t kCtrattPermissive = 1 << 1, kCtrattEnduranceGroups = 1 << 4,
                            kCtrattFdp = 1 << 19;
  static constexpr uint16_t kOacsDirectives = 1 << 5, kOncsDatasetManagement = 1 << 2;
  bool has_fdp() const { return (ctratt & kCtrattFdp) != 0; }
  // Non-operational power state permissive mode.
  bool can_be_permissive() const { return (ctratt & kCtrattPermissive) != 0; }
  bool has_directives() const { return (oacs & kOacsDirectives) != 0; }
  bool can_deallocate() const { return (oncs & kOncsDatasetManagement) != 0; }
  bool has_volatile_cache() const { return (vwc & 1) != 0; }
  uint64_t max_transfer_bytes() const;  // the largest uint64_t if there is no limit

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(4, self.serial);
    field(24, self.model);
    field(64, self.firmware);
    field(77, self.mdts);
    field(80, self.version);
    field(96, self.ctratt);
    field(256, self.oacs);
    field(520, self.oncs);
    field(525, self.vwc);
  }
};

// Identify, CNS 00h: a namespace of the NVM command set.
struct NamespaceIdentity {
  static constexpr size_t kBytes = kIdentifyBytes;
  uint64_t nsze = 0, ncap = 0, nuse = 0;  // LBAs
  uint8_t nsfeat = 0, nlbaf = 0, flbas = 0, mc = 0, dpc = 0, dps = 0, dlfeat = 0;
  uint16_t npwg = 0, npwa = 0, npdg = 0, npda = 0, nows = 0;  // LBAs - 1, if nsfeat bit 4
  uint8_t nsattr = 0;
  uint16_t endgid = 0;
  std::array<uint8_t, 16> nguid{};
  std::array<uint8_t, 8> eui64{};
  std::array<uint32_t, 64> lbaf{};  // metadata bytes 15:0, log2 of the LBA's bytes 23:16

  static constexpr uint8_t kNsfeatOptimalIo = 1 << 4, kNsattrWriteProtected = 1 << 0;
  uint32_t format() const;  // the index of the LBA format in use
  uint64_t lba_bytes() const { return uint64_t{1} << (lbaf.at(format()) >> 16 & 0x3f); }
  uint32_t metadata_bytes() const { return lbaf.at(format()) & 0xffff; }
  uint32_t protection() const { return dps & 7; }  // the type of protection information; 0: none
  bool write_protected() const { return (nsattr & kNsattrWriteProtected) != 0; }
  bool has_granularities() const { return (nsfeat & kNsfeatOptimalIo) != 0; }

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(0, self.nsze);
    field(8, self.ncap);
    field(16, self.nuse);
    field(24, self.nsfeat);
    field(25, self.nlbaf);
    field(26, self.flbas);
    field(27, self.mc);
    field(28, self.dpc);
    field(29, self.dps);
    field(33, self.dlfeat);
    field(64, self.npwg);
    field(66, self.npwa);
    field(68, self.npdg);
    field(70, self.npda);
    field(72, self.nows);
    field(99, self.nsattr);
    field(102, self.endgid);
    field(104, self.nguid);
    field(120, self.eui64);
    field(128, self.lbaf);
  }
};

// Identify, CNS 06h, of the NVM command set. 0 is "no limit".
struct CommandSetLimits {
  static constexpr size_t kBytes = kIdentifyBytes;
  uint8_t dmrl = 0;    // ranges per Dataset Management command
  uint32_t dmrsl = 0;  // LBAs per range
  uint64_t dmsl = 0;   // LBAs per command

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(3, self.dmrl);
    field(4, self.dmrsl);
    field(8, self.dmsl);
  }
};

// Directive Receive, Identify directive, Return Parameters. Bit n: directive type n.
struct DirectiveParameters {
  static constexpr size_t kBytes = 4096;
  uint8_t supported = 0, enabled = 0;
  bool supports(uint8_t type) const { return (supported >> type & 1) != 0; }

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(0, self.supported);
    field(32, self.enabled);
  }
};

// Directive Receive, Streams directive, Return Parameters.
struct StreamsParameters {
  static constexpr size_t kBytes = 32;
  uint16_t msl = 0;   // streams that the subsystem can have open
  uint16_t nssa = 0;  // of those, not allocated to a namespace
  uint16_t nsso = 0;  // of those, open
  uint8_t nssc = 0;
  uint32_t sws = 0;  // stream write size, LBAs
  uint16_t sgs = 0;  // stream granularity size, in units of sws
  uint16_t nsa = 0;  // allocated to this namespace
  uint16_t nso = 0;  // of those, open

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(0, self.msl);
    field(2, self.nssa);
    field(4, self.nsso);
    field(6, self.nssc);
    field(16, self.sws);
    field(20, self.sgs);
    field(22, self.nsa);
    field(24, self.nso);
  }
};

// Log page 22h: counters in bytes that never decrease.
struct FdpStatistics {
  static constexpr size_t kBytes = 64;
  Wide host_written, media_written, media_erased;

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(0, self.host_written);
    field(16, self.media_written);
    field(32, self.media_erased);
  }
};

// Log page 02h.
struct SmartLog {
  static constexpr size_t kBytes = 512;
  static constexpr uint64_t kUnitBytes = 512000;  // of data units
  uint8_t critical_warning = 0, available_spare = 0, spare_threshold = 0, percentage_used = 0;
  Wide data_units_read, data_units_written, media_errors;

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(0, self.critical_warning);
    field(3, self.available_spare);
    field(4, self.spare_threshold);
    field(5, self.percentage_used);
    field(32, self.data_units_read);
    field(48, self.data_units_written);
    field(160, self.media_errors);
  }
};

// Log page 09h.
struct EnduranceGroupLog {
  static constexpr size_t kBytes = 512;
  static constexpr uint64_t kUnitBytes = 1'000'000'000;
  Wide data_units_written, media_units_written;

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(64, self.data_units_written);
    field(80, self.media_units_written);
  }
};

// Log page C0h of the OCP Datacenter NVMe SSD Specification 2.0 ("SMART / Health Information
// Extended"). Other vendors use the page differently: is_ocp() checks the GUID in it.
struct OcpSmartLog {
  static constexpr size_t kBytes = 512;
  static constexpr std::array<uint8_t, 16> kGuid = {0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4,
                                                    0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf};
  Wide physical_written, physical_read;  // bytes
  std::array<uint8_t, 16> guid{};
  bool is_ocp() const { return guid == kGuid; }

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(0, self.physical_written);
    field(16, self.physical_read);
    field(496, self.guid);
  }
};

// Directive Receive, Streams directive, Get Status: the identifiers of open streams, as many as fit
// the buffer.
Result<std::vector<uint16_t>> decode_stream_status(ConstBytes bytes);
std::vector<std::byte> encode_stream_status(std::span<const uint16_t> open);

// Log page 20h.
struct FdpConfiguration {
  uint8_t attributes = 0;  // FDPA: bits of a reclaim group's identifier 3:0, valid 7
  uint32_t reclaim_groups = 0;
  uint16_t max_placements = 0;
  uint32_t namespaces = 0;
  uint64_t reclaim_unit_bytes = 0;
  uint32_t time_limit_s = 0;   // ERUTL; 0: unknown
  std::vector<uint8_t> types;  // of each reclaim unit handle: 1 initially, 2 persistently isolated
  bool valid() const { return (attributes & 0x80) != 0; }
};
Result<std::vector<FdpConfiguration>> decode_fdp_configurations(ConstBytes bytes);
std::vector<std::byte> encode_fdp_configurations(std::span<const FdpConfiguration> all);

// I/O Management Receive, Reclaim Unit Handle Status.
struct RuhStatus {
  static constexpr size_t kBytes = 32;
  uint16_t placement = 0;      // placement identifier, as in DSPEC
  uint16_t handle = 0;         // RUHID
  uint32_t time_left_s = 0;    // EARUTR
  uint64_t writable_lbas = 0;  // RUAMW: left in the reclaim unit that the handle refers to
  friend bool operator==(const RuhStatus&, const RuhStatus&) = default;

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(0, self.placement);
    field(2, self.handle);
    field(4, self.time_left_s);
    field(8, self.writable_lbas);
  }
};
// `count` is the number of statuses that exist; `known` holds the first ones, which fit the buffer.
struct RuhStatusList {
  size_t count = 0;
  std::vector<RuhStatus> known;
};
inline constexpr size_t kRuhStatusHeaderBytes = 16;
Result<RuhStatusList> decode_ruh_status(ConstBytes bytes);
std::vector<std::byte> encode_ruh_status(std::span<const RuhStatus> all);

// I/O Management Send, Reclaim Unit Handle Update.
std::vector<std::byte> encode_placements(std::span<const uint16_t> placements);
std::vector<uint16_t> decode_placements(ConstBytes bytes);

// Dataset Management.
struct Range {
  uint64_t first_lba = 0;
  uint32_t lbas = 0;
  static constexpr size_t kBytes = 16;

  template <typename Field, typename Self>
  static void each_field(Field field, Self& self) {
    field(4, self.lbas);
    field(8, self.first_lba);
  }
};
std::vector<std::byte> encode_ranges(std::span<const Range> ranges);
std::vector<Range> decode_ranges(ConstBytes bytes);

// Returns the text of a fixed field without its trailing blanks and NULs. Other bytes that are not
// printable ASCII become '?'.
std::string text_of(std::span<const uint8_t> field);

}  // namespace streamfs::nvme
