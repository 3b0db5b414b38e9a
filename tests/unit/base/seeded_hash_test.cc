// SPDX-License-Identifier: Apache-2.0
#include "base/seeded_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>

namespace horus {
namespace {

constexpr uint64_t kKeys = 20'000;

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

}  // namespace
}  // namespace horus
