// SPDX-License-Identifier: Apache-2.0
// The rules of a round: where one job goes, and what the leftovers are worth; of this folder only.
//
// Enters:  the state of the round and a job's demands.
// Leaves:  the state with the job placed, or as it was.
// Units:   as round.h.
// Cost:    placing O(log servers) where the first server fits, O(servers) at worst; growing O(holders x cells).
// Thread class: one thread at a time, as the state.
#ifndef HORUS_PLACE_SYNERGY_RULES_H_
#define HORUS_PLACE_SYNERGY_RULES_H_

#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "place/synergy/demands.h"
#include "place/synergy/state.h"

namespace horus {

enum class HostLevel : uint8_t { kFair = 0, kFloor = 1, kBest = 2 };
[[nodiscard]] HostShare LevelOf(const HostLevels& levels, HostLevel level);

// One attempt at a job: at which demand, and whether others may be cut back to their floors for it.
struct SynergyStep {
  HostLevel level = HostLevel::kFair;
  bool reclaim = false;
};

// Places job `index` at the first step that works: on one server, the one with fewest free GPUs that fits, or where the
// GPUs allow none in slices over servers of one class, as few as possible.
bool PlaceJob(SynergyState& state, const ServerClasses& classes, JobDemands& demands, size_t index,
              std::span<const SynergyStep> steps);

// Hands what is left on each server to the holders there, most speed per resource first.
void GrowHolders(SynergyState& state, const ServerClasses& classes);

// Jobs that got GPUs.
[[nodiscard]] size_t RunningJobs(const SynergyState& state);

// The places of `fair` with everyone at its floor, then in policy order at its best cell where that fits.
[[nodiscard]] SynergyState RaiseInPlace(const SynergyState& fair, std::span<JobDemands> demands);

// The bodies of AllocateRound; the input is checked.
[[nodiscard]] SynergyState PlaceByRule(SynergyRule rule, const SynergyInput& input, const ServerClasses& classes,
                                       const SynergyOptions& options);
[[nodiscard]] absl::StatusOr<SynergyRound> PlaceOptimally(const SynergyInput& input, const ServerClasses& classes,
                                                          const SynergyOptions& options);

}  // namespace horus

#endif  // HORUS_PLACE_SYNERGY_RULES_H_
