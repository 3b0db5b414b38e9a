// SPDX-License-Identifier: Apache-2.0
// SpeedTable: how fast profiles run on GPU types, alone and in pairs; and the mix of work that jobs of them bring.
//
// Enters:  speeds, measured (io/speeds_file.h) or predicted; jobs.
// Leaves:  a plain value; the problem whose answer bounds the work rate.
// Units:   progress in the profile's own unit (steps), speeds in it a second.
// Cost:    linear; 40 bytes a pair.
#pragma once

#include <memory>
#include <string_view>

#include "interference/model.h"
#include "lab/bound/work_rate.h"
#include "place/job/job.h"
#include "place/state/fit.h"
#include "place/state/node.h"

namespace horus {

// A profile that is another one on several GPUs; its progress is that of all of them together.
struct GangProfile {
  uint32_t profile = 0, of = 0;
  int32_t gpus = 0;
};
// How it is called: "LM (batch size 5) on 4 GPUs".
[[nodiscard]] std::string GangName(std::string_view of, int64_t gpus);

struct SpeedTable {
  std::vector<std::string> profiles, gpus;  // each unique
  std::vector<double> alone;                // [gpu * profiles + profile] progress a second; 0 = does not run there
  std::vector<PairSpeed> pairs;
  std::vector<GangProfile> gangs;

  [[nodiscard]] double Alone(uint32_t gpu, uint32_t profile) const { return alone[gpu * profiles.size() + profile]; }
};

struct MixJob {
  uint32_t profile = 0;
  double progress = 0;  // in the profile's unit, from start to end
};

// The type whose seconds count a profile's work: `reference`, or where the profile does not run there the first type
// that runs it; `reference` if none does.
[[nodiscard]] uint32_t UnitType(const SpeedTable& table, uint32_t profile, uint32_t reference);

// By how much the ratio of a profile's speeds on two GPU types may differ from the median of all profiles'. A chosen
// value: jobs that were measured alike differ by a factor of 3 on K80, P100 and V100, steps and epochs by 15 and more.
inline constexpr double kMostUnitsApart = 10;
inline constexpr size_t kLeastToCompare = 3;  // profiles that two types need in common; of two nobody is the odd one

// Profiles whose speeds on some two types are further apart than that, as those of two campaigns are that count in
// different units, ascending: which type is right nobody can tell, so that they count where types are apart alone.
[[nodiscard]] std::vector<uint32_t> ProfilesOfOtherUnits(const SpeedTable& table);

// By profile: the seconds of work that the jobs bring, alone on UnitType. A job that takes longer than the
// `clip_percentile` (0 to 100; 100 = none is clipped) of all of them counts so long; percentiles are interpolated.
[[nodiscard]] std::vector<double> WorkByProfile(const SpeedTable& table, std::span<const MixJob> jobs,
                                                uint32_t reference, double clip_percentile);

// `work` as above, `gpus` how many of each type. Work of profiles that no type with GPUs runs is left out.
[[nodiscard]] WorkProblem MakeWorkProblem(const SpeedTable& table, std::span<const double> work,
                                          std::span<const double> gpus, uint32_t reference);

// ---- A table of speeds predicted by an interference model, for jobs whose pairs nobody measured.
// Cost: a question to the placer's rules and one call of the model per pair and device kind.

struct DeviceKind {
  std::string name;
  NodeSpec node;  // with one such device
};

// Jobs of one GPU; their profiles are in the table in the same order. Who fits alone and who may share is what
// Cluster::BrokenRule and FitSlowdowns say, as for every placement; of `limits` the slowdown bound is not read: only
// the jobs' own hold. Speeds are the model's estimates; bounds count its upper slowdowns, as the placer does. Without a
// step time on every kind that a job may use its speed counts 1 on each. Errors: those of the model and of
// Cluster::AddNode; INVALID_ARGUMENT: a job that is wrong; RESOURCE_EXHAUSTED: kMostWorkPairs.
[[nodiscard]] absl::StatusOr<SpeedTable> PredictSpeeds(std::span<const JobSpec> jobs, std::span<const DeviceKind> kinds,
                                                       std::shared_ptr<const Catalogue> catalogue,
                                                       const InterferenceModel& model, FitLimits limits = {});

}  // namespace horus
