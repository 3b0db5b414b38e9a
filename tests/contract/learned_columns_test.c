/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and texts of graphs, predictors and their training: one that is missing, or no UTF-8, is refused by its name.
 */
#include "fields.h"
#include "fixture.h"

static horus_graph* graph;
static horus_predictor* predictor;

/* Of a stranger's demand only what was asked for may change. */
static horus_status take_run(const void* given, horus_error* error) {
  static const char* const types[1] = {FIXTURE_GPU};
  const horus_demand none = HORUS_DEMAND_INIT;
  horus_demand demand = none;
  horus_demand* out[1];
  horus_status status;
  out[0] = &demand;
  status = horus_predictor_demand(predictor, NULL, graph, given, 1, types, out, error);
  CHECK((memcmp(&demand, &none, sizeof none) == 0) == (status != HORUS_OK));
  return status;
}

static horus_status solve(const void* run, const void* options, horus_error* error) {
  static const char* const types[1] = {FIXTURE_GPU};
  const horus_solution none = HORUS_SOLUTION_INIT;
  horus_solution solution = none;
  horus_solution* out[1];
  horus_status status;
  out[0] = &solution;
  status = horus_predictor_solve(predictor, NULL, graph, run, options, 1, types, NULL, NULL, out, error);
  CHECK((memcmp(&solution, &none, sizeof none) == 0) == (status != HORUS_OK));
  return status;
}

static horus_status take_solved_run(const void* given, horus_error* error) { return solve(given, NULL, error); }
static horus_status take_solve_options(const void* given, horus_error* error) { return solve(NULL, given, error); }

static void OfRuns(void) {
  static const field fields[] = {FIELD(horus_run_spec, FIELD_TEXTS, dim_names),
                                 FIELD(horus_run_spec, FIELD_COLUMN, dim_sizes),
                                 FIELD(horus_run_spec, FIELD_TEXTS, frozen_prefixes)};
  static const struct {
    const char* name;
    size_t offset;
    int32_t value;
  } codes[] = {{"mode", offsetof(horus_run_spec, mode), 2},
               {"mode", offsetof(horus_run_spec, mode), -1},
               {"precision", offsetof(horus_run_spec, precision), 7},
               {"optimizer", offsetof(horus_run_spec, optimizer), 9},
               {"optimizer", offsetof(horus_run_spec, optimizer), -1},
               {"framework", offsetof(horus_run_spec, framework), 7},
               {"framework", offsetof(horus_run_spec, framework), -1}};
  static const char* const names[1] = {"batch"};
  static const char* const prefixes[1] = {"layer1"};
  static const int64_t sizes[1] = {4};
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  size_t i;
  run.dim_count = run.frozen_count = 1;
  run.dim_names = names;
  run.dim_sizes = sizes;
  run.frozen_prefixes = prefixes;
  CHECK_FIELDS(take_run, &run, fields, 1);
  CHECK_STRUCT_SIZE(take_run, &run, horus_run_spec);
  for (i = 0; i < sizeof codes / sizeof *codes; ++i) {
    horus_run_spec wrong = HORUS_RUN_SPEC_INIT;
    memcpy((char*)&wrong + codes[i].offset, &codes[i].value, sizeof codes[i].value);
    check_refused(take_run, &wrong, codes[i].name, "expected 0 to");
    check_refused(take_solved_run, &wrong, codes[i].name, "expected 0 to");
  }
  run.dim_names = prefixes;
  check_refused(take_run, &run, "the graph has no dimension", "'layer1'");
  run.frozen_count = 4097;
  check_refused(take_run, &run, "frozen_count", "expected at most 4096, found 4097");
}

static void OfPredictions(void) {
  static const field fields[] = {FIELD(horus_solve_options, FIELD_TEXT, dim)};
  static const char* const no_type[2] = {FIXTURE_GPU, NULL};
  horus_solve_options options = HORUS_SOLVE_OPTIONS_INIT;
  const horus_demand none = HORUS_DEMAND_INIT;
  horus_demand first = none, second = none;
  horus_demand* out[2];
  CHECK_FIELDS(take_solve_options, &options, fields, 1);
  CHECK_STRUCT(take_solve_options, &options, horus_solve_options);
  out[0] = &first;
  out[1] = &second;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpu_types[1]: expected a pointer, found NULL",
                horus_predictor_demand(predictor, NULL, graph, NULL, 2, no_type, out, &error));
  CHECK(memcmp(&first, &none, sizeof none) == 0 && memcmp(&second, &none, sizeof none) == 0);
  CHECK_OK(horus_predictor_demand(predictor, NULL, graph, NULL, 0, NULL, NULL, &error)); /* of no type: nothing */
}

/* Whose parameters stay as they are is no name by which demands are remembered; the answers are those of a fresh one.
 */
static void FrozenRunsArePredictedAnewEachTime(void) {
  static const char* const types[1] = {FIXTURE_GPU};
  static const char* const prefixes[1] = {"layer1"};
  horus_metrics* metrics = NULL;
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_demand first = HORUS_DEMAND_INIT, second = HORUS_DEMAND_INIT;
  horus_solution solution = HORUS_SOLUTION_INIT;
  horus_solution* out_of[1];
  horus_demand* out[1];
  run.frozen_count = 1;
  run.frozen_prefixes = prefixes;
  CHECK_OK(horus_metrics_create(NULL, &metrics, &error));
  CHECK_OK(horus_predictor_set_metrics(predictor, metrics, &error));
  out[0] = &first;
  CHECK_OK(horus_predictor_demand(predictor, NULL, graph, &run, 1, types, out, &error));
  out[0] = &second;
  CHECK_OK(horus_predictor_demand(predictor, NULL, graph, &run, 1, types, out, &error));
  CHECK(first.mem_mib > 0 && memcmp(&first, &second, sizeof first) == 0);
  CHECK(value_of(metrics, "horus_cache_hits_total", "cache=\"demands\"") < 1);
  CHECK(value_of(metrics, "horus_cache_misses_total", "cache=\"demands\"") == 2);
  out_of[0] = &solution;
  CHECK_OK(horus_predictor_solve(predictor, NULL, graph, NULL, NULL, 1, types, NULL, NULL, out_of, &error));
  CHECK(value_of(metrics, "horus_calls_total", "call=\"solve\",status=\"OK\"") == 1 && solution.largest > 0);
  CHECK_OK(horus_predictor_set_metrics(predictor, NULL, &error));
  horus_metrics_free(metrics);
}

