/* SPDX-License-Identifier: Apache-2.0 */
/* horus_job: what a job may state beyond its demand, and that the placer keeps it. */
#include <math.h>

#include "fixture.h"

static horus_placer* placer_with(const horus_placer_options* given) {
  horus_placer_options options = *given;
  horus_interference* model = NULL;
  horus_placer* placer = NULL;
  CHECK_OK(horus_interference_create("utilisation", &model, &error));
  options.interference = model;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  horus_interference_free(model);
  return placer;
}

/* Plans and applies; the decision's text goes with the plan. */
static horus_decision place(horus_placer* placer, horus_cluster* cluster, const given_job* given) {
  horus_plan* plan = plan_one(placer, cluster, given);
  const horus_decision decision = decision_of(plan, 0);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  return decision;
}

static void LimitsAreLentTwiceOnlyByOverCommit(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  horus_placer *strict, *lending;
  given_job given;
  CHECK_OK(horus_cluster_set_state(cluster, 1, 1, HORUS_STATE_DRAINED, 0, NULL, NULL, &error));
  strict = placer_with(&options);
  options.mem_overcommit = 1.5;
  lending = placer_with(&options);
  give_job(&given, 1, 10, 2000);
  given.job.gpu_mem_request_mib = 1000;
  given.job.gpu_mem_limit_mib = 12000;
  CHECK(place(strict, cluster, &given).verdict == HORUS_VERDICT_PLACE);
  CHECK_OK(horus_cluster_get_device(cluster, 1, 0, &info, 0, NULL, NULL, &error));
  CHECK(info.mem_reserved_mib == 1000 && info.mem_limit_mib == 12000);
  given.job.id = 2;
  CHECK(place(strict, cluster, &given).miss_reason == HORUS_REASON_GPU_MEMORY);
  CHECK(place(lending, cluster, &given).verdict == HORUS_VERDICT_PLACE);
  given.job.id = 3;
  given.job.gpu_mem_limit_mib = 999;
  {
    const horus_job* jobs[1];
    horus_plan* plan = NULL;
    jobs[0] = &given.job;
    CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpu_mem_limit_mib",
                  horus_placer_plan(strict, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  }
  options.mem_overcommit = 0.5;
  {
    horus_placer* none = NULL;
    CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "mem_overcommit", horus_placer_create(&options, &none, &error));
  }
  horus_placer_free(strict);
  horus_placer_free(lending);
  horus_cluster_free(cluster);
}

static void TenantsAndGroupsKeepApart(void) {
  static const char* const web[1] = {"web"};
  horus_cluster* cluster = cluster_of(2);
  horus_placer* placer = placer_of("first-fit");
  const horus_job* jobs[1];
  horus_plan* plan = NULL;
  given_job given;
  CHECK_OK(horus_cluster_set_state(cluster, 1, 1, HORUS_STATE_DRAINED, 0, NULL, NULL, &error));
  CHECK_OK(horus_cluster_set_state(cluster, 2, 1, HORUS_STATE_DRAINED, 0, NULL, NULL, &error));
  give_job(&given, 1, 10, 2000);
  given.job.tenant = "a";
  given.job.share = HORUS_SHARE_SAME_TENANT;
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE); /* node 1 */
  give_job(&given, 2, 10, 2000);
  given.job.share = HORUS_SHARE_ANYONE;
  given.job.group_count = 1;
  given.job.groups = web;
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE); /* node 2 */
  give_job(&given, 3, 10, 2000);
  given.job.tenant = "b";
  given.job.share = HORUS_SHARE_ANYONE;
  given.job.avoid_count = 1;
  given.job.avoid_groups = web;
  CHECK(place(placer, cluster, &given).miss_reason == HORUS_REASON_OWNER);
  CHECK_OK(horus_cluster_set_state(cluster, 1, HORUS_WHOLE_NODE, HORUS_STATE_DOWN, 0, NULL, NULL, &error));
  CHECK(place(placer, cluster, &given).miss_reason == HORUS_REASON_ANTI_AFFINITY);
  given.job.avoid_count = 0;
  given.job.tasks = 2;
  given.job.spread_tasks = 1;
  CHECK(place(placer, cluster, &given).reason == HORUS_REASON_GANG);
  jobs[0] = &given.job;
