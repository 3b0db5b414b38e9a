// SPDX-License-Identifier: Apache-2.0
// From speeds and jobs to the problem of the work rate.
#include "lab/truth/speed_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "base/units.h"
#include "place/decision.h"
#include "place/state/cluster.h"
#include "place/state/device_states.h"

namespace horus {
namespace {

// Interpolated between the two nearest ranks; `values` not empty.
double PercentileOf(std::vector<double> values, double percentile) {
  std::ranges::sort(values);
  const double rank = percentile / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - std::floor(rank)) * (values[above] - values[below]);
}

// ---- Asks the placer's rules, and the model, for every pair on one device.

constexpr NodeId kNode = 1;
constexpr JobId kResident = 1, kNewcomer = 2;

const Demand* DemandOf(const JobSpec& job, const DeviceKind& kind) {
  return FindDemand(job, kind.node.devices[0].type);
}

// Progress a second, where it runs.
double SpeedAlone(const JobSpec& job, const Demand& demand, std::span<const DeviceKind> kinds) {
  const bool timed = std::ranges::all_of(kinds, [&](const DeviceKind& kind) {
    const Demand* const there = DemandOf(job, kind);
    return there == nullptr || there->step_time_us.estimate > 0;
  });
  return timed ? kUsPerS / static_cast<double>(demand.step_time_us.estimate) : 1;
}

// The speeds stay 0 where a bound of the two breaks.
absl::Status PredictPair(const DeviceContext& device, const TenantClass& a, const TenantClass& b,
                         const InterferenceModel& model, const FitLimits& limits, PairSpeed& pair) {
  const std::array<const Demand*, 2> demands = {&a.demand, &b.demand};
  const std::array<Promise, 2> promises = {a.promise, b.promise};
  const std::array<Slowdown, 1> alone;
  std::array<Slowdown, 2> slowdowns;
  HORUS_RETURN_IF_ERROR(model.Predict(device, demands, slowdowns));
  if (FitSlowdowns(promises, alone, slowdowns, limits) != Reason::kNone) return absl::OkStatus();
  pair.speed_a = 1.0 / static_cast<double>(slowdowns[0].estimate);
  pair.speed_b = 1.0 / static_cast<double>(slowdowns[1].estimate);
  pair.slowdown = static_cast<double>(std::max(slowdowns[0].upper, slowdowns[1].upper));
  return absl::OkStatus();
}

// `cluster` has one node of the kind, and nobody is there; `jobs` have the id of a newcomer.
absl::Status AddKind(std::span<const JobSpec> jobs, std::span<const DeviceKind> kinds, uint32_t gpu, Cluster& cluster,
                     const InterferenceModel& model, const FitLimits& limits, SpeedTable& table) {
  const DeviceSpec& device = kinds[gpu].node.devices[0];
  const Slots slots = {{.node = kNode}};
  std::vector<TenantClass> tenants;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Demand* const demand = DemandOf(jobs[i], kinds[gpu]);
    tenants.push_back(demand == nullptr ? TenantClass() : TenantAsked(jobs[i], *demand));
    if (demand == nullptr || tenants.back().late.p99_us > 0) continue;
    HORUS_ASSIGN_OR_RETURN(const Reason reason, cluster.BrokenRule(jobs[i], slots, limits));
    if (reason == Reason::kNone) table.alone[gpu * jobs.size() + i] = SpeedAlone(jobs[i], *demand, kinds);
  }
  for (uint32_t a = 0; a < jobs.size(); ++a) {
    if (table.Alone(gpu, a) == 0) continue;
    JobSpec resident = jobs[a];
    resident.id = kResident;
    HORUS_RETURN_IF_ERROR(cluster.Adopt(resident, slots).status());
    for (uint32_t b = a; b < jobs.size(); ++b) {
      if (table.Alone(gpu, b) == 0) continue;
      if (table.pairs.size() >= kMostWorkPairs)
        return ResourceExhausted("expected at most %d pairs of jobs that differ, found more", kMostWorkPairs);
      PairSpeed& pair = table.pairs.emplace_back(PairSpeed{.gpu = gpu, .a = a, .b = b});
      HORUS_ASSIGN_OR_RETURN(const Reason reason, cluster.BrokenRule(jobs[b], slots, limits));
      if (reason != Reason::kNone) continue;
      HORUS_RETURN_IF_ERROR(
          PredictPair({.type = device.type, .mode = device.mode}, tenants[a], tenants[b], model, limits, pair));
    }
    HORUS_RETURN_IF_ERROR(cluster.Release(kResident));
  }
  return absl::OkStatus();
}

}  // namespace

std::string GangName(std::string_view of, int64_t gpus) { return Formatted("%s on %d GPUs", of, gpus); }

