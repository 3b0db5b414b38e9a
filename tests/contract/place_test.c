/* SPDX-License-Identifier: Apache-2.0 */
/* horus/place.h: plans and their decisions, apply and its conflicts, subsets, verdicts. */
#include <math.h>

#include "fixture.h"

static void PlanningChangesNothingAndApplyDoes(void) {
  horus_cluster* cluster = cluster_of(2);
  horus_placer* placer = placer_of(NULL);
  const uint64_t hash = state_hash(cluster);
  horus_decision decision;
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  horus_plan* plan;
  given_job given;
  give_job(&given, 7, 40, 4000);
  plan = plan_one(placer, cluster, &given);
  CHECK(state_hash(cluster) == hash);
  CHECK(decisions_of(plan) == 1);
  CHECK(horus_plan_bytes_held(plan) >= sizeof decision && horus_plan_bytes_held(NULL) == 0);
  decision = decision_of(plan, 0);
  CHECK(decision.verdict == HORUS_VERDICT_PLACE && decision.job_id == 7 && decision.reason == HORUS_REASON_NONE);
  CHECK(decision.slots == 1 && decision.effects == 1 && decision.slowdown == 1 && decision.slowdown_upper >= 1);
  CHECK(isfinite(decision.cost) && decision.text != NULL && decision.text[0] != '\0');
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  CHECK_STATUS(HORUS_ERR_EXISTS, horus_cluster_apply(cluster, plan, &error)); /* twice: harmless */
  CHECK_OK(horus_cluster_get_info(cluster, &info, &error));
  CHECK(info.jobs == 1 && info.state_hash != hash);
  CHECK_OK(horus_cluster_release(cluster, 7, &error));
  CHECK(state_hash(cluster) == hash);
  CHECK(horus_placer_bytes_held(placer) > 0 && horus_placer_bytes_held(NULL) == 0);
  horus_placer_free(placer);
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_PLACE); /* plans outlive their placer */
  horus_plan_free(plan);
  horus_cluster_free(cluster);
}

