/* SPDX-License-Identifier: Apache-2.0 */
/* What simulations, their truths and results do with options at other values than their defaults. */
#include "fields.h"
#include "sim_setup.h"

static setup box;

static horus_trace* trace_with(horus_trace_columns columns) {
  horus_trace* trace = NULL;
  CHECK_OK(horus_trace_create(&columns, &trace, &error));
  return trace;
}

static horus_status run(const horus_trace* trace, const horus_sim_options* options, horus_sim_result** out,
                        horus_error* error) {
  return horus_sim_run(trace, &box.beliefs.columns, box.truth, box.cluster, box.placer, options, NULL, NULL, NULL, out,
                       error);
}

static void JobsNameWhatTheyRun(void) {
  static const int64_t duration[1] = {100}, steps[1] = {5};
  static const uint32_t second[1] = {1};
  static const int32_t host[1] = {HORUS_JOB_NO_GPUS};
  static const char* const unknown[2] = {"a", "z"};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  horus_sim_result* result = NULL;
  horus_trace* trace;
  columns.count = 1;
  columns.duration_us = duration;
  trace = trace_with(columns);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, run(trace, NULL, &result, &error)); /* of a job with GPUs it is required */
  horus_trace_free(trace);
  columns.duration_us = NULL;
  columns.steps = steps;
  columns.profile_count = 2;
  columns.profile_names = unknown;
  columns.profiles = second;
  trace = trace_with(columns);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "profile: expected one with a speed alone, found 'z'",
                run(trace, NULL, &result, &error));
  horus_trace_free(trace);
  CHECK(result == NULL);
  columns.steps = NULL;
  columns.duration_us = duration;
  columns.gpus_per_task = host; /* nobody asks how fast it runs on which GPU */
  trace = trace_with(columns);
  CHECK_OK(run(trace, NULL, &result, &error));
  CHECK(metrics_of(result).finished == 1);
  horus_sim_result_free(result);
  horus_trace_free(trace);
}

static void RowsOfAProfileComeInAnyOrder(void) {
  static const char* const same[2] = {"a", "a"};
  static const char* const up[2] = {"t4", "v100-pcie-16gb"};
  static const char* const down[2] = {"v100-pcie-16gb", "t4"};
  demands_of_two given;
  horus_truth *one = NULL, *two = NULL;
  give_demands(&given, 2000);
  given.columns.profiles = same;
  given.columns.gpu_types = up;
  CHECK_OK(horus_truth_from_model(NULL, NULL, &given.columns, &one, &error));
  given.columns.gpu_types = down;
  CHECK_OK(horus_truth_from_model(NULL, NULL, &given.columns, &two, &error));
  CHECK(one != NULL && two != NULL && horus_truth_bytes_held(one) == horus_truth_bytes_held(two));
  horus_truth_free(one);
  horus_truth_free(two);
}

static horus_status take_workload(const void* given, horus_error* error) {
  horus_sim_options options = HORUS_SIM_OPTIONS_INIT;
  horus_sim_result* result = NULL;
  horus_status status;
  options.workload = given;
  status = play(&box, &options, NULL, NULL, NULL, &result, error);
  CHECK((result != NULL) == (status == HORUS_OK));
  horus_sim_result_free(result);
  return status;
}

static void OptionsOtherThanTheirDefaultsAreRead(void) {
  static const double shares[1] = {1};
  static const int32_t gpus[1] = {1};
  int64_t ends[3] = {0, 0, 0}, other[3] = {0, 0, 0};
  horus_sim_options options = HORUS_SIM_OPTIONS_INIT;
  horus_queue_options queue = HORUS_QUEUE_OPTIONS_INIT;
  horus_rebalance_options rebalance = HORUS_REBALANCE_OPTIONS_INIT;
  horus_workload workload = HORUS_WORKLOAD_INIT;
  horus_sim_result* result = NULL;
  workload.task_count = 1;
  workload.gpus = gpus;
  workload.shares = shares;
  workload.gpu_types = kGpu; /* those of the cluster */
  CHECK_OK(take_workload(&workload, &error));
  workload.shares = NULL;
  check_refused(take_workload, &workload, "workload: shares", "found NULL");

  (void)ends_with(&box, NULL, ends);
  options.queue = &queue; /* a capacity in part is one */
  options.discipline = "drf";
  queue.cpu_milli = 64000;
  (void)ends_with(&box, &options, other);
  CHECK(memcmp(ends, other, sizeof ends) == 0);
  queue.cpu_milli = 0;
  queue.mem_mib = 256 * 1024;
  (void)ends_with(&box, &options, other);
  CHECK(memcmp(ends, other, sizeof ends) == 0);

  options.discipline = NULL;
  options.queue = NULL;
  options.learns = HORUS_SIM_LEARNS_PAIRS;
  options.observe_us = 10; /* not the default of those who learn */
  CHECK_OK(play(&box, &options, NULL, NULL, NULL, &result, &error));
  CHECK(metrics_of(result).finished == 3);
  horus_sim_result_free(result);
  result = NULL;

  options.rebalance = &rebalance;
  rebalance.job_count = 1; /* of no column */
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "rebalance: job_ids: expected NULL, found 1 ids",
                play(&box, &options, NULL, NULL, NULL, &result, &error));
  CHECK(result == NULL);
}