uint32_t UnitType(const SpeedTable& table, uint32_t profile, uint32_t reference) {
  if (table.Alone(reference, profile) > 0) return reference;
  for (uint32_t gpu = 0; gpu < table.gpus.size(); ++gpu) {
    if (table.Alone(gpu, profile) > 0) return gpu;
  }
  return reference;
}

std::vector<uint32_t> ProfilesOfOtherUnits(const SpeedTable& table) {
  const auto profiles = static_cast<uint32_t>(table.profiles.size());
  std::vector<bool> apart(profiles);
  for (uint32_t a = 0; a < table.gpus.size(); ++a) {
    for (uint32_t b = a + 1; b < table.gpus.size(); ++b) {
      std::vector<std::pair<double, uint32_t>> ratios;  // logarithms
      for (uint32_t profile = 0; profile < profiles; ++profile) {
        const double on_a = table.Alone(a, profile), on_b = table.Alone(b, profile);
        if (on_a > 0 && on_b > 0) ratios.emplace_back(std::log(on_b / on_a), profile);
      }
      if (ratios.size() < kLeastToCompare) continue;
      std::ranges::sort(ratios);
      const double median = (ratios[(ratios.size() - 1) / 2].first + ratios[ratios.size() / 2].first) / 2;
      for (const auto& [ratio, profile] : ratios) {
        if (std::abs(ratio - median) > std::log(kMostUnitsApart)) apart[profile] = true;
      }
    }
  }
  std::vector<uint32_t> found;
  for (uint32_t profile = 0; profile < profiles; ++profile) {
    if (apart[profile]) found.push_back(profile);
  }
  return found;
}

std::vector<double> WorkByProfile(const SpeedTable& table, std::span<const MixJob> jobs, uint32_t reference,
                                  double clip_percentile) {
  std::vector<double> work(table.profiles.size(), 0);
  std::vector<double> seconds;
  std::vector<uint32_t> profiles;
  for (const MixJob& job : jobs) {
    const double speed = table.Alone(UnitType(table, job.profile, reference), job.profile);
    if (speed == 0) continue;
    seconds.push_back(job.progress / speed);
    profiles.push_back(job.profile);
  }
  if (seconds.empty()) return work;
  const double most = PercentileOf(seconds, clip_percentile);
  for (size_t i = 0; i < seconds.size(); ++i) work[profiles[i]] += std::min(seconds[i], most);
  return work;
}

WorkProblem MakeWorkProblem(const SpeedTable& table, std::span<const double> work, std::span<const double> gpus,
                            uint32_t reference) {
  WorkProblem problem{.gpus = {gpus.begin(), gpus.end()}, .mix = {}, .alone = {}, .pairs = table.pairs};
  std::vector<double> unit;
  for (uint32_t profile = 0; profile < table.profiles.size(); ++profile) {
    unit.push_back(table.Alone(UnitType(table, profile, reference), profile));
    bool runs = false;
    for (uint32_t gpu = 0; gpu < gpus.size(); ++gpu) runs = runs || (gpus[gpu] > 0 && table.Alone(gpu, profile) > 0);
    problem.mix.push_back(runs ? work[profile] : 0);
  }
  for (uint32_t gpu = 0; gpu < table.gpus.size(); ++gpu) {
    for (uint32_t profile = 0; profile < table.profiles.size(); ++profile) {
      const double alone = table.Alone(gpu, profile);
      problem.alone.push_back(alone > 0 ? alone / unit[profile] : 0);
    }
  }
  return problem;
}

absl::StatusOr<SpeedTable> PredictSpeeds(std::span<const JobSpec> given, std::span<const DeviceKind> kinds,
                                         std::shared_ptr<const Catalogue> catalogue, const InterferenceModel& model,
                                         FitLimits limits) {
  limits.slowdown_bound = std::numeric_limits<double>::infinity();
  limits.upper_probability = model.has_quantiles() ? model.upper_probability() : 0;
  SpeedTable table;
  std::vector<JobSpec> jobs(given.begin(), given.end());
  for (JobSpec& job : jobs) {
    table.profiles.push_back(job.name.empty() ? Formatted("job %d", job.id) : job.name);
    job.id = kNewcomer;
  }
  table.alone.assign(jobs.size() * kinds.size(), 0);
  for (uint32_t gpu = 0; gpu < kinds.size(); ++gpu) {
    table.gpus.push_back(kinds[gpu].name);
    Cluster cluster(catalogue);
    NodeSpec node = kinds[gpu].node;
    node.id = kNode;
    HORUS_RETURN_IF_ERROR(cluster.AddNode(std::move(node)));
    HORUS_RETURN_IF_ERROR(AddKind(jobs, kinds, gpu, cluster, model, limits, table));
  }
  return table;
}

}  // namespace horus
