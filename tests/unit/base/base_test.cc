// SPDX-License-Identifier: Apache-2.0
// Rules of the shared foundations: overflow, hashes, messages.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/ids.h"
#include "base/text.h"
#include "base/units.h"

namespace horus {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Units, OverflowIsReportedAndNeverWraps) {
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(kMax, 2), std::nullopt);
  EXPECT_EQ(CheckedMul(kMax, 1), kMax);
  const std::array<int64_t, 3> too_large = {int64_t{1} << 40, int64_t{1} << 20, 16};
  EXPECT_EQ(CheckedProduct(too_large), std::nullopt);
  EXPECT_EQ(CheckedProduct({}), 1);
}

TEST(Units, MibRoundsUp) {
  EXPECT_EQ(MibCeil(0), 0);
  EXPECT_EQ(MibCeil(1), 1);
  EXPECT_EQ(MibCeil(kBytesPerMib), 1);
  EXPECT_EQ(MibCeil(kMax), kMax / kBytesPerMib + 1);
}

TEST(Hash, StoredFingerprintsStayValid) {
  // Reference values of XXH3 and SplitMix64: a change would orphan every stored fingerprint.
  EXPECT_EQ(Hash64(""), 0x2D06800538D394C2u);
  EXPECT_EQ(Mix64(0), 0xE220A8397B1DCDAFu);
  EXPECT_NE(CombineHash(1, 2), CombineHash(2, 1));
}

TEST(Text, HostileNamesBecomePrintableAndShort) {
  EXPECT_EQ(Quoted("a\nb"), "'a\\x0Ab'");
  EXPECT_EQ(Quoted("\x7f\xc2\x9b\xc2\xa0"), "'\\x7F\\xC2\\x9B\xc2\xa0'");  // DEL, C1's introducer, no control
  EXPECT_EQ(Quoted(std::string(1000, 'x'), 3), "'xxx...'");
}

TEST(Text, QuotedNamesAreUtf8WhateverTheyWere) {
  EXPECT_EQ(Quoted("caf\xc3\xa9 \xff\xfe"), "'caf\xc3\xa9 \\xFF\\xFE'");
  EXPECT_EQ(Quoted("a\xc3"), "'a\\xC3'");
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "'\\xED\\xA0\\x80'");     // a surrogate
  EXPECT_EQ(Quoted("\xc3\xa9\xc3\xa9", 3), "'\xc3\xa9...'");  // not cut inside a character
}

TEST(Text, NearestSuggestsOnlyWhatIsNear) {
  const std::array<std::string_view, 3> names = {"a100-40gb", "a100-80gb", "k80"};
  EXPECT_EQ(Nearest("A100-40g", names), "a100-40gb, a100-80gb");
  EXPECT_EQ(Nearest("zzzzzzzzz", names), "");
  constexpr std::string_view kHostile[] = {"batch\x1B", "batch\xFF"};
  EXPECT_EQ(Nearest("batch", kHostile), "batch\\x1B, batch\\xFF");
}

TEST(Text, NeighboursSwappedAreOneSlip) {
  const std::array<std::string_view, 3> names = {"place", "horus", "trace"};
  EXPECT_EQ(Nearest("plcae", names), "place");
  EXPECT_EQ(Nearest("ohrsu", names), "");  // two slips in five letters are another word
  EXPECT_EQ(DidYouMean("Horsu", names), "; did you mean 'horus'?");
  EXPECT_EQ(DidYouMean("zzz", names), "");
  EXPECT_EQ(ExpectedOneOf(names, "plce"), "expected one of place, horus, trace, found 'plce'; did you mean 'place'?");
}

TEST(DenseId, DefaultIsInvalid) {
  using TestId = DenseId<struct TestTag>;
  EXPECT_FALSE(TestId().valid());
  EXPECT_TRUE(TestId(0).valid());
  EXPECT_LT(TestId(1), TestId(2));
}

}  // namespace
}  // namespace horus
