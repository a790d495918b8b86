// An emulated SSD (ssd/ssd.h) as an NVMe controller with one namespace, at the level of commands:
// identify, directives, FDP, log pages, reads and writes. NvmeDevice drives it as a real device.
//
// Streams: the host chooses identifiers. An open stream holds a stream of the emulated device. At
// most as many are open as the namespace has allocated (without an allocation, as are free). If
// that many are open, the stream opened first loses its place to the new one, which goes on in the
// same open block. Streams work only while enabled. reset() disables them and releases their
// resources.
//
// FDP: there is one reclaim group. Each stream of the emulated device is a reclaim unit handle, and
// an erase block is a reclaim unit. The space left in a unit is computed from the bytes that went
// to the stream since the last handle update. A handle update closes the stream's open block, and
// the next write begins another. A write with an unknown placement goes to the first handle. There
// is no log of FDP events.
//
// A read or write that covers a 4 KiB page in part is refused (Invalid Field). A deallocation frees
// whole pages only.
//
// Thread safety: see controller.h. Commands run in the caller's thread. Crash: see ssd.h;
// directives live in memory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/status.h"
#include "fuse-fs/nvme/structures.h"
#include "ssd/ssd.h"

namespace streamfs::blockdev {

// The properties that the emulated controller reports.
struct EmulatedNvme {
  nvme::Mechanism mechanism = nvme::Mechanism::kStreams;
  bool fdp_enabled = true;
  uint32_t lba_bytes = kBlockSize;
  uint16_t metadata_bytes = 0;
  uint8_t protection = 0;
  uint8_t mdts = 5;                // 128 KiB
  uint16_t streams_of_others = 0;  // allocated to other namespaces
  bool ocp_log = true;
  bool write_protected = false;
  bool permissive = false;  // supports the non-operational power state permissive mode
  nvme::CommandSetLimits limits{};
};

class EmulatedController final : public nvme::Controller {
 public:
  // Errors: those of Ssd::open.
  static Result<std::unique_ptr<EmulatedController>> open(const std::string& path,
                                                          const EmulatedNvme& kind,
                                                          const OpenOptions& options);

  const std::string& path() const override { return path_; }
  uint32_t nsid() const override { return 1; }
  const char* transport() const override { return "an emulated controller"; }
  bool in_process() const override { return true; }
  uint64_t max_transfer_bytes() const override { return uint64_t{1} << 20; }
  Result<uint32_t> admin(const nvme::Command& command, Bytes data) override;
  Result<uint32_t> io(const nvme::Command& command, Bytes data) override;
  void start(const nvme::Command& command, Bytes data, nvme::Done done) override;

  // Resets the controller (a controller level reset). Only tests call it: NvmeDevice has to survive
  // a reset, and nvme::Controller has no command for one.
  void reset();

 private:
  struct Stream {
    uint16_t id, slot;  // the host's identifier, the emulated device's stream
  };

  EmulatedController(std::unique_ptr<ssd::Ssd> ssd, const std::string& path,
                     const EmulatedNvme& kind);
  nvme::CompletionEntry do_admin(const nvme::Command& command, Bytes data);
  nvme::CompletionEntry do_io(const nvme::Command& command, Bytes data);

  // Copies `with` from `offset` on into `data`, as far as it fits; fills the rest with zeroes.
  static void answer(Bytes data, ConstBytes with, uint64_t offset = 0);
  nvme::ControllerIdentity controller_identity() const;
  nvme::NamespaceIdentity namespace_identity() const;
  nvme::Status identify(const nvme::Command& command, Bytes data) const;
  nvme::CompletionEntry get_features(const nvme::Command& command) const;
  nvme::Status set_features(const nvme::Command& command);
  nvme::Status get_log_page(const nvme::Command& command, Bytes data);
  std::optional<std::vector<std::byte>> log_page(uint8_t page);
  std::vector<std::byte> fdp_configurations() const;
  std::vector<std::byte> fdp_statistics();
  std::vector<std::byte> smart_log();
  std::vector<std::byte> ocp_log();
  std::vector<std::byte> endurance_log();

  nvme::CompletionEntry directive_receive(const nvme::Command& command, Bytes data);
  nvme::Status directive_send(const nvme::Command& command);
  nvme::Status release(uint16_t id) SFS_REQUIRES(mutex_);
  nvme::CompletionEntry allocate(uint32_t wanted) SFS_REQUIRES(mutex_);
  nvme::StreamsParameters streams_parameters() const SFS_REQUIRES(mutex_);
  std::vector<std::byte> directive_parameters() const SFS_REQUIRES(mutex_);
  uint16_t slot_of(uint16_t id) SFS_REQUIRES(mutex_);
  void disable_streams() SFS_REQUIRES(mutex_);

  // Sets the emulated device's stream for a write, or returns the status that refuses the write.
  nvme::Status place(const nvme::Transfer& transfer, PStreamId& stream);
  nvme::Status write(const nvme::Command& command, Bytes data);
  nvme::Status read(const nvme::Command& command, Bytes data);
  nvme::Status flush();
  nvme::Status deallocate(const nvme::Command& command, Bytes data);
  nvme::Status ruh_status(Bytes data);
  nvme::Status ruh_update(const nvme::Command& command, Bytes data);
  bool covers_pages(uint64_t first_lba, uint64_t lbas) const;
  std::vector<uint64_t> written_lbas();
  std::vector<nvme::RuhStatus> handles() SFS_REQUIRES(mutex_);

  uint64_t lbas_per_page() const { return kBlockSize / kind_.lba_bytes; }
  uint64_t unit_lbas() const { return ssd_->geometry().pages_per_block * lbas_per_page(); }
  bool has(nvme::Mechanism mechanism) const { return kind_.mechanism == mechanism; }
  bool fdp_on() const { return has(nvme::Mechanism::kFdp) && kind_.fdp_enabled; }
  uint16_t max_streams() const;

  const std::unique_ptr<ssd::Ssd> ssd_;
  const std::string path_;
  const EmulatedNvme kind_;
  std::atomic<uint32_t> non_operational_{0};
  Mutex mutex_;  // locked before the Ssd's own
  bool streams_enabled_ SFS_GUARDED_BY(mutex_) = false;
  uint16_t allocated_ SFS_GUARDED_BY(mutex_) = 0;
  std::deque<Stream> open_ SFS_GUARDED_BY(mutex_);           // in order of opening
  std::vector<uint64_t> updated_at_ SFS_GUARDED_BY(mutex_);  // LBAs written before a handle update
};

}  // namespace streamfs::blockdev
