// AutoStream (Yang, Pandurangan, Choi and Balakrishnan, SYSTOR'17) chooses the stream of a write by
// how often its chunk of addresses is written. Both policies are a host's, with `streams` streams;
// in the device, copies have a class of their own. A request counts once for each chunk it touches.
// On a device of 1/scale of the source's size, the chunks and SFR's decay period are 1/scale of the
// source's, but at least one page.
// Memory: some 40 bytes a chunk written. A request takes constant time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <list>
#include <unordered_map>
#include <vector>

#include "lab/placement/policy.h"

namespace streamfs::lab {

class AutoStream : public PlacementPolicy {
 public:
  AutoStream(uint16_t streams, uint32_t chunk_pages)
      : streams_(streams), chunk_pages_(chunk_pages) {}

  uint16_t host_classes() const final { return streams_; }
  uint16_t classes() const final { return static_cast<uint16_t>(streams_ + 1); }
  ssd::FrontierId for_copy(ssd::Lpn, ssd::FrontierId, uint64_t) final { return streams_; }

 protected:
  static uint32_t scaled(uint32_t pages, uint32_t scale) { return std::max(pages / scale, 1u); }
  uint32_t chunk_of(const PageWrite& write) const { return write.address / chunk_pages_; }
  // Returns whether the page is the first of its request in its chunk. The others follow it.
  bool first_in_chunk(const PageWrite& write) const {
    return write.place_in_request() == 0 || write.address % chunk_pages_ == 0;
  }
  // Returns the stream of a chunk: the natural logarithm of its writes, at most the last stream.
  uint16_t stream_for(double writes) const {
    const auto level = static_cast<uint16_t>(std::log(writes));
    return level < streams_ ? level : static_cast<uint16_t>(streams_ - 1);
  }

 private:
  const uint16_t streams_;
  const uint32_t chunk_pages_;
};

// Sequentiality, frequency, recency: chunks have 2 MiB. A write sets n of its chunk to
// ⌊n / 2^⌊Δ / 64 MiB⌋⌋ + 1, where Δ is the data that the host wrote since the chunk's last write.
// Its stream is ⌊ln n⌋. A request that continues the one before it keeps that one's stream.
class AutoStreamSfr final : public AutoStream {
 public:
  AutoStreamSfr(uint16_t streams, uint32_t scale)
      : AutoStream(streams, scaled(512, scale)), decay_pages_(scaled(16384, scale)) {}

  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override {
    if (write.place_in_request() == 0) {
      continues_ = write.address == next_address_;
      next_address_ = write.request_first + write.request_pages;
    }
    if (!first_in_chunk(write)) return stream_;
    const double writes = touch(chunk_of(write), clock);
    if (!continues_) stream_ = stream_for(writes);
    return stream_;
  }

 private:
  struct Chunk {
    double writes = 0;
    uint64_t last = 0;
  };

  double touch(uint32_t index, uint64_t clock) {
    Chunk& chunk = chunks_[index];
    const uint64_t periods = (clock - chunk.last) / decay_pages_;
    chunk.writes = std::floor(chunk.writes * std::exp2(-static_cast<double>(periods))) + 1;
    chunk.last = clock;
    return chunk.writes;
  }

  const uint64_t decay_pages_;
  std::unordered_map<uint32_t, Chunk> chunks_;
  uint32_t next_address_ = UINT32_MAX;  // the page after the last request
  bool continues_ = false;
  ssd::FrontierId stream_ = 0;
};

// Multi-queue: chunks of 1 MiB are in as many LRU queues as there are streams. The clock counts
// writes of chunks. A write moves its chunk to the end of queue ⌊ln n⌋, where n is the number of
// the chunk's writes. The chunk expires after the last rewrite interval of the hottest chunk. At
// each write the head of each queue, if it has expired, falls to the queue below.
class AutoStreamMq final : public AutoStream {
 public:
  AutoStreamMq(uint16_t streams, uint32_t scale)
      : AutoStream(streams, scaled(256, scale)), queues_(streams) {}

  ssd::FrontierId for_write(const PageWrite& write, uint64_t) override {
    if (first_in_chunk(write)) {
      promote(chunk_of(write));
      demote();
    }
    return chunks_[chunk_of(write)].queue;
  }

 private:
  struct Chunk {
    uint64_t writes = 0, last = 0, expires = 0;
    ssd::FrontierId queue = 0;
    std::list<uint32_t>::iterator place;
  };

  void promote(uint32_t index) {
    ++now_;
    Chunk& chunk = chunks_[index];
    if (++chunk.writes == 1) {
      chunk.place = queues_[0].insert(queues_[0].end(), index);
    }
    if (chunk.writes > hottest_writes_) {
      hottest_ = index;
      hottest_writes_ = chunk.writes;
      interval_ = now_ - chunk.last;
    }
    chunk.last = now_;
    chunk.expires = now_ + interval_;
    move(chunk, stream_for(static_cast<double>(chunk.writes)));
  }

  void demote() {
    const auto count = static_cast<ssd::FrontierId>(queues_.size());
    for (ssd::FrontierId queue = 0; queue < count; ++queue) {
      if (queues_[queue].empty()) continue;
      const auto head = queues_[queue].begin();
      Chunk& chunk = chunks_[*head];
      if (chunk.expires >= now_) continue;
      chunk.expires = now_ + interval_;
      if (*head == hottest_ && std::next(head) != queues_[queue].end()) {
        hottest_ = *std::next(head);
        hottest_writes_ = chunks_[hottest_].writes;
      }
      move(chunk, queue == 0 ? queue : static_cast<ssd::FrontierId>(queue - 1));
    }
  }

  void move(Chunk& chunk, ssd::FrontierId queue) {
    queues_[queue].splice(queues_[queue].end(), queues_[chunk.queue], chunk.place);
    chunk.queue = queue;
  }

  std::vector<std::list<uint32_t>> queues_;
  std::unordered_map<uint32_t, Chunk> chunks_;
  uint64_t now_ = 0, interval_ = 0, hottest_writes_ = 0;
  uint32_t hottest_ = UINT32_MAX;
};

}  // namespace streamfs::lab
