/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what every policy decides of one made-up stream of jobs, what every interference model predicts of random
 * tenants, and what made traces look like, each number to its last bit: equal text, equal decisions, on every
 * architecture. */
#include <horus/lab/lab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPES 4
#define JOBS 36
#define ROUND 6 /* jobs that are planned together */
#define NODES 6
#define DEVICES 4

static const char* const kTypes[TYPES] = {"k80", "t4", "v100-pcie-16gb", "a100-40gb"};

#define TRY(call)                                                                             \
  do {                                                                                        \
    horus_error error = HORUS_ERROR_INIT;                                                     \
    if ((call) != HORUS_OK) {                                                                 \
      fprintf(stderr, "%s: %s: %s\n", #call, horus_status_name(error.status), error.message); \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

/* SplitMix64 (Steele, Lea, Flood 2014): whole numbers alone, so equal everywhere. */
static uint64_t next(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int64_t between(uint64_t* state, int64_t low, int64_t high) {
  return low + (int64_t)(next(state) % (uint64_t)(high - low + 1));
}

/* What a job asks of each type; type 3 is the fastest. */
static void draw_demands(uint64_t* random, horus_demand demands[TYPES], const horus_demand* pointers[TYPES]) {
  const horus_demand none = HORUS_DEMAND_INIT;
  const int64_t mem_mib = between(random, 500, 9000), step_us = between(random, 2000, 400000);
  const int64_t busy = between(random, 5, 100), bandwidth = between(random, 0, 90);
  int type, trait;
  for (type = 0; type < TYPES; ++type) {
    horus_demand* demand = &demands[type];
    *demand = none;
    demand->gpu_util_pct = (float)busy;
    demand->mem_bw_util_pct = (float)bandwidth;
    demand->mem_mib = mem_mib;
    demand->mem_mib_upper = mem_mib + between(random, 0, 1500);
    demand->step_time_us = step_us * (4 - type) / 2;
    demand->gradient_mib = between(random, 0, 400);
    for (trait = 0; trait < (int)HORUS_TRAIT_COUNT; ++trait) demand->traits[trait] = (float)between(random, 0, 64) / 64;
    demand->power_w = (float)between(random, 40, 240);
    pointers[type] = demand;
  }
}

typedef struct drawn_job {
  horus_job job;
  horus_demand demands[TYPES];
  const horus_demand* pointers[TYPES];
} drawn_job;

static void draw_job(uint64_t* random, uint64_t id, drawn_job* drawn) {
  const horus_job none = HORUS_JOB_INIT;
  horus_job* job = &drawn->job;
  draw_demands(random, drawn->demands, drawn->pointers);
  *job = none;
  job->id = id;
  job->tasks = (int32_t)(between(random, 0, 5) == 0 ? between(random, 2, 4) : 1);
  job->gpus_per_task = (int32_t)(between(random, 0, 7) == 0 ? 2 : 1);
  job->gpu_milli = (int32_t)(job->gpus_per_task == 1 && between(random, 0, 3) == 0 ? between(random, 1, 10) * 100 : 0);
  job->exclusive = between(random, 0, 11) == 0;
  job->priority = (int32_t)between(random, 0, 2);
  job->submit_us = (int64_t)id * 1000;
  job->cpu_milli = between(random, 500, 6000);
  job->mem_mib = between(random, 1000, 30000);
  job->demand_count = TYPES;
  job->gpu_types = kTypes;
  job->demands = drawn->pointers;
}

static horus_cluster* make_cluster(void) {
  static const int32_t islands[DEVICES] = {0, 0, 1, 1};
  static const int node_types[NODES] = {0, 1, 1, 2, 2, 3};
  horus_cluster* cluster = NULL;
  int node, device;
  TRY(horus_cluster_create(NULL, &cluster, &error));
  for (node = 0; node < NODES; ++node) {
    horus_node spec = HORUS_NODE_INIT;
    const char* types[DEVICES];
    for (device = 0; device < DEVICES; ++device) types[device] = kTypes[node_types[node]];
    spec.id = (uint64_t)node + 1;
    spec.device_count = DEVICES;
    spec.gpu_types = types;
    spec.rack = (uint64_t)node / 3;
    spec.cpu_milli = 32000;
    spec.mem_mib = 128 * 1024;
    if (node_types[node] >= 2) spec.nvlink_islands = islands;
    TRY(horus_cluster_add_node(cluster, &spec, &error));
  }
  return cluster;
}

static void print_decision(const horus_plan* plan, size_t index) {
  horus_decision decision = HORUS_DECISION_INIT;
  horus_slots slots = HORUS_SLOTS_INIT;
  uint64_t nodes[64];
  uint32_t devices[64];
  size_t count = 0, i;
  TRY(horus_plan_get(plan, index, &decision, &error));
  printf("  %llu", (unsigned long long)decision.job_id);
  if (decision.verdict == HORUS_VERDICT_PLACE) {
    slots.capacity = 64;
    slots.node_ids = nodes;
    slots.devices = devices;
    TRY(horus_plan_slots(plan, HORUS_SLOTS_DECISION, index, &slots, &count, &error));
    for (i = 0; i < count; ++i) printf(" %llu.%u", (unsigned long long)nodes[i], devices[i]);
    printf(" cost %a slowdown %a at most %a\n", decision.cost, decision.slowdown, decision.slowdown_upper);
  } else {
    printf(" verdict %d reason %d miss %d at %llu.%d: %a of %a\n", decision.verdict, decision.reason,
           decision.miss_reason, (unsigned long long)decision.miss_node, (int)decision.miss_device,
           decision.miss_available, decision.miss_needed);
  }
}

static const char* name_of(const horus_interference* model) {
  horus_interference_info info = HORUS_INTERFERENCE_INFO_INIT;
  TRY(horus_interference_get_info(model, &info, &error));
  return info.name;
}

/* Rounds of planning and applying; after each the job that came first of those that are there leaves. */
static void print_policy(const char* policy, const horus_interference* model) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_cluster* cluster = make_cluster();
  horus_placer* placer = NULL;
  uint64_t random = 1;
  size_t round, i;
  options.policy = policy;
  options.interference = model;
  options.seed = 7;
  options.slowdown_bound = 2;
  TRY(horus_placer_create(&options, &placer, &error));
  printf("policy %s, interference %s\n", policy, model == NULL ? "default" : name_of(model));
  for (round = 0; round < JOBS / ROUND; ++round) {
    drawn_job drawn[ROUND];
    const horus_job* jobs[ROUND];
    horus_plan* plan = NULL;
    horus_plan_info info = HORUS_PLAN_INFO_INIT;
    horus_error refused = HORUS_ERROR_INIT;
    for (i = 0; i < ROUND; ++i) {
      draw_job(&random, round * ROUND + i + 1, &drawn[i]);
      jobs[i] = &drawn[i].job;
    }
    if (horus_placer_plan(placer, cluster, ROUND, jobs, 0, NULL, NULL, NULL, &plan, &refused) != HORUS_OK) {
      printf("  %s\n", horus_status_name(refused.status));
      continue;
    }
    TRY(horus_plan_get_info(plan, &info, &error));
    for (i = 0; i < info.decisions; ++i) print_decision(plan, i);
    TRY(horus_cluster_apply(cluster, plan, &error));
    horus_plan_free(plan);
    for (i = 1; i <= (round + 1) * ROUND && horus_cluster_release(cluster, i, NULL) != HORUS_OK; ++i) {
    }
  }
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void print_model(const horus_interference* model) {
  uint64_t random = 2;
  int row;
  printf("interference %s\n", name_of(model));
  for (row = 0; row < 24; ++row) {
    horus_demand demands[3][TYPES];
    const horus_demand *pointers[TYPES], *tenants[3];
    float slowdown[3], upper[3];
    horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
    horus_device device = HORUS_DEVICE_INIT;
    const size_t type = (size_t)row % TYPES, count = 2 + (size_t)row % 2;
    size_t i;
    for (i = 0; i < count; ++i) {
      draw_demands(&random, demands[i], pointers);
      tenants[i] = pointers[type];
    }
    device.gpu_type = kTypes[type];
    columns.slowdown = slowdown;
    columns.slowdown_upper = upper;
    TRY(horus_interference_slowdown(model, NULL, &device, count, tenants, 0, &columns, &error));
    printf(" ");
    for (i = 0; i < count; ++i) printf(" %a to %a", slowdown[i], upper[i]);
    printf("\n");
  }
}

static void print_trace(const char* preset) {
  horus_synthetic_options options = HORUS_SYNTHETIC_OPTIONS_INIT;
  horus_trace_summary summary = HORUS_TRACE_SUMMARY_INIT;
  horus_trace* trace = NULL;
  options.preset = preset;
  options.arrivals = HORUS_ARRIVALS_BURSTY;
  options.seed = 3;
  options.jobs = 1000;
  options.gap_scv_milli = 4000;
  options.mean_gap_us = 60000000;
  TRY(horus_trace_create_synthetic(&options, &trace, &error));
  TRY(horus_trace_get_summary(trace, &summary, &error));
  printf("trace %s: digest %llx, mean gap %a, gap scv %a, GPU time %a\n", preset, (unsigned long long)summary.digest,
         summary.mean_gap_us, summary.gap_scv, summary.gpu_us);
  horus_trace_free(trace);
}

int main(void) {
  static const char* const models[] = {"horus", "boosted", "iasp", "iapp", "utilisation"};
  horus_library_info library = HORUS_LIBRARY_INFO_INIT;
  size_t i;
  TRY(horus_library_get_info(&library, &error));
  for (i = 0; library.policies[i] != NULL; ++i) {
    /* The one that needs a linear program's solver, which not every build has. */
    if (strcmp(library.policies[i], "synergy-opt") != 0) print_policy(library.policies[i], NULL);
  }
  for (i = 0; i < sizeof models / sizeof models[0]; ++i) {
    horus_interference* model = NULL;
    TRY(horus_interference_create(models[i], &model, &error));
    print_model(model);
    print_policy("horus", model);
    horus_interference_free(model);
  }
  print_trace("philly");
  print_trace("horus2020");
  return 0;
}
