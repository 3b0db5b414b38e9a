// SPDX-License-Identifier: Apache-2.0
// Quantities and times of Kubernetes.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "io/kube/kube_items.h"

namespace horus {
namespace {

TEST(KubeQuantity, ReadsEveryForm) {
  const std::vector<std::tuple<const char*, int64_t, int64_t>> cases = {
      {"0", 1, 0},
      {"1", 1000, 1000},
      {"500m", 1000, 500},
      {"0.1", 1000, 100},
      {".5", 1000, 500},
      {"5.", 1000, 5000},
      {"+2", 1, 2},
      {"1n", 1, 1},     // rounded up
      {"1u", 1000, 1},  // likewise
      {"128974848", 1, 128974848},
      {"129e6", 1, 129'000'000},
      {"129E6", 1, 129'000'000},
      {"1e+3", 1, 1000},
      {"1500e-3", 1000, 1500},
      {"129M", 1, 129'000'000},
      {"123Mi", 1, 123 * (int64_t{1} << 20)},
      {"1.5Gi", 1, 3 * (int64_t{1} << 29)},
      {"1k", 1, 1000},
      {"1Ki", 1, 1024},
      {"2T", 1, 2'000'000'000'000},
      {"1Ti", 1, int64_t{1} << 40},
      {"1Pi", 1, int64_t{1} << 50},
      {"1Ei", 1, int64_t{1} << 60},
      {"1E", 1, 1'000'000'000'000'000'000},
      {"0.000000000000000000000000001", 1, 1},
      {"1000000000000000000n", 1, 1'000'000'000},
      {"31850m", 1000, 31850},
  };
  for (const auto& [text, per_unit, value] : cases) {
    EXPECT_EQ(ParseKubeQuantity(text, per_unit), std::optional<int64_t>(value)) << text;
  }
}

TEST(KubeQuantity, RefusesWhatIsNone) {
  for (const char* const text : {"",      " ",    "-1",
                                 "m",     "Gi",   ".",
                                 "1 Gi",  "1gi",  "1KI",
                                 "1.2.3", "1e",   "1e1.5",
                                 "1e100", "e5",   "5x",
                                 "0x10",  "1,5",  "1Ei1",
                                 "2Ei",   "1e30", "99999999999999999999",
                                 "nan",   "inf",  "1e999999999999",
                                 "++1"}) {
    EXPECT_EQ(ParseKubeQuantity(text, 1), std::nullopt) << text;
  }
  EXPECT_EQ(ParseKubeQuantity(std::string(1'000'000, '9'), 1), std::nullopt);
  EXPECT_EQ(ParseKubeQuantity("0." + std::string(1'000'000, '0'), 1), std::nullopt);
}

TEST(KubeQuantity, NoSumOfDigitsOverflows) {
  EXPECT_EQ(ParseKubeQuantity("999999999999999999Ei", 1000), std::nullopt);
  EXPECT_EQ(ParseKubeQuantity("1152921504606846976", 1), std::optional<int64_t>(kMostQuantity));
  EXPECT_EQ(ParseKubeQuantity("1152921504606846977", 1), std::nullopt);
  EXPECT_EQ(ParseKubeQuantity("18446744073709551616", 1), std::nullopt);
  EXPECT_EQ(ParseKubeQuantity("0.999999999999999999999999", 1000), std::optional<int64_t>(1000));
}

TEST(KubeTime, ReadsUtc) {
  EXPECT_EQ(ParseKubeTime("1970-01-01T00:00:00Z"), std::optional<int64_t>(0));
  EXPECT_EQ(ParseKubeTime("2026-11-26T12:00:00Z"), std::optional<int64_t>(1'795'694'400));
  EXPECT_EQ(ParseKubeTime("2024-02-29T23:59:59.123456Z"), std::optional<int64_t>(1'709'251'199));
}

TEST(KubeTime, RefusesWhatIsNone) {
  for (const char* const text :
       {"", "2026-11-26", "2026-11-26T12:00:00", "2026-11-26T12:00:00+01:00", "1969-12-31T23:59:59Z",
        "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-26T24:00:00Z", "2026-11-26T12:60:00Z",
        "2026-11-26T12:00:00.x1Z", "2026-11-26T12:00:001Z", "2026x11-26T12:00:00Z", "20a6-11-26T12:00:00Z"}) {
    EXPECT_EQ(ParseKubeTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace horus
