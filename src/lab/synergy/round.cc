// SPDX-License-Identifier: Apache-2.0
// Greedy, fair and tune, and the way to opt.
#include "lab/synergy/round.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "base/status.h"
#include "lab/synergy/rules.h"
#include "place/state/cluster_rows.h"

namespace horus {
namespace {

// ---- Checks what a caller asks of a round; of this folder only.

// Over-commitment by adopted jobs is bounded as everything else; with both bounds no sum leaves 64 bits.
constexpr int64_t kLeastFree = -kMaxHostQuantity;
constexpr int64_t kMaxSlotsOnServer = static_cast<int64_t>(kMaxDevicesPerNode) * kMaxTenantsPerDevice;

struct Where {
  const char* what;
  size_t index;

  [[nodiscard]] absl::Status Range(const char* field, int64_t least, int64_t most, int64_t found) const {
    if (found >= least && found <= most) return absl::OkStatus();
    return InvalidArgument("synergy: %s[%d].%s: expected %d to %d, found %d", what, index, field, least, most, found);
  }
};

absl::Status CheckServer(const SynergyServer& server, size_t index) {
  const Where where{"servers", index};
  HORUS_RETURN_IF_ERROR(where.Range("gpus", 0, kMaxDevicesPerNode, server.gpus));
  HORUS_RETURN_IF_ERROR(where.Range("gpus_free", 0, server.gpus, server.gpus_free));
  HORUS_RETURN_IF_ERROR(where.Range("cpu_milli", 0, kMaxHostQuantity, server.cpu_milli));
  HORUS_RETURN_IF_ERROR(where.Range("mem_mib", 0, kMaxHostQuantity, server.mem_mib));
  HORUS_RETURN_IF_ERROR(where.Range("host", 0, kMaxNodes - 1, server.host));
  HORUS_RETURN_IF_ERROR(where.Range("storage_free_mb_s", kLeastFree, kMaxHostQuantity, server.storage_free_mb_s));
  HORUS_RETURN_IF_ERROR(where.Range("cpu_free_milli", kLeastFree, server.cpu_milli, server.cpu_free_milli));
  return where.Range("mem_free_mib", kLeastFree, server.mem_mib, server.mem_free_mib);
}

absl::Status CheckShare(const Where& where, const HostShare& share, const HostShare& most) {
  HORUS_RETURN_IF_ERROR(where.Range("cpu_milli", 0, most.cpu_milli, share.cpu_milli));
  return where.Range("mem_mib", 0, most.mem_mib, share.mem_mib);
}

absl::Status CheckResident(const SynergyResident& resident, size_t index, std::vector<int64_t>& slots) {
  const Where where{"residents", index};
  const size_t servers = slots.size();
  HORUS_RETURN_IF_ERROR(where.Range("slices", 1, static_cast<int64_t>(servers), std::ssize(resident.slices)));
  int64_t least = 0;
  for (const SynergySlice& slice : resident.slices) {
    HORUS_RETURN_IF_ERROR(where.Range("slices.server", least, static_cast<int64_t>(servers) - 1, slice.server));
    HORUS_RETURN_IF_ERROR(where.Range("slices.gpus", 1, kMaxDevicesPerNode, slice.gpus));
    slots[slice.server] += slice.gpus;
    HORUS_RETURN_IF_ERROR(where.Range("slices.gpus: sum on a server", 1, kMaxSlotsOnServer, slots[slice.server]));
    least = int64_t{slice.server} + 1;
  }
  HORUS_RETURN_IF_ERROR(CheckShare({"residents.held", index}, resident.held, {kMaxHostQuantity, kMaxHostQuantity}));
  return CheckShare({"residents.floor", index}, resident.floor, resident.held);
}

absl::Status CheckJob(const SynergyJob& job, size_t index, size_t servers) {
  const Where where{"jobs", index};
  HORUS_RETURN_IF_ERROR(where.Range("gpus", 1, kMaxGpusPerJob, job.gpus));
  HORUS_RETURN_IF_ERROR(where.Range("unit", 1, job.gpus, job.unit));
  if (job.gpus % job.unit != 0) {
    return InvalidArgument("synergy: jobs[%d].unit: expected a divisor of its %d GPUs, found %d", index, job.gpus,
                           job.unit);
  }
  HORUS_RETURN_IF_ERROR(CheckShare({"jobs.need", index}, job.need, {kMaxHostQuantity, kMaxHostQuantity}));
  int64_t least = 0;
  for (const uint32_t server : job.allowed) {
    HORUS_RETURN_IF_ERROR(where.Range("allowed", least, static_cast<int64_t>(servers) - 1, server));
    least = int64_t{server} + 1;
  }
  least = 0;
  for (const SynergySlice& slice : job.held) {
    HORUS_RETURN_IF_ERROR(where.Range("held.server", least, static_cast<int64_t>(servers) - 1, slice.server));
    HORUS_RETURN_IF_ERROR(where.Range("held.gpus", 1, kMaxDevicesPerNode, slice.gpus));
    least = int64_t{slice.server} + 1;
  }
  return absl::OkStatus();
}

absl::Status CheckRound(SynergyRule rule, const SynergyInput& input, const SynergyOptions& options) {
  if (rule > SynergyRule::kOpt) {
    return InvalidArgument("synergy: rule: expected 0 to 3, found %d", static_cast<int>(rule));
  }
  if (!(options.tolerance >= 0 && options.tolerance < 1)) {
    return InvalidArgument("synergy: tolerance: expected 0 to below 1, found %g", options.tolerance);
  }
  const size_t servers = input.servers.size();
  if (servers > kMaxNodes || input.residents.size() > kMaxJobs || input.jobs.size() > kMaxJobs) {
    return InvalidArgument("synergy: expected at most %d servers, %d residents and %d jobs, found %d, %d and %d",
                           kMaxNodes, kMaxJobs, kMaxJobs, servers, input.residents.size(), input.jobs.size());
  }
  for (size_t i = 0; i < servers; ++i) HORUS_RETURN_IF_ERROR(CheckServer(input.servers[i], i));
  std::vector<int64_t> slots(servers);
  for (size_t i = 0; i < input.residents.size(); ++i) {
    HORUS_RETURN_IF_ERROR(CheckResident(input.residents[i], i, slots));
  }
  for (size_t i = 0; i < input.jobs.size(); ++i) HORUS_RETURN_IF_ERROR(CheckJob(input.jobs[i], i, servers));
  return absl::OkStatus();
}

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

std::optional<SynergyRule> FindSynergyRule(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
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
