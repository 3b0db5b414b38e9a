/* SPDX-License-Identifier: Apache-2.0 */
/* Cores and memory that policies grant, and residents that they resize: rounds of Synergy, and "horus". */
#include <math.h>
#include <string.h>

#include "fixture.h"

/* Fair shares of the fixture's nodes. */
#define FAIR_CPU 32000
#define FAIR_MEM 131072

static const int64_t kCores[2] = {FAIR_CPU, FAIR_CPU / 2 * 3};
static const int64_t kMemory[1] = {FAIR_MEM};
static const float kSpeeds[2] = {1.0f, 1.5f};

/* Half as fast again with half as many cores more. */
static horus_sensitivity hungry(void) {
  horus_sensitivity matrix = HORUS_SENSITIVITY_INIT;
  matrix.cpu_count = 2;
  matrix.cpu_milli = kCores;
  matrix.mem_count = 1;
  matrix.mem_mib = kMemory;
  matrix.speeds = kSpeeds;
  return matrix;
}

static void EveryRuleIsAPolicy(void) {
  static const char* const kNames[4] = {"synergy-greedy", "synergy-fair", "synergy-tune", "synergy-opt"};
  const char* const* policies = library_info().policies;
  int found = 0;
  size_t i, n;
  for (i = 0; policies[i] != NULL; ++i) {
    for (n = 0; n < 4; ++n) found += strcmp(policies[i], kNames[n]) == 0;
  }
  CHECK(found == 4);
  for (n = 0; n < 4; ++n) horus_placer_free(placer_of(kNames[n]));
}

static void ARoundGrantsAndCutsBack(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("synergy-tune");
  const horus_sensitivity matrix = hungry();
  horus_job_info info = HORUS_JOB_INFO_INIT;
  horus_move move = HORUS_MOVE_INIT;
  horus_slots slots = HORUS_SLOTS_INIT;
  uint64_t node = 0;
  uint32_t device = 9;
  size_t count = 0;
  int32_t to;
  given_job given;
  horus_decision decision;
  horus_plan* plan;
  give_job(&given, 1, 40, 2000);
  given.job.sensitivity = &matrix;
  plan = plan_one(placer, cluster, &given);
  decision = decision_of(plan, 0);
  CHECK(decision.verdict == HORUS_VERDICT_PLACE && decision.cost == -1.5 && isnan(decision.runner_up_cost));
  CHECK(decision.cpu_milli == kCores[1] && decision.mem_mib == FAIR_MEM);
  CHECK(info_of(plan).moves == 0);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  CHECK_OK(horus_cluster_get_job(cluster, 1, &info, 0, NULL, NULL, &error));
  CHECK(info.cpu_milli == kCores[1] && info.mem_mib == FAIR_MEM);
  CHECK(info.stated_cpu_milli == 1000 && info.stated_mem_mib == 1024);

  give_job(&given, 2, 40, 2000);
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).cpu_milli == FAIR_CPU);
  CHECK(info_of(plan).moves == 1);
  CHECK_OK(horus_plan_get_move(plan, 0, &move, &error));
  CHECK(move.kind == HORUS_MOVE_RESIZE && move.job_id == 1 && move.gain == -0.5 && move.cost == 0);
  CHECK(move.cpu_milli_before == kCores[1] && move.cpu_milli == FAIR_CPU);
  CHECK(move.mem_mib_before == FAIR_MEM && move.mem_mib == FAIR_MEM);
  CHECK(move.from_slots == 1 && move.to_slots == 1);
  slots.capacity = 1;
  slots.node_ids = &node;
  slots.devices = &device;
  for (to = HORUS_SLOTS_MOVE_FROM; to <= HORUS_SLOTS_MOVE_TO; ++to) {
    CHECK_OK(horus_plan_slots(plan, to, 0, &slots, &count, &error));
    CHECK(count == 1 && node == 1 && device == 0);
  }
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  CHECK_STATUS(HORUS_ERR_EXISTS, horus_cluster_apply(cluster, plan, &error));
  CHECK_OK(horus_cluster_get_job(cluster, 1, &info, 0, NULL, NULL, &error));
  CHECK(info.cpu_milli == FAIR_CPU && info.stated_cpu_milli == 1000);
  horus_plan_free(plan);

  give_job(&given, 3, 40, 2000);
  plan = plan_one(placer, cluster, &given);
  decision = decision_of(plan, 0);
  CHECK(decision.verdict == HORUS_VERDICT_DEFER && decision.reason != HORUS_REASON_NONE && decision.cpu_milli == 0);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static horus_placer* granting(int32_t grants) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  options.host_grants = grants;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  return placer;
}

