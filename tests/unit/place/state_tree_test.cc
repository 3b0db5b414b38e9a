// SPDX-License-Identifier: Apache-2.0
// The tree of states: every state in one leaf, bounds that cover, few nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "place/search/ranking.h"

namespace horus {
namespace {

Scorer::StateSummary StateAt(uint32_t state, uint64_t seed, double crowding) {
  Scorer::StateSummary summary;
  summary.digest = seed + 1;
  summary.state = state;
  summary.context = static_cast<uint16_t>(seed % 2);
  summary.residents = 1;
  summary.mem_free_mib = static_cast<int32_t>(Mix64(seed) % 10'000);
  summary.per_mem_mib = 1e-4f;
  summary.crowding = static_cast<float>(crowding);
  summary.has_loads = true;
  summary.loads = {.estimate = static_cast<int64_t>(1e8 * crowding), .upper = 0, .room = 0, .weight = 1};
  return summary;
}

// Adds the states below the node to `found`, and counts the nodes.
size_t Walk(const StateTree& tree, uint32_t at, std::map<uint32_t, uint64_t>& found) {
  const StateTree::Node& node = tree.node(at);
  for (const Scorer::StateSummary& state : node.states) {
    EXPECT_TRUE(found.emplace(state.state, state.digest).second) << "twice: " << state.state;
    EXPECT_EQ(tree.Of(state.state).digest, state.digest);
    EXPECT_EQ(node.region.context, state.context);
    EXPECT_GE(node.region.most_free_mib, state.mem_free_mib);
    EXPECT_LE(node.region.least_load, state.loads.estimate);
    EXPECT_GE(node.region.most_load, state.loads.estimate);
  }
  if (node.is_leaf()) return 1;
  EXPECT_TRUE(node.states.empty());
  size_t nodes = 1;
  for (const uint32_t child : {node.left, node.left + 1}) {
    EXPECT_GE(node.region.most_free_mib, tree.node(child).region.most_free_mib);
    EXPECT_LE(node.region.least_load, tree.node(child).region.least_load);
    nodes += Walk(tree, child, found);
  }
  return nodes;
}

size_t Check(const StateTree& tree, const std::map<uint32_t, uint64_t>& expected) {
  std::map<uint32_t, uint64_t> found;
  size_t nodes = 0;
  for (const uint32_t root : tree.roots()) nodes += root == StateTree::kNone ? 0 : Walk(tree, root, found);
  EXPECT_EQ(found, expected);
  return nodes;
}

TEST(StateTree, HoldsEachStateOnceHoweverTheyComeAndGo) {
  StateTree tree;
  std::map<uint32_t, uint64_t> expected;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const auto state = static_cast<uint32_t>(Mix64(i) % 1000);
    if (Mix64(i + 7) % 4 == 0 && expected.contains(state)) {
      tree.Remove(state);
      expected.erase(state);
    } else {
      tree.Put(StateAt(state, i, static_cast<double>(Mix64(i + 3) % 300) / 100));
      expected[state] = i + 1;
    }
    if (i % 5000 == 0) Check(tree, expected);
  }
  Check(tree, expected);
}

TEST(StateTree, StatesThatAreAllAlikeShareALeaf) {
  StateTree tree;
  std::map<uint32_t, uint64_t> expected;
  for (uint32_t state = 0; state < 1000; ++state) {
    tree.Put(StateAt(state, 0, 0.5));
    expected[state] = 1;
  }
  EXPECT_EQ(Check(tree, expected), 1U);
}

// A thousand states wander: where they were, leaves must not pile up.
TEST(StateTree, StatesThatWanderLeaveFewNodesBehind) {
  StateTree tree;
  std::map<uint32_t, uint64_t> expected;
  size_t most = 0;
  for (uint64_t round = 0; round < 200; ++round) {
    for (uint32_t state = 0; state < 1000; ++state) {
      const uint64_t seed = round * 1000 + state;
      Scorer::StateSummary here = StateAt(state, seed, static_cast<double>(round) + 1e-3 * static_cast<double>(state));
      here.mem_free_mib = static_cast<int32_t>(40 * round + state % 40);
      tree.Put(here);
      expected[state] = seed + 1;
    }
    most = std::max(most, Check(tree, expected));
  }
  EXPECT_LE(most, 64 + 1000 / 4);
}

}  // namespace
}  // namespace horus
