#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/types.h"
#include "pmem/recording_region.h"

namespace streamfs::pmem {
namespace {

using Event = RecordingRegion::Event;

struct Store {
  uint64_t offset, value;
};

// Stores to one line that are not yet certain to be durable, oldest first.
struct Line {
  std::vector<Store> stores;
  size_t flushed = 0;  // the next fence makes this many certain
};

// A unit that reached the media or did not, independently of others: its versions in order. Taking
// 0 of them means that none reached the media.
using Choice = std::vector<Store>;

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27U) * 0x94d049bb133111eb;
  return x ^ x >> 31U;
}
uint64_t word_hash(uint64_t offset, uint64_t value) {
  return mix(offset * 0x9e3779b97f4a7c15 ^ mix(value));
}

class Explorer {
 public:
  Explorer(const std::vector<uint64_t>& initial, const ExploreOptions& options,
           const std::function<bool(const CrashImage&)>& visit)
      : durable_(initial), options_(options), visit_(visit), random_(options.seed) {}

  uint64_t run(const std::vector<Event>& events) {
    for (const Event& event : events) {
      ++at_;
      step(event);
      if (stopped_) return visited_;
    }
    cut("the end");
    return visited_;
  }

 private:
  void step(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kStore:
        pending_[event.offset / kLineSize].stores.push_back({event.offset, event.value});
        return;
      case Event::Kind::kFlush: {
        const auto found = pending_.find(event.offset / kLineSize);
        if (found != pending_.end()) found->second.flushed = found->second.stores.size();
        return;
      }
      case Event::Kind::kFence:
        cut("a fence");
        settle();
        return;
      case Event::Kind::kMark:
        ++marks_;
        cut("an operation's end");
        return;
    }
  }

  void settle() {
    for (auto line = pending_.begin(); line != pending_.end();) {
      auto& [stores, flushed] = line->second;
      for (size_t i = 0; i < flushed; ++i) put(durable_, hash_, stores[i]);
      stores.erase(stores.begin(), stores.begin() + static_cast<std::ptrdiff_t>(flushed));
      flushed = 0;
      line = stores.empty() ? pending_.erase(line) : std::next(line);
    }
  }

  static void put(std::vector<uint64_t>& words, uint64_t& hash, const Store& store) {
    uint64_t& word = words[store.offset / kWordSize];
    hash ^= word_hash(store.offset, word) ^ word_hash(store.offset, store.value);
    word = store.value;
  }

  std::vector<Choice> choices(StoreModel model) const {
    std::vector<Choice> all;
    for (const auto& [line, pending] : pending_) {
      if (model == StoreModel::kLinePrefix) {
        all.push_back(pending.stores);
        continue;
      }
      std::map<uint64_t, Choice> words;
      for (const Store& store : pending.stores) words[store.offset].push_back(store);
      for (auto& [offset, versions] : words) all.push_back(std::move(versions));
    }
    return all;
  }

  void cut(const char* where) {
    if (marks_ < options_.from_mark) return;
    for (const StoreModel model : options_.models) {
      const std::vector<Choice> all = choices(model);
      size_t combinations = 1;
      for (const Choice& choice : all) {
        combinations = std::min(combinations * (choice.size() + 1), options_.exhaustive_up_to + 1);
      }
      std::vector<size_t> taken(all.size());
      if (combinations <= options_.exhaustive_up_to) {
        do visit_one(all, taken, where);
        while (!stopped_ && next(all, taken));
      } else {
        visit_sampled(all, where);
      }
    }
  }

  static bool next(const std::vector<Choice>& all, std::vector<size_t>& taken) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (++taken[i] <= all[i].size()) return true;
      taken[i] = 0;
    }
    return false;
  }

  void visit_sampled(const std::vector<Choice>& all, const char* where) {
    std::vector<size_t> none(all.size());
    std::vector<size_t> every;
    for (const Choice& choice : all) every.push_back(choice.size());
    visit_one(all, none, where);
    visit_one(all, every, where);
    for (size_t i = 0; i < all.size() && !stopped_; ++i) {
      auto taken = none;
      taken[i] = every[i];
      visit_one(all, taken, where);
      taken = every;
      taken[i] = 0;
      visit_one(all, taken, where);
    }
    for (size_t sample = 0; sample < options_.samples && !stopped_; ++sample) {
      auto taken = none;
      for (size_t i = 0; i < all.size(); ++i) taken[i] = random_() % (every[i] + 1);
      visit_one(all, taken, where);
    }
    if (options_.copy_bytes > 0) visit_copies(all, every, where);
  }

  // Gives one copy all stores or none, and the other none, all, or a random choice.
  void visit_copies(const std::vector<Choice>& all, const std::vector<size_t>& every,
                    const char* where) {
    for (size_t sample = 0; sample < options_.samples && !stopped_; ++sample) {
      const bool first_is_whole = sample % 2 == 0, whole = sample % 4 < 2;
      auto taken = every;
      for (size_t i = 0; i < all.size(); ++i) {
        const bool first = all[i].front().offset < options_.copy_bytes;
        const size_t chosen = sample < 4 ? (whole ? 0 : every[i]) : random_() % (every[i] + 1);
        taken[i] = first == first_is_whole ? (whole ? every[i] : 0) : chosen;
      }
      visit_one(all, taken, where);
    }
  }

  void visit_one(const std::vector<Choice>& all, const std::vector<size_t>& taken,
                 const char* where) {
    std::vector<Store> undo;
    uint64_t hash = hash_;
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t k = 0; k < taken[i]; ++k) {
        undo.push_back({all[i][k].offset, durable_[all[i][k].offset / kWordSize]});
        put(durable_, hash, all[i][k]);
      }
    }
    // The same bytes after more operations have to keep other promises, so they are visited again.
    auto& seen = options_.seen != nullptr ? *options_.seen : seen_;
    if (seen.insert(hash ^ mix(marks_)).second) {
      ++visited_;
      stopped_ = !visit_({durable_, marks_, [&] { return describe(all, taken, where); }});
    }
    std::ranges::for_each(undo.rbegin(), undo.rend(), [&](const Store& store) {
      durable_[store.offset / kWordSize] = store.value;
    });
  }

  std::string describe(const std::vector<Choice>& all, const std::vector<size_t>& taken,
                       const char* where) const {
    std::string text = "cut at event " + std::to_string(at_) + " (" + where + "), after " +
                       std::to_string(marks_) + " operations; lost:";
    for (size_t i = 0; i < all.size() && text.size() < 400; ++i) {
      if (taken[i] < all[i].size()) text += " " + std::to_string(all[i][taken[i]].offset);
    }
    return text;
  }

  std::vector<uint64_t> durable_;
  uint64_t hash_ = 0;  // of what differs from the initial words
  std::map<uint64_t, Line> pending_;
  const ExploreOptions& options_;
  const std::function<bool(const CrashImage&)>& visit_;
  std::mt19937_64 random_;
  std::unordered_set<uint64_t> seen_;
  uint64_t visited_ = 0;
  size_t marks_ = 0;
  size_t at_ = 0;
  bool stopped_ = false;
};

}  // namespace

uint64_t each_crash_image(const std::vector<uint64_t>& initial,
                          const std::vector<RecordingRegion::Event>& events,
                          const ExploreOptions& options,
                          const std::function<bool(const CrashImage&)>& visit) {
  return Explorer(initial, options, visit).run(events);
}

}  // namespace streamfs::pmem
