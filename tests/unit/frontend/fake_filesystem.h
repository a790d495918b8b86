// A data::Filesystem in ordinary memory, for tests of the frontend: it stores what it is given,
// counts what it is asked and keeps no promise about crashes.
// Thread safety: one mutex over everything; push_dirty is called without it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/io_sizes.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/data/gate.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/placement/placement.h"
#include "tests/unit/frontend/fake_placement.h"

namespace streamfs::frontend {

class FakeFilesystem final : public data::Filesystem {
 public:
  FakeFilesystem();
  // ---- What tests look at
  std::atomic<int> writes{0}, writes_that_move_times{0}, lookups{0}, syncs{0}, pushes{0},
      attribute_reads{0};
  std::function<void()> on_fsync = [] {};  // in the thread of the request
  std::atomic<size_t> looked_ahead{0};     // entries asked for
  int scrubs_started = 0, scrubs_stopped = 0;
  data::ScrubStatus scrub;
  IoSizes sizes;
  std::optional<uint64_t> maintained_ms, prepared_ms;
  std::optional<data::ShutdownMode> shut_down_with;
  data::GrowOptions grown_with;
  data::Grown grown;
  void make_data_blocks(uint64_t blocks) {
    meta::Superblock super{};
    super.data_blocks = blocks;
    geometry_.extend(super);
  }
  std::string last_comm() const;
  int64_t references(std::string_view name) const;  // of a name in the root; -1 = no such name
  size_t inodes() const;

  Result<void> unmount() override { return {}; }
  InodeId root() const override { return kRoot; }
  Result<meta::Attributes> lookup(InodeId parent, std::string_view name) override;
  Result<meta::Attributes> create(InodeId parent, std::string_view name, uint32_t mode,
                                  uint64_t rdev, std::string_view symlink_target,
                                  const data::Requester& who) override;
  Result<meta::Attributes> create_unnamed(InodeId parent, uint32_t mode,
                                          const data::Requester& who) override;
  Result<meta::Attributes> link(InodeId target, InodeId parent, std::string_view name) override;
  Result<void> unlink(InodeId parent, std::string_view name) override;
  Result<void> rmdir(InodeId parent, std::string_view name) override;
  Result<void> rename(InodeId from, std::string_view name, InodeId to, std::string_view new_name,
                      uint32_t flags, const std::function<void(InodeId)>& push_dirty,
                      const meta::Caller& caller) override;
  Result<void> read_directory(
      InodeId directory, uint64_t cookie,
      const std::function<bool(const meta::DirectoryEntry&)>& visit) override;
  void look_ahead(InodeId, uint64_t, size_t most) override { looked_ahead += most; }
  void reference(std::span<const InodeId> ids, const meta::Engine::Referenced& found) override;
  void forget(InodeId id, uint64_t count) override;
  Result<meta::Attributes> attributes(InodeId id) override;
  Result<meta::Attributes> set_attributes(InodeId id, const meta::AttributeChange& change) override;
  Result<std::string> read_symlink(InodeId id) override;
  Result<std::string> get_xattr(InodeId id, std::string_view name) override;
  Result<void> set_xattr(InodeId id, std::string_view name, std::string_view value,
                         int flags) override;
  Result<std::vector<std::string>> list_xattr(InodeId id) override;
  Result<void> remove_xattr(InodeId id, std::string_view name) override;
  meta::Space space() override;
  Result<size_t> read(InodeId id, uint64_t offset, Bytes out) override;
  Result<void> write(InodeId id, uint64_t offset, ConstBytes in, meta::WriteTimes times) override;
  Result<void> truncate(InodeId id, uint64_t size) override;
  Result<void> allocate(InodeId id, int mode, uint64_t offset, uint64_t length) override;
  Result<uint64_t> seek(InodeId id, uint64_t offset, int whence) override;
  Result<void> fsync(InodeId id, bool data_only) override;
  Result<void> sync() override;
  Result<data::HintReply> hint_number(InodeId id, uint32_t number) override;
  Result<data::HintReply> hint_name(InodeId id, std::string_view name) override;
  Result<data::HintReply> hint_rw(InodeId id, uint32_t rw_hint) override;
  Result<data::HintReply> hint_clear(InodeId id) override;
  Result<data::HintReply> hint_query(InodeId id) override;
  Result<data::HintReply> find_vstream(std::string_view, uint32_t) override {
    return Error{ENOENT};
  }
  data::HintDevice hint_device() const override { return {}; }
  placement::Placement& placement() override { return placement_; }
  Result<data::Status> status() override;
  Result<data::Grown> grow(const data::GrowOptions& options) override {
    grown_with = options;
    return grown;
  }
  Result<data::MaintenanceRun> maintain(uint64_t milliseconds) override {
    maintained_ms = milliseconds;
    return data::MaintenanceRun{false, 4096, 2, "of a test"};
  }
  Result<data::MaintenanceRun> prepare_poweroff(uint64_t milliseconds) override {
    prepared_ms = milliseconds;
    return data::MaintenanceRun{true, 0, 0, "of a test"};
  }
  Result<data::FreeTrim> trim_free(BlockNo from, uint64_t) override {
    if (from.value >= 100) return data::FreeTrim{8192, std::nullopt};
    return data::FreeTrim{4096, BlockNo{100}};
  }
  std::vector<InodeId> known_to_kernel() override { return {}; }
  Result<void> shut_down(data::ShutdownMode mode) override {
    shut_down_with = mode;
    gate_.close();
    return {};
  }
  data::Gate& gate() override { return gate_; }
  void on_shut_down(std::function<void(InodeId)>) override {}
  Result<void> start_scrub() override {
    ++scrubs_started;
    return {};
  }
  void stop_scrub() override { ++scrubs_stopped; }
  const IoSizes& device_sizes() const override { return sizes; }
  data::ScrubStatus scrub_status() override { return scrub; }
  Result<void> start_trace(const std::string& path) override;
  Result<void> stop_trace() override { return {}; }
  const meta::Geometry& geometry() const override { return geometry_; }

 private:
  static constexpr InodeId kRoot{500};  // not FUSE's 1, so that a forgotten translation shows
  struct Node {
    meta::Attributes attributes;
    int64_t references = 0;
    std::string bytes, symlink, hint;
    std::map<std::string, uint64_t, std::less<>> children;
    std::map<std::string, std::string, std::less<>> xattrs;
  };
  Result<Node*> find(InodeId id) SFS_REQUIRES(mutex_);
  Result<Node*> child(InodeId parent, std::string_view name) SFS_REQUIRES(mutex_);
  Node& make(uint32_t mode, const data::Requester& who) SFS_REQUIRES(mutex_);
  Result<void> drop_name(InodeId parent, std::string_view name) SFS_REQUIRES(mutex_);
  void free_if_unused(InodeId id) SFS_REQUIRES(mutex_);
  Result<data::HintReply> hint(InodeId id, const std::string* name, uint32_t number);

  mutable Mutex mutex_;
  std::map<uint64_t, Node> nodes_ SFS_GUARDED_BY(mutex_);
  uint64_t next_ SFS_GUARDED_BY(mutex_) = 1000;
  std::string last_comm_ SFS_GUARDED_BY(mutex_);
  meta::Geometry geometry_{};
  FakePlacement placement_;
  data::Gate gate_;
};

}  // namespace streamfs::frontend
