// SPDX-License-Identifier: Apache-2.0
// horus/potential.h: what sharing could give, bound by bound.
#include "horus/lab/potential.h"

#include <cmath>
#include <numeric>

#include "lab/bound/potential.h"
#include "lab/capi/handles.h"

namespace horus::capi {
namespace {

// ---- Speeds, by the rules of the work rate.

absl::StatusOr<std::vector<std::string>> NamesFromC(const char* column, size_t count, const char* const* names) {
  HORUS_RETURN_IF_ERROR(RequireColumn(names, column, count));
  std::vector<std::string> all;
  std::set<std::string> known;
  for (size_t i = 0; i < count; ++i) {
    const std::string place = Element(column, i);
    HORUS_ASSIGN_OR_RETURN(std::string name, ReadText(names[i], place.c_str()));
    HORUS_RETURN_IF_ERROR(ValidateTraceName(place.c_str(), name));
    if (!known.insert(name).second)
      return InvalidArgument("%s: expected each name once, found '%s' twice", place, name);
    all.push_back(std::move(name));
  }
  return all;
}

absl::Status CheckSizes(const horus_speeds& c) {
  if (c.gpu_count == 0 || c.profile_count == 0)
    return InvalidArgument("expected GPU types and profiles, found %d and %d", c.gpu_count, c.profile_count);
  if (c.gpu_count > kMostWorkTypes || c.profile_count > kMostWorkProfiles || c.pair_count > kMostWorkPairs) {
    return ResourceExhausted("expected at most %d GPU types, %d profiles and %d pairs, found %d, %d and %d",
                             kMostWorkTypes, kMostWorkProfiles, kMostWorkPairs, c.gpu_count, c.profile_count,
                             c.pair_count);
  }
  if (c.reference >= c.gpu_count)
    return InvalidArgument("reference: expected less than %d, found %d", c.gpu_count, c.reference);
  // Bounded: CheckSizes: at most kMostWorkTypes times kMostWorkProfiles.
  HORUS_RETURN_IF_ERROR(RequireColumn(c.alone, "alone", c.gpu_count * c.profile_count));
  return RequireColumns(c.pair_count, {{c.pair_gpus, "pair_gpus"},
                                       {c.pairs_a, "pairs_a"},
                                       {c.pairs_b, "pairs_b"},
                                       {c.speeds_a, "speeds_a"},
                                       {c.speeds_b, "speeds_b"}});
}

// Numbers and pairs, by the rules of the work rate; profiles that run nowhere have no work.
absl::Status CheckNumbers(const SpeedTable& table) {
  WorkProblem problem{.gpus = std::vector<double>(table.gpus.size(), 1),
                      .mix = std::vector<double>(table.profiles.size(), 0),
                      .alone = table.alone,
                      .pairs = table.pairs};
  for (size_t i = 0; i < table.alone.size(); ++i) {
    if (!(table.alone[i] == 0)) problem.mix[i % table.profiles.size()] = 1;  // NaN too, which is then named
  }
  if (std::ranges::count(problem.mix, 0) == std::ptrdiff_t(problem.mix.size()))
    return InvalidArgument("alone: expected some speed above 0, found none");
  return CheckWorkProblem(problem);
}

absl::StatusOr<Speeds> Convert(const horus_speeds& c, bool with_names) {
  HORUS_RETURN_IF_ERROR(CheckSizes(c));
  Speeds speeds{.table = {}, .reference = c.reference};
  SpeedTable& table = speeds.table;
  table.gpus.resize(c.gpu_count);
  table.profiles.resize(c.profile_count);
  if (with_names) {
    HORUS_ASSIGN_OR_RETURN(table.gpus, NamesFromC("gpu_types", c.gpu_count, c.gpu_types));
    HORUS_ASSIGN_OR_RETURN(table.profiles, NamesFromC("profiles", c.profile_count, c.profiles));
  }
  // Bounded: CheckSizes: at most kMostWorkTypes times kMostWorkProfiles.
  table.alone.assign(c.alone, c.alone + c.gpu_count * c.profile_count);
  table.pairs.reserve(c.pair_count);
  for (size_t i = 0; i < c.pair_count; ++i) {
    table.pairs.push_back({c.pair_gpus[i], c.pairs_a[i], c.pairs_b[i], c.speeds_a[i], c.speeds_b[i],
                           c.slowdowns == nullptr ? 0 : c.slowdowns[i]});
  }
  HORUS_RETURN_IF_ERROR(CheckNumbers(table));
  return speeds;
}

// ---- The bounds.

constexpr size_t kMostBounds = 1000;  // of slowdowns; chosen

absl::StatusOr<PotentialOptions> OptionsFromC(const horus_potential_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_potential_options c, ReadOptionalStruct(given));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.slowdown_bounds, "slowdown_bounds", c.bound_count));
  if (c.bound_count > kMostBounds)
    return ResourceExhausted("bound_count: expected at most %d, found %d", kMostBounds, c.bound_count);
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

horus_potential ToC(const Potential& potential, double left_out) {
  horus_potential c = HORUS_POTENTIAL_INIT;
  HORUS_COPY_FIELDS(potential, c, pairs, run, apart, exclusive)
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

absl::StatusOr<Speeds> SpeedsFromC(const horus_speeds* given, bool with_names) {
  HORUS_ASSIGN_OR_RETURN(const horus_speeds c, ReadStruct(given));
  return At("speeds", Convert(c, with_names));
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_potential_compute(const horus_speeds* speeds, const double* work, const double* gpus,
                                     const horus_potential_options* options, horus_progress progress, void* user,
                                     horus_potential* potential, const horus_potential_rows* rows, size_t* count,
                                     horus_error* error) {
  return Guard(error, [&] {
    if (potential != nullptr) HORUS_RETURN_IF_ERROR(CheckOutput(potential));
    HORUS_ASSIGN_OR_RETURN(const horus_potential_rows columns, ReadOptionalStruct(rows));
    HORUS_ASSIGN_OR_RETURN(PotentialOptions asked, OptionsFromC(options));
    const size_t bounds = asked.slowdown_bounds.size();
    asked.before = [&](size_t i) {
      if (progress == nullptr || progress(user, static_cast<double>(i) / static_cast<double>(bounds)) == 0)
        return absl::OkStatus();
      return Cancelled("potential: cancelled before bound %d of %d", i + 1, bounds);
    };
    HORUS_ASSIGN_OR_RETURN(const size_t written, RowsToWrite(bounds, columns.capacity, count));
    HORUS_ASSIGN_OR_RETURN(const Asked given, ProblemFromC(speeds, work, gpus));
    HORUS_ASSIGN_OR_RETURN(const Potential found, SharingPotential(given.problem, asked));
    for (size_t i = 0; i < written; ++i) PutRow(found.at[i], i, columns);
    if (potential != nullptr) WriteStruct(ToC(found, given.left_out), potential);
    if (count != nullptr) *count = found.at.size();
    return absl::OkStatus();
  });
}
