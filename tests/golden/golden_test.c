/* SPDX-License-Identifier: Apache-2.0 */
/* What older code wrote is read today, with the results that it had then; README.md says what wrote each file. */
#include <math.h>

#include "../contract/check.h"
#include "golden_cluster.h"

static char bytes[1 << 18];
static size_t size;

/* The file's content, ended by NUL. */
static const char* content(const char* name) {
  char path[4096];
  FILE* file;
  snprintf(path, sizeof path, "%s/%s", HORUS_GOLDEN_DIR, name);
  file = fopen(path, "rb");
  size = file == NULL ? 0 : fread(bytes, 1, sizeof bytes - 1, file);
  if (file != NULL) fclose(file);
  if (size == 0) {
    fprintf(stderr, "%s: cannot be read\n", path);
    ++failures;
  }
  bytes[size] = '\0';
  return bytes;
}

static horus_cluster_info info_of(const horus_cluster* cluster) {
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  CHECK_OK(horus_cluster_get_info(cluster, &info, &error));
  return info;
}

/* Nodes, devices and jobs as those that today's calls build, but for versions of nodes, which are the old code's own,
 * and `unseen`, a job of which the old code did not see that its labels forbid the place. */
static void tells_the_same(const horus_cluster* restored, const horus_cluster* built, uint64_t unseen) {
  uint64_t ids[GOLDEN_JOBS + 2], node_ids[2][2];
  uint32_t devices[2][2], tasks[2][2];
  size_t count = 0, slots[2] = {0, 0}, i;
  CHECK_OK(horus_cluster_nodes(built, GOLDEN_NODES, ids, &count, &error));
  for (i = 0; i < count; ++i) {
    horus_node_info nodes[2] = {HORUS_NODE_INFO_INIT, HORUS_NODE_INFO_INIT};
    uint32_t device;
    CHECK_OK(horus_cluster_get_node(restored, ids[i], &nodes[0], 0, NULL, NULL, &error));
    CHECK_OK(horus_cluster_get_node(built, ids[i], &nodes[1], 0, NULL, NULL, &error));
    nodes[0].version = nodes[1].version;
    CHECK(memcmp(&nodes[0], &nodes[1], sizeof nodes[0]) == 0);
    for (device = 0; device < nodes[1].devices; ++device) {
      horus_device_info found = HORUS_DEVICE_INFO_INIT, expected = HORUS_DEVICE_INFO_INIT;
      CHECK_OK(horus_cluster_get_device(restored, ids[i], device, &found, 0, NULL, NULL, &error));
      CHECK_OK(horus_cluster_get_device(built, ids[i], device, &expected, 0, NULL, NULL, &error));
      CHECK((found.mig_profile == NULL) == (expected.mig_profile == NULL));
      CHECK(found.mig_profile == NULL || strcmp(found.mig_profile, expected.mig_profile) == 0);
      found.mig_profile = expected.mig_profile;
      CHECK(memcmp(&found, &expected, sizeof found) == 0);
    }
  }
  CHECK_OK(horus_cluster_jobs(built, sizeof ids / sizeof *ids, ids, &count, &error));
  for (i = 0; i < count; ++i) {
    horus_job_info jobs[2] = {HORUS_JOB_INFO_INIT, HORUS_JOB_INFO_INIT};
    int k;
    for (k = 0; k < 2; ++k) {
      const horus_cluster* cluster = k == 0 ? restored : built;
      horus_slots rows = HORUS_SLOTS_INIT;
      rows.capacity = 2;
      rows.node_ids = node_ids[k];
      rows.devices = devices[k];
      rows.tasks = tasks[k];
      CHECK_OK(horus_cluster_get_job(cluster, ids[i], &jobs[k], 0, NULL, NULL, &error));
      CHECK_OK(horus_cluster_job_slots(cluster, ids[i], &rows, &slots[k], &error));
    }
    if (ids[i] == unseen) {
      CHECK(jobs[0].over_committed == 0 && jobs[1].over_committed == 1);
      jobs[0].over_committed = 1;
    }
    CHECK(memcmp(&jobs[0], &jobs[1], sizeof jobs[0]) == 0);
    CHECK(slots[0] == slots[1] && memcmp(node_ids[0], node_ids[1], slots[0] * sizeof node_ids[0][0]) == 0);
    CHECK(memcmp(devices[0], devices[1], slots[0] * sizeof devices[0][0]) == 0);
    CHECK(memcmp(tasks[0], tasks[1], slots[0] * sizeof tasks[0][0]) == 0);
  }
}

