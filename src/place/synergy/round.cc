// SPDX-License-Identifier: Apache-2.0
// Greedy, fair and tune, and the way to opt.
#include "place/synergy/round.h"

#include <algorithm>
#include <array>

#include "base/status.h"
#include "place/job.h"
#include "place/synergy/check.h"
#include "place/synergy/leases.h"
#include "place/synergy/rules.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"synergy-greedy", "synergy-fair", "synergy-tune", "synergy-opt"};
constexpr SynergyStep kGreedySteps[] = {{HostLevel::kBest}};
constexpr SynergyStep kFairSteps[] = {{HostLevel::kFair}};
constexpr SynergyStep kTuneSteps[] = {{HostLevel::kBest}, {HostLevel::kFloor}, {HostLevel::kFloor, true}};

std::span<const SynergyStep> StepsOf(SynergyRule rule) {
  if (rule == SynergyRule::kGreedy) return kGreedySteps;
  if (rule == SynergyRule::kFair) return kFairSteps;
  return kTuneSteps;
}

SynergyState PlaceAll(std::span<const SynergyStep> steps, const SynergyInput& input, const ServerClasses& classes,
                      double tolerance) {
  SynergyState state(input);
  Leases leases(state);
  for (size_t j = 0; j < input.jobs.size(); ++j) {
    JobDemands demands(input.jobs[j], classes, tolerance);
    leases.End(j);
    if (PlaceJob(state, classes, demands, j, steps) || !leases.Suspend()) continue;
    PlaceJob(state, classes, demands, j, steps);
    leases.ResumeAfter(j);
  }
  return state;
}

}  // namespace

std::span<const std::string_view> SynergyNames() { return kNames; }

std::optional<SynergyRule> FindSynergyRule(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<SynergyRule>(found - kNames.begin());
}

size_t RunningJobs(const SynergyState& state) {
  size_t count = 0;
  for (size_t j = 0; j < state.input().jobs.size(); ++j) {
    count += state.holder(state.HolderOfJob(j)).slices.empty() ? 0 : 1;
  }
  return count;
}

SynergyState RaiseInPlace(const SynergyState& fair, std::span<JobDemands> demands) {
  SynergyState state(fair.input());
  const auto for_each = [&](auto visit) {
    for (size_t j = 0; j < demands.size(); ++j) {
      const std::vector<SynergySlice>& slices = fair.holder(fair.HolderOfJob(j)).slices;
      if (!slices.empty()) visit(fair.HolderOfJob(j), slices, demands[j].On(slices.front().server));
    }
  };
  for_each([&](size_t holder, const std::vector<SynergySlice>& slices, const HostLevels& levels) {
    state.Place(holder, slices, levels.floor, levels.floor);
  });
  for_each([&](size_t holder, const std::vector<SynergySlice>&, const HostLevels& levels) {
    if (state.CanResize(holder, levels.best)) state.Resize(holder, levels.best);
  });
  return state;
}

HostShare SynergyFloor(const SynergyJob& job, const HostShare& fair) {
  return AtLeast(job.sensitivity == nullptr ? fair : job.sensitivity->Floor(fair), job.need);
}

SynergyState PlaceByRule(SynergyRule rule, const SynergyInput& input, const ServerClasses& classes,
                         const SynergyOptions& options) {
  SynergyState state = PlaceAll(StepsOf(rule), input, classes, options.tolerance);
  if (rule != SynergyRule::kTune) return state;
  // Servers full of cores can send tune elsewhere and tear apart what an unsplittable job needs: then fair's places
  // hold.
  if (RunningJobs(state) < input.jobs.size()) {
    const SynergyState fair = PlaceAll(kFairSteps, input, classes, options.tolerance);
    if (RunningJobs(fair) > RunningJobs(state)) {
      std::vector<JobDemands> demands;
      for (const SynergyJob& job : input.jobs) demands.emplace_back(job, classes, options.tolerance);
      state = RaiseInPlace(fair, demands);
    }
  }
  if (options.grow) GrowHolders(state, classes);
  return state;
}

absl::StatusOr<SynergyRound> AllocateRound(SynergyRule rule, const SynergyInput& input, const SynergyOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckRound(rule, input, options));
  const ServerClasses classes = ClassesOf(input.servers);
  if (rule == SynergyRule::kOpt) return PlaceOptimally(input, classes, options);
  return PlaceByRule(rule, input, classes, options).ToRound();
}

}  // namespace horus
