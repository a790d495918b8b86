/* Ten thousand threads, alive at once, each make a file, hint it, write and read it back.
 * usage: many_threads FOLDER COUNT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char* folder;
static pthread_barrier_t all_here;
static atomic_int failed;

static void* work(void* argument) {
  char path[256];
  unsigned long long life = RWH_WRITE_LIFE_SHORT;
  char byte = 0;
  pthread_barrier_wait(&all_here);
  snprintf(path, sizeof(path), "%s/%ld-journal", folder, (long)argument);
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  const int hinted = (long)argument % 2 == 0 ? fcntl(fd, F_SET_RW_HINT, &life) : 0;
  if (fd < 0 || hinted != 0 || pwrite(fd, "x", 1, 0) != 1 || pread(fd, &byte, 1, 0) != 1 ||
      byte != 'x' || close(fd) != 0) {
    atomic_fetch_add(&failed, 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  folder = argv[1];
  const long count = atol(argv[2]);
  pthread_t* threads = calloc((size_t)count, sizeof(*threads));
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 4 * PTHREAD_STACK_MIN);
  pthread_barrier_init(&all_here, NULL, (unsigned)count);
  for (long i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], &small, work, (void*)i) != 0) return 3;
  }
  for (long i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  printf("%ld threads, %d failed\n", count, atomic_load(&failed));
  return 0;
}
