#include "fuse-fs/blockdev/nvme_device.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/query.h"
#include "fuse-fs/nvme/structures.h"
#include "fuse-fs/uring/ring.h"

namespace streamfs::blockdev {
namespace {

constexpr int kTakesMost = 100;  // bound on tries to enable streams while resets disable them
// Bounds on the tries of one command. kSendsMost is Linux's max_retries. While a controller is
// reset, no command reaches it; the kernel's block layer would keep its commands until then, and
// kSendsWithoutPath tries keep a command of this class for half a minute.
constexpr int kSendsMost = 6, kSendsWithoutPath = 40;
// If a controller hangs, each command is cancelled only after a minute.
constexpr std::chrono::seconds kSendsLongest{35};

// Returns the pause before a command is sent again: 1, 4, 16, 64, 256 ms, then a second each.
std::chrono::milliseconds pause_after(int sent) {
  constexpr int kDoublingsMost = 10;
  return std::chrono::milliseconds(int64_t{1} << std::min(2 * (sent - 1), kDoublingsMost));
}

// Returns whether the command was cancelled by a reset, or there is no path to the controller.
bool is_cut_off(const Error& error) {
  return error.code == EINTR || error.code == ENOLINK;
}

// Returns whether the command was cut off, or refused for a state that passes.
bool passes(const Error& error) {
  return is_cut_off(error) || error.code == EAGAIN;
}

bool may_be_sent_again(const Result<uint32_t>& result, const NvmeDevice::Sends& sends) {
  if (result.ok() || !passes(result.error())) return false;
  if (sends.count >= kSendsMost && std::chrono::steady_clock::now() - sends.begun > kSendsLongest)
    return false;
  return sends.count < (is_cut_off(result.error()) ? kSendsWithoutPath : kSendsMost);
}

// Returns whether a reset has disabled the streams again or cancelled the command.
bool reset_meanwhile(const Error& error) {
  return error.code == EINVAL || passes(error);
}

// Waits for one answer, and completes the requests on this thread's rings meanwhile.
class Answer {
 public:
  nvme::Done taker() {
    return [this](Result<uint32_t> result) {
      const MutexLock lock(mutex_);
      result_ = std::move(result);
      there_.notify_all();  // under the lock: the waiter may destroy this right after
    };
  }
  Result<uint32_t> wait() {
    while (!is_there() && uring::drive()) {
    }
    const MutexLock lock(mutex_);
    while (!result_) there_.wait(mutex_);
    return std::move(*result_);
  }

 private:
  bool is_there() {
    const MutexLock lock(mutex_);
    return result_.has_value();
  }

  Mutex mutex_;  // leaf
  CondVar there_;
  std::optional<Result<uint32_t>> result_ SFS_GUARDED_BY(mutex_);
};

// Returns the result of the last try. A state that has not passed by then is an error of the
// device.
Result<uint32_t> after_last_try(const Result<uint32_t>& result) {
  if (result.ok() || !passes(result.error())) return result;
  return Error{EIO, result.error().context};
}

bool any(std::span<const uint8_t> bytes) {
  return std::ranges::any_of(bytes, [](uint8_t each) { return each != 0; });
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t each : bytes) text += fmt::format("{:02x}", each);
  return text;
}

std::string identity_of(const nvme::Discovery& found, uint32_t nsid) {
  if (any(found.space.nguid)) return "nvme:" + hex(found.space.nguid);
  if (any(found.space.eui64)) return "nvme:" + hex(found.space.eui64);
  return fmt::format("nvme:{}:{}", nvme::text_of(found.controller.serial), nsid);
}

// Returns the number of LBAs that are best deallocated, or written, together.
uint64_t erase_unit_lbas(const nvme::Discovery& found) {
  const uint64_t lba = found.space.lba_bytes();
  if (found.fdp) return found.fdp->reclaim_unit_bytes / lba;
  if (found.streams) return uint64_t{found.streams->sws} * found.streams->sgs;
  return found.space.has_granularities() ? uint64_t{found.space.npdg} + 1 : 1;
}

// Base specification 2.1, figure 286: when the controller copies data, it may mix data of initially
// isolated handles, but not of persistently isolated ones.
std::string gc_mode_of(const nvme::Discovery& found) {
  if (!found.fdp || found.fdp->types.empty()) return "";
  return std::ranges::all_of(found.fdp->types, [](uint8_t type) { return type == 2; }) ? "own"
                                                                                       : "shared";
}

}  // namespace

