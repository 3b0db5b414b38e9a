// SPDX-License-Identifier: Apache-2.0
// Weights of the Gaussian process by conjugate gradients, which never forms the matrix of all rows.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "interference/conjugate_gradients.h"
#include "interference/laws.h"
#include "lab/models/train_pairs.h"

namespace horus {
namespace {

constexpr double kTolerance = 1e-9;     // of the residual, relative to the right-hand side
constexpr int kMostIterations = 2'000;  // far more than any set of rows needed

// out[n x p] += scale * a[n x m] b[m x p]
void AddProduct(const std::vector<double>& a, const std::vector<double>& b, size_t n, size_t m, size_t p, double scale,
                std::vector<double>& out) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < m; ++k) {
      const double weight = scale * a[i * m + k];
      for (size_t j = 0; j < p; ++j) out[i * p + j] += weight * b[k * p + j];
    }
  }
}

// Where a row stands in the sums.
struct Place {
  uint32_t device, victim, other;                      // entries of the device's block
  uint32_t campaign, campaign_victim, campaign_other;  // of the campaign's sums
  bool several;  // campaigns on the device: a single one cannot be told from the device
};

class Covariance {
 public:
  Covariance(KernelState& state, std::vector<Place> places) : state_(state), places_(std::move(places)) {
    const double per_square = -0.5 / (state.settings.length * state.settings.length);
    for (const KernelBlock& a : state.blocks) {
      for (const KernelBlock& b : state.blocks) {
        std::vector<double>& near = near_.emplace_back();
        for (const auto& x : a.points) {
          for (const auto& y : b.points) {
            double square = 0;
            for (size_t c = 0; c < kPointColumns; ++c) square += (x[c] - y[c]) * (x[c] - y[c]);
            near.push_back(std::exp(per_square * square));
          }
        }
      }
    }
    for (const Place& p : places_)
      campaigns_ = std::max({campaigns_, p.campaign + 1, p.campaign_victim + 1, p.campaign_other + 1});
  }

  // The blocks' weights become the sums of `alpha` over the rows of each two entries.
  void SetWeights(const std::vector<double>& alpha) {
    for (KernelBlock& block : state_.blocks) block.weights.assign(block.size() * block.size(), 0);
    for (size_t r = 0; r < places_.size(); ++r) {
      const Place& p = places_[r];
      KernelBlock& block = state_.blocks[p.device];
      block.weights[p.victim * block.size() + p.other] += alpha[r];
    }
    for (KernelBlock& block : state_.blocks) block.Complete();
  }

  // (K + noise^2) alpha
  [[nodiscard]] std::vector<double> Times(const std::vector<double>& alpha) {
    SetWeights(alpha);
    const KernelSettings& s = state_.settings;
    std::vector<double> by_campaign(campaigns_);
    for (size_t r = 0; r < places_.size(); ++r) {
      const Place& p = places_[r];
      for (const uint32_t at : {p.campaign, p.campaign_victim, p.campaign_other}) by_campaign[at] += alpha[r];
    }
    double total = 0;
    for (const KernelBlock& block : state_.blocks) total += block.sum;
    std::vector<std::vector<double>> fields;  // of every two entries of a device
    for (size_t d = 0; d < state_.blocks.size(); ++d) fields.push_back(Field(d));
    std::vector<double> out(alpha.size());
    for (size_t r = 0; r < places_.size(); ++r) {
      const Place& p = places_[r];
      const double of_campaign =
          by_campaign[p.campaign] + by_campaign[p.campaign_victim] + by_campaign[p.campaign_other];
      out[r] = s.level * s.level * (total + state_.blocks[p.device].sum) +
               fields[p.device][p.victim * state_.blocks[p.device].size() + p.other] +
               (p.several ? s.campaign * s.campaign * of_campaign : 0) + s.noise * s.noise * alpha[r];
    }
    return out;
  }

