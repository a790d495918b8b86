#include "tests/fuzz/walk.h"

#include <sys/stat.h>

#include <unordered_set>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::fuzz {
namespace {

constexpr size_t kInodesMax = 128;    // more than the images have, with what operations add
constexpr size_t kEntriesMax = 8192;  // more than their heap has slots

void read_data(meta::Engine& engine, InodeId id) {
  for (const uint64_t from : {uint64_t{0}, uint64_t{40}, meta::kMaxFileBlocks - 4}) {
    const auto pieces = engine.map(id, FileBlock{from}, 40);
    if (!pieces.ok()) continue;
    uint64_t at = from;
    for (const meta::Piece& piece : *pieces) {
      SFS_ASSERT(piece.first.value == at && piece.length > 0);
      at += piece.length;
      if (piece.hole) continue;
      SFS_ASSERT(engine.geometry().valid_block(piece.block.value));
      SFS_ASSERT(piece.length <= engine.geometry().data_blocks() - piece.block.value);
      std::vector<uint32_t> checksums(piece.length);
      engine.checksums(piece.block, checksums);
    }
  }
  (void)engine.seek_data(id, FileBlock{0});
  (void)engine.seek_hole(id, FileBlock{0});
  (void)engine.seek_data(id, FileBlock{7});
}

void read_attributes(meta::Engine& engine, InodeId id) {
  (void)engine.attributes(id);
  (void)engine.read_symlink(id);
  const auto names = engine.list_xattr(id);
  if (names.ok()) {
    for (const std::string& name : *names) (void)engine.get_xattr(id, name);
  }
  (void)engine.verify(id);
}

void read_directory(meta::Engine& engine, InodeId id, std::vector<Found>& found,
                    std::unordered_set<uint64_t>& seen) {
  size_t entries = 0;
  (void)engine.read_directory(id, 0, [&](const meta::DirectoryEntry& entry) {
    SFS_ASSERT(++entries < kEntriesMax);
    if (entry.name == "." || entry.name == "..") return true;
    SFS_ASSERT(!entry.name.empty() && entry.name.size() <= meta::kMaxNameLength);
    if (found.size() < kInodesMax && seen.insert(entry.id.value).second) {
      found.push_back({id, std::string(entry.name), entry.id});
    }
    return true;
  });
}

class Operator {
 public:
  Operator(meta::Engine& engine, pmem::Region& region, std::vector<Found>& found)
      : engine_(engine), region_(region), found_(found) {}

  void run(const Operation& operation) {
    const Found one = found_[operation.which % found_.size()];
    const Found other = found_[operation.other % found_.size()];
    switch (operation.what % 16) {
      case 0:
        return create(one, operation, S_IFREG | 0644);
      case 1:
        return create(one, operation, S_IFDIR | 0755);
      case 2:
        return create(one, operation, S_IFLNK | 0777);
      case 3:
        return link(one, other, operation.how);
      case 4:
        return remove(one);
      case 5:
        return rename(one, other, operation.how);
      case 6:
      case 7:
        return (void)write_some(one.id, operation);
      case 8:
        (void)engine_.set_size(one.id, operation.other * uint64_t{1000});
        return commit(one.id, operation.how);
      case 9:
        if (operation.how >= 128) return hold_blocks(one.id, operation);
        (void)engine_.remove_range(one.id, FileBlock{operation.other % 32U}, operation.how % 32U);
        return commit(one.id, operation.how);
      case 10:
        return set_xattr(one.id, operation);
      case 11:
        return remove_xattrs(one.id);
      case 12:
        return change_attributes(one.id, operation);
      case 13:
        return other_reads(one, operation);
      case 14:
        return trim();
      default:
        return orphans(operation.how);
    }
  }

 private:
  static std::string name(uint8_t how) { return std::string(1 + how, 'n'); }

  void commit(InodeId id, uint8_t how) {
    if (how % 4 != 0) (void)engine_.commit_inode(id, 1);
    (void)engine_.dirty(id);
  }

  void create(const Found& in, const Operation& operation, uint32_t mode) {
    meta::CreateRequest request;
    request.mode = mode;
    request.caller = {1000, 1000, 022};
    const std::string target(1 + operation.other * size_t{5}, 't');
    if (S_ISLNK(mode)) request.symlink_target = target;
    const auto made = operation.other % 8 == 7
                          ? engine_.create_unnamed(in.id, request)
                          : engine_.create(in.id, name(operation.how), request);
    if (made.ok()) found_.push_back({in.id, name(operation.how), made->id});
  }

  void link(const Found& target, const Found& in, uint8_t how) {
    if (engine_.link(target.id, in.id, name(how)).ok()) {
      found_.push_back({in.id, name(how), target.id});
    }
  }

