/* SPDX-License-Identifier: Apache-2.0 */
/* What most contract tests start from: nodes of two V100s, and jobs with stated demands. */
#ifndef HORUS_TESTS_CONTRACT_FIXTURE_H_
#define HORUS_TESTS_CONTRACT_FIXTURE_H_

#include "check.h"

#define FIXTURE_GPU "v100-pcie-16gb"

static const char* const kTwoGpus[2] = {FIXTURE_GPU, FIXTURE_GPU};

static inline horus_node two_gpu_node(uint64_t id) {
  horus_node node = HORUS_NODE_INIT;
  node.id = id;
  node.device_count = 2;
  node.cpu_milli = 64000;
  node.mem_mib = 256 * 1024;
  node.gpu_types = kTwoGpus;
  return node;
}

/* A type that a catalogue takes in. */
static inline horus_gpu complete_gpu(void) {
  horus_gpu gpu = HORUS_GPU_INIT;
  gpu.name = "test-gpu";
  gpu.compute_capability = 80;
  gpu.sm_count = 100;
  gpu.boost_clock_mhz = 1500;
  gpu.fp32_gflops = 20000;
  gpu.fp16_gflops = 100000;
  gpu.mem_mib = 40960;
  gpu.mem_bandwidth_mb_s = 1500000;
  gpu.l2_kib = 40960;
  gpu.pcie_mb_s = 31508;
  gpu.tdp_w = 300;
  return gpu;
}

/* Good until the next call. */
static inline const horus_device* device_of(const char* gpu_type, int32_t sharing_mode) {
  static horus_device device;
  const horus_device none = HORUS_DEVICE_INIT;
  device = none;
  device.gpu_type = gpu_type;
  device.sharing_mode = sharing_mode;
  return &device;
}

static inline horus_cluster* cluster_of(uint64_t nodes) {
  horus_cluster* cluster = NULL;
  CHECK_OK(horus_cluster_create(NULL, &cluster, &error));
  for (uint64_t id = 1; id <= nodes; ++id) {
    const horus_node node = two_gpu_node(id);
    CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  }
  return cluster;
}

/* A demand and the job that points to it; keep both where they are while the job is in use. */
typedef struct given_job {
  horus_demand demand;
  const horus_demand* demands[1];
  horus_job job;
} given_job;

static inline void give_job(given_job* given, uint64_t id, float gpu_util_pct, int64_t mem_mib) {
  const horus_demand demand = HORUS_DEMAND_INIT;
  const horus_job job = HORUS_JOB_INIT;
  given->demand = demand;
  given->demand.flags = HORUS_DEMAND_GIVEN;
  given->demand.gpu_util_pct = gpu_util_pct;
  given->demand.mem_mib = mem_mib;
  given->demand.step_time_us = 100000;
  given->demands[0] = &given->demand;
  given->job = job;
  given->job.id = id;
  given->job.cpu_milli = 1000;
  given->job.mem_mib = 1024;
  given->job.demand_count = 1;
  given->job.demands = given->demands;
}

/* With the utilisation proxy, whose answers for stated demands are known by heart. */
static inline horus_placer* placer_of(const char* policy) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_interference* model = NULL;
  horus_placer* placer = NULL;
  CHECK_OK(horus_interference_create("utilisation", &model, &error));
  options.policy = policy;
  options.interference = model;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  horus_interference_free(model);
  return placer;
}

/* Plans one job over all nodes. */
static inline horus_plan* plan_one(horus_placer* placer, const horus_cluster* cluster, const given_job* given) {
  const horus_job* jobs[1];
  horus_plan* plan = NULL;
  jobs[0] = &given->job;
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  return plan;
}

static inline horus_decision decision_of(const horus_plan* plan, size_t index) {
  horus_decision decision = HORUS_DECISION_INIT;
  CHECK_OK(horus_plan_get(plan, index, &decision, &error));
  return decision;
}

static inline horus_plan_info info_of(const horus_plan* plan) {
  horus_plan_info info = HORUS_PLAN_INFO_INIT;
  CHECK_OK(horus_plan_get_info(plan, &info, &error));
  return info;
}

static inline size_t decisions_of(const horus_plan* plan) { return (size_t)info_of(plan).decisions; }

static inline horus_library_info library_info(void) {
  horus_library_info info = HORUS_LIBRARY_INFO_INIT;
  CHECK_OK(horus_library_get_info(&info, &error));
  return info;
}

/* Expected and upper slowdowns, the latter with the model's own probability; NULL = not wanted. */
static inline horus_status slowdowns_of(const horus_interference* model, const horus_catalogue* catalogue,
                                        const horus_device* device, size_t count, const horus_demand* const* demands,
                                        float* slowdown, float* upper, horus_error* out) {
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  columns.slowdown = slowdown;
  columns.slowdown_upper = upper;
  return horus_interference_slowdown(model, catalogue, device, count, demands, 0, &columns, out);
}

static inline uint64_t state_hash(const horus_cluster* cluster) {
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  CHECK_OK(horus_cluster_get_info(cluster, &info, &error));
  return info.state_hash;
}

/* The value of a metric, -1 where there is none. */
static inline double value_of(const horus_metrics* metrics, const char* name, const char* labels) {
  const char *names[1000], *found[1000];
  double values[1000], value = -1;
  int32_t kinds[1000];
  horus_metric_columns columns = HORUS_METRIC_COLUMNS_INIT;
  size_t count = 0, i;
  columns.capacity = 1000;
  columns.names = names;
  columns.labels = found;
  columns.kinds = kinds;
  columns.values = values;
  CHECK_OK(horus_metrics_get(metrics, &columns, &count, &error));
  for (i = 0; i < count; ++i) {
    if (strcmp(names[i], name) == 0 && strcmp(found[i], labels) == 0) value = values[i];
  }
  return value;
}

#endif /* HORUS_TESTS_CONTRACT_FIXTURE_H_ */