 private:
  // All parts that depend on the two entries, for every two of device d.
  [[nodiscard]] std::vector<double> Field(size_t d) const {
    const KernelSettings& s = state_.settings;
    const KernelBlock& here = state_.blocks[d];
    const size_t n = here.size();
    std::vector<double> field(n * n), as_victim(n), as_other(n);
    for (size_t e = 0; e < state_.blocks.size(); ++e) {
      const KernelBlock& there = state_.blocks[e];
      const size_t m = there.size();
      const std::vector<double>& near = near_[d * state_.blocks.size() + e];
      const double share = d == e ? 1 : s.across;
      AddProduct(near, there.victim_weights, n, m, 1, share * s.curve * s.curve, as_victim);
      AddProduct(near, there.other_weights, n, m, 1, share * s.curve * s.curve, as_other);
      for (size_t k = 0; k < n; ++k) {
        for (size_t c = 0; c < kPointColumns; ++c) {
          as_victim[k] += share * s.slope * s.slope * here.points[k][c] * there.victim_slope[c];
          as_other[k] += share * s.slope * s.slope * here.points[k][c] * there.other_slope[c];
        }
      }
      AddInteraction(near, near_[e * state_.blocks.size() + d], there, n, share, field);
      AddNames(here, there, share, as_victim, as_other, field);
    }
    for (size_t v = 0; v < n; ++v) {
      for (size_t o = 0; o < n; ++o) field[v * n + o] += as_victim[v] + as_other[o];
    }
    return field;
  }

  void AddInteraction(const std::vector<double>& near, const std::vector<double>& back, const KernelBlock& there,
                      size_t n, double share, std::vector<double>& field) const {
    const size_t m = there.size();
    std::vector<double> half(n * m);
    AddProduct(near, there.weights, n, m, m, 1, half);
    AddProduct(half, back, n, m, n, share * state_.settings.interaction * state_.settings.interaction, field);
  }

  // What jobs of one name have in common, and each two of them.
  void AddNames(const KernelBlock& here, const KernelBlock& there, double share, std::vector<double>& as_victim,
                std::vector<double>& as_other, std::vector<double>& field) const {
    const KernelSettings& s = state_.settings;
    std::vector<int64_t> same(here.size(), -1);
    for (size_t k = 0; k < here.size(); ++k) {
      const auto at = std::lower_bound(there.jobs.begin(), there.jobs.end(), here.jobs[k]);
      if (at == there.jobs.end() || *at != here.jobs[k]) continue;
      same[k] = at - there.jobs.begin();
      as_victim[k] += share * s.job * s.job * there.victim_weights[static_cast<size_t>(same[k])];
      as_other[k] += share * s.job * s.job * there.other_weights[static_cast<size_t>(same[k])];
    }
    for (size_t v = 0; v < here.size(); ++v) {
      for (size_t o = 0; o < here.size(); ++o) {
        if (same[v] < 0 || same[o] < 0) continue;
        field[v * here.size() + o] +=
            share * s.pair * s.pair *
            there.weights[static_cast<size_t>(same[v]) * there.size() + static_cast<size_t>(same[o])];
      }
    }
  }

  KernelState& state_;
  std::vector<Place> places_;
  std::vector<std::vector<double>> near_;  // [device x device]: entries x entries
  uint32_t campaigns_ = 0;
};

// The entries that the rows name, and the centre and scale of their columns.
void Describe(const PairSet& set, std::span<const PairRow> rows, KernelState& state) {
  std::vector<std::set<uint32_t>> jobs(set.devices.size());
  for (const PairRow& row : rows) {
    jobs[row.device].insert(row.victim);
    jobs[row.device].insert(row.other);
  }
  std::array<double, kPointColumns> sum = {}, count = {};
  for (size_t d = 0; d < jobs.size(); ++d) {
    for (const uint32_t job : jobs[d]) {
      for (size_t c = 0; c < kPointColumns; ++c) {
        const auto value = static_cast<double>(set.jobs[job].points[d][c]);
        if (std::isnan(value)) continue;
        count[c] += 1;
        sum[c] += value;
      }
    }
  }
  for (size_t c = 0; c < kPointColumns; ++c) {
    state.centre[c] = count[c] > 0 ? sum[c] / count[c] : 0;
    state.scale[c] = ScaleOf(c);
  }
  for (size_t d = 0; d < jobs.size(); ++d) {
    KernelBlock& block = state.blocks.emplace_back();
    block.jobs.assign(jobs[d].begin(), jobs[d].end());
    for (const uint32_t job : block.jobs) block.points.push_back(state.Standardise(set.jobs[job].points[d]));
  }
}

