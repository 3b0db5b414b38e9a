/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of horus/lab/potential.h: a problem solved by hand; what is refused; cancelling. */
#include <math.h>

#include "fields.h"

/* Four GPUs and two profiles of equal work: a pair of 0.8 + 0.8 (slowdown 1.25), two copies of the first at 0.55 each
 * (1.82), two of the second did not run. */
static const double kAlone[2] = {10, 20}, kWork[2] = {1, 1}, kGpus[1] = {4};
static const uint32_t kPairGpus[3] = {0, 0, 0}, kPairsA[3] = {0, 0, 1}, kPairsB[3] = {1, 0, 1};
static const double kSpeedsA[3] = {0.8, 0.55, 0}, kSpeedsB[3] = {0.8, 0.55, 0};
static const double kBounds[3] = {1.2, 1.25, HUGE_VAL};

static horus_speeds speeds_of(void) {
  horus_speeds speeds = HORUS_SPEEDS_INIT;
  speeds.gpu_count = 1;
  speeds.profile_count = 2;
  speeds.alone = kAlone;
  speeds.pair_count = 3;
  speeds.pair_gpus = kPairGpus;
  speeds.pairs_a = kPairsA;
  speeds.pairs_b = kPairsB;
  speeds.speeds_a = kSpeedsA;
  speeds.speeds_b = kSpeedsB;
  return speeds;
}

static int near(double found, double expected) { return fabs(found - expected) < 1e-9; }

static int32_t count_calls(void* user, double done) {
  int* calls = user;
  CHECK(done >= 0 && done < 1);
  return ++*calls == 2; /* the second cancels */
}

/* Whether the build has the solver. */
static int solves(void) {
  const horus_speeds speeds = speeds_of();
  horus_error error = HORUS_ERROR_INIT;
  const horus_status status =
      horus_potential_compute(&speeds, kWork, kGpus, NULL, NULL, NULL, NULL, NULL, NULL, &error);
  if (status == HORUS_OK) return 1;
  CHECK(status == HORUS_ERR_IO && strstr(error.message, "libhorus_lp") != NULL);
  return 0;
}

static void EachBoundTellsItsGain(void) {
  const horus_speeds speeds = speeds_of();
  horus_potential_options options = HORUS_POTENTIAL_OPTIONS_INIT;
  horus_potential potential = HORUS_POTENTIAL_INIT;
  horus_potential_rows rows = HORUS_POTENTIAL_ROWS_INIT;
  double bounds[3], gains[3], cuts[3], rates[3], of_mix[3];
  uint64_t admitted[3];
  int32_t pays[3];
  size_t count = 0;
  options.bound_count = 3;
  options.slowdown_bounds = kBounds;
  rows.capacity = 3;
  rows.slowdown_bounds = bounds;
  rows.gains = gains;
  rows.makespan_cuts = cuts;
  rows.rates = rates;
  rows.admitted = admitted;
  rows.admitted_of_mix = of_mix;
  rows.pays = pays;
  CHECK_OK(horus_potential_compute(&speeds, kWork, kGpus, &options, NULL, NULL, &potential, &rows, &count, &error));
  CHECK(count == 3 && potential.pairs == 3 && potential.run == 2 && potential.apart == 1);
  CHECK(near(potential.exclusive, 4) && potential.left_out == 0);
  CHECK(bounds[0] == 1.2 && admitted[0] == 0 && gains[0] == 0 && pays[0] == 0);
  CHECK(admitted[1] == 1 && near(of_mix[1], 0.5) && near(gains[1], 0.6) && near(cuts[1], 0.375) && pays[1] == 1);
  CHECK(near(rates[1], 6.4) && isinf(bounds[2]) && admitted[2] == 2 && near(of_mix[2], 0.75));
  options.least_gain = 0.7;
  rows.gains = rows.slowdown_bounds = NULL;
  CHECK_OK(horus_potential_compute(&speeds, kWork, kGpus, &options, NULL, NULL, NULL, &rows, NULL, &error));
  CHECK(pays[1] == 0);
  options.least_gain = -1;
  CHECK_OK(horus_potential_compute(&speeds, kWork, kGpus, &options, NULL, NULL, NULL, &rows, NULL, &error));
  CHECK(pays[0] == 1);
  CHECK_OK(horus_potential_compute(&speeds, kWork, kGpus, NULL, NULL, NULL, NULL, NULL, &count, &error));
  CHECK(count == 5); /* the default bounds */
}

static void WorkThatNothingRunsIsLeftOut(void) {
  const double alone[2] = {10, 0}, work[2] = {3, 1};
  horus_potential potential = HORUS_POTENTIAL_INIT;
  horus_speeds speeds = speeds_of();
  speeds.alone = alone;
  speeds.pair_count = 0;
  CHECK_OK(horus_potential_compute(&speeds, work, kGpus, NULL, NULL, NULL, &potential, NULL, NULL, &error));
  CHECK(near(potential.left_out, 0.25) && near(potential.exclusive, 4) && potential.pairs == 1);
}

