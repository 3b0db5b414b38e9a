/* SPDX-License-Identifier: Apache-2.0 */
/* Placers and their modes at the edges: no handle, no column, no job, catalogues that are equal, calls that are
 * metered.
 */
#include "fixture.h"

static int32_t at_no_cost(void* user, const horus_policy_candidate* candidate, double* cost, int32_t* declined) {
  (void)user, (void)candidate, (void)declined;
  *cost = 0;
  return 0;
}

static void OptionsOfPlacers(void) {
  horus_catalogue* types = NULL;
  horus_cluster* cluster = cluster_of(1);
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  horus_plan* plan = NULL;
  const horus_job* jobs[2];
  given_job one, two;
  CHECK_OK(horus_catalogue_default(&types, &error));
#define WITHOUT_CALLBACK "policy_callback: expected a function for the other policy_* fields, found NULL"
  options.policy_callback_name = "mine";
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, WITHOUT_CALLBACK, horus_placer_create(&options, &placer, &error));
  options.policy_callback_name = NULL;
  options.policy_catalogue = types;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, WITHOUT_CALLBACK, horus_placer_create(&options, &placer, &error));
  options.policy_catalogue = NULL;
  options.policy_user = types;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, WITHOUT_CALLBACK, horus_placer_create(&options, &placer, &error));
