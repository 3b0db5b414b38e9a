/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of horus/lab/sim.h: what is refused, by a message that names it, and changes nothing. */
#include "sim_setup.h"

static void WrongOptionsAreRefused(void) {
  const uint64_t nodes[2] = {1, 2}, only[1] = {70};
  const int64_t from[2] = {0, 5}, until[2] = {5, 6}, before[1] = {-1}, never[1] = {INT64_MAX};
  setup it;
  horus_rebalance_options rebalance = HORUS_REBALANCE_OPTIONS_INIT;
  horus_queue_options queue = HORUS_QUEUE_OPTIONS_INIT;
  horus_sim_options options = HORUS_SIM_OPTIONS_INIT;
  const horus_sim_options none = HORUS_SIM_OPTIONS_INIT;
  horus_sim_result* result = NULL;
  open_world(&it, 0);
#define REFUSED(status, text)                                                          \
  CHECK_MESSAGE(status, text, play(&it, &options, NULL, NULL, NULL, &result, &error)); \
  options = none
  options.discipline = "lifo";
  REFUSED(HORUS_ERR_NOT_FOUND, "lifo");
  options.preempt = 2;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "preempt: expected 0 or 1");
  options.one_by_one = 2;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "one_by_one: expected 0 or 1");
  options.learns = 4;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "learns: expected HORUS_SIM_LEARNS_*");
  options.weights = 4;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "weights");
  options.horizon_us = -1;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "horizon_us");
  options.queue = &queue;
  queue.las_continuous = 3;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "las_continuous");
  options.rebalance = &rebalance;
  rebalance.job_count = 1;
  rebalance.job_ids = only;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "rebalance: job_ids");
  options.outage_count = 2;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "outage_nodes");
  options.outage_count = 2;
  options.outage_nodes = nodes;
  options.outage_from_us = from;
  options.outage_until_us = until;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "outages[1]: node");
  options.outage_count = 1;
  options.outage_nodes = nodes;
  options.outage_from_us = from;
  options.outage_until_us = never;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT,
          "outages[0]: until_us: expected more than from_us of 0, which is 0 or more, and at most");
  options.outage_count = 1;
  options.outage_nodes = nodes;
  options.outage_from_us = before;
  options.outage_until_us = until;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "expected more than from_us of -1");
  options.outage_count = 1000001;
  REFUSED(HORUS_ERR_LIMIT, "outage_count");
  options.reserved0 = 1;
  REFUSED(HORUS_ERR_INVALID_STRUCT, "horus_sim_options: reserved0");
  options.struct_size = 8;
  REFUSED(HORUS_ERR_INVALID_STRUCT, "horus_sim_options");
#undef REFUSED
  CHECK(result == NULL);
  close_world(&it);
}

static void WhatDoesNotFitTogetherIsRefused(void) {
  static const char* const others[2] = {"c", "d"};
  const char* types[2] = {FIXTURE_GPU, FIXTURE_GPU};
  static const char* const same[2] = {"a", "a"};
  setup it;
  demands_of_two other;
  given_job resident;
  horus_plan* plan;
  horus_sim_result* result = NULL;
  horus_truth *truth = NULL, *half = NULL;
  uint64_t hash;
  open_world(&it, 0);
  give_demands(&other, 2000);
  other.columns.profiles = others;
#define RUN(beliefs, truth) \
  horus_sim_run(it.trace, beliefs, truth, it.cluster, it.placer, NULL, NULL, NULL, NULL, &result, &error)
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "job[0]: profile", RUN(&other.columns, it.truth));
  CHECK_OK(horus_truth_from_model(NULL, NULL, &other.columns, &truth, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "knows profile 'a'", RUN(&it.beliefs.columns, truth));
  other.columns.profiles = same;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "beliefs: row[1]: gpu_types", RUN(&other.columns, it.truth));
  other.columns.gpu_types = types;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "beliefs: row[1]: gpu_types", RUN(&other.columns, it.truth));
  types[1] = "t4";
  other.jobs[1].demand.step_time_us = 0;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "profile 'a': expected step times on all of 2 types or none, found 1",
                horus_truth_from_model(NULL, NULL, &other.columns, &half, &error));
  CHECK(half == NULL);
  other.columns.profiles = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "beliefs: profiles", RUN(&other.columns, it.truth));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, RUN(NULL, it.truth));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, RUN(&it.beliefs.columns, NULL));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_run(it.trace, &it.beliefs.columns, it.truth, it.cluster, it.placer,
                                                         NULL, NULL, NULL, NULL, NULL, &error));
  give_job(&resident, 5, 40, 2000);
  plan = plan_one(it.placer, it.cluster, &resident);
  CHECK_OK(horus_cluster_apply(it.cluster, plan, &error));
  hash = state_hash(it.cluster);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "without jobs", RUN(&it.beliefs.columns, it.truth));
  CHECK(state_hash(it.cluster) == hash && result == NULL);
#undef RUN
  horus_plan_free(plan);
  horus_truth_free(truth);
  close_world(&it);
}

