/* SPDX-License-Identifier: Apache-2.0 */
/* horus/graph.h and the predictor: the main job from an ONNX file to a placement, and bad files and arguments. */
#include <math.h>
#include <stdlib.h>

#include "fixture.h"

#define RESNET HORUS_GRAPHS_DIR "/resnet50.onnx"

static void* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  void* bytes = malloc(1 << 20);
  *size = 0;
  CHECK(file != NULL);
  if (file == NULL) return bytes;
  *size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

static void FilesAndBytesGiveTheSameGraph(void) {
  horus_graph *from_file = NULL, *from_bytes = NULL;
  horus_graph_info a = HORUS_GRAPH_INFO_INIT, b = HORUS_GRAPH_INFO_INIT;
  size_t size, i;
  void* bytes = read_file(RESNET, &size);
  CHECK_OK(horus_graph_from_file(RESNET, NULL, &from_file, &error));
  CHECK_OK(horus_graph_from_bytes(bytes, size, NULL, &from_bytes, &error));
  free(bytes); /* not kept */
  CHECK_OK(horus_graph_get_info(from_file, &a, &error));
  CHECK_OK(horus_graph_get_info(from_bytes, &b, &error));
  CHECK(a.fingerprint == b.fingerprint && a.nodes == b.nodes && a.nodes > 100 && a.opset >= 7 && a.bytes_held > 0);
  for (i = 0; i < a.dims; ++i) CHECK(strlen(horus_graph_dim_name(from_file, i)) > 0);
  CHECK(horus_graph_dim_name(from_file, (size_t)a.dims) == NULL && horus_graph_dim_name(NULL, 0) == NULL);
  horus_graph_free(from_file);
  horus_graph_free(from_bytes);
  horus_graph_free(NULL);
}

static void BadFilesAreRefused(void) {
  horus_graph_limits limits = HORUS_GRAPH_LIMITS_INIT;
  horus_graph* graph = NULL;
  size_t size, i;
  char* bytes = read_file(RESNET, &size);
  CHECK_MESSAGE(HORUS_ERR_IO, "no/such/file", horus_graph_from_file("no/such/file", NULL, &graph, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_from_file(NULL, NULL, &graph, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_from_file(RESNET, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_from_bytes(NULL, 0, NULL, &graph, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_from_bytes(bytes, size, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_graph_from_bytes("not an ONNX file", 16, NULL, &graph, &error));
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_graph_from_bytes(bytes, size - 5, NULL, &graph, &error));
  for (i = 0; i < size; i += 1 + size / 97) { /* whatever a cut file is, it is refused and freed */
    horus_graph* cut = NULL;
    if (horus_graph_from_bytes(bytes, i, NULL, &cut, NULL) == HORUS_OK) horus_graph_free(cut);
  }
  limits.max_nodes = 10;
  CHECK_MESSAGE(HORUS_ERR_LIMIT, "10", horus_graph_from_bytes(bytes, size, &limits, &graph, &error));
  limits.struct_size = 3;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_graph_from_bytes(bytes, size, &limits, &graph, &error));
  limits.struct_size = sizeof limits;
  limits.reserved = 1;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_graph_from_file(RESNET, &limits, &graph, &error));
  CHECK(graph == NULL);
  free(bytes);
}

static void ConfigsGiveGraphs(void) {
  static const char kModel[] = "llama-3.1-8b", kUnknown[] = "{\"model_type\":\"mamba\"}";
  const char* const names[2] = {"seq", "past"};
  const int64_t sizes[2] = {1, 4096};
  horus_config_options options = HORUS_CONFIG_OPTIONS_INIT;
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_step_cost whole = HORUS_STEP_COST_INIT, part = HORUS_STEP_COST_INIT;
  horus_graph *alone = NULL, *shared = NULL, *none = NULL;
  size_t count = 0;
  CHECK_OK(horus_graph_from_config(kModel, strlen(kModel), NULL, &alone, &error));
  options.tensor_parallel = 2;
  options.weights = "fp8";
  CHECK_OK(horus_graph_from_config(kModel, strlen(kModel), &options, &shared, &error));
  run.mode = HORUS_MODE_INFERENCE;
  run.precision = HORUS_PRECISION_BF16;
  run.dim_count = 2;
  run.dim_names = names;
  run.dim_sizes = sizes;
  CHECK_OK(horus_graph_cost(alone, &run, &whole, &error));
  CHECK_OK(horus_graph_cost(shared, &run, &part, &error));
  CHECK(whole.parameters == 8030261248 && whole.operators_unknown == 0);
  CHECK(2 * part.parameters == whole.parameters + 65 * 4096 && 3 * part.weights_bytes < whole.weights_bytes);
  run.mode = HORUS_MODE_TRAINING;
  run.dim_count = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "training = 1", horus_graph_cost(alone, &run, &whole, &error));
  horus_graph_free(alone);
  horus_graph_free(shared);
  while (library_info().models[count] != NULL) ++count;
  CHECK(count >= 30);
  CHECK_MESSAGE(HORUS_ERR_UNSUPPORTED, "model_type",
                horus_graph_from_config(kUnknown, strlen(kUnknown), NULL, &none, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_graph_from_config("llama", 5, NULL, &none, &error));
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_graph_from_config("{]", 2, NULL, &none, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_from_config(NULL, 0, NULL, &none, &error));
  options.training = 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "training",
                horus_graph_from_config(kModel, strlen(kModel), &options, &none, &error));
  options.struct_size = 3;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_graph_from_config(kModel, strlen(kModel), &options, &none, &error));
  CHECK(none == NULL);
}

