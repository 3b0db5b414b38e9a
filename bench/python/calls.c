/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that bench/python measures, in C: the time beside which Python's stands.
 * Usage: calls place|batch|slowdown SNAPSHOT ROWS TIMES
 *   SNAPSHOT: of a cluster; ROWS: horus_demand structs, a job each (slowdown: two tenants a device).
 * Prints the nanoseconds of each of TIMES runs, a line each: of one horus_placer_plan, of one batch of all rows, of all
 * rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "horus/horus.h"

#define CPU_MILLI 1000 /* of each job, as bench/python/calls_bench.py says */
#define MEM_MIB 1024

static void Check(horus_status status, const horus_error* error) {
  if (status == HORUS_OK) return;
  fprintf(stderr, "%s: %s\n", horus_status_name(status), error->message);
  exit(1);
}

static char* ReadAll(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  char* bytes;
  if (file == NULL) exit(1);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  bytes = malloc(*size);
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) exit(1);
  fclose(file);
  return bytes;
}

static double Nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int32_t GoOn(void* user, double done) {
  (void)user;
  (void)done;
  return 0;
}

static void Plan(int batch, const horus_cluster* cluster, const horus_demand* rows, size_t count, long times) {
  static const char* const any = NULL;
  horus_error error = HORUS_ERROR_INIT;
  horus_placer* placer = NULL;
  horus_job* jobs = calloc(count, sizeof *jobs);
  const horus_job** pointers = calloc(count, sizeof *pointers);
  const horus_demand** demands = calloc(count, sizeof *demands);
  size_t i;
  Check(horus_placer_create(NULL, &placer, &error), &error);
  for (i = 0; i < count; ++i) {
    const horus_job init = HORUS_JOB_INIT;
    jobs[i] = init;
    demands[i] = &rows[i];
    jobs[i].id = i + 1;
    jobs[i].cpu_milli = CPU_MILLI;
    jobs[i].mem_mib = MEM_MIB;
    jobs[i].submit_us = (int64_t)i;
    jobs[i].demand_count = 1;
    jobs[i].gpu_types = &any;
    jobs[i].demands = &demands[i];
    pointers[i] = &jobs[i];
  }
  for (; times > 0; --times) {
    horus_plan* plan = NULL;
    const double start = Nanoseconds();
    if (batch) {
      Check(horus_placer_plan_batch(placer, cluster, count, pointers, 0, NULL, NULL, GoOn, NULL, &plan, &error),
            &error);
    } else {
      Check(horus_placer_plan(placer, cluster, 1, pointers, 0, NULL, GoOn, NULL, &plan, &error), &error);
    }
    printf("%.0f\n", Nanoseconds() - start);
    horus_plan_free(plan);
  }
}

static void Slowdown(const horus_demand* rows, size_t count, long times) {
  horus_error error = HORUS_ERROR_INIT;
  horus_interference* model = NULL;
  horus_device device = HORUS_DEVICE_INIT;
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  float* slowdown = malloc(count * sizeof *slowdown);
  float* upper = malloc(count * sizeof *upper);
  size_t i;
  device.gpu_type = "v100-pcie-16gb";
  Check(horus_interference_create(NULL, &model, &error), &error);
  for (; times > 0; --times) {
    const double start = Nanoseconds();
    for (i = 0; i + 1 < count; i += 2) {
      const horus_demand* tenants[2];
      tenants[0] = &rows[i];
      tenants[1] = &rows[i + 1];
      columns.slowdown = slowdown + i;
      columns.slowdown_upper = upper + i;
      Check(horus_interference_slowdown(model, NULL, &device, 2, tenants, 0, &columns, &error), &error);
    }
    printf("%.0f\n", Nanoseconds() - start);
  }
}

int main(int argc, char** argv) {
  horus_error error = HORUS_ERROR_INIT;
  horus_cluster* cluster = NULL;
  size_t size = 0, bytes = 0;
  char* snapshot;
  const horus_demand* rows;
  if (argc != 5) return 2;
  snapshot = ReadAll(argv[2], &size);
  rows = (const horus_demand*)(const void*)ReadAll(argv[3], &bytes);
  Check(horus_cluster_restore(NULL, snapshot, size, &cluster, &error), &error);
  if (strcmp(argv[1], "slowdown") == 0) {
    Slowdown(rows, bytes / sizeof *rows, atol(argv[4]));
  } else {
    Plan(strcmp(argv[1], "batch") == 0, cluster, rows, bytes / sizeof *rows, atol(argv[4]));
  }
  return 0;
}