// A read or write in flight, in as many commands as it needs.
struct NvmeDevice::Request {
  explicit Request(Completion when_done) : done(std::move(when_done)) {}
  void finish_one(const Result<uint32_t>& result) {
    if (!result.ok()) {
      const MutexLock lock(mutex);
      if (first_error.ok()) first_error = result.error();
    }
    if (left.fetch_sub(1) != 1) return;
    Result<void> all;
    {
      const MutexLock lock(mutex);
      all = std::move(first_error);
    }
    done(std::move(all));
  }

  std::atomic<uint64_t> left{1};  // commands, and one while more are issued
  Mutex mutex;                    // leaf
  Result<void> first_error SFS_GUARDED_BY(mutex);
  Completion done;
};

Result<std::unique_ptr<NvmeDevice>> NvmeDevice::open(std::unique_ptr<nvme::Controller> controller,
                                                     const OpenOptions& options) {
  SFS_ASSIGN(nvme::Discovery found, nvme::discover(*controller));
  if (found.space.write_protected() && !options.read_only)
    return Error{EROFS, controller->path() +
                            " is write protected (namespace attribute); mount it "
                            "read-only"};
  std::unique_ptr<NvmeDevice> device(
      new NvmeDevice(std::move(controller), std::move(found), options.read_only));
  device->take_placements();
  device->describe();
  return device;
}

NvmeDevice::NvmeDevice(std::unique_ptr<nvme::Controller> controller, nvme::Discovery found,
                       bool read_only)
    : found_(std::move(found)), read_only_(read_only), controller_(std::move(controller)) {}

NvmeDevice::~NvmeDevice() {
  (void)end_idle();
  if (streams_held_ > 0) nvme::give_streams_back(*controller_);
}

// Enables and allocates placements, which stay until this object goes. Without them there is one
// pStream.
void NvmeDevice::take_placements() {
  placements_ = {{}};
  if (found_.mechanism == nvme::Mechanism::kFdp) {
    for (size_t i = 1; i < found_.handles.size(); ++i)
      placements_.push_back({nvme::directive::kPlacement, found_.handles[i].placement});
    return;
  }
  if (found_.mechanism == nvme::Mechanism::kStreams && read_only_) {
    found_.why = "Streams are enabled only where it is opened for writing";
    return;
  }
  if (found_.mechanism == nvme::Mechanism::kStreams) {
    const auto held = nvme::take_streams(*controller_, nvme::kMostPStreams - 1);
    if (held.ok()) {
      for (uint16_t id = 1; id <= *held; ++id)
        placements_.push_back({nvme::directive::kStreams, id});
      streams_held_ = *held;
      if (auto parameters = nvme::streams_parameters(*controller_); parameters.ok())
        found_.streams = *parameters;
      return;
    }
    found_.why = held.error().message();
  }
  if (!found_.why.empty()) spdlog::warn("{}; everything goes to one stream", found_.why);
}

void NvmeDevice::describe() {
  lbas_per_block_ = kBlockSize / found_.space.lba_bytes();
  const uint64_t most =
      std::min({found_.controller.max_transfer_bytes(), controller_->max_transfer_bytes(),
                nvme::kMaxTransferLbas * found_.space.lba_bytes()});
  max_transfer_bytes_ = std::max(round_down(most, kBlockSize), kBlockSize);
  written_at_open_ = nvme::written(*controller_, found_.controller, found_.space.endgid);
  const uint64_t trim_lbas = std::lcm(found_.trim.granularity, found_.trim.alignment);
  info_ = {"nvme",
           controller_->path(),
           identity_of(found_, controller_->nsid()),
           found_.space.nsze / lbas_per_block_,
           static_cast<uint16_t>(placements_.size()),
           std::max<uint64_t>(erase_unit_lbas(found_) / lbas_per_block_, 1),
           !found_.controller.has_volatile_cache(),
           nvme::name_of(placements_.size() > 1 || read_only_ ? found_.mechanism
                                                              : nvme::Mechanism::kNone),
           found_.why,
           controller_->transport(),
           gc_mode_of(found_)};
  info_.trim_unit_blocks = std::max<uint64_t>(trim_lbas / lbas_per_block_, 1);
  info_.in_process = controller_->in_process();
}

