/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of horus/learn.h: a predictor that is trained, saved, asked again, and corrected by measurements. */
#include <math.h>
#include <stdlib.h>

#include "training_table.h"

static const char* const V100[1] = {TRAINING_GPU};

static horus_demand DemandOf(const horus_predictor* predictor, const horus_graph* graph, int64_t batch) {
  horus_demand demand = HORUS_DEMAND_INIT;
  horus_demand* out[1];
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  out[0] = &demand;
  run.batch = batch;
  CHECK_OK(horus_predictor_demand(predictor, NULL, graph, &run, 1, V100, out, &error));
  return demand;
}

static int32_t Count(void* user, double done) {
  int* calls = user;
  CHECK(done >= 0 && done <= 1);
  return ++*calls >= 3; /* cancels */
}

static void WrongTablesAreRefused(Table* table) {
  horus_predictor* predictor = NULL;
  horus_training_options options = HORUS_TRAINING_OPTIONS_INIT;
  int calls = 0;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_fit(NULL, NULL, NULL, NULL, NULL, &predictor, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_fit(NULL, &table->data, NULL, NULL, NULL, NULL, &error));
  table->data.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_predictor_fit(NULL, &table->data, NULL, NULL, NULL, &predictor, &error));
  table->data.struct_size = sizeof table->data;
  options.struct_size = 4;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT,
               horus_predictor_fit(NULL, &table->data, &options, NULL, NULL, &predictor, &error));
  options.struct_size = sizeof options;
  options.reserved = 1;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT,
               horus_predictor_fit(NULL, &table->data, &options, NULL, NULL, &predictor, &error));
  options.reserved = 0;
  table->data.families = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "families",
                horus_predictor_fit(NULL, &table->data, NULL, NULL, NULL, &predictor, &error));
  table->data.families = table->families;
  table->gpus[3] = "abacus";
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "row[3]",
                horus_predictor_fit(NULL, &table->data, NULL, NULL, NULL, &predictor, &error));
  table->gpus[3] = V100[0];
  table->step_us[5] = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[5]",
                horus_predictor_fit(NULL, &table->data, NULL, NULL, NULL, &predictor, &error));
  table->step_us[5] = 4000;
  table->data.step_time_us = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "8 rows",
                horus_predictor_fit(NULL, &table->data, NULL, NULL, NULL, &predictor, &error));
  table->data.step_time_us = table->step_us;
  options.promise = 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "promise",
                horus_predictor_fit(NULL, &table->data, &options, NULL, NULL, &predictor, &error));
  options.promise = 0;
  options.library_path = "/no such library.so";
  CHECK_STATUS(HORUS_ERR_IO, horus_predictor_fit(NULL, &table->data, &options, NULL, NULL, &predictor, &error));
  CHECK_STATUS(HORUS_ERR_CANCELLED, horus_predictor_fit(NULL, &table->data, NULL, Count, &calls, &predictor, &error));
  CHECK(predictor == NULL && calls == 3);
}

