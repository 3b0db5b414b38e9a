// SPDX-License-Identifier: Apache-2.0
// The posterior mean of the Gaussian process, summed block by block.
#include "interference/kernel_model.h"

#include <bit>
#include <numbers>
#include <numeric>
#include <utility>

namespace horus {
namespace {

constexpr double kFurthest = 1e6;  // from the centre, in scales: keeps sums finite, and no job is nearly so odd

// The interaction is summed in whole numbers that doubles hold exactly: from the victim to the other or back, the sum
// is the same to the bit. So a newcomer's sums over the weights serve for both of its pairs with each resident.
constexpr int kNearBits = 21, kWeightBits = 28;  // of the kernel, and of the sum of all weights
constexpr double kNearUnit = 1.0 / (1 << kNearBits);
// A sum over the weights is below 2^(kWeightBits + kNearBits), and times a kernel too large for a double. So it is
// split: whole multiples of 2^kLowBits, and the rest, whose products with kernels can be added up each.
constexpr int kLowBits = kWeightBits + 2 * kNearBits + 1 - std::numeric_limits<double>::digits;
static_assert(kMostKernelEntries * kMostKernelEntries / 2 <= 1 << (kWeightBits - 1));  // what rounding adds to weights
static_assert(uint64_t{kMostKernelEntries} << (kLowBits - 1 + kNearBits) <= uint64_t{1}
                                                                                << std::numeric_limits<double>::digits);

// In four sums, which the processor adds at the same time.
double Dot(std::span<const double> a, std::span<const double> b) {
  std::array<double, 4> sums = {};
  size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// e^x for x <= 0, within 3e-7. Unlike std::exp it becomes vector instructions.
float ExpOfNegative(float x) {
  constexpr float kLeast = -87;  // e^-87 is nearly the smallest float
  x = x < kLeast ? kLeast : x;
  const auto twos = static_cast<int32_t>(x * std::numbers::log2e_v<float> - 0.5f);
  const float rest = x - static_cast<float>(twos) * std::numbers::ln2_v<float>;  // at most ln 2 / 2 either way
  constexpr float k3 = 1.0f / 3, k5 = 1.0f / 5, k6 = 1.0f / 6;
  const float series =
      1 + rest * (1 + rest * 0.5f * (1 + rest * k3 * (1 + rest * 0.25f * (1 + rest * k5 * (1 + rest * k6)))));
  return series * std::bit_cast<float>((twos + std::numeric_limits<float>::max_exponent - 1)
                                       << (std::numeric_limits<float>::digits - 1));
}

// What holds on a device of which the model measured nothing: of the level of others half, the rest of a law that
// conserves work (both busy all the time, each takes twice as long); of what they taught of jobs more. Of the cards
// left out in turn about the best for all (`scripts/bench interference --data DIR`, leave gpu: 12.4, 17.4, 20.2 %
// -> 12.7, 15.6, 18.7 %). Of a job whose kernels are unknown the law alone holds, here 0.9 + 1.1 u^0.75 v, on average
// within 6 % of max(1, u + v).
constexpr double kLevelHeld = 0.5, kJobsHeld = 0.75;

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
  Entries near;  // the smooth kernel to every entry, in whole kNearUnits
  uint32_t job = kUnseen;
  double as_victim = 0, as_other = 0;
};

// The interaction's weights of a tenant for each of whole kNearUnits of whoever is on the other side; to be added.
struct KernelModel::Reach {
  Entries high, low;
};

KernelModel::KernelModel(const PairHeader& header, KernelState state) : state_(std::move(state)) {
  for (uint32_t job = 0; job < header.profiles.size(); ++job) {
    if (header.profiles[job] != 0) profiles_.emplace_back(header.profiles[job], job);
  }
  std::sort(profiles_.begin(), profiles_.end());
  double total = 0;
  for (KernelBlock& block : state_.blocks) {
    block.Complete();
    std::vector<int32_t>& slots = slots_.emplace_back(header.profiles.size(), -1);
    for (size_t k = 0; k < block.size(); ++k) slots[block.jobs[k]] = static_cast<int32_t>(k);
    for (const KernelBlock::Point& point : block.points) {
      for (size_t c = 0; c < kPointColumns; ++c) columns_[c].push_back(static_cast<float>(point[c]));
    }
    for (const double weight : block.weights) total += std::abs(weight);
  }
  // A power of two. The sum of all weights is below 2^kWeightBits of it, after rounding, too.
  const double unit =
      std::ldexp(1.0, std::ilogb(std::max(total, std::numeric_limits<double>::min())) + 2 - kWeightBits);
  interaction_unit_ = state_.settings.interaction * state_.settings.interaction * unit * kNearUnit * kNearUnit;
  for (const KernelBlock& block : state_.blocks) {
    for (const double weight : block.weights) weights_.push_back(std::nearbyint(weight / unit));
  }
  const size_t entries = columns_[0].size();
  const double per_square = -0.5 / (state_.settings.length * state_.settings.length);
  kernels_.reserve(entries * entries);
  for (size_t a = 0; a < entries; ++a) {
    for (size_t b = 0; b < entries; ++b) {
      double square = 0;
      for (const auto& column : columns_) square += std::pow(double{column[a]} - double{column[b]}, 2);
      kernels_.push_back(std::exp(per_square * square));
    }
  }
  for (uint32_t device = 0; device <= state_.blocks.size(); ++device) on_.push_back(MakeOn(device));
}

uint32_t KernelModel::JobOf(uint64_t profile) const {
  const auto at = std::lower_bound(profiles_.begin(), profiles_.end(), std::pair{profile, uint32_t{0}});
  return profile != 0 && at != profiles_.end() && at->first == profile ? at->second : kUnseen;
}

KernelModel::OnDevice KernelModel::MakeOn(uint32_t device) const {
  const KernelSettings& s = state_.settings;
  const bool measured = device < state_.blocks.size() && state_.blocks[device].size() > 0;
  OnDevice on = {.device = device, .across = s.across * (measured ? 1 : kJobsHeld), .level = state_.mean};
  for (size_t d = 0; d < state_.blocks.size(); ++d) {
    const KernelBlock& block = state_.blocks[d];
    const double share = on.ShareOf(d);
    on.level += (d == device ? 2 : 1) * s.level * s.level * block.sum;
    const double curve = share * s.curve * s.curve * kNearUnit, slope = share * s.slope * s.slope;
    for (const double weight : block.victim_weights) on.victim_curve.push_back(curve * weight);
    for (const double weight : block.other_weights) on.other_curve.push_back(curve * weight);
    for (size_t c = 0; c < kPointColumns; ++c) {
      on.victim_slope[c] += slope * block.victim_slope[c];
      on.other_slope[c] += slope * block.other_slope[c];
    }
  }
  if (measured) return on;
  on.level = kLevelHeld * on.level + (1 - kLevelHeld) * kConservingLevel;
  on.to_law = kConservingLevel - on.level;
  return on;
}

void KernelModel::Encode(const OnDevice& on, const Tenant& tenant, Encoded& out) const {
  const KernelSettings& s = state_.settings;
  out.tenant = &tenant;
  out.job = JobOf(tenant.profile_id);
  if (on.to_law != 0 && out.job == kUnseen && !DescribesKernels(tenant.point)) {
    out.near.assign(columns_[0].size(), 0);
    out.as_victim = on.to_law / 2 + TheoryOf(tenant.point, kBusy) / 2;  // of waiting less hides than TheoryOf says
    out.as_other = on.to_law / 2;
    return;
  }
  const KernelBlock::Point x = state_.Standardise(tenant.point);
  const auto per_square = static_cast<float>(-0.5 / (s.length * s.length));
  out.near.resize(columns_[0].size());
  double* const near = out.near.data();
  static_assert(kPointColumns == 4);
  const float *const p0 = columns_[0].data(), *const p1 = columns_[1].data(), *const p2 = columns_[2].data(),
                     *const p3 = columns_[3].data();
  const auto x0 = static_cast<float>(x[0]), x1 = static_cast<float>(x[1]), x2 = static_cast<float>(x[2]),
             x3 = static_cast<float>(x[3]);
  for (size_t k = 0; k < out.near.size(); ++k) {
    const float d0 = x0 - p0[k], d1 = x1 - p1[k], d2 = x2 - p2[k], d3 = x3 - p3[k];
    const float kernel = ExpOfNegative(per_square * ((d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)));
    near[k] = static_cast<int32_t>(kernel * (1 << kNearBits) + 0.5f);
  }
  out.as_victim = Dot(out.near, on.victim_curve) + Dot(x, on.victim_slope);
  out.as_other = Dot(out.near, on.other_curve) + Dot(x, on.other_slope);
  if (out.job == kUnseen) return;
  for (size_t d = 0; d < state_.blocks.size(); ++d) {
    const KernelBlock& block = state_.blocks[d];
    const int32_t slot = slots_[d][out.job];
    if (slot < 0) continue;
    const double job = on.ShareOf(d) * s.job * s.job;
    out.as_victim += job * block.victim_weights[static_cast<size_t>(slot)];
    out.as_other += job * block.other_weights[static_cast<size_t>(slot)];
  }
}

void KernelModel::ReachOf(const Encoded& tenant, Reach& as_victim, Reach& as_other) const {
  as_victim.high.assign(tenant.near.size(), 0);
  as_other.high.resize(tenant.near.size());
  size_t first = 0;
  const double* weights = weights_.data();
  for (const KernelBlock& block : state_.blocks) {
    const size_t n = block.size();
    const double* const near = tenant.near.data() + first;
    double* const sums = as_victim.high.data() + first;
    for (size_t v = 0; v < n; ++v, weights += n) {
      for (size_t o = 0; o < n; ++o) sums[o] += near[v] * weights[o];
      as_other.high[first + v] = Dot({weights, n}, {near, n});
    }
    first += n;
  }
  for (Reach* side : {&as_victim, &as_other}) {
    // Adding it leaves whole multiples of 2^kLowBits, the nearest ones.
    const double rounds = std::ldexp(1.5, std::numeric_limits<double>::digits - 1 + kLowBits);
    side->low.resize(side->high.size());
    for (size_t k = 0; k < side->high.size(); ++k) {
      const double sum = side->high[k];
      side->high[k] = (sum + rounds) - rounds;
      side->low[k] = sum - side->high[k];
    }
  }
}

double KernelModel::Remembered(const OnDevice& on, uint32_t victim, uint32_t other) const {
  const KernelSettings& s = state_.settings;
  double sum = 0;
  if (victim == kUnseen || other == kUnseen) return sum;
  for (size_t d = 0; d < state_.blocks.size(); ++d) {
    const int32_t v = slots_[d][victim], o = slots_[d][other];
    if (v < 0 || o < 0) continue;
    const KernelBlock& block = state_.blocks[d];
    sum += on.ShareOf(d) * block.weights[static_cast<size_t>(v) * block.size() + static_cast<size_t>(o)];
  }
  return sum * s.pair * s.pair;
}

double KernelModel::Interaction(const OnDevice& on, const Reach& reach, const Encoded& other) const {
  double sum = 0;
  size_t first = 0;
  for (size_t d = 0; d < state_.blocks.size(); ++d) {
    const size_t n = state_.blocks[d].size();
    const auto part = [&](const Entries& entries) { return std::span(entries).subspan(first, n); };
    const double here = Dot(part(reach.high), part(other.near)) + Dot(part(reach.low), part(other.near));
    sum += on.ShareOf(d) * here;
    first += n;
  }
  return sum * interaction_unit_;
}

// A function sum_k r_k kernel(c_k, x) is nowhere larger than its norm, the root of r' K r: by Cauchy and Schwarz.
double KernelModel::MostInteraction(const OnDevice& on, const Reach& reach) const {
  Entries r;
  double sum = 0;
  for (size_t d = 0, k = 0; d < state_.blocks.size(); ++d) {
    const double share = on.ShareOf(d) * interaction_unit_ / kNearUnit;
    for (const size_t end = k + state_.blocks[d].size(); k < end; ++k) {
      r.push_back(share * (reach.high[k] + reach.low[k]));
      sum += std::abs(r.back());
    }
  }
  double square = 0;
  for (size_t k = 0; k < r.size(); ++k) square += r[k] * Dot(std::span(kernels_).subspan(k * r.size(), r.size()), r);
  return std::sqrt(std::max(square, 0.0)) + sum * kNearUnit;
}

PairModel::Parts KernelModel::LeastOf(uint32_t device, const Tenant& newcomer) const {
  const OnDevice& on = On(device);
  Encoded one;
  Encode(on, newcomer, one);
  Reach as_victim, as_other;
  ReachOf(one, as_victim, as_other);
  double least_victim = 0, least_other = 0;  // of what is remembered
  for (const auto& [profile, job] : profiles_) {
    least_victim = std::min(least_victim, Remembered(on, one.job, job));
    least_other = std::min(least_other, Remembered(on, job, one.job));
  }
  return {.suffers = on.level + TheoryOf(newcomer.point, kBusy) + one.as_victim + least_victim -
                     MostInteraction(on, as_victim),
          .inflicts =
              on.level + TheoryOf(kBusy, newcomer.point) + one.as_other + least_other - MostInteraction(on, as_other)};
}

PairModel::Parts KernelModel::PartOf(uint32_t device, const Tenant& resident) const {
  Encoded one;
  Encode(On(device), resident, one);
  return {.suffers = TheoryOf(resident.point, kBusy) + one.as_victim,
          .inflicts = TheoryOf(kBusy, resident.point) + one.as_other};
}

float KernelModel::SlowdownIn(const OnDevice& on, const Encoded& victim, const Encoded& other,
                              double interaction) const {
  const double z = on.level + TheoryOf(victim.tenant->point, other.tenant->point) + victim.as_victim + other.as_other +
                   interaction + Remembered(on, victim.job, other.job);
  return static_cast<float>(SlowdownOf(z));
}

void KernelModel::Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const {
  const OnDevice& on = On(device);
  const size_t n = tenants.size();
  std::vector<Encoded> encoded(n);
  for (size_t i = 0; i < n; ++i) Encode(on, tenants[i], encoded[i]);
  Reach as_victim, as_other;
  for (size_t i = 0; i < n; ++i) {
    if (i + 1 < n) ReachOf(encoded[i], as_victim, as_other);
    for (size_t j = i + 1; j < n; ++j) {
      out[i * n + j] = SlowdownIn(on, encoded[i], encoded[j], Interaction(on, as_victim, encoded[j]));
      out[j * n + i] = SlowdownIn(on, encoded[j], encoded[i], Interaction(on, as_other, encoded[j]));
    }
  }
}

void KernelModel::Beside(uint32_t device, const Tenant& newcomer, std::span<const Tenant> others, std::span<float> mine,
                         std::span<float> theirs) const {
  const OnDevice& on = On(device);
  Encoded one, other;
  Encode(on, newcomer, one);
  Reach as_victim, as_other;
  ReachOf(one, as_victim, as_other);
  for (size_t i = 0; i < others.size(); ++i) {
    Encode(on, others[i], other);
    mine[i] = SlowdownIn(on, one, other, Interaction(on, as_victim, other));
    theirs[i] = SlowdownIn(on, other, one, Interaction(on, as_other, other));
  }
}

size_t KernelModel::bytes_held() const {
  size_t bytes = sizeof(*this) + profiles_.capacity() * sizeof(profiles_[0]);
  for (const KernelBlock& block : state_.blocks) {
    bytes += sizeof(block) + block.size() * (sizeof(uint32_t) + sizeof(KernelBlock::Point) + 2 * sizeof(double)) +
             block.weights.size() * sizeof(double);
  }
  bytes += (weights_.capacity() + kernels_.capacity()) * sizeof(double);
  for (const auto& column : columns_) bytes += column.capacity() * sizeof(float);
  for (const OnDevice& on : on_) bytes += sizeof(on) + 2 * on.victim_curve.capacity() * sizeof(double);
  for (const auto& slots : slots_) bytes += sizeof(slots) + slots.size() * sizeof(int32_t);
  return bytes;
}

}  // namespace horus
