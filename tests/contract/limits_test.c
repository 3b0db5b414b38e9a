/* SPDX-License-Identifier: Apache-2.0 */
/* Counts beyond what the headers and tests/fuzz/README.md allow: each is refused by name before anything is read. */
#include "fixture.h"

/* Far above every limit of a count, and below where its product with a size would overflow. */
#define TOO_MANY ((size_t)100 * 1000 * 1000)

static void OfAJob(void) {
  horus_cluster* cluster = cluster_of(1);
  const char* names[300];
  const uint64_t node = 1;
  const uint32_t device = 0;
  const horus_job_alternative* const ways[1] = {NULL};
  given_job given;
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; ++i) names[i] = "g";
#define ADOPT(slots) horus_cluster_adopt(cluster, &given.job, slots, &node, &device, NULL, NULL, &error)
  give_job(&given, 1, 50, 4000);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "slot_count: expected at most 65536", ADOPT(TOO_MANY));
  given.job.group_count = TOO_MANY;
  given.job.groups = names;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "groups: expected at most 64", ADOPT(1));
  give_job(&given, 1, 50, 4000);
  given.job.avoid_count = 65;
  given.job.avoid_groups = names;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "avoid_groups: expected at most 64", ADOPT(1));
  give_job(&given, 1, 50, 4000);
  given.job.alternative_count = TOO_MANY;
  given.job.alternatives = ways;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "alternatives: expected at most 64", ADOPT(1));
  give_job(&given, 1, 50, 4000);
  given.job.selector_count = 257;
  given.job.selector_keys = given.job.selector_values = names;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "at most 256", ADOPT(1));
  horus_cluster_free(cluster);
}

static int32_t at_no_cost(void* user, const horus_policy_candidate* candidate, double* cost, int32_t* declined) {
  (void)user, (void)candidate, (void)declined;
  *cost = 0;
  return 0;
}

static void OfAPlacer(void) {
  static char name[2000];
  const double shares[1] = {1};
  const int32_t gpus[1] = {1};
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_workload workload = HORUS_WORKLOAD_INIT;
  horus_placer* placer = NULL;
  options.workload = &workload;
  workload.task_count = TOO_MANY;
  workload.gpus = gpus;
  workload.shares = shares;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "task_count: expected at most 4096",
                horus_placer_create(&options, &placer, &error));
  options.workload = NULL;
  options.gpu_price = -1; /* none */
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  {
    horus_cluster* cluster = cluster_of(1);
    const horus_change* const changes[1] = {NULL};
    horus_plan* plan = NULL;
    CHECK_MESSAGE(HORUS_ERR_LIMIT, "changes: expected at most 1048576",
                  horus_placer_what_if(placer, cluster, TOO_MANY, changes, 0, NULL, NULL, NULL, &plan, &error));
    CHECK(plan == NULL);
    horus_cluster_free(cluster);
  }
  horus_placer_free(placer);
  placer = NULL;
  memset(name, 'n', sizeof name - 1);
  options.policy_callback = at_no_cost;
  options.policy_callback_name = name;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "policy_callback_name: expected at most 1024 bytes, found 1999",
                horus_placer_create(&options, &placer, &error));
  CHECK(placer == NULL);
}

static void OfTheCatalogue(void) {
  const horus_mig_profile* const profiles[1] = {NULL};
  horus_gpu gpu = HORUS_GPU_INIT;
  const horus_gpu* const gpus[1] = {&gpu};
  horus_catalogue* out = NULL;
  gpu.name = "many";
  gpu.mig_count = TOO_MANY;
  gpu.mig_profiles = profiles;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "mig_count, alias_count: expected at most 32 and 32",
                horus_catalogue_extend(NULL, 1, gpus, &out, &error));
  CHECK(out == NULL);
}

static void OfATrace(void) {
  const char* const profiles[1] = {"p"};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  horus_trace* trace = NULL;
  columns.profile_count = TOO_MANY;
  columns.profile_names = profiles;
  CHECK_MESSAGE(HORUS_ERR_LIMIT, "profile_names: expected at most 4000000",
                horus_trace_create(&columns, &trace, &error));
  CHECK(trace == NULL);
}

static void OfMeasuredPairs(void) {
  const char* const texts[1] = {FIXTURE_GPU};
  horus_pair_data data = HORUS_PAIR_DATA_INIT;
  horus_interference* model = NULL;
  data.device_count = data.job_count = TOO_MANY;
  data.gpu_types = data.families = texts;
  {
    horus_error error = HORUS_ERROR_INIT;
    const horus_status status = horus_interference_fit(NULL, &data, NULL, NULL, NULL, &model, &error);
    CHECK(
        status == HORUS_ERR_UNSUPPORTED || /* a build without graphs trains nothing */
        (status == HORUS_ERR_LIMIT && strstr(error.message, "at most 64 devices, 2048 jobs and 200000 runs") != NULL));
  }
  CHECK(model == NULL);
}

int main(void) {
  OfAJob();
  OfAPlacer();
  OfTheCatalogue();
  OfATrace();
  OfMeasuredPairs();
  return report();
}