/* Of a node with 64 cores and two GPUs. */
static void ThePolicyThatSharesGpusGrantsToo(void) {
  horus_cluster* cluster = cluster_of(1);
  const horus_sensitivity matrix = hungry();
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_move move = HORUS_MOVE_INIT;
  horus_placer* placer = granting(HORUS_HOST_GRANTS_STATED);
  given_job given;
  horus_plan* plan;
  give_job(&given, 1, 40, 2000);
  given.job.sensitivity = &matrix;
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).cpu_milli == 1000);
  horus_plan_free(plan);
  horus_placer_free(placer);

  placer = granting(HORUS_HOST_GRANTS_RESIZE);
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).cpu_milli == kCores[1] && decision_of(plan, 0).mem_mib == FAIR_MEM);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  give_job(&given, 2, 40, 2000);
  given.job.sensitivity = &matrix;
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).cpu_milli == kCores[0] && info_of(plan).moves == 1);
  CHECK_OK(horus_plan_get_move(plan, 0, &move, &error));
  CHECK(move.kind == HORUS_MOVE_RESIZE && move.job_id == 1 && move.cpu_milli == kCores[0]);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  horus_placer_free(placer);

  options.host_grants = 3;
  placer = NULL;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_create(&options, &placer, &error));
  horus_cluster_free(cluster);
}

/* What a scheduler that restarts without a snapshot knows of its jobs. */
static void AdoptedJobsMayHoldMoreThanTheyStated(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_job_info info = HORUS_JOB_INFO_INIT;
  const uint64_t node = 1;
  const uint32_t device = 0;
  given_job given;
  horus_placer* placer = placer_of("synergy-tune");
  horus_plan* plan;
  give_job(&given, 1, 40, 2000);
  given.job.cpu_milli = 64000;
  given.job.stated_cpu_milli = 64001;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_cluster_adopt(cluster, &given.job, 1, &node, &device, NULL, NULL, &error));
  given.job.stated_cpu_milli = -1;
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, &node, &device, NULL, NULL, &error));
  CHECK_OK(horus_cluster_get_job(cluster, 1, &info, 0, NULL, NULL, &error));
  CHECK(info.cpu_milli == 64000 && info.stated_cpu_milli == -1 && info.stated_mem_mib == info.mem_mib);
  give_job(&given, 2, 40, 2000);
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_PLACE && info_of(plan).moves == 1);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  CHECK_OK(horus_cluster_get_job(cluster, 1, &info, 0, NULL, NULL, &error));
  CHECK(info.cpu_milli == FAIR_CPU);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void ModesRefuseRounds(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("synergy-fair");
  const horus_job* jobs[1];
  given_job given;
  horus_plan* plan = NULL;
  give_job(&given, 1, 40, 2000);
  jobs[0] = &given.job;
  CHECK_MESSAGE(HORUS_ERR_UNSUPPORTED, "synergy-fair",
                horus_placer_plan_batch(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_UNSUPPORTED, horus_placer_rebalance(placer, cluster, NULL, &plan, &error));
  CHECK_STATUS(HORUS_ERR_UNSUPPORTED, horus_placer_preempt(placer, cluster, &given.job, 0, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void OptAnswersOrSaysWhatItLacks(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("synergy-opt");
  const uint64_t before = state_hash(cluster);
  const horus_job* jobs[1];
  given_job given;
  horus_plan* plan = NULL;
  horus_error error = HORUS_ERROR_INIT;
  horus_status status;
  give_job(&given, 1, 40, 2000);
  jobs[0] = &given.job;
  status = horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error);
  if (status != HORUS_OK) { /* the build has no libhorus_lp */
    CHECK(status == HORUS_ERR_IO && plan == NULL);
    CHECK(strstr(error.message, "libhorus_lp") != NULL);
  }
  CHECK(state_hash(cluster) == before);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void SettingsAreChecked(void) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_lab_policy_options lab = HORUS_LAB_POLICY_OPTIONS_INIT;
  horus_placer* placer = NULL;
  options.policy = "synergy-tune";
  lab.synergy_tolerance = 1;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_lab_placer_create(&options, &lab, &placer, &error));
  lab.synergy_tolerance = -1;
  lab.synergy_grow = 2;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_lab_placer_create(&options, &lab, &placer, &error));
  lab.synergy_grow = 1;
  CHECK_OK(horus_lab_placer_create(&options, &lab, &placer, &error));
  horus_placer_free(placer);
}

int main(void) {
  EveryRuleIsAPolicy();
  ARoundGrantsAndCutsBack();
  ThePolicyThatSharesGpusGrantsToo();
  AdoptedJobsMayHoldMoreThanTheyStated();
  ModesRefuseRounds();
  OptAnswersOrSaysWhatItLacks();
  SettingsAreChecked();
  return report();
}
