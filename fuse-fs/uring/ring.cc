#include "fuse-fs/uring/ring.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::uring {
namespace {

constexpr unsigned kAtOnce = 16;  // refused requests are sent again, then a millisecond apart
constexpr auto kRefusedLongest = std::chrono::seconds(2);  // each time may take the device's limit
constexpr unsigned kAnswersAtOnce = 32;

// A new ring may be mapped where one was that another thread has just let go, which only the kernel
// orders; this says so to the memory model.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<uint64_t> rings_closed{0};

// The answers come to the thread that asks for them, from Linux 6.1 on.
int set_up(unsigned depth, unsigned flags, io_uring& ring) {
  constexpr unsigned kOfOneThread = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const int error = io_uring_queue_init(depth, &ring, flags | IORING_SETUP_CLAMP | kOfOneThread);
  if (error != -EINVAL) return error;
  return io_uring_queue_init(depth, &ring, flags | IORING_SETUP_CLAMP);
}

}  // namespace

std::string refusal(int error, const std::filesystem::path& proc) {
  int disabled = 0;
  std::ifstream(proc / "sys/kernel/io_uring_disabled") >> disabled;
  if (error == EPERM && disabled > 0)
    return "io_uring is disabled here (sysctl kernel.io_uring_disabled = " +
           std::to_string(disabled) + ")";
  if (error == EPERM) return "a sandbox refuses io_uring";
  return error == ENOSYS ? "no io_uring in this kernel, or a sandbox hides it" : "io_uring_setup";
}

// The ring of one thread. Requests beyond its depth wait in memory.
class ThreadRing {
 public:
  static Result<std::shared_ptr<ThreadRing>> open(unsigned depth, unsigned flags, int file) {
    std::shared_ptr<ThreadRing> ring(new ThreadRing(depth, flags));
    if (const int error = set_up(depth, flags, ring->ring_); error < 0)
      return Error{-error, refusal(-error)};
    ring->is_open_ = true;
    (void)rings_closed.load(std::memory_order_acquire);
    if (file == Ring::kNoFile) return ring;
    if (const int error = io_uring_register_files(&ring->ring_, &file, 1); error < 0)
      return Error{-error, "io_uring_register_files"};
    return ring;
  }
  ~ThreadRing() { close(); }
  ThreadRing(const ThreadRing&) = delete;
  ThreadRing& operator=(const ThreadRing&) = delete;

  // Requires: the ring's thread does nothing with it.
  void close() {
    if (!is_open_.exchange(false)) return;
    SFS_ASSERT(in_flight_ == 0 && waiting_.empty());
    rings_closed.fetch_add(1, std::memory_order_release);
    (void)io_uring_unregister_files(&ring_);  // a thread's own: others' let go a little later
    io_uring_queue_exit(&ring_);
  }
  bool is_open() const { return is_open_; }

  bool supports(int opcode) {
    io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
    const bool yes = probe != nullptr && io_uring_opcode_supported(probe, opcode) != 0;
    io_uring_free_probe(probe);
    return yes;
  }

  void start(std::unique_ptr<Request> request) { waiting_.push_back(std::move(request)); }

  void submit() {
    if (waiting_.empty()) return;
    fill();
    entered(io_uring_submit(&ring_));
  }

  bool drive() {
    if (waiting_.empty() && in_flight_ == 0) return false;
    fill();
    entered(io_uring_submit_and_wait(&ring_, 1));
    take_answers();
    return true;
  }

 private:
  ThreadRing(unsigned depth, unsigned flags)
      : depth_(depth), has_large_answers_((flags & IORING_SETUP_CQE32) != 0) {}

  void fill() {
    for (; !waiting_.empty() && in_flight_ < depth_; waiting_.pop_front()) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) break;
      io_uring_prep_nop(entry);
      waiting_.front()->prepare(*entry);
      io_uring_sqe_set_data(entry, waiting_.front().release());
      ++in_flight_;
    }
  }

  // Requests that could not be submitted now are submitted by the next call to enter.
  static void entered(int result) {
    SFS_ASSERT(result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY);
  }

  void take_answers() {
    std::array<io_uring_cqe*, kAnswersAtOnce> entries{};
    const unsigned count = io_uring_peek_batch_cqe(&ring_, entries.data(), kAnswersAtOnce);
    std::array<std::pair<Request*, Answer>, kAnswersAtOnce> answers{};
    for (unsigned i = 0; i < count; ++i) {
      const io_uring_cqe& entry = *entries.at(i);
      answers.at(i) = {static_cast<Request*>(io_uring_cqe_get_data(&entry)),
                       {entry.res, has_large_answers_ ? entry.big_cqe[0] : 0}};
    }
    io_uring_cq_advance(&ring_, count);
    in_flight_ -= count;
    for (unsigned i = 0; i < count; ++i) complete(answers.at(i).first, answers.at(i).second);
  }

  static bool is_worth_it(Request& request) {
    const auto now = std::chrono::steady_clock::now();
    if (request.refused_++ == 0) request.first_refused_ = now;
    return now - request.first_refused_ < kRefusedLongest;
  }

  void complete(Request* raw, const Answer& answer) {
    std::unique_ptr<Request> request(raw);
    const bool may_be_had = answer.result == -EINTR || answer.result == -EAGAIN;
    const bool again = may_be_had && is_worth_it(*request);
    if (again && request->refused_ > kAtOnce)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (again || !request->completed(answer)) waiting_.push_front(std::move(request));
  }

  const unsigned depth_;
  const bool has_large_answers_;
  io_uring ring_{};
  std::atomic<bool> is_open_{false};
  unsigned in_flight_ = 0;  // the kernel owns so many requests
  std::deque<std::unique_ptr<Request>> waiting_;
};

