#include "tests/crash/joint_cuts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/mix.h"
#include "base/types.h"
#include "pmem/recording_region.h"

namespace streamfs::joint {
namespace cuts {

using MetaEvent = pmem::RecordingRegion::Event;
using pmem::StoreModel;

struct Store {
  uint64_t offset, value;
};

// Stores to one line that are not yet certain, oldest first.
struct Line {
  std::vector<Store> stores;
  size_t flushed = 0;  // the next fence makes this many certain
};

// The smallest piece that a cut treats by itself: a line or word of META, or a block of DATA.
struct Part {
  std::vector<Store> stores;             // META: version n has the first n stores
  uint64_t block = 0;                    // DATA
  std::vector<const Content*> contents;  // DATA: version n is contents[n - 1]
  bool of_data() const { return !contents.empty(); }
  size_t versions() const { return of_data() ? contents.size() : stores.size(); }
};

// The version that each part keeps; 0: the certain one.
using Choice = std::vector<size_t>;

uint64_t word_hash(uint64_t offset, uint64_t value) {
  return mix64(offset * 0x9e3779b97f4a7c15 ^ mix64(value));
}

class Cutter {
 public:
  Cutter(const Record& record, const CutOptions& options,
         const std::function<bool(const State&)>& visit)
      : record_(record),
        options_(options),
        visit_(visit),
        meta_(record.meta),
        data_(record.data),
        random_(options.seed) {}

  void run() {
    auto next = record_.data_events.begin();
    const auto data_until = [&](size_t position) {
      for (; next != record_.data_events.end() && next->after <= position && !stopped_; ++next)
        step(*next);
    };
    for (; at_ < record_.meta_events.size() && !stopped_; ++at_) {
      data_until(at_);
      if (!stopped_) step(record_.meta_events[at_]);
    }
    data_until(at_);
    if (!stopped_) cut("the end");
  }

 private:
  void step(const MetaEvent& event) {
    switch (event.kind) {
      case MetaEvent::Kind::kStore:
        lines_[event.offset / kLineSize].stores.push_back({event.offset, event.value});
        return;
      case MetaEvent::Kind::kFlush: {
        const auto found = lines_.find(event.offset / kLineSize);
        if (found != lines_.end()) found->second.flushed = found->second.stores.size();
        return;
      }
      case MetaEvent::Kind::kFence:
        cut("a fence");
        settle_meta();
        return;
      case MetaEvent::Kind::kMark:
        ++marks_;
        cut("the end of a call");
        return;
    }
  }

  void step(const MemoryDevice::Event& event) {
    if (event.kind == MemoryDevice::Event::Kind::kWrite) {
      if (!data_since_cut_) cut("a write");
      data_since_cut_ = true;
      blocks_[event.block].push_back(event.content);
      return;
    }
    cut("a flush");
    for (const auto& [block, contents] : blocks_) data_.put(block, contents.back());
    blocks_.clear();
  }

  void settle_meta() {
    for (auto line = lines_.begin(); line != lines_.end();) {
      auto& [stores, flushed] = line->second;
      for (size_t i = 0; i < flushed; ++i) put(stores[i]);
      stores.erase(stores.begin(), stores.begin() + static_cast<std::ptrdiff_t>(flushed));
      flushed = 0;
      line = stores.empty() ? lines_.erase(line) : std::next(line);
    }
  }

  void put(const Store& store) {
    uint64_t& word = meta_[store.offset / kWordSize];
    hash_ ^= word_hash(store.offset, word) ^ word_hash(store.offset, store.value);
    word = store.value;
  }

  std::vector<Part> parts(StoreModel model) const {
    std::vector<Part> all;
    for (const auto& [number, line] : lines_) {
      if (model == StoreModel::kLinePrefix) {
        all.push_back({line.stores, 0, {}});
        continue;
      }
      std::map<uint64_t, std::vector<Store>> words;
      for (const Store& store : line.stores) words[store.offset].push_back(store);
      for (auto& [offset, versions] : words) all.push_back({std::move(versions), 0, {}});
    }
    for (const auto& [block, contents] : blocks_) all.push_back({{}, block, contents});
    return all;
  }

  void cut(const char* where) {
    data_since_cut_ = false;
    if (marks_ < options_.from_mark) return;
    where_ = where;
    for (const StoreModel model : {StoreModel::kLinePrefix, StoreModel::kAnyWord}) {
      parts_ = parts(model);
      size_t combinations = 1;
      for (const Part& part : parts_)
        combinations =
            std::min(combinations * (part.versions() + 1), options_.exhaustive_up_to + 1);
      combinations <= options_.exhaustive_up_to ? visit_all() : visit_some();
    }
  }

  void visit_all() {
    Choice choice(parts_.size());
    do visit(choice);
    while (!stopped_ && next(choice));
    visit_torn();
  }

  bool next(Choice& choice) const {
    for (size_t i = 0; i < choice.size(); ++i) {
      if (++choice[i] <= parts_[i].versions()) return true;
      choice[i] = 0;
    }
    return false;
  }

  // Returns the choice that keeps the newest version of META's parts, of DATA's, or of both.
  Choice newest(bool meta, bool data) const {
    Choice choice;
    for (const Part& part : parts_)
      choice.push_back((part.of_data() ? data : meta) ? part.versions() : 0);
    return choice;
  }