#define REFUSED(text)                             \
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, text, \
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error))
  given.job.share = HORUS_SHARE_ANYONE + 1;
  REFUSED("share");
  given.job.share = 0;
  given.job.slowdown_confidence = 1;
  REFUSED("slowdown_confidence");
  given.job.slowdown_confidence = 0;
  given.job.spread_tasks = 2;
  REFUSED("spread_tasks");
  given.job.spread_tasks = 0;
  given.job.group_count = 1;
  REFUSED("groups");
#undef REFUSED
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void LatencyBoundsTheSlowdown(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("first-fit");
  horus_plan* plan;
  given_job given;
  give_job(&given, 1, 10, 2000); /* steps of 100 ms */
  given.job.kind = HORUS_JOB_INFERENCE;
  given.job.request_rate_hz = 1;
  given.job.latency_bound_us = 50000;
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_REJECT);
  CHECK(decision_of(plan, 0).miss_reason == HORUS_REASON_SLOWDOWN_OWN && decision_of(plan, 0).miss_needed == 50000);
  CHECK(strstr(decision_of(plan, 0).miss_unit, "us") != NULL);
  horus_plan_free(plan);
  given.job.latency_bound_us = 500000;
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

/* What `given` states, and what was chosen for it, here and after a restart. */
static void StatedAndChosenAreKeptApart(const horus_cluster* cluster, const given_job* given, int32_t cap_pct,
                                        int32_t probe) {
  static char bytes[2][1 << 16];
  const horus_job_info blank = HORUS_JOB_INFO_INIT;
  horus_cluster* restored = NULL;
  size_t size = 0;
  int i;
  CHECK_OK(horus_cluster_snapshot(cluster, sizeof bytes[0], bytes[0], &size, &error));
  CHECK_OK(horus_cluster_restore(NULL, bytes[0], size, &restored, &error));
  for (i = 0; i < 2; ++i) {
    horus_job_info info = blank;
    CHECK_OK(horus_cluster_get_job(i == 0 ? cluster : restored, given->job.id, &info, sizeof bytes[1], bytes[1], NULL,
                                   &error));
    CHECK(info.sm_cap_pct == cap_pct && info.probe == probe);
    CHECK(info.job->sm_cap_pct == given->job.sm_cap_pct && info.job->exclusive == given->job.exclusive);
  }
  horus_cluster_free(restored);
}

static void UnknownJobsRunAloneFirst(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  horus_decision decision;
  given_job given;
  options.policy = "first-fit";
  options.probe_outside = 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "probe_outside", horus_placer_create(&options, &placer, &error));
  options.probe_outside = 1;
  placer = placer_with(&options);
  give_job(&given, 1, 10, 2000);
  given.demand.flags = HORUS_DEMAND_OUTSIDE;
  decision = place(placer, cluster, &given);
  CHECK(decision.verdict == HORUS_VERDICT_PLACE && decision.probe == 1 && decision.alternative == -1);
  StatedAndChosenAreKeptApart(cluster, &given, 0, 1);
  give_job(&given, 2, 10, 2000);
  decision = place(placer, cluster, &given);
  CHECK(decision.verdict == HORUS_VERDICT_PLACE && decision.probe == 0); /* on the other device */
  {
    horus_device_info info = HORUS_DEVICE_INFO_INIT;
    CHECK_OK(horus_cluster_get_device(cluster, 1, 0, &info, 0, NULL, NULL, &error));
    CHECK(info.tenants == 1);
  }
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

