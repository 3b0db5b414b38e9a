// SPDX-License-Identifier: Apache-2.0
// Predicts pairs of kinds once, and finds the prices of their mix.
#include "place/search/prices.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "interference/laws.h"

namespace horus {
namespace {

constexpr int kSteps = 80;
// How sharply GPUs choose, as a share of the worth of the best way: from the first to the last step. Chosen: with
// these the plan closes .906 of the gap on V100 where the true pairs are known (docs/modes.md, Who goes next).
constexpr double kFirstSpread = 0.3;
constexpr double kLastSpread = 0.01;
constexpr double kMostChange = 4;  // of a kind's share that counts in one step

double EighthOfAnOctave(double value) { return std::exp2(std::round(8 * std::log2(value)) / 8); }

// What all GPUs do at these prices, by kind.
class Market {
 public:
  Market(std::span<const double> gpus, std::span<const WorkWay> ways) : gpus_(gpus), ways_(ways), worth_(ways.size()) {}

  void Serve(std::span<const double> prices, double spread, std::span<double> served) {
    std::ranges::fill(served, 0.0);
    for (size_t begin = 0; begin < ways_.size();) {
      const uint32_t gpu = ways_[begin].gpu;
      size_t end = begin;
      double best = 0;
      for (; end < ways_.size() && ways_[end].gpu == gpu; ++end) {
        const WorkWay& way = ways_[end];
        worth_[end] = way.rate_a * prices[way.a] + way.rate_b * prices[way.b];
        best = std::max(best, worth_[end]);
      }
      double sum = 0;
      for (size_t i = begin; i < end; ++i) {
        const double behind = (best - worth_[i]) / (spread * best);
        worth_[i] = behind < kFarBehind ? std::exp(-behind) : 0;
        sum += worth_[i];
      }
      for (size_t i = begin; i < end; ++i) {
        if (worth_[i] == 0) continue;
        const double share = gpus_[gpu] * worth_[i] / sum;
        served[ways_[i].a] += share * ways_[i].rate_a;
        served[ways_[i].b] += share * ways_[i].rate_b;
      }
      begin = end;
    }
  }

