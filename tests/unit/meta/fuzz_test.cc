// Random operations beside a model in ordinary memory; the two must agree after every reopening,
// and check() must find nothing. A failure prints its seed.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/types.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

struct Node {
  InodeId id;
  bool directory = false;
  std::map<std::string, std::shared_ptr<Node>> children;
  std::weak_ptr<Node> parent;
  uint32_t names = 1;
  uint32_t mode = 0;
  std::map<std::string, std::string> xattrs;
  // Blocks that must be there after a crash, and those that are there now.
  std::map<uint64_t, uint64_t> committed, current;
  uint64_t committed_size = 0, current_size = 0;
};
using NodePtr = std::shared_ptr<Node>;

bool inside(const NodePtr& node, NodePtr at) {
  for (; at; at = at->parent.lock()) {
    if (at == node) return true;
  }
  return false;
}

class Fuzz {
 public:
  explicit Fuzz(uint64_t seed) : random_(seed), root_(std::make_shared<Node>()) {
    root_->directory = true;
    root_->id = fs_.root();
    root_->mode = S_IFDIR | 0755;
    directories_.push_back(root_);
  }

  void run(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFailure(); ++i) {
      step();
      if (below(200) == 0) fs_->journal().checkpoint();
      if (below(300) == 0) reopen();
    }
    reopen();
  }

 private:
  uint64_t below(uint64_t end) {
    return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_);
  }
  std::string name() {
    const uint64_t kind = below(20);
    std::string name = "n" + std::to_string(below(12));
    if (kind == 0) name += std::string(40 + below(210), 'l');
    return name;
  }
  NodePtr directory() { return directories_[below(directories_.size())]; }
  NodePtr file() { return files_.empty() ? nullptr : files_[below(files_.size())]; }

  void step() {
    fs_.clock().advance();
    switch (below(14)) {
      case 0:
      case 1:
      case 2:
        return create(false);
      case 3:
        return create(true);
      case 4:
        return remove();
      case 5:
      case 6:
        return rename(below(5) == 0 ? 2 : below(3) == 0 ? 1 : 0);
      case 7:
        return link();
      case 8:
        return chmod();
      case 9:
        return xattr();
      case 10:
      case 11:
        return write();
      case 12:
        return truncate();
      default:
        return commit();
    }
  }

  void create(bool dir) {
    const NodePtr parent = directory();
    const std::string called = name();
    const uint32_t mode = (dir ? S_IFDIR : S_IFREG) | static_cast<uint32_t>(below(0777));
    const auto made = fs_->create(parent->id, called, node(mode));
    if (parent->children.contains(called)) {
      ASSERT_FALSE(made.ok());
      ASSERT_EQ(made.error().code, EEXIST);
      return;
    }
    ASSERT_TRUE(made.ok()) << made.error().message();
    auto child = std::make_shared<Node>();
    child->id = made->id;
    child->directory = dir;
    child->mode = mode;
    child->parent = parent;
    parent->children[called] = child;
    (dir ? directories_ : files_).push_back(child);
  }

  // The model's half of losing a name; then the engine frees what nobody has.
  void dropped(const NodePtr& node) {
    if (--node->names > 0) return;
    std::erase(directories_, node);
    std::erase(files_, node);
    ASSERT_TRUE(fs_->forget(node->id, 100));
    ASSERT_TRUE(fs_->free_orphan(node->id).ok());
  }

  void remove() {
    const NodePtr parent = directory();
    const std::string called = name();
    const auto found = parent->children.find(called);
    const bool as_directory = below(2) == 0;
    const auto done =
        as_directory ? fs_->rmdir(parent->id, called) : fs_->unlink(parent->id, called);
    int expected = 0;
    if (found == parent->children.end()) {
      expected = ENOENT;
    } else if (as_directory != found->second->directory) {
      expected = as_directory ? ENOTDIR : EISDIR;
    } else if (as_directory && !found->second->children.empty()) {
      expected = ENOTEMPTY;
    }
    ASSERT_EQ(done.ok() ? 0 : done.error().code, expected);
    if (expected != 0) return;
    const NodePtr gone = found->second;
    parent->children.erase(found);
    dropped(gone);
  }

  int rename_error(const NodePtr& from, const std::string& old_name, const NodePtr& to,
                   const std::string& new_name, uint32_t flags) {
    const auto source = from->children.find(old_name);
    const auto target = to->children.find(new_name);
    if (source == from->children.end()) return ENOENT;
    const NodePtr moved = source->second;
    if (moved->directory && inside(moved, to)) return EINVAL;
    const bool exists = target != to->children.end();
    if (flags == 1 && exists) return EEXIST;
    if (flags == 2) {
      if (!exists) return ENOENT;
      return target->second->directory && inside(target->second, from) ? EINVAL : 0;
    }
    if (!exists || target->second == moved) return 0;
    if (moved->directory && !target->second->directory) return ENOTDIR;
    if (!moved->directory && target->second->directory) return EISDIR;
    return target->second->children.empty() ? 0 : ENOTEMPTY;
  }

  void rename(uint32_t flags) {
    const NodePtr from = directory(), to = directory();
    const std::string old_name = name(), new_name = name();
    const int expected = rename_error(from, old_name, to, new_name, flags);
    const auto done = fs_->rename(from->id, old_name, to->id, new_name, flags);
    ASSERT_EQ(done.ok() ? 0 : done.error().code, expected)
        << old_name << " to " << new_name << " flags " << flags;
    if (expected != 0) return;
    const NodePtr moved = from->children[old_name];
    const NodePtr other = to->children.contains(new_name) ? to->children[new_name] : nullptr;
    if (moved == other) return;
    to->children[new_name] = moved;
    moved->parent = to;
    if (flags == 2) {
      from->children[old_name] = other;
      other->parent = from;
      return;
    }
    from->children.erase(old_name);
    if (other) dropped(other);
  }

  void link() {
    const NodePtr target = file(), parent = directory();
    if (!target) return;
    const std::string called = name();
    const auto done = fs_->link(target->id, parent->id, called);
    ASSERT_EQ(done.ok() ? 0 : done.error().code, parent->children.contains(called) ? EEXIST : 0);
    if (!done) return;
    ++target->names;
    parent->children[called] = target;
  }

  void chmod() {
    const NodePtr node = below(2) == 0 ? file() : directory();
    if (!node) return;
    AttributeChange change;
    change.mode = static_cast<uint32_t>(below(0777));
    ASSERT_TRUE(fs_->set_attributes(node->id, change).ok());
    node->mode = (node->mode & S_IFMT) | *change.mode;
  }

  void xattr() {
    const NodePtr node = below(2) == 0 ? file() : directory();
    if (!node) return;
    const std::string called = "user." + std::to_string(below(3));
    const std::string value(below(4) == 0 ? below(9000) : below(40), 'v');
    if (below(4) == 0) {
      ASSERT_EQ(fs_->remove_xattr(node->id, called).ok(), node->xattrs.erase(called) == 1);
    } else {
      ASSERT_TRUE(fs_->set_xattr(node->id, called, value, 0).ok());
      node->xattrs[called] = value;
    }
  }

  void write() {
    const NodePtr node = file();
    if (!node) return;
    const uint64_t first = below(60), count = 1 + below(20);
    fs_.write(node->id, first, count);
    const auto pieces = fs_->map(node->id, FileBlock{first}, count);
    ASSERT_TRUE(pieces.ok());
    for (const Piece& piece : *pieces) {
      ASSERT_FALSE(piece.hole);
      for (uint64_t i = 0; i < piece.length; ++i) {
        node->current[piece.first.value + i] = piece.block.value + i;
      }
    }
    node->current_size = std::max(node->current_size, (first + count) * kBlockSize);
  }

  void truncate() {
    const NodePtr node = file();
    if (!node) return;
    const uint64_t first = below(80);
    if (below(2) == 0) {
      ASSERT_TRUE(fs_->set_size(node->id, first * kBlockSize).ok());
      node->current.erase(node->current.lower_bound(first), node->current.end());
      node->current_size = first * kBlockSize;
    } else {
      const uint64_t count = 1 + below(10);
      ASSERT_TRUE(fs_->remove_range(node->id, FileBlock{first}, count).ok());
      node->current.erase(node->current.lower_bound(first),
                          node->current.lower_bound(first + count));
    }
  }

  void commit() {
    const NodePtr node = file();
    if (node) commit(node);
  }

  void commit(const NodePtr& node) {
    fs_.commit(node->id);
    node->committed = node->current;
    node->committed_size = node->current_size;
  }

  void reopen() {
    const bool clean = below(2) == 0;
    if (clean) {
      for (const NodePtr& node : files_) commit(node);
      fs_.reopen();
    } else {
      fs_.crash();
      for (const NodePtr& node : files_) {
        node->current = node->committed;
        node->current_size = node->committed_size;
      }
    }
    EXPECT_TRUE(fs_->leftover_orphans().empty());
    compare(root_, 0);
    fs_.reopen();  // check() needs an orderly close
  }

  void compare(const NodePtr& node, int depth) {
    ASSERT_LT(depth, 1000);
    const Attributes seen = fs_.attributes(node->id);
    EXPECT_EQ(seen.mode, node->mode);
    for (const auto& [called, value] : node->xattrs) {
      const auto stored = fs_->get_xattr(node->id, called);
      ASSERT_TRUE(stored.ok());
      EXPECT_EQ(*stored, value);
    }
    EXPECT_EQ(fs_->list_xattr(node->id)->size(), node->xattrs.size());
    if (!node->directory) return compare_file(node, seen);
    EXPECT_EQ(fs_.names(node->id).size(), node->children.size());
    for (const auto& [called, child] : node->children) {
      const auto found = fs_->lookup(node->id, called);
      ASSERT_TRUE(found.ok()) << called;
      EXPECT_EQ(found->id, child->id);
      compare(child, depth + 1);
    }
  }

  void compare_file(const NodePtr& node, const Attributes& seen) {
    EXPECT_EQ(seen.size, node->committed_size);
    EXPECT_EQ(seen.nlink, node->names);
    EXPECT_EQ(seen.blocks, node->committed.size());
    std::map<uint64_t, uint64_t> mapped;
    const auto pieces = fs_->map(node->id, FileBlock{0}, 100);
    ASSERT_TRUE(pieces.ok());
    for (const Piece& piece : *pieces) {
      for (uint64_t i = 0; !piece.hole && i < piece.length; ++i) {
        mapped[piece.first.value + i] = piece.block.value + i;
      }
    }
    EXPECT_EQ(mapped, node->committed);
    for (const auto& [at, block] : mapped) {
      uint32_t crc = 0;
      fs_->checksums(BlockNo{block}, {&crc, 1});
      EXPECT_TRUE(crc == block + 1 || crc == 0) << "another block's checksum";
      EXPECT_TRUE(fs_.is_allocated(BlockNo{block}));
    }
  }

  Filesystem fs_;
  std::mt19937_64 random_;
  NodePtr root_;
  std::vector<NodePtr> directories_, files_;
};

class FuzzTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(FuzzTest, EngineAndModelAgreeAfterEveryReopening) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  Fuzz(GetParam()).run(4000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FuzzTest, ::testing::Range<uint64_t>(1, 13));

}  // namespace
}  // namespace streamfs::meta
