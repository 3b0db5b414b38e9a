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
  const Tenant* tenant = nullptr;
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

// `buffer`: 2 * atoms_ numbers, which `out` needs.
void KernelModel::Encode(uint32_t device, const Tenant& tenant, std::span<double> buffer, Encoded& out) const {
  out = {.tenant = &tenant, .near = buffer.first(atoms_), .reach = buffer.subspan(atoms_, atoms_)};
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

double KernelModel::LevelOf(uint32_t device) const {
  const double level = state_.settings.level;
  double sum = state_.mean;
  for (size_t d = 0; d < state_.blocks.size(); ++d) sum += (d == device ? 2 : 1) * level * level * state_.blocks[d].sum;
  return sum;
}

double KernelModel::Remembered(uint32_t device, uint32_t victim, uint32_t other) const {
  const KernelSettings& s = state_.settings;
  double sum = 0;
  if (victim == kUnseen || other == kUnseen) return sum;
  for (size_t d = 0; d < state_.blocks.size(); ++d) {
    const int32_t v = slots_[d][victim], o = slots_[d][other];
    if (v < 0 || o < 0) continue;
    const KernelBlock& block = state_.blocks[d];
    sum += (d == device ? 1 : s.across) * block.weights[static_cast<size_t>(v) * block.size() + static_cast<size_t>(o)];
  }
  return sum * s.pair * s.pair;
}

float KernelModel::SlowdownIn(uint32_t device, double level, const Encoded& victim, const Encoded& other) const {
  const double z = level + TheoryOf(victim.tenant->point, other.tenant->point) + victim.as_victim + other.as_other +
                   Dot(victim.reach, other.near) + Remembered(device, victim.job, other.job);
  return static_cast<float>(SlowdownOf(z));
}

void KernelModel::Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const {
  const size_t n = tenants.size();
  std::vector<double> buffer(2 * n * atoms_);
  std::vector<Encoded> encoded(n);
  for (size_t i = 0; i < n; ++i) {
    Encode(device, tenants[i], std::span(buffer).subspan(2 * i * atoms_, 2 * atoms_), encoded[i]);
  }
  const double level = LevelOf(device);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (i != j) out[i * n + j] = SlowdownIn(device, level, encoded[i], encoded[j]);
    }
  }
}

void KernelModel::Beside(uint32_t device, const Tenant& newcomer, std::span<const Tenant> others, std::span<float> mine,
                         std::span<float> theirs) const {
  std::vector<double> buffer(4 * atoms_);
  Encoded one, other;
  Encode(device, newcomer, std::span(buffer).first(2 * atoms_), one);
  const double level = LevelOf(device);
  for (size_t i = 0; i < others.size(); ++i) {
    Encode(device, others[i], std::span(buffer).subspan(2 * atoms_), other);
    mine[i] = SlowdownIn(device, level, one, other);
    theirs[i] = SlowdownIn(device, level, other, one);
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
