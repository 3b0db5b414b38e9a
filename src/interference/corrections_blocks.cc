// SPDX-License-Identifier: Apache-2.0
// What the margins of learned corrections rest on: for each job the observations that say most, and how they hang
// together.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "interference/corrections.h"

namespace horus {
namespace {

// A symmetric, positive definite matrix of n rows in place, by Gauss and Jordan: no pivots are needed, for noise keeps
// its diagonal away from 0.
void Invert(std::vector<double>& a, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    const double pivot = 1 / a[k * n + k];
    a[k * n + k] = 1;
    for (size_t j = 0; j < n; ++j) a[k * n + j] *= pivot;
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i * n + k];
      a[i * n + k] = 0;
      for (size_t j = 0; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
}

}  // namespace

// The observations that a job's margins rest on: those with the least noise, and of as much the first.
void Corrections::MakeBlock(std::span<const uint32_t> pairs, bool as_victim) {
  std::vector<uint32_t> told;
  for (const uint32_t at : pairs) {
    if (std::isfinite(pairs_[at].noise)) told.push_back(at);
  }
  std::stable_sort(told.begin(), told.end(),
                   [this](uint32_t a, uint32_t b) { return pairs_[a].noise < pairs_[b].noise; });
  if (told.size() > kMostTold) told.resize(kMostTold);
  const size_t n = told.size();
  std::vector<double> covariance(n * n);
  const auto error_of = [&](const Pair& p, bool victims) {
    return p.scale * (victims ? p.victim_error : p.other_error);
  };
  for (size_t i = 0; i < n; ++i) {
    const Pair& a = pairs_[told[i]];
    for (size_t j = 0; j < n; ++j) {
      const Pair& b = pairs_[told[j]];
      covariance[i * n + j] = Product(CommonOf(a), CommonOf(b)) +
                              error_of(a, as_victim) * error_of(b, as_victim) * ShareOf(a, b, as_victim);
    }
    const double nuisance = error_of(a, !as_victim);
    covariance[i * n + i] += a.noise + kErrorOfOne * nuisance * nuisance;
  }
  Invert(covariance, n);
  for (const uint32_t at : told) {
    told_.push_back(static_cast<uint32_t>(std::find(pairs.begin(), pairs.end(), at) - pairs.begin()));
  }
  for (const double value : covariance) inverses_.push_back(static_cast<float>(value));
}

void Corrections::MakeBlocks() {
  const auto add = [this](uint32_t first, std::span<const uint32_t> pairs, bool as_victim) {
    Block block{.first = static_cast<uint32_t>(told_.size()), .inverse = inverses_.size()};
    MakeBlock(pairs, as_victim);
    block.count = static_cast<uint32_t>(told_.size()) - block.first;
    if (block.count > 0) blocks_[as_victim ? 1 : 0].emplace_back(first, block);
  };
  std::vector<uint32_t> all(pairs_.size());
  std::iota(all.begin(), all.end(), 0u);
  for (size_t first = 0; first < pairs_.size();) {
    const size_t last = WithVictim(pairs_[first].device, pairs_[first].victim).second;
    add(static_cast<uint32_t>(first), std::span(all).subspan(first, last - first), true);
    first = last;
  }
  for (size_t first = 0; first < by_other_.size();) {
    const Pair& pair = pairs_[by_other_[first]];
    const std::span<const uint32_t> with = WithOther(pair.device, pair.other);
    add(static_cast<uint32_t>(first), with, false);
    first += with.size();
  }
}

}  // namespace horus
