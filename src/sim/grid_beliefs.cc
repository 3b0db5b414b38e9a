// SPDX-License-Identifier: Apache-2.0
// What is believed of profiles where they run in truth, and jobs whose profiles run nowhere.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/seeded_hash.h"
#include "sim/grid.h"

namespace horus {
namespace {

// Types of the nodes' devices, ascending.
std::vector<GpuTypeId> TypesOf(const Grid& grid) {
  std::set<GpuTypeId> types;
  for (const NodeSpec& node : grid.nodes) {
    for (const DeviceSpec& device : node.devices) types.insert(device.type);
  }
  return {types.begin(), types.end()};
}

// What the truth says of profiles by name and of types: looked up once, for both come from files and may be many.
class KnownSpeeds {
 public:
  explicit KnownSpeeds(const GridTruth& truth) : table_(truth.speeds ? &*truth.speeds : nullptr) {
    if (table_ == nullptr) return;
    for (uint32_t row = 0; row < table_->profiles.size(); ++row) rows_.emplace(table_->profiles[row], row);
    for (uint32_t gpu = 0; gpu < truth.types.size(); ++gpu) gpus_.emplace(truth.types[gpu], gpu);
    shares_.resize(table_->alone.size());
    for (const PairSpeed& pair : table_->pairs) {
      if (!pair.Runs()) continue;
      for (const uint32_t row : {pair.a, pair.b}) shares_[pair.gpu * table_->profiles.size() + row] = true;
    }
  }

  // Whether jobs of the profile run alone on that type in truth; a foretold truth says nothing of it.
  [[nodiscard]] bool Runs(std::string_view profile, GpuTypeId type) const {
    if (table_ == nullptr) return true;
    const std::optional<size_t> at = Find(profile, type);
    return at && table_->alone[*at] > 0;
  }
  // Whether a pair of the profile was measured to run together on that type.
  [[nodiscard]] bool Shares(std::string_view profile, GpuTypeId type) const {
    const std::optional<size_t> at = Find(profile, type);
    return at && shares_[*at];
  }

 private:
  [[nodiscard]] std::optional<size_t> Find(std::string_view profile, GpuTypeId type) const {
    const auto row = rows_.find(profile);
    const auto gpu = gpus_.find(type);
    if (row == rows_.end() || gpu == gpus_.end()) return std::nullopt;
    return gpu->second * table_->profiles.size() + row->second;
  }

  const SpeedTable* table_;  // nullptr = foretold
  SeededMap<std::string_view, uint32_t> rows_;
  std::map<GpuTypeId, uint32_t> gpus_;
  std::vector<bool> shares_;  // as the table's `alone`
};

// By type of the nodes' devices: the memory of the least of them.
std::map<GpuTypeId, int64_t> LeastMemory(const Grid& grid) {
  std::map<GpuTypeId, int64_t> least;
  for (const NodeSpec& node : grid.nodes) {
    for (const DeviceSpec& device : node.devices) {
      const int64_t usual = grid.catalogue->at(device.type).mem_mib;
      const int64_t mem_mib = device.mem_mib > 0 ? std::min(usual, device.mem_mib) : usual;
      const auto [at, is_new] = least.emplace(device.type, mem_mib);
      if (!is_new) at->second = std::min(at->second, mem_mib);
    }
  }
  return least;
}

// What was measured alone on a type has room there, whatever is foretold of its memory. Where nobody is to come beside
// it, it `fills` the GPU by its upper bound, which fit counts; policies that weigh estimates see what is foretold.
void FitMemory(int64_t mem_mib, bool fills, BoundedInt& foretold) {
  const int64_t room_mib = mem_mib - PlacerOptions().mem_headroom_mib;
  foretold.upper = fills ? room_mib : std::min(foretold.upper, room_mib);
  foretold.estimate = std::min(foretold.estimate, foretold.upper);
}

// And of those who run on several GPUs what is believed of one of them.
DemandsByName WithGangs(const GridTruth& truth, DemandsByName beliefs) {
  if (!truth.unmeasured_alone) return beliefs;
  for (const GangProfile& gang : truth.speeds->gangs) {
    const auto of = beliefs.find(truth.speeds->profiles[gang.of]);
    if (of == beliefs.end()) continue;
    ProfileDemands demands = of->second;
    for (TypeDemand& one : demands) one.demand.profile_id = 0;
    beliefs.insert_or_assign(truth.speeds->profiles[gang.profile], std::move(demands));
  }
  return beliefs;
}

}  // namespace

DemandsByName CompleteBeliefs(const Grid& grid, const DemandsByName& beliefs) {
  const std::vector<GpuTypeId> present = TypesOf(grid);
  const KnownSpeeds speeds(grid.truth);
  const std::map<GpuTypeId, int64_t> least_mib = LeastMemory(grid);
  DemandsByName complete;
  for (const auto& [profile, demands] : WithGangs(grid.truth, beliefs)) {
    ProfileDemands& kept = complete[profile];
    for (const TypeDemand& one : demands) {
      const std::vector<GpuTypeId> types = one.type == GpuTypeId() ? present : std::vector<GpuTypeId>{one.type};
      for (const GpuTypeId type : types) {
        if (!speeds.Runs(profile, type)) continue;
        Demand& demand = kept.emplace_back(TypeDemand{type, one.demand}).demand;
        if (grid.truth.speeds) {
          const auto least = least_mib.find(type);
          const bool alone = grid.truth.unmeasured_alone && !speeds.Shares(profile, type);
          FitMemory(least == least_mib.end() ? grid.catalogue->at(type).mem_mib : least->second, alone, demand.mem_mib);
        }
        if (one.demand.profile_id == 0) demand.profile_id = Mix64(Hash64(profile));
      }
    }
    if (kept.empty()) complete.erase(profile);
  }
  return complete;
}

size_t CountWithoutSpeed(const Grid& grid, const Trace& trace) {
  if (!grid.truth.speeds) return 0;
  const Trace named = grid.truth.unmeasured_alone ? NameGangs(trace) : trace;
  const std::vector<GpuTypeId> present = TypesOf(grid);
  const KnownSpeeds speeds(grid.truth);
  std::vector<bool> runs;
  for (const std::string& profile : named.profiles) {
    runs.push_back(
        std::any_of(present.begin(), present.end(), [&](GpuTypeId type) { return speeds.Runs(profile, type); }));
  }
  return static_cast<size_t>(std::count_if(named.jobs.begin(), named.jobs.end(), [&](const TraceJob& job) {
    return job.profile == kNotStated || !runs[job.profile];
  }));
}

}  // namespace horus
