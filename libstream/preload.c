#include "libstream/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libstream/rules.h"

#define PRELOAD_NAME(name) #name,
static const char* const kNames[kRealCount] = {PRELOAD_FUNCTIONS(PRELOAD_NAME)};
#undef PRELOAD_NAME

struct preload_at_hand preload_at_hand __attribute__((aligned(64)));

/* initial-exec, as in preload_advise.h. */
static _Thread_local int looking_up __attribute__((tls_model("initial-exec")));

static preload_pointer look_up(enum preload_function function) {
  const int errno_before = errno;
  looking_up = 1;
  void* symbol = dlsym(RTLD_NEXT, kNames[function]);
  looking_up = 0;
  errno = errno_before;
  preload_pointer pointer = NULL;
  memcpy(&pointer, &symbol, sizeof(pointer));
  atomic_store_explicit(&preload_at_hand.reals[function], pointer, memory_order_release);
  return pointer;
}

preload_pointer preload_look_up(enum preload_function function) {
  return looking_up ? NULL : look_up(function);
}

static _Atomic int config_begun;
static struct preload_config config __attribute__((aligned(64)));

/* Copies a variable, because programs rewrite their environment in place. secure_getenv: a
 * privileged program must not be made to write to a file of somebody's choice. */
static void copy_variable(const char* name, char* out, size_t size) {
  const char* value = secure_getenv(name);
  if (value != NULL && strlen(value) < size) strcpy(out, value);
}

static void read_config(void) {
  copy_variable("STREAMFS_VSTREAM", config.vstream, sizeof(config.vstream));
  copy_variable("STREAMFS_EXPLAIN", config.explain, sizeof(config.explain));
  stream_rules_choose(&config.rules, stream_rules_load_all(&config.rules, NULL, NULL));
}

/* Another thread that comes while one reads does without, as before: nobody waits. */
const struct preload_config* preload_read_config(void) {
  if (atomic_exchange(&config_begun, 1) != 0) {
    return atomic_load_explicit(&preload_at_hand.config, memory_order_acquire);
  }
  read_config();
  atomic_store_explicit(&preload_at_hand.config, &config, memory_order_release);
  return &config;
}

/* So that no vfork child and no signal handler ever has to look a symbol up. */
__attribute__((constructor)) static void preload_start(void) {
  for (int function = 0; function < kRealCount; ++function) {
    preload_real((enum preload_function)function);
  }
  preload_config();
}
