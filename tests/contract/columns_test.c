/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and texts of what is placed: one that is missing, or no UTF-8, is refused by its name and changes nothing. */
#include "fields.h"
#include "fixture.h"

static const char* const kNames[2] = {"one", "two"};
static const int64_t kAmounts[2] = {1, 2};

static horus_status take_gpu(const void* given, horus_error* error) {
  const horus_gpu* gpus[1];
  horus_catalogue* out = NULL;
  horus_status status;
  gpus[0] = given;
  status = horus_catalogue_extend(NULL, 1, gpus, &out, error);
  CHECK((out != NULL) == (status == HORUS_OK));
  horus_catalogue_free(out);
  return status;
}

static horus_status take_mig(const void* given, horus_error* error) {
  const horus_mig_profile* profiles[1];
  horus_gpu gpu = complete_gpu();
  profiles[0] = given;
  gpu.mig_count = 1;
  gpu.mig_profiles = profiles;
  return take_gpu(&gpu, error);
}

static void OfGpus(void) {
  static const field fields[] = {
      FIELD(horus_gpu, FIELD_TEXT, display_name), FIELD(horus_gpu, FIELD_TEXT, architecture),
      FIELD(horus_gpu, FIELD_TEXT, source),       FIELD(horus_gpu, FIELD_COLUMN, name),
      FIELD(horus_gpu, FIELD_TEXT, name),         FIELD(horus_gpu, FIELD_COLUMN, mig_profiles),
      FIELD(horus_gpu, FIELD_TEXTS, aliases)};
  static const field of_mig[] = {FIELD(horus_mig_profile, FIELD_COLUMN, name),
                                 FIELD(horus_mig_profile, FIELD_TEXT, name)};
  const char* aliases[33];
  horus_mig_profile mig = HORUS_MIG_PROFILE_INIT;
  const horus_mig_profile* profiles[1];
  horus_gpu gpu = complete_gpu();
  size_t i;
  mig.name = "1g.5gb";
  mig.compute_slices = mig.memory_slices = mig.max_instances = 1;
  mig.mem_mib = 4096;
  profiles[0] = &mig;
  gpu.mig_count = 1;
  gpu.mig_profiles = profiles;
  gpu.alias_count = 2;
  gpu.aliases = kNames;
  CHECK_FIELDS(take_gpu, &gpu, fields, 2);
  CHECK_FIELDS(take_mig, &mig, of_mig, 1);
  for (i = 0; i < 33; ++i) aliases[i] = "alias";
  gpu.alias_count = 33;
  gpu.aliases = aliases;
  check_refused(take_gpu, &gpu, "mig_count, alias_count", "expected at most 32 and 32, found 1 and 33");
}

static horus_cluster* cluster; /* one node, whose state a refused call must leave */

static horus_status take_node(const void* given, horus_error* error) {
  const uint64_t before = state_hash(cluster);
  const horus_status status = horus_cluster_add_node(cluster, given, error);
  CHECK((state_hash(cluster) == before) == (status != HORUS_OK));
  if (status == HORUS_OK) CHECK(horus_cluster_remove_node(cluster, ((const horus_node*)given)->id, NULL) == HORUS_OK);
  return status;
}

static void OfNodes(void) {
  static const field fields[] = {FIELD(horus_node, FIELD_TEXT, name), FIELD(horus_node, FIELD_TEXTS, gpu_types),
                                 FIELD(horus_node, FIELD_NAMES, mig_profiles),
                                 FIELD(horus_node, FIELD_TEXTS, label_keys),
                                 FIELD(horus_node, FIELD_TEXTS, label_values)};
  static const int32_t wide[2] = {0, 32768}, below[2] = {0, -2};
  horus_node node = two_gpu_node(7);
  const int32_t** const columns[] = {&node.physical_gpus, &node.nvlink_islands, &node.pcie_switches, &node.sockets};
  static const char* const names[] = {"physical_gpus[1]", "nvlink_islands[1]", "pcie_switches[1]", "sockets[1]"};
  size_t i;
  node.label_count = 2;
  node.label_keys = node.label_values = kNames;
  CHECK_FIELDS(take_node, &node, fields, 2);
  for (i = 0; i < 4; ++i) {
    *columns[i] = wide;
    check_refused(take_node, &node, names[i], "to 32767, found 32768");
    *columns[i] = below;
    check_refused(take_node, &node, names[i], "found -2");
    *columns[i] = NULL;
  }
  CHECK_OK(take_node(&node, &error));
}

static horus_status take_job(const void* given, horus_error* error) {
  static const uint64_t nodes[2] = {1, 1};
  static const uint32_t devices[1] = {0};
  const uint64_t before = state_hash(cluster);
  const horus_status status = horus_cluster_adopt(cluster, given, 1, nodes, devices, NULL, NULL, error);
  CHECK((state_hash(cluster) == before) == (status != HORUS_OK));
  if (status == HORUS_OK) CHECK(horus_cluster_release(cluster, ((const horus_job*)given)->id, NULL) == HORUS_OK);
  return status;
}

