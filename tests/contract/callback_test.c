/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the caller: what they may answer and whom they may call. */
#include <math.h>
#include <string.h>

#include "fixture.h"

typedef struct caller {
  horus_cluster* cluster;
  horus_placer* placer;
  const horus_plan* plan;
  const horus_job* jobs[1];
  int32_t progress_answer;
  double last_done;
  float slowdown;
  int calls;
} caller;

static int32_t reenter(caller* self) {
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  horus_node node = two_gpu_node(50);
  horus_plan* out = NULL;
  ++self->calls;
  CHECK_STATUS(HORUS_ERR_BUSY, horus_cluster_get_info(self->cluster, &info, &error));
  CHECK_STATUS(HORUS_ERR_BUSY, horus_cluster_release(self->cluster, 1, &error));
  CHECK_STATUS(HORUS_ERR_BUSY, horus_cluster_apply(self->cluster, self->plan, &error));
  CHECK_STATUS(HORUS_ERR_BUSY, horus_cluster_add_node(self->cluster, &node, &error));
  CHECK_STATUS(HORUS_ERR_BUSY,
               horus_placer_plan(self->placer, self->cluster, 1, self->jobs, 0, NULL, NULL, NULL, &out, &error));
  CHECK(out == NULL);
  return 0;
}

static int32_t on_progress(void* user, double done) {
  caller* self = user;
  CHECK(done >= 0 && done <= 1 && done >= self->last_done);
  self->last_done = done;
  reenter(self);
  return self->progress_answer;
}

static int32_t on_interference(void* user, const horus_device* device, size_t count, const horus_demand* const* demands,
                               float* slowdown, float* slowdown_upper) {
  caller* self = user;
  size_t i;
  (void)device, (void)demands, (void)slowdown_upper;
  for (i = 0; i < count; ++i) slowdown[i] = self->slowdown;
  return reenter(self);
}

static void CallbacksMeetBusyHandles(void) {
  caller self = {NULL, NULL, NULL, {NULL}, 0, 0, 1, 0};
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_interference* model = NULL;
  horus_plan* plan = NULL;
  uint64_t hash;
  given_job given;
  give_job(&given, 1, 50, 4000);
  self.cluster = cluster_of(1);
  self.jobs[0] = &given.job;
  hash = state_hash(self.cluster);
  {
    horus_placer* plain = placer_of("first-fit");
    plan = plan_one(plain, self.cluster, &given);
    self.plan = plan;
    horus_placer_free(plain);
  }
  CHECK_OK(horus_interference_from_callback(NULL, on_interference, &self, 1, 0, &model, &error));
  options.interference = model;
  CHECK_OK(horus_placer_create(&options, &self.placer, &error));
  horus_interference_free(model); /* the placer keeps what it needs */
  {
    horus_plan* made = NULL;
    CHECK_OK(horus_placer_plan(self.placer, self.cluster, 1, self.jobs, 0, NULL, on_progress, &self, &made, &error));
    CHECK(decisions_of(made) == 1 && self.calls > 0);
    horus_plan_free(made);
    made = NULL;
    self.last_done = 0;
    self.progress_answer = 1;
    CHECK_STATUS(HORUS_ERR_CANCELLED, horus_placer_plan(self.placer, self.cluster, 1, self.jobs, 0, NULL, on_progress,
                                                        &self, &made, &error));
    CHECK(made == NULL);
  }
  CHECK(state_hash(self.cluster) == hash); /* and nobody is BUSY any more */
  horus_placer_free(self.placer);
  horus_plan_free(plan);
  horus_cluster_free(self.cluster);
}

static int32_t on_asked(void* user, double done) {
  caller* self = user;
  (void)done;
  ++self->calls;
  return self->progress_answer;
}

