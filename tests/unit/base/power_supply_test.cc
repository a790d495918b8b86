// On battery or not, from what sysfs says.
#include "base/power_supply.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

namespace streamfs {
namespace {

class PowerSupplyTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void supply(const std::string& name,
              std::initializer_list<std::pair<const char*, const char*>> says) {
    std::filesystem::create_directories(folder_ / name);
    for (const auto& [file, word] : says) std::ofstream(folder_ / name / file) << word << '\n';
  }
  bool on() const { return on_battery(folder_.string()); }

  std::filesystem::path folder_;
};

TEST_F(PowerSupplyTest, AMachineThatTellsNothingHasNoBattery) {
  EXPECT_FALSE(on());
  EXPECT_FALSE(on_battery((folder_ / "none").string()));
}

TEST_F(PowerSupplyTest, ADischargingBatteryIsInUse) {
  supply("BAT0", {{"type", "Battery"}, {"status", "Discharging"}});
  EXPECT_TRUE(on());
}

TEST_F(PowerSupplyTest, AFullBatteryIsInUseOnlyWithoutMains) {
  supply("BAT0", {{"type", "Battery"}, {"status", "Full"}});
  EXPECT_FALSE(on());
  supply("AC", {{"type", "Mains"}, {"online", "0"}});
  EXPECT_TRUE(on());
  supply("usb", {{"type", "USB"}, {"online", "1"}});
  EXPECT_FALSE(on());
}

TEST_F(PowerSupplyTest, AMousesBatteryIsNotTheMachines) {
  supply("hid", {{"type", "Battery"}, {"status", "Discharging"}, {"scope", "Device"}});
  EXPECT_FALSE(on());
}

}  // namespace
}  // namespace streamfs
