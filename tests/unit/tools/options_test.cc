// The programs' reading of their command lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/result.h"
#include "fuse-fs/frontend/transport.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/mount_options.h"

namespace streamfs::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MountCommand with(const std::string& list) {
  MountCommand command;
  for (const std::string& option : split_options(list)) {
    const Result<void> applied = apply_option(command, option);
    EXPECT_TRUE(applied.ok()) << option;
  }
  return command;
}

TEST(MountOptions, ABackslashKeepsAComma) {
  EXPECT_THAT(split_options(R"(a,meta=/x\,y,,b\\)"), ElementsAre("a", "meta=/x,y", R"(b\)"));
}

TEST(MountOptions, OursAreUnderstood) {
  const MountCommand command = with(
      "meta=/m,placement=hints,trace=/"
      "t,dirsync,nodiscard,plp,noverify,epoch_idle_ms=5,cache_mib=7,enable_uring");
  EXPECT_EQ(command.meta, "/m");
  EXPECT_EQ(command.filesystem.placement, placement::Mode::kHints);
  EXPECT_EQ(command.filesystem.trace_path, "/t");
  EXPECT_TRUE(command.filesystem.dirsync);
  EXPECT_FALSE(command.filesystem.discard);
  EXPECT_FALSE(command.filesystem.verify_checksums);
  EXPECT_TRUE(command.filesystem.plp);
  EXPECT_EQ(command.filesystem.epoch_idle_ms, 5U);
  EXPECT_EQ(command.filesystem.cache_mib, 7U);
  EXPECT_TRUE(command.enable_uring);
  EXPECT_TRUE(command.generic.empty());
}

TEST(MountOptions, TheIntentLogTakesNoFsyncThatItsSegmentsCannotHold) {
  EXPECT_EQ(with("").filesystem.intent_log_max, uint64_t{256} << 10);
  EXPECT_EQ(with("intent_log_max=0").filesystem.intent_log_max, 0U);
  EXPECT_EQ(with("intent_log_max=504K").filesystem.intent_log_max, uint64_t{504} << 10);
  for (const char* bad : {"505K", "1", "4095", "-4K", "much", ""}) {
    MountCommand command;
    const Result<void> applied = apply_option(command, std::string("intent_log_max=") + bad);
    EXPECT_EQ(applied.error().code, EINVAL) << bad;
    EXPECT_EQ(command.filesystem.intent_log_max, uint64_t{256} << 10) << bad;
  }
}

TEST(MountOptions, IdleTimeIsUsedAlwaysNeverOrNotOnBattery) {
  using data::IdleWorkWhen;
  EXPECT_EQ(with("").filesystem.idle_work, IdleWorkWhen::kAuto);
  EXPECT_EQ(with("idle_work=always").filesystem.idle_work, IdleWorkWhen::kAlways);
  EXPECT_EQ(with("idle_work=off").filesystem.idle_work, IdleWorkWhen::kOff);
  MountCommand command;
  EXPECT_EQ(apply_option(command, "idle_work=sometimes").error().code, EINVAL);
  EXPECT_EQ(apply_option(command, "idle_work").error().code, EINVAL);
}

TEST(MountOptions, TheTransportIsTheKernelsBestUnlessNamed) {
  using frontend::Transport;
  EXPECT_EQ(with("").transport, Transport::kAuto);
  EXPECT_EQ(with("transport=dev,transport=auto").transport, Transport::kAuto);
  EXPECT_EQ(with("transport=io_uring").transport, Transport::kIoUring);
  EXPECT_EQ(with("transport=dev").transport, Transport::kDev);
  EXPECT_EQ(with("io_uring").transport, Transport::kPreferred);
  EXPECT_EQ(with("io_uring,noio_uring").transport, Transport::kDev);
  EXPECT_FALSE(with("").enable_uring);
  MountCommand command;
  EXPECT_EQ(apply_option(command, "transport=carrier-pigeon").error().code, EINVAL);
  EXPECT_EQ(apply_option(command, "transport").error().code, EINVAL);
}

TEST(MountOptions, RealTimeHasAFactorOrIsTheModelsOwn) {
  EXPECT_EQ(with("rw").filesystem.real_time, 0);
  EXPECT_EQ(with("real_time").filesystem.real_time, 1);
  EXPECT_EQ(with("real_time=2.5").filesystem.real_time, 2.5);
}