/* The modes whose options carry the progress function. */
static void OptionsCarryProgress(void) {
  caller self = {NULL, NULL, NULL, {NULL}, 0, 0, 1, 0};
  horus_rebalance_options rebalance = HORUS_REBALANCE_OPTIONS_INIT;
  horus_preempt_options preempt = HORUS_PREEMPT_OPTIONS_INIT;
  given_job given, resident, urgent;
  const uint64_t nodes[1] = {1};
  const uint32_t devices[2] = {0, 1};
  uint64_t hash;
  horus_plan* plan = NULL;
  self.cluster = cluster_of(1);
  self.placer = placer_of("horus");
  give_job(&resident, 1, 90, 15000);
  CHECK_OK(horus_cluster_adopt(self.cluster, &resident.job, 1, nodes, &devices[0], NULL, NULL, &error));
  give_job(&given, 2, 90, 15000);
  CHECK_OK(horus_cluster_adopt(self.cluster, &given.job, 1, nodes, &devices[1], NULL, NULL, &error));
  give_job(&urgent, 3, 90, 15000);
  urgent.job.priority = 9;
  hash = state_hash(self.cluster);
  rebalance.progress = preempt.progress = on_asked;
  rebalance.user = preempt.user = &self;
  for (self.progress_answer = 0; self.progress_answer < 2; ++self.progress_answer) {
    const horus_status expected = self.progress_answer == 0 ? HORUS_OK : HORUS_ERR_CANCELLED;
    self.calls = 0;
    CHECK_STATUS(expected, horus_placer_rebalance(self.placer, self.cluster, &rebalance, &plan, &error));
    CHECK((plan != NULL) == (self.progress_answer == 0) && self.calls > 0);
    horus_plan_free(plan);
    plan = NULL;
    self.calls = 0;
    CHECK_STATUS(expected,
                 horus_placer_preempt(self.placer, self.cluster, &urgent.job, 0, NULL, &preempt, &plan, &error));
    CHECK((plan != NULL) == (self.progress_answer == 0) && self.calls > 0);
    horus_plan_free(plan);
    plan = NULL;
  }
  CHECK(state_hash(self.cluster) == hash);
  horus_placer_free(self.placer);
  horus_cluster_free(self.cluster);
}

static void BadSlowdownsEndThePlan(void) {
  const float bad[5] = {NAN, 0.25f, -1, INFINITY, 1.1e9f};
  caller self = {NULL, NULL, NULL, {NULL}, 0, 0, 1, 0};
  horus_plan* other;
  size_t i;
  given_job given;
  give_job(&given, 1, 50, 4000);
  self.cluster = cluster_of(1);
  self.jobs[0] = &given.job;
  {
    horus_placer* plain = placer_of("first-fit");
    other = plan_one(plain, self.cluster, &given);
    self.plan = other;
    horus_placer_free(plain);
  }
  for (i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
    horus_interference* model = NULL;
    horus_plan* plan = NULL;
    self.slowdown = bad[i];
    CHECK_OK(horus_interference_from_callback(NULL, on_interference, &self, i, 0, &model, &error));
    options.interference = model;
    CHECK_OK(horus_placer_create(&options, &self.placer, &error));
    CHECK_MESSAGE(HORUS_ERR_CALLBACK, "slowdown",
                  horus_placer_plan(self.placer, self.cluster, 1, self.jobs, 0, NULL, NULL, NULL, &plan, &error));
    CHECK(plan == NULL);
    horus_placer_free(self.placer);
    horus_interference_free(model);
  }
  horus_plan_free(other);
  horus_cluster_free(self.cluster);
}

/* A policy of the caller: the device with the most memory in use, up to so many tenants. */
typedef struct packer {
  caller reentrant; /* calls back where its cluster is set */
  size_t most;
  int32_t answer, declined;
  double cost; /* NaN = by memory */
  size_t most_seen;
  int calls;
} packer;