static void CancellingEndsIt(void) {
  const horus_speeds speeds = speeds_of();
  horus_potential potential = HORUS_POTENTIAL_INIT;
  int calls = 0;
  size_t count = 77;
  CHECK_STATUS(HORUS_ERR_CANCELLED, horus_potential_compute(&speeds, kWork, kGpus, NULL, count_calls, &calls,
                                                            &potential, NULL, &count, &error));
  CHECK(calls == 2 && potential.pairs == 0 && count == 77);
}

static void WrongArgumentsAreRefused(void) {
  const double low[1] = {0.5}, negative[2] = {-1, 1}, nan_work[2] = {1, NAN}, none[2] = {0, 0};
  const double fast[3] = {3, 0.5, 0};
  const uint32_t twice[3] = {1, 1, 1};
  horus_speeds speeds = speeds_of();
  horus_potential_options options = HORUS_POTENTIAL_OPTIONS_INIT;
  horus_potential potential = HORUS_POTENTIAL_INIT;
  horus_potential_rows rows = HORUS_POTENTIAL_ROWS_INIT;
  size_t count = 0;
#define COMPUTE(work, gpus) \
  horus_potential_compute(&speeds, work, gpus, &options, NULL, NULL, &potential, NULL, NULL, &error)
  rows.capacity = 4;
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL,
               horus_potential_compute(&speeds, kWork, kGpus, NULL, NULL, NULL, NULL, &rows, &count, &error));
  CHECK(count == 5);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "work", COMPUTE(NULL, kGpus));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpus", COMPUTE(kWork, NULL));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "work[1]", COMPUTE(nan_work, kGpus));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpus[0]", COMPUTE(kWork, negative));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "work: expected some", COMPUTE(none, kGpus));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "work: expected some", COMPUTE(kWork, none));
  options.bound_count = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "slowdown_bounds", COMPUTE(kWork, kGpus));
  options.slowdown_bounds = low;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "slowdown_bounds[0]", COMPUTE(kWork, kGpus));
  options.bound_count = 1001;
  CHECK_STATUS(HORUS_ERR_LIMIT, COMPUTE(kWork, kGpus));
  options.bound_count = 0;
  options.least_gain = -2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "least gain", COMPUTE(kWork, kGpus));
  options.least_gain = 0;
  speeds.speeds_a = fast;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "speeds: pairs[0]", COMPUTE(kWork, kGpus));
  speeds = speeds_of();
  speeds.pairs_b = twice; /* the first two pairs are one */
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "speeds: pairs[1]", COMPUTE(kWork, kGpus));
  speeds.pairs_b = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "speeds: pairs_b", COMPUTE(kWork, kGpus));
  speeds = speeds_of();
  speeds.alone = nan_work;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "speeds: alone[1]", COMPUTE(kWork, kGpus));
  speeds.alone = none;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "speeds: alone", COMPUTE(kWork, kGpus));
  speeds = speeds_of();
  speeds.reference = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "reference", COMPUTE(kWork, kGpus));
  speeds = speeds_of();
  speeds.gpu_count = 65;
  CHECK_STATUS(HORUS_ERR_LIMIT, COMPUTE(kWork, kGpus));
  speeds.struct_size = 4;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, COMPUTE(kWork, kGpus));
  speeds = speeds_of();
  potential.struct_size = 4;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, COMPUTE(kWork, kGpus));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_potential_compute(NULL, kWork, kGpus, NULL, NULL, NULL, NULL, NULL, NULL, &error));
#undef COMPUTE
  CHECK(potential.pairs == 0);
}

/* Each is asked with one field of its own; what is refused is refused before any solver is looked for. */
static horus_status take_options(const void* given, horus_error* error) {
  const horus_speeds speeds = speeds_of();
  return horus_potential_compute(&speeds, kWork, kGpus, given, NULL, NULL, NULL, NULL, NULL, error);
}

static horus_status take_rows(const void* given, horus_error* error) {
  const horus_speeds speeds = speeds_of();
  size_t count = 77;
  const horus_status status =
      horus_potential_compute(&speeds, kWork, kGpus, NULL, NULL, NULL, NULL, given, &count, error);
  CHECK(count == (status == HORUS_OK ? 5u : 77u));
  return status;
}

static void TextsAndStructsAreChecked(void) {
  static const field fields[] = {FIELD(horus_potential_options, FIELD_TEXT, library_path)};
  const double endless[2] = {1, HUGE_VAL};
  const horus_speeds speeds = speeds_of();
  horus_potential_options options = HORUS_POTENTIAL_OPTIONS_INIT;
  horus_potential_rows rows = HORUS_POTENTIAL_ROWS_INIT;
  rows.capacity = 5; /* without any column */
  if (solves()) {
    CHECK_FIELDS(take_options, &options, fields, 1);
    CHECK_STRUCT(take_options, &options, horus_potential_options);
    CHECK_STRUCT(take_rows, &rows, horus_potential_rows);
  }
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "work[1]: expected a finite number, at least 0, found inf",
                horus_potential_compute(&speeds, endless, kGpus, NULL, NULL, NULL, NULL, NULL, NULL, &error));
}

int main(void) {
  if (solves()) {
    EachBoundTellsItsGain();
    WorkThatNothingRunsIsLeftOut();
    CancellingEndsIt();
  }
  WrongArgumentsAreRefused();
  TextsAndStructsAreChecked();
  return report();
}