/* `unseen`: see above. `exact`: the snapshot is to the last bit that of today. */
static void snapshot_is_read(const char* name, uint32_t version, int level, uint64_t unseen, int exact) {
  static char written[2][1 << 16];
  horus_cluster *restored = NULL, *built = golden_cluster(level);
  size_t lengths[2] = {0, 0};
  content(name);
  CHECK(size > 12 && bytes[8] == (char)version);
  CHECK_OK(horus_cluster_restore(NULL, bytes, size, &restored, &error));
  if (restored == NULL) return;
  CHECK(info_of(restored).nodes == GOLDEN_NODES && info_of(restored).devices == GOLDEN_DEVICES);
  CHECK(info_of(restored).jobs == (uint64_t)(GOLDEN_JOBS + level - 1));
  tells_the_same(restored, built, unseen);
  CHECK_OK(horus_cluster_snapshot(restored, sizeof written[0], written[0], &lengths[0], &error));
  CHECK_OK(horus_cluster_snapshot(built, sizeof written[1], written[1], &lengths[1], &error));
  if (unseen == 0) CHECK(info_of(restored).state_hash == info_of(built).state_hash);
  if (exact) {
    CHECK(lengths[0] == lengths[1] && memcmp(written[0], written[1], lengths[0]) == 0);
  }
  horus_cluster_free(restored);
  horus_cluster_free(built);
}

static void newer_snapshot_is_refused(const char* name) {
  horus_cluster* restored = NULL;
  content(name);
  ++bytes[8]; /* the format version, little-endian */
  CHECK_MESSAGE(HORUS_ERR_VERSION, "version 3 is newer than 2",
                horus_cluster_restore(NULL, bytes, size, &restored, &error));
  CHECK(restored == NULL);
}

/* `stated`: slowdowns of two jobs on a V100, as on 23 November 2026. */
static void interference_is_read(const char* name, const char* model, const double* stated) {
  horus_interference* interference = NULL;
  horus_demand busy = HORUS_DEMAND_INIT, light = HORUS_DEMAND_INIT;
  const horus_demand* demands[2];
  horus_device device = HORUS_DEVICE_INIT;
  float slowdown[2] = {0, 0};
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  int i;
  demands[0] = &busy;
  demands[1] = &light;
  busy.gpu_util_pct = busy.gpu_util_pct_upper = 90;
  busy.mem_bw_util_pct = busy.mem_bw_util_pct_upper = 60;
  light.gpu_util_pct = light.gpu_util_pct_upper = 40;
  light.mem_bw_util_pct = light.mem_bw_util_pct_upper = 20;
  busy.mem_mib = busy.mem_mib_upper = light.mem_mib = light.mem_mib_upper = 4000;
  busy.step_time_us = busy.step_time_us_upper = light.step_time_us = light.step_time_us_upper = 100000;
  device.gpu_type = "v100-sxm2-16gb";
  device.sharing_mode = HORUS_SHARING_TIME_SLICE;
  content(name);
  CHECK_OK(horus_interference_from_bytes(NULL, bytes, size, model, &interference, &error));
  columns.slowdown = slowdown;
  CHECK_OK(horus_interference_slowdown(interference, NULL, &device, 2, demands, 0, &columns, &error));
  for (i = 0; i < 2; ++i) {
    if (fabs((double)slowdown[i] - stated[i]) <= 1e-5) continue;
    fprintf(stderr, "%s: slowdown[%d]: expected %.6f, found %.6f\n", name, i, stated[i], (double)slowdown[i]);
    ++failures;
  }
  horus_interference_free(interference);
}

