// SPDX-License-Identifier: Apache-2.0
// Rules of what many rows share: the index of rows by id, tables of equal values, lists, shelves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/id_map.h"
#include "base/shared.h"

namespace horus {
namespace {

TEST(RowIndex, AgreesWithAnOrderedMapUnderRandomInsertsAndErases) {
  constexpr uint32_t kIds = 300;  // dense and few, so that runs of cells form and break up
  std::vector<uint64_t> ids;      // by row
  const auto id_of = [&](uint32_t row) { return ids[row]; };
  RowIndex index;
  std::map<uint64_t, uint32_t> wanted;
  for (uint32_t row = 0; row < 50'000; ++row) {
    ids.push_back(Mix64(row) % kIds);
    if (const auto known = wanted.find(ids[row]); known != wanted.end()) {
      index.Erase(ids[row], id_of);
      wanted.erase(known);
    } else {
      index.ReserveOne(id_of);
      index.Insert(ids[row], row);
      wanted[ids[row]] = row;
    }
    ASSERT_EQ(index.size(), wanted.size());
    for (uint64_t id = row % 7; id < kIds; id += 7) {
      const auto known = wanted.find(id);
      ASSERT_EQ(index.Find(id, id_of), known == wanted.end() ? RowIndex::kNone : known->second);
    }
  }
}

TEST(RowIndex, TakesEveryIdAndTheLastRow) {
  const uint32_t last = RowIndex::kMaxRows - 1;
  const std::map<uint32_t, uint64_t> ids = {{0, 0}, {last, std::numeric_limits<uint64_t>::max()}};
  const auto id_of = [&](uint32_t row) { return ids.at(row); };
  RowIndex index;
  EXPECT_EQ(index.Find(0, id_of), RowIndex::kNone);
  for (const auto& [row, id] : ids) {
    index.ReserveOne(id_of);
    EXPECT_EQ(index.Find(id, id_of), RowIndex::kNone);
    index.Erase(id, id_of);
    index.Insert(id, row);
    EXPECT_EQ(index.Find(id, id_of), row);
  }
  EXPECT_EQ(index.size(), 2u);
}

using Texts = SharedTable<std::string>;
uint32_t Hold(const std::string& text, uint64_t hash, Texts& table) {
  return table.Hold(hash, [&](const std::string& known) { return known == text; }, [&] { return text; });
}

TEST(SharedTable, HoldsEqualValuesOnceUntilTheLastHolderDropsThem) {
  Texts table;
  const uint32_t a = Hold("a", 1, table);
  EXPECT_EQ(Hold("a", 1, table), a);
  const uint32_t b = Hold("b", 2, table);
  EXPECT_NE(b, a);
  const Texts copy = table;
  EXPECT_EQ(&copy.at(a), &table.at(a));
  const std::weak_ptr<const std::string> value = table.shared(b);
  table.Drop(a);
  EXPECT_EQ(table.at(a), "a");
  EXPECT_EQ(table.holders(a), 1u);
  table.Drop(b);
  EXPECT_FALSE(value.expired());  // the copy's
  EXPECT_EQ(Hold("c", 3, table), b);
  EXPECT_EQ(table.at(b), "c");
  EXPECT_EQ(copy.at(b), "b");
}

TEST(SharedTable, TellsValuesOfOneHashApart) {
  Texts table;
  const uint32_t a = Hold("a", 1, table);
  const uint32_t b = Hold("b", 1, table);
  EXPECT_NE(a, b);
  EXPECT_EQ(Hold("b", 1, table), b);
  table.Drop(a);
  const uint32_t again = Hold("a", 1, table);
  EXPECT_EQ(table.at(again), "a");
  EXPECT_EQ(table.at(b), "b");
}

TEST(SharedList, SharesWhatIsEqualAndIsAloneOnceItChanges) {
  SharedList<int> list = {1, 2, 3};
  const auto equal = std::make_shared<const std::vector<int>>(list.get());
  list.Share(equal);
  EXPECT_EQ(&list.get(), equal.get());
  EXPECT_EQ(list.own_capacity(), 0u);
  SharedList<int> copy = list;
  EXPECT_EQ(&copy.get(), equal.get());
  EXPECT_EQ(copy, list);
  copy[1] = 7;
  EXPECT_EQ(copy.get(), (std::vector<int>{1, 7, 3}));
  EXPECT_NE(copy, list);
  list.push_back(4);
  EXPECT_EQ(list.get(), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(*equal, (std::vector<int>{1, 2, 3}));
}

TEST(ShortList, AgreesWithAVectorWhetherItsValuesLieHereOrElsewhere) {
  using List = ShortList<uint32_t, 3>;
  static_assert(sizeof(List) == 16);
  List list;
  std::vector<uint32_t> wanted;
  const auto same = [&](const List& found) {
    return std::equal(found.begin(), found.end(), wanted.begin(), wanted.end());
  };
  for (uint32_t i = 0; i < 2000; ++i) {
    if (Mix64(i) % 9 < 5 || wanted.empty()) {
      list.push_back(i);
      wanted.push_back(i);
    } else {
      const auto at = static_cast<ptrdiff_t>(Mix64(i) % wanted.size());
      list.erase(list.begin() + at);
      wanted.erase(wanted.begin() + at);
    }
    ASSERT_TRUE(same(list));
    if (i % 7 != 0) continue;
    List copy = list;
    ASSERT_TRUE(same(copy));
    const List moved = std::move(copy);
    ASSERT_TRUE(same(moved));
    copy = moved;
    ASSERT_TRUE(same(copy));
    list = std::move(copy);
    if (Mix64(i) % 5 != 0) continue;
    list = List();
    wanted.clear();
  }
  list.clear();
  EXPECT_TRUE(list.empty());
  list.reserve(100);
  EXPECT_GE(list.capacity(), 100u);
  EXPECT_GE(list.bytes_elsewhere(), 100 * sizeof(uint32_t));
}

TEST(Shelf, UsesIdsAgain) {
  Shelf<std::string> shelf;
  const uint32_t a = shelf.Put("a"), b = shelf.Put("b"), c = shelf.Put("c");
  shelf.Drop(a);
  shelf.Drop(c);
  const Shelf<std::string> copy = shelf;
  EXPECT_EQ(shelf.Put("d"), c);
  EXPECT_EQ(shelf.Put("e"), a);
  EXPECT_EQ(shelf.at(b), "b");
  EXPECT_EQ(shelf.at(c), "d");
  EXPECT_EQ(copy.at(b), "b");
  EXPECT_NE(shelf.Put("f"), b);
}

}  // namespace
}  // namespace horus