 private:
  static constexpr double kFarBehind = 12;  // e^-12 of the best way's share: no more than rounding
  std::span<const double> gpus_;
  std::span<const WorkWay> ways_;
  std::vector<double> worth_;
};

// By how much two kinds differ to their neighbours.
double Distance(const Demand& a, const Demand& b) {
  const auto part = [](const Bounded& x, const Bounded& y) {
    return std::abs(static_cast<double>(x.estimate) - static_cast<double>(y.estimate));
  };
  return part(a.gpu_util_pct, b.gpu_util_pct) + part(a.mem_bw_util_pct, b.mem_bw_util_pct);
}

}  // namespace

std::vector<double> PriceMix(std::span<const double> gpus, std::span<const double> mix, std::span<const WorkWay> ways) {
  const size_t kinds = mix.size();
  std::vector<double> prices(kinds, 1), served(kinds), shares(mix.begin(), mix.end());
  std::vector<bool> runs(kinds);
  for (const WorkWay& way : ways) runs[way.a] = runs[way.b] = true;
  for (size_t k = 0; k < kinds; ++k) shares[k] = runs[k] ? shares[k] : 0;
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (all == 0) return prices;
  for (double& share : shares) share /= all;
  Market market(gpus, ways);
  for (int step = 0; step < kSteps; ++step) {
    const double spread = kFirstSpread * std::pow(kLastSpread / kFirstSpread, static_cast<double>(step) / (kSteps - 1));
    market.Serve(prices, spread, served);
    // The rate at which the mix is served as a whole: by what its parts are worth.
    double rate = 0, worth = 0;
    for (size_t k = 0; k < kinds; ++k) {
      rate += prices[k] * served[k];
      worth += prices[k] * shares[k];
    }
    rate /= worth;
    for (size_t k = 0; k < kinds; ++k) {
      if (shares[k] == 0) continue;
      const double lack = std::clamp(shares[k] * rate / std::max(served[k], 1e-300), 1 / kMostChange, kMostChange);
      prices[k] *= std::pow(lack, spread);
    }
    double mean = 0;
    for (size_t k = 0; k < kinds; ++k) mean += prices[k] * shares[k];
    for (size_t k = 0; k < kinds; ++k) prices[k] = shares[k] > 0 ? prices[k] / mean : 1;
  }
  return prices;
}

absl::Status WorkPricer::AddPairs(const InterferenceModel& model, const FitLimits& limits,
                                  std::span<const JobView::OnType* const> on, std::span<const double> alone,
                                  const Gpus& gpus, uint32_t gpu, std::vector<WorkWay>& ways) {
  const DeviceContext context = ContextOf(gpus.device);
  const uint64_t place = CombineHash(gpus.device.digest, static_cast<uint64_t>(gpus.device.mem_mib));
  for (uint32_t a = 0; a < on.size(); ++a) {
    for (uint32_t b = a; b < on.size() && alone[a] > 0; ++b) {
      if (alone[b] == 0) continue;
      const TenantClass& first = on[a]->tenant;
      const TenantClass& second = on[b]->tenant;
      const uint64_t key = CombineHash(CombineHash(place, first.digest), second.digest);
      const Pair* known = pairs_.Find(key);
      if (known == nullptr) {
        Pair pair;
        DeviceRow shared = gpus.device;
        shared.mem_used_upper_mib = first.memory.request_mib;
        shared.mem_limit_mib = first.memory.limit_mib;
        shared.milli_used = std::max(first.gpu_milli, 1);
        shared.tenants_milli = first.counted_milli;
        shared.exclusive_held = first.exclusive;
        shared.tenants = {0};
        if (FitTenant(&second, shared, limits) == Reason::kNone) {
          const Demand* const demands[] = {&first.demand, &second.demand};
          Slowdown slowdowns[2];
          HORUS_RETURN_IF_ERROR(model.Predict(context, demands, slowdowns));
          const auto keeps = [&](const Promise& promise, const Slowdown& slowdown) {
            return !IsBeyond(SlowdownFor(promise, slowdown, limits), BoundOf(promise, limits));
          };
          if (keeps(first.promise, slowdowns[0]) && keeps(second.promise, slowdowns[1])) {
            pair = {1 / (KeepsWork(first.demand) ? 1 : slowdowns[0].estimate),
                    1 / (KeepsWork(second.demand) ? 1 : slowdowns[1].estimate)};
          }
        }
        known = &pairs_.Insert(key, pair);
      }
      const double rate_a = alone[a] * static_cast<double>(known->speed_a);
      const double rate_b = alone[b] * static_cast<double>(known->speed_b);
      if (rate_a / alone[a] + rate_b / alone[b] > 1) ways.push_back({gpu, a, b, rate_a, rate_b});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> WorkPricer::Of(const InterferenceModel& model, const FitLimits& limits,
                                                   std::span<const Kind> kinds, std::span<const Gpus> gpus) {
  std::vector<double> prices(kinds.size(), 1);
  if (kinds.size() < 2) return prices;
  if (epoch_ != model.epoch() || pairs_.size() > kMostPairs) pairs_.clear();
  epoch_ = model.epoch();
  std::vector<uint32_t> order(kinds.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return kinds[a].gpus > kinds[b].gpus; });
  const size_t priced = std::min(kinds.size(), kMostKinds);
  std::vector<double> mix(priced), counts, alone(priced);
  for (size_t i = 0; i < priced; ++i) mix[i] = kinds[order[i]].gpus;
  std::vector<const JobView::OnType*> on(priced);
  std::vector<WorkWay> ways;
  for (uint32_t g = 0; g < gpus.size(); ++g) {
    counts.push_back(gpus[g].count);
    for (uint32_t i = 0; i < priced; ++i) {
      on[i] = kinds[order[i]].view->On(gpus[g].device.type);
      alone[i] = 0;
      if (on[i] == nullptr || FitDevice(&on[i]->tenant, gpus[g].device, limits) != Reason::kNone) continue;
      alone[i] = static_cast<double>(on[i]->tenant.work_alone) * on[i]->SpeedOn(gpus[g].device.compute_share);
      ways.push_back({g, i, i, alone[i], 0});
    }
    HORUS_RETURN_IF_ERROR(AddPairs(model, limits, on, alone, gpus[g], g, ways));
  }
  const std::vector<double> found = PriceMix(counts, mix, ways);
  for (size_t i = 0; i < priced; ++i) prices[order[i]] = EighthOfAnOctave(std::max(found[i], kLeastPrice));
  for (size_t i = priced; i < kinds.size(); ++i) {
    const Demand& demand = kinds[order[i]].view->types.front().tenant.demand;
    const auto nearer = [&](uint32_t a, uint32_t b) {
      return Distance(kinds[a].view->types.front().tenant.demand, demand) <
             Distance(kinds[b].view->types.front().tenant.demand, demand);
    };
    prices[order[i]] = prices[*std::min_element(order.begin(), order.begin() + static_cast<ptrdiff_t>(priced), nearer)];
  }
  return prices;
}

}  // namespace horus
