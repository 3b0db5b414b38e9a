/* SPDX-License-Identifier: Apache-2.0 */
/* horus/modes.h: batches, rebalancing, what-ifs, preemption; and what their plans tell. */
#include <math.h>

#include "fixture.h"

/* Takes the job in on one device. */
static void adopt(horus_cluster* cluster, const given_job* given, uint64_t node, uint32_t device) {
  CHECK_OK(horus_cluster_adopt(cluster, &given->job, 1, &node, &device, NULL, NULL, &error));
}

static void ABatchIsPlannedTogetherAndApplies(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of(NULL);
  const uint64_t hash = state_hash(cluster);
  horus_batch_options options = HORUS_BATCH_OPTIONS_INIT;
  given_job given[4];
  const horus_job* jobs[4];
  horus_plan* plan = NULL;
  uint64_t i;
  for (i = 0; i < 4; ++i) {
    give_job(&given[i], i + 1, 20 + 20 * (float)i, 2000);
    jobs[i] = &given[i].job;
  }
  options.max_rounds = 4;
  CHECK_OK(horus_placer_plan_batch(placer, cluster, 4, jobs, 0, NULL, &options, NULL, NULL, &plan, &error));
  CHECK(state_hash(cluster) == hash && decisions_of(plan) == 4 && info_of(plan).moves == 0);
  CHECK(info_of(plan).work_after >= info_of(plan).work_before && info_of(plan).work_after > 2);
  for (i = 0; i < 4; ++i) CHECK(decision_of(plan, i).job_id == i + 1);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  plan = NULL;
  CHECK_STATUS(HORUS_ERR_EXISTS,
               horus_placer_plan_batch(placer, cluster, 4, jobs, 0, NULL, NULL, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_plan_batch(placer, cluster, 1, NULL, 0, NULL, NULL, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_plan_batch(placer, cluster, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, &error));
  options.now_us = INT64_MIN;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "now_us",
                horus_placer_plan_batch(placer, cluster, 0, NULL, 0, NULL, &options, NULL, NULL, &plan, &error));
  options.now_us = 0;
  options.reserved = 1;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT,
               horus_placer_plan_batch(placer, cluster, 0, NULL, 0, NULL, &options, NULL, NULL, &plan, &error));
  options.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT,
               horus_placer_plan_batch(placer, cluster, 0, NULL, 0, NULL, &options, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void AnEvacuationEmptiesNodes(void) {
  const uint64_t left[2] = {1, 77};
  horus_cluster* cluster = cluster_of(2);
  horus_placer* placer = placer_of(NULL);
  horus_plan* plan = NULL;
  horus_move move = HORUS_MOVE_INIT;
  horus_node_info node = HORUS_NODE_INFO_INIT;
  uint64_t ids[2];
  size_t count = 7;
  given_job given;
  uint64_t id;
  for (id = 1; id <= 2; ++id) {
    give_job(&given, id, 30, 2000);
    given.job.slowdown_bound = 3;
    given.job.tenant = "red";
    adopt(cluster, &given, 1, 0);
  }
  CHECK_OK(horus_placer_evacuate(placer, cluster, 1, left, NULL, NULL, &plan, &error));
  CHECK(decisions_of(plan) == 2 && info_of(plan).moves == 2);
  CHECK_OK(horus_plan_get_move(plan, 0, &move, &error));
  CHECK(move.kind == HORUS_MOVE_MIGRATE);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  plan = NULL;
  CHECK_OK(horus_cluster_get_node(cluster, 1, &node, 2, ids, &count, &error));
  CHECK(count == 0);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_placer_evacuate(placer, cluster, 2, left, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_evacuate(placer, cluster, 1, NULL, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void AnAppraisalTellsWhatAnyPlaceWouldDo(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of(NULL);
  horus_appraisal alone = HORUS_APPRAISAL_INIT;
  horus_appraisal beside = HORUS_APPRAISAL_INIT;
  const uint64_t node = 1;
  const uint64_t nowhere = 9;
  const uint32_t device = 0;
  given_job given;
  give_job(&given, 1, 30, 2000);
  CHECK_OK(horus_placer_appraise(placer, cluster, &given.job, 1, &node, &device, NULL, &alone, &error));
  CHECK(alone.reason == HORUS_REASON_NONE && alone.work == 1 && alone.tenants == 1 && alone.shared == 0);
  CHECK(alone.slowdown == 1 && alone.slowdown_upper == 1 && alone.beyond_bound == 0);
  adopt(cluster, &given, node, device);
  CHECK_STATUS(HORUS_ERR_EXISTS,
               horus_placer_appraise(placer, cluster, &given.job, 1, &node, &device, NULL, &beside, &error));
  give_job(&given, 2, 90, 2000);
  CHECK_OK(horus_placer_appraise(placer, cluster, &given.job, 1, &node, &device, NULL, &beside, &error));
  CHECK(beside.tenants == 2 && beside.shared == 1 && beside.work < alone.work && beside.slowdown >= 1);
  give_job(&given, 3, 30, 1 << 20);
  CHECK_OK(horus_placer_appraise(placer, cluster, &given.job, 1, &node, &device, NULL, &beside, &error));
  CHECK(beside.reason == HORUS_REASON_GPU_MEMORY);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               horus_placer_appraise(placer, cluster, &given.job, 1, &nowhere, &device, NULL, &beside, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_appraise(placer, cluster, &given.job, 1, NULL, &device, NULL, &beside, &error));
  CHECK(beside.reason == HORUS_REASON_GPU_MEMORY);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void AReviewSaysWhoBreaksItsBoundAndMovesIt(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of(NULL);
  horus_rebalance_options options = HORUS_REBALANCE_OPTIONS_INIT;
  horus_tenant_review review = HORUS_TENANT_REVIEW_INIT;
  horus_plan* plan = NULL;
  const uint64_t only[1] = {1};
  given_job given;
  uint64_t id;
  for (id = 1; id <= 2; ++id) {
    give_job(&given, id, 90, 2000);
    given.job.slowdown_bound = id == 2 ? 1.01f : 0;
    adopt(cluster, &given, 1, 0);
  }
  CHECK_OK(horus_placer_review(placer, cluster, NULL, &plan, &error));
  CHECK(info_of(plan).reviews == 2 && info_of(plan).moves == 1);
  CHECK_OK(horus_plan_get_review(plan, 0, &review, &error));
  CHECK(review.job_id == 2 && review.broken == 1 && review.advice == HORUS_ADVICE_MOVE);
  CHECK(review.bound < 1.02 && review.held > review.bound && review.slowdown > 1 && review.pack_work > 0);
  CHECK(review.node_id == 1 && review.device == 0);
  CHECK_OK(horus_plan_get_review(plan, 1, &review, &error));
  CHECK(review.job_id == 1 && review.broken == 0 && review.advice == HORUS_ADVICE_STAY && isinf(review.bound));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_get_review(plan, 2, &review, &error));
  review.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_plan_get_review(plan, 0, &review, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_get_review(NULL, 0, &review, &error));
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  plan = NULL;
  CHECK_OK(horus_placer_review(placer, cluster, &options, &plan, &error));
  CHECK(info_of(plan).reviews == 0 && info_of(plan).moves == 0);
  horus_plan_free(plan);
  plan = NULL;
  options.job_count = 1;
  options.job_ids = only;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "job_ids", horus_placer_review(placer, cluster, &options, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void ARebalanceMovesWhatGains(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of(NULL);
  horus_rebalance_options options = HORUS_REBALANCE_OPTIONS_INIT;
  horus_plan_info info = HORUS_PLAN_INFO_INIT;
  horus_move move = HORUS_MOVE_INIT;
  horus_slots slots = HORUS_SLOTS_INIT;
  uint64_t node = 0;
  uint32_t device = 9;
  size_t count = 0;
  const uint64_t only[2] = {2, 77};
  given_job given;
  horus_plan* plan = NULL;
  uint64_t id;
  for (id = 1; id <= 2; ++id) {
    give_job(&given, id, 90, 2000);
    adopt(cluster, &given, 1, 0);
  }
  options.downtime_s = 36;
  options.job_count = 1;
  options.job_ids = only;
  CHECK_OK(horus_placer_rebalance(placer, cluster, &options, &plan, &error));
  CHECK(info_of(plan).moves == 1 && decisions_of(plan) == 1);
  CHECK_OK(horus_plan_get_move(plan, 0, &move, &error));
  CHECK(move.kind == HORUS_MOVE_MIGRATE && move.job_id == 2 && move.from_slots == 1 && move.to_slots == 1);
  CHECK(fabs(move.cost - 0.01) < 1e-9 && move.gain > 0.5);
  CHECK(fabs(info_of(plan).work_after - info_of(plan).work_before - move.gain) < 1e-9);
  slots.capacity = 1;
  slots.node_ids = &node;
  slots.devices = &device;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_MOVE_FROM, 0, &slots, &count, &error));
  CHECK(count == 1 && node == 1 && device == 0);
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_MOVE_TO, 0, &slots, &count, &error));
  CHECK(count == 1 && node == 1 && device == 1);
  slots.capacity = 0;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_MOVE_TO, 0, &slots, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_slots(plan, 4, 0, &slots, &count, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_slots(plan, HORUS_SLOTS_MOVE_FROM, 1, &slots, &count, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_get_move(plan, 1, &move, &error));
  move.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_plan_get_move(plan, 0, &move, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_get_move(NULL, 0, &move, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_plan_get_info(NULL, &info, &error));
  info.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_plan_get_info(plan, &info, &error));
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  CHECK_STATUS(HORUS_ERR_CONFLICT, horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  plan = NULL;
  CHECK_OK(horus_placer_rebalance(placer, cluster, NULL, &plan, &error)); /* nothing left to gain */
  CHECK(info_of(plan).moves == 0);
  horus_plan_free(plan);
  plan = NULL;
  options.job_count = 2;
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_placer_rebalance(placer, cluster, &options, &plan, &error));
  options.downtime_s = -2;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_rebalance(placer, cluster, &options, &plan, &error));
  options.job_ids = NULL;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_rebalance(placer, cluster, &options, &plan, &error));
  options.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_placer_rebalance(placer, cluster, &options, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_rebalance(NULL, cluster, NULL, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void AWhatIfHappensNowhere(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of(NULL);
  const uint64_t node = 1;
  const uint32_t device = 1;
  horus_change changes[4] = {HORUS_CHANGE_INIT, HORUS_CHANGE_INIT, HORUS_CHANGE_INIT, HORUS_CHANGE_INIT};
  const horus_change* pointers[4];
  const horus_job* jobs[1];
  given_job resident, newcomer, placed;
  horus_plan* plan = NULL;
  uint64_t hash;
  size_t i;
  for (i = 0; i < 4; ++i) pointers[i] = &changes[i];
  give_job(&resident, 1, 50, 14000);
  adopt(cluster, &resident, 1, 0);
  give_job(&newcomer, 2, 50, 14000);
  jobs[0] = &newcomer.job;
  give_job(&placed, 3, 50, 14000);
  hash = state_hash(cluster);
  changes[0].kind = HORUS_CHANGE_PLACE;
  changes[0].job = &placed.job;
  changes[0].slot_count = 1;
  changes[0].node_ids = &node;
  changes[0].devices = &device;
  CHECK_OK(horus_placer_what_if(placer, cluster, 1, pointers, 1, jobs, NULL, NULL, &plan, &error));
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_DEFER);
  CHECK(fabs(info_of(plan).work_before - 1) < 1e-6 && fabs(info_of(plan).work_after - 2) < 1e-6);
  CHECK_STATUS(HORUS_ERR_STATE, horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  changes[1].kind = HORUS_CHANGE_RELEASE;
  changes[1].job_id = 1;
  CHECK_OK(horus_placer_what_if(placer, cluster, 2, pointers, 1, jobs, NULL, NULL, &plan, &error));
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_PLACE);
  horus_plan_free(plan);
  changes[2].kind = HORUS_CHANGE_DEVICE_STATE;
  changes[2].node_id = 1;
  changes[2].state = HORUS_STATE_DRAINED;
  CHECK_OK(horus_placer_what_if(placer, cluster, 3, pointers, 1, jobs, NULL, NULL, &plan, &error));
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_DEFER);
  horus_plan_free(plan);
  plan = NULL;
  CHECK(state_hash(cluster) == hash);
  changes[3].kind = HORUS_CHANGE_MIGRATE;
  changes[3].job_id = 3;
  changes[3].slot_count = 1;
  changes[3].node_ids = &node;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, /* no devices */
               horus_placer_what_if(placer, cluster, 4, pointers, 1, jobs, NULL, NULL, &plan, &error));
  changes[3].kind = HORUS_CHANGE_NODE_STATE;
  changes[3].state = 9;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_what_if(placer, cluster, 4, pointers, 1, jobs, NULL, NULL, &plan, &error));
  changes[3].state = HORUS_STATE_DOWN;
  changes[3].node_id = 77;
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               horus_placer_what_if(placer, cluster, 4, pointers, 1, jobs, NULL, NULL, &plan, &error));
  changes[3].kind = 5;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_what_if(placer, cluster, 4, pointers, 1, jobs, NULL, NULL, &plan, &error));
  changes[3].struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT,
               horus_placer_what_if(placer, cluster, 4, pointers, 1, jobs, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_placer_what_if(placer, cluster, 1, NULL, 1, jobs, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void APreemptionNamesItsVictims(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of(NULL);
  horus_preempt_options options = HORUS_PREEMPT_OPTIONS_INIT;
  horus_preemption preemption = HORUS_PREEMPTION_INIT;
  horus_slots slots = HORUS_SLOTS_INIT;
  horus_move move = HORUS_MOVE_INIT;
  uint64_t node = 0;
  uint32_t device = 9;
  size_t count = 0;
  given_job given;
  horus_plan* plan = NULL;
  give_job(&given, 1, 10, 14000);
  given.job.priority = 1;
  adopt(cluster, &given, 1, 0);
  give_job(&given, 2, 10, 14000);
  adopt(cluster, &given, 1, 1);
  give_job(&given, 9, 10, 14000);
  given.job.priority = 5;
  CHECK_OK(horus_placer_preempt(placer, cluster, &given.job, 0, NULL, NULL, &plan, &error));
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_PLACE);
  CHECK(info_of(plan).preemptions == 1);
  CHECK_OK(horus_plan_get_preemption(plan, 0, &preemption, &error));
  CHECK(preemption.exact == 1 && preemption.node_id == 1 && preemption.victim_count == 1 && preemption.slots == 1);
  CHECK(fabs(preemption.loss - 1) < 1e-6);
  CHECK(preemption.victims[0] == 2 && fabs(preemption.losses[0] - 1) < 1e-6);
  slots.capacity = 1;
  slots.node_ids = &node;
  slots.devices = &device;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_PREEMPTION, 0, &slots, &count, &error));
  CHECK(count == 1 && node == 1 && device == 1);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_slots(plan, HORUS_SLOTS_PREEMPTION, 1, &slots, &count, &error));
  CHECK_OK(horus_plan_get_move(plan, 0, &move, &error));
  CHECK(move.kind == HORUS_MOVE_PREEMPT && move.job_id == 2 && move.to_slots == 0 && fabs(move.gain + 1) < 1e-6);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_plan_get_preemption(plan, 1, &preemption, &error));
  preemption.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_plan_get_preemption(plan, 0, &preemption, &error));
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_release(cluster, 2, &error));
  horus_plan_free(plan);
  plan = NULL;
  CHECK_STATUS(HORUS_ERR_EXISTS, horus_placer_preempt(placer, cluster, &given.job, 0, NULL, NULL, &plan, &error));
  options.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT,
               horus_placer_preempt(placer, cluster, &given.job, 0, NULL, &options, &plan, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_preempt(placer, cluster, NULL, 0, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  /* A plain plan tells no work. */
  give_job(&given, 10, 10, 14000);
  plan = plan_one(placer, cluster, &given);
  CHECK(isnan(info_of(plan).work_before) && isnan(info_of(plan).work_after));
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

int main(void) {
  ABatchIsPlannedTogetherAndApplies();
  AnEvacuationEmptiesNodes();
  AnAppraisalTellsWhatAnyPlaceWouldDo();
  AReviewSaysWhoBreaksItsBoundAndMovesIt();
  ARebalanceMovesWhatGains();
  AWhatIfHappensNowhere();
  APreemptionNamesItsVictims();
  return report();
}