  // Visits the states in which META (`of_data`: DATA) keeps exactly one part or loses exactly one,
  // while the other of the two keeps all of its parts or none.
  void visit_singles(bool of_data) {
    std::vector<size_t> of_half;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].of_data() == of_data) of_half.push_back(i);
    }
    const size_t most = options_.singles_max;
    if (of_half.size() > most) std::ranges::shuffle(of_half, random_);
    if (of_half.size() > most) of_half.resize(most);
    for (const size_t i : of_half) {
      for (const bool other : {false, true}) {
        for (const bool rest : {false, true}) {
          Choice choice = of_data ? newest(other, rest) : newest(rest, other);
          choice[i] = rest ? 0 : parts_[i].versions();
          visit(choice);
        }
      }
    }
  }

  void visit_some() {
    for (const bool meta : {false, true})
      for (const bool data : {false, true}) visit(newest(meta, data));
    visit_singles(false);
    visit_singles(true);
    for (size_t sample = 0; sample < options_.samples && !stopped_; ++sample) visit(drawn(sample));
    if (options_.copy_bytes > 0) visit_copies();
    visit_torn();
  }

  // Returns a random choice for META and DATA, or for one of them while the other keeps everything.
  Choice drawn(size_t sample) {
    Choice choice = newest(sample % 4 == 1, sample % 4 == 2);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const bool fixed = sample % 4 == 1 ? !parts_[i].of_data() : parts_[i].of_data();
      if (sample % 4 != 0 && sample % 4 != 3 && fixed) continue;
      choice[i] = random_() % (parts_[i].versions() + 1);
    }
    return choice;
  }

  // Gives one copy of META all of its stores or none. The other copy gets the opposite in the first
  // four samples and a random choice in later ones.
  void visit_copies() {
    for (size_t sample = 0; sample < options_.samples && !stopped_; ++sample) {
      const bool first_is_fixed = sample % 2 == 0, whole = sample % 4 < 2;
      Choice choice = newest(true, sample % 8 < 4);
      for (size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].of_data()) continue;
        const bool first = parts_[i].stores.front().offset < options_.copy_bytes;
        const size_t most = parts_[i].versions();
        const size_t other = sample < 4 ? (whole ? 0 : most) : random_() % (most + 1);
        choice[i] = first == first_is_fixed ? (whole ? most : 0) : other;
      }
      visit(choice);
    }
  }

  // Blocks keep sectors of two versions.
  void visit_torn() {
    if (blocks_.empty()) return;
    for (size_t sample = 0; sample < 2 && !stopped_; ++sample) {
      Choice choice = newest(sample == 1, true);
      for (size_t i = 0; i < parts_.size(); ++i)
        if (sample == 0 || parts_[i].of_data()) choice[i] = random_() % (parts_[i].versions() + 1);
      visit(choice, Torn::kYes);
    }
  }

  enum class Torn : uint8_t { kNo, kYes };

  const Content* content(const Part& part, size_t version, Torn torn) {
    const Content* const certain = data_.at(part.block);
    if (torn == Torn::kNo) return version == 0 ? certain : part.contents[version - 1];
    const Content* const newest = part.contents.back();
    const Content* const rest =
        version == part.contents.size() || version == 0 ? certain : part.contents[version - 1];
    return torn_.torn(newest, rest, static_cast<uint8_t>(random_()));
  }

  void visit(const Choice& choice, Torn torn = Torn::kNo) {
    if (stopped_) return;
    std::vector<Store> undo;
    const uint64_t hash = hash_;
    BlockTable data = data_;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].of_data()) {
        data.put(parts_[i].block, content(parts_[i], choice[i], torn));
        continue;
      }
      for (size_t k = 0; k < choice[i]; ++k) {
        const Store& store = parts_[i].stores[k];
        undo.push_back({store.offset, meta_[store.offset / kWordSize]});
        put(store);
      }
    }
    stopped_ = !visit_({meta_, data, marks_, hash_, [&] { return describe(choice, torn); }});
    std::ranges::for_each(undo.rbegin(), undo.rend(), [&](const Store& store) {
      meta_[store.offset / kWordSize] = store.value;
    });
    hash_ = hash;
  }

  std::string describe(const Choice& choice, Torn torn) const {
    std::string text = "cut at event " + std::to_string(at_) + " of META (" + where_ + "), after " +
                       std::to_string(marks_) + " calls; lost:";
    for (size_t i = 0; i < parts_.size() && text.size() < 600; ++i) {
      const Part& part = parts_[i];
      if (choice[i] == part.versions()) continue;
      text += part.of_data() ? " block " + std::to_string(part.block)
                             : " " + std::to_string(part.stores[choice[i]].offset);
    }
    return text + (torn == Torn::kYes ? "; blocks are torn" : "");
  }

  const Record& record_;
  const CutOptions& options_;
  const std::function<bool(const State&)>& visit_;
  std::vector<uint64_t> meta_;  // certain
  BlockTable data_;             // certain
  uint64_t hash_ = 0;           // of what differs in META from the record's beginning
  std::map<uint64_t, Line> lines_;
  std::map<uint64_t, std::vector<const Content*>> blocks_;
  std::vector<Part> parts_;  // of the cut
  Contents torn_;
  std::mt19937_64 random_;
  const char* where_ = "";
  size_t marks_ = 0, at_ = 0;
  bool data_since_cut_ = false, stopped_ = false;
};

}  // namespace cuts

void each_state(const Record& record, const CutOptions& options,
                const std::function<bool(const State&)>& visit) {
  cuts::Cutter(record, options, visit).run();
}

}  // namespace streamfs::joint