static int32_t count_progress(void* user, double done) {
  double* state = user; /* calls, the last share */
  CHECK(done >= state[1] && done <= 1);
  ++state[0];
  state[1] = done;
  return 0;
}

/* Of a long trace progress is told by shares, not by events. */
static void ProgressIsToldByShares(void) {
  enum { JOBS = 3000 };
  static int64_t submit[JOBS], duration[JOBS];
  static uint32_t profiles[JOBS];
  double state[2] = {0, 0};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  horus_sim_result* result = NULL;
  horus_trace* trace;
  int i;
  for (i = 0; i < JOBS; ++i) {
    submit[i] = 100 * i;
    duration[i] = 50;
  }
  columns.count = JOBS;
  columns.submit_us = submit;
  columns.duration_us = duration;
  columns.profile_count = 2;
  columns.profile_names = kProfiles;
  columns.profiles = profiles;
  trace = trace_with(columns);
  CHECK_OK(horus_sim_run(trace, &box.beliefs.columns, box.truth, box.cluster, box.placer, NULL, NULL, count_progress,
                         state, &result, &error));
  CHECK(metrics_of(result).finished == JOBS);
  CHECK(state[0] >= 1000 && state[1] == 1); /* a thousand steps, and whenever the placer was asked for long */
  horus_sim_result_free(result);
  horus_trace_free(trace);
}

static horus_sim_result* played; /* of which the takers below ask */

static horus_status take_window(const void* given, horus_error* error) {
  horus_sim_metrics metrics = HORUS_SIM_METRICS_INIT;
  const horus_status status = horus_sim_result_get_metrics(played, given, &metrics, error);
  CHECK((metrics.jobs == 0) == (status != HORUS_OK));
  return status;
}

static horus_status take_jobs(const void* given, horus_error* error) {
  size_t count = 77;
  const horus_status status = horus_sim_result_jobs(played, given, &count, error);
  CHECK(count == (status == HORUS_OK ? 3u : 77u));
  return status;
}

static horus_status take_trace_jobs(const void* given, horus_error* error) {
  size_t count = 77;
  const horus_status status = horus_trace_get_jobs(box.trace, given, &count, error);
  CHECK(count == (status == HORUS_OK ? 3u : 77u));
  return status;
}

static void ResultsAreReadInPart(void) {
  horus_sim_window window = HORUS_SIM_WINDOW_INIT;
  horus_sim_jobs jobs = HORUS_SIM_JOBS_INIT;
  horus_trace_jobs given = HORUS_TRACE_JOBS_INIT;
  horus_sim_metrics metrics = HORUS_SIM_METRICS_INIT;
  CHECK_OK(play(&box, NULL, NULL, NULL, NULL, &played, &error));
  window.slowdown_bound = 1; /* nobody shares: nobody is slowed */
  CHECK_OK(horus_sim_result_get_metrics(played, &window, &metrics, &error));
  CHECK(metrics.finished == 3 && metrics.above_bound == 0);
  CHECK_STRUCT(take_window, &window, horus_sim_window);
  jobs.capacity = given.capacity = 3; /* without any column: how many there are */
  CHECK_STRUCT(take_jobs, &jobs, horus_sim_jobs);
  CHECK_STRUCT(take_trace_jobs, &given, horus_trace_jobs);
  horus_sim_result_free(played);
}

static void EndlessJobsComeBackSo(void) {
  static const uint8_t endless[2] = {1, 0};
  static const int64_t duration[2] = {0, 5};
  uint8_t found[2] = {7, 7};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  horus_trace_jobs jobs = HORUS_TRACE_JOBS_INIT;
  horus_trace* trace;
  size_t count = 0;
  columns.count = 2;
  columns.duration_us = duration;
  columns.endless = endless;
  trace = trace_with(columns);
  jobs.capacity = 2;
  jobs.endless = found;
  CHECK_OK(horus_trace_get_jobs(trace, &jobs, &count, &error));
  CHECK(count == 2 && found[0] == 1 && found[1] == 0);
  CHECK(horus_trace_type_name(NULL, 0, 0) == NULL && horus_trace_owner_name(NULL, 0) == NULL);
  CHECK(horus_trace_type_name(trace, 0, 0) == NULL && horus_trace_owner_name(trace, 0) == NULL);
  horus_trace_free(trace);
}

int main(void) {
  open_world(&box, 0);
  JobsNameWhatTheyRun();
  RowsOfAProfileComeInAnyOrder();
  OptionsOtherThanTheirDefaultsAreRead();
  ProgressIsToldByShares();
  ResultsAreReadInPart();
  EndlessJobsComeBackSo();
  close_world(&box);
  return report();
}