/* A language model under a load: what it needs and keeps, and the demand that is placed. */
static void ServicesAreAnswered(void) {
  static const char kModel[] = "llama-3.1-8b";
  const char* const types[2] = {"h100-sxm", "t4"};
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_service_load load = HORUS_SERVICE_LOAD_INIT;
  horus_service found[2] = {HORUS_SERVICE_INIT, HORUS_SERVICE_INIT};
  horus_demand demand[2] = {HORUS_DEMAND_INIT, HORUS_DEMAND_INIT};
  horus_service* const services[2] = {&found[0], &found[1]};
  horus_demand* const demands[2] = {&demand[0], &demand[1]};
  horus_graph* graph = NULL;
  horus_predictor* predictor = NULL;
  double memory = 0;
  CHECK_OK(horus_predictor_default(&predictor, &error));
  CHECK_OK(horus_graph_from_config(kModel, strlen(kModel), NULL, &graph, &error));
  run.mode = HORUS_MODE_INFERENCE;
  run.precision = HORUS_PRECISION_BF16;
  run.framework = HORUS_FRAMEWORK_VLLM;
  load.requests_per_s = 3;
  load.tokens_in = 1024;
  load.tokens_out = 256;
  load.token_us = 50000;
  CHECK_OK(horus_predictor_service(predictor, NULL, graph, &run, &load, 2, types, services, demands, &error));
  CHECK(found[0].verdict == HORUS_SERVICE_SERVED && found[1].verdict == HORUS_SERVICE_NO_ROOM);
  CHECK(found[0].token_us > 0 && found[0].token_us_upper >= found[0].token_us && found[0].token_us_upper <= 50000);
  memory = found[0].weights_mib + found[0].activations_mib + found[0].engine_mib + found[0].cache_mib;
  CHECK((double)demand[0].mem_mib >= memory && (double)demand[0].mem_mib < memory + 1);
  CHECK(demand[0].duty > 0 && demand[0].duty < 1 && demand[0].slowdown_bound >= 1);
  CHECK(demand[0].profile_id != 0 && demand[0].step_time_us > 0);
  CHECK_OK(horus_predictor_service(predictor, NULL, graph, &run, &load, 2, types, NULL, demands, &error));
  CHECK_OK(horus_predictor_service(predictor, NULL, graph, &run, &load, 2, types, services, NULL, &error));
  load.concurrency = 4;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "either requests_per_s or concurrency",
                horus_predictor_service(predictor, NULL, graph, &run, &load, 2, types, services, demands, &error));
  load.concurrency = 0;
  run.framework = HORUS_FRAMEWORK_PYTORCH;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "expected an engine",
                horus_predictor_service(predictor, NULL, graph, &run, &load, 2, types, services, demands, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_predictor_service(predictor, NULL, graph, &run, NULL, 2, types, services, demands, &error));
  load.struct_size = 5;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT,
               horus_predictor_service(predictor, NULL, graph, &run, &load, 2, types, services, demands, &error));
  horus_graph_free(graph);
  horus_predictor_free(predictor);
}

