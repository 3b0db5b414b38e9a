// SPDX-License-Identifier: Apache-2.0
// One scheduling round by sensitivity to cores and host memory (Synergy, OSDI 2022): greedy, fair, tune, opt.
//
// Enters:  servers with what is free, residents with what they hold, runnable jobs in policy order.
// Leaves:  per job its slices of servers and its cores and memory per GPU; residents that must give some back.
// Units:   whole GPUs; thousandths of a core, MiB; speeds relative to the fair share.
// Cost:    O(jobs x servers) at worst, usually O(jobs x log servers); opt solves two linear programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "place/engine.h"
#include "place/job/job.h"
#include "place/job/sensitivity.h"
#include "place/policies/policies.h"

namespace horus {

enum class SynergyRule : uint8_t {
  kGreedy = 0,  // the best cell or nothing
  kFair = 1,    // GPU-proportional
  kTune = 2,    // the best cell, else the floor, else reclaimed from those above theirs
  kOpt = 3,     // by linear programs; needs libhorus_lp.so
};

// Servers, residents and jobs go by their index in the spans of SynergyInput.
struct SynergyServer {
  int32_t gpus = 0;       // in all, what the fair share divides by
  int32_t gpus_free = 0;  // idle ones that a job may take whole
  int64_t cpu_milli = 0;  // in all
  int64_t mem_mib = 0;
  int64_t cpu_free_milli = 0;  // beside the residents; negative where they over-commit
  int64_t mem_free_mib = 0;
  uint32_t kind = 0;  // slices of one job are on servers of one kind (GPU type and mode, say)
  uint32_t host = 0;  // servers of one host share what follows, and keep groups of jobs apart; below kMaxNodes
  int64_t storage_free_mb_s = 0;
};

struct SynergySlice {
  uint32_t server = 0;
  int32_t gpus = 0;
  friend bool operator==(const SynergySlice&, const SynergySlice&) = default;
};

struct SynergyResident {
  std::vector<SynergySlice> slices;  // ascending server
  HostShare held;                    // per GPU
  HostShare floor;                   // per GPU, within `held`: never less
  const Sensitivity* sensitivity = nullptr;
};

struct SynergyJob {
  int32_t gpus = 1;
  int32_t unit = 1;                          // slices are multiples of it: the GPUs of a task; divides `gpus`
  HostShare need;                            // per GPU: never less, whatever the sensitivity says
  const Sensitivity* sensitivity = nullptr;  // null: takes the fair share and gains nothing from more
  std::span<const uint32_t> allowed;         // servers, ascending; empty = all
  // Where it ran until now, ascending server: its GPUs are free here, it takes them again where the rule lets it, and
  // jobs before it take others as long as there are some. Empty = nowhere.
  std::span<const SynergySlice> held;
  const JobSpec* spec = nullptr;  // groups, spread_tasks and storage_mb_s (of `unit` GPUs) that hold among
                                  // the jobs of the round; null = none
};

struct SynergyInput {
  std::span<const SynergyServer> servers;
  std::span<const SynergyResident> residents;
  std::span<const SynergyJob> jobs;  // in policy order
};

struct SynergyOptions {
  double tolerance = kBestCellTolerance;  // of the best cell
  bool grow = false;                      // tune: hand what is left to whom it helps most, residents included
  std::string lp_library;                 // file of libhorus_lp.so; empty = looked for
};

// A rule with its options, as a policy states it.
struct SynergySettings {
  SynergyRule rule = SynergyRule::kTune;
  SynergyOptions options;
};

struct SynergyGrant {
  std::vector<SynergySlice> slices;  // ascending server; empty = waits
  HostShare share;                   // per GPU
  double speed = 0;                  // that the matrix states for `share`; 1 without matrix, 0 while it waits
  friend bool operator==(const SynergyGrant&, const SynergyGrant&) = default;
};

struct SynergyResize {
  uint32_t resident = 0;
  HostShare share;  // per GPU, from now on
  friend bool operator==(const SynergyResize&, const SynergyResize&) = default;
};

struct SynergyRound {
  std::vector<SynergyGrant> grants;    // one per job
  std::vector<SynergyResize> resizes;  // ascending resident; only those that change
  double bound = 0;                    // opt: no allocation that runs all jobs it chose has a higher summed speed
  friend bool operator==(const SynergyRound&, const SynergyRound&) = default;
};

// Of one linear program: a few GB in the solver; chosen.
inline constexpr size_t kMaxLpColumns = 4'000'000;
inline constexpr size_t kMaxLpElements = 10 * kMaxLpColumns;

// "synergy-greedy", "synergy-fair", "synergy-tune", "synergy-opt", by value.
[[nodiscard]] std::span<const std::string_view> SynergyNames();

// The floor of a job on servers of that fair share: the smallest share as fast as the fair one, and what it needs.
[[nodiscard]] HostShare SynergyFloor(const SynergyJob& job, const HostShare& fair);

// The input is as a cluster gives it (plan_round.cc); nobody checks it again. Of kOpt alone UNAVAILABLE (no
// libhorus_lp.so), RESOURCE_EXHAUSTED (kMaxLp...) and INTERNAL (the solver gave up).
[[nodiscard]] absl::StatusOr<SynergyRound> AllocateRound(SynergyRule rule, const SynergyInput& input,
                                                         const SynergyOptions& options = {});

// ---- The policies synergy-*: a placer's plan is one round of a rule (plan_round.cc). One thread at a time, with the
// placer. Cost: a look at every node besides.

[[nodiscard]] std::unique_ptr<Policy> MakeSynergyPolicy(SynergyRule rule, const PolicyOptions& options);

// Of a placer whose policy decides rounds; else null.
[[nodiscard]] const RoundPolicy* RoundPolicyOf(const Placer& placer);

// One round over jobs in the order given, those that run among them (leases, README.md). Of a resident the id alone
// counts: it takes part as it is in the cluster, on its own places where the rule lets it (kResize where its cores or
// memory change, else no action), or it moves (kMigrate), or leaves (kPreempt, with a decision that says why).
// Residents that are not given stay. A decision for each job, in the order given. Errors as Placer::MakePlan;
// UNIMPLEMENTED: the policy decides job by job; INVALID_ARGUMENT: a resident without whole GPUs.
[[nodiscard]] absl::StatusOr<Plan> MakeRound(Placer& placer, const Cluster& cluster, std::span<const JobSpec> jobs);

}  // namespace horus