/* A bound that nobody measured fits no GPU: the job goes alone by what is expected, which does not become its bound. */
static void WhatIsExpectedIsNoStatedBound(void) {
  static char bytes[1 << 16];
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("horus");
  horus_job_info info = HORUS_JOB_INFO_INIT;
  given_job given;
  give_job(&given, 1, 50, 4000);
  given.demand.mem_mib_upper = 900000;
  given.demand.flags = HORUS_DEMAND_PREDICTED;
  CHECK(place(placer, cluster, &given).probe == 1);
  CHECK_OK(horus_cluster_get_job(cluster, 1, &info, sizeof bytes, bytes, NULL, &error));
  CHECK(info.probe == 1 && info.job->exclusive == 0);
  CHECK(info.job->demands[0]->mem_mib == 4000 && info.job->demands[0]->mem_mib_upper > 4000);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

/* Who forgets to say how much memory a job takes harms nobody. */
static void JobsOfUnknownMemoryRunAlone(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("first-fit");
  given_job given;
  uint64_t id;
  for (id = 1; id <= 3; ++id) {
    horus_decision decision;
    give_job(&given, id, 0, 0);
    decision = place(placer, cluster, &given);
    CHECK(decision.verdict == (id < 3 ? HORUS_VERDICT_PLACE : HORUS_VERDICT_DEFER));
    CHECK(decision.reason == (id < 3 ? HORUS_REASON_NONE : HORUS_REASON_EXCLUSIVE)); /* of those who are there */
  }
  given.job.gpu_mem_request_mib = 1000;
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_DEFER); /* those who are there have not said it */
  CHECK_OK(horus_cluster_release(cluster, 1, &error));
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE);
  give_job(&given, 4, 0, 2000);
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE); /* both are known */
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void AChosenCapIsNoStatedOne(void) {
  const char* const types[1] = {"a100-80gb"};
  const int32_t modes[1] = {HORUS_SHARING_MPS};
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_node node = HORUS_NODE_INIT;
  horus_cluster* cluster = cluster_of(0);
  horus_placer* placer;
  horus_decision decision;
  given_job service, trainer;
  node.id = 1;
  node.device_count = 1;
  node.cpu_milli = 64000;
  node.mem_mib = 65536;
  node.gpu_types = types;
  node.sharing_modes = modes;
  CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  options.sm_caps = 1;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  give_job(&service, 1, 30, 2000);
  service.job.kind = HORUS_JOB_INFERENCE;
  service.job.slowdown_bound = 1.15f;
  service.job.slowdown_confidence = 0.5f;
  CHECK(place(placer, cluster, &service).verdict == HORUS_VERDICT_PLACE);
  give_job(&trainer, 2, 60, 2000);
  decision = place(placer, cluster, &trainer);
  CHECK(decision.verdict == HORUS_VERDICT_PLACE && decision.sm_cap_pct > 0);
  StatedAndChosenAreKeptApart(cluster, &trainer, decision.sm_cap_pct, 0);
  CHECK_OK(horus_cluster_release(cluster, 1, &error));
  CHECK_OK(horus_cluster_release(cluster, 2, &error));
  trainer.job.sm_cap_pct = 40;
  CHECK(place(placer, cluster, &trainer).sm_cap_pct == 40);
  StatedAndChosenAreKeptApart(cluster, &trainer, 40, 0);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static int32_t mode_of(const horus_cluster* cluster) {
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  CHECK_OK(horus_cluster_get_device(cluster, 1, 0, &info, 0, NULL, NULL, &error));
  return info.sharing_mode;
}

static void AModeIsChosenToldAndAdopted(void) {
  const char* const types[1] = {"a100-80gb"};
  const int32_t modes[1] = {HORUS_SHARING_TIME_SLICE_OR_MPS};
  const uint64_t nodes[1] = {1};
  const uint32_t devices[1] = {0};
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_node node = HORUS_NODE_INIT;
  horus_cluster* cluster = cluster_of(0);
  horus_placer* placer = placer_with(&options);
  horus_decision decision;
  int32_t reason;
  given_job given;
  node.id = 1;
  node.device_count = 1;
  node.cpu_milli = 64000;
  node.mem_mib = 65536;
  node.gpu_types = types;
  node.sharing_modes = modes;
  CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  CHECK(mode_of(cluster) == HORUS_SHARING_TIME_SLICE_OR_MPS);
  give_job(&given, 1, 10, 2000);
  given.job.exclusive = 1;
  decision = place(placer, cluster, &given);
  CHECK(decision.sharing_mode == HORUS_SHARING_TIME_SLICE && mode_of(cluster) == HORUS_SHARING_TIME_SLICE);
  CHECK_OK(horus_cluster_release(cluster, 1, &error));
  given.job.exclusive = 0;
  given.job.sharing_mode = HORUS_SHARING_MIG;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "sharing_mode",
                horus_cluster_adopt(cluster, &given.job, 1, nodes, devices, NULL, &reason, &error));
  given.job.sharing_mode = HORUS_SHARING_MPS;
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, nodes, devices, NULL, &reason, &error));
  CHECK(reason == HORUS_REASON_NONE && mode_of(cluster) == HORUS_SHARING_MPS);
  give_job(&given, 2, 10, 2000);
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, nodes, devices, NULL, &reason, &error));
  CHECK(reason == HORUS_REASON_SHARING_MODE && mode_of(cluster) == HORUS_SHARING_MPS);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void CountsOfTasksSayWhatMayBeGiven(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("first-fit");
  horus_plan* plan = NULL;
  const horus_job* jobs[1];
  given_job given;
  jobs[0] = &given.job;
  give_job(&given, 1, 10, 2000);
  given.job.tasks = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "job 1: tasks: expected 0 (one) to 65536, found -1",
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  given.job.tasks = 0;
  given.job.gpus_per_task = -2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpus_per_task: expected -1 (none), 0 (one) to 65536, found -2",
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void ACapIsStatedKeptAndTold(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer *placer, *none = NULL;
  horus_plan* plan;
  given_job given;
  const horus_job* jobs[1];
  jobs[0] = &given.job;
  options.sm_caps = 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "sm_caps", horus_placer_create(&options, &none, &error));
  options.sm_caps = 1;
  placer = placer_with(&options);
  give_job(&given, 1, 90, 2000);
  given.job.sm_cap_pct = 100;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "sm_cap_pct",
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  given.job.sm_cap_pct = 40;
  plan = plan_one(placer, cluster, &given); /* nothing here shares by MPS */
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_REJECT);
  CHECK(decision_of(plan, 0).reason == HORUS_REASON_SHARING_MODE && decision_of(plan, 0).sm_cap_pct == 0);
  CHECK(decision_of(plan, 0).gpu_mem_limit_mib == 0);
  horus_plan_free(plan);
  given.job.sm_cap_pct = 0;
  given.job.gpu_mem_limit_mib = 3000;
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).gpu_mem_request_mib == 2000 && decision_of(plan, 0).gpu_mem_limit_mib == 3000);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void TheWayWorthMostIsTaken(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer *cheap, *dear, *none = NULL;
  horus_job_alternative ways[2] = {HORUS_JOB_ALTERNATIVE_INIT, HORUS_JOB_ALTERNATIVE_INIT};
  const horus_job_alternative* alternatives[2];
  horus_plan* plan;
  given_job given;
  size_t i;
  cheap = placer_with(&options);
  options.gpu_price = 1;
  dear = placer_with(&options);
  options.gpu_price = 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpu_price", horus_placer_create(&options, &none, &error));
  give_job(&given, 1, 90, 2000);
  given.job.demand_count = 0;
  given.job.demands = NULL;
  for (i = 0; i < 2; ++i) {
    ways[i].gpus_per_task = (int32_t)i + 1;
    ways[i].rate = i == 0 ? 1 : 1.8;
    ways[i].demand_count = 1;
    ways[i].demands = given.demands;
    alternatives[i] = &ways[i];
  }
  given.job.alternative_count = 2;
  given.job.alternatives = alternatives;
  plan = plan_one(dear, cluster, &given);
  CHECK(decision_of(plan, 0).alternative == 0 && decision_of(plan, 0).slots == 1);
  horus_plan_free(plan);
  plan = plan_one(cheap, cluster, &given);
  CHECK(decision_of(plan, 0).alternative == 1 && decision_of(plan, 0).slots == 2);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  {
    horus_job_info info = HORUS_JOB_INFO_INIT;
    CHECK_OK(horus_cluster_get_job(cluster, 1, &info, 0, NULL, NULL, &error));
    CHECK(info.gpus_per_task == 2);
  }
  horus_placer_free(cheap);
  horus_placer_free(dear);
  horus_cluster_free(cluster);
}

