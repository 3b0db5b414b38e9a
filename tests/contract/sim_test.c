/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of horus/lab/sim.h: schedules computed by hand, and callbacks. What is refused: sim_refused_test.c. */
#include "sim_setup.h"

static void JobsRunWhereTheyAloneFit(void) {
  setup it;
  horus_sim_result* result = NULL;
  horus_sim_metrics metrics;
  horus_sim_window window = HORUS_SIM_WINDOW_INIT;
  horus_sim_jobs jobs = HORUS_SIM_JOBS_INIT;
  uint64_t ids[3], hash;
  int64_t starts[3], ends[3];
  int32_t why[3];
  double work[1], spread[HORUS_SPREAD_COUNT];
  float took[8];
  size_t count = 0;
  open_world(&it, 0);
  hash = state_hash(it.cluster);
  CHECK_OK(play(&it, NULL, NULL, NULL, NULL, &result, &error));
  CHECK(state_hash(it.cluster) == hash && horus_sim_result_bytes_held(result) > 0);
  metrics = metrics_of(result);
  CHECK(metrics.jobs == 3 && metrics.finished == 3 && metrics.makespan_us == 150 && metrics.end_us == 150);
  CHECK(fabs(metrics.jct_us[HORUS_SPREAD_MEAN] - 340 / 3.0) < 1e-9 && metrics.jct_us[HORUS_SPREAD_P99] == 140);
  CHECK(metrics.wait_us[HORUS_SPREAD_P50] == 0 && metrics.wait_us[HORUS_SPREAD_P95] == 90);
  CHECK(metrics.devices == 2 && metrics.backlog_us == 90 && metrics.slowdown[HORUS_SPREAD_P99] == 1);
  CHECK(fabs(metrics.allocation - 250 / 300.0) < 1e-9 && metrics.backlog_rate == 1 && metrics.beliefs == 0);
  window.from_us = 5;
  CHECK_OK(horus_sim_result_get_metrics(result, &window, &metrics, &error));
  CHECK(metrics.jobs == 1 && metrics.jct_us[HORUS_SPREAD_MEAN] == 140);
  window.from_us = 0;
  window.to_us = 5;
  CHECK_OK(horus_sim_result_get_metrics(result, &window, &metrics, &error));
  CHECK(metrics.jobs == 2);
  jobs.capacity = 3;
  jobs.job_ids = ids;
  jobs.start_us = starts;
  jobs.end_us = ends;
  jobs.ends = why;
  CHECK_OK(horus_sim_result_jobs(result, &jobs, &count, &error));
  CHECK(count == 3 && ids[0] == 70 && ids[2] == 72 && starts[2] == 100 && ends[2] == 150 && ends[0] == 100);
  CHECK(why[0] == HORUS_SIM_END_FINISHED);
  CHECK_OK(horus_sim_result_backlog_work(result, 1, work, &count, &error));
  CHECK(count == 1 && fabs(work[0] - 180e-6) < 1e-12); /* both GPUs for 90 us */
  CHECK_OK(horus_sim_result_decision_times(result, 0, NULL, &count, spread, &error));
  CHECK(count >= 3 && count <= 8 && spread[HORUS_SPREAD_P99] >= spread[HORUS_SPREAD_P50]);
  CHECK_OK(horus_sim_result_decision_times(result, 8, took, &count, NULL, &error));
  horus_sim_result_free(result);
  close_world(&it);
}

/* Alone until 100,000 us; then "b" needs 400,000 / 0.8 us, and "a" did 350,000 by then. */
static void TimePassesByTheTruth(void) {
  setup it;
  horus_sim_result* result = NULL;
  horus_sim_metrics metrics;
  horus_sim_jobs jobs = HORUS_SIM_JOBS_INIT;
  int64_t ends[2], ran[2];
  double work[2], undisturbed[2];
  size_t count = 0;
  open_world(&it, 1);
  CHECK_OK(play(&it, NULL, NULL, NULL, NULL, &result, &error));
  jobs.capacity = 2;
  jobs.end_us = ends;
  jobs.ran_us = ran;
  jobs.work_us = work;
  jobs.undisturbed_us = undisturbed;
  CHECK_OK(horus_sim_result_jobs(result, &jobs, &count, &error));
  CHECK(ends[0] == 1250000 && ends[1] == 600000 && ran[1] == 500000);
  CHECK(work[0] == 1e6 && work[1] == 4e5 && undisturbed[0] == 1e6);
  metrics = metrics_of(result);
  CHECK(metrics.slowdown[HORUS_SPREAD_MEAN] == 1.25 && metrics.beliefs == 2 && metrics.belief_error > 0);
  horus_sim_result_free(result);
  close_world(&it);
}

