// SPDX-License-Identifier: Apache-2.0
// Finds the leaf of a state, and divides leaves that are full.
#include "place/search/state_tree.h"

#include <algorithm>
#include <utility>

namespace horus {
namespace {

constexpr uint32_t kDimensions = 2;

// A tree with more nodes is made anew: where states gathered once and are no more, leaves stay. Chosen: some six times
// as many as a new tree has.
constexpr uint64_t kStatesPerNode = 4, kLeastNodes = 64;

float Coordinate(const Scorer::StateSummary& state, uint32_t dimension) {
  return dimension == 0 ? state.crowding : static_cast<float>(state.mem_free_mib) * state.per_mem_mib;
}

}  // namespace

void StateTree::Clear() {
  nodes_.clear();
  roots_.clear();
  at_.clear();
  count_ = capacity_ = 0;
}

uint32_t& StateTree::RootOf(const Scorer::StateSummary& state) {
  const size_t root = state.residents == Scorer::StateSummary::kNotSifted ? 0 : size_t{1} + state.context;
  if (roots_.size() <= root) roots_.resize(root + 1, kNone);
  return roots_[root];
}

void StateTree::Append(uint32_t leaf, const Scorer::StateSummary& state) {
  Node& into = nodes_[leaf];
  const size_t before = into.states.capacity();
  into.states.push_back(state);
  capacity_ += into.states.capacity() - before;
  into.region.Cover(state);
  ++count_;
  at_[state.state] = {leaf, static_cast<uint32_t>(into.states.size() - 1)};
}

void StateTree::Remove(uint32_t state) {
  const Where where = std::exchange(at_[state], Where());
  Node& leaf = nodes_[where.node];
  leaf.loose = true;
  --count_;
  if (where.position + 1 < leaf.states.size()) {
    leaf.states[where.position] = leaf.states.back();
    at_[leaf.states[where.position].state].position = where.position;
  }
  leaf.states.pop_back();
}

void StateTree::Put(const Scorer::StateSummary& state) {
  if (at_.size() <= state.state) at_.resize(state.state + size_t{1});
  if (at_[state.state].node != kNone) Remove(state.state);
  uint32_t& root = RootOf(state);
  if (root == kNone) {
    nodes_.emplace_back();
    root = static_cast<uint32_t>(nodes_.size() - 1);
  }
  uint32_t node = root;
  while (!nodes_[node].is_leaf()) {
    Node& inner = nodes_[node];
    inner.region.Cover(state);
    node = inner.left + (Coordinate(state, inner.dimension) < inner.below ? 0 : 1);
  }
  Append(node, state);
  if (nodes_[node].states.size() > nodes_[node].most && nodes_[node].region.sifted) Split(node);
  if (nodes_.size() > kLeastNodes + count_ / kStatesPerNode) Rebuild();
}

void StateTree::Rebuild() {
  StateTree anew;
  for (const Node& node : nodes_) {
    for (const Scorer::StateSummary& state : node.states) anew.Put(state);
  }
  *this = std::move(anew);
}

// At the median. A leaf of states that are all alike stays whole, and may hold twice as many.
void StateTree::Split(uint32_t leaf) {
  const auto left = static_cast<uint32_t>(nodes_.size());
  nodes_.resize(left + 2);
  for (const uint32_t child : {left, left + 1}) nodes_[child].states.reserve(nodes_[leaf].states.size());
  // From here on nothing fails.
  std::vector<Scorer::StateSummary>& states = nodes_[leaf].states;
  const auto middle = states.begin() + static_cast<ptrdiff_t>(states.size() / 2);
  for (uint32_t tried = 0; tried < kDimensions; ++tried) {
    const uint32_t dimension = (nodes_[leaf].dimension + tried) % kDimensions;
    const auto before = [dimension](const Scorer::StateSummary& a, const Scorer::StateSummary& b) {
      return Coordinate(a, dimension) < Coordinate(b, dimension);
    };
    std::nth_element(states.begin(), middle, states.end(), before);
    const float below = Coordinate(*middle, dimension);
    if (!(Coordinate(*std::ranges::min_element(states, before), dimension) < below)) continue;
    capacity_ += nodes_[left].states.capacity() + nodes_[left + 1].states.capacity() - states.capacity();
    nodes_[left].dimension = nodes_[left + 1].dimension = (dimension + 1) % kDimensions;
    nodes_[leaf].dimension = dimension;
    nodes_[leaf].below = below;
    nodes_[leaf].left = left;
    const std::vector<Scorer::StateSummary> divided = std::move(states);
    count_ -= divided.size();
    for (const Scorer::StateSummary& one : divided) Append(left + (Coordinate(one, dimension) < below ? 0 : 1), one);
    return;
  }
  for (uint32_t i = 0; i < states.size(); ++i) at_[states[i].state].position = i;
  nodes_[leaf].most = 2 * states.size();
  nodes_.resize(left);
}

void StateTree::Tighten(uint32_t node) {
  Node& one = nodes_[node];
  if (!one.is_leaf()) {
    one.region = nodes_[one.left].region;
    one.region.Cover(nodes_[one.left + 1].region);
  } else if (std::exchange(one.loose, false)) {
    one.region = {};
    for (const Scorer::StateSummary& state : one.states) one.region.Cover(state);
  }
}

uint64_t StateTree::bytes_held() const {
  return nodes_.capacity() * sizeof(Node) + capacity_ * sizeof(Scorer::StateSummary) +
         roots_.capacity() * sizeof(uint32_t) + at_.capacity() * sizeof(Where);
}

}  // namespace horus