static void PoliciesTakeTheirSettings(void) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_lab_policy_options lab = HORUS_LAB_POLICY_OPTIONS_INIT;
  horus_workload workload = HORUS_WORKLOAD_INIT;
  horus_placer* placer = NULL;
  const int32_t gpus[2] = {1, 0};
  const int32_t milli[2] = {250, 0};
  const char* const types[2] = {FIXTURE_GPU, NULL};
  double shares[2] = {0.5, 0.5};
  const horus_job* jobs[1];
  horus_cluster* cluster = cluster_of(2);
  given_job given;
#define REFUSED(status, text) CHECK_MESSAGE(status, text, horus_lab_placer_create(&options, &lab, &placer, &error))
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_lab_placer_create(&options, &lab, NULL, &error));
  options.policy = "gavel-threshold";
  lab.pack_threshold = -1;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "pack_threshold");
  lab.pack_threshold = 0;
  lab.foreground_bound = 0.5;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "foreground_bound");
  lab.foreground_bound = 0;
  lab.profiling_label = "";
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "profiling_label");
  lab.profiling_label = NULL;
  options.policy = "fgd";
  options.workload = &workload;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "workload");
  workload.task_count = 2;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "gpus");
  workload.gpus = gpus;
  workload.gpu_milli = milli;
  workload.gpu_types = types;
  workload.shares = shares;
  shares[0] = 0.6;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "shares");
  shares[0] = 0.5;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  give_job(&given, 1, 50, 4000);
  given.job.gpu_milli = 500;
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE);
  horus_placer_free(placer);
  workload.task_count = 0;
  workload.job_count = 1;
  jobs[0] = &given.job;
  workload.jobs = jobs;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  horus_placer_free(placer);
  /* A low threshold packs what the default keeps apart. */
  options.policy = "gavel-threshold";
  options.workload = NULL;
  {
    horus_cluster* small = cluster_of(1);
    horus_placer *strict, *loose;
    uint64_t id;
    strict = placer_with(&options);
    lab.pack_threshold = 0.1;
    CHECK_OK(horus_lab_placer_create(&options, &lab, &loose, &error));
    for (id = 1; id <= 2; ++id) {
      give_job(&given, id, 95, 4000);
      CHECK(place(strict, small, &given).verdict == HORUS_VERDICT_PLACE);
    }
    give_job(&given, 3, 95, 4000);
    CHECK(place(strict, small, &given).reason == HORUS_REASON_POLICY);
    CHECK(place(loose, small, &given).verdict == HORUS_VERDICT_PLACE);
    horus_placer_free(strict);
    horus_placer_free(loose);
    horus_cluster_free(small);
  }
