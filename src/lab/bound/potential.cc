// SPDX-License-Identifier: Apache-2.0
// Asks for the work rate at each slowdown bound and counts the pairs that it admits.
#include "lab/bound/potential.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/status.h"

namespace horus {
namespace {

double Sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Pairs of the table between profiles with work on types with GPUs.
std::vector<PairSpeed> PairsThatCount(const WorkProblem& problem) {
  std::vector<PairSpeed> pairs;
  for (const PairSpeed& pair : problem.pairs) {
    if (problem.gpus[pair.gpu] > 0 && problem.mix[pair.a] > 0 && problem.mix[pair.b] > 0) pairs.push_back(pair);
  }
  return pairs;
}

size_t PossiblePairs(const WorkProblem& problem) {
  size_t pairs = 0;
  for (size_t gpu = 0; gpu < problem.gpus.size(); ++gpu) {
    if (problem.gpus[gpu] == 0) continue;
    size_t profiles = 0;
    for (size_t profile = 0; profile < problem.mix.size(); ++profile)
      profiles += problem.mix[profile] > 0 && problem.alone[gpu * problem.mix.size() + profile] > 0 ? 1 : 0;
    pairs += profiles * (profiles + 1) / 2;
  }
  return pairs;
}

// By nearest rank, so that each is the slowdown of a pair; none where no pair runs.
std::vector<double> QuantilesOf(const std::vector<PairSpeed>& pairs, const std::vector<double>& pcts) {
  std::vector<double> slowdowns, bounds;
  for (const PairSpeed& pair : pairs) {
    if (pair.Runs()) slowdowns.push_back(pair.Slowdown());
  }
  if (slowdowns.empty()) return bounds;
  std::ranges::sort(slowdowns);
  for (const double pct : pcts) {
    const auto rank = static_cast<size_t>(std::ceil(pct / kPct * static_cast<double>(slowdowns.size())));
    bounds.push_back(slowdowns[std::max<size_t>(rank, 1) - 1]);
  }
  return bounds;
}

absl::Status CheckOptions(const PotentialOptions& options) {
  if (options.slowdown_bounds.empty()) return InvalidArgument("slowdown bounds: expected at least one, found none");
  if (!(options.least_gain >= 0))
    return InvalidArgument("least gain: expected at least 0, found %g", options.least_gain);
  for (const double pct : options.quantiles_pct) {
    if (!(pct >= 0 && pct <= kPct)) return InvalidArgument("quantile: expected 0 to 100 %%, found %g", pct);
  }
  return absl::OkStatus();
}

// `pairs`: those that count.
absl::StatusOr<PotentialAtBound> PotentialAt(const WorkProblem& problem, const std::vector<PairSpeed>& pairs,
                                             double bound, const PotentialOptions& options) {
  const double gpus = Sum(problem.gpus);
  const double work = Sum(problem.mix);
  PotentialAtBound at{.slowdown_bound = bound, .rate = {}};
  HORUS_ASSIGN_OR_RETURN(at.rate, WorkRateBound(problem, {.slowdown_bound = bound, .lp_library = options.lp_library}));
  for (const PairSpeed& pair : pairs) {
    if (!pair.IsAdmitted(bound)) continue;
    ++at.admitted;
    const double orders = pair.a == pair.b ? 1 : 2;  // two draws by work give an unordered pair of unlike ones
    at.admitted_of_mix +=
        orders * (problem.mix[pair.a] / work) * (problem.mix[pair.b] / work) * (problem.gpus[pair.gpu] / gpus);
  }
  at.gain = at.rate.bound / at.rate.exclusive - 1;
  at.makespan_cut = 1 - at.rate.exclusive / at.rate.bound;
  at.pays = at.gain >= options.least_gain;
  if (at.rate.resizing) at.resizing_gain = at.rate.resizing->rate / at.rate.exclusive - 1;
  if (at.rate.both) at.both_gain = at.rate.both->rate / at.rate.exclusive - 1;
  return at;
}

}  // namespace

absl::StatusOr<Potential> SharingPotential(const WorkProblem& problem, const PotentialOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckWorkProblem(problem));
  HORUS_RETURN_IF_ERROR(CheckOptions(options));
  const std::vector<PairSpeed> pairs = PairsThatCount(problem);
  Potential potential{.pairs = PossiblePairs(problem), .at = {}, .at_quantiles = {}};
  for (const PairSpeed& pair : pairs) ++(pair.Runs() ? potential.run : potential.apart);
  for (size_t i = 0; i < options.slowdown_bounds.size(); ++i) {
    if (options.before) HORUS_RETURN_IF_ERROR(options.before(i));
    HORUS_ASSIGN_OR_RETURN(PotentialAtBound at, PotentialAt(problem, pairs, options.slowdown_bounds[i], options));
    potential.exclusive = at.rate.exclusive;
    potential.at.push_back(std::move(at));
  }
  for (const double bound : QuantilesOf(pairs, options.quantiles_pct)) {
    HORUS_ASSIGN_OR_RETURN(PotentialAtBound at, PotentialAt(problem, pairs, bound, options));
    potential.at_quantiles.push_back(std::move(at));
  }
  return potential;
}