static void CostsGrowWithTheBatch(const horus_graph* graph) {
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_step_cost one = HORUS_STEP_COST_INIT, eight = HORUS_STEP_COST_INIT;
  run.batch = 1;
  CHECK_OK(horus_graph_cost(graph, &run, &one, &error));
  run.batch = 8;
  run.optimizer = HORUS_OPTIMIZER_ADAM;
  CHECK_OK(horus_graph_cost(graph, &run, &eight, &error));
  CHECK(one.parameters == 25557032 && eight.parameters == one.parameters); /* torchvision's count */
  CHECK(fabs(eight.forward_flops / one.forward_flops - 8) < 0.01);
  CHECK(eight.training_flops > 2 * eight.forward_flops && eight.kernels > 0 && eight.operators > 100);
  CHECK(eight.optimizer_bytes > one.optimizer_bytes && eight.activations_bytes > one.activations_bytes);
  CHECK(eight.weights_bytes >= 4 * eight.parameters && eight.gradients_bytes >= 4 * eight.parameters);
  for (int32_t optimizer = HORUS_OPTIMIZER_SGD; optimizer <= HORUS_OPTIMIZER_ADAMW_BF16; ++optimizer) {
    run.optimizer = optimizer;
    run.precision = optimizer == HORUS_OPTIMIZER_ADAMW_BF16 ? HORUS_PRECISION_BF16 : HORUS_PRECISION_FP32;
    CHECK_OK(horus_graph_cost(graph, &run, &eight, &error));
  }
}

static void RunSpecsAreChecked(const horus_graph* graph) {
  const char* const names[1] = {"no such dimension"};
  const int64_t sizes[1] = {3};
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_step_cost cost = HORUS_STEP_COST_INIT;
  const horus_step_cost before = HORUS_STEP_COST_INIT;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_cost(NULL, &run, &cost, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_cost(graph, &run, NULL, &error));
  run.mode = 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "mode", horus_graph_cost(graph, &run, &cost, &error));
  run.mode = HORUS_MODE_TRAINING;
  run.precision = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "precision", horus_graph_cost(graph, &run, &cost, &error));
  run.precision = HORUS_PRECISION_FP32;
  run.batch = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "batch", horus_graph_cost(graph, &run, &cost, &error));
  run.batch = 0;
  run.dim_count = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "dim_names", horus_graph_cost(graph, &run, &cost, &error));
  run.dim_names = names;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "dim_sizes", horus_graph_cost(graph, &run, &cost, &error));
  run.dim_sizes = sizes;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_cost(graph, &run, &cost, &error));
  run.dim_count = 4097;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "dim_count: expected at most 4096",
                horus_graph_cost(graph, &run, &cost, &error));
  run.dim_count = 0;
  run.frozen_count = 4097;
  run.frozen_prefixes = names;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "frozen_count: expected at most 4096",
                horus_graph_cost(graph, &run, &cost, &error));
  run.frozen_count = 1;
  run.checkpoint_segments = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "checkpoint_segments", horus_graph_cost(graph, &run, &cost, &error));
  run.checkpoint_segments = 0;
  run.dim_count = 1;
  run.struct_size -= 1;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_graph_cost(graph, &run, &cost, &error));
  CHECK(memcmp(&cost, &before, sizeof cost) == 0);
  cost.struct_size -= 1;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_graph_cost(graph, NULL, &cost, &error));
  {
    horus_graph_info info = HORUS_GRAPH_INFO_INIT;
    info.struct_size = 8;
    CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_graph_get_info(graph, &info, &error));
    CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_get_info(graph, NULL, &error));
    CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_get_info(NULL, &info, &error));
  }
}

static void FrozenWeightsCostLess(const horus_graph* graph) {
  const char* const all[1] = {""};
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_step_cost whole = HORUS_STEP_COST_INIT, frozen = HORUS_STEP_COST_INIT;
  CHECK_OK(horus_graph_cost(graph, &run, &whole, &error));
  run.frozen_count = 1;
  run.frozen_prefixes = all;
  CHECK_OK(horus_graph_cost(graph, &run, &frozen, &error));
  CHECK(frozen.training_flops < whole.training_flops && frozen.forward_flops == whole.forward_flops);
}

