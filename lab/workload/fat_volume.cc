#include "lab/workload/fat_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::lab {
namespace {

constexpr uint32_t kEnd = 0x0fffffff;  // of a chain
constexpr uint32_t kFirst = 2;         // the FAT's number of the first cluster
constexpr uint32_t kLogMagic = 0x34534654;

struct LogHead {
  uint32_t magic, transaction, changes, reserved;
};
struct LogPart {
  uint32_t page;
  uint16_t first, bytes;
};

uint32_t clusters_of(const FatShape& shape) {
  return shape.cluster_pages == 0 ? 0 : shape.pages / shape.cluster_pages;
}

uint32_t fat_pages_of(const FatShape& shape) {
  const uint64_t bytes = (uint64_t{clusters_of(shape)} + kFirst) * sizeof(uint32_t);
  return static_cast<uint32_t>(div_round_up(bytes, shape.page_bytes));
}

}  // namespace

uint32_t FatVolume::metadata_pages(const FatShape& shape) {
  const uint32_t pages = shape.log_pages + 2 * fat_pages_of(shape) + shape.directory_pages;
  return static_cast<uint32_t>(round_up(pages, shape.cluster_pages));
}

Result<FatVolume> FatVolume::make(const FatShape& shape, FatDevice& device) {
  if (shape.cluster_pages == 0 || shape.page_bytes < 512 || shape.log_pages == 0 ||
      shape.directory_pages == 0 || metadata_pages(shape) + shape.cluster_pages > shape.pages)
    return Error{EINVAL, fmt::format("impossible geometry: a FAT volume of {} pages of {} bytes",
                                     shape.pages, shape.page_bytes)};
  return FatVolume(shape, device);
}

FatVolume::FatVolume(const FatShape& shape, FatDevice& device)
    : shape_(shape),
      device_(&device),
      metadata_(size_t{metadata_pages(shape)} * shape.page_bytes),
      fat_((shape.pages - metadata_pages(shape)) / shape.cluster_pages),
      free_clusters_(static_cast<uint32_t>(fat_.size())) {
  const auto slots =
      static_cast<uint32_t>(shape.directory_pages * shape.page_bytes / sizeof(Entry));
  for (uint32_t slot = slots; slot-- > 0;) unused_slots_.push_back(slot);
}

uint32_t FatVolume::fat_pages() const {
  return fat_pages_of(shape_);
}

uint32_t FatVolume::page_of(uint32_t cluster) const {
  return metadata_pages(shape_) + cluster * shape_.cluster_pages;
}

int FatVolume::create(File& file) {
  if (unused_slots_.empty()) return ENOSPC;
  file = static_cast<File>(files_.size());
  files_.push_back({.clusters = {}, .slot = unused_slots_.back()});
  unused_slots_.pop_back();
  set_entry(files_[file], false);
  return commit();
}

int FatVolume::append(File file, uint32_t clusters) {
  if (clusters > free_clusters_) return ENOSPC;
  Open& open = files_[file];
  const size_t before = open.clusters.size();
  for (uint32_t i = 0; i < clusters; ++i) {
    const uint32_t cluster = take_cluster();
    if (!open.clusters.empty()) set_fat(open.clusters.back(), cluster + kFirst);
    set_fat(cluster, kEnd);
    open.clusters.push_back(cluster);
  }
  if (const int error = write_clusters(std::span(open.clusters).subspan(before)); error != 0)
    return error;
  set_entry(open, false);
  return commit();
}

int FatVolume::overwrite(File file, uint32_t first_cluster, uint32_t clusters) {
  const Open& open = files_[file];
  if (const int error = write_clusters(std::span(open.clusters).subspan(first_cluster, clusters));
      error != 0)
    return error;
  set_entry(open, false);
  return commit();
}

int FatVolume::remove(File file, bool trim) {
  Open& open = files_[file];
  set_entry(open, true);
  for (const uint32_t cluster : open.clusters) set_fat(cluster, 0);
  free_clusters_ += static_cast<uint32_t>(open.clusters.size());
  if (const int error = commit(); error != 0) return error;
  for (const uint32_t cluster : open.clusters)
    if (trim) device_->trim(page_of(cluster), shape_.cluster_pages);
  open.clusters.clear();
  unused_slots_.push_back(open.slot);
  return 0;
}

// Takes a free cluster by next fit, as FAT drivers do.
uint32_t FatVolume::take_cluster() {
  while (fat_[next_cluster_ % fat_.size()] != 0) ++next_cluster_;
  --free_clusters_;
  return next_cluster_++ % static_cast<uint32_t>(fat_.size());
}