std::vector<Place> PlacesOf(const KernelState& state, std::span<const PairRow> rows) {
  std::vector<Place> places;
  std::map<std::array<uint32_t, 3>, uint32_t> sums;  // campaign, job or none, as what
  const auto sum_of = [&sums](uint32_t campaign, uint32_t job, uint32_t role) {
    return sums.emplace(std::array{campaign, job, role}, static_cast<uint32_t>(sums.size())).first->second;
  };
  const auto entry_of = [](const KernelBlock& block, uint32_t job) {
    return static_cast<uint32_t>(std::lower_bound(block.jobs.begin(), block.jobs.end(), job) - block.jobs.begin());
  };
  std::vector<std::set<uint32_t>> campaigns(state.blocks.size());
  for (const PairRow& row : rows) campaigns[row.device].insert(row.campaign);
  for (const PairRow& row : rows) {
    const KernelBlock& block = state.blocks[row.device];
    places.push_back({.device = row.device,
                      .victim = entry_of(block, row.victim),
                      .other = entry_of(block, row.other),
                      .campaign = sum_of(row.campaign, kUnseen, 0),
                      .campaign_victim = sum_of(row.campaign, row.victim, 1),
                      .campaign_other = sum_of(row.campaign, row.other, 2),
                      .several = campaigns[row.device].size() > 1});
  }
  return places;
}

absl::Status CheckLimits(const KernelState& state, const std::vector<Place>& places) {
  size_t entries = 0;
  for (const KernelBlock& block : state.blocks) entries += block.size();
  if (entries > kMostKernelEntries) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     "horus model: expected at most %d jobs with rows, summed over devices, found %d",
                     kMostKernelEntries, entries);
  }
  std::set<std::array<uint32_t, 3>> pairs;
  for (const Place& p : places) pairs.insert({p.device, p.victim, p.other});
  if (pairs.size() > kMostKernelPairs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "horus model: expected at most %d ordered pairs, found %d",
                     kMostKernelPairs, pairs.size());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelState> FitKernel(const PairSet& set, std::span<const PairRow> rows,
                                      const KernelSettings& settings) {
  KernelState state{.settings = settings};
  Describe(set, rows, state);
  std::vector<Place> places = PlacesOf(state, rows);
  HORUS_RETURN_IF_ERROR(CheckLimits(state, places));

  std::vector<double> residual;
  for (const PairRow& row : rows) {
    residual.push_back(ExcessOf(row.slowdown) -
                       TheoryOf(set.jobs[row.victim].points[row.device], set.jobs[row.other].points[row.device]));
    state.mean += residual.back() / static_cast<double>(rows.size());
  }
  for (double& value : residual) value -= state.mean;

  Covariance covariance(state, std::move(places));
  const std::vector<double> alpha =
      SolveByConjugateGradients([&covariance](const std::vector<double>& x) { return covariance.Times(x); },
                                std::move(residual), kTolerance, kMostIterations);
  covariance.SetWeights(alpha);
  return state;
}

absl::StatusOr<BundleTarget> FitKernelTarget(const PairSet& set, std::span<const PairRow> rows,
                                             const PairFitOptions& /*options*/) {
  HORUS_ASSIGN_OR_RETURN(const KernelState state, FitKernel(set, rows, KernelSettings{}));
  return ToTarget(state);
}

}  // namespace horus
