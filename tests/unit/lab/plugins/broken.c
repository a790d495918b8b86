/* Placement policies that ssd-sim must refuse, one for each value of BROKEN. */
#include <stddef.h>

#include "lab/placement/plugin.h"

enum { kAnotherAbi = 1, kNoForCopy, kNoClasses, kCannotStart, kWrongAnswer };

static int state;

static void* create(const struct streamfs_placement_facts* facts) {
  (void)facts;
  return BROKEN == kCannotStart ? NULL : &state;
}
static void destroy(void* policy) {
  (void)policy;
}
static uint16_t classes(const void* policy) {
  (void)policy;
  return BROKEN == kNoClasses ? 0 : 2;
}
static uint16_t for_write(void* policy, const struct streamfs_page_write* write, uint64_t clock) {
  (void)policy, (void)write;
  return BROKEN == kWrongAnswer && clock == 1000 ? 7 : 0;
}
static uint16_t for_copy(void* policy, uint32_t page, uint16_t source, uint64_t clock) {
  (void)policy, (void)page, (void)clock;
  return source;
}

const struct streamfs_placement* streamfs_placement_policy(void) {
  static const struct streamfs_placement broken = {
      .abi_version = BROKEN == kAnotherAbi ? 99 : STREAMFS_PLACEMENT_ABI,
      .name = "broken",
      .create = create,
      .destroy = destroy,
      .host_classes = classes,
      .classes = classes,
      .for_write = for_write,
      .for_copy = BROKEN == kNoForCopy ? NULL : for_copy,
  };
  return &broken;
}