Placement NvmeDevice::placement(PStreamId stream) const {
  return stream.value < placements_.size() ? placements_[stream.value] : Placement{};
}

// Moves a handle to a new reclaim unit. If nothing was written through the handle since the last
// update, its unit has nothing that new data would be mixed with. It is kept then, because leaving
// a unit costs the part that is not written.
Result<void> NvmeDevice::update_handle(const Placement& known) {
  const size_t index = stream_of(known);
  const uint64_t written = stream_bytes_.at(index);
  if (updated_at_.at(index).exchange(written) == written) return {};
  std::vector<std::byte> data = nvme::encode_placements(std::array{known.dspec});
  SFS_TRY(send(nvme::ruh_update(controller_->nsid(), 1), data));
  return {};
}

Result<void> NvmeDevice::release(PStreamId stream) {
  const Placement known = placement(stream);
  if (read_only_) return {};
  if (known.dtype == nvme::directive::kPlacement) return update_handle(known);
  if (known.dtype != nvme::directive::kStreams) return {};
  SFS_TRY(controller_->admin(nvme::directive_send(controller_->nsid(), nvme::directive::kStreams,
                                                  nvme::directive::kReleaseId, known.dspec),
                             {}));
  return {};
}

Result<void> NvmeDevice::check(BlockNo first, uint64_t blocks) const {
  return check_range(first, blocks, info_.capacity_blocks);
}

// Checks that this is still the same namespace. A controller that does not answer now proves
// nothing.
Result<void> NvmeDevice::check_same() {
  const auto now = nvme::namespace_identity(*controller_);
  if (!now) return {};
  const nvme::NamespaceIdentity& then = found_.space;
  const bool same = now->lba_bytes() == then.lba_bytes() && now->nsze >= then.nsze &&
                    now->metadata_bytes() == then.metadata_bytes() &&
                    now->protection() == then.protection() && now->nguid == then.nguid &&
                    now->eui64 == then.eui64;
  if (same) return {};
  return Error{EMEDIUMTYPE, info_.path + " was formatted or replaced while it was in use"};
}

void NvmeDevice::write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) {
  if (read_only_) return done(Error{EROFS, "the data device is open for reading"});
  if (auto fits = check(first, bytes.size() / kBlockSize); !fits.ok()) return done(fits.error());
  if (streams_lost_.load(std::memory_order_relaxed)) take_streams_again();
  const Placement placement = names_lost_stream(tag.placement) ? Placement{} : tag.placement;
  written_bytes_ += bytes.size();
  stream_bytes_.at(stream_of(placement)) += bytes.size();
  // A write's buffer is only read.
  const Bytes data(const_cast<std::byte*>(bytes.data()), bytes.size());
  transfer(first, data, placement, true, std::move(done));
}

void NvmeDevice::read(BlockNo first, Bytes bytes, Completion done) {
  if (auto fits = check(first, bytes.size() / kBlockSize); !fits.ok()) return done(fits.error());
  read_bytes_ += bytes.size();
  transfer(first, bytes, {}, false, std::move(done));
}

void NvmeDevice::transfer(BlockNo first, Bytes bytes, const Placement& placement, bool is_write,
                          Completion done) {
  const auto request = std::make_shared<Request>(std::move(done));
  nvme::Transfer part{first.value * lbas_per_block_, 0, placement.dtype, placement.dspec};
  while (!bytes.empty()) {
    const Bytes data = bytes.first(std::min<uint64_t>(bytes.size(), max_transfer_bytes_));
    part.lbas = static_cast<uint32_t>(data.size() / found_.space.lba_bytes());
    const uint32_t nsid = controller_->nsid();
    ++request->left;
    start(request, is_write ? nvme::write(nsid, part) : nvme::read(nsid, part), data, {});
    part.first_lba += part.lbas;
    bytes = bytes.subspan(data.size());
  }
  request->finish_one(uint32_t{0});
}

