#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "base/io_sizes.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/privileges.h"
#include "fuse-fs/frontend/reply.h"

namespace streamfs::frontend {
namespace {

constexpr size_t kReadMax = size_t{1} << 20;
constexpr size_t kReadAlign = 4096;

// Returns this thread's buffer, which is page-aligned so that the device may fill it directly.
Bytes read_buffer(size_t size) {
  struct Aligned {
    size_t size = 0;
    std::unique_ptr<std::byte[], void (*)(std::byte*)> bytes{
        nullptr, [](std::byte* p) { operator delete[](p, std::align_val_t{kReadAlign}); }};
  };
  thread_local Aligned buffer;
  if (buffer.size < size) {
    buffer.size = std::max(round_up(size, kReadAlign), kReadMax);
    buffer.bytes.reset(new (std::align_val_t{kReadAlign}) std::byte[buffer.size]);
  }
  return {buffer.bytes.get(), size};
}

void count_size(fuse_req_t req, IoSizes::Kind kind, size_t bytes) {
  if (IoSizes* sizes = context_of(req).settings.io_sizes) sizes->add(kind, bytes);
}

// Returns where the bytes of a reply to READ go: over io_uring the kernel's buffer for it.
Bytes reply_buffer(fuse_req_t req, size_t size) {
  const std::span<char> payload = ring_payload(req);
  if (size > payload.size()) return read_buffer(size);
  return std::as_writable_bytes(payload.first(size));
}

// Syncs as O_SYNC and O_DSYNC (or RWF_*, or -o sync) ask for. For writes past the page cache the
// kernel leaves that to the server; for writes through it, it sends an FSYNC of its own.
bool syncs(const Context& context, int flags) {
  return context.settings.direct_io && (flags & O_DSYNC) != 0;
}
Result<void> sync_as_opened(Context& context, InodeId id, int flags) {
  if (!syncs(context, flags)) return {};
  const bool data_only = (flags & O_SYNC) != O_SYNC;
  return context.fs().fsync(id, data_only);
}

// Returns whether a write takes setuid and setgid away, as another user's does. The kernel says so
// (HANDLE_KILLPRIV_V2).
bool kills_privileges([[maybe_unused]] const fuse_file_info* file) {
#if FUSE_VERSION >= 317
  return file != nullptr && file->kill_suidgid != 0;
#else
  return false;  // the kernel does it with requests of its own
#endif
}

// Executes a WRITE that the page cache sent. write(2) has returned already, so full_disk.h reports
// an error to the program.
Result<void> write_back(Context& context, InodeId id, uint64_t offset, ConstBytes bytes,
                        meta::WriteTimes times) {
  const auto leaves_hole = [&] {
    const Result<meta::Attributes> now = context.fs().attributes(id);
    return now && offset > now->size;
  };
  Result<void> done;
  if (context.full_disk.is_beyond_loss(id, offset) && leaves_hole())
    done = Error{ENOSPC, "pages before these were dropped"};
  else
    done = context.fs().write(id, offset, bytes, times);
  if (done) context.full_disk.wrote(bytes.size());
  if (!done && done.error().code == ENOSPC) context.full_disk.not_stored(id, offset);
  return done;
}

// Seeks in a file of which the kernel may have dirty pages. The bytes up to the size that the
// server knows count as data, and lseek(2) allows that. Errors: EAGAIN, `from` is at or past that
// size, and only the kernel knows whether data follows.
Result<uint64_t> seek_unpushed(Context& context, InodeId id, uint64_t from, int whence) {
  SFS_ASSIGN(const meta::Attributes now, context.fs().attributes(id));
  if (from >= now.size) return Error{EAGAIN};
  return whence == SEEK_DATA ? from : now.size;
}

}  // namespace

namespace op {

void open(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* file) {
  file->direct_io = 1;
  fuse_reply_open(req, file);
}

void release(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* /*file*/) {
  fuse_reply_err(req, 0);
}

void read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* /*file*/) {
  count_size(req, IoSizes::Kind::kRead, size);
  run(req, [=](Context& c) {
    const Bytes buffer = reply_buffer(req, size);
    const Result<size_t> done = c.fs().read(c.inode(ino), static_cast<uint64_t>(offset), buffer);
    if (!done) return reply_error(req, done.error());
    fuse_reply_buf(req, reinterpret_cast<const char*>(buffer.data()), *done);
  });
}

void write(fuse_req_t req, fuse_ino_t ino, const char* bytes, size_t size, off_t offset,
           fuse_file_info* file) {
  count_size(req, IoSizes::Kind::kWrite, size);
  const bool kill = kills_privileges(file);
  const int flags = file == nullptr ? 0 : file->flags;
  const bool cached = file != nullptr && file->writepage != 0;
  const Context& context = context_of(req);
  const Start start = syncs(context, flags) ? Start::kWorker : Start::kTry;
  run_from(start, req, [=](Context& c) {
    const auto times =
        c.kernel_keeps_times ? meta::WriteTimes::kSetByKernel : meta::WriteTimes::kNow;
    const ConstBytes in = std::as_bytes(std::span(bytes, size));
    const auto from = static_cast<uint64_t>(offset);
    // Comes first, so that no one can run bytes of this caller as the file's owner.
    Result<void> done = kill ? drop_privileges(req, c, c.inode(ino)) : Result<void>();
    if (done) {
      done = cached ? write_back(c, c.inode(ino), from, in, times)
                    : c.fs().write(c.inode(ino), from, in, times);
    }
    if (done) done = sync_as_opened(c, c.inode(ino), flags);
    if (!done) return reply_error(req, done.error());
    fuse_reply_write(req, size);
  });
}

void fsync(fuse_req_t req, fuse_ino_t ino, int datasync, fuse_file_info* /*file*/) {
  run(req, [=](Context& c) { reply_status(req, c.fs().fsync(c.inode(ino), datasync != 0)); });
}

void fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
               fuse_file_info* /*file*/) {
  // The kernel sends an empty SETATTR if it knows of the bits. Root stands for CAP_FSETID.
  const bool kill = fuse_req_ctx(req)->uid != 0;
  run(req, [=](Context& c) {
    Result<void> done = kill ? drop_privileges(req, c, c.inode(ino)) : Result<void>();
    if (done)
      done = c.fs().allocate(c.inode(ino), mode, static_cast<uint64_t>(offset),
                             static_cast<uint64_t>(length));
    reply_status(req, done);
  });
}

// The kernel does not write dirty pages back before an lseek, so a file that is being written would
// seem to be all hole. The request with its queue's last entry cannot push them (dispatch.h).
void lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* /*file*/) {
  run(req, [=](Context& c) {
    const InodeId id = c.inode(ino);
    const auto from = static_cast<uint64_t>(offset);
    const Result<uint64_t> found =
        c.push_dirty(id) ? c.fs().seek(id, from, whence) : seek_unpushed(c, id, from, whence);
    if (!found) return reply_error(req, found.error());
    fuse_reply_lseek(req, static_cast<off_t>(*found));
  });
}

}  // namespace op
}  // namespace streamfs::frontend
