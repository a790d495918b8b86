/* An example of a placement policy from outside the tree: streams by the size of the request a page
 * came in, 1, 2-3, 4-7, ... pages; copies in a class of their own. See lab/placement/plugin.h.
 *
 *   cc -shared -fPIC -O2 -I <streamfs> -o by_size.so placement_by_size.c
 *   ssd-sim replay TRACE --placement ./by_size.so
 */
#include <stdlib.h>

#include "lab/placement/plugin.h"

struct by_size {
  uint16_t streams;
};

static void* create(const struct streamfs_placement_facts* facts) {
  struct by_size* policy = malloc(sizeof *policy);
  if (facts->streams > 64 || policy == NULL) {
    free(policy);
    return NULL;
  }
  policy->streams = (uint16_t)(facts->streams == 0 ? 6 : facts->streams);
  return policy;
}

static uint16_t host_classes(const void* policy) {
  return ((const struct by_size*)policy)->streams;
}

static uint16_t classes(const void* policy) {
  return (uint16_t)(host_classes(policy) + 1);
}

static uint16_t for_write(void* policy, const struct streamfs_page_write* write, uint64_t clock) {
  uint16_t stream = 0;
  (void)clock;
  for (uint32_t pages = write->request_pages; pages > 1; pages /= 2) ++stream;
  return stream < host_classes(policy) ? stream : (uint16_t)(host_classes(policy) - 1);
}

static uint16_t for_copy(void* policy, uint32_t page, uint16_t source, uint64_t clock) {
  (void)page, (void)source, (void)clock;
  return host_classes(policy);
}

const struct streamfs_placement* streamfs_placement_policy(void) {
  static const struct streamfs_placement by_size = {
      .abi_version = STREAMFS_PLACEMENT_ABI,
      .name = "by-size",
      .create = create,
      .destroy = free,
      .host_classes = host_classes,
      .classes = classes,
      .for_write = for_write,
      .for_copy = for_copy,
  };
  return &by_size;
}