// The half minute is counted for the controller, not for each command. After it, commands are given
// up at once until one is answered. Otherwise a caller that sends one command after the other would
// wait half a minute for each.
bool NvmeDevice::is_sent_again(const Result<uint32_t>& result, const Sends& sends) {
  using Clock = std::chrono::steady_clock;
  if (result.ok() || !is_cut_off(result.error())) {
    if (cut_off_since_.load(std::memory_order_relaxed) != Clock::time_point::max())
      cut_off_since_ = Clock::time_point::max();
    return may_be_sent_again(result, sends);
  }
  Clock::time_point since = Clock::time_point::max();
  if (cut_off_since_.compare_exchange_strong(since, sends.begun)) since = sends.begun;
  return sends.begun - since <= kSendsLongest && may_be_sent_again(result, sends);
}

void NvmeDevice::start(const std::shared_ptr<Request>& request, const nvme::Command& command,
                       Bytes data, Sends sends) {
  const auto done = [this, request, command, data, sends](const Result<uint32_t>& result) {
    if (is_sent_again(result, sends))
      return start(request, command, data, sends.next());  // after a pause
    const nvme::Transfer refused = nvme::transfer_of(command);
    if (result.ok() || result.error().code != EINVAL || command.opcode != nvme::opcode::kWrite ||
        refused.directive_type != nvme::directive::kStreams)
      return request->finish_one(after_last_try(result));
    streams_lost_ = true;
    count_on_none({refused.directive_type, refused.specific}, data.size());
    const nvme::Transfer plain{refused.first_lba, refused.lbas};
    start(request, nvme::write(command.nsid, plain), data, {});
  };
  pass(command, data, sends, done);
}

// Passes a command to the controller, at once or after the pause that is due.
void NvmeDevice::pass(const nvme::Command& command, Bytes data, const Sends& sends,
                      nvme::Done done) {
  if (sends.count == 1) return controller_->start(command, data, std::move(done));
  controller_->start_after(pause_after(sends.count - 1), command, data, std::move(done));
}

Result<uint32_t> NvmeDevice::send(const nvme::Command& command, Bytes data) {
  for (Sends sends;; sends = sends.next()) {
    Answer answer;
    pass(command, data, sends, answer.taker());
    const Result<uint32_t> result = answer.wait();
    if (!is_sent_again(result, sends)) return after_last_try(result);
  }
}

bool NvmeDevice::names_lost_stream(const Placement& placement) const {
  return placement.dtype == nvme::directive::kStreams && placement.dspec > streams_held_;
}

// Takes the streams again after a reset. Threads that write meanwhile go on without streams.
void NvmeDevice::take_streams_again() {
  if (!taking_.try_lock()) return;
  if (streams_lost_) take_lost_streams();
  taking_.unlock();
}

void NvmeDevice::take_lost_streams() {
  const auto wanted = static_cast<uint16_t>(placements_.size() - 1);
  const auto held = nvme::take_streams(*controller_, wanted);
  streams_held_ = held.ok() ? *held : uint16_t{0};
  if (!held.ok() && reset_meanwhile(held.error()) && ++times_refused_ < kTakesMost)
    return;  // the next writer tries again
  times_refused_ = 0;
  streams_lost_ = false;
  if (held.ok()) {
    spdlog::warn("{} was reset: {} of {} streams taken again", info_.path, *held, wanted);
  } else {
    spdlog::warn("{} was reset, and its streams are lost: {}", info_.path, held.error().message());
  }
}

size_t NvmeDevice::stream_of(const Placement& placement) const {
  const auto known = std::ranges::find(placements_, placement);
  return known == placements_.end() ? 0 : static_cast<size_t>(known - placements_.begin());
}

// Moves bytes that were counted on a stream but were written without one.
void NvmeDevice::count_on_none(const Placement& placement, uint64_t bytes) {
  stream_bytes_.at(stream_of(placement)) -= bytes;
  stream_bytes_.front() += bytes;
}

Result<void> NvmeDevice::flush() {
  ++flushes_;
  if (read_only_ || info_.flush_is_free) return {};
  SFS_TRY(send(nvme::flush(controller_->nsid()), {}));
  return {};
}

