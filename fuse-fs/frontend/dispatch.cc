#include "fuse-fs/frontend/dispatch.h"

#include <functional>
#include <future>
#include <memory>

namespace streamfs::frontend {

bool& waiting_forbidden() {
  thread_local bool forbidden = false;
  return forbidden;
}

void Dispatcher::push(const std::function<void()>& push) {
  // Shared: the pusher may still be inside set_value() when the caller has gone on.
  const auto done = std::make_shared<std::promise<void>>();
  pushers_.post([&push, done] {
    push();
    done->set_value();
  });
  done->get_future().wait();
}

}  // namespace streamfs::frontend