#undef REFUSED
  horus_cluster_free(cluster);
}

static void JobsMayCarryTheirSensitivity(void) {
  horus_cluster *cluster = cluster_of(1), *bare = cluster_of(1);
  horus_placer* placer = placer_of("first-fit");
  horus_sensitivity sensitivity = HORUS_SENSITIVITY_INIT;
  const int64_t cores[2] = {1000, 4000}, memory[1] = {8192};
  float speeds[2] = {0.5f, 1.0f};
  const horus_job* jobs[1];
  horus_plan* plan = NULL;
  given_job given;
  give_job(&given, 1, 10, 2000);
  CHECK(place(placer, bare, &given).verdict == HORUS_VERDICT_PLACE);
  given.job.sensitivity = &sensitivity;
  jobs[0] = &given.job;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "cpu_count",
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  sensitivity.cpu_count = 2;
  sensitivity.cpu_milli = cores;
  sensitivity.mem_count = 1;
  sensitivity.mem_mib = memory;
  sensitivity.speeds = speeds;
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE);
  CHECK(state_hash(cluster) != state_hash(bare)); /* it is part of what the cluster knows */
  given.job.id = 2;
  speeds[1] = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "speeds",
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_cluster_free(bare);
}

int main(void) {
  PoliciesTakeTheirSettings();
  JobsMayCarryTheirSensitivity();
  LimitsAreLentTwiceOnlyByOverCommit();
  LatencyBoundsTheSlowdown();
  UnknownJobsRunAloneFirst();
  WhatIsExpectedIsNoStatedBound();
  ACapIsStatedKeptAndTold();
  AChosenCapIsNoStatedOne();
  AModeIsChosenToldAndAdopted();
  JobsOfUnknownMemoryRunAlone();
  CountsOfTasksSayWhatMayBeGiven();
  TheWayWorthMostIsTaken();
  TenantsAndGroupsKeepApart();
  return report();
}
