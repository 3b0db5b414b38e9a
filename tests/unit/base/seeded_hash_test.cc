// SPDX-License-Identifier: Apache-2.0
#include "base/seeded_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace horus {
namespace {

constexpr uint64_t kKeys = 4'000;

template <typename Set>
size_t FullestBucket(const Set& set) {
  size_t most = 0;
  for (size_t i = 0; i < set.bucket_count(); ++i) most = std::max(most, set.bucket_size(i));
  return most;
}

// Where integers are their own hash, multiples of the number of buckets fill one of them: a file of 200,000 such ids
// took minutes to read.
TEST(SeededHash, NobodyChoosesTheBucketsOfIds) {
  std::unordered_set<uint64_t> plain;
  plain.reserve(kKeys);
  const uint64_t step = plain.bucket_count();
  SeededSet<uint64_t> seeded;
  seeded.reserve(kKeys);
  for (uint64_t i = 1; i <= kKeys; ++i) {
    plain.insert(i * step);
    seeded.insert(i * step);
  }
  ASSERT_EQ(FullestBucket(plain), kKeys);
  EXPECT_LT(FullestBucket(seeded), 24u);  // 9 are usual; 24 in one bucket: less than once in 10^19 runs
}

TEST(SeededHash, EqualKeysHashAlikeHoweverTheyAreHeld) {
  const std::string name = "a name that is longer than what a string holds inside";
  EXPECT_EQ(SeededHash()(name), SeededHash()(std::string_view(name)));
  EXPECT_NE(SeededHash()(name), SeededHash()(std::string_view("another")));
}

TEST(SecretHasher, TellsWordsTextsAndTheirOrderApart) {
  std::set<uint64_t> hashes;
  SecretHasher all;
  constexpr int kMost = 200;  // more than it keeps at once
  for (int i = 0; i < kMost; ++i) {
    all.Add(uint64_t{0});
    EXPECT_TRUE(hashes.insert(all.Hash()).second);
  }
  const auto of = [](std::string_view a, std::string_view b) {
    SecretHasher hasher;
    hasher.Add(a);
    hasher.Add(b);
    return hasher.Hash();
  };
  for (const auto& [a, b] : {std::pair("ab", "c"), {"a", "bc"}, {"c", "ab"}, {"abc", ""}}) {
    EXPECT_TRUE(hashes.insert(of(a, b)).second);
    EXPECT_EQ(of(a, b), of(a, b));
  }
}

TEST(SecretHasher, IsNotTheHashThatEverybodyKnows) {
  SecretHasher hasher;
  hasher.Add(uint64_t{7});
  const uint64_t word = 7;
  EXPECT_NE(hasher.Hash(), Hash64(&word, sizeof word));
  EXPECT_EQ(ProcessSecret(), ProcessSecret());
}

}  // namespace
}  // namespace horus
