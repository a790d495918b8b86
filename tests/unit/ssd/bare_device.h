// The FTL alone: a page map on media without data, and what it counts. The victim policy is the
// test's own. Thread safety: none.
#pragma once

#include <type_traits>

#include "ssd/counters.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/media/null_media.h"
#include "ssd/victim/greedy.h"

namespace streamfs::ssd {

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

}  // namespace streamfs::ssd