static given_job job_of_all; /* whose sensitivity take_matrix sets */

static horus_status take_matrix(const void* given, horus_error* error) {
  job_of_all.job.sensitivity = given;
  return take_job(&job_of_all.job, error);
}

static void OfJobs(void) {
  static const field fields[] = {
      FIELD(horus_job, FIELD_TEXT, name),           FIELD(horus_job, FIELD_TEXT, tenant),
      FIELD(horus_job, FIELD_TEXTS, selector_keys), FIELD(horus_job, FIELD_TEXTS, selector_values),
      FIELD(horus_job, FIELD_TEXTS, groups),        FIELD(horus_job, FIELD_TEXTS, avoid_groups),
      FIELD(horus_job, FIELD_COLUMN, demands)};
  static const field of_matrix[] = {FIELD(horus_sensitivity, FIELD_COLUMN, cpu_milli),
                                    FIELD(horus_sensitivity, FIELD_COLUMN, mem_mib),
                                    FIELD(horus_sensitivity, FIELD_COLUMN, speeds)};
  static const char* const others[2] = {"three", "four"};
  static const float speeds[2] = {1, 2};
  static const struct {
    const char* name;
    size_t offset;
    int32_t value;
  } codes[] = {
      {"kind", offsetof(horus_job, kind), -1},          {"kind", offsetof(horus_job, kind), 3},
      {"exclusive", offsetof(horus_job, exclusive), 2}, {"spread_tasks", offsetof(horus_job, spread_tasks), -1},
      {"share", offsetof(horus_job, share), 3},         {"share", offsetof(horus_job, share), -1}};
  horus_sensitivity matrix = HORUS_SENSITIVITY_INIT;
  horus_job job;
  size_t i;
  give_job(&job_of_all, 5, 40, 2000);
  job = job_of_all.job;
  job.group_count = job.avoid_count = 2;
  job.groups = kNames;
  job.avoid_groups = others;
  job.selector_count = 2;
  job.selector_keys = job.selector_values = kNames;
  CHECK_FIELDS(take_job, &job, fields, 2);
  for (i = 0; i < sizeof codes / sizeof *codes; ++i) {
    int32_t kept;
    memcpy(&kept, (char*)&job + codes[i].offset, sizeof kept);
    memcpy((char*)&job + codes[i].offset, &codes[i].value, sizeof kept);
    check_refused(take_job, &job, codes[i].name, "found ");
    memcpy((char*)&job + codes[i].offset, &kept, sizeof kept);
  }
  matrix.cpu_count = 1;
  matrix.cpu_milli = kAmounts;
  matrix.mem_count = 2;
  matrix.mem_mib = kAmounts;
  matrix.speeds = speeds;
  CHECK_FIELDS(take_matrix, &matrix, of_matrix, 1);
  matrix.cpu_count = 257;
  check_refused(take_matrix, &matrix, "sensitivity: cpu_count", "expected 1 to 256, found 257");
  matrix.cpu_count = 1;
  matrix.mem_count = 0;
  check_refused(take_matrix, &matrix, "sensitivity: mem_count", "expected 1 to 256, found 0");
}

static horus_status take_placer_options(const void* given, horus_error* error) {
  horus_placer* placer = NULL;
  const horus_status status = horus_placer_create(given, &placer, error);
  CHECK((placer != NULL) == (status == HORUS_OK));
  horus_placer_free(placer);
  return status;
}

static horus_status take_workload(const void* given, horus_error* error) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  options.workload = given;
  return take_placer_options(&options, error);
}

static horus_status take_lab_options(const void* given, horus_error* error) {
  horus_placer* placer = NULL;
  const horus_status status = horus_lab_placer_create(NULL, given, &placer, error);
  CHECK((placer != NULL) == (status == HORUS_OK));
  horus_placer_free(placer);
  return status;
}

