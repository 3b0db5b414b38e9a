/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of horus/files.h, with the reader of files (HORUS_WITH_FILES) and without it, which UNSUPPORTED tells. */
#include "fixture.h"

static const char kCluster[] =
    "version: 1\n"
    "nodes:\n"
    "  - {name: n, count: 2, cpu_cores: 16, memory_gib: 64, gpus: [{type: t4, count: 2}]}\n"
    "residents:\n"
    "  - {id: 9, name: r, demand: {any: {gpu_util_pct: 20, gpu_memory_gib: 1}}, on: [{node: n-000, gpu: 1}]}\n";
static const char kJobs[] =
    "version: 1\n"
    "jobs:\n"
    "  - {name: a, gpus: 2, demand: {t4: {gpu_util_pct: 50, gpu_memory_gib: 2}}, groups: [g], node_selector: {zone: "
    "e}}\n"
    "  - {name: b, kind: best-effort, tasks: 2, cpu_cores: 2.5, demand: {any: {gpu_util_pct: [10, 30], gpu_memory_gib: "
    "1}}}\n";

static void WithoutTheReaderEverythingIsUnsupported(void) {
  horus_cluster *empty = NULL, *cluster = NULL;
  horus_job_list* list = NULL;
  horus_trace* trace = NULL;
  CHECK_OK(horus_cluster_create(NULL, &empty, &error));
  CHECK_MESSAGE(HORUS_ERR_UNSUPPORTED, "HORUS_WITH_FILES",
                horus_cluster_from_yaml(NULL, NULL, "c.yaml", kCluster, NULL, &cluster, &error));
  CHECK_STATUS(HORUS_ERR_UNSUPPORTED, horus_job_list_from_yaml(empty, NULL, "j.yaml", kJobs, &list, &error));
  CHECK_STATUS(HORUS_ERR_UNSUPPORTED, horus_trace_from_file("t.csv", NULL, &trace, &error));
  CHECK(cluster == NULL && list == NULL && trace == NULL);
  horus_cluster_free(empty);
}

static void JobsCrossWhole(const horus_cluster* cluster) {
  horus_job_list* list = NULL;
  horus_job job = HORUS_JOB_INIT;
  CHECK_OK(horus_job_list_from_yaml(cluster, NULL, "j.yaml", kJobs, &list, &error));
  CHECK(horus_job_list_count(list) == 2 && horus_job_list_bytes_held(list) > 2 * sizeof(horus_job));
  CHECK_OK(horus_job_list_get(list, 0, &job, &error));
  CHECK(job.id == 1 && strcmp(job.name, "a") == 0 && job.gpus_per_task == 2 && job.demand_count == 1);
  CHECK(strcmp(job.gpu_types[0], "t4") == 0 && job.demands[0]->mem_mib == 2048 && job.demands[0]->gpu_util_pct == 50);
  CHECK(job.group_count == 1 && strcmp(job.groups[0], "g") == 0);
  CHECK(job.selector_count == 1 && strcmp(job.selector_values[0], "e") == 0);
  CHECK_OK(horus_job_list_get(list, 1, &job, &error));
  CHECK(job.kind == HORUS_JOB_BEST_EFFORT && job.tasks == 2 && job.cpu_milli == 2500 && job.gpu_types[0] == NULL);
  CHECK(job.demands[0]->gpu_util_pct == 10 && job.demands[0]->gpu_util_pct_upper == 30);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_job_list_get(list, 2, &job, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_job_list_get(NULL, 0, &job, &error));
  job.struct_size = 4;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_job_list_get(list, 0, &job, &error));
  horus_job_list_free(list);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "j.yaml:3",
                horus_job_list_from_yaml(cluster, NULL, "j.yaml",
                                         "version: 1\njobs:\n  - {id: 9, demand: {any: {gpu_util_pct: 1, "
                                         "gpu_memory_gib: 1}}}\n",
                                         &list, &error)); /* that of the resident */
}

static void AClusterAsTheCommandReadsIt(void) {
  horus_cluster* cluster = NULL;
  horus_catalogue* types = NULL;
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  CHECK_OK(horus_cluster_from_yaml(NULL, NULL, "c.yaml", kCluster, &types, &cluster, &error));
  CHECK_OK(horus_cluster_get_info(cluster, &info, &error));
  CHECK(info.nodes == 2 && info.devices == 4 && info.jobs == 1 && info.devices_used == 1);
  CHECK(horus_catalogue_count(types) > 0);
  JobsCrossWhole(cluster);
  horus_catalogue_free(types);
  horus_cluster_free(cluster);
}

