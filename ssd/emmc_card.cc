#include "ssd/emmc_card.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "ssd/ftl/emmc/firmware.h"
#include "ssd/ftl/emmc/interface.h"
#include "ssd/ftl/firmware.h"
#include "ssd/geometry.h"
#include "ssd/ssd.h"

namespace streamfs::ssd {
namespace {

template <typename With>
auto with_firmware(Ssd& ssd, const With& with) {
  return ssd.with_firmware(
      [&](Firmware& firmware) { return with(static_cast<emmc::EmmcFirmware&>(firmware)); });
}

}  // namespace

Result<std::unique_ptr<EmmcCard>> EmmcCard::open(const std::string& path,
                                                 const SsdOptions& options) {
  SFS_ASSIGN(std::unique_ptr<Ssd> ssd, Ssd::open(path, options));
  if (const FtlKind ftl = ssd->geometry().ftl; ftl != FtlKind::kEmmc)
    return Error{EINVAL,
                 fmt::format("{}: an image of the FTL {}, not of an eMMC", path, name_of(ftl))};
  return std::unique_ptr<EmmcCard>(new EmmcCard(std::move(ssd)));
}

Result<void> EmmcCard::write(uint32_t cmd23, uint64_t page, ConstBytes bytes) {
  const PStreamId stream{emmc::context_id_of(cmd23)};
  return ssd_->write(page, bytes, VStreamId{stream.value}, stream);
}

Result<void> EmmcCard::write_ext_csd(uint8_t index, uint8_t value) {
  if (index != emmc::kExtCsdStreams || value > 1)
    return Error{EINVAL, fmt::format("EXT_CSD[{}] cannot be {}", index, value)};
  with_firmware(*ssd_, [&](emmc::EmmcFirmware& card) { card.set_streams(value == 1); });
  return {};
}

uint8_t EmmcCard::read_ext_csd(uint8_t index) {
  if (index != emmc::kExtCsdStreams) return 0;
  const bool on =
      with_firmware(*ssd_, [](const emmc::EmmcFirmware& card) { return card.streams_enabled(); });
  return on ? 1 : 0;
}

bool EmmcCard::streams_on() {
  return with_firmware(*ssd_, [](const emmc::EmmcFirmware& card) { return card.streams_on(); });
}

uint32_t EmmcCard::blocks_read() {
  return with_firmware(*ssd_, [](const emmc::EmmcFirmware& card) { return card.blocks_read(); });
}

}  // namespace streamfs::ssd
