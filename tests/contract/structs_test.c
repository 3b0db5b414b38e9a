/* SPDX-License-Identifier: Apache-2.0 */
/* Size-prefixed structs of callers old, new and careless: one row per struct, the same rules for all. */
#include <stddef.h>

#include "fixture.h"

#define ROOM 4096 /* more than any struct, for the tails of newer callers */

static horus_cluster* cluster; /* one node with one resident job, id 1 */
static horus_placer* placer;
static horus_plan* plan; /* the one that put job 1 there */

static void set_up(void) {
  given_job given;
  give_job(&given, 1, 50, 4000);
  cluster = cluster_of(1);
  placer = placer_of("first-fit");
  plan = plan_one(placer, cluster, &given);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
}

static void tear_down(void) {
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

/* Inputs: each call takes a struct of the row's type and answers OK when it is valid. */

static horus_status take_gpu(const void* given, horus_error* error) {
  const horus_gpu* gpus[1];
  horus_catalogue* out = NULL;
  horus_status status;
  gpus[0] = given;
  status = horus_catalogue_extend(NULL, 1, gpus, &out, error);
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

static horus_status take_demand(const void* given, horus_error* error) {
  const horus_demand* demands[1];
  horus_interference* model = NULL;
  float slowdown[1];
  horus_status status;
  demands[0] = given;
  CHECK(horus_interference_create(NULL, &model, NULL) == HORUS_OK);
  status =
      slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_TIME_SLICE), 1, demands, slowdown, NULL, error);
  horus_interference_free(model);
  return status;
}

static horus_status take_device(const void* given, horus_error* error) {
  horus_interference* model = NULL;
  horus_status status;
  CHECK(horus_interference_create(NULL, &model, NULL) == HORUS_OK);
  status = slowdowns_of(model, NULL, given, 0, NULL, NULL, NULL, error);
  horus_interference_free(model);
  return status;
}

static horus_status take_load(const void* given, horus_error* error) {
  horus_latency latency = HORUS_LATENCY_INIT;
  return horus_latency_predict(given, &latency, error);
}

static horus_status take_node(const void* given, horus_error* error) {
  horus_cluster* fresh = NULL;
  horus_status status;
  CHECK(horus_cluster_create(NULL, &fresh, NULL) == HORUS_OK);
  status = horus_cluster_add_node(fresh, given, error);
  horus_cluster_free(fresh);
  return status;
}

static horus_status take_job(const void* given, horus_error* error) {
  const horus_job* jobs[1];
  horus_plan* out = NULL;
  horus_status status;
  jobs[0] = given;
  status = horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &out, error);
  horus_plan_free(out);
  return status;
}

static horus_status take_sensitivity(const void* given, horus_error* error) {
  given_job job;
  give_job(&job, 2, 50, 4000);
  job.job.sensitivity = given;
  return take_job(&job.job, error);
}

static horus_status take_alternative(const void* given, horus_error* error) {
  const horus_job_alternative* ways[1];
  given_job job;
  give_job(&job, 2, 50, 4000);
  ways[0] = given;
  job.job.demand_count = 0;
  job.job.demands = NULL;
  job.job.alternative_count = 1;
  job.job.alternatives = ways;
  return take_job(&job.job, error);
}

static horus_status take_workload(const void* given, horus_error* error) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* out = NULL;
  horus_status status;
  options.policy = "fgd";
  options.workload = given;
  status = horus_placer_create(&options, &out, error);
  horus_placer_free(out);
  return status;
}

static horus_status take_slots(const void* given, horus_error* error) {
  size_t count = 0;
  return horus_cluster_job_slots(cluster, 1, given, &count, error);
}

static horus_status take_effects(const void* given, horus_error* error) {
  size_t count = 0;
  return horus_plan_effects(plan, 0, given, &count, error);
}

static horus_status take_options(const void* given, horus_error* error) {
  horus_placer* out = NULL;
  const horus_status status = horus_placer_create(given, &out, error);
  horus_placer_free(out);
  return status;
}

typedef struct input_row {
  const char* name;
  horus_status (*take)(const void* given, horus_error* error);
  const void* valid;
  size_t size;
  size_t reserved_at; /* offset of a reserved field; 0 = none */
  size_t first;       /* size in the first release, where it has grown since; 0 = the same */
} input_row;

