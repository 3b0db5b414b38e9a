/* SPDX-License-Identifier: Apache-2.0 */
/* A small table of measured runs that a predictor can be trained on. */
#ifndef HORUS_TESTS_CONTRACT_TRAINING_TABLE_H_
#define HORUS_TESTS_CONTRACT_TRAINING_TABLE_H_

#include "fixture.h"

#define ROWS 16
#define TRAINING_GPU "v100-sxm2-16gb"

/* Runs of two nets at growing batches, all on one GPU type, whose steps take 1 ms a sample. */
typedef struct Table {
  horus_training_data data;
  horus_run_spec runs[ROWS];
  const horus_run_spec* run_of[ROWS];
  const horus_graph* graphs[ROWS];
  const char* gpus[ROWS];
  const char* families[ROWS];
  double step_us[ROWS];
} Table;

static inline void Fill(Table* table, const horus_graph* first, const horus_graph* second) {
  const horus_training_data data = HORUS_TRAINING_DATA_INIT;
  const horus_run_spec run = HORUS_RUN_SPEC_INIT;
  int i;
  table->data = data;
  for (i = 0; i < ROWS; ++i) {
    table->runs[i] = run;
    table->runs[i].batch = 1 << (i / 2);
    table->run_of[i] = &table->runs[i];
    table->graphs[i] = i % 2 == 0 ? first : second;
    table->families[i] = i % 2 == 0 ? "a" : "b";
    table->gpus[i] = TRAINING_GPU;
    table->step_us[i] = 1000.0 * (double)table->runs[i].batch;
  }
  table->data.count = ROWS;
  table->data.graphs = table->graphs;
  table->data.runs = table->run_of;
  table->data.gpu_types = table->gpus;
  table->data.families = table->families;
  table->data.nets = table->families;
  table->data.step_time_us = table->step_us;
}

#endif /* HORUS_TESTS_CONTRACT_TRAINING_TABLE_H_ */