static void FeatureRowsFollowTheSchema(const horus_graph* graph) {
  const size_t columns = horus_feature_count();
  float* row = malloc((columns + 1) * sizeof *row);
  size_t count = 0, i;
  CHECK(columns > 6 && horus_feature_schema_hash() != 0);
  for (i = 0; i < columns; ++i) {
    CHECK(strlen(horus_feature_name(i)) > 0 && strlen(horus_feature_definition(i)) > 0);
    CHECK(strlen(horus_feature_unit(i)) < 32);
  }
  CHECK(horus_feature_name(columns) == NULL && horus_feature_unit(columns) == NULL);
  CHECK(horus_feature_definition(columns) == NULL);
  CHECK_OK(horus_graph_features(graph, NULL, 0, NULL, &count, &error));
  CHECK(count == columns);
  row[columns] = -7;
  CHECK_OK(horus_graph_features(graph, NULL, columns, row, &count, &error));
  CHECK(count == columns && row[columns] == -7);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_features(NULL, NULL, columns, row, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_features(graph, NULL, columns, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_graph_features(graph, NULL, columns, row, NULL, &error));
  free(row);
}

static void FromAGraphToAPlacement(const horus_graph* graph) {
  const char* const types[2] = {FIXTURE_GPU, "a100-40gb"};
  const char* const unknown[2] = {FIXTURE_GPU, "abacus"};
  horus_predictor *predictor = NULL, *none = NULL;
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_demand first = HORUS_DEMAND_INIT, second = HORUS_DEMAND_INIT;
  const horus_demand untouched = HORUS_DEMAND_INIT;
  horus_demand* out[2];
  const horus_demand* demands[2];
  out[0] = &first;
  out[1] = &second;
  demands[0] = &first;
  demands[1] = &second;
  run.batch = 32;
  CHECK_OK(horus_predictor_default(&predictor, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_default(NULL, &error));
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_predictor_from_bytes("not a bundle", 12, &none, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_from_bytes(NULL, 0, &none, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_from_bytes("x", 1, NULL, &error));
  CHECK(none == NULL && horus_predictor_bytes_held(predictor) > 0 && horus_predictor_bytes_held(NULL) == 0);

#define DEMAND(...) horus_predictor_demand(__VA_ARGS__, &error)
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "gpu_types[1]", DEMAND(predictor, NULL, graph, &run, 2, unknown, out));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, DEMAND(NULL, NULL, graph, &run, 2, types, out));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, DEMAND(predictor, NULL, NULL, &run, 2, types, out));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, DEMAND(predictor, NULL, graph, &run, 2, NULL, out));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, DEMAND(predictor, NULL, graph, &run, 2, types, NULL));
  second.struct_size = 4;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "demands[1]", DEMAND(predictor, NULL, graph, &run, 2, types, out));
  second.struct_size = sizeof second;
  CHECK(memcmp(&first, &untouched, sizeof first) == 0 && memcmp(&second, &untouched, sizeof second) == 0);
  CHECK_OK(DEMAND(predictor, NULL, graph, &run, 2, types, out));
#undef DEMAND
  CHECK(first.gpu_util_pct > 0 && first.gpu_util_pct <= 100 && first.gpu_util_pct_upper >= first.gpu_util_pct);
  CHECK(first.mem_mib > 1000 && first.mem_mib_upper >= first.mem_mib);
  CHECK(first.step_time_us > second.step_time_us && second.step_time_us > 0); /* the A100 is faster */
  CHECK(first.profile_id != 0 && first.profile_id == second.profile_id);
  {
    horus_cluster* cluster = cluster_of(2);
    horus_placer* placer = placer_of(NULL);
    horus_decision decision = HORUS_DECISION_INIT;
    horus_plan* plan = NULL;
    horus_job job = HORUS_JOB_INIT;
    const horus_job* jobs[1];
    job.id = 4;
    job.demand_count = 2;
    job.gpu_types = types;
    job.demands = demands;
    jobs[0] = &job;
    CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
    CHECK_OK(horus_plan_get(plan, 0, &decision, &error));
    CHECK(decision.verdict == HORUS_VERDICT_PLACE && decision.slots == 1);
    CHECK_OK(horus_cluster_apply(cluster, plan, &error));
    CHECK_OK(horus_cluster_release(cluster, 4, &error));
    horus_plan_free(plan);
    horus_placer_free(placer);
    horus_cluster_free(cluster);
  }
  horus_predictor_free(predictor);
  horus_predictor_free(NULL);
}