static void OptionsReachTheSimulation(void) {
  const uint64_t node = 1;
  const int64_t from = 50, until = 80;
  setup it;
  int64_t ends[3];
  horus_sim_metrics metrics;
  horus_sim_options options = HORUS_SIM_OPTIONS_INIT;
  const horus_sim_options none = HORUS_SIM_OPTIONS_INIT;
  open_world(&it, 0);
  options.horizon_us = 120;
  metrics = ends_with(&it, &options, ends);
  CHECK(metrics.finished == 2 && metrics.running == 1 && ends[2] == -1 && metrics.end_us == 120);
  options = none;
  options.round_us = 60;
  CHECK(ends_with(&it, &options, ends).finished == 3 && ends[0] == 100 && ends[2] == 170);
  options = none;
  options.latency_us = 7;
  CHECK(ends_with(&it, &options, ends).finished == 3 && ends[0] == 107 && ends[2] == 164);
  options = none;
  options.discipline = "sjf"; /* knows that the last is the shortest, but the others hold the GPUs */
  CHECK(ends_with(&it, &options, ends).preemptions == 0 && ends[2] == 150);
  options.discipline = "srtf";
  options.preempt = 1;
  metrics = ends_with(&it, &options, ends);
  CHECK(metrics.preemptions == 1 && ends[0] == 100 && ends[2] == 60 && ends[1] == 150);
  options.restart_us = 5;
  CHECK(ends_with(&it, &options, ends).restarts == 1 && ends[1] == 155);
  options.hide_run_times = 1;
  CHECK(ends_with(&it, &options, ends).preemptions == 0);
  options = none;
  options.discipline = "drf"; /* by the cluster's capacity */
  CHECK(ends_with(&it, &options, ends).finished == 3);
  options = none;
  options.outage_count = 1;
  options.outage_nodes = &node;
  options.outage_from_us = &from;
  options.outage_until_us = &until;
  metrics = ends_with(&it, &options, ends);
  CHECK(metrics.interruptions == 2 && ends[0] == 130 && ends[1] == 130 && ends[2] == 180);
  options.checkpoint_us = 30;      /* 20 us of each are lost */
  options.profiling_label = "lab"; /* of no node */
  options.measured = &it.beliefs.columns;
  CHECK(ends_with(&it, &options, ends).finished == 3 && ends[0] == 150 && ends[2] == 200);
  close_world(&it);
}

static void AModelAndDemandsMayBeTheTruth(void) {
  setup it;
  horus_interference* model = NULL;
  demands_of_two truth;
  int64_t ends[3];
  horus_sim_metrics metrics;
  open_world(&it, 0);
  horus_truth_free(it.truth);
  it.truth = NULL;
  give_demands(&truth, 2000);
  CHECK_OK(horus_interference_create("utilisation", &model, &error));
  CHECK_OK(horus_truth_from_model(NULL, model, &truth.columns, &it.truth, &error));
  horus_interference_free(model);
  CHECK(horus_truth_bytes_held(it.truth) > 0 && horus_truth_bytes_held(NULL) == 0);
  CHECK(ends_with(&it, NULL, ends).finished == 3 && ends[2] == 150);
  /* Memory that nobody believed in. */
  horus_truth_free(it.truth);
  give_demands(&truth, 20000);
  CHECK_OK(horus_truth_from_model(NULL, NULL, &truth.columns, &it.truth, &error));
  metrics = ends_with(&it, NULL, ends);
  CHECK(metrics.rejected == 3 && metrics.out_of_memory == 3 && ends[0] == -1);
  close_world(&it);
}