static void DecisionsExplainThemselves(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("horus");
  horus_slots slots = HORUS_SLOTS_INIT;
  horus_effects effects = HORUS_EFFECTS_INIT;
  uint64_t nodes[2] = {0, 0}, jobs[4] = {0, 0, 0, 0}, effect_nodes[4];
  uint32_t devices[2] = {9, 9}, tasks[2] = {9, 9}, effect_devices[4];
  float before[4], after[4], upper[4], calibrated[4];
  const char* names[16];
  double costs[16], sum = 0;
  horus_decision decision;
  size_t count = 0, i;
  horus_plan* plan;
  given_job given;
  give_job(&given, 1, 50, 4000);
  given.job.gpus_per_task = 2;
  plan = plan_one(placer, cluster, &given);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  give_job(&given, 2, 30, 3000);
  plan = plan_one(placer, cluster, &given);
  decision = decision_of(plan, 0);
  CHECK(decision.verdict == HORUS_VERDICT_PLACE && decision.effects == 2);

  slots.node_ids = nodes;
  slots.devices = devices;
  slots.tasks = tasks;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_DECISION, 0, &slots, &count, &error));
  CHECK(count == 1 && nodes[0] == 0);
  slots.capacity = 2;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_DECISION, 0, &slots, &count, &error));
  CHECK(count == 1 && nodes[0] == 1 && devices[0] == 0 && tasks[0] == 0); /* a tie: the lowest device */
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_slots(plan, HORUS_SLOTS_DECISION, 1, &slots, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_slots(plan, HORUS_SLOTS_DECISION, 0, &slots, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_slots(NULL, HORUS_SLOTS_DECISION, 0, &slots, &count, &error));

  effects.job_ids = jobs;
  effects.node_ids = effect_nodes;
  effects.devices = effect_devices;
  effects.slowdown_before = before;
  effects.slowdown_after = after;
  effects.slowdown_after_upper = upper;
  effects.calibrated_up_to = calibrated;
  CHECK_OK(horus_plan_effects(plan, 0, &effects, &count, &error));
  CHECK(count == 2 && jobs[0] == 0);
  effects.capacity = 4;
  CHECK_OK(horus_plan_effects(plan, 0, &effects, &count, &error));
  CHECK(count == 2 && jobs[0] == 2 && jobs[1] == 1); /* the newcomer first */
  for (i = 0; i < count; ++i) {
    CHECK(effect_nodes[i] == 1 && effect_devices[i] == 0);
    CHECK(before[i] == 1 && after[i] >= 1 && upper[i] >= after[i]);
    CHECK(calibrated[i] == 0); /* a rule: nothing was left out to vouch for it */
  }
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_effects(plan, 1, &effects, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_effects(NULL, 0, &effects, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_effects(plan, 0, &effects, NULL, &error));

  if (decision.terms > 0) {
    CHECK_OK(horus_plan_terms(plan, 0, 0, NULL, NULL, &count, &error));
    CHECK(count == decision.terms);
  }
  CHECK_OK(horus_plan_terms(plan, 0, 16, names, costs, &count, &error));
  CHECK(count == decision.terms);
  for (i = 0; i < count; ++i) {
    CHECK(strlen(names[i]) > 0 && strlen(names[i]) < 64);
    sum += costs[i];
  }
  CHECK(fabs(sum - decision.cost) <= 1e-9 * (1 + fabs(decision.cost)));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_terms(plan, 1, 16, names, costs, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_terms(NULL, 0, 16, names, costs, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_terms(plan, 0, 16, names, costs, NULL, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_get(plan, 1, &decision, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_get(NULL, 0, &decision, &error));
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void RefusalsAreAnswersWithReasons(void) {
  horus_cluster* cluster = cluster_of(2);
  horus_placer* placer = placer_of("horus");
  horus_decision decision;
  const char* const other_type[1] = {"t4"};
  int32_t reasons[HORUS_REASON_SHARING_QUOTA + 1];
  uint64_t counts[HORUS_REASON_SHARING_QUOTA + 1];
  size_t count = 99;
  horus_plan* plan;
  given_job given;
  give_job(&given, 1, 50, 20000); /* larger than any device: never */
  plan = plan_one(placer, cluster, &given);
  decision = decision_of(plan, 0);
  CHECK(decision.verdict == HORUS_VERDICT_REJECT && decision.reason == HORUS_REASON_GPU_MEMORY);
  CHECK(decision.slots == 0 && decision.slowdown == 0 && isnan(decision.cost) && isnan(decision.runner_up_cost));
  CHECK(decision.miss_reason == HORUS_REASON_GPU_MEMORY && strcmp(decision.miss_unit, "MiB") == 0);
  CHECK(decision.miss_needed > decision.miss_available && decision.miss_available > 0);
  CHECK_OK(horus_plan_refusals(plan, 0, 0, NULL, NULL, &count, &error));
  CHECK(count == 1);
  CHECK_OK(horus_plan_refusals(plan, 0, HORUS_REASON_SHARING_QUOTA + 1, reasons, counts, &count, &error));
  CHECK(count == 1 && reasons[0] == HORUS_REASON_GPU_MEMORY && counts[0] == 4);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_refusals(plan, 1, 4, reasons, counts, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_refusals(NULL, 0, 4, reasons, counts, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_refusals(plan, 0, 4, reasons, counts, NULL, &error));
  CHECK_OK(horus_cluster_apply(cluster, plan, &error)); /* nothing to do is done */
  horus_plan_free(plan);

  give_job(&given, 1, 50, 4000000);
  plan = plan_one(placer, cluster, &given);
  CHECK(strstr(decision_of(plan, 0).text, "needed 4000000, available ") != NULL);
  horus_plan_free(plan);
  given.job.gpu_types = other_type;
  plan = plan_one(placer, cluster, &given);
  CHECK(strstr(decision_of(plan, 0).text, "(gpu_type: " FIXTURE_GPU ")") != NULL); /* the type that is there */
  horus_plan_free(plan);

  give_job(&given, 1, 50, 4000);
  CHECK_OK(horus_cluster_set_state(cluster, 1, HORUS_WHOLE_NODE, HORUS_STATE_DRAINED, 0, NULL, NULL, &error));
  CHECK_OK(horus_cluster_set_state(cluster, 2, HORUS_WHOLE_NODE, HORUS_STATE_DOWN, 0, NULL, NULL, &error));
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_DEFER); /* not now */
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void ReasonsAndPoliciesHaveNames(void) {
  int32_t reason;
  size_t index = 0;
  for (reason = HORUS_REASON_NONE; reason <= HORUS_REASON_SHARING_QUOTA; ++reason) {
    CHECK(strcmp(horus_reason_name(reason), "unknown") != 0 && strlen(horus_reason_name(reason)) < 32);
    CHECK(strlen(horus_reason_text(reason)) > strlen(horus_reason_name(reason)) || reason == HORUS_REASON_NONE);
  }
  CHECK(strcmp(horus_reason_name(HORUS_REASON_GPU_MEMORY), "gpu_memory") == 0);
  CHECK(strcmp(horus_reason_name(-1), "unknown") == 0 && strcmp(horus_reason_name(1000), "unknown") == 0);
  CHECK(strlen(horus_reason_text(1000)) > 0);
  CHECK(strcmp(library_info().policies[0], "horus") == 0);
  for (; library_info().policies[index] != NULL; ++index) {
    horus_placer* placer = placer_of(library_info().policies[index]);
    horus_placer_free(placer);
  }
  CHECK(index >= 5);
}

static void PlansThatSawAnOlderStateConflict(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("first-fit");
  horus_plan *first, *second;
  uint64_t hash;
  given_job one, two;
  give_job(&one, 1, 50, 4000);
  give_job(&two, 2, 50, 4000);
  first = plan_one(placer, cluster, &one);
  second = plan_one(placer, cluster, &two);
  CHECK_OK(horus_cluster_apply(cluster, first, &error));
  hash = state_hash(cluster);
  CHECK_MESSAGE(HORUS_ERR_CONFLICT, "1", horus_cluster_apply(cluster, second, &error));
  CHECK(state_hash(cluster) == hash);
  horus_plan_free(second);
  second = plan_one(placer, cluster, &two); /* plan again, as the message says */
  CHECK_OK(horus_cluster_apply(cluster, second, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_apply(NULL, second, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_apply(cluster, NULL, &error));
  horus_plan_free(first);
  horus_plan_free(second);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void OnlyTheSubsetIsConsidered(void) {
  horus_cluster* cluster = cluster_of(4);
  horus_placer* placer = placer_of("first-fit");
  const uint64_t subset[2] = {3, 4}, unknown[1] = {12};
  uint64_t node = 0;
  horus_slots slots = HORUS_SLOTS_INIT;
  const horus_job* jobs[1];
  horus_plan* plan = NULL;
  size_t count = 0;
  given_job given;
  give_job(&given, 1, 50, 4000);
  jobs[0] = &given.job;
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 2, subset, NULL, NULL, &plan, &error));
  slots.capacity = 1;
  slots.node_ids = &node;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_DECISION, 0, &slots, &count, &error));
  CHECK(node == 3);
  horus_plan_free(plan);
  plan = NULL;
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, subset, NULL, NULL, &plan, &error)); /* no node at all */
  CHECK(decision_of(plan, 0).verdict != HORUS_VERDICT_PLACE);
  horus_plan_free(plan);
  plan = NULL;
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_placer_plan(placer, cluster, 1, jobs, 1, unknown, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_plan(placer, cluster, 1, jobs, 1, NULL, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void VerdictsComeAsColumns(void) {
  horus_cluster* cluster = cluster_of(3);
  horus_placer* placer = placer_of("horus");
  const uint64_t nodes[4] = {3, 1, 2, 3}, unknown[1] = {9};
  int32_t verdicts[4] = {9, 9, 9, 9}, reasons[4] = {9, 9, 9, 9};
  double costs[4] = {-1, -1, -1, -1};
  given_job given;
  give_job(&given, 1, 50, 4000);
  CHECK_OK(horus_cluster_set_state(cluster, 1, HORUS_WHOLE_NODE, HORUS_STATE_DOWN, 0, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               horus_placer_verdicts(placer, cluster, &given.job, 1, unknown, verdicts, costs, reasons, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_verdicts(placer, cluster, &given.job, 4, NULL, verdicts, costs, reasons, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_verdicts(placer, cluster, NULL, 4, nodes, verdicts, costs, reasons, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_verdicts(NULL, cluster, &given.job, 4, nodes, verdicts, costs, reasons, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_verdicts(placer, NULL, &given.job, 4, nodes, verdicts, costs, reasons, &error));
  CHECK(verdicts[0] == 9 && costs[0] == -1 && reasons[0] == 9);
  CHECK_OK(horus_placer_verdicts(placer, cluster, &given.job, 4, nodes, verdicts, costs, reasons, &error));
  CHECK(verdicts[0] == HORUS_VERDICT_PLACE && isfinite(costs[0]) && reasons[0] == HORUS_REASON_NONE);
  CHECK(verdicts[1] == HORUS_VERDICT_DEFER && isnan(costs[1]) && reasons[1] == HORUS_REASON_NODE_DOWN);
  CHECK(verdicts[2] == HORUS_VERDICT_PLACE && verdicts[3] == verdicts[0] && costs[3] == costs[0]);
  CHECK_OK(horus_placer_verdicts(placer, cluster, &given.job, 4, nodes, NULL, NULL, NULL, &error));
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void BadJobsAreRefusedByField(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("horus");
  const char* const abacus[1] = {"abacus"};
  const horus_job_alternative alternative = HORUS_JOB_ALTERNATIVE_INIT;
  const horus_job_alternative* alternatives[1];
  const horus_job* jobs[2];
  horus_plan* plan = NULL;
  given_job good, bad;
  alternatives[0] = &alternative;
  give_job(&good, 1, 50, 4000);
  jobs[0] = &good.job;
  jobs[1] = &bad.job;
#define REFUSED(status, text) \
  CHECK_MESSAGE(status, text, horus_placer_plan(placer, cluster, 2, jobs, 0, NULL, NULL, NULL, &plan, &error))
  give_job(&bad, 1, 50, 4000);
  REFUSED(HORUS_ERR_EXISTS, "1");
  give_job(&bad, 2, 50, 4000);
  bad.job.kind = 3;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "jobs[1]: job 2: kind");
  give_job(&bad, 2, 50, 4000);
  bad.job.exclusive = 2;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "exclusive");
  give_job(&bad, 2, 50, 4000);
  bad.job.demand_count = 0;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "demands: expected 1 to");
  give_job(&bad, 2, 50, 4000);
  bad.job.demands = NULL;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "demands");
  give_job(&bad, 2, 50, 4000);
  bad.job.gpu_types = abacus;
  REFUSED(HORUS_ERR_NOT_FOUND, "abacus");
  give_job(&bad, 2, 50, 4000);
  bad.demand.gpu_util_pct = 101;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "gpu_util_pct");
  give_job(&bad, 2, 50, 4000);
  bad.job.tasks = -1;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "tasks");
  give_job(&bad, 2, 50, 4000);
  bad.job.slowdown_bound = 0.5f;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "slowdown_bound");
  give_job(&bad, 2, 50, 4000);
  bad.job.selector_count = 1;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "selector_keys");
  give_job(&bad, 2, 50, 4000);
  bad.job.alternative_count = 1;
  bad.job.alternatives = alternatives;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "alternatives[0]");
  jobs[1] = NULL;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "jobs[1]");
#undef REFUSED
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_plan(placer, cluster, 1, NULL, 0, NULL, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_plan(NULL, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_plan(placer, NULL, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_LIMIT,
               horus_placer_plan(placer, cluster, (size_t)-1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  CHECK_OK(horus_placer_plan(placer, cluster, 0, NULL, 0, NULL, NULL, NULL, &plan, &error)); /* no jobs, no decisions */
  CHECK(decisions_of(plan) == 0);
  horus_plan_free(plan);
  horus_plan_free(NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

/* The node chosen among six idle ones. */

int main(void) {
  PlanningChangesNothingAndApplyDoes();
  DecisionsExplainThemselves();
  RefusalsAreAnswersWithReasons();
  ReasonsAndPoliciesHaveNames();
  PlansThatSawAnOlderStateConflict();
  OnlyTheSubsetIsConsidered();
  VerdictsComeAsColumns();
  BadJobsAreRefusedByField();
  return report();
}
