/* SPDX-License-Identifier: Apache-2.0 */
/* What the contract tests of horus/lab/sim.h start from: two traces, speeds, beliefs, a node of two V100s. */
#ifndef HORUS_TESTS_CONTRACT_SIM_SETUP_H_
#define HORUS_TESTS_CONTRACT_SIM_SETUP_H_

#include <math.h>

#include "fixture.h"

static const char* const kGpu[1] = {FIXTURE_GPU};
static const char* const kProfiles[2] = {"a", "b"};

/* Alone "a" makes 10 steps a second and "b" 5; beside each other they keep 0.5 and 0.8, two of "a" cannot run together.
 */
static const double kAlone[2] = {10, 5};
static const uint32_t kPairGpus[2] = {0, 0}, kPairsA[2] = {0, 0}, kPairsB[2] = {1, 0};
static const double kSpeedsA[2] = {0.5, 0}, kSpeedsB[2] = {0.8, 0};

static inline horus_speeds speeds_of_two(void) {
  horus_speeds speeds = HORUS_SPEEDS_INIT;
  speeds.gpu_count = 1;
  speeds.gpu_types = kGpu;
  speeds.profile_count = 2;
  speeds.profiles = kProfiles;
  speeds.alone = kAlone;
  speeds.pair_count = 2;
  speeds.pair_gpus = kPairGpus;
  speeds.pairs_a = kPairsA;
  speeds.pairs_b = kPairsB;
  speeds.speeds_a = kSpeedsA;
  speeds.speeds_b = kSpeedsB;
  return speeds;
}

static inline horus_truth* truth_of_speeds(void) {
  const horus_speeds speeds = speeds_of_two();
  horus_truth* truth = NULL;
  CHECK_OK(horus_truth_from_speeds(NULL, &speeds, HORUS_TENANTS_ADD, &truth, &error));
  return truth;
}

/* Demands of "a" and "b" on any type; keep it where it is while it is in use. */
typedef struct demands_of_two {
  given_job jobs[2]; /* for their demands */
  const horus_demand* pointers[2];
  horus_profile_demands columns;
} demands_of_two;

static inline void give_demands(demands_of_two* given, int64_t mem_mib) {
  const horus_profile_demands none = HORUS_PROFILE_DEMANDS_INIT;
  size_t i;
  for (i = 0; i < 2; ++i) {
    give_job(&given->jobs[i], i + 1, 40, mem_mib);
    given->pointers[i] = &given->jobs[i].demand;
  }
  given->columns = none;
  given->columns.count = 2;
  given->columns.profiles = kProfiles;
  given->columns.demands = given->pointers;
}

/* So many cores at any host memory. */
static inline horus_sensitivity matrix_of(size_t count, const int64_t* cores, const float* speeds) {
  static const int64_t mem[1] = {1};
  horus_sensitivity matrix = HORUS_SENSITIVITY_INIT;
  matrix.cpu_count = count;
  matrix.cpu_milli = cores;
  matrix.mem_count = 1;
  matrix.mem_mib = mem;
  matrix.speeds = speeds;
  return matrix;
}

/* Who shares at any price, on the first GPU that fits; or nobody shares. */
static inline horus_placer* placer_that(int shares) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  options.policy = shares ? "first-fit" : "exclusive";
  options.slowdown_bound = HUGE_VALF;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  return placer;
}

/* Three jobs of "a" on two GPUs, of 100, 100 and 50 us; the last comes at 10. */
static inline horus_trace* trace_of_three(void) {
  static const uint64_t ids[3] = {70, 71, 72};
  static const int64_t submit[3] = {0, 0, 10}, duration[3] = {100, 100, 50};
  static const uint32_t profiles[3] = {0, 0, 0};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  horus_trace* trace = NULL;
  columns.count = 3;
  columns.ids = ids;
  columns.submit_us = submit;
  columns.duration_us = duration;
  columns.profile_count = 2;
  columns.profile_names = kProfiles;
  columns.profiles = profiles;
  CHECK_OK(horus_trace_create(&columns, &trace, &error));
  return trace;
}

/* "a" for a second from 0, and 2 steps of "b" from 100,000 us, which are 400,000 us. */
static inline horus_trace* trace_of_two(void) {
  static const uint64_t ids[2] = {70, 71};
  static const int64_t submit[2] = {0, 100000}, duration[2] = {1000000, 0}, steps[2] = {0, 2};
  static const uint32_t profiles[2] = {0, 1};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  horus_trace* trace = NULL;
  columns.count = 2;
  columns.ids = ids;
  columns.submit_us = submit;
  columns.duration_us = duration;
  columns.steps = steps;
  columns.profile_count = 2;
  columns.profile_names = kProfiles;
  columns.profiles = profiles;
  CHECK_OK(horus_trace_create(&columns, &trace, &error));
  return trace;
}

typedef struct setup {
  horus_cluster* cluster;
  horus_placer* placer;
  horus_truth* truth;
  horus_trace* trace;
  demands_of_two beliefs;
} setup;

static inline void open_world(setup* it, int shares) {
  it->cluster = cluster_of(1);
  it->placer = placer_that(shares);
  it->truth = truth_of_speeds();
  it->trace = shares ? trace_of_two() : trace_of_three();
  give_demands(&it->beliefs, 2000);
}

static inline void close_world(setup* it) {
  horus_trace_free(it->trace);
  horus_truth_free(it->truth);
  horus_placer_free(it->placer);
  horus_cluster_free(it->cluster);
}

static inline horus_status play(const setup* it, const horus_sim_options* options, horus_sim_observer observer,
                                horus_progress progress, void* user, horus_sim_result** out, horus_error* error) {
  return horus_sim_run(it->trace, &it->beliefs.columns, it->truth, it->cluster, it->placer, options, observer, progress,
                       user, out, error);
}

static inline horus_sim_metrics metrics_of(const horus_sim_result* result) {
  horus_sim_metrics metrics = HORUS_SIM_METRICS_INIT;
  CHECK_OK(horus_sim_result_get_metrics(result, NULL, &metrics, &error));
  return metrics;
}

/* Plays it with `options`; the three ends go to `ends`. */
static inline horus_sim_metrics ends_with(const setup* it, const horus_sim_options* options, int64_t* ends) {
  horus_sim_result* result = NULL;
  horus_sim_metrics metrics;
  horus_sim_jobs jobs = HORUS_SIM_JOBS_INIT;
  size_t count = 0;
  CHECK_OK(play(it, options, NULL, NULL, NULL, &result, &error));
  jobs.capacity = 3;
  jobs.end_us = ends;
  CHECK_OK(horus_sim_result_jobs(result, &jobs, &count, &error));
  metrics = metrics_of(result);
  horus_sim_result_free(result);
  return metrics;
}

#endif /* HORUS_TESTS_CONTRACT_SIM_SETUP_H_ */
