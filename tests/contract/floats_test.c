/* SPDX-License-Identifier: Apache-2.0 */
/* A host may round as it likes, flush subnormal numbers and have traps: answers stay, nothing traps, its settings too.
 */
#define _GNU_SOURCE /* feenableexcept */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "fixture.h"

#define DOUBLES 64

typedef struct answers {
  double of[DOUBLES];
  size_t count;
} answers;

static void keep(answers* to, double value) {
  if (to->count < DOUBLES) to->of[to->count++] = value;
}

static void of_interference(answers* to, horus_interference* model) {
  given_job jobs[3];
  const horus_demand* demands[3];
  float slowdown[3], upper[3];
  size_t i;
  for (i = 0; i < 3; ++i) {
    give_job(&jobs[i], i + 1, (float)(23 + 17 * i), 3000);
    demands[i] = &jobs[i].demand;
  }
  CHECK_OK(slowdowns_of(model, NULL, device_of(FIXTURE_GPU, 0), 3, demands, slowdown, upper, &error));
  for (i = 0; i < 3; ++i) {
    keep(to, slowdown[i]);
    keep(to, upper[i]);
  }
  jobs[1].demand.gpu_util_pct = NAN;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpu_util_pct",
                slowdowns_of(model, NULL, device_of(FIXTURE_GPU, 0), 3, demands, slowdown, upper, &error));
}

static void of_plans(answers* to, horus_cluster* cluster) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  horus_plan* plan = NULL;
  given_job given[6];
  const horus_job* jobs[6];
  size_t i;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  for (i = 0; i < 6; ++i) {
    give_job(&given[i], i + 1, (float)(11 + 13 * i), 2000);
    jobs[i] = &given[i].job;
  }
  CHECK_OK(horus_placer_plan(placer, cluster, 6, jobs, 0, NULL, NULL, NULL, &plan, &error));
  for (i = 0; i < 6; ++i) {
    const horus_decision decision = decision_of(plan, i);
    keep(to, decision.cost);
    keep(to, decision.slowdown_upper);
  }
  horus_plan_free(plan);
  horus_placer_free(placer);
  options.slowdown_bound = (float)NAN;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "slowdown_bound", horus_placer_create(&options, &placer, &error));
}

/* By a foreign solver, which computes with infinities. */
static void of_the_potential(answers* to) {
  static const double alone[3] = {10, 20, 7}, work[3] = {1, 0.7, 0.3}, gpus[1] = {7};
  static const uint32_t pair_gpus[3] = {0, 0, 0}, a[3] = {0, 0, 1}, b[3] = {1, 2, 2};
  static const double speeds_a[3] = {0.8, 0.7, 0.9}, speeds_b[3] = {0.7, 0.9, 0.61};
  horus_speeds speeds = HORUS_SPEEDS_INIT;
  horus_potential_rows rows = HORUS_POTENTIAL_ROWS_INIT;
  double gains[8];
  size_t count = 0, i;
  horus_status status;
  speeds.gpu_count = 1;
  speeds.profile_count = 3;
  speeds.alone = alone;
  speeds.pair_count = 3;
  speeds.pair_gpus = pair_gpus;
  speeds.pairs_a = a;
  speeds.pairs_b = b;
  speeds.speeds_a = speeds_a;
  speeds.speeds_b = speeds_b;
  rows.capacity = 8;
  rows.gains = gains;
  status = horus_potential_compute(&speeds, work, gpus, NULL, NULL, NULL, NULL, &rows, &count, NULL);
  CHECK(status == HORUS_OK || status == HORUS_ERR_IO); /* a build without the solver */
  for (i = 0; i < count; ++i) keep(to, gains[i]);
}

static answers ask(void) {
  answers found;
  horus_cluster* cluster = cluster_of(2);
  horus_interference* model = NULL;
  memset(&found, 0, sizeof found);
  CHECK_OK(horus_interference_create(NULL, &model, &error));
  of_interference(&found, model);
  of_plans(&found, cluster);
  of_the_potential(&found);
  horus_interference_free(model);
  horus_cluster_free(cluster);
  return found;
}

static void AnswersAre(const answers* expected) {
  const answers found = ask();
  CHECK(found.count == expected->count && memcmp(found.of, expected->of, sizeof found.of) == 0);
}

int main(void) {
  static const int rounding[3] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const answers expected = ask();
  size_t i;
  CHECK(expected.count > 12);
  for (i = 0; i < 3; ++i) {
    CHECK(fesetround(rounding[i]) == 0);
    AnswersAre(&expected);
    CHECK(fegetround() == rounding[i]);
  }
  CHECK(fesetround(FE_TONEAREST) == 0);
#if defined(__SSE2__)
  _mm_setcsr(_mm_getcsr() | 0x8040u); /* what -ffast-math sets in a whole program */
  AnswersAre(&expected);
  CHECK((_mm_getcsr() & 0x8040u) == 0x8040u);
  _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
#if defined(__GLIBC__)
  CHECK(feclearexcept(FE_ALL_EXCEPT) == 0);
  if (feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW) == -1) {
    fprintf(stderr, "this processor has no traps: what they do is not tested\n");
  } else {
    AnswersAre(&expected);
    CHECK(fegetexcept() == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
    CHECK(fetestexcept(FE_ALL_EXCEPT & ~FE_INEXACT) == 0); /* nor was anything raised that the host looks for */
  }
#endif
  return report();
}
