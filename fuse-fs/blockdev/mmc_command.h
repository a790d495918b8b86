// The eMMC commands that background operations take, as the kernel's MMC_IOC_CMD wants them, and
// what EXT_CSD and a card's status say of them. JEDEC JESD84-B51: 6.6.25 "Background operations",
// 6.6.23 "High priority interrupt", 7.4 "Extended CSD".
// Thread safety: pure functions.
#pragma once

#include <linux/mmc/ioctl.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace streamfs::blockdev::mmc {

inline constexpr size_t kExtCsdBytes = 512;
using ExtCsd = std::array<uint8_t, kExtCsdBytes>;

enum class Hpi : uint8_t { kNone, kByStop, kByStatus };  // CMD12, CMD13

struct BackgroundOperations {
  bool supported = false;
  bool manual = false;     // the host may start them: a bit that can be set once, and is not by us
  bool automatic = false;  // the card starts them by itself
  Hpi hpi = Hpi::kNone;    // how they are interrupted; none where it is not enabled
  uint8_t status = 0;      // 0 none wanted, 1 not critical, 2 they cost speed, 3 critical
  uint32_t hpi_ms = 0;     // how long an interrupt may take
};
BackgroundOperations background_operations(const ExtCsd& ext_csd);

// CMD8. `into` stays alive until the command has been sent.
mmc_ioc_cmd read_ext_csd(ExtCsd& into);
// CMD6: BKOPS_START. Answered at once (R1, no wait for busy): the card is busy afterwards.
mmc_ioc_cmd start_background_operations();
// CMD12 or CMD13 with the HPI bit, to the card of this relative address.
mmc_ioc_cmd interrupt(Hpi hpi, uint16_t card);
// CMD13.
mmc_ioc_cmd read_status(uint16_t card);

// Of the answer to CMD13: whether it is done with whatever kept it busy.
bool is_ready(const mmc_ioc_cmd& answered);

}  // namespace streamfs::blockdev::mmc