static int32_t on_policy(void* user, const horus_policy_candidate* candidate, double* cost, int32_t* declined) {
  packer* self = user;
  const size_t last = candidate->count - 1;
  ++self->calls;
  CHECK(candidate->struct_size == sizeof *candidate && candidate->count >= 1);
  CHECK(strcmp(candidate->device->gpu_type, FIXTURE_GPU) == 0 && candidate->mem_mib == 16384);
  CHECK(candidate->demands[last]->gpu_util_pct == 50 && candidate->kinds[last] == HORUS_JOB_INFERENCE);
  CHECK(candidate->priorities[last] == 7 && candidate->slowdown_bounds[last] == 9 && candidate->gpu_milli[last] == 0);
  CHECK(candidate->slowdown_before[last] == 1 && candidate->slowdown_before_upper[last] == 1);
  CHECK(candidate->relative_speed == 1 && candidate->mem_used_mib_upper >= candidate->mem_used_mib);
  CHECK(isnan(*cost) && *declined == 0);
  if (candidate->count == 2) { /* beside the resident of 90 % */
    CHECK(candidate->demands[0]->gpu_util_pct == 90 && candidate->kinds[0] == HORUS_JOB_TRAINING);
    CHECK(candidate->mem_used_mib == 4000 && candidate->slowdown_before[0] == 1 && candidate->gpu_milli_used == 1);
    CHECK(candidate->slowdown_after[0] == 1.4f && candidate->slowdown_after_upper[1] == 1.4f);
  }
  if (candidate->count > self->most_seen) self->most_seen = candidate->count;
  if (self->reentrant.cluster != NULL) reenter(&self->reentrant);
  *cost = isnan(self->cost) ? -(double)candidate->mem_used_mib : self->cost;
  *declined = candidate->count > self->most ? 1 : self->declined;
  return self->answer;
}

static void give_inference(given_job* given) {
  give_job(given, 1, 50, 4000);
  given->job.kind = HORUS_JOB_INFERENCE;
  given->job.priority = 7;
  given->job.slowdown_bound = 9;
}

static horus_placer* packing_placer(packer* self) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  horus_interference* model = NULL;
  CHECK_OK(horus_interference_create("utilisation", &model, &error));
  options.interference = model;
  options.policy_callback = on_policy;
  options.policy_user = self;
  options.policy_callback_name = "packer";
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  horus_interference_free(model);
  return placer;
}

/* A cluster of one node whose second device has a resident. */
static horus_cluster* half_taken(given_job* resident) {
  horus_cluster* cluster = cluster_of(1);
  const uint64_t nodes[1] = {1};
  const uint32_t devices[1] = {1};
  give_job(resident, 100, 90, 4000);
  CHECK_OK(horus_cluster_adopt(cluster, &resident->job, 1, nodes, devices, NULL, NULL, &error));
  return cluster;
}

static void PoliciesOfTheCallerChoose(void) {
  packer self = {{NULL, NULL, NULL, {NULL}, 0, 0, 1, 0}, 2, 0, 0, NAN, 0, 0};
  given_job given, resident;
  horus_cluster* cluster = half_taken(&resident);
  horus_placer* placer = packing_placer(&self);
  horus_plan* plan;
  give_inference(&given);
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_PLACE && decision_of(plan, 0).cost == -4000);
  CHECK(decision_of(plan, 0).effects == 2 && self.most_seen == 2); /* on the device that is in use */
  horus_plan_free(plan);
  horus_placer_free(placer);
  self.most = 0;
  placer = packing_placer(&self);
  self.cost = NAN;
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).verdict != HORUS_VERDICT_PLACE && decision_of(plan, 0).reason == HORUS_REASON_POLICY);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void BadCostsEndThePlan(void) {
  static const struct {
    int32_t answer, declined;
    double cost;
    const char* message;
  } kBad[] = {{3, 0, 1, "policy packer: callback returned 3"},
              {0, 0, HUGE_VAL, "cost: expected a finite number"},
              {0, 0, -HUGE_VAL, "cost"},
              {0, 2, 1, "declined: expected 0 or 1, found 2"},
              {0, -1, 1, "declined"}};
  packer self = {{NULL, NULL, NULL, {NULL}, 0, 0, 1, 0}, 3, 0, 0, NAN, 0, 0};
  given_job given, resident;
  horus_cluster* cluster = half_taken(&resident);
  horus_placer* placer = packing_placer(&self);
  const uint64_t hash = state_hash(cluster);
  const horus_job* jobs[1];
  horus_plan* plan = NULL;
  size_t i;
  give_inference(&given);
  jobs[0] = &given.job;
  for (i = 0; i < sizeof kBad / sizeof kBad[0]; ++i) {
    self.answer = kBad[i].answer;
    self.declined = kBad[i].declined;
    self.cost = kBad[i].cost;
    CHECK_MESSAGE(HORUS_ERR_CALLBACK, kBad[i].message,
                  horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
    CHECK(plan == NULL && state_hash(cluster) == hash);
  }
  self.answer = self.declined = 0;
  self.cost = 1;
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error)); /* nothing was kept */
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static int32_t on_nothing(void* user, const horus_policy_candidate* candidate, double* cost, int32_t* declined) {
  (void)user, (void)candidate, (void)cost, (void)declined;
  return 0; /* the cost stays NaN */
}

