#include "fuse-fs/frontend/dispatch.h"

namespace streamfs::frontend {

bool& waiting_forbidden() {
  thread_local bool forbidden = false;
  return forbidden;
}

}  // namespace streamfs::frontend
