// SPDX-License-Identifier: Apache-2.0
// Rules of the map from ids, beside std::map.
#include "base/id_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>

namespace horus {
namespace {

TEST(IdMap, AgreesWithAnOrderedMapUnderRandomInsertsAndErases) {
  IdMap<uint32_t> map;
  std::map<uint64_t, uint32_t> wanted;
  uint64_t random = 7;
  for (uint32_t i = 0; i < 50'000; ++i) {
    random = Mix64(random);
    const uint64_t id = random % 300;  // dense and few, so that runs of cells form and break up
    if (wanted.contains(id)) {
      map.Erase(id);
      wanted.erase(id);
    } else {
      map.Insert(id, i);
      wanted.emplace(id, i);
    }
    ASSERT_EQ(map.size(), wanted.size());
    const uint64_t asked = Mix64(random) % 300;
    ASSERT_EQ(map.contains(asked), wanted.contains(asked));
    if (i % 500 != 0) continue;
    for (const auto& [key, value] : wanted) ASSERT_EQ(map.at(key), value);
  }
}

TEST(IdMap, TakesEveryId) {
  IdMap<int> map;
  for (const uint64_t id : {uint64_t{0}, std::numeric_limits<uint64_t>::max()}) {
    EXPECT_FALSE(map.contains(id));
    map.Erase(id);
    map.Insert(id, 5);
    EXPECT_EQ(map.at(id), 5);
  }
  map.clear();
  EXPECT_EQ(map.size(), 0u);
  EXPECT_FALSE(map.contains(0));
  map.Insert(0, 6);
  EXPECT_EQ(*map.Find(0), 6);
}

TEST(IdMap, FreesWhatItErases) {
  IdMap<std::shared_ptr<int>> map;
  const auto value = std::make_shared<int>(1);
  for (uint64_t id = 0; id < 100; ++id) map.Insert(id, value);
  EXPECT_EQ(value.use_count(), 101);
  for (uint64_t id = 0; id < 100; id += 2) map.Erase(id);
  EXPECT_EQ(value.use_count(), 51);
  IdMap<std::shared_ptr<int>> copy = map;
  EXPECT_EQ(value.use_count(), 101);
  EXPECT_TRUE(copy.contains(1));
}

}  // namespace
}  // namespace horus
