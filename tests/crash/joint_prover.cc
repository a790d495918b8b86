#include "tests/crash/joint_prover.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mix.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"
#include "tests/crash/joint_cuts.h"
#include "tests/crash/kept_twice.h"

namespace streamfs::joint {
namespace prover {

// The recovery of one state in kRecoveryEvery is cut (kLostRecoveryEvery if META is lost). A whole
// filesystem is mounted on one state in kWholeEvery; the others go through recover_and_look().
constexpr uint64_t kRecoveryEvery = 4000, kLostRecoveryEvery = 400, kWholeEvery = 64;
constexpr const char* kOtherName = "other";

// Returns whether a state is in a sample of one in `every`. The sample depends on the state's hash
// only, so --only repeats the choices of the full run.
bool chosen(uint64_t state, uint64_t every) {
  return mix64(state) % every == 0;
}

// Writes a file, which begins the logs anew.
Result<void> use(data::FilesystemImpl& fs) {
  SFS_ASSIGN(const meta::Attributes made, fs.create(fs.root(), kOtherName, 0100644, 0, {}, {}));
  const std::vector<std::byte> bytes(2 * kBlockSize, std::byte{0xee});
  SFS_TRY(fs.write(made.id, 0, bytes));
  SFS_TRY(fs.fsync(made.id, false));
  return fs.sync();
}

}  // namespace prover

Prover::Prover(Kept kept, uint64_t seed)
    : image_(kept),
      seed_(seed),
      zeroes_(image_.meta.size() / (kept == Kept::kTwice ? 2 : 1)),
      zeroes_again_(zeroes_) {}

void Prover::prove(const Sequence& sequence, Tally& tally) {
  Actor actor(image_);
  starts()[sequence.start].run(actor);
  CutOptions options;
  options.copy_bytes = image_.copy_bytes();
  options.seed = seed_ + std::hash<std::string>()(sequence.numbers());
  for (const size_t index : sequence.operations) {
    options.from_mark = actor.calls();
    operations()[index].run(actor);
  }
  if (!actor.runs()) return;
  ++tally.sequences;
  tally_ = &tally;
  model_ = &actor.model();
  const Record record{image_.meta, actor.region().events(), image_.data, actor.device().events()};
  size_t failures = 0;
  each_state(record, options, [&](const State& state) {
    const std::string wrong = judge(state);
    if (wrong.empty()) return true;
    ++tally.wrong;
    fmt::print("WRONG {}: {}\n  {}\n  repeat: --only {} --seed {}{}\n", sequence.text(), wrong,
               state.description(), sequence.numbers(), seed_,
               image_.kept == Kept::kTwice ? " --mirror" : "");
    return ++failures < 2;
  });
}

std::string Prover::judge(const State& state) {
  const uint64_t print = model_->fingerprint(state.marks);
  const uint64_t data = mix64(state.data.hash() + (image_.kept == Kept::kTwice ? 1 : 0));
  const uint64_t kept = mix64(state.meta_hash ^ data) & ~uint64_t{1}, lost = data | 1;
  std::string wrong;
  if (checked_.insert(kept ^ print).second) {
    states_.insert(kept);
    whole_ = prover::chosen(kept, prover::kWholeEvery);
    wrong = judge_kept(state, prover::chosen(kept + 1, prover::kRecoveryEvery));
  }
  if (wrong.empty() && checked_.insert(lost ^ print).second) {
    states_.insert(lost);
    whole_ = prover::chosen(lost, prover::kWholeEvery);
    wrong = judge_lost(state, prover::chosen(lost + 1, prover::kLostRecoveryEvery));
  }
  return wrong;
}

Result<FoundFiles> Prover::mount(std::unique_ptr<pmem::Region> region, const BlockTable& from) {
  BlockTable data = from;
  Contents contents;
  MemoryDevice device(data, contents);
  if (!whole_) return recover_and_look(*region, device);
  StillClock clock;
  SFS_ASSIGN(const auto mounted, Mount::open(std::move(region), device, clock, false));
  return mounted->look();
}

std::string Prover::compare(const Result<FoundFiles>& found, const State& state,
                            Model::Meta meta) const {
  if (!found.ok()) return found.error().message();
  return model_->check(*found, state.marks, meta);
}

std::string Prover::judge_kept(const State& state, bool cuts_recovery) {
  Result<FoundFiles> found = Error{0};
  {
    pmem::ScratchRegion region(state.meta);
    found = mount(view(region, image_.kept), state.data);
  }
  std::string wrong = compare(found, state, Model::Meta::kKept);
  for (size_t which = 0; image_.kept == Kept::kTwice && which < 2 && wrong.empty(); ++which) {
    pmem::ScratchRegion region(state.meta);
    wrong = compare(mount(std::make_unique<meta::Side>(region, which), state.data), state,
                    Model::Meta::kKept);
    if (!wrong.empty()) wrong = fmt::format("copy {} alone: {}", which, wrong);
  }
  if (wrong.empty() && cuts_recovery) {
    pmem::RecordingRegion region(state.meta);
    wrong = cut_recovery(region, image_.kept, state, *found, Model::Meta::kKept);
  }
  return wrong;
}

std::string Prover::judge_lost(const State& state, bool cuts_recovery) {
  pmem::ScratchRegion region(zeroes_);
  const Result<FoundFiles> found = rebuild(region, state.data);
  std::string wrong = compare(found, state, Model::Meta::kLost);
  if (wrong.empty() && cuts_recovery) {
    pmem::RecordingRegion rebuilt(zeroes_);  // the rebuilt META, while `region` lives
    wrong = cut_recovery(rebuilt, Kept::kOnce, state, *found, Model::Meta::kLost);
  }
  return wrong.empty() ? wrong : "META lost: " + wrong;
}

Result<FoundFiles> Prover::rebuild(pmem::Region& region, const BlockTable& from) {
  BlockTable data = from;
  Contents contents;
  MemoryDevice device(data, contents);
  SFS_TRY(restore(region, device));
  return mount(std::make_unique<meta::Side>(region), from);
}

// Mounts the state, writes a file, and cuts META and DATA everywhere in between. Checks after each
// cut that all other files are those in `expected`. If META was lost in the first cut, each state
// is also checked with META lost again.
std::string Prover::cut_recovery(pmem::RecordingRegion& region, Kept kept, const State& state,
                                 const FoundFiles& expected, Model::Meta meta) {
  const std::vector<uint64_t> words = region.words();
  BlockTable data = state.data;
  Contents contents;
  MemoryDevice device(data, contents);
  device.record([&] { return region.events().size(); });
  StillClock clock;
  const auto mounted = Mount::open(view(region, kept), device, clock, true);
  if (!mounted.ok()) return "the mount that writes: " + mounted.error().message();
  if (const auto done = prover::use((*mounted)->fs()); !done.ok())
    return "writing after the recovery: " + done.error().message();
  CutOptions options;
  options.exhaustive_up_to = 8;
  options.samples = 2;
  options.singles_max = 2;
  options.copy_bytes = kept == Kept::kTwice ? image_.copy_bytes() : 0;
  std::string wrong;
  States seen;
  const auto judge = [&](uint64_t hash, const State& again, auto&& find) {
    if (!wrong.empty() || !seen.insert(hash).second) return;
    ++tally_->in_recovery;
    Result<FoundFiles> found = find();
    if (found.ok()) found->erase(prover::kOtherName);
    if (found.ok() && *found == expected) return;
    wrong = fmt::format("after a cut in the recovery: {}; {}",
                        found.ok() ? "other files" : found.error().message(), again.description());
  };
  each_state({words, region.events(), state.data, device.events()}, options,
             [&](const State& again) {
               const uint64_t lost = mix64(again.data.hash());
               judge(again.meta_hash ^ lost, again, [&] {
                 pmem::ScratchRegion scratch(again.meta);
                 return mount(view(scratch, kept), again.data);
               });
               if (meta == Model::Meta::kKept) return wrong.empty();
               judge(lost + 1, again, [&] {
                 pmem::ScratchRegion scratch(zeroes_again_);
                 return rebuild(scratch, again.data);
               });
               return wrong.empty();
             });
  return wrong;
}

}  // namespace streamfs::joint
