// SPDX-License-Identifier: Apache-2.0
// horus/potential.h: what sharing could give, bound by bound.
#include "horus/lab/potential.h"

#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "capi/args.h"
#include "capi/error.h"
#include "capi/structs.h"
#include "lab/bound/potential.h"
#include "lab/capi/sim_convert.h"

namespace horus::capi {
namespace {

constexpr size_t kMostBounds = 1000;  // of slowdowns; chosen

absl::StatusOr<PotentialOptions> OptionsFromC(const horus_potential_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_potential_options c, ReadOptionalStruct(given));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.slowdown_bounds, "slowdown_bounds", c.bound_count));
  if (c.bound_count > kMostBounds) {
    return ResourceExhausted("bound_count: expected at most %d, found %d", kMostBounds, c.bound_count);
  }
  PotentialOptions options;
  if (c.bound_count > 0) options.slowdown_bounds.assign(c.slowdown_bounds, c.slowdown_bounds + c.bound_count);
  for (size_t i = 0; i < options.slowdown_bounds.size(); ++i) {
    if (options.slowdown_bounds[i] >= 1) continue;
    return InvalidArgument("%s: expected at least 1, found %g", Element("slowdown_bounds", i),
                           options.slowdown_bounds[i]);
  }
  SetAmount(options.least_gain, c.least_gain);
  HORUS_ASSIGN_OR_RETURN(options.lp_library, ReadOptionalText(c.library_path, "library_path"));
  return options;
}

absl::Status CheckAmounts(const char* column, std::span<const double> amounts) {
  for (size_t i = 0; i < amounts.size(); ++i) {
    if (amounts[i] >= 0 && std::isfinite(amounts[i])) continue;
    return InvalidArgument("%s: expected a finite number, at least 0, found %g", Element(column, i), amounts[i]);
  }
  return absl::OkStatus();
}

struct Asked {
  WorkProblem problem;
  double left_out = 0;  // share of the work
};

absl::StatusOr<Asked> ProblemFromC(const horus_speeds* given, const double* work, const double* gpus) {
  HORUS_RETURN_IF_ERROR(Require({{work, "work"}, {gpus, "gpus"}}));
  HORUS_ASSIGN_OR_RETURN(const Speeds speeds, SpeedsFromC(given, /*with_names=*/false));
  const std::span<const double> amounts(work, speeds.table.profiles.size());
  const std::span<const double> counts(gpus, speeds.table.gpus.size());
  HORUS_RETURN_IF_ERROR(CheckAmounts("work", amounts));
  HORUS_RETURN_IF_ERROR(CheckAmounts("gpus", counts));
  Asked asked{.problem = MakeWorkProblem(speeds.table, amounts, counts, speeds.reference)};
  const double all = std::accumulate(amounts.begin(), amounts.end(), 0.0);
  const double kept = std::accumulate(asked.problem.mix.begin(), asked.problem.mix.end(), 0.0);
  if (!(kept > 0)) return InvalidArgument("work: expected some that these GPUs run, found none of %g", all);
  asked.left_out = 1 - kept / all;
  return asked;
}

// One bound after the other, which is the same as all together, so that the caller can follow and cancel.
absl::StatusOr<Potential> Compute(const WorkProblem& problem, const PotentialOptions& options, horus_progress progress,
                                  void* user) {
  Potential potential{.at = {}};
  const size_t bounds = options.slowdown_bounds.size();
  for (size_t i = 0; i < bounds; ++i) {
    if (progress != nullptr && progress(user, static_cast<double>(i) / static_cast<double>(bounds)) != 0) {
      return Cancelled("potential: cancelled before bound %d of %d", i + 1, bounds);
    }
    PotentialOptions one = options;
    one.slowdown_bounds = {options.slowdown_bounds[i]};
    HORUS_ASSIGN_OR_RETURN(Potential part, SharingPotential(problem, one));
    part.at.insert(part.at.begin(), std::make_move_iterator(potential.at.begin()),
                   std::make_move_iterator(potential.at.end()));
    potential = std::move(part);
  }
  return potential;
}

horus_potential ToC(const Potential& potential, double left_out) {
  horus_potential c = HORUS_POTENTIAL_INIT;
  c.pairs = potential.pairs;
  c.run = potential.run;
  c.apart = potential.apart;
  c.exclusive = potential.exclusive;
  c.left_out = left_out;
  return c;
}

void PutRow(const PotentialAtBound& at, size_t row, const horus_potential_rows& columns) {
  Put(columns.slowdown_bounds, row, at.slowdown_bound);
  Put(columns.gains, row, at.gain);
  Put(columns.makespan_cuts, row, at.makespan_cut);
  Put(columns.rates, row, at.rate.bound);
  Put(columns.admitted, row, at.admitted);
  Put(columns.admitted_of_mix, row, at.admitted_of_mix);
  Put(columns.pays, row, at.pays ? 1 : 0);
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_potential_compute(const horus_speeds* speeds, const double* work, const double* gpus,
                                     const horus_potential_options* options, horus_progress progress, void* user,
                                     horus_potential* potential, const horus_potential_rows* rows, size_t* count,
                                     horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    if (potential != nullptr) HORUS_RETURN_IF_ERROR(CheckOutput(potential));
    HORUS_ASSIGN_OR_RETURN(const horus_potential_rows columns, ReadOptionalStruct(rows));
    HORUS_ASSIGN_OR_RETURN(const horus::PotentialOptions asked, OptionsFromC(options));
    HORUS_ASSIGN_OR_RETURN(const size_t written, RowsToWrite(asked.slowdown_bounds.size(), columns.capacity, count));
    HORUS_ASSIGN_OR_RETURN(const Asked given, ProblemFromC(speeds, work, gpus));
    HORUS_ASSIGN_OR_RETURN(const horus::Potential found, Compute(given.problem, asked, progress, user));
    for (size_t i = 0; i < written; ++i) PutRow(found.at[i], i, columns);
    if (potential != nullptr) WriteStruct(ToC(found, given.left_out), potential);
    if (count != nullptr) *count = found.at.size();
    return absl::OkStatus();
  });
}
