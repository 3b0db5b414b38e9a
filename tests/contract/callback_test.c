/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the caller: what they may answer and whom they may call. */
#include <math.h>

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
  CHECK_STATUS(HORUS_BUSY, horus_cluster_get_info(self->cluster, &info, &error));
  CHECK_STATUS(HORUS_BUSY, horus_cluster_release(self->cluster, 1, &error));
  CHECK_STATUS(HORUS_BUSY, horus_cluster_apply(self->cluster, self->plan, &error));
  CHECK_STATUS(HORUS_BUSY, horus_cluster_add_node(self->cluster, &node, &error));
  CHECK_STATUS(HORUS_BUSY,
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
  CHECK_OK(horus_interference_from_callback(NULL, on_interference, &self, 1, &model, &error));
  options.interference = model;
  CHECK_OK(horus_placer_create(&options, &self.placer, &error));
  horus_interference_free(model); /* the placer keeps what it needs */
  {
    horus_plan* made = NULL;
    CHECK_OK(horus_placer_plan(self.placer, self.cluster, 1, self.jobs, 0, NULL, on_progress, &self, &made, &error));
    CHECK(horus_plan_count(made) == 1 && self.calls > 0);
    horus_plan_free(made);
    made = NULL;
    self.last_done = 0;
    self.progress_answer = 1;
    CHECK_STATUS(HORUS_CANCELLED, horus_placer_plan(self.placer, self.cluster, 1, self.jobs, 0, NULL, on_progress,
                                                    &self, &made, &error));
    CHECK(made == NULL);
  }
  CHECK(state_hash(self.cluster) == hash); /* and nobody is BUSY any more */
  horus_placer_free(self.placer);
  horus_plan_free(plan);
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
    CHECK_OK(horus_interference_from_callback(NULL, on_interference, &self, i, &model, &error));
    options.interference = model;
    CHECK_OK(horus_placer_create(&options, &self.placer, &error));
    CHECK_MESSAGE(HORUS_CALLBACK, "slowdown",
                  horus_placer_plan(self.placer, self.cluster, 1, self.jobs, 0, NULL, NULL, NULL, &plan, &error));
    CHECK(plan == NULL);
    horus_placer_free(self.placer);
    horus_interference_free(model);
  }
  horus_plan_free(other);
  horus_cluster_free(self.cluster);
}

int main(void) {
  CallbacksMeetBusyHandles();
  BadSlowdownsEndThePlan();
  return report();
}