static int32_t count_calls(void* user, double done) {
  int* calls = user;
  CHECK(done >= 0 && done < 1);
  return ++*calls >= 3; /* cancels at the third */
}

static void TheLargestBatchIsSolvedFor(const horus_graph* graph) {
  const char* const types[3] = {FIXTURE_GPU, "a100-40gb", FIXTURE_GPU};
  const char* const unknown[1] = {"abacus"};
  const int64_t residents[3] = {0, 0, 20000}, negative[3] = {0, -1, 0};
  const char* const batch[1] = {"batch"};
  const int64_t four[1] = {4};
  const horus_solution blank = HORUS_SOLUTION_INIT;
  horus_solution solutions[3], before[3];
  horus_solution* out[3];
  horus_solve_options options = HORUS_SOLVE_OPTIONS_INIT;
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_predictor* predictor = NULL;
  size_t i;
  int calls = 0;
  for (i = 0; i < 3; ++i) {
    solutions[i] = blank;
    out[i] = &solutions[i];
  }
  memcpy(before, solutions, sizeof before);
  CHECK_OK(horus_predictor_default(&predictor, &error));
#define SOLVE(run, options, count, types, out) \
  horus_predictor_solve(predictor, NULL, graph, run, options, count, types, NULL, NULL, out, &error)
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_predictor_solve(NULL, NULL, graph, NULL, NULL, 3, types, NULL, NULL, out, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_predictor_solve(predictor, NULL, NULL, NULL, NULL, 3, types, NULL, NULL, out, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpu_types", SOLVE(NULL, NULL, 3, NULL, out));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "solutions", SOLVE(NULL, NULL, 3, types, NULL));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, SOLVE(NULL, NULL, 1, unknown, out));
  options.dim = "sequence";
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "expected batch", SOLVE(NULL, &options, 3, types, out));
  options.dim = NULL;
  options.max_value = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "maximum", SOLVE(NULL, &options, 3, types, out));
  options.max_value = 0;
  options.resident_mib = negative;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "residents", SOLVE(NULL, &options, 3, types, out));
  options.resident_mib = residents;
  run.batch = 4;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "bound to 4", SOLVE(&run, &options, 3, types, out));
  run.batch = 0;
  run.dim_count = 1;
  run.dim_names = batch;
  run.dim_sizes = four;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, SOLVE(&run, &options, 3, types, out));
  options.reserved = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_solve_options", SOLVE(NULL, &options, 3, types, out));
  options.reserved = 0;
  options.struct_size = 8;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_solve_options", SOLVE(NULL, &options, 3, types, out));
  options.struct_size = sizeof options;
  solutions[2].struct_size = before[2].struct_size = 16;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "solutions[2]", SOLVE(NULL, &options, 3, types, out));
  solutions[2].struct_size = before[2].struct_size = sizeof blank;
  CHECK_STATUS(HORUS_ERR_CANCELLED, horus_predictor_solve(predictor, NULL, graph, NULL, &options, 3, types, count_calls,
                                                          &calls, out, &error));
  CHECK(calls == 3);
  CHECK(memcmp(solutions, before, sizeof before) == 0); /* nothing of all this touched the outputs */

  CHECK_OK(SOLVE(NULL, &options, 0, NULL, NULL));
  CHECK_OK(SOLVE(NULL, &options, 3, types, out));
  for (i = 0; i < 3; ++i) {
    CHECK(solutions[i].reason == HORUS_SOLVED_MEMORY && solutions[i].short_mib > 0 && solutions[i].message[0] == '\0');
    CHECK(solutions[i].next == solutions[i].largest + 1 && (solutions[i].flags & HORUS_DEMAND_UNCALIBRATED) != 0);
  }
  CHECK(solutions[0].largest >= 32 && solutions[1].largest > 2 * solutions[0].largest);
  CHECK(solutions[2].largest == 0 && solutions[2].mem_mib_upper == 0 && solutions[2].next == 1);
  for (i = 0; i < 2; ++i) { /* what the demand says of the answer and of the next value */
    horus_demand demand = HORUS_DEMAND_INIT;
    horus_demand* demands[1];
    horus_gpu gpu = HORUS_GPU_INIT;
    horus_catalogue* catalogue = NULL;
    size_t index = 0;
    run.dim_count = 0;
    demands[0] = &demand;
    CHECK_OK(horus_catalogue_default(&catalogue, &error));
    CHECK_OK(horus_catalogue_find(catalogue, types[i], &index, &error));
    CHECK_OK(horus_catalogue_get(catalogue, index, &gpu, &error));
    run.batch = solutions[i].largest;
    CHECK_OK(horus_predictor_demand(predictor, NULL, graph, &run, 1, &types[i], demands, &error));
    CHECK(demand.mem_mib_upper == solutions[i].mem_mib_upper && demand.mem_mib_upper <= gpu.mem_mib);
    run.batch = solutions[i].next;
    CHECK_OK(horus_predictor_demand(predictor, NULL, graph, &run, 1, &types[i], demands, &error));
    CHECK(demand.mem_mib_upper == gpu.mem_mib + solutions[i].short_mib);
    horus_catalogue_free(catalogue);
  }
  options.max_value = 16;
  CHECK_OK(SOLVE(NULL, &options, 2, types, out));
  CHECK(solutions[0].largest == 16 && solutions[0].reason == HORUS_SOLVED_MAXIMUM && solutions[0].next == 0);
  CHECK_OK(SOLVE(NULL, NULL, 1, types, out));
  CHECK(solutions[0].largest > 16);