static void ATrainedPredictorIsTheSameFromItsBytes(const Table* table, const horus_graph* graph) {
  horus_predictor *trained = NULL, *again = NULL, *built_in = NULL;
  horus_training_options options = HORUS_TRAINING_OPTIONS_INIT;
  horus_prediction_quality quality = HORUS_PREDICTION_QUALITY_INIT, kept = HORUS_PREDICTION_QUALITY_INIT;
  horus_prediction_quality untouched = HORUS_PREDICTION_QUALITY_INIT;
  char small[4] = {7, 7, 7, 7};
  horus_demand one, two;
  size_t size = 0;
  void* bytes;
  CHECK_OK(horus_predictor_fit(NULL, &table->data, NULL, NULL, NULL, &trained, &error));
  if (trained == NULL) return;
  one = DemandOf(trained, graph, 16);
  CHECK(one.step_time_us > 8000 && one.step_time_us < 32000); /* the law says 16,000 */
  CHECK_OK(horus_predictor_get_quality(trained, "step_time_us", &quality, &error));
  CHECK(quality.rows == ROWS && quality.families == 2 && quality.gpu_types == 1 && quality.trees <= 100);
  CHECK(fabs(quality.promised - 2.0 / 3) < 1e-9);
  CHECK_OK(horus_predictor_default(&built_in, &error)); /* what the rows do not measure is kept of it */
  CHECK_OK(horus_predictor_get_quality(trained, "mem_mib", &untouched, &error));
  CHECK_OK(horus_predictor_get_quality(built_in, "mem_mib", &kept, &error));
  CHECK(memcmp(&untouched, &kept, sizeof kept) == 0);
  options.base = built_in; /* the constants are held near its own, as without a base */
  CHECK_OK(horus_predictor_fit(NULL, &table->data, &options, NULL, NULL, &again, &error));
  two = DemandOf(again, graph, 16);
  CHECK(memcmp(&one, &two, sizeof one) == 0);
  horus_predictor_free(again);
  horus_predictor_free(built_in);
  untouched = quality;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_get_quality(trained, "colour", &quality, &error));
  CHECK(memcmp(&quality, &untouched, sizeof quality) == 0);
  quality.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_predictor_get_quality(trained, "step_time_us", &quality, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_get_quality(trained, "step_time_us", NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_get_quality(NULL, "step_time_us", &untouched, &error));
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_predictor_to_bytes(trained, 4, small, &size, &error));
  CHECK(memcmp(small, "\7\7\7\7", 4) == 0);
  bytes = malloc(size);
  CHECK_OK(horus_predictor_to_bytes(trained, size, bytes, &size, &error));
  CHECK_OK(horus_predictor_from_bytes(bytes, size, &again, &error));
  two = DemandOf(again, graph, 16);
  CHECK(memcmp(&one, &two, sizeof one) == 0);
  free(bytes);
  horus_predictor_free(trained);
  horus_predictor_free(again);
}

/* Without trees there is still something to cancel. */
static void EveryCallCanBeCancelled(const Table* table) {
  horus_predictor* predictor = NULL;
  horus_training_options options = HORUS_TRAINING_OPTIONS_INIT;
  int calls = 2;
  options.rounds = -1;
  CHECK_STATUS(HORUS_ERR_CANCELLED,
               horus_predictor_fit(NULL, &table->data, &options, Count, &calls, &predictor, &error));
  calls = -ROWS; /* after the rows */
  CHECK_STATUS(HORUS_ERR_CANCELLED,
               horus_predictor_fit(NULL, &table->data, &options, Count, &calls, &predictor, &error));
  CHECK(predictor == NULL);
}

static void MetricsCountsWhatThePredictorKnewAlready(const horus_graph* graph) {
  horus_predictor* predictor = NULL;
  horus_metrics* metrics = NULL;
  CHECK_OK(horus_predictor_default(&predictor, &error));
  CHECK_OK(horus_metrics_create(NULL, &metrics, &error));
  CHECK_OK(horus_predictor_set_metrics(predictor, metrics, &error));
  (void)DemandOf(predictor, graph, 8);
  (void)DemandOf(predictor, graph, 8);
  (void)DemandOf(predictor, graph, 16);
  CHECK(value_of(metrics, "horus_cache_hits_total", "cache=\"demands\"") == 1);
  CHECK(value_of(metrics, "horus_cache_misses_total", "cache=\"demands\"") == 2);
  CHECK(value_of(metrics, "horus_bytes_held", "handle=\"predictor\"") > 0);
  horus_predictor_free(predictor);
  horus_metrics_free(metrics);
}

