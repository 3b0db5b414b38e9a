// SPDX-License-Identifier: Apache-2.0
// The posterior mean of the Gaussian process, summed block by block.
#include "interference/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "interference/laws.h"

namespace horus {
namespace {

constexpr double kFurthest = 1e6;  // from the centre, in scales: keeps sums finite, and no job is nearly so odd

double Dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

void KernelBlock::Complete() {
  victim_weights.assign(size(), 0);
  other_weights.assign(size(), 0);
  victim_slope = other_slope = {};
  for (size_t v = 0; v < size(); ++v) {
    for (size_t o = 0; o < size(); ++o) {
      victim_weights[v] += weights[v * size() + o];
      other_weights[o] += weights[v * size() + o];
    }
  }
  for (size_t k = 0; k < size(); ++k) {
    for (size_t c = 0; c < kPointColumns; ++c) {
      victim_slope[c] += victim_weights[k] * points[k][c];
      other_slope[c] += other_weights[k] * points[k][c];
    }
  }
  sum = std::accumulate(victim_weights.begin(), victim_weights.end(), 0.0);
}

KernelBlock::Point KernelState::Standardise(const JobPoint& point) const {
  KernelBlock::Point x = {};
  for (size_t c = 0; c < kPointColumns; ++c) {
    if (std::isnan(point[c])) continue;
    x[c] = std::clamp((static_cast<double>(point[c]) - centre[c]) / scale[c], -kFurthest, kFurthest);
  }
  return x;
}

// A tenant as the sums need it.
struct KernelModel::Encoded {
  std::span<double> near;   // [atoms] smooth kernel to every entry of every block
  std::span<double> reach;  // [atoms] the interaction's weights of this victim, for every other
  uint32_t job = kUnseen;
  double as_victim = 0, as_other = 0;
};

KernelModel::KernelModel(const PairHeader& header, KernelState state) : state_(std::move(state)) {
  for (uint32_t job = 0; job < header.profiles.size(); ++job) {
    if (header.profiles[job] != 0) profiles_.emplace_back(header.profiles[job], job);
  }
  std::sort(profiles_.begin(), profiles_.end());
  for (KernelBlock& block : state_.blocks) {
    block.Complete();
    std::vector<int32_t>& slots = slots_.emplace_back(header.profiles.size(), -1);
    for (size_t k = 0; k < block.size(); ++k) slots[block.jobs[k]] = static_cast<int32_t>(k);
    atoms_ += block.size();
  }
}

uint32_t KernelModel::JobOf(uint64_t profile) const {
  const auto at = std::lower_bound(profiles_.begin(), profiles_.end(), std::pair{profile, uint32_t{0}});
  return profile != 0 && at != profiles_.end() && at->first == profile ? at->second : kUnseen;
}

void KernelModel::Encode(uint32_t device, const Tenant& tenant, Encoded& out) const {
  const KernelSettings& s = state_.settings;
  const KernelBlock::Point x = state_.Standardise(tenant.point);
  const double per_square = -0.5 / (s.length * s.length);
  out.job = JobOf(tenant.profile_id);
  size_t first = 0;
  for (size_t d = 0; d < state_.blocks.size(); ++d) {
    const KernelBlock& block = state_.blocks[d];
    const size_t n = block.size();
    const std::span<double> near = out.near.subspan(first, n), reach = out.reach.subspan(first, n);
    const double share = d == device ? 1 : s.across;
    for (size_t k = 0; k < n; ++k) {
      double square = 0;
      for (size_t c = 0; c < kPointColumns; ++c) square += (x[c] - block.points[k][c]) * (x[c] - block.points[k][c]);
      near[k] = std::exp(per_square * square);
    }
    std::fill(reach.begin(), reach.end(), 0.0);
    for (size_t v = 0; v < n; ++v) {
      const double weight = share * s.interaction * s.interaction * near[v];
      for (size_t o = 0; o < n; ++o) reach[o] += weight * block.weights[v * n + o];
    }
    const double curve = share * s.curve * s.curve, slope = share * s.slope * s.slope, job = share * s.job * s.job;
    out.as_victim += curve * Dot(near, block.victim_weights) + slope * Dot(x, block.victim_slope);
    out.as_other += curve * Dot(near, block.other_weights) + slope * Dot(x, block.other_slope);
    if (const int32_t slot = out.job == kUnseen ? -1 : slots_[d][out.job]; slot >= 0) {
      out.as_victim += job * block.victim_weights[static_cast<size_t>(slot)];
      out.as_other += job * block.other_weights[static_cast<size_t>(slot)];
    }
    first += n;
  }
}

void KernelModel::Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const {
  const KernelSettings& s = state_.settings;
  const size_t n = tenants.size();
  std::vector<double> buffer(2 * n * atoms_);
  std::vector<Encoded> encoded(n);
  for (size_t i = 0; i < n; ++i) {
    encoded[i].near = std::span(buffer).subspan(2 * i * atoms_, atoms_);
    encoded[i].reach = std::span(buffer).subspan((2 * i + 1) * atoms_, atoms_);
    Encode(device, tenants[i], encoded[i]);
  }
  double level = state_.mean;
  for (size_t d = 0; d < state_.blocks.size(); ++d) {
    level += (d == device ? 2 : 1) * s.level * s.level * state_.blocks[d].sum;
  }
  // What is remembered of two jobs by name, on this device and on the others.
  const auto remembered = [&](uint32_t victim, uint32_t other) {
    double sum = 0;
    if (victim == kUnseen || other == kUnseen) return sum;
    for (size_t d = 0; d < state_.blocks.size(); ++d) {
      const int32_t v = slots_[d][victim], o = slots_[d][other];
      if (v < 0 || o < 0) continue;
      const KernelBlock& block = state_.blocks[d];
      sum +=
          (d == device ? 1 : s.across) * block.weights[static_cast<size_t>(v) * block.size() + static_cast<size_t>(o)];
    }
    return sum * s.pair * s.pair;
  };
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      const double z = level + TheoryOf(tenants[i].point, tenants[j].point) + encoded[i].as_victim +
                       encoded[j].as_other + Dot(encoded[i].reach, encoded[j].near) +
                       remembered(encoded[i].job, encoded[j].job);
      out[i * n + j] = static_cast<float>(SlowdownOf(z));
    }
  }
}

size_t KernelModel::bytes_held() const {
  size_t bytes = sizeof(*this) + profiles_.capacity() * sizeof(profiles_[0]);
  for (const KernelBlock& block : state_.blocks) {
    bytes += sizeof(block) + block.size() * (sizeof(uint32_t) + sizeof(KernelBlock::Point) + 2 * sizeof(double)) +
             block.weights.size() * sizeof(double);
  }
  for (const auto& slots : slots_) bytes += sizeof(slots) + slots.size() * sizeof(int32_t);
  return bytes;
}

}  // namespace horus
