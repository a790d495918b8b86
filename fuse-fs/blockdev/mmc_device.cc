#include "fuse-fs/blockdev/mmc_device.h"

#include <fcntl.h>
#include <linux/mmc/ioctl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/block_maintenance.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/emulated_device.h"
#include "fuse-fs/blockdev/file_device.h"
#include "fuse-fs/blockdev/identity.h"
#include "fuse-fs/blockdev/mmc_command.h"
#include "ssd/emmc_card.h"
#include "ssd/geometry.h"
#include "ssd/ssd.h"

namespace streamfs::blockdev {
namespace {

constexpr size_t kCommandBytes = 256 << 10;  // of one CMD25; the kernel allows MMC_IOC_MAX_BYTES
static_assert(kCommandBytes <= MMC_IOC_MAX_BYTES);
constexpr uint64_t kByteAddressed = 2 * kGiB;  // cards up to this size are addressed by bytes
constexpr uint64_t kSectorsOfABlock = kBlockSize / mmc::kSectorBytes;
constexpr std::chrono::seconds kBusyAfterWriteMost{10};
constexpr std::chrono::microseconds kAskAgain{200};

int send_to_kernel(int fd, std::span<mmc_ioc_cmd> sequence) {
  std::vector<std::byte> memory(sizeof(mmc_ioc_multi_cmd) + sequence.size_bytes());
  auto* all = reinterpret_cast<mmc_ioc_multi_cmd*>(memory.data());
  all->num_of_cmds = sequence.size();
  std::memcpy(all->cmds, sequence.data(), sequence.size_bytes());
  const int error = ioctl(fd, MMC_IOC_MULTI_CMD, all) == 0 ? 0 : errno;
  std::memcpy(sequence.data(), all->cmds, sequence.size_bytes());
  return error;
}

// A second open file of the card, for commands; FileDevice does not show its own.
class CommandFile {
 public:
  explicit CommandFile(int fd) : fd_(fd) {}
  ~CommandFile() { close(fd_); }
  CommandFile(const CommandFile&) = delete;
  CommandFile& operator=(const CommandFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

Result<MmcDevice::Card> real_card(const std::string& path, const struct stat& st,
                                  const OpenOptions& options) {
  const std::optional<uint16_t> address = card_address(sys_directory(st.st_rdev));
  if (!address) return Error{EINVAL, path + " is no whole eMMC card: commands need /dev/mmcblkN"};
  SFS_ASSIGN(std::unique_ptr<FileDevice> device, FileDevice::open(path, options));
  if (device->info().capacity_blocks * kBlockSize <= kByteAddressed)
    return Error{EINVAL, path + ": an eMMC card of at most 2 GiB is addressed by bytes"};
  const int fd = ::open(path.c_str(), (options.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
  if (fd < 0) return Error{errno, "cannot open " + path + " for commands"};
  BlockMaintenance* maintenance = device->maintenance();
  return MmcDevice::Card{
      .beneath = std::move(device),
      .send = [file = std::make_shared<CommandFile>(fd)](
                  auto sequence) { return send_to_kernel(file->fd(), sequence); },
      .address = *address,
      .maintenance = maintenance,
      .read_only = options.read_only};
}

Result<MmcDevice::Card> emulated_card(const std::string& path, const OpenOptions& options) {
  SFS_ASSIGN(std::unique_ptr<EmulatedDevice> device, EmulatedDevice::open(path, options));
  if (device->ssd().geometry().ftl != ssd::FtlKind::kEmmc)
    return Error{EINVAL, path + " is no image of an eMMC (ssd-sim create --ftl emmc)"};
  const auto card = std::make_shared<ssd::EmmcCard>(device->ssd());
  return MmcDevice::Card{.beneath = std::move(device),
                         .send = [card](auto sequence) { return card->execute(sequence); },
                         .address = ssd::EmmcCard::kAddress,
                         .maintenance = nullptr,
                         .read_only = options.read_only};
}

}  // namespace

Result<std::unique_ptr<MmcDevice>> MmcDevice::open(const std::string& path,
                                                   const OpenOptions& options) {
  struct stat st{};
  if (stat(path.c_str(), &st) != 0) return Error{errno, "cannot open " + path};
  if (S_ISBLK(st.st_mode)) {
    if (options.real_time > 0)
      return Error{EINVAL, "real_time is for emulated SSDs, and " + path + " is none"};
    SFS_ASSIGN(Card card, real_card(path, st, options));
    return make(std::move(card));
  }
  SFS_ASSIGN(Card card, emulated_card(path, options));
  return make(std::move(card));
}

Result<std::unique_ptr<MmcDevice>> MmcDevice::make(Card card) {
  std::unique_ptr<MmcDevice> made(new MmcDevice(std::move(card)));
  SFS_TRY(made->open_contexts());
  return made;
}

MmcDevice::MmcDevice(Card card)
    : ForwardingDevice(*card.beneath), card_(std::move(card)), info_(card_.beneath->info()) {}

// A card that is open for reading keeps its contexts closed.
Result<void> MmcDevice::open_contexts() {
  const MutexLock lock(turn_);
  const RequestUnderWay request(card_.maintenance);
  mmc::ExtCsd bytes{};
  mmc_ioc_cmd read = mmc::read_ext_csd(bytes);
  SFS_TRY(send({&read, 1}));
  const uint8_t contexts = mmc::contexts_of(bytes);
  if (contexts == 0) return Error{EOPNOTSUPP, info_.path + ": an eMMC card without contexts"};
  info_.pstream_count = static_cast<uint16_t>(contexts + 1);
  info_.flush_is_free = info_.flush_is_free && info_.kind == "emulated";  // it closes contexts
  info_.mechanism = info_.kind == "emulated" ? "emulated eMMC contexts" : "eMMC contexts";
  for (uint8_t context = 1; context <= contexts && !card_.read_only; ++context) {
    SFS_TRY(renew(context));
  }
  return {};
}

// A context may be open, because another process was killed, or closed, because the card was reset.
Result<void> MmcDevice::renew(uint8_t context) {
  std::array<mmc_ioc_cmd, 2> sequence = {mmc::close_context(context), mmc::open_context(context)};
  return send(sequence);
}

MmcDevice::~MmcDevice() {
  const MutexLock lock(turn_);
  const RequestUnderWay request(card_.maintenance);
  for (size_t context = 1; context < info_.pstream_count && !card_.read_only; ++context) {
    mmc_ioc_cmd command = mmc::close_context(static_cast<uint8_t>(context));
    (void)send({&command, 1});
  }
}

Result<void> MmcDevice::send(std::span<mmc_ioc_cmd> sequence) {
  if (const int error = card_.send(sequence); error != 0) return Error{error, "eMMC: a command"};
  if (std::ranges::any_of(sequence, mmc::is_error))
    return Error{EIO, "eMMC: the card refused a command"};
  return {};
}

Result<void> MmcDevice::await_ready() {
  const auto until = std::chrono::steady_clock::now() + kBusyAfterWriteMost;
  for (;;) {
    mmc_ioc_cmd status = mmc::read_status(card_.address);
    SFS_TRY(send({&status, 1}));
    if (mmc::is_ready(status)) return {};
    if (std::chrono::steady_clock::now() >= until)
      return Error{ETIMEDOUT, "eMMC: the card is busy after a write"};
    std::this_thread::sleep_for(kAskAgain);
  }
}

Result<void> MmcDevice::write_some(uint64_t first_sector, ConstBytes bytes, uint8_t context) {
  const auto sectors = static_cast<uint16_t>(bytes.size() / mmc::kSectorBytes);
  std::array<mmc_ioc_cmd, 2> sequence = {
      mmc::set_block_count(sectors, context),
      mmc::write_sectors(static_cast<uint32_t>(first_sector), bytes)};
  written_.at(context) = true;
  SFS_TRY(send(sequence));
  return await_ready();
}

void MmcDevice::write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) {
  const auto context = static_cast<uint8_t>(tag.placement.dspec);
  if (tag.placement.dtype != ssd::kStreamsDirective || tag.placement.dspec >= info_.pstream_count ||
      context == 0)
    return beneath_.write(first, bytes, tag, std::move(done));
  if (card_.read_only) return done(Error{EROFS, "the data device is open for reading"});
  if (auto fits = check_range(first, bytes.size() / kBlockSize, info_.capacity_blocks); !fits.ok())
    return done(fits.error());
  Result<void> result;
  {
    const MutexLock lock(turn_);
    const RequestUnderWay request(card_.maintenance);
    for (size_t at = 0; at < bytes.size() && result.ok(); at += kCommandBytes) {
      const uint64_t sector = first.value * kSectorsOfABlock + at / mmc::kSectorBytes;
      const ConstBytes some = bytes.subspan(at, std::min(kCommandBytes, bytes.size() - at));
      result = write_some(sector, some, context);
      if (!result.ok() && renew(context).ok()) result = write_some(sector, some, context);
    }
  }
  if (result.ok()) context_bytes_.at(context) += bytes.size();
  done(std::move(result));
}

Result<void> MmcDevice::close_written() {
  const MutexLock lock(turn_);
  const RequestUnderWay request(card_.maintenance);
  Result<void> result;
  for (size_t context = 1; context < info_.pstream_count; ++context) {
    if (!written_.at(context)) continue;
    Result<void> renewed = renew(static_cast<uint8_t>(context));
    written_.at(context) = !renewed.ok();
    if (result.ok()) result = std::move(renewed);
  }
  return result;
}

Result<void> MmcDevice::flush() {
  Result<void> closed = close_written();
  SFS_TRY(beneath_.flush());
  return closed;
}

Result<IdleWork> MmcDevice::prepare_poweroff(const IdleLimits& limits) {
  SFS_TRY(flush());
  return beneath_.prepare_poweroff(limits);
}

Result<DeviceStats> MmcDevice::stats() {
  SFS_ASSIGN(DeviceStats stats, beneath_.stats());
  if (info_.kind == "emulated") return stats;  // the SSD has counted all writes
  for (size_t context = 1; context < info_.pstream_count; ++context) {
    const uint64_t bytes = context_bytes_.at(context);
    stats.written_bytes += bytes;
    stats.streams.push_back({bytes, 0});
  }
  return stats;
}

Placement MmcDevice::placement(PStreamId stream) const {
  if (stream == kDefaultPStream || stream.value >= info_.pstream_count) return {};
  return {ssd::kStreamsDirective, stream.value};
}

}  // namespace streamfs::blockdev
