/* SPDX-License-Identifier: Apache-2.0 */
/* What runs inside a planning call may not come back to its cluster: every call answers BUSY and changes nothing. What
 * runs inside a commit may observe. */
#include <math.h>

#include "fixture.h"

typedef struct inside {
  horus_cluster* cluster; /* one node, one job */
  horus_placer* other;    /* not the one that plans */
  const horus_plan* plan;
  horus_metrics* metrics; /* of the cluster */
  int calls;
} inside;

/* What a call made or counted may not be touched. */
#define IS_BUSY(call) CHECK_MESSAGE(HORUS_ERR_BUSY, "cluster: in use by the planning call", call)

static void changes_are_refused(const inside* self) {
  const uint64_t node_id = 1;
  const uint32_t device = 0;
  horus_node node = two_gpu_node(2);
  uint64_t ids[4] = {77, 77, 77, 77};
  size_t count = 77;
  int32_t reason = 77;
  given_job given;
  give_job(&given, 50, 40, 2000);
  IS_BUSY(horus_cluster_add_node(self->cluster, &node, &error));
  node.id = 1;
  IS_BUSY(horus_cluster_change_node(self->cluster, &node, &error));
  IS_BUSY(horus_cluster_remove_node(self->cluster, 1, &error));
  IS_BUSY(horus_cluster_set_state(self->cluster, 1, HORUS_WHOLE_NODE, HORUS_STATE_DOWN, 4, ids, &count, &error));
  IS_BUSY(horus_cluster_set_state(self->cluster, 1, 0, HORUS_STATE_DOWN, 4, ids, &count, &error));
  IS_BUSY(horus_cluster_adopt(self->cluster, &given.job, 1, &node_id, &device, NULL, &reason, &error));
  IS_BUSY(horus_cluster_apply(self->cluster, self->plan, &error));
  IS_BUSY(horus_cluster_release(self->cluster, 1, &error));
  IS_BUSY(horus_cluster_set_metrics(self->cluster, NULL, &error));
  CHECK(ids[0] == 77 && count == 77 && reason == 77);
}

static void looks_are_refused(const inside* self) {
  const horus_cluster_info no_info = HORUS_CLUSTER_INFO_INIT;
  const horus_node_info no_node = HORUS_NODE_INFO_INIT;
  const horus_device_info no_device = HORUS_DEVICE_INFO_INIT;
  const horus_job_info no_job = HORUS_JOB_INFO_INIT;
  horus_cluster_info info = no_info;
  horus_node_info node = no_node;
  horus_device_info device = no_device;
  horus_job_info job = no_job;
  horus_slots slots = HORUS_SLOTS_INIT;
  uint64_t ids[4] = {77, 77, 77, 77};
  size_t count = 77;
  IS_BUSY(horus_cluster_get_info(self->cluster, &info, &error));
  IS_BUSY(horus_cluster_nodes(self->cluster, 4, ids, &count, &error));
  IS_BUSY(horus_cluster_jobs(self->cluster, 4, ids, &count, &error));
  IS_BUSY(horus_cluster_get_node(self->cluster, 1, &node, 4, ids, &count, &error));
  IS_BUSY(horus_cluster_get_device(self->cluster, 1, 0, &device, 4, ids, &count, &error));
  IS_BUSY(horus_cluster_get_job(self->cluster, 1, &job, 0, NULL, NULL, &error));
  slots.capacity = 4;
  slots.node_ids = ids;
  IS_BUSY(horus_cluster_job_slots(self->cluster, 1, &slots, &count, &error));
  IS_BUSY(horus_cluster_snapshot(self->cluster, sizeof ids, ids, &count, &error));
  IS_BUSY(horus_cluster_snapshot_file(self->cluster, "reentry_test.snapshot", &error));
  CHECK(fopen("reentry_test.snapshot", "rb") == NULL);
  CHECK(memcmp(&info, &no_info, sizeof info) == 0 && memcmp(&node, &no_node, sizeof node) == 0);
  CHECK(memcmp(&device, &no_device, sizeof device) == 0 && memcmp(&job, &no_job, sizeof job) == 0);
  CHECK(ids[0] == 77 && count == 77);
}