static void OfPlacers(void) {
  static const field of_lab[] = {FIELD(horus_lab_policy_options, FIELD_TEXT, profiling_label)};
  static const field fields[] = {FIELD(horus_placer_options, FIELD_TEXT, policy)};
  static const field of_tasks[] = {FIELD(horus_workload, FIELD_COLUMN, gpus),
                                   FIELD(horus_workload, FIELD_COLUMN, shares),
                                   FIELD(horus_workload, FIELD_NAMES, gpu_types)};
  static const field of_jobs[] = {FIELD(horus_workload, FIELD_COLUMN, jobs)};
  static const double shares[2] = {0.5, 0.5};
  static const int32_t gpus[2] = {1, 2};
  const char* const unknown[2] = {"no-such-gpu", FIXTURE_GPU};
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_lab_policy_options lab = HORUS_LAB_POLICY_OPTIONS_INIT;
  horus_workload tasks = HORUS_WORKLOAD_INIT, jobs = HORUS_WORKLOAD_INIT;
  const horus_job* seen[1];
  given_job one;
  CHECK_FIELDS(take_placer_options, &options, fields, 1);
  CHECK_FIELDS(take_lab_options, &lab, of_lab, 1);
  tasks.task_count = 2;
  tasks.gpus = gpus;
  tasks.shares = shares;
  CHECK_FIELDS(take_workload, &tasks, of_tasks, 2);
  tasks.gpu_types = unknown;
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "no-such-gpu", take_workload(&tasks, &error));
  give_job(&one, 1, 40, 2000);
  seen[0] = &one.job;
  jobs.job_count = 1;
  jobs.jobs = seen;
  CHECK_FIELDS(take_workload, &jobs, of_jobs, 1);
  one.job.tasks = -1;
  check_refused(take_workload, &jobs, "tasks", "found -1");
}

static horus_status take_table(const void* given, horus_error* error) {
  horus_interference* model = NULL;
  const horus_status status = horus_interference_from_table(NULL, given, NULL, &model, error);
  CHECK((model != NULL) == (status == HORUS_OK));
  horus_interference_free(model);
  return status;
}

static void OfMeasuredPairs(void) {
  static const field fields[] = {
      FIELD(horus_pair_table, FIELD_TEXTS, gpu_types), FIELD(horus_pair_table, FIELD_COLUMN, profiles_a),
      FIELD(horus_pair_table, FIELD_COLUMN, profiles_b), FIELD(horus_pair_table, FIELD_COLUMN, slowdown_a),
      FIELD(horus_pair_table, FIELD_COLUMN, slowdown_b)};
  static const uint64_t a[2] = {1, 2}, b[2] = {3, 4};
  static const double slowdown[2] = {1.5, 1.25};
  static const int32_t modes[2] = {HORUS_SHARING_MPS, 0}, beyond[2] = {0, 9};
  horus_pair_table table = HORUS_PAIR_TABLE_INIT;
  table.count = 2;
  table.gpu_types = kTwoGpus;
  table.profiles_a = a;
  table.profiles_b = b;
  table.slowdown_a = table.slowdown_b = slowdown;
  CHECK_FIELDS(take_table, &table, fields, 2);
  CHECK_STRUCT(take_table, &table, horus_pair_table);
  check_refused(take_table, NULL, "horus_pair_table", "found NULL");
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "out", horus_interference_from_table(NULL, &table, NULL, NULL, &error));
  table.sharing_modes = modes;
  CHECK_OK(take_table(&table, &error));
  table.sharing_modes = beyond;
  check_refused(take_table, &table, "row[1]", "found 9");
}

static horus_status take_observation(const void* given, horus_error* error) {
  horus_observations* observations = NULL;
  horus_status status;
  uint64_t before;
  CHECK(horus_observations_create(0, &observations, NULL) == HORUS_OK);
  before = horus_observations_bytes_held(observations);
  status = horus_observations_add_slowdown(observations, NULL, given, error);
  CHECK((horus_observations_bytes_held(observations) == before) == (status != HORUS_OK));
  horus_observations_free(observations);
  return status;
}

static void OfObservations(void) {
  static const field fields[] = {FIELD(horus_slowdown_observation, FIELD_COLUMN, gpu_type),
                                 FIELD(horus_slowdown_observation, FIELD_TEXT, gpu_type),
                                 FIELD(horus_slowdown_observation, FIELD_COLUMN, job),
                                 {"demands", offsetof(horus_slowdown_observation, co_tenants), FIELD_COLUMN}};
  horus_slowdown_observation observation = HORUS_SLOWDOWN_OBSERVATION_INIT;
  given_job job, other;
  const horus_demand* others[1];
  give_job(&job, 1, 40, 2000);
  give_job(&other, 2, 40, 2000);
  job.demand.profile_id = 5;
  other.demand.profile_id = 6;
  others[0] = &other.demand;
  observation.gpu_type = FIXTURE_GPU;
  observation.job = &job.demand;
  observation.co_tenant_count = 1;
  observation.co_tenants = others;
  observation.slowdown = 1.5;
  CHECK_FIELDS(take_observation, &observation, fields, 1);
  observation.sharing_mode = 9;
  check_refused(take_observation, &observation, "expected", "found 9");
}

int main(void) {
  cluster = cluster_of(1);
  {
    horus_node labelled = two_gpu_node(1);
    labelled.label_count = 2;
    labelled.label_keys = labelled.label_values = kNames;
    CHECK_OK(horus_cluster_change_node(cluster, &labelled, &error));
  }
  OfGpus();
  OfNodes();
  OfJobs();
  OfPlacers();
  OfMeasuredPairs();
  OfObservations();
  horus_cluster_free(cluster);
  return report();
}
