// SPDX-License-Identifier: Apache-2.0
// Greedy, fair and tune, and the way to opt.
#include "lab/synergy/round.h"

#include <algorithm>
#include <array>

#include "lab/synergy/rules.h"

namespace horus {
namespace {

// ---- Leases: keeps the GPUs of jobs that ran until now from those before them, as long as there are others; of this
// folder only.
// Cost: O(log servers) a lease; all leases again where a job finds no place beside them.

class Leases {
 public:
  // Of the first jobs in policy order that the free GPUs hold together: those after them may lose theirs anyhow.
  explicit Leases(SynergyState& state);
  // It is the job's turn: its GPUs are free for it.
  void End(size_t job);
  // Frees all, and keeps again of jobs after `job` those that are still free. Whether there were any.
  bool Suspend();
  void ResumeAfter(size_t job);

 private:
  [[nodiscard]] bool CanHold(size_t job) const;
  void Hold(size_t job, int32_t sign);

  SynergyState& state_;
  size_t end_ = 0;             // of the jobs whose leases count
  std::vector<uint8_t> held_;  // by job; empty where none has any
};

Leases::Leases(SynergyState& state) : state_(state) {
  const std::span<const SynergyJob> jobs = state.input().jobs;
  if (std::ranges::all_of(jobs, [](const SynergyJob& job) { return job.held.empty(); })) return;
  held_.resize(jobs.size());
  int64_t left = state.gpus_free();
  for (; end_ < jobs.size() && left > 0; ++end_) {
    if (jobs[end_].gpus > left) continue;
    left -= jobs[end_].gpus;
    if (CanHold(end_)) Hold(end_, 1);
  }
}

bool Leases::CanHold(size_t job) const {
  const std::span<const SynergySlice> slices = state_.input().jobs[job].held;
  return !slices.empty() && std::ranges::all_of(slices, [this](const SynergySlice& slice) {
    return state_.server(slice.server).gpus_free >= slice.gpus;
  });
}

void Leases::Hold(size_t job, int32_t sign) {
  for (const SynergySlice& slice : state_.input().jobs[job].held) state_.SetAside(slice.server, sign * slice.gpus);
  held_[job] = sign > 0 ? 1 : 0;
}

void Leases::End(size_t job) {
  if (job < end_ && held_[job] != 0) Hold(job, -1);
}

bool Leases::Suspend() {
  bool any = false;
  for (size_t job = 0; job < end_; ++job) {
    any |= held_[job] != 0;
    End(job);
  }
  return any;
}

void Leases::ResumeAfter(size_t job) {
  for (++job; job < end_; ++job) {
    if (CanHold(job)) Hold(job, 1);
  }
}

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
  const ServerClasses classes = ClassesOf(input.servers);
  if (rule == SynergyRule::kOpt) return PlaceOptimally(input, classes, options);
  return PlaceByRule(rule, input, classes, options).ToRound();
}

}  // namespace horus