static horus_status take_training(const void* given, horus_error* error) {
  horus_training_options options = HORUS_TRAINING_OPTIONS_INIT;
  horus_predictor* out = NULL;
  horus_status status;
  options.rounds = -1;
  options.promise = 0.5;
  status = horus_predictor_fit(NULL, given, &options, NULL, NULL, &out, error);
  CHECK((out != NULL) == (status == HORUS_OK));
  horus_predictor_free(out);
  return status;
}

#define ROWS 16
static horus_training_data rows; /* ROWS rows that train */

static horus_status take_training_options(const void* given, horus_error* error) {
  horus_predictor* out = NULL;
  const horus_status status = horus_predictor_fit(NULL, &rows, given, NULL, NULL, &out, error);
  CHECK((out != NULL) == (status == HORUS_OK));
  horus_predictor_free(out);
  return status;
}

static void OfTraining(void) {
  static const field fields[] = {
      FIELD(horus_training_data, FIELD_COLUMN, graphs), FIELD(horus_training_data, FIELD_TEXTS, gpu_types),
      FIELD(horus_training_data, FIELD_TEXTS, families), FIELD(horus_training_data, FIELD_WHOLE, nets)};
  static const field of_options[] = {FIELD(horus_training_options, FIELD_TEXT, library_path)};
  const horus_run_spec plain = HORUS_RUN_SPEC_INIT;
  const horus_graph* graphs[ROWS];
  const char *types[ROWS], *families[ROWS];
  const horus_run_spec* runs[ROWS];
  horus_run_spec wrong = HORUS_RUN_SPEC_INIT;
  static const int64_t sizes[1] = {4};
  double step_us[ROWS];
  horus_training_options options = HORUS_TRAINING_OPTIONS_INIT;
  horus_training_data data = HORUS_TRAINING_DATA_INIT;
  size_t i;
  for (i = 0; i < ROWS; ++i) {
    graphs[i] = graph;
    types[i] = i % 4 == 0 ? "opaque:card" : FIXTURE_GPU;
    families[i] = i % 2 == 0 ? "a" : "b";
    runs[i] = i % 3 == 0 ? NULL : &plain;
    step_us[i] = 1000;
  }
  data.count = ROWS;
  data.graphs = graphs;
  data.gpu_types = types;
  data.families = families;
  data.step_time_us = step_us;
  rows = data;
  options.rounds = 2;
  CHECK_OK(take_training_options(&options, &error));
  options.rounds = -2;
  check_refused(take_training_options, &options, "rounds", "found -2");
  options.rounds = -1;
  CHECK_FIELDS(take_training_options, &options, of_options, 1);
  CHECK_STRUCT(take_training_options, &options, horus_training_options);
  CHECK_OK(take_training(&data, &error)); /* without runs and nets */
  data.runs = runs;
  data.nets = families;
  CHECK_FIELDS(take_training, &data, fields, ROWS);
  CHECK_STRUCT(take_training, &data, horus_training_data);
  graphs[3] = NULL;
  check_refused(take_training, &data, "row[3]: graphs", "found NULL");
  graphs[3] = graph;
  types[5] = "opaque:";
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "row[5]", take_training(&data, &error));
  types[5] = FIXTURE_GPU;
  wrong.batch = 8; /* the same graph in another run */
  runs[2] = &wrong;
  CHECK_OK(take_training(&data, &error));
  wrong.dim_count = 1;
  wrong.dim_names = families;
  wrong.dim_sizes = sizes;
  check_refused(take_training, &data, "row[2]: the graph has no dimension", "'a'");
  wrong.dim_count = 0;
  wrong.mode = 7;
  check_refused(take_training, &data, "row[2]: horus_run_spec: mode", "found 7");
}

static void OfWhatWasTrained(void) {
  horus_prediction_quality quality = HORUS_PREDICTION_QUALITY_INIT;
  size_t count = 7;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "predictor", horus_predictor_to_bytes(NULL, 0, NULL, &count, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "quantity", horus_predictor_get_quality(predictor, NULL, &quality, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "quantity: expected UTF-8",
                horus_predictor_get_quality(predictor, "\xff", &quality, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "model", horus_interference_to_bytes(NULL, 0, NULL, &count, &error));
  CHECK(count == 7 && quality.rows == 0);
}

int main(void) {
  CHECK_OK(horus_graph_from_file(HORUS_GRAPHS_DIR "/resnet18.onnx", NULL, &graph, &error));
  CHECK_OK(horus_predictor_default(&predictor, &error));
  OfRuns();
  OfPredictions();
  FrozenRunsArePredictedAnewEachTime();
#ifdef HORUS_WITH_TRAIN
  OfTraining();
#endif
  OfWhatWasTrained();
  horus_predictor_free(predictor);
  horus_graph_free(graph);
  return report();
}