static void check_input(const input_row* row) {
  union {
    uint32_t struct_size;
    uint64_t align;
    unsigned char bytes[ROOM];
  } given;
  memset(&given, 0, sizeof given);
  memcpy(&given, row->valid, row->size);
  CHECK_OK(row->take(&given, &error));
  CHECK(row->take(&given, NULL) == HORUS_OK);

  given.struct_size = 0;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, row->name, row->take(&given, &error));
  given.struct_size = (uint32_t)(row->first != 0 ? row->first : row->size) - 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, row->name, row->take(&given, &error));
  given.struct_size = 0xFFFFFFF0u; /* not initialised */
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, row->name, row->take(&given, &error));

  given.struct_size = (uint32_t)row->size + 64; /* a newer caller that uses nothing new */
  CHECK_OK(row->take(&given, &error));
  given.bytes[row->size + 17] = 1; /* a newer caller that does: struct, offset and size are named */
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, row->name, row->take(&given, &error));
  {
    char offset[32];
    snprintf(offset, sizeof offset, "byte %u of %u", (unsigned)row->size + 17, (unsigned)row->size + 64);
    CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, offset, row->take(&given, &error));
  }
  given.bytes[row->size + 17] = 0;
  if (row->reserved_at != 0) {
    given.bytes[row->reserved_at] = 1;
    CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "reserved", row->take(&given, &error));
  }
}

