/* libstream_sqlite.so: SQLite's temporary files labelled by what SQLite opens them for.
 *
 *   .load libstream_sqlite            then: .open file:app.db?vfs=streamfs
 *   SELECT load_extension('libstream_sqlite');
 *
 * A VFS of the name "streamfs" that is the default one, but that it notes the kind of file
 * (SQLite's open flags) while the default one opens it, and labels the descriptor in the open()
 * that SQLite's unix VFS lets be replaced (xSetSystemCall). So a temporary file is labelled though
 * it is unlinked at once and its name says nothing. "-shm" files come without a kind and are known
 * by their name.
 *
 * Promises: results and errors are the default VFS's; a label that fails is forgotten; the main
 * database is left alone. Any thread: the kind is thread-local. It stays loaded till the process
 * ends. Crash: SQLite's files are as ever. */
#include <fcntl.h>
#include <sqlite3ext.h>
#include <string.h>

#include "libstream/include/libstream.h"

SQLITE_EXTENSION_INIT1

typedef int (*open_function)(const char* path, int flags, int mode);

static sqlite3_vfs shim;
static sqlite3_vfs* below;
static open_function real_open;

static _Thread_local const char* vstream_now __attribute__((tls_model("initial-exec")));

static const struct {
  int flag;
  const char* vstream;
} kKinds[] = {
    {SQLITE_OPEN_MAIN_JOURNAL, "sqlite-journal"},
    {SQLITE_OPEN_SUPER_JOURNAL, "sqlite-super-journal"},
    {SQLITE_OPEN_WAL, "sqlite-wal"},
    {SQLITE_OPEN_SUBJOURNAL, "sqlite-subjournal"},
    {SQLITE_OPEN_TRANSIENT_DB, "sqlite-transient-db"},
    {SQLITE_OPEN_TEMP_DB, "sqlite-temp-db"},
    {SQLITE_OPEN_TEMP_JOURNAL, "sqlite-temp-journal"},
};

static const char* vstream_of(int flags) {
  for (size_t i = 0; i < sizeof(kKinds) / sizeof(kKinds[0]); ++i) {
    if ((flags & kKinds[i].flag) != 0) return kKinds[i].vstream;
  }
  return NULL;
}

static int ends_with(const char* path, const char* ending) {
  const size_t length = strlen(path), wanted = strlen(ending);
  return length >= wanted && strcmp(path + length - wanted, ending) == 0;
}

static int labelling_open(const char* path, int flags, int mode) {
  const int fd = real_open(path, flags, mode);
  const char* name = vstream_now;
  if (name == NULL && ends_with(path, "-shm")) name = "sqlite-shm";
  struct stream_vstream stream;
  if (fd >= 0 && name != NULL && (flags & O_ACCMODE) != O_RDONLY &&
      stream_open(&stream, name) == 0) {
    (void)stream_tag_fd(fd, &stream);
  }
  return fd;
}

static int shim_open(sqlite3_vfs* vfs, sqlite3_filename path, sqlite3_file* file, int flags,
                     int* out_flags) {
  (void)vfs;
  const char* before = vstream_now;
  vstream_now = vstream_of(flags);
  const int result = below->xOpen(below, path, file, flags, out_flags);
  vstream_now = before;
  return result;
}

/* The one below finds its own data through its own pointer, which it is given. */
static int shim_delete(sqlite3_vfs* vfs, const char* path, int sync_directory) {
  (void)vfs;
  return below->xDelete(below, path, sync_directory);
}
static int shim_access(sqlite3_vfs* vfs, const char* path, int flags, int* out) {
  (void)vfs;
  return below->xAccess(below, path, flags, out);
}
static int shim_full_pathname(sqlite3_vfs* vfs, const char* path, int size, char* out) {
  (void)vfs;
  return below->xFullPathname(below, path, size, out);
}

/* Everything else is the default VFS's own function; none of those looks at more of the object than
 * the copy has. */
static int register_shim(sqlite3_vfs* found) {
  sqlite3_syscall_ptr open_call = found->xGetSystemCall(found, "open");
  if (open_call == NULL) return SQLITE_ERROR;
  below = found;
  memcpy(&real_open, &open_call, sizeof(real_open));
  open_function replacement = labelling_open;
  memcpy(&open_call, &replacement, sizeof(open_call));
  const int set = found->xSetSystemCall(found, "open", open_call);
  if (set != SQLITE_OK) return set;
  shim = *found;
  shim.pNext = NULL;
  shim.zName = "streamfs";
  shim.xOpen = shim_open;
  shim.xDelete = shim_delete;
  shim.xAccess = shim_access;
  shim.xFullPathname = shim_full_pathname;
  return sqlite3_vfs_register(&shim, 1);
}

/* The name that SQLite makes of the file's. */
__attribute__((visibility("default"))) int sqlite3_streamsqlite_init(
    sqlite3* db, char** error, const sqlite3_api_routines* routines) {
  (void)db;
  SQLITE_EXTENSION_INIT2(routines);
  if (below != NULL) return SQLITE_OK_LOAD_PERMANENTLY;
  sqlite3_vfs* found = sqlite3_vfs_find(NULL);
  if (found == NULL || found->iVersion < 3 || register_shim(found) != SQLITE_OK) {
    *error = sqlite3_mprintf("libstream_sqlite: the default VFS lets no open() be replaced");
    return SQLITE_ERROR;
  }
  return SQLITE_OK_LOAD_PERMANENTLY;
}
