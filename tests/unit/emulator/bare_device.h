// The FTL alone: a page map on media without data, and what it counts. The victim policy is the
// test's own. Thread safety: none.
#pragma once

#include <type_traits>

#include "emulator/counters.h"
#include "emulator/ftl/page_map.h"
#include "emulator/ftl/router.h"
#include "emulator/geometry.h"
#include "emulator/media/null_media.h"
#include "emulator/policy/victim/greedy.h"

namespace streamfs::emulator {

// A T for this device, whether or not it asks for its geometry.
template <typename T>
T made_for(const Geometry& geometry) {
  if constexpr (std::is_constructible_v<T, const Geometry&>) {
    return T(geometry);
  } else {
    return T();
  }
}

template <typename Victim = Greedy, typename Media = NullMedia, typename Router = StreamRouter>
struct BareDevice {
  BareDevice(const Geometry& geometry, Victim& victim)
      : media(made_for<Media>(geometry)),
        router(made_for<Router>(geometry)),
        ftl(geometry, media, victim, router, counters, live) {}

  Media media;
  Router router;
  Counters counters;
  LiveCounts live;
  PageMap<Media, Victim, Router> ftl;
};

}  // namespace streamfs::emulator
