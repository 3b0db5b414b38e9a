// SPDX-License-Identifier: Apache-2.0
// What sharing could give a cluster before any policy: the bound on the work rate at each bound on slowdowns.
//
// Enters:  a problem of the work rate, or speeds and jobs; slowdown bounds; from which gain on sharing pays.
// Leaves:  per bound the gain over exclusive use, the pairs that it admits, the verdict.
// Units:   rates as in work_rate.h; gains and shares as fractions.
// Cost:    WorkRateBound per slowdown bound.
#pragma once

#include "lab/truth/truth.h"

namespace horus {

// Below it sharing "does not pay": policies reach a part of the bound, and campaigns do not agree on a pair within a
// few per cent (docs/shadow.md). A chosen value.
inline constexpr double kLeastGainThatPays = 0.05;

struct PotentialOptions {
  std::vector<double> slowdown_bounds = {1.25, 1.5, 2, 2.5, std::numeric_limits<double>::infinity()};
  double least_gain = kLeastGainThatPays;
  std::string lp_library;                   // file of libhorus_lp.so; empty = looked for
  std::vector<uint32_t> other_units;        // profiles that PotentialOfCluster leaves out where types come together
  std::optional<HostResources> hosts = {};  // that PotentialOfCluster gives its problems
  std::vector<double> quantiles_pct;  // further bounds: the least that so many per cent of the pairs that run keep
  std::function<absl::Status(size_t)> before = {};  // told which of slowdown_bounds comes; its error ends the search
};

struct PotentialAtBound {
  double slowdown_bound = 0;
  size_t admitted = 0;         // pairs, of those that run
  double admitted_of_mix = 0;  // chance that two jobs, drawn by their work for a GPU drawn at random, may share it
  double gain = 0;             // bound / exclusive - 1
  double makespan_cut = 0;     // 1 - exclusive / bound
  bool pays = false;
  // With hosts, as gain: of other cores and memory than the fair share, without and with pairs.
  std::optional<double> resizing_gain = {}, both_gain = {};
  WorkRate rate;
};

struct Potential {
  size_t pairs = 0;  // of profiles with work, two copies of one included, on each type with GPUs
  size_t run = 0;    // that are known to run together
  size_t apart = 0;  // that are known not to; of the rest nothing is known
  double exclusive = 0;
  std::vector<PotentialAtBound> at;            // in the order of the bounds
  std::vector<PotentialAtBound> at_quantiles;  // in the order of the quantiles; empty where no pair runs
};

// Errors: those of WorkRateBound; INVALID_ARGUMENT without bounds, for a least gain that is negative or NaN, or a
// quantile that is not from 0 to 100.
[[nodiscard]] absl::StatusOr<Potential> SharingPotential(const WorkProblem& problem,
                                                         const PotentialOptions& options = {});

// A gap between exclusive use and the bound that is smaller says nothing of a policy that closes it. A chosen value.
inline constexpr double kLeastGapThatCounts = 0.02;  // of the exclusive rate

// Which share of the gap a schedule of that mix and rate closes; below 0 where it is slower than exclusive use, none
// where the gap is too small.
[[nodiscard]] std::optional<double> ShareOfGapClosed(double achieved, const WorkRate& rate);

// A cluster whose GPUs are all of one type, or the whole one.
struct PotentialCase {
  std::optional<uint32_t> gpu;         // position of the type; none = all types together
  double gpus = 0;                     // how many
  std::vector<uint32_t> left_out;      // profiles with work that no GPU here runs, or of other units
  std::optional<Potential> potential;  // none where nothing of the mix runs
};

// Each type of which there are GPUs by itself, and all together where there are several. A case of one type counts
// the mix in its own GPU time; all together in that of `reference`. Errors: those of SharingPotential.
[[nodiscard]] absl::StatusOr<std::vector<PotentialCase>> PotentialOfCluster(const SpeedTable& table,
                                                                            std::span<const MixJob> jobs,
                                                                            std::span<const double> gpus,
                                                                            uint32_t reference, double clip_percentile,
                                                                            const PotentialOptions& options = {});

// The pairs that carry the bound: of `uses` those of two jobs, most GPUs first, at most `count`.
[[nodiscard]] std::vector<WorkUse> PairsThatCarry(std::span<const WorkUse> uses, size_t count);

}  // namespace horus