static void SensitivitiesAreChecked(void) {
  static const char* const same[2] = {"a", "a"};
  static const int64_t cores[2] = {2000, 1000};
  static const float speeds[2] = {1, 2};
  horus_sensitivity matrix = matrix_of(1, cores, speeds);
  const horus_sensitivity* matrices[2];
  horus_profile_sensitivities columns = HORUS_PROFILE_SENSITIVITIES_INIT;
  horus_sim_options options = HORUS_SIM_OPTIONS_INIT;
  horus_sim_result* result = NULL;
  horus_truth* truth = NULL;
  setup it;
  open_world(&it, 0);
  matrices[0] = &matrix;
  matrices[1] = NULL;
#define REFUSED(status, text) \
  CHECK_MESSAGE(status, text, horus_truth_with_sensitivities(it.truth, &columns, &truth, &error))
  columns.count = 2;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "sensitivities: profiles");
  columns.profiles = kProfiles;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "sensitivities: sensitivities");
  columns.sensitivities = matrices;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "row[1]: sensitivities: expected a matrix, found NULL");
  matrices[1] = &matrix;
  columns.profiles = same;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "row[1]: profiles: expected each once, found 'a' again");
  matrix.cpu_count = 2;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "row[0]: sensitivity: cpu_milli");
  options.sensitivities = &columns;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[0]: sensitivity: cpu_milli",
                play(&it, &options, NULL, NULL, NULL, &result, &error));
  columns.struct_size = 8;
  REFUSED(HORUS_ERR_INVALID_STRUCT, "horus_profile_sensitivities");
#undef REFUSED
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_truth_with_sensitivities(it.truth, NULL, &truth, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_truth_with_sensitivities(NULL, &columns, &truth, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_truth_with_sensitivities(it.truth, &columns, NULL, &error));
  CHECK(truth == NULL && result == NULL);
  close_world(&it);
}

static void TruthsAreChecked(void) {
  static const char* const unknown[1] = {"no-such-gpu"};
  static const char* const both[2] = {FIXTURE_GPU, "V100 PCIe 16GB"};
  const double alone[4] = {1, 1, 1, 1};
  horus_speeds speeds = HORUS_SPEEDS_INIT;
  demands_of_two given;
  horus_truth* truth = NULL;
  speeds.gpu_count = 1;
  speeds.gpu_types = unknown;
  speeds.profile_count = 2;
  speeds.profiles = kProfiles;
  speeds.alone = alone;
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "speeds: gpu_types[0]", horus_truth_from_speeds(NULL, &speeds, 0, &truth, &error));
  speeds.gpu_types = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "speeds: gpu_types",
                horus_truth_from_speeds(NULL, &speeds, 0, &truth, &error));
  speeds.gpu_types = kGpu;
  speeds.profiles = both;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "many", horus_truth_from_speeds(NULL, &speeds, 2, &truth, &error));
  speeds.gpu_count = 2;
  speeds.gpu_types = both;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "a type of its own",
                horus_truth_from_speeds(NULL, &speeds, 0, &truth, &error));
  speeds.gpu_count = 0;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_truth_from_speeds(NULL, &speeds, 0, &truth, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_truth_from_speeds(NULL, NULL, 0, &truth, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_truth_from_speeds(NULL, &speeds, 0, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_truth_from_model(NULL, NULL, NULL, &truth, &error));
  give_demands(&given, 2000);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_truth_from_model(NULL, NULL, &given.columns, NULL, &error));
  given.jobs[1].demand.gpu_util_pct = 101;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "demands: row[1]",
                horus_truth_from_model(NULL, NULL, &given.columns, &truth, &error));
  given.columns.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_truth_from_model(NULL, NULL, &given.columns, &truth, &error));
  CHECK(truth == NULL);
  horus_truth_free(NULL);
}

static void ResultsAreReadWithinTheirBounds(void) {
  setup it;
  horus_sim_result* result = NULL;
  horus_sim_metrics metrics = HORUS_SIM_METRICS_INIT;
  horus_sim_window window = HORUS_SIM_WINDOW_INIT;
  horus_sim_jobs jobs = HORUS_SIM_JOBS_INIT;
  int64_t ends[3] = {7, 7, 7};
  double work[1] = {7};
  float took[1] = {7};
  size_t count = 0;
  open_world(&it, 0);
  CHECK_OK(play(&it, NULL, NULL, NULL, NULL, &result, &error));
  jobs.capacity = 2;
  jobs.end_us = ends;
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_sim_result_jobs(result, &jobs, &count, &error));
  CHECK(count == 3 && ends[0] == 7);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_jobs(result, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_jobs(result, &jobs, NULL, &error));
  CHECK_OK(horus_sim_result_backlog_work(result, 0, NULL, &count, &error));
  CHECK(count == 1);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_backlog_work(result, 1, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_backlog_work(NULL, 1, work, &count, &error));
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_sim_result_decision_times(result, 1, took, &count, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_decision_times(NULL, 1, took, &count, NULL, &error));
  CHECK(work[0] == 7 && took[0] == 7);
  window.slowdown_bound = 0.5;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "slowdown_bound",
                horus_sim_result_get_metrics(result, &window, &metrics, &error));
  window.struct_size = 4;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_sim_result_get_metrics(result, &window, &metrics, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_get_metrics(result, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_get_metrics(NULL, NULL, &metrics, &error));
  metrics.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_sim_result_get_metrics(result, NULL, &metrics, &error));
  CHECK(metrics.jobs == 0 && horus_sim_result_bytes_held(NULL) == 0);
  horus_sim_result_free(NULL);
  horus_sim_result_free(result);
  close_world(&it);
}

int main(void) {
  WrongOptionsAreRefused();
  WhatDoesNotFitTogetherIsRefused();
  SensitivitiesAreChecked();
  TruthsAreChecked();
  ResultsAreReadWithinTheirBounds();
  return report();
}