TEST(MountOptions, TheLastOfTwoCounts) {
  EXPECT_FALSE(with("ro,rw").filesystem.read_only);
  EXPECT_TRUE(with("rw,ro").filesystem.read_only);
  EXPECT_TRUE(with("nodiscard,discard").filesystem.discard);
}

TEST(MountOptions, TheKernelsArePassedOn) {
  EXPECT_THAT(with("ro,noexec,noatime,suid").generic,
              ElementsAre("ro", "noexec", "noatime", "suid"));
}

TEST(MountOptions, WhatOnlyFstabCaresAboutIsIgnored) {
  const MountCommand command = with(
      "defaults,auto,noauto,user,users,nofail,_netdev,x-systemd.automount,X-mount.mkdir,"
      "comment=hello,relatime,default_permissions");
  EXPECT_TRUE(command.generic.empty());
}

TEST(MountOptions, AnUnknownOneIsNamed) {
  MountCommand command;
  for (const char* option : {"shiny", "shiny=1", "metadata=/x", ""}) {
    EXPECT_EQ(apply_option(command, option).error().code, EINVAL) << option;
  }
  EXPECT_THAT(apply_option(command, "shiny=1").error().context, HasSubstr("\"shiny\""));
}

TEST(MountOptions, BadValuesAreRefused) {
  MountCommand command;
  for (const char* option : {"meta=", "trace=", "placement=", "placement=magic", "epoch_age_ms=",
                             "epoch_age_ms=5s", "epoch_age_ms=-1", "epoch_age_ms=99999999999",
                             "real_time=0", "real_time=-1", "real_time=fast", "real_time=nan"}) {
    EXPECT_FALSE(apply_option(command, option).ok()) << option;
  }
}

TEST(Sizes, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_size("4096").value(), 4096U);
  EXPECT_EQ(parse_size("64M").value(), 64ULL << 20);
  EXPECT_EQ(parse_size("64MiB").value(), 64ULL << 20);
  EXPECT_EQ(parse_size("1.5g").value(), 3ULL << 29);
  EXPECT_EQ(parse_size("2TB").value(), 2ULL << 40);
  for (const char* text : {"", "lots", "-1", "1X", "1MM", "1 M", "inf", "nan", "99999999999P"}) {
    EXPECT_FALSE(parse_size(text).ok()) << text;
  }
}

TEST(Paths, SurviveAChangeOfDirectory) {
  EXPECT_EQ(absolute_data("/a/../b"), "/b");
  EXPECT_EQ(absolute_data("emu:/a/b"), "emu:/a/b");
  EXPECT_THAT(absolute_data("emu:ssd"), ::testing::StartsWith("emu:/"));
  EXPECT_THAT(absolute_data("nvme:fdp:ssd"), ::testing::StartsWith("nvme:fdp:/"));
  EXPECT_THAT(absolute_data("nvme:streams:ssd"), ::testing::StartsWith("nvme:streams:/"));
}

TEST(Failures, EachKindHasAnExitCodeOfItsOwn) {
  EXPECT_EQ(explain({ENOENT, "x"}).exit_code, exit_code::kNoDevice);
  EXPECT_EQ(explain({EMEDIUMTYPE, "x"}).exit_code, exit_code::kForeign);
  EXPECT_EQ(explain({EEXIST, "x"}).exit_code, exit_code::kNotEmpty);
  EXPECT_EQ(explain({ENOSPC, "x"}).exit_code, exit_code::kTooSmall);
  EXPECT_EQ(explain({EBUSY, "x"}).exit_code, exit_code::kBusy);
  EXPECT_EQ(explain({EACCES, "x"}).exit_code, exit_code::kNoPermission);
  EXPECT_EQ(explain({ENODEV, "x"}).exit_code, exit_code::kNoFuse);
  EXPECT_EQ(explain({ENOPROTOOPT, "x"}).exit_code, exit_code::kNoFuse);
  EXPECT_EQ(explain({EIO, "both superblocks are damaged"}).exit_code, exit_code::kCorrupt);
  EXPECT_EQ(explain({EIO, "reading"}).exit_code, exit_code::kIo);
}

}  // namespace
}  // namespace streamfs::tools