/* Its profile is none that the truth knows. */
static void AJobForTheHostAloneTakesTheTimeThatItStates(void) {
  static const uint32_t profiles[3] = {0, 0, 1};
  static const int32_t gpus[3] = {1, 1, HORUS_JOB_NO_GPUS};
  static const int64_t duration[3] = {100, 100, 50};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  demands_of_two truth;
  setup it;
  int64_t ends[3];
  open_world(&it, 0);
  horus_truth_free(it.truth);
  horus_trace_free(it.trace);
  it.truth = NULL;
  give_demands(&truth, 2000);
  truth.columns.count = 1;
  CHECK_OK(horus_truth_from_model(NULL, NULL, &truth.columns, &it.truth, &error));
  columns.count = 3;
  columns.duration_us = duration;
  columns.gpus_per_task = gpus;
  columns.profile_count = 2;
  columns.profile_names = kProfiles;
  columns.profiles = profiles;
  CHECK_OK(horus_trace_create(&columns, &it.trace, &error));
  CHECK(ends_with(&it, NULL, ends).finished == 3 && ends[0] == 100 && ends[1] == 100 && ends[2] == 50);
  close_world(&it);
}

/* What a simulation told. */
typedef struct told {
  const setup* it;
  int calls, stop_at;
  int32_t kinds[16];
  uint64_t job_ids[16], nodes[16];
  int64_t times[16];
  uint32_t devices[16];
  horus_status placer_status, cluster_status;
} told;

static int32_t tell(void* user, const horus_sim_event* event) {
  told* to = user;
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  horus_plan* plan = NULL;
  const int i = to->calls++;
  to->kinds[i] = event->kind;
  to->times[i] = event->time_us;
  to->job_ids[i] = event->job_id;
  to->nodes[i] = event->slot_count > 0 ? event->node_ids[0] : 0;
  to->devices[i] = event->slot_count > 0 ? event->devices[0] : 0;
  to->placer_status = horus_placer_plan(to->it->placer, to->it->cluster, 0, NULL, 0, NULL, NULL, NULL, &plan, NULL);
  to->cluster_status = horus_cluster_get_info(to->it->cluster, &info, NULL);
  return to->calls == to->stop_at;
}

static int32_t advance(void* user, double done) {
  double* last = user;
  const int32_t stop = *last < 0;
  CHECK(stop || done >= *last); /* equal on slow machines: asked again while a decision takes long */
  CHECK(done >= 0 && done <= 1);
  *last = done;
  return stop;
}

static void ObserversSeeEveryEventAndMayCancel(void) {
  static const int32_t kinds[6] = {HORUS_SIM_ARRIVE, HORUS_SIM_START,  HORUS_SIM_ARRIVE,
                                   HORUS_SIM_START,  HORUS_SIM_FINISH, HORUS_SIM_FINISH};
  static const uint64_t ids[6] = {70, 70, 71, 71, 71, 70};
  setup it;
  told to;
  horus_sim_result* result = NULL;
  double done = 0;
  uint64_t hash;
  int i;
  open_world(&it, 1);
  hash = state_hash(it.cluster);
  memset(&to, 0, sizeof to);
  to.it = &it;
  to.stop_at = 4;
  CHECK_STATUS(HORUS_ERR_CANCELLED, play(&it, NULL, tell, NULL, &to, &result, &error));
  CHECK(to.calls == 4 && result == NULL && state_hash(it.cluster) == hash);
  to.calls = to.stop_at = 0;
  CHECK_OK(play(&it, NULL, tell, NULL, &to, &result, &error));
  CHECK(to.calls == 6 && to.times[5] == 1250000 && to.placer_status == HORUS_ERR_BUSY &&
        to.cluster_status == HORUS_ERR_BUSY);
  for (i = 0; i < 6; ++i) CHECK(to.kinds[i] == kinds[i] && to.job_ids[i] == ids[i]);
  for (i = 3; i < 6; ++i) CHECK(to.nodes[i] == 1 && to.devices[i] == 0);
  horus_sim_result_free(result);
  result = NULL;
  CHECK_OK(play(&it, NULL, NULL, advance, &done, &result, &error));
  CHECK(done == 1);
  horus_sim_result_free(result);
  result = NULL;
  done = -1;
  CHECK_STATUS(HORUS_ERR_CANCELLED, play(&it, NULL, NULL, advance, &done, &result, &error));
  CHECK(result == NULL);
  close_world(&it);
}

/* A placer plans on the cluster itself as before, though it planned on the simulation's copy. */
static void ThePlacerGoesOnAsBefore(void) {
  setup it;
  given_job job;
  horus_plan *before, *after;
  int64_t ends[3];
  open_world(&it, 0);
  give_job(&job, 1, 40, 2000);
  before = plan_one(it.placer, it.cluster, &job);
  (void)ends_with(&it, NULL, ends);
  after = plan_one(it.placer, it.cluster, &job);
  CHECK(decision_of(before, 0).cost == decision_of(after, 0).cost);
  CHECK_OK(horus_cluster_apply(it.cluster, after, &error));
  CHECK_STATUS(HORUS_ERR_EXISTS, horus_cluster_apply(it.cluster, before, &error));
  horus_plan_free(before);
  horus_plan_free(after);
  close_world(&it);
}