/* `head`: bytes that the snapshot of today has before what the file holds. */
static void observations_are_read(const char* name, size_t head) {
  static char again[16384];
  horus_observations* observations = NULL;
  size_t found = 0;
  content(name);
  CHECK_OK(horus_observations_restore(bytes, size, &observations, &error));
  if (observations == NULL) return;
  CHECK_OK(horus_observations_snapshot(observations, sizeof again, again, &found, &error));
  CHECK(found >= head + size && memcmp(again + head, bytes, size) == 0);
  horus_observations_free(observations);
}

#ifdef GOLDEN_ONNX
static void predictor_is_read(const char* name) {
  horus_predictor* predictor = NULL;
  horus_prediction_quality quality = HORUS_PREDICTION_QUALITY_INIT;
  content(name);
  CHECK_OK(horus_predictor_from_bytes(bytes, size, &predictor, &error));
  CHECK_OK(horus_predictor_get_quality(predictor, "mem_mib", &quality, &error));
  CHECK(quality.rows == 370 && quality.trees == 7);
  horus_predictor_free(predictor);
}

static void predictor_is_told_no(const char* name, horus_status status, const char* text) {
  horus_predictor* predictor = NULL;
  content(name);
  CHECK_MESSAGE(status, text, horus_predictor_from_bytes(bytes, size, &predictor, &error));
  CHECK(predictor == NULL);
}
#endif

#ifdef GOLDEN_FILES
/* Paths of models in the files are relative to examples/, where the files lay. */
static void files_are_read(const char* cluster_file, const char* jobs_file, uint64_t devices, uint64_t residents,
                           size_t jobs) {
  horus_cluster* cluster = NULL;
  horus_job_list* list = NULL;
  CHECK_OK(horus_cluster_from_yaml(NULL, NULL, HORUS_EXAMPLES_DIR "/cluster.yaml", content(cluster_file), NULL,
                                   &cluster, &error));
  CHECK(info_of(cluster).devices == devices && info_of(cluster).jobs == residents);
  CHECK_OK(horus_job_list_from_yaml(cluster, NULL, HORUS_EXAMPLES_DIR "/jobs.yaml", content(jobs_file), &list, &error));
  CHECK(horus_job_list_count(list) == jobs);
  horus_job_list_free(list);
  horus_cluster_free(cluster);
}
#endif

int main(void) {
  static const double boosted[] = {1.355563, 1.661738}, iapp[] = {1.624706, 1.810677};
  snapshot_is_read("snapshots/1-first", 1, 1, 11, 0);
  snapshot_is_read("snapshots/2-now", 2, 3, 0, 0);
  snapshot_is_read("snapshots/2-host-time", 2, 3, 0, 0);
  snapshot_is_read("snapshots/2-more-types", 2, 3, 0, 1);
  newer_snapshot_is_refused("snapshots/2-now");
  interference_is_read("interference/2026-11-21-boosted.hbundle", NULL, boosted);
  interference_is_read("interference/2026-11-21-with-iapp.hbundle", NULL, boosted);
  interference_is_read("interference/2026-11-21-with-iapp.hbundle", "iapp", iapp);
  observations_are_read("observations/demands-alone", sizeof(uint64_t));
  observations_are_read("observations/two-parts", 0);
#ifdef GOLDEN_ONNX
  /* Features of schema 2. */
  predictor_is_told_no("predictors/2026-11-21-first.hbundle", HORUS_ERR_STATE, "train it again");
  predictor_is_told_no("predictors/2026-11-21-reviewed.hbundle", HORUS_ERR_STATE, "train it again");
  predictor_is_read("predictors/2026-11-26-kinds.hbundle");
#endif
#ifdef GOLDEN_FILES
  files_are_read("yaml/2026-11-21/cluster.yaml", "yaml/2026-11-21/jobs.yaml", 23, 2, 12);
#endif
  return report();
}