static void ErrorsNameFileLineAndKeyAndLeaveOutputsAlone(void) {
  horus_cluster* cluster = NULL;
  horus_job_list* list = NULL;
  horus_trace* trace = NULL;
  CHECK_MESSAGE(
      HORUS_ERR_INVALID_ARGUMENT, "c.yaml:2: nodes[0].gpus[0].type",
      horus_cluster_from_yaml(NULL, NULL, "c.yaml",
                              "version: 1\nnodes: [{name: n, cpu_cores: 1, memory_gib: 1, gpus: [{type: t5}]}]", NULL,
                              &cluster, &error));
  CHECK_STATUS(HORUS_ERR_IO, horus_cluster_from_yaml(NULL, NULL, "/nowhere/c.yaml", NULL, NULL, &cluster, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_from_yaml(NULL, NULL, NULL, kCluster, NULL, &cluster, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_job_list_from_yaml(NULL, NULL, "j.yaml", kJobs, &list, &error));
  CHECK_STATUS(HORUS_ERR_IO, horus_trace_from_file("/nowhere/t.csv", NULL, &trace, &error));
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "nonsense", horus_trace_from_file("t.csv", "nonsense", &trace, &error));
  CHECK(cluster == NULL && list == NULL && trace == NULL);
}

static void ATraceIsReadFromItsFile(void) {
  static const char path[] = "files_test.csv";
  horus_trace* trace = NULL;
  horus_trace_summary summary = HORUS_TRACE_SUMMARY_INIT;
  FILE* file = fopen(path, "w");
  CHECK(file != NULL && fputs("submit_us,duration_us,profile\n0,5,a\n3,7,b\n", file) >= 0 && fclose(file) == 0);
  CHECK_OK(horus_trace_from_file(path, "plain", &trace, &error));
  CHECK_OK(horus_trace_get_summary(trace, &summary, &error));
  CHECK(summary.jobs == 2);
  horus_trace_free(trace);
  trace = NULL;
  CHECK_OK(horus_trace_from_file(path, NULL, &trace, &error)); /* known by its header */
  horus_trace_free(trace);
  CHECK(remove(path) == 0);
}

static void write_file(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void AJobListIsReadFromItsFile(void) {
  static const char path[] = "files_test.yaml";
  static const char ways[] =
      "version: 1\njobs:\n"
      "  - {name: a, alternatives: [{rate: 1, demand: {t4: {gpu_util_pct: 50, gpu_memory_gib: 2}}},\n"
      "      {gpus: 2, rate: 1.8, demand: {t4: {gpu_util_pct: 40, gpu_memory_gib: 2}}}]}\n";
  horus_cluster* cluster = NULL;
  horus_job_list *list = NULL, *given = NULL;
  horus_job job = HORUS_JOB_INIT;
  CHECK_OK(horus_cluster_from_yaml(NULL, NULL, "c.yaml", kCluster, NULL, &cluster, &error));
  write_file(path, ways);
  CHECK_OK(horus_job_list_from_yaml(cluster, NULL, path, NULL, &list, &error));
  CHECK_OK(horus_job_list_from_yaml(cluster, NULL, path, ways, &given, &error));
  CHECK(horus_job_list_count(list) == 1 && horus_job_list_bytes_held(list) == horus_job_list_bytes_held(given));
  CHECK_OK(horus_job_list_get(list, 0, &job, &error));
  CHECK(job.alternative_count == 2 && job.alternatives[1]->gpus_per_task == 2 && job.alternatives[1]->rate == 1.8);
  CHECK(job.alternatives[0]->demands[0]->gpu_util_pct == 50);
  horus_job_list_free(list);
  horus_job_list_free(given);
  list = NULL;
  CHECK(remove(path) == 0);
  CHECK_STATUS(HORUS_ERR_IO, horus_job_list_from_yaml(cluster, NULL, path, NULL, &list, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "j.yaml:2",
                horus_job_list_from_yaml(cluster, NULL, "j.yaml", "version: 1\njobs: 7\n", &list, &error));
  CHECK(list == NULL);
  horus_cluster_free(cluster);
}

static void WhatIsNotGivenIsNamed(void) {
  horus_cluster *cluster = NULL, *empty = NULL;
  horus_job_list* list = NULL;
  horus_trace* trace = NULL;
  CHECK_OK(horus_cluster_create(NULL, &empty, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "out",
                horus_cluster_from_yaml(NULL, NULL, "c.yaml", "", NULL, NULL, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "path", horus_job_list_from_yaml(empty, NULL, NULL, kJobs, &list, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "out",
                horus_job_list_from_yaml(empty, NULL, "j.yaml", kJobs, NULL, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "path", horus_trace_from_file(NULL, NULL, &trace, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "out", horus_trace_from_file("t.csv", NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, /* one GPU holds no more than it has */
               horus_cluster_from_yaml(NULL, NULL, "c.yaml",
                                       "version: 1\nnodes:\n  - {name: n, cpu_cores: 1, memory_gib: 1, gpus: [{type: "
                                       "t4}]}\nresidents:\n  - {id: 9, name: r, demand: {any: {gpu_util_pct: 20, "
                                       "gpu_memory_gib: 1}}, on: [{node: n, gpu: 1}]}\n",
                                       NULL, &cluster, &error));
  CHECK_MESSAGE(HORUS_ERR_IO, "nowhere.onnx", /* whose demand is predicted from its graph */
                horus_cluster_from_yaml(NULL, NULL, "c.yaml",
                                        "version: 1\nnodes:\n  - {name: n, cpu_cores: 1, memory_gib: 1, gpus: [{type: "
                                        "t4}]}\nresidents:\n  - {id: 9, name: r, model: nowhere.onnx, "
                                        "on: [{node: n, gpu: 0}]}\n",
                                        NULL, &cluster, &error));
  CHECK(cluster == NULL && list == NULL && trace == NULL);
  horus_cluster_free(empty);
}

/* Demands that are stated need no predictor; one that is given is the caller's still. */
static void APredictorMayBeGiven(void) {
  horus_predictor* predictor = NULL;
  horus_cluster *cluster = NULL, *other = NULL;
  horus_job_list* list = NULL;
  if (horus_predictor_default(&predictor, NULL) == HORUS_ERR_UNSUPPORTED) return;
  CHECK_OK(horus_cluster_from_yaml(NULL, predictor, "c.yaml", kCluster, NULL, &cluster, &error));
  CHECK_OK(horus_cluster_from_yaml(NULL, NULL, "c.yaml", kCluster, NULL, &other, &error));
  CHECK(state_hash(cluster) == state_hash(other));
  CHECK_OK(horus_job_list_from_yaml(cluster, predictor, "j.yaml", kJobs, &list, &error));
  horus_predictor_free(predictor);
  CHECK(horus_job_list_count(list) == 2);
  horus_job_list_free(list);
  horus_cluster_free(cluster);
  horus_cluster_free(other);
}

static horus_cluster* planned; /* by the call whose callback asks */

static int32_t on_slowdown(void* user, const horus_device* device, size_t count, const horus_demand* const* demands,
                           float* slowdown, float* slowdown_upper) {
  horus_job_list* list = NULL;
  size_t i;
  (void)device, (void)demands, (void)slowdown_upper;
  for (i = 0; i < count; ++i) slowdown[i] = 1;
  CHECK_STATUS(HORUS_ERR_BUSY, horus_job_list_from_yaml(planned, NULL, "j.yaml", kJobs, &list, &error));
  CHECK(list == NULL);
  ++*(int*)user;
  return 0;
}

static void NoFileIsReadInsideAPlan(void) {
  int calls = 0;
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_interference* model = NULL;
  horus_placer* placer = NULL;
  given_job given;
  CHECK_OK(horus_interference_from_callback(NULL, on_slowdown, &calls, 1, 0, &model, &error));
  options.interference = model;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  planned = cluster_of(1);
  give_job(&given, 1, 40, 2000);
  horus_plan_free(plan_one(placer, planned, &given));
  CHECK(calls > 0);
  horus_placer_free(placer);
  horus_interference_free(model);
  horus_cluster_free(planned);
}

static void NothingOfNull(void) {
  horus_job_list_free(NULL);
  CHECK(horus_job_list_count(NULL) == 0 && horus_job_list_bytes_held(NULL) == 0);
}

int main(void) {
  horus_cluster* cluster = NULL;
  horus_error error = HORUS_ERROR_INIT;
  NothingOfNull();
  if (horus_cluster_from_yaml(NULL, NULL, "c.yaml", kCluster, NULL, &cluster, &error) == HORUS_ERR_UNSUPPORTED) {
    WithoutTheReaderEverythingIsUnsupported();
    return report();
  }
  horus_cluster_free(cluster);
  AClusterAsTheCommandReadsIt();
  ATraceIsReadFromItsFile();
  AJobListIsReadFromItsFile();
  ErrorsNameFileLineAndKeyAndLeaveOutputsAlone();
  WhatIsNotGivenIsNamed();
  APredictorMayBeGiven();
  NoFileIsReadInsideAPlan();
  return report();
}