// The thread rings of one Ring. They are shared, because a thread may outlive the Ring and vice
// versa.
struct ThreadRings {
  Mutex mutex;  // leaf
  std::vector<std::shared_ptr<ThreadRing>> all SFS_GUARDED_BY(mutex);
};

namespace {

// This thread's, of every Ring.
class MyRings {
 public:
  MyRings() = default;
  ~MyRings() {
    while (drive()) {
    }
    for (const Mine& mine : rings_) let_go(mine);
  }
  MyRings(const MyRings&) = delete;
  MyRings& operator=(const MyRings&) = delete;

  std::shared_ptr<ThreadRing> find(const std::shared_ptr<ThreadRings>& of) const {
    for (const Mine& mine : rings_) {
      if (mine.key == of.get() && mine.ring->is_open()) return mine.ring;
    }
    return nullptr;
  }
  void add(const std::shared_ptr<ThreadRings>& of, const std::shared_ptr<ThreadRing>& ring) {
    std::erase_if(rings_, [](const Mine& mine) { return !mine.ring->is_open(); });
    rings_.push_back({of.get(), of, ring});
    const MutexLock lock(of->mutex);
    of->all.push_back(ring);
  }
  void submit() {
    for (const Mine& mine : rings_) {
      if (mine.ring->is_open()) mine.ring->submit();
    }
  }
  bool drive() {
    for (size_t i = 0; i < rings_.size(); ++i) {
      const std::shared_ptr<ThreadRing> ring = rings_[i].ring;
      if (ring->is_open() && ring->drive()) return true;
    }
    return false;
  }

 private:
  struct Mine {
    const ThreadRings* key;  // only compared, and only while its ring is open
    std::weak_ptr<ThreadRings> of;
    std::shared_ptr<ThreadRing> ring;
  };
  static void let_go(const Mine& mine) {
    const auto of = mine.of.lock();
    if (of == nullptr) return;
    const MutexLock lock(of->mutex);
    std::erase(of->all, mine.ring);
    mine.ring->close();
  }
  std::vector<Mine> rings_;
};

MyRings& my_rings() {
  thread_local MyRings rings;
  return rings;
}

}  // namespace

void submit() {
  my_rings().submit();
}

bool drive() {
  return my_rings().drive();
}

Ring::Ring(unsigned depth, unsigned flags, int file)
    : depth_(depth), flags_(flags), file_(file), rings_(std::make_shared<ThreadRings>()) {}

Result<std::unique_ptr<Ring>> Ring::open(unsigned depth, unsigned flags, int file) {
  std::unique_ptr<Ring> ring(new Ring(depth, flags, file));
  SFS_TRY(ring->mine());
  return ring;
}

Ring::~Ring() {
  if (const auto ring = my_rings().find(rings_)) {
    while (ring->drive()) {
    }
  }
  const MutexLock lock(rings_->mutex);
  for (const auto& ring : rings_->all) ring->close();
  rings_->all.clear();
}

Result<std::shared_ptr<ThreadRing>> Ring::mine() {
  if (auto ring = my_rings().find(rings_)) return ring;
  SFS_ASSIGN(auto ring, ThreadRing::open(depth_, flags_, file_));
  my_rings().add(rings_, ring);
  return ring;
}

bool Ring::supports(int opcode) {
  const auto ring = mine();
  return ring.ok() && (*ring)->supports(opcode);
}

bool Ring::is_to_be_had() {
  return mine().ok();
}

void Ring::start(std::unique_ptr<Request> request) {
  const auto ring = mine();
  if (ring.ok()) return (*ring)->start(std::move(request));
  while (!request->completed({-ring.error().code})) {
  }
}

}  // namespace streamfs::uring
