// SPDX-License-Identifier: Apache-2.0
// Predicts all pairs once, and reads prices off the linear program.
#include "lab/bound/prices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "lab/bound/work_rate.h"
#include "lab/truth/predicted_speeds.h"

namespace horus {
namespace {

using KindKey = std::tuple<GpuTypeId, SharingMode, int64_t>;

std::map<KindKey, double> KindsOf(const Cluster& cluster) {
  std::map<KindKey, double> kinds;
  for (const NodeId id : cluster.NodeIds()) {
    const NodeInfo node = *cluster.Node(id);
    for (const DeviceSpec& device : node.spec.devices) {
      if (device.compute_share == 1) kinds[{device.type, device.mode, device.mem_mib}] += 1;
    }
  }
  return kinds;
}

double TwoDigits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

}  // namespace

absl::StatusOr<WorkPrices> WorkPrices::Create(std::span<const ProfileDemands> beliefs, const Cluster& cluster,
                                              const Placer& placer, std::string lp_library) {
  WorkPrices prices;
  prices.slowdown_bound_ = placer.slowdown_bound();
  prices.lp_library_ = std::move(lp_library);
  std::vector<DeviceKind> devices;
  for (const auto& [kind, count] : KindsOf(cluster)) {
    const auto& [type, mode, mem_mib] = kind;
    const bool shares = mode != SharingMode::kExclusive && placer.options().max_tenants > 1;
    devices.push_back({"", {.type = type, .mode = mode}, mem_mib, shares});
    prices.gpus_.push_back(count);
  }
  std::vector<PredictedProfile> profiles;
  for (const ProfileDemands& belief : beliefs) {
    PredictedProfile& profile = profiles.emplace_back();
    for (const DeviceKind& device : devices) {
      const auto at = std::find_if(belief.begin(), belief.end(), [&](const TypeDemand& one) {
        return !one.type.valid() || one.type == device.context.type;
      });
      profile.demands.push_back(at == belief.end() ? nullptr : &at->demand);
    }
  }
  HORUS_ASSIGN_OR_RETURN(prices.table_,
                         PredictSpeeds(profiles, devices, placer.model(), placer.options().mem_headroom_mib));
  return prices;
}

absl::StatusOr<std::vector<float>> WorkPrices::Of(std::span<const double> amounts) const {
  std::vector<float> prices(amounts.size(), 1);
  const WorkProblem problem = MakeWorkProblem(table_, amounts, gpus_, 0);
  if (std::all_of(problem.mix.begin(), problem.mix.end(), [](double amount) { return amount == 0; })) return prices;
  HORUS_ASSIGN_OR_RETURN(const WorkRate rate,
                         WorkRateBound(problem, {.slowdown_bound = slowdown_bound_, .lp_library = lp_library_}));
  for (uint32_t profile = 0; profile < prices.size(); ++profile) {
    double price = rate.prices[profile];
    if (problem.mix[profile] == 0) {  // nobody asked for it: what is worth its GPU alone
      price = 1;
      for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        const double alone = problem.alone[gpu * prices.size() + profile];
        if (alone > 0) price = std::min(price, rate.rentals[gpu] / alone);
      }
    }
    prices[profile] = static_cast<float>(TwoDigits(std::max(price, kLeastPrice)));
  }
  return prices;
}

}  // namespace horus