/* Another placer is free, but the cluster is not. */
static void plans_are_refused(const inside* self) {
  const uint64_t node = 1;
  const horus_job* jobs[1];
  int32_t verdict = 77;
  horus_plan* plan = NULL;
  given_job given;
  give_job(&given, 50, 40, 2000);
  jobs[0] = &given.job;
  IS_BUSY(horus_placer_plan(self->other, self->cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  IS_BUSY(horus_placer_plan_batch(self->other, self->cluster, 1, jobs, 0, NULL, NULL, NULL, NULL, &plan, &error));
  IS_BUSY(horus_placer_rebalance(self->other, self->cluster, NULL, &plan, &error));
  IS_BUSY(horus_placer_what_if(self->other, self->cluster, 0, NULL, 1, jobs, NULL, NULL, &plan, &error));
  IS_BUSY(horus_placer_preempt(self->other, self->cluster, jobs[0], 0, NULL, NULL, &plan, &error));
  IS_BUSY(horus_placer_verdicts(self->other, self->cluster, jobs[0], 1, &node, &verdict, NULL, NULL, &error));
  CHECK(plan == NULL && verdict == 77);
}

static void files_are_refused(const inside* self) {
  horus_job_list* list = NULL;
  horus_error error = HORUS_ERROR_INIT;
  const horus_status status =
      horus_job_list_from_yaml(self->cluster, NULL, "j.yaml", "version: 1\njobs: []\n", &list, &error);
  CHECK(list == NULL && (status == HORUS_ERR_BUSY || status == HORUS_ERR_UNSUPPORTED)); /* a build without the reader */
}

/* Metrics may be read from everywhere: of a cluster that it cannot ask it tells what it last knew. */
static void the_metrics_answer(const inside* self, double bytes) {
  CHECK(value_of(self->metrics, "horus_bytes_held", "handle=\"cluster\"") == bytes);
}

static double held_before;

static int32_t on_slowdown(void* user, const horus_device* device, size_t count, const horus_demand* const* demands,
                           float* slowdown, float* slowdown_upper) {
  inside* self = user;
  size_t i;
  (void)device, (void)demands, (void)slowdown_upper;
  for (i = 0; i < count; ++i) slowdown[i] = 1;
  if (self->calls++ > 0) return 0;
  changes_are_refused(self);
  looks_are_refused(self);
  plans_are_refused(self);
  files_are_refused(self);
  the_metrics_answer(self, held_before);
  return 0;
}

/* A model's callback may observe; the commit is of what was there when it began. */

static void observe(horus_observations* observations, uint64_t victim, uint64_t other) {
  horus_slowdown_observation seen = HORUS_SLOWDOWN_OBSERVATION_INIT;
  const horus_demand* others[1];
  given_job job, beside;
  give_job(&job, 1, 40, 2000);
  give_job(&beside, 2, 50, 2000);
  job.demand.profile_id = victim;
  beside.demand.profile_id = other;
  others[0] = &beside.demand;
  seen.gpu_type = FIXTURE_GPU;
  seen.job = &job.demand;
  seen.co_tenant_count = 1;
  seen.co_tenants = others;
  seen.slowdown = 3;
  CHECK_OK(horus_observations_add_slowdown(observations, NULL, &seen, &error));
}

typedef struct observer {
  horus_observations* observations; /* NULL: adds nothing */
  uint64_t next;
} observer;

static int32_t answer_and_observe(void* user, const horus_device* device, size_t count,
                                  const horus_demand* const* tenants, float* slowdown, float* upper) {
  observer* const self = user;
  size_t i;
  (void)device, (void)tenants;
  for (i = 0; i < count; ++i) slowdown[i] = upper[i] = 1.25f;
  if (self->observations != NULL) observe(self->observations, self->next, self->next + 1);
  self->next += 2;
  return 0;
}

static void WhatIsObservedMeanwhileIsNotCommitted(void) {
  float answers[2];
  int adds;
  for (adds = 0; adds < 2; ++adds) {
    observer self = {NULL, 1000};
    const horus_demand* two[2];
    given_job a, b;
    float slowdown[2] = {0, 0};
    horus_observations* observations = NULL;
    horus_interference *model = NULL, *out = NULL;
    uint64_t held, i;
    give_job(&a, 1, 40, 2000);
    give_job(&b, 2, 50, 2000);
    a.demand.profile_id = 1;
    b.demand.profile_id = 2;
    two[0] = &a.demand;
    two[1] = &b.demand;
    CHECK_OK(horus_observations_create(0, &observations, &error));
    for (i = 0; i < 60; ++i) observe(observations, 1, 2);
    held = horus_observations_bytes_held(observations);
    if (adds) self.observations = observations;
    CHECK_OK(horus_interference_from_callback(NULL, answer_and_observe, &self, 1, 0, &model, &error));
    CHECK_OK(horus_interference_commit(model, NULL, observations, NULL, NULL, &out, &error));
    CHECK((horus_observations_bytes_held(observations) > held) == adds);
    self.observations = NULL;
    CHECK_OK(slowdowns_of(out, NULL, device_of(FIXTURE_GPU, 0), 2, two, slowdown, NULL, &error));
    answers[adds] = slowdown[0];
    horus_interference_free(out);
    horus_interference_free(model);
    horus_observations_free(observations);
  }
  CHECK(answers[0] == answers[1] && answers[0] > 1.25f);
}

int main(void) {
  const uint64_t node = 1;
  const uint32_t device = 0;
  inside self = {NULL, NULL, NULL, NULL, 0};
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_interference* model = NULL;
  horus_placer* placer = NULL;
  horus_plan *waiting, *made = NULL;
  const horus_job* jobs[1];
  given_job resident, next;
  uint64_t hash;
  WhatIsObservedMeanwhileIsNotCommitted();
  self.cluster = cluster_of(1);
  self.other = placer_of("first-fit");
  CHECK_OK(horus_metrics_create(NULL, &self.metrics, &error));
  CHECK_OK(horus_cluster_set_metrics(self.cluster, self.metrics, &error));
  give_job(&resident, 1, 40, 2000);
  CHECK_OK(horus_cluster_adopt(self.cluster, &resident.job, 1, &node, &device, NULL, NULL, &error));
  give_job(&next, 2, 40, 2000);
  self.plan = waiting = plan_one(self.other, self.cluster, &next);
  CHECK_OK(horus_interference_from_callback(NULL, on_slowdown, &self, 1, 0, &model, &error));
  options.interference = model;
  options.policy = "horus";
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  held_before = value_of(self.metrics, "horus_bytes_held", "handle=\"cluster\"");
  hash = state_hash(self.cluster);
  jobs[0] = &next.job;
  CHECK_OK(horus_placer_plan(placer, self.cluster, 1, jobs, 0, NULL, NULL, NULL, &made, &error));
  CHECK(self.calls > 0 && held_before > 0 && state_hash(self.cluster) == hash);
  CHECK(value_of(self.metrics, "horus_calls_total", "call=\"adopt\",status=\"BUSY\"") == 1); /* counted as any other */
  CHECK_OK(horus_cluster_apply(self.cluster, waiting, &error)); /* nobody is BUSY any more */
  CHECK(state_hash(self.cluster) != hash);
  horus_plan_free(made);
  horus_plan_free(waiting);
  horus_placer_free(placer);
  horus_placer_free(self.other);
  horus_interference_free(model);
  horus_cluster_free(self.cluster);
  horus_metrics_free(self.metrics);
  return report();
}
