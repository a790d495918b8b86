// Encodes the eMMC commands for background operations and contexts in the form of the kernel's
// MMC_IOC_CMD, and decodes EXT_CSD and the card's status. JEDEC JESD84-B51: 6.6.25 "Background
// operations", 6.6.23 "High priority interrupt", 6.6.27 "Context Management", 7.4 "Extended CSD".
// Thread safety: pure functions.
#pragma once

#include <linux/mmc/ioctl.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace streamfs::blockdev::mmc {

inline constexpr size_t kExtCsdBytes = 512;
using ExtCsd = std::array<uint8_t, kExtCsdBytes>;

enum class Hpi : uint8_t { kNone, kByStop, kByStatus };  // CMD12, CMD13

struct BackgroundOperations {
  bool supported = false;
  bool manual = false;     // the host may start them: a write-once bit that streamfs never sets
  bool automatic = false;  // the card starts them by itself
  Hpi hpi = Hpi::kNone;    // how they are interrupted; kNone if that is not enabled
  uint8_t status = 0;      // 0 none needed, 1 not critical, 2 performance impacted, 3 critical
  uint32_t hpi_ms = 0;     // the longest time an interrupt takes, by the card's word
};
BackgroundOperations background_operations(const ExtCsd& ext_csd);

// CMD8. Requires: `into` stays alive until the command has been sent.
mmc_ioc_cmd read_ext_csd(ExtCsd& into);
// CMD6: BKOPS_START. The answer comes at once (R1); the card stays busy after it.
mmc_ioc_cmd start_background_operations();
// CMD12 or CMD13 with the HPI bit. `card`: its relative address. Requires: `hpi` is not kNone.
mmc_ioc_cmd interrupt(Hpi hpi, uint16_t card);
// CMD13.
mmc_ioc_cmd read_status(uint16_t card);

inline constexpr uint32_t kSectorBytes = 512;
inline constexpr uint8_t kMostContexts = 15;

// Returns the largest context id of the card; 0: it has no contexts.
uint8_t contexts_of(const ExtCsd& ext_csd);
// CMD6: CONTEXT_CONF of the context, 1 to 15. An open context takes writes; it is no large unit,
// and its reliability mode is the normal one.
mmc_ioc_cmd open_context(uint8_t context);
mmc_ioc_cmd close_context(uint8_t context);
// CMD23: the number of sectors of the next CMD25 and its context.
mmc_ioc_cmd set_block_count(uint16_t sectors, uint8_t context);
// CMD25 of whole sectors, to cards that are addressed by sectors. Requires: `bytes` stays alive
// until the command has been sent.
mmc_ioc_cmd write_sectors(uint32_t first, ConstBytes bytes);

// Returns whether the answer (R1) has an error bit.
bool is_error(const mmc_ioc_cmd& answered);
// Returns whether the answer to CMD13 shows a card that is ready for data.
bool is_ready(const mmc_ioc_cmd& answered);

}  // namespace streamfs::blockdev::mmc
