#include "lab/placement/full_history_logistic.h"

#include <cstdint>
#include <utility>

#include "lab/placement/policy.h"
#include "learning/lifetime_model.h"
#include "learning/request.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::lab {

ssd::FrontierId FullHistoryLogistic::for_write(const PageWrite& write, uint64_t) {
  end_trim();
  address_[write.page] = write.address;
  const learning::Request request{.page = write.address,
                                  .pages = 1,
                                  .whole_pages = write.request_pages,
                                  .offset = write.place_in_request(),
                                  .vstream = write.vstream};
  ssd::FrontierId found = 0;
  model_.write(request, [&](float lifetime, bool follows) {
    found = static_cast<ssd::FrontierId>(classes_.place(lifetime, follows));
  });
  return found;
}

void FullHistoryLogistic::trimmed(ssd::Lpn page, uint64_t) {
  const uint32_t address = address_[page];
  if (trim_pages_ > 0 && address != trim_first_ + trim_pages_) end_trim();
  if (trim_pages_++ == 0) trim_first_ = address;
}

void FullHistoryLogistic::end_trim() {
  if (trim_pages_ > 0) model_.trim(trim_first_, std::exchange(trim_pages_, 0));
}

}  // namespace streamfs::lab