#undef WITHOUT_CALLBACK
  options.policy_user = NULL;
  CHECK(placer == NULL);
  options.max_jobs = 1;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  give_job(&one, 1, 40, 2000);
  give_job(&two, 2, 40, 2000);
  jobs[0] = &one.job;
  jobs[1] = &two.job;
  CHECK_MESSAGE(HORUS_ERR_LIMIT, "job_count: expected at most 1 (max_jobs), found 2",
                horus_placer_plan(placer, cluster, 2, jobs, 0, NULL, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_catalogue_free(types);
}

/* Two catalogues that list the same types are one to every call. */
static void EqualCataloguesAreTheSame(void) {
  const horus_gpu gpu = complete_gpu();
  const horus_gpu* const gpus[1] = {&gpu};
  const horus_node node = two_gpu_node(1);
  horus_catalogue *one = NULL, *other = NULL;
  horus_cluster *cluster = NULL, *twin = NULL;
  horus_placer* placer = NULL;
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_plan* plan;
  given_job given;
  CHECK_OK(horus_catalogue_extend(NULL, 1, gpus, &one, &error));
  CHECK_OK(horus_catalogue_extend(NULL, 1, gpus, &other, &error));
  CHECK_OK(horus_cluster_create(one, &cluster, &error));
  CHECK_OK(horus_cluster_create(other, &twin, &error));
  CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  CHECK_OK(horus_cluster_add_node(twin, &node, &error));
  options.policy_callback = at_no_cost;
  options.policy_catalogue = other;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  give_job(&given, 1, 40, 2000);
  plan = plan_one(placer, cluster, &given);
  CHECK_OK(horus_cluster_apply(twin, plan, &error));
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  CHECK(state_hash(cluster) == state_hash(twin));
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_cluster_free(twin);
  horus_catalogue_free(one);
  horus_catalogue_free(other);
}

static int32_t on_share(void* user, double done) {
  int* calls = user;
  CHECK(done >= 0 && done <= 1);
  ++*calls;
  return 0;
}

/* Every policy plans nothing for nobody, and what it tells of its progress is a share even then. */
static void NoJobsArePlanned(void) {
  horus_cluster* cluster = cluster_of(1);
  const char* const* policies = library_info().policies;
  size_t i;
  for (i = 0; policies[i] != NULL; ++i) {
    horus_placer* placer = placer_of(policies[i]);
    horus_plan *plan = NULL, *batch = NULL, *supposed = NULL;
    int calls = 0;
    CHECK_OK(horus_placer_plan(placer, cluster, 0, NULL, 0, NULL, on_share, &calls, &plan, &error));
    CHECK(plan != NULL && decisions_of(plan) == 0);
    horus_plan_free(plan);
    if (strncmp(policies[i], "synergy-", 8) == 0) { /* has plans of whole rounds alone */
      horus_placer_free(placer);
      continue;
    }
    CHECK_OK(horus_placer_plan_batch(placer, cluster, 0, NULL, 0, NULL, NULL, on_share, &calls, &batch, &error));
    CHECK_OK(horus_placer_what_if(placer, cluster, 0, NULL, 0, NULL, on_share, &calls, &supposed, &error));
    CHECK(batch != NULL && decisions_of(batch) == 0 && supposed != NULL);
    CHECK(decisions_of(supposed) == 0);
    horus_plan_free(batch);
    horus_plan_free(supposed);
    horus_placer_free(placer);
  }
  CHECK(i > 10);
  horus_cluster_free(cluster);
}

static void ModesNeedWhatTheyAreGiven(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("horus");
  const uint64_t hash = state_hash(cluster);
  horus_change change = HORUS_CHANGE_INIT;
  const horus_change* changes[1];
  const horus_job* jobs[1];
  horus_plan* plan = NULL;
  given_job given;
  give_job(&given, 1, 40, 2000);
  jobs[0] = &given.job;
#define REFUSED(text, call) CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, text, call)
#define BATCH(placer, cluster, count, out) \
  horus_placer_plan_batch(placer, cluster, 1, jobs, count, NULL, NULL, NULL, NULL, out, &error)
  REFUSED("placer", BATCH(NULL, cluster, 0, &plan));
  REFUSED("cluster", BATCH(placer, NULL, 0, &plan));
  REFUSED("out", BATCH(placer, cluster, 0, NULL));
  REFUSED("node_ids: expected 2 elements, found NULL", BATCH(placer, cluster, 2, &plan));
#undef BATCH
#define REBALANCE(placer, cluster, out) horus_placer_rebalance(placer, cluster, NULL, out, &error)
  REFUSED("placer", REBALANCE(NULL, cluster, &plan));
  REFUSED("cluster", REBALANCE(placer, NULL, &plan));
  REFUSED("out", REBALANCE(placer, cluster, NULL));
#undef REBALANCE
#define WHAT_IF(placer, cluster, out) \
  horus_placer_what_if(placer, cluster, 1, changes, 1, jobs, NULL, NULL, out, &error)
  changes[0] = &change;
  change.kind = HORUS_CHANGE_DEVICE_STATE;
  change.node_id = 1;
  change.device = 0x80000000u;
  REFUSED("placer", WHAT_IF(NULL, cluster, &plan));
  REFUSED("cluster", WHAT_IF(placer, NULL, &plan));
  REFUSED("out", WHAT_IF(placer, cluster, NULL));
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "changes[0]: device: expected an index within the node, found 2147483648",
                WHAT_IF(placer, cluster, &plan));
#undef WHAT_IF
#define PREEMPT(placer, cluster, count, out) \
  horus_placer_preempt(placer, cluster, jobs[0], count, NULL, NULL, out, &error)
  REFUSED("placer", PREEMPT(NULL, cluster, 0, &plan));
  REFUSED("cluster", PREEMPT(placer, NULL, 0, &plan));
  REFUSED("out", PREEMPT(placer, cluster, 0, NULL));
  REFUSED("node_ids: expected 3 elements, found NULL", PREEMPT(placer, cluster, 3, &plan));
#undef PREEMPT
  REFUSED("placer", horus_placer_verdicts(NULL, cluster, jobs[0], 0, NULL, NULL, NULL, NULL, &error));
  REFUSED("cluster", horus_placer_verdicts(placer, NULL, jobs[0], 0, NULL, NULL, NULL, NULL, &error));
#undef REFUSED
  CHECK(plan == NULL && state_hash(cluster) == hash);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

/* Over several nodes not every set of victims is tried, and the answer says so. */
static void PreemptionOverNodesSaysThatItIsNotExact(void) {
  const uint32_t devices[2] = {0, 1};
  horus_cluster* cluster = cluster_of(2);
  horus_placer* placer = placer_of("horus");
  horus_preemption found = HORUS_PREEMPTION_INIT;
  horus_plan* plan = NULL;
  given_job resident, urgent;
  uint64_t id;
  for (id = 1; id <= 2; ++id) {
    const uint64_t nodes[2] = {id, id};
    give_job(&resident, id, 90, 15000);
    resident.job.gpus_per_task = 2;
    CHECK_OK(horus_cluster_adopt(cluster, &resident.job, 2, nodes, devices, NULL, NULL, &error));
  }
  give_job(&urgent, 3, 90, 15000);
  urgent.job.priority = 9;
  urgent.job.tasks = 2;
  urgent.job.gpus_per_task = 2;
  CHECK_OK(horus_placer_preempt(placer, cluster, &urgent.job, 0, NULL, NULL, &plan, &error));
  CHECK(info_of(plan).preemptions == 1);
  CHECK_OK(horus_plan_get_preemption(plan, 0, &found, &error));
  CHECK(found.exact == 0 && found.victim_count == 2 && found.slots == 4);
  CHECK(found.victims[0] == 1 && found.victims[1] == 2 && found.losses[0] > 0 && found.losses[1] > 0);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

/* Columns that nobody wants are left out; how many rows there are is told all the same. */
static void ColumnsOfAnswersMayBeLeftOut(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("horus");
  horus_metrics* metrics = NULL;
  horus_metric_columns columns = HORUS_METRIC_COLUMNS_INIT;
  horus_slots slots = HORUS_SLOTS_INIT;
  horus_plan* plan;
  given_job given;
  size_t count = 77, rows = 0;
  give_job(&given, 1, 40, 20000); /* more than a GPU has */
  plan = plan_one(placer, cluster, &given);
  CHECK_OK(horus_plan_refusals(plan, 0, 40, NULL, NULL, &count, &error));
  CHECK(count == 1);
  CHECK_OK(horus_plan_terms(plan, 0, 40, NULL, NULL, &count, &error));
  horus_plan_free(plan);
  give_job(&given, 1, 40, 2000);
  plan = plan_one(placer, cluster, &given);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  slots.capacity = 4;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_DECISION, 0, &slots, &count, &error));
  CHECK(count == 1);
  count = 77;
  CHECK_OK(horus_cluster_job_slots(cluster, 1, &slots, &count, &error));
  CHECK(count == 1);
  CHECK_OK(horus_plan_terms(plan, 0, 40, NULL, NULL, &count, &error));
  CHECK(count > 1);
  CHECK_OK(horus_metrics_create(NULL, &metrics, &error));
  CHECK_OK(horus_metrics_get(metrics, &columns, &rows, &error));
  columns.capacity = rows;
  CHECK_OK(horus_metrics_get(metrics, &columns, &count, &error));
  CHECK(count == rows && rows > 0);
  horus_metrics_free(metrics);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

/* A handle that is not there is metered by nobody, and named as of any other call. */
static void CallsOfNoClusterAreRefused(void) {
  const horus_node node = two_gpu_node(1);
  const uint64_t one = 1;
  const uint32_t device = 0;
  horus_cluster* none = NULL;
  uint64_t ids[1] = {77};
  size_t count = 77;
  given_job given;
  give_job(&given, 1, 40, 2000);
#define REFUSED(call) CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "cluster: expected a pointer, found NULL", call)
  REFUSED(horus_cluster_add_node(none, &node, &error));
  REFUSED(horus_cluster_change_node(none, &node, &error));
  REFUSED(horus_cluster_remove_node(none, 1, &error));
  REFUSED(horus_cluster_set_state(none, 1, HORUS_WHOLE_NODE, HORUS_STATE_UP, 1, ids, &count, &error));
  REFUSED(horus_cluster_set_state(none, 1, 0, HORUS_STATE_UP, 1, ids, &count, &error));
  REFUSED(horus_cluster_adopt(none, &given.job, 1, &one, &device, NULL, NULL, &error));
  REFUSED(horus_cluster_apply(none, NULL, &error));
  REFUSED(horus_cluster_release(none, 1, &error));
#undef REFUSED
  CHECK(ids[0] == 77 && count == 77);
}

int main(void) {
  OptionsOfPlacers();
  EqualCataloguesAreTheSame();
  NoJobsArePlanned();
  ModesNeedWhatTheyAreGiven();
  PreemptionOverNodesSaysThatItIsNotExact();
  ColumnsOfAnswersMayBeLeftOut();
  CallsOfNoClusterAreRefused();
  return report();
}