  void remove(const Found& one) {
    auto gone = engine_.unlink(one.parent, one.name);
    if (!gone.ok()) gone = engine_.rmdir(one.parent, one.name);
    if (gone.ok() && engine_.forget(*gone, 1000)) (void)engine_.free_orphan(*gone);
  }

  void rename(const Found& one, const Found& other, uint8_t how) {
    const std::string to = how % 16 < 8 ? other.name : name(how);
    const InodeId in = how % 16 < 8 ? other.parent : other.id;
    const auto done = engine_.rename(one.parent, one.name, in, to, how % 8U);
    if (!done.ok() || !done->replaced) return;
    if (engine_.forget(*done->replaced, 1000)) (void)engine_.free_orphan(*done->replaced);
  }

  Result<void> write_some(InodeId id, const Operation& operation) {
    (void)engine_.drop_capability(id);
    return write_blocks(engine_, id, operation.other % 64U, 1 + operation.how % 16U);
  }

  void hold_blocks(InodeId id, const Operation& operation) {
    const FileBlock first{operation.other % 32U};
    const uint64_t count = operation.how % 16U;
    if (operation.how < 192) return (void)preallocate(engine_, id, first.value, count);
    auto room = engine_.slot_room(2 * count + 1);
    if (room.ok()) (void)engine_.unwrite(id, first, count, *room);
  }

  void set_xattr(InodeId id, const Operation& operation) {
    const std::string value(operation.other * size_t{40}, 'v');
    (void)engine_.set_xattr(id, "user." + name(operation.how % 8), value, 0);
    (void)engine_.set_xattr(id, "system.posix_acl_access", value.substr(0, 44), 0);
  }

  void remove_xattrs(InodeId id) {
    const auto names = engine_.list_xattr(id);
    if (!names.ok()) return;
    for (const std::string& each : *names) (void)engine_.remove_xattr(id, each);
  }

  void change_attributes(InodeId id, const Operation& operation) {
    meta::AttributeChange change;
    change.lazily = operation.how % 4 == 0;
    change.mtime = Timestamp{operation.other, 1};
    if (!change.lazily) change.mode = operation.other;
    if (operation.how % 4 == 1) change.uid = operation.other;
    if (operation.how % 4 == 2) change.vstream = VStreamId{operation.other};
    (void)engine_.set_attributes(id, change);
  }

  void other_reads(const Found& one, const Operation& operation) {
    (void)engine_.lookup(one.parent, one.name);
    (void)engine_.lookup(one.id, "..");
    (void)engine_.read_directory(one.id, operation.other, [](const auto&) { return false; });
    (void)engine_.inodes_after(one.id, 10);
    (void)engine_.space();
    if (operation.how == 0) (void)engine_.load_vstreams();
    engine_.journal().checkpoint();
  }

  // As the trim queue does.
  void trim() {
    engine_.journal().checkpoint();
    engine_.blocks().release_up_to(engine_.journal().watermark());
    meta::Transaction tx(region_);
    std::vector<meta::BlockRun> runs;
    while (runs.size() < 64) {
      const auto run = engine_.blocks().next_trim(64);
      if (!run) break;
      SFS_ASSERT(engine_.geometry().valid_block(run->first.value));
      tx.run(run->first, run->count, meta::RunKind::kTrimmed);
      runs.push_back(*run);
    }
    if (runs.empty() || !engine_.journal().commit(tx).ok()) return;
    for (const meta::BlockRun& run : runs) engine_.blocks().trimmed(run);
  }

  void orphans(uint8_t how) {
    for (const InodeId id : engine_.leftover_orphans()) {
      if (how % 2 != 0) (void)engine_.free_orphan(id);
    }
  }

  meta::Engine& engine_;
  pmem::Region& region_;
  std::vector<Found>& found_;
};

}  // namespace

std::vector<Found> walk(meta::Engine& engine) {
  std::vector<Found> found{{engine.root(), "", engine.root()}};
  std::unordered_set<uint64_t> seen{engine.root().value};
  for (size_t next = 0; next < found.size(); ++next) {
    const Found one = found[next];
    if (!one.name.empty()) (void)engine.lookup(one.parent, one.name);
    read_attributes(engine, one.id);
    read_data(engine, one.id);
    read_directory(engine, one.id, found, seen);
  }
  return found;
}

void operate(meta::Engine& engine, pmem::Region& region, std::vector<Found>& found,
             std::span<const Operation> operations) {
  Operator each(engine, region, found);
  for (const Operation& operation : operations) each.run(operation);
}

}  // namespace streamfs::fuzz