std::optional<double> ShareOfGapClosed(double achieved, const WorkRate& rate) {
  const double gap = rate.bound - rate.exclusive;
  if (gap < kLeastGapThatCounts * rate.exclusive) return std::nullopt;
  return (achieved - rate.exclusive) / gap;
}

absl::StatusOr<std::vector<PotentialCase>> PotentialOfCluster(const SpeedTable& table, std::span<const MixJob> jobs,
                                                              std::span<const double> gpus, uint32_t reference,
                                                              double clip_percentile, const PotentialOptions& options) {
  std::vector<PotentialCase> cases;
  for (uint32_t gpu = 0; gpu < gpus.size(); ++gpu) {
    if (gpus[gpu] > 0) cases.push_back({.gpu = gpu, .gpus = gpus[gpu], .left_out = {}, .potential = {}});
  }
  if (cases.size() > 1)
    cases.push_back({.gpu = {}, .gpus = Sum({gpus.begin(), gpus.end()}), .left_out = {}, .potential = {}});
  for (PotentialCase& one : cases) {
    const uint32_t unit = one.gpu.value_or(reference);
    std::vector<double> work = WorkByProfile(table, jobs, unit, clip_percentile);
    for (size_t i = 0; i < options.other_units.size() && !one.gpu; ++i) {
      const uint32_t profile = options.other_units[i];
      if (work[profile] > 0) one.left_out.push_back(profile);
      work[profile] = 0;
    }
    std::vector<double> counts(gpus.begin(), gpus.end());
    for (uint32_t gpu = 0; gpu < counts.size() && one.gpu; ++gpu) counts[gpu] = gpu == *one.gpu ? counts[gpu] : 0;
    WorkProblem problem = MakeWorkProblem(table, work, counts, unit);
    problem.hosts = options.hosts;
    for (uint32_t profile = 0; profile < work.size(); ++profile) {
      if (work[profile] > 0 && problem.mix[profile] == 0) one.left_out.push_back(profile);
    }
    std::ranges::sort(one.left_out);
    if (Sum(problem.mix) == 0) continue;
    HORUS_ASSIGN_OR_RETURN(one.potential, SharingPotential(problem, options));
  }
  return cases;
}

std::vector<WorkUse> PairsThatCarry(std::span<const WorkUse> uses, size_t count) {
  std::vector<WorkUse> pairs;
  for (const WorkUse& use : uses) {
    if (use.b != WorkUse::kAlone) pairs.push_back(use);
  }
  std::ranges::stable_sort(pairs, [](const WorkUse& x, const WorkUse& y) { return x.gpus > y.gpus; });
  if (pairs.size() > count) pairs.resize(count);
  return pairs;
}

}  // namespace horus