#undef SOLVE
  horus_predictor_free(predictor);
}

static void APositionTableEndsTheSequence(void) {
  const char* const types[1] = {"h200"};
  horus_solution solution = HORUS_SOLUTION_INIT;
  horus_solution* out[1];
  horus_solve_options options = HORUS_SOLVE_OPTIONS_INIT;
  horus_step_cost cost = HORUS_STEP_COST_INIT;
  horus_demand demand = HORUS_DEMAND_INIT;
  horus_demand* demands[1];
  horus_predictor* predictor = NULL;
  horus_graph* graph = NULL;
  demands[0] = &demand;
  out[0] = &solution;
  options.dim = "seq";
  CHECK_OK(horus_graph_from_file(HORUS_GRAPHS_DIR "/bert_tiny.onnx", NULL, &graph, &error));
  CHECK_OK(horus_predictor_default(&predictor, &error));
  CHECK_OK(horus_predictor_solve(predictor, NULL, graph, NULL, &options, 1, types, NULL, NULL, out, &error));
  CHECK(solution.largest == 512 && solution.reason == HORUS_SOLVED_GRAPH && solution.next == 513);
  CHECK(strstr(solution.message, "Gather") != NULL && solution.short_mib == 0 && solution.mem_mib_upper > 0);
  options.dim = NULL; /* the sequence is left open: a bound would leave it out */
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "'seq'",
                horus_predictor_solve(predictor, NULL, graph, NULL, &options, 1, types, NULL, NULL, out, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "'seq'", horus_graph_cost(graph, NULL, &cost, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "'seq'",
                horus_predictor_demand(predictor, NULL, graph, NULL, 1, types, demands, &error));
  CHECK(demand.mem_mib == 0);
  horus_predictor_free(predictor);
  horus_graph_free(graph);
}

int main(void) {
  horus_graph* graph = NULL;
  FilesAndBytesGiveTheSameGraph();
  BadFilesAreRefused();
  ConfigsGiveGraphs();
  ServicesAreAnswered();
  CHECK_OK(horus_graph_from_file(RESNET, NULL, &graph, &error));
  CostsGrowWithTheBatch(graph);
  FrozenWeightsCostLess(graph);
  RunSpecsAreChecked(graph);
  FeatureRowsFollowTheSchema(graph);
  FromAGraphToAPlacement(graph);
  TheLargestBatchIsSolvedFor(graph);
  APositionTableEndsTheSequence();
  horus_graph_free(graph);
  return report();
}
