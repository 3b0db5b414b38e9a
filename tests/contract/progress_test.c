/* SPDX-License-Identifier: Apache-2.0 */
/* A callback that only looks on and never cancels is called, and changes nothing of a call's answer. These callbacks do
 * not mind how often they are called, so the calls can be tried under failing allocations (tests/faults). */
#include <stdlib.h>

#include "sim_setup.h"
#include "training_table.h"

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
  setup it;
  horus_sim_metrics alone, observed;
  horus_sim_result* result = NULL;
  int metered;
  open_world(&it, 1);
  CHECK_OK(play(&it, NULL, NULL, NULL, NULL, &result, &error));
  alone = metrics_of(result);
  horus_sim_result_free(result);
  for (metered = 0; metered < 2; ++metered) {
    result = NULL;
    told = 0;
    CHECK_OK(play(&it, NULL, metered ? look_on : NULL, metered ? NULL : go_on, &told, &result, &error));
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
static void* bytes_of(const horus_predictor* predictor, size_t* size) {
  void* bytes;
  CHECK_OK(horus_predictor_to_bytes(predictor, 0, NULL, size, &error));
  bytes = malloc(*size);
  CHECK_OK(horus_predictor_to_bytes(predictor, *size, bytes, size, &error));
  return bytes;
}

static void TrainedPredictorsAreTheSame(void) {
  static Table table;
  horus_graph *resnet = NULL, *vgg = NULL;
  horus_predictor *alone = NULL, *observed = NULL;
  void *first, *second;
  size_t size = 0, again = 0;
  CHECK_OK(horus_graph_from_file(HORUS_GRAPHS_DIR "/resnet18.onnx", NULL, &resnet, &error));
  CHECK_OK(horus_graph_from_file(HORUS_GRAPHS_DIR "/vgg11.onnx", NULL, &vgg, &error));
  Fill(&table, resnet, vgg);
  told = 0;
  CHECK_OK(horus_predictor_fit(NULL, &table.data, NULL, NULL, NULL, &alone, &error));
  CHECK_OK(horus_predictor_fit(NULL, &table.data, NULL, go_on, &told, &observed, &error));
  first = bytes_of(alone, &size);
  second = bytes_of(observed, &again);
  CHECK(told && size == again && memcmp(first, second, size) == 0);
  free(first);
  free(second);
  horus_predictor_free(alone);
  horus_predictor_free(observed);
  horus_graph_free(resnet);
  horus_graph_free(vgg);
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
