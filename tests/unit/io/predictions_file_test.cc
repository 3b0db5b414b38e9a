// SPDX-License-Identifier: Apache-2.0
// Predicted slowdowns: what is written is read again and answered; what is no slowdown is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "interference/registry.h"
#include "lab/io/pairs_file.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<PredictedPair> Rows() {
  return {{"k80", SharingMode::kTimeSlice, "a, \"first\"", "b", 1.5, 2.25},
          {"k80", SharingMode::kTimeSlice, "b", "a, \"first\"", 1.25, kNone}};
}

TEST(PredictedFile, ReadsWhatItWrites) {
  const auto read = ParsePredicted("f.csv", PredictedText(Rows()));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].victim, "a, \"first\"");
  EXPECT_EQ((*read)[0].slowdown, 1.5);
  EXPECT_EQ((*read)[0].bound, 2.25);
  EXPECT_EQ((*read)[1].other, "a, \"first\"");
  EXPECT_TRUE(std::isnan((*read)[1].bound));
}

TEST(PredictedFile, NamesTheRowAndWhatIsWrongWithIt) {
  const auto message = [](std::string_view text) {
    return std::string(ParsePredicted("f.csv", text).status().message());
  };
  const std::string header = "gpu,sharing_mode,victim,other,slowdown,bound\n";
  EXPECT_THAT(message("gpu,victim,other,slowdown\n"), HasSubstr("header: expected a column sharing_mode, found none"));
  EXPECT_THAT(message("gpu,sharing_mode,victim,other,slowdown,bond\n"), HasSubstr("header: expected one of gpu, "));
  EXPECT_THAT(message(header + "k80,time-slice,a,b,0.9,\n"), HasSubstr("f.csv: row 1: slowdown: expected a slowdown"));
  EXPECT_THAT(message(header + "k80,time-slice,a,b,1.5,1.4\n"), HasSubstr("row 1: bound"));
  EXPECT_THAT(message(header + "k80,turns,a,b,1.5,\n"), HasSubstr("row 1: sharing mode: expected exclusive"));
  EXPECT_THAT(message(header + "k80,time-slice,,b,1.5,\n"), HasSubstr("row 1: victim"));
  EXPECT_THAT(message(header + "k80,,a,b,1.5,\n"), HasSubstr("row 1: sharing_mode: expected a name, found ''"));
}

TEST(PredictedFile, AnswersAsAModelForTheJobsThatHaveProfiles) {
  const auto fallback = *MakeInterferenceModel("utilisation");
  const auto catalogue = Catalogue::Default();
  const auto model = ModelOfPredicted(Rows(), {{"a, \"first\"", 11}, {"b", 12}}, *catalogue, fallback);
  ASSERT_TRUE(model.ok()) << model.status();
  Demand a{.gpu_util_pct = {90, 90}, .mem_mib = {1000, 1000}}, b = a;
  a.profile_id = 11;
  b.profile_id = 12;
  const DeviceContext k80{.type = *catalogue->Find("k80")};
  const std::array<const Demand*, 2> both = {&a, &b};
  std::array<Slowdown, 2> slowdowns;
  ASSERT_TRUE((*model)->Predict(k80, both, slowdowns).ok());
  EXPECT_FLOAT_EQ(slowdowns[0].estimate, 1.5f);
  EXPECT_FLOAT_EQ(slowdowns[0].upper, 2.25f);
  EXPECT_FLOAT_EQ(slowdowns[1].estimate, 1.25f);
  EXPECT_FLOAT_EQ(slowdowns[1].upper, 1.25f);
  const std::array<const Demand*, 2> copies = {&a, &a};
  ASSERT_TRUE((*model)->Predict(k80, copies, slowdowns).ok());
  EXPECT_FLOAT_EQ(slowdowns[0].estimate, 1.8f) << "nothing predicted: the fallback's answer";
}

TEST(PredictedFile, RefusesAGpuTypeThatNobodyKnows) {
  std::vector<PredictedPair> rows = Rows();
  rows[0].gpu = "no-such-gpu";
  const auto model = ModelOfPredicted(rows, {{"a, \"first\"", 11}, {"b", 12}}, *Catalogue::Default(),
                                      *MakeInterferenceModel("utilisation"));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace horus