Result<void> NvmeDevice::trim(BlockNo first, uint64_t count) {
  if (read_only_) return Error{EROFS, "the data device is open for reading"};
  SFS_TRY(check(first, count));
  trimmed_bytes_ += count * kBlockSize;
  if (!found_.controller.can_deallocate()) return {};
  nvme::LbaRun run =
      nvme::whole_units({first.value * lbas_per_block_, count * lbas_per_block_}, found_.trim);
  while (run.lbas > 0) {
    const std::vector<nvme::Range> ranges = nvme::next_ranges(run, found_.trim);
    std::vector<std::byte> data = nvme::encode_ranges(ranges);
    SFS_TRY(send(nvme::deallocate(controller_->nsid(), ranges.size()), data));
  }
  return {};
}

Result<DeviceStats> NvmeDevice::stats() {
  DeviceStats stats;
  stats.written_bytes = written_bytes_;
  stats.read_bytes = read_bytes_;
  stats.trimmed_bytes = trimmed_bytes_;
  stats.flushes = flushes_;
  stats.inside_known = false;
  for (size_t i = 0; i < placements_.size(); ++i) stats.streams.push_back({stream_bytes_.at(i), 0});
  const nvme::Written now = nvme::written(*controller_, found_.controller, found_.space.endgid);
  const nvme::Written since = now.since(written_at_open_);
  stats.nand_known = since.waf().has_value();
  if (stats.nand_known) stats.nand_bytes = since.media_bytes;
  return stats;
}

IdleCapabilities NvmeDevice::capabilities() const {
  if (read_only_ || !found_.controller.can_be_permissive()) return {};
  return {IdleMeans::kByItself, "background work in low-power states (NOPPM)"};
}

Result<IdleWork> NvmeDevice::begin_idle(const IdleLimits&) {
  if (capabilities().means == IdleMeans::kNone || permitted_) return IdleWork{};
  SFS_ASSIGN(const uint32_t before,
             controller_->admin(nvme::get_features(nvme::kFeatureNonOperational, 0), {}));
  if ((before & nvme::kPermissive) != 0) return IdleWork{};
  SFS_TRY(
      controller_->admin(nvme::set_features(nvme::kFeatureNonOperational, nvme::kPermissive), {}));
  permitted_ = true;
  return IdleWork{};
}

Result<void> NvmeDevice::end_idle() {
  if (!std::exchange(permitted_, false)) return {};
  SFS_TRY(controller_->admin(nvme::set_features(nvme::kFeatureNonOperational, 0), {}));
  return {};
}

Result<std::optional<bool>> NvmeDevice::honoured() {
  std::vector<uint16_t> used;
  for (size_t i = 1; i < placements_.size(); ++i)
    if (stream_bytes_.at(i) > 0) used.push_back(placements_[i].dspec);
  if (used.empty()) return std::optional<bool>();
  const bool fdp = found_.mechanism == nvme::Mechanism::kFdp;
  SFS_ASSIGN(const bool yes, fdp ? handles_honoured(used) : streams_honoured(used));
  return std::optional(yes);
}

Result<bool> NvmeDevice::streams_honoured(const std::vector<uint16_t>& used) {
  SFS_ASSIGN(const std::vector<uint16_t> open,
             nvme::open_streams(*controller_, max_transfer_bytes_));
  return std::ranges::all_of(
      used, [&](uint16_t id) { return std::ranges::find(open, id) != open.end(); });
}

// Returns whether handles are honoured: a handle that was written has less left in its reclaim unit
// than at open, or another unit. After a whole number of units it looks unwritten; the next call
// tells then.
Result<bool> NvmeDevice::handles_honoured(const std::vector<uint16_t>& used) {
  SFS_ASSIGN(const std::vector<nvme::RuhStatus> now, nvme::ruh_statuses(*controller_));
  return std::ranges::all_of(used, [&](uint16_t placement) {
    const auto is_it = [&](const nvme::RuhStatus& each) { return each.placement == placement; };
    const auto before = std::ranges::find_if(found_.handles, is_it);
    const auto after = std::ranges::find_if(now, is_it);
    return after != now.end() && before->writable_lbas != after->writable_lbas;
  });
}

}  // namespace streamfs::blockdev