static void check_inputs(void) {
  const horus_gpu gpu = complete_gpu();
  horus_mig_profile mig = HORUS_MIG_PROFILE_INIT;
  const horus_demand demand = HORUS_DEMAND_INIT;
  const horus_node node = two_gpu_node(9);
  const horus_slots no_columns = {sizeof(horus_slots), 0, 8, NULL, NULL, NULL};
  const horus_effects no_effects = {sizeof(horus_effects), 0, 8, NULL, NULL, NULL, NULL, NULL, NULL};
  const horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_request_load load = HORUS_REQUEST_LOAD_INIT;
  horus_sensitivity sensitivity = HORUS_SENSITIVITY_INIT;
  horus_job_alternative way = HORUS_JOB_ALTERNATIVE_INIT;
  horus_workload workload = HORUS_WORKLOAD_INIT;
  const int64_t points[1] = {1000};
  const float speeds[1] = {1};
  const int32_t gpus[1] = {1};
  const double shares[1] = {1};
  given_job given;
  size_t i;
  give_job(&given, 2, 50, 4000);
  sensitivity.cpu_count = sensitivity.mem_count = 1;
  sensitivity.cpu_milli = sensitivity.mem_mib = points;
  sensitivity.speeds = speeds;
  way.rate = 1;
  way.demand_count = 1;
  way.demands = given.demands;
  workload.task_count = 1;
  workload.gpus = gpus;
  workload.shares = shares;
  load.service_us = 1000;
  mig.name = "1g.5gb";
  mig.compute_slices = 1;
  mig.memory_slices = 1;
  mig.mem_mib = 4864;
  mig.max_instances = 7;
  {
    const input_row rows[] = {
        {"horus_gpu", take_gpu, &gpu, sizeof gpu, offsetof(horus_gpu, reserved), 0},
        {"horus_mig_profile", take_mig, &mig, sizeof mig, offsetof(horus_mig_profile, reserved), 0},
        {"horus_demand", take_demand, &demand, sizeof demand, 0, offsetof(horus_demand, host_us)},
        {"horus_device", take_device, device_of(FIXTURE_GPU, 0), sizeof(horus_device), 0, 0},
        {"horus_request_load", take_load, &load, sizeof load, offsetof(horus_request_load, reserved), 0},
        {"horus_node", take_node, &node, sizeof node, 0, offsetof(horus_node, device_ids)},
        {"horus_job", take_job, &given.job, sizeof given.job, 0, offsetof(horus_job, sm_cap_pct)},
        {"horus_sensitivity", take_sensitivity, &sensitivity, sizeof sensitivity, offsetof(horus_sensitivity, reserved),
         offsetof(horus_sensitivity, host_us)},
        {"horus_job_alternative", take_alternative, &way, sizeof way, 0, 0},
        {"horus_workload", take_workload, &workload, sizeof workload, offsetof(horus_workload, reserved), 0},
        {"horus_slots", take_slots, &no_columns, sizeof no_columns, offsetof(horus_slots, reserved), 0},
        {"horus_effects", take_effects, &no_effects, sizeof no_effects, offsetof(horus_effects, reserved), 0},
        {"horus_placer_options", take_options, &options, sizeof options, 0,
         offsetof(horus_placer_options, host_grants)},
    };
    for (i = 0; i < sizeof rows / sizeof *rows; ++i) check_input(&rows[i]);
  }
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, take_node(NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, take_job(NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, take_slots(NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, take_effects(NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, take_demand(NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, take_load(NULL, &error));
  CHECK_OK(take_options(NULL, &error)); /* optional */
}

/* Outputs: each call fills a struct of the row's type. */

static horus_status fill_gpu(void* out, horus_error* error) {
  horus_catalogue* catalogue = NULL;
  horus_status status;
  CHECK(horus_catalogue_default(&catalogue, NULL) == HORUS_OK);
  status = horus_catalogue_get(catalogue, 0, out, error);
  horus_catalogue_free(catalogue);
  return status;
}
static horus_status fill_library(void* out, horus_error* error) { return horus_library_get_info(out, error); }
static horus_status fill_model(void* out, horus_error* error) {
  horus_interference* model = NULL;
  horus_status status;
  CHECK(horus_interference_create(NULL, &model, NULL) == HORUS_OK);
  status = horus_interference_get_info(model, out, error);
  horus_interference_free(model);
  return status;
}
static horus_status fill_queue(void* out, horus_error* error) {
  horus_queue* queue = NULL;
  horus_status status;
  CHECK(horus_queue_create("fifo", NULL, &queue, NULL) == HORUS_OK);
  status = horus_queue_get_info(queue, out, error);
  horus_queue_free(queue);
  return status;
}
static horus_status fill_cluster(void* out, horus_error* error) { return horus_cluster_get_info(cluster, out, error); }
static horus_status fill_node(void* out, horus_error* error) {
  return horus_cluster_get_node(cluster, 1, out, 0, NULL, NULL, error);
}
static horus_status fill_device(void* out, horus_error* error) {
  return horus_cluster_get_device(cluster, 1, 0, out, 0, NULL, NULL, error);
}
static horus_status fill_job(void* out, horus_error* error) {
  return horus_cluster_get_job(cluster, 1, out, 0, NULL, NULL, error);
}
static horus_status fill_decision(void* out, horus_error* error) { return horus_plan_get(plan, 0, out, error); }

static horus_status fill_latency(void* out, horus_error* error) {
  horus_request_load load = HORUS_REQUEST_LOAD_INIT;
  load.service_us = 1000;
  return horus_latency_predict(&load, out, error);
}

typedef struct output_row {
  const char* name;
  horus_status (*fill)(void* out, horus_error* error);
  size_t size;
  size_t first; /* of the first release, where it has grown since; 0 = the same */
} output_row;

static void check_output(const output_row* row) {
  union {
    uint32_t struct_size;
    uint64_t align;
    unsigned char bytes[ROOM];
  } out, before;
  size_t i;
  memset(&before, 0xAB, sizeof before);

  before.struct_size = 0;
  out = before;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, row->name, row->fill(&out, &error));
  CHECK(memcmp(&out, &before, sizeof out) == 0);
  before.struct_size = (uint32_t)(row->first != 0 ? row->first : row->size) - 1;
  out = before;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, row->name, row->fill(&out, &error));
  CHECK(memcmp(&out, &before, sizeof out) == 0);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, row->fill(NULL, &error));

  before.struct_size = (uint32_t)row->size + 64; /* a newer caller: what we do not know stays */
  out = before;
  CHECK_OK(row->fill(&out, &error));
  CHECK(out.struct_size == before.struct_size);
  for (i = row->size; i < ROOM; ++i) CHECK(out.bytes[i] == 0xAB);
  CHECK(memcmp(&out, &before, row->size) != 0);
}

static void check_outputs(void) {
  const output_row rows[] = {
      {"horus_gpu", fill_gpu, sizeof(horus_gpu), 0},
      {"horus_library_info", fill_library, sizeof(horus_library_info), 0},
      {"horus_interference_info", fill_model, sizeof(horus_interference_info), 0},
      {"horus_queue_info", fill_queue, sizeof(horus_queue_info), 0},
      {"horus_cluster_info", fill_cluster, sizeof(horus_cluster_info), 0},
      {"horus_node_info", fill_node, sizeof(horus_node_info), 0},
      {"horus_device_info", fill_device, sizeof(horus_device_info), offsetof(horus_device_info, device_id)},
      {"horus_job_info", fill_job, sizeof(horus_job_info), offsetof(horus_job_info, job)},
      {"horus_decision", fill_decision, sizeof(horus_decision), offsetof(horus_decision, miss_estimate)},
      {"horus_latency", fill_latency, sizeof(horus_latency), 0},
  };
  size_t i;
  for (i = 0; i < sizeof rows / sizeof *rows; ++i) check_output(&rows[i]);
}

int main(void) {
  set_up();
  check_inputs();
  check_outputs();
  tear_down();
  return report();
}
