// What programs ask of the data device, counted: who works in idle time looks here.
//
// Thread safety: any thread. A watcher arms with watch() and is called by the thread of the next
// request, once; it must not block. Crash: memory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace streamfs::data {

class Activity {
 public:
  // While one lives, programs are not idle.
  class Request {
   public:
    explicit Request(Activity& activity) : activity_(activity) { activity_.begin(); }
    ~Request() { activity_.ended_.fetch_add(1, std::memory_order_release); }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    Activity& activity_;
  };

  void touch() { const Request request(*this); }
  uint64_t begun() const { return begun_.load(); }
  // In this order: what began in between makes it look busy, never idle.
  bool under_way() const {
    const uint64_t ended = ended_.load(std::memory_order_acquire);
    return begun() != ended;
  }

  void on_request(std::function<void()> wake) { wake_ = std::move(wake); }  // before any thread
  // Whoever arms looks at begun() afterwards: a request is seen there or wakes the watcher.
  void watch(bool armed) { watched_.store(armed); }

 private:
  void begin() {
    begun_.fetch_add(1);
    if (watched_.load() && watched_.exchange(false)) wake_();
  }

  std::atomic<uint64_t> begun_{0}, ended_{0};
  std::atomic<bool> watched_{false};
  std::function<void()> wake_;
};

}  // namespace streamfs::data
