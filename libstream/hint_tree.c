/* Labelling what is there already. nftw(3) walks; it passes no context, hence the thread-local. */
#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <string.h>

#include "libstream/include/libstream.h"

enum { kOpenFoldersMax = 16 };

struct walk {
  const struct stream_vstream* stream;
  uint64_t labelled;
  int first_error; /* or STREAM_NOT_STREAMFS */
};

static _Thread_local struct walk* current __attribute__((tls_model("initial-exec")));

static int label_one(const char* path, const struct stat* status, int kind, struct FTW* place) {
  (void)place;
  int result = 0;
  if (kind == FTW_F && S_ISREG(status->st_mode)) {
    result = stream_tag_path(path, current->stream);
  } else if (kind == FTW_D) {
    result = stream_tag_directory(path, current->stream);
  } else if (kind == FTW_DNR || kind == FTW_NS) {
    result = -EACCES;
  } else {
    return 0;
  }
  current->labelled += result == STREAM_HONOURED;
  if (current->first_error == 0) current->first_error = result;
  return result == STREAM_NOT_STREAMFS; /* nothing below is, either */
}

int stream_tag_tree(const char* path, const struct stream_vstream* stream, uint64_t* labelled) {
  const int errno_before = errno;
  struct walk walk = {stream, 0, 0};
  struct walk* outer = current;
  current = &walk;
  if (nftw(path, label_one, kOpenFoldersMax, FTW_PHYS | FTW_MOUNT) < 0 && walk.first_error == 0) {
    walk.first_error = -errno;
  }
  current = outer;
  if (labelled != NULL) *labelled = walk.labelled;
  errno = errno_before;
  return walk.first_error;
}
