#include "fuse-fs/tools/setup_consequences.h"

#include <string>
#include <vector>

#include "fuse-fs/tools/setup_machine.h"
#include "fuse-fs/tools/setup_proposal.h"
#include "pmem/region.h"

namespace streamfs::tools {
namespace {

using pmem::MetaClass;

constexpr const char* kUnsynced =
    " Writes without fsync are lost if they are younger than about 35 s.";

std::string fsync_in(MetaClass meta_class) {
  if (meta_class == MetaClass::kPersistent)
    return "It returns once META has the data, up to 256 KiB, if META has an intent log "
           "(mkfs.streamfs "
           "says so). Otherwise it flushes the SSD.";
  return "It flushes the SSD.";
}

std::string power_cut_in(MetaClass meta_class) {
  if (meta_class == MetaClass::kPersistent)
    return std::string("Everything that was fsync'd and every finished change of names is kept.") +
           kUnsynced;
  return std::string(
             "Everything that was fsync'd is kept. Names changed in the last second may be lost "
             "(-o dirsync: none). The next mount rebuilds META from the log on DATA.") +
         kUnsynced;
}

std::string power_off_in(const Proposal& proposal) {
  if (proposal.meta_class != MetaClass::kVolatile) return "Nothing is lost.";
  const std::string again =
      proposal.pmem_namespace.empty()
          ? ""
          : "streamfs-pmem@.service makes the namespace again at the next boot. ";
  return "META goes with the power, nothing of the files is lost. " + again +
         "The mount rebuilds META from the log on DATA; the checksums of data are lost, and each "
         "block is trusted when it is first read.";
}

std::string meta_loss_in(MetaClass meta_class) {
  switch (meta_class) {
    case MetaClass::kPersistent:
      return "fsck.streamfs --restore rebuilds it from the log on DATA. The fsyncs and changes of "
             "names of the last 5 s may be lost, in order.";
    case MetaClass::kVolatile:
      return "As at a power cut.";
    case MetaClass::kSynced:
      return "fsck.streamfs --restore rebuilds it from the log on DATA. Names changed in the last "
             "second may be lost.";
  }
  return {};
}

}  // namespace

std::vector<Consequence> consequences_of(const Proposal& proposal, const Machine& machine) {
  const MetaClass meta_class = proposal.meta_class;
  std::vector<Consequence> all = {
      {"fsync", fsync_in(meta_class)},
      {"power cut", power_cut_in(meta_class)},
      {"kernel crash", "As a power cut: the machine starts anew."},
      {"mount daemon killed",
       "Names and everything that was fsync'd are kept; the unit mounts "
       "again by itself."},
      {"power-off in order", power_off_in(proposal)},
      {"META lost", meta_loss_in(meta_class)},
      {"DATA lost", "All files are lost. Make backups."}};
  if (machine.has_battery)
    all.push_back({"battery",
                   "It puts a power cut off until it is empty. It saves nothing at a "
                   "kernel crash or reset, so META's class stays as it is."});
  return all;
}

}  // namespace streamfs::tools
