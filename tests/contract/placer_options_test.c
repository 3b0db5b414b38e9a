/* SPDX-License-Identifier: Apache-2.0 */
/* What a placer is told when it is made, and what that changes. */
#include <math.h>

#include "fixture.h"

static uint64_t node_chosen(const horus_cluster* cluster, uint32_t max_candidates, uint64_t seed) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_slots slots = HORUS_SLOTS_INIT;
  horus_placer* placer = NULL;
  horus_plan* plan;
  uint64_t node = 0;
  size_t count = 0;
  given_job given;
  give_job(&given, 7, 40, 4000);
  options.policy = "least-utilised";
  options.seed = seed;
  options.max_candidates = max_candidates;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  plan = plan_one(placer, cluster, &given);
  slots.capacity = 1;
  slots.node_ids = &node;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_DECISION, 0, &slots, &count, &error));
  horus_plan_free(plan);
  horus_placer_free(placer);
  return node;
}

static void ATersePlacerDoesNotTellWhyAJobWaits(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  horus_decision decision = HORUS_DECISION_INIT;
  horus_plan* plan;
  given_job given;
  int32_t terse;
  uint64_t job;
  options.policy = "exclusive";
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  for (job = 1; job <= 2; ++job) { /* one for each GPU */
    give_job(&given, job, 90, 4000);
    plan = plan_one(placer, cluster, &given);
    CHECK_OK(horus_cluster_apply(cluster, plan, &error));
    horus_plan_free(plan);
  }
  horus_placer_free(placer);
  give_job(&given, 3, 90, 4000);
  for (terse = 0; terse <= 1; ++terse) {
    options.terse = terse;
    CHECK_OK(horus_placer_create(&options, &placer, &error));
    plan = plan_one(placer, cluster, &given);
    CHECK_OK(horus_plan_get(plan, 0, &decision, &error));
    CHECK(decision.verdict == HORUS_VERDICT_DEFER);
    CHECK((decision.reason == HORUS_REASON_NONE) == (terse == 1));
    horus_plan_free(plan);
    horus_placer_free(placer);
  }
  options.terse = 2;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_create(&options, &placer, &error));
  horus_cluster_free(cluster);
}

static void ABoundedSearchFollowsItsSeed(void) {
  horus_cluster* cluster = cluster_of(6);
  uint64_t seed, others = 0;
  for (seed = 0; seed < 16; ++seed) {
    CHECK(node_chosen(cluster, 0, seed) == 1); /* the lowest of equals */
    CHECK(node_chosen(cluster, 1, seed) == node_chosen(cluster, 1, seed));
    others += node_chosen(cluster, 1, seed) != 1;
  }
  CHECK(others > 0);
  horus_cluster_free(cluster);
}

static void OptionsAreChecked(void) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  options.policy = "clairvoyant";
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "first-fit", horus_placer_create(&options, &placer, &error));
  options.policy = NULL;
  options.slowdown_bound = NAN;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_create(&options, &placer, &error));
  options.slowdown_bound = 0;
  options.max_tenants = -3;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "found -3; 0 is the default",
                horus_placer_create(&options, &placer, &error));
  options.max_tenants = 0;
  options.mem_headroom_mib = -2;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_create(&options, &placer, &error));
  options.mem_headroom_mib = 0;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_create(&options, NULL, &error));
  CHECK(placer == NULL);
  options.mem_headroom_mib = -1; /* none: the whole device may be used */
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  {
    horus_cluster* cluster = cluster_of(1);
    horus_plan* plan;
    given_job given;
    give_job(&given, 1, 50, 16384);
    plan = plan_one(placer, cluster, &given);
    CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_PLACE);
    horus_plan_free(plan);
    horus_cluster_free(cluster);
  }
  horus_placer_free(placer);
  horus_placer_free(NULL);
}

int main(void) {
  ATersePlacerDoesNotTellWhyAJobWaits();
  ABoundedSearchFollowsItsSeed();
  OptionsAreChecked();
  return report();
}
