/* SPDX-License-Identifier: Apache-2.0 */
/* What is internally synchronised may be used by many threads: plan, apply, release and look, all at once. */
#include <pthread.h>

#include "fixture.h"

#define WORKERS 4
#define ROUNDS 50

static horus_cluster* shared;

static void* work(void* argument) {
  const uint64_t worker = *(const uint64_t*)argument;
  horus_placer* placer = NULL; /* one per thread */
  uint64_t round;
  int wrong = horus_placer_create(NULL, &placer, NULL) != HORUS_OK;
  for (round = 0; round < ROUNDS && !wrong; ++round) {
    horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
    horus_plan* plan = NULL;
    const horus_job* jobs[1];
    horus_status applied = HORUS_ERR_CONFLICT;
    given_job given;
    give_job(&given, worker * 1000 + round, 20, 1000);
    jobs[0] = &given.job;
    while (applied == HORUS_ERR_CONFLICT && !wrong) { /* optimistic: plan again until nobody came between */
      wrong |= horus_placer_plan(placer, shared, 1, jobs, 0, NULL, NULL, NULL, &plan, NULL) != HORUS_OK;
      applied = horus_cluster_apply(shared, plan, NULL);
      horus_plan_free(plan);
      plan = NULL;
    }
    wrong |= applied != HORUS_OK;
    wrong |= horus_cluster_get_info(shared, &info, NULL) != HORUS_OK || info.jobs == 0;
    wrong |= horus_cluster_release(shared, given.job.id, NULL) != HORUS_OK;
  }
  horus_placer_free(placer);
  return wrong ? argument : NULL;
}

static void* release_first(void* wrong) {
  *(int*)wrong = horus_cluster_release(shared, 1, NULL) != HORUS_OK;
  return NULL;
}

/* Waits for another thread to write, which would never end if the plan kept the cluster locked. */
static int32_t let_write(void* user, double done) {
  static int written = 0; /* it is asked as often as the call likes */
  pthread_t writer;
  int* wrong = user;
  (void)done;
  if (!written++) *wrong |= pthread_create(&writer, NULL, release_first, wrong) != 0 || pthread_join(writer, NULL) != 0;
  return 0;
}

static void PlanningKeepsNobodyFromWriting(void) {
  horus_placer* placer = placer_of("first-fit");
  horus_plan *first, *second = NULL;
  const horus_job* jobs[1];
  given_job given;
  int wrong = 0;
  shared = cluster_of(1);
  give_job(&given, 1, 20, 1000);
  first = plan_one(placer, shared, &given);
  CHECK_OK(horus_cluster_apply(shared, first, &error));
  give_job(&given, 2, 20, 1000);
  jobs[0] = &given.job;
  CHECK_OK(horus_placer_plan(placer, shared, 1, jobs, 0, NULL, let_write, &wrong, &second, &error));
  CHECK(!wrong);
  CHECK_STATUS(HORUS_ERR_CONFLICT, horus_cluster_apply(shared, second, &error)); /* its node is another by now */
  horus_plan_free(first);
  horus_plan_free(second);
  horus_placer_free(placer);
  horus_cluster_free(shared);
}

typedef struct batch {
  horus_cluster *own, *other, *idle;
  pthread_barrier_t* both_inside;
  pthread_barrier_t* both_answered;
  int asked, wrong;
} batch;

/* Two planners that write to each other's cluster, each holding its own: to wait would never end. */
static int32_t write_to_the_other(void* user, double done) {
  batch* self = user;
  (void)done;
  if (self->asked++ != 0) return 0;
  (void)pthread_barrier_wait(self->both_inside);
  self->wrong |= horus_cluster_release(self->other, 1, NULL) != HORUS_ERR_BUSY;
  self->wrong |= horus_cluster_release(self->idle, 1, NULL) != HORUS_ERR_NOT_FOUND; /* what is free is written */
  (void)pthread_barrier_wait(self->both_answered);
  return 0;
}

static void* plan_a_batch(void* argument) {
  batch* self = argument;
  horus_placer* placer = NULL;
  horus_plan* plan = NULL;
  const horus_job* jobs[2];
  given_job given[2];
  uint64_t i;
  for (i = 0; i < 2; ++i) {
    give_job(&given[i], i + 1, 20, 1000);
    jobs[i] = &given[i].job;
  }
  self->wrong = horus_placer_create(NULL, &placer, NULL) != HORUS_OK ||
                horus_placer_plan_batch(placer, self->own, 2, jobs, 0, NULL, NULL, write_to_the_other, self, &plan,
                                        NULL) != HORUS_OK ||
                self->wrong;
  horus_plan_free(plan);
  horus_placer_free(placer);
  return NULL;
}

static void PlannersDoNotWaitForEachOther(void) {
  pthread_barrier_t inside, answered;
  pthread_t thread;
  horus_cluster *first = cluster_of(1), *second = cluster_of(1);
  batch one = {first, second, cluster_of(1), &inside, &answered, 0, 0};
  batch two = {second, first, cluster_of(1), &inside, &answered, 0, 0};
  CHECK(pthread_barrier_init(&inside, NULL, 2) == 0 && pthread_barrier_init(&answered, NULL, 2) == 0);
  CHECK(pthread_create(&thread, NULL, plan_a_batch, &one) == 0);
  plan_a_batch(&two);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(one.asked > 0 && !one.wrong && two.asked > 0 && !two.wrong);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_release(second, 1, &error)); /* nobody is BUSY any more */
  pthread_barrier_destroy(&inside);
  pthread_barrier_destroy(&answered);
  horus_cluster_free(first);
  horus_cluster_free(second);
  horus_cluster_free(one.idle);
  horus_cluster_free(two.idle);
}

int main(void) {
  pthread_t threads[WORKERS];
  uint64_t workers[WORKERS], i, hash;
  PlanningKeepsNobodyFromWriting();
  PlannersDoNotWaitForEachOther();
  shared = cluster_of(8);
  hash = state_hash(shared);
  for (i = 0; i < WORKERS; ++i) {
    workers[i] = i + 1;
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (i = 0; i < WORKERS; ++i) {
    void* wrong = NULL;
    CHECK(pthread_join(threads[i], &wrong) == 0);
    CHECK(wrong == NULL);
  }
  CHECK(state_hash(shared) == hash);
  horus_cluster_free(shared);
  return report();
}