static void ACostThatIsLeftNanEndsThePlan(void) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  horus_plan* plan = NULL;
  horus_cluster* cluster = cluster_of(1);
  const horus_job* jobs[1];
  given_job given;
  give_job(&given, 1, 50, 4000);
  jobs[0] = &given.job;
  options.policy_callback = on_nothing;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  CHECK_MESSAGE(HORUS_ERR_CALLBACK, "policy callback: cost",
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void PoliciesOfTheCallerMeetBusyHandles(void) {
  packer self = {{NULL, NULL, NULL, {NULL}, 0, 0, 1, 0}, 3, 0, 0, NAN, 0, 0};
  given_job given, resident;
  horus_cluster* cluster = half_taken(&resident);
  horus_placer* placer = packing_placer(&self);
  horus_plan *made, *plan;
  give_inference(&given);
  made = plan_one(placer, cluster, &given);
  horus_placer_free(placer);
  placer = packing_placer(&self);
  self.reentrant.cluster = cluster;
  self.reentrant.placer = placer;
  self.reentrant.plan = made;
  self.reentrant.jobs[0] = &given.job;
  plan = plan_one(placer, cluster, &given);
  CHECK(self.reentrant.calls > 0 && decision_of(plan, 0).verdict == HORUS_VERDICT_PLACE);
  horus_plan_free(plan);
  horus_plan_free(made);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void OptionsOfCallbackPoliciesAreChecked(void) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  int user = 0;
  options.policy_user = &user;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "policy_callback", horus_placer_create(&options, &placer, &error));
  options.policy_callback = on_nothing;
  options.policy = "horus";
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "policy: expected NULL", horus_placer_create(&options, &placer, &error));
  options.policy = NULL;
  options.policy_callback_name = "\xff";
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_create(&options, &placer, &error));
  CHECK(placer == NULL);
}

#ifdef HORUS_TESTS_CORE /* not where the laboratory is linked */
static void NamesOfTheLaboratoryAreToldWhereTheyAre(void) {
  static const char* const policies[] = {"best-fit", "horus-paper", "synergy-tune", "gandiva"};
  static const char* const models[] = {"boosted", "iasp", "iapp"};
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  horus_interference* model = NULL;
  size_t i;
  for (i = 0; i < sizeof(policies) / sizeof(policies[0]); ++i) {
    options.policy = policies[i];
    CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "libhorus_lab", horus_placer_create(&options, &placer, &error));
  }
  for (i = 0; i < sizeof(models) / sizeof(models[0]); ++i) {
    CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "libhorus_lab", horus_interference_create(models[i], &model, &error));
  }
  CHECK(placer == NULL && model == NULL);
  CHECK(library_info().policies[2] != NULL && library_info().policies[3] == NULL);
}
#endif

int main(void) {
#ifdef HORUS_TESTS_CORE
  NamesOfTheLaboratoryAreToldWhereTheyAre();
#endif
  PoliciesOfTheCallerChoose();
  BadCostsEndThePlan();
  ACostThatIsLeftNanEndsThePlan();
  PoliciesOfTheCallerMeetBusyHandles();
  OptionsOfCallbackPoliciesAreChecked();
  CallbacksMeetBusyHandles();
  OptionsCarryProgress();
  BadSlowdownsEndThePlan();
  return report();
}
