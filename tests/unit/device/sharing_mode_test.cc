// SPDX-License-Identifier: Apache-2.0
// Rules of the sharing modes' names.
#include "device/sharing_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace horus {
namespace {

TEST(SharingMode, NameAndParserAreInverse) {
  for (const SharingMode mode : kSharingModes) {
    const absl::StatusOr<SharingMode> parsed = ParseSharingMode(SharingModeName(mode));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, mode);
  }
}

TEST(SharingMode, ValuesAreStableBecauseSnapshotsStoreThem) {
  EXPECT_EQ(static_cast<int>(SharingMode::kExclusive), 0);
  EXPECT_EQ(static_cast<int>(SharingMode::kTimeSlice), 1);
  EXPECT_EQ(static_cast<int>(SharingMode::kTimeSliceOrMps), 4);
  EXPECT_EQ(static_cast<int>(SharingMode::kMps), 2);
  EXPECT_EQ(static_cast<int>(SharingMode::kMig), 3);
}

TEST(SharingMode, CaseAndSeparatorDoNotMatter) {
  EXPECT_EQ(ParseSharingMode("Time_Slice").value(), SharingMode::kTimeSlice);
  EXPECT_EQ(ParseSharingMode("MIG").value(), SharingMode::kMig);
}

TEST(SharingMode, OtherNamesAreRefusedWithTheListOfModes) {
  for (const char* name : {"", "shared", "mig ", "exclusive\n", "mps2"}) {
    const absl::Status status = ParseSharingMode(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("exclusive, time-slice, mps or mig"));
  }
}

TEST(SharingMode, AValueOutsideTheEnumIsUnknown) {
  EXPECT_EQ(SharingModeName(static_cast<SharingMode>(17)), "unknown");
}

}  // namespace
}  // namespace horus
