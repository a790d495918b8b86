/* A preload library for test_rocksdb.py: F_SET_RW_HINT fails as where nobody knows it, so that what
 * is seen is what a program without hints would show. Stands before libstream_preload.so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#ifndef F_SET_RW_HINT
#define F_SET_RW_HINT 1036
#endif

static int pass_on(const char* name, int fd, int command, void* argument) {
  void* symbol = dlsym(RTLD_NEXT, name);
  int (*real)(int, int, ...) = 0;
  memcpy(&real, &symbol, sizeof(real));
  if (command != F_SET_RW_HINT) return real(fd, command, argument);
  errno = EINVAL;
  return -1;
}

#define DEFINE(name)                              \
  int name(int fd, int command, ...) {            \
    va_list arguments;                            \
    va_start(arguments, command);                 \
    void* argument = va_arg(arguments, void*);    \
    va_end(arguments);                            \
    return pass_on(#name, fd, command, argument); \
  }
DEFINE(fcntl)
DEFINE(fcntl64)