static void MeasuredBeatsPredicted(const horus_graph* graph) {
  horus_predictor *predictor = NULL, *committed = NULL;
  horus_observations* observations = NULL;
  horus_demand_observation observation = HORUS_DEMAND_OBSERVATION_INIT;
  horus_demand before, after, other;
  CHECK_OK(horus_predictor_default(&predictor, &error));
  before = DemandOf(predictor, graph, 32);
  observation.profile_id = before.profile_id;
  observation.gpu_type = V100[0];
  observation.measured = HORUS_OBSERVED_GPU_UTIL | HORUS_OBSERVED_MEMORY;
  observation.gpu_util_pct = 41;
  observation.mem_mib = (double)before.mem_mib + 500;
  CHECK_OK(horus_observations_create(0, &observations, &error));
  CHECK_OK(horus_observations_add_demand(observations, NULL, &observation, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_commit(NULL, observations, &committed, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_predictor_commit(predictor, NULL, &committed, &error));
  CHECK_OK(horus_predictor_commit(predictor, observations, &committed, &error));
  after = DemandOf(committed, graph, 32);
  CHECK(after.gpu_util_pct == 41 && after.mem_mib == before.mem_mib + 500);
  CHECK(after.gpu_util_pct_upper < 100 && after.step_time_us == before.step_time_us);
  CHECK((after.flags & HORUS_DEMAND_MEASURED) != 0 && (before.flags & HORUS_DEMAND_MEASURED) == 0);
  CHECK(horus_predictor_epoch(committed) == 1 && horus_predictor_epoch(predictor) == 0);
  CHECK(horus_predictor_epoch(NULL) == 0);
  other = DemandOf(committed, graph, 64); /* another profile */
  CHECK((other.flags & HORUS_DEMAND_MEASURED) == 0);
  other = DemandOf(predictor, graph, 32); /* the old predictor says what it said */
  CHECK(memcmp(&other, &before, sizeof other) == 0);
  horus_observations_free(observations);
  horus_predictor_free(predictor);
  horus_predictor_free(committed);
}

/* What a tenant loses beside another one, above the time alone. */
static float LostBeside(const horus_demand* victim, const horus_demand* other) {
  const horus_demand* two[2];
  float slowdown[2] = {0, 0}, upper[2] = {0, 0};
  horus_interference* model = NULL;
  two[0] = victim;
  two[1] = other;
  CHECK_OK(horus_interference_create(NULL, &model, &error));
  CHECK_OK(slowdowns_of(model, NULL, device_of(V100[0], 0), 2, two, slowdown, upper, &error));
  horus_interference_free(model);
  return slowdown[0] - 1;
}

/* Its graph tells of small kernels, not of a loader that is slow: the one is predicted, the other is learned. */
static void AJobThatWaitsForItsHostCostsOthersLittle(const horus_graph* neighbour_graph) {
  horus_graph *small = NULL, *points = NULL;
  horus_predictor *predictor = NULL, *committed = NULL;
  horus_observations* observations = NULL;
  horus_demand_observation observation = HORUS_DEMAND_OBSERVATION_INIT;
  horus_demand neighbour, launching, predicted, seen;
  CHECK_OK(horus_graph_from_file(HORUS_GRAPHS_DIR "/dqn_atari.onnx", NULL, &small, &error));
  CHECK_OK(horus_graph_from_file(HORUS_GRAPHS_DIR "/pointnet.onnx", NULL, &points, &error));
  CHECK_OK(horus_predictor_default(&predictor, &error));
  neighbour = DemandOf(predictor, neighbour_graph, 32);
  launching = DemandOf(predictor, small, 1);
  predicted = DemandOf(predictor, points, 32);
  CHECK(launching.gpu_util_pct < 25 && predicted.gpu_util_pct > 70);
  CHECK(LostBeside(&neighbour, &launching) < LostBeside(&neighbour, &predicted) / 3);
  observation.profile_id = predicted.profile_id;
  observation.gpu_type = V100[0];
  observation.measured = HORUS_OBSERVED_GPU_UTIL;
  observation.gpu_util_pct = 8;
  CHECK_OK(horus_observations_create(0, &observations, &error));
  CHECK_OK(horus_observations_add_demand(observations, NULL, &observation, &error));
  CHECK_OK(horus_predictor_commit(predictor, observations, &committed, &error));
  seen = DemandOf(committed, points, 32);
  CHECK(LostBeside(&neighbour, &seen) < LostBeside(&neighbour, &predicted) / 3);
  horus_observations_free(observations);
  horus_predictor_free(predictor);
  horus_predictor_free(committed);
  horus_graph_free(small);
  horus_graph_free(points);
}

int main(void) {
  horus_graph *resnet = NULL, *vgg = NULL;
  static Table table;
  CHECK_OK(horus_graph_from_file(HORUS_GRAPHS_DIR "/resnet18.onnx", NULL, &resnet, &error));
  CHECK_OK(horus_graph_from_file(HORUS_GRAPHS_DIR "/vgg11.onnx", NULL, &vgg, &error));
  Fill(&table, resnet, vgg);
#ifdef HORUS_WITH_TRAIN
  WrongTablesAreRefused(&table);
  EveryCallCanBeCancelled(&table);
  ATrainedPredictorIsTheSameFromItsBytes(&table, resnet);
#endif
  MeasuredBeatsPredicted(resnet);
  AJobThatWaitsForItsHostCostsOthersLittle(resnet);
  MetricsCountsWhatThePredictorKnewAlready(resnet);
  horus_graph_free(resnet);
  horus_graph_free(vgg);
  return report();
}