int FatVolume::write_clusters(std::span<const uint32_t> clusters) {
  for (size_t i = 0, end = 0; i < clusters.size(); i = end) {
    for (end = i + 1; end < clusters.size() && clusters[end] == clusters[end - 1] + 1;) ++end;
    const auto pages = static_cast<uint32_t>(end - i) * shape_.cluster_pages;
    if (const int error = device_->write_data(page_of(clusters[i]), pages); error != 0)
      return error;
  }
  return 0;
}

void FatVolume::set_fat(uint32_t cluster, uint32_t next) {
  fat_[cluster] = next;
  for (uint32_t copy = 0; copy < 2; ++copy) {
    const uint64_t table = (shape_.log_pages + uint64_t{copy} * fat_pages()) * shape_.page_bytes;
    change(table + (uint64_t{cluster} + kFirst) * sizeof next, std::as_bytes(std::span(&next, 1)));
  }
}

// The entry's time field holds the transaction's number, so each transaction changes the entry.
void FatVolume::set_entry(const Open& file, bool deleted) {
  const uint32_t first = file.clusters.empty() ? 0 : file.clusters.front() + kFirst;
  Entry entry{};
  std::memcpy(entry.name, "FILE       ", sizeof entry.name);
  for (uint32_t i = 0, rest = file.slot; i < 4; ++i, rest /= 10)
    entry.name[10 - i] = static_cast<char>('0' + rest % 10);
  if (deleted) entry.name[0] = static_cast<char>(0xe5);
  entry.attributes = 0x20;
  entry.first_high = static_cast<uint16_t>(first >> 16);
  entry.first_low = static_cast<uint16_t>(first);
  entry.written_at = transactions_;
  entry.size = static_cast<uint32_t>(file.clusters.size()) * cluster_bytes();
  change(uint64_t{directory_first()} * shape_.page_bytes + file.slot * sizeof entry,
         std::as_bytes(std::span(&entry, 1)));
}

void FatVolume::change(uint64_t at, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, metadata_.begin() + static_cast<ptrdiff_t>(at));
  const auto page = static_cast<uint32_t>(at / shape_.page_bytes),
             first = static_cast<uint32_t>(at % shape_.page_bytes);
  if (!changes_.empty()) {
    Change& last = changes_.back();
    if (last.page == page && last.first == first) return;
  }
  changes_.push_back({page, first, static_cast<uint32_t>(bytes.size())});
}

int FatVolume::commit() {
  ++transactions_;
  if (const int error = write_log(); error != 0) return error;
  std::set<uint32_t> pages;
  for (const Change& change : changes_) pages.insert(change.page);
  changes_.clear();
  for (const uint32_t page : pages) {
    const auto now =
        std::span(metadata_).subspan(size_t{page} * shape_.page_bytes, shape_.page_bytes);
    if (const int error = device_->write_metadata(page, now); error != 0) return error;
  }
  return 0;
}

// Appends the record to the log, which is a ring. Each page that it touches is written.
int FatVolume::write_log() {
  std::vector<std::byte> record;
  const auto add = [&](const auto& what) {
    const auto bytes = std::as_bytes(std::span(&what, 1));
    record.insert(record.end(), bytes.begin(), bytes.end());
  };
  add(LogHead{kLogMagic, transactions_, static_cast<uint32_t>(changes_.size()), 0});
  for (const Change& change : changes_) {
    add(LogPart{change.page, static_cast<uint16_t>(change.first),
                static_cast<uint16_t>(change.bytes)});
    const auto at =
        metadata_.begin() +
        static_cast<ptrdiff_t>(uint64_t{change.page} * shape_.page_bytes + change.first);
    record.insert(record.end(), at, at + change.bytes);
  }
  const uint64_t log_bytes = uint64_t{shape_.log_pages} * shape_.page_bytes;
  record.resize(round_up(record.size(), kWordSize));
  for (size_t done = 0; done < record.size();) {
    const uint64_t at = log_at_ % log_bytes, in_page = at % shape_.page_bytes;
    const size_t some = std::min<size_t>(record.size() - done, shape_.page_bytes - in_page);
    std::copy_n(record.begin() + static_cast<ptrdiff_t>(done), some,
                metadata_.begin() + static_cast<ptrdiff_t>(at));
    const auto page = static_cast<uint32_t>(at / shape_.page_bytes);
    const auto now =
        std::span(metadata_).subspan(size_t{page} * shape_.page_bytes, shape_.page_bytes);
    if (const int error = device_->write_metadata(page, now); error != 0) return error;
    done += some;
    log_at_ += some;
  }
  return 0;
}

}  // namespace streamfs::lab
