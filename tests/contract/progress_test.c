/* SPDX-License-Identifier: Apache-2.0 */
/* A callback that only looks on and never cancels is called, and changes nothing of a call's answer. These callbacks do
 * not mind how often they are called, so the calls can be tried under failing allocations (tests/faults). */
#include <stdlib.h>

#include "sim_world.h"

static int told; /* whether anybody was */

static int32_t go_on(void* user, double done) {
  CHECK(user == &told && done >= 0 && done <= 1);
  told = 1;
  return 0;
}

static int32_t look_on(void* user, const horus_sim_event* event) {
  CHECK(user == &told && event->struct_size == sizeof *event);
  told = 1;
  return 0;
}

static void SimulationsAreTheSame(void) {
  world it;
  horus_sim_metrics alone, observed;
  horus_sim_result* result = NULL;
  int watched;
  open_world(&it, 1);
  CHECK_OK(play(&it, NULL, NULL, NULL, NULL, &result, &error));
  alone = metrics_of(result);
  horus_sim_result_free(result);
  for (watched = 0; watched < 2; ++watched) {
    result = NULL;
    told = 0;
    CHECK_OK(play(&it, NULL, watched ? look_on : NULL, watched ? NULL : go_on, &told, &result, &error));
    observed = metrics_of(result);
    CHECK(told && observed.finished == 2 && memcmp(&alone, &observed, sizeof alone) == 0);
    horus_sim_result_free(result);
  }
  close_world(&it);
}

#ifdef HORUS_WITH_LP
static void PotentialsAreTheSame(void) {
  static const double work[2] = {1, 1}, gpus[1] = {4};
  const horus_speeds speeds = speeds_of_two();
  horus_potential alone = HORUS_POTENTIAL_INIT, observed = HORUS_POTENTIAL_INIT;
  told = 0;
  CHECK_OK(horus_potential_compute(&speeds, work, gpus, NULL, NULL, NULL, &alone, NULL, NULL, &error));
  CHECK_OK(horus_potential_compute(&speeds, work, gpus, NULL, go_on, &told, &observed, NULL, NULL, &error));
  CHECK(told && alone.run == 1 && memcmp(&alone, &observed, sizeof alone) == 0);
}
#endif

#ifdef HORUS_WITH_TRAIN
#define ROWS 16

static void* bytes_of(const horus_predictor* predictor, size_t* size) {
  void* bytes;
  CHECK_STATUS(HORUS_BUFFER_TOO_SMALL, horus_predictor_to_bytes(predictor, 0, NULL, size, &error));
  bytes = malloc(*size);
  CHECK_OK(horus_predictor_to_bytes(predictor, *size, bytes, size, &error));
  return bytes;
}

/* Runs of two nets at growing batches whose steps take 1 ms a sample. */
static void TrainedPredictorsAreTheSame(void) {
  static const char* const files[2] = {HORUS_GRAPHS_DIR "/resnet18.onnx", HORUS_GRAPHS_DIR "/vgg11.onnx"};
  horus_training_data data = HORUS_TRAINING_DATA_INIT;
  horus_graph* nets[2] = {NULL, NULL};
  horus_run_spec runs[ROWS];
  const horus_run_spec* run_of[ROWS];
  const horus_graph* graphs[ROWS];
  const char *gpus[ROWS], *families[ROWS];
  double step_us[ROWS];
  horus_predictor *alone = NULL, *observed = NULL;
  void *first, *second;
  size_t size = 0, again = 0;
  int i;
  for (i = 0; i < 2; ++i) CHECK_OK(horus_graph_from_file(files[i], NULL, &nets[i], &error));
  for (i = 0; i < ROWS; ++i) {
    const horus_run_spec run = HORUS_RUN_SPEC_INIT;
    runs[i] = run;
    runs[i].batch = 1 << (i / 2);
    run_of[i] = &runs[i];
    graphs[i] = nets[i % 2];
    families[i] = kProfiles[i % 2];
    gpus[i] = FIXTURE_GPU;
    step_us[i] = 1000.0 * (double)runs[i].batch;
  }
  data.count = ROWS;
  data.graphs = graphs;
  data.runs = run_of;
  data.gpu_types = gpus;
  data.families = data.nets = families;
  data.step_time_us = step_us;
  told = 0;
  CHECK_OK(horus_predictor_fit(NULL, &data, NULL, NULL, NULL, &alone, &error));
  CHECK_OK(horus_predictor_fit(NULL, &data, NULL, go_on, &told, &observed, &error));
  first = bytes_of(alone, &size);
  second = bytes_of(observed, &again);
  CHECK(told && size == again && memcmp(first, second, size) == 0);
  free(first);
  free(second);
  horus_predictor_free(alone);
  horus_predictor_free(observed);
  for (i = 0; i < 2; ++i) horus_graph_free(nets[i]);
}
#endif

int main(void) {
  SimulationsAreTheSame();
#ifdef HORUS_WITH_LP
  PotentialsAreTheSame();
#endif
#ifdef HORUS_WITH_TRAIN
  TrainedPredictorsAreTheSame();
#endif
  return report();
}
