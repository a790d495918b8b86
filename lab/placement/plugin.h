/* A placement policy from outside the tree: a shared object that ssd-sim loads with
 * `--placement ./mine.so` (any name with a slash).
 *
 *   cc -shared -fPIC -O2 -I <streamfs> -o mine.so mine.c
 *
 * It exports one function, streamfs_placement_policy(). docs/examples/placement_by_size.c is a
 * whole one. C99, and C++; this header is all that it needs.
 *
 * The clock is host pages written so far. A class is an open block of the device: pages of one
 * class share erase blocks. Calls come from one thread. If a policy answers a class that it did not
 * announce, class 0 is used instead, and the replay ends with an error. A policy must not look at
 * anything but its arguments if runs are to repeat.
 *
 * Versions: any change of these structs is a new STREAMFS_PLACEMENT_ABI, and a policy built for
 * another one is refused; abi_version stays the first field for ever.
 */
#ifndef STREAMFS_LAB_PLACEMENT_PLUGIN_H
#define STREAMFS_LAB_PLACEMENT_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STREAMFS_PLACEMENT_ABI 1u
#define STREAMFS_NEVER UINT64_MAX

/* Facts known before the first write. */
struct streamfs_placement_facts { /* NOLINT(readability-identifier-naming) */
  uint32_t streams;               /* as asked for with --streams; 0: the policy's own choice */
  uint32_t pages;                 /* page numbers are below this */
  uint32_t pages_per_block;
  uint32_t reserved; /* 0 */
  uint64_t peak_live_pages;
  uint64_t writes; /* host pages that will be written */
};

/* A host write of one page (4 KiB). */
struct streamfs_page_write { /* NOLINT(readability-identifier-naming) */
  uint32_t page;             /* numbered by first appearance */
  uint32_t address;          /* where the host has it, in pages, modulo 2^32 */
  uint32_t request_first;    /* address of the first page of its request */
  uint32_t request_pages;    /* pages of its request */
  uint32_t context;          /* of the trace; 0: none */
  uint16_t pstream, vstream;
  uint64_t death;    /* the clock at which it is overwritten or trimmed, STREAMFS_NEVER;
                        only with needs_future, else always STREAMFS_NEVER */
  uint32_t prefill;  /* 1: what the device held before the trace began */
  uint32_t reserved; /* 0 */
};

struct streamfs_placement { /* NOLINT(readability-identifier-naming) */
  uint32_t abi_version;     /* STREAMFS_PLACEMENT_ABI */
  uint32_t needs_future;    /* 1: deaths are wanted; costs a pass over the trace */
  const char* name;

  /* A policy's state; NULL: cannot. destroy is called once for each. */
  void* (*create)(const struct streamfs_placement_facts* facts);
  void (*destroy)(void* policy);

  /* Both are called once, after create. Answers of for_write are below host_classes, all answers
   * below classes; 1 <= host_classes <= classes <= 128. With --host-only, for_copy and collected
   * are not called. */
  uint16_t (*host_classes)(const void* policy);
  uint16_t (*classes)(const void* policy);

  uint16_t (*for_write)(void* policy, const struct streamfs_page_write* write, uint64_t clock);
  /* Garbage collection copies a page out of a block of class `source`; asked once a copy. */
  uint16_t (*for_copy)(void* policy, uint32_t page, uint16_t source, uint64_t clock);

  /* The rest may be NULL. */
  void (*trimmed)(void* policy, uint32_t page, uint64_t clock);
  /* A block of this class, opened at this time, is about to be collected. */
  void (*collected)(void* policy, uint16_t class_of_block, uint64_t opened_at, uint64_t clock);
};

/* The exported symbol. Its result lives as long as the shared object is loaded. */
const struct streamfs_placement* streamfs_placement_policy(void);

#ifdef __cplusplus
}
#endif

#endif