/* The fair share is 32 of 64 cores, with 48 "a" is twice as fast: the last is alone from 100 on. */
static void CoresCountWhereTheTruthFollowsThem(void) {
  static const int64_t cores[3] = {16000, 32000, 48000};
  static const float speeds[3] = {0.5f, 1, 2};
  setup it;
  horus_truth* plain = NULL;
  const horus_sensitivity matrix = matrix_of(3, cores, speeds);
  const horus_sensitivity* matrices[1];
  horus_profile_sensitivities columns = HORUS_PROFILE_SENSITIVITIES_INIT;
  horus_placer_options rounds = HORUS_PLACER_OPTIONS_INIT;
  horus_sim_options options = HORUS_SIM_OPTIONS_INIT;
  int64_t ends[3];
  open_world(&it, 0);
  matrices[0] = &matrix;
  columns.count = 1;
  columns.profiles = kProfiles;
  columns.sensitivities = matrices;
  plain = it.truth;
  CHECK_OK(horus_truth_with_sensitivities(plain, &columns, &it.truth, &error));
  CHECK(horus_truth_bytes_held(it.truth) > horus_truth_bytes_held(plain));
  horus_truth_free(plain);
  horus_placer_free(it.placer);
  rounds.policy = "synergy-tune";
  CHECK_OK(horus_placer_create(&rounds, &it.placer, &error));
  ends_with(&it, &options, ends);
  CHECK(ends[0] == 100 && ends[1] == 100 && ends[2] == 150);
  options.sensitivities = &columns;
  ends_with(&it, &options, ends);
  CHECK(ends[0] == 100 && ends[1] == 100 && ends[2] == 125);
  close_world(&it);
}

/* First fit would put all three on one GPU, where they cannot run together: it finds out once instead of twice, and
 * whoever starts from what it learned does not at all. */
static void WhatWasLearnedIsNotTriedAgain(void) {
  setup it;
  horus_placer_options bounded = HORUS_PLACER_OPTIONS_INIT;
  horus_sim_options options = HORUS_SIM_OPTIONS_INIT;
  horus_sim_result* result = NULL;
  horus_interference* model = NULL;
  int64_t ends[3];
  size_t i;
  open_world(&it, 0);
  for (i = 0; i < 2; ++i) it.beliefs.jobs[i].demand.profile_id = i + 1;
  horus_placer_free(it.placer);
  bounded.policy = "first-fit";
  bounded.slowdown_bound = 100;
  CHECK_OK(horus_placer_create(&bounded, &it.placer, &error));
  CHECK(ends_with(&it, &options, ends).failures == 2 && ends[2] == 150);
  CHECK_OK(play(&it, &options, NULL, NULL, NULL, &result, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "a simulation that learned",
                horus_sim_result_get_model(result, &model, &error));
  horus_sim_result_free(result);
  options.learns = HORUS_SIM_LEARNS_FAILURES;
  CHECK(ends_with(&it, &options, ends).failures == 1 && ends[2] == 150);
  CHECK_OK(play(&it, &options, NULL, NULL, NULL, &result, &error));
  CHECK_OK(horus_sim_result_get_model(result, &model, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_get_model(result, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_sim_result_get_model(NULL, &model, &error));
  horus_sim_result_free(result);
  horus_placer_free(it.placer);
  bounded.interference = model;
  CHECK_OK(horus_placer_create(&bounded, &it.placer, &error));
  horus_interference_free(model);
  CHECK(ends_with(&it, NULL, ends).failures == 0 && ends[2] == 150);
  close_world(&it);
}

int main(void) {
  JobsRunWhereTheyAloneFit();
  TimePassesByTheTruth();
  OptionsReachTheSimulation();
  AModelAndDemandsMayBeTheTruth();
  AJobForTheHostAloneTakesTheTimeThatItStates();
  CoresCountWhereTheTruthFollowsThem();
  WhatWasLearnedIsNotTriedAgain();
  ObserversSeeEveryEventAndMayCancel();
  ThePlacerGoesOnAsBefore();
  return report();
}
