// SPDX-License-Identifier: Apache-2.0
// StateTree: device states by what they have left, so that a class of jobs that comes first looks at few of them.
//
// Enters:  descriptions of states (Scorer::StateSummary).
// Leaves:  a tree whose leaves hold the states; each node bounds what the states below it have (Scorer::Region).
// Cost:    Put and Remove O(log states); about 130 bytes a state.
// Thread class: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "place/search/scorer.h"

namespace horus {

// A k-d tree for each context (PairTable), over the crowding and the free memory of states. States that are not sifted
// are in a leaf of their own.
class StateTree {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kMostInLeaf = 64;  // chosen: of 32 and 64 the faster

  struct Node {
    Scorer::Region region;                     // covers the states below, and may cover more
    std::vector<Scorer::StateSummary> states;  // of a leaf
    bool loose = false;                        // of a leaf: the region may cover more
    size_t most = kMostInLeaf;                 // a leaf with more states becomes two
    uint32_t left = kNone;                     // kNone = a leaf; else the right child is the next node
    uint32_t dimension = 0;                    // along which the node was or will be divided
    float below = 0;                           // coordinates that belong to the left child
    [[nodiscard]] bool is_leaf() const { return left == kNone; }
  };

  void Clear();
  // Adds the state, or takes the new description in place of the old one.
  void Put(const Scorer::StateSummary& state);
  void Remove(uint32_t state);
  [[nodiscard]] const Scorer::StateSummary& Of(uint32_t state) const {  // which was Put
    return nodes_[at_[state].node].states[at_[state].position];
  }
  [[nodiscard]] std::span<const uint32_t> roots() const { return roots_; }  // kNone = none
  [[nodiscard]] const Node& node(uint32_t node) const { return nodes_[node]; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  // Makes the region cover no more than the regions of the children, or the states of a leaf.
  void Tighten(uint32_t node);
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  struct Where {
    uint32_t node = kNone;
    uint32_t position = 0;
  };
  [[nodiscard]] uint32_t& RootOf(const Scorer::StateSummary& state);
  void Append(uint32_t leaf, const Scorer::StateSummary& state);
  void Split(uint32_t leaf);
  void Rebuild();

  std::vector<Node> nodes_;
  std::vector<uint32_t> roots_;  // that of states that are not sifted, then by context
  std::vector<Where> at_;        // by state
  uint64_t count_ = 0;           // of states
  uint64_t capacity_ = 0;        // of all leaves' states
};

}  // namespace horus
