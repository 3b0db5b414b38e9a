/* SPDX-License-Identifier: Apache-2.0 */
/* What older code wrote is read today, with the results that it had then; README.md says what wrote each file. */
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

/* The snapshot tells the cluster that today's calls build, down to the bytes that today's code would write. */
static void snapshot_is_read(const char* name, uint32_t version, int level) {
  static char written[2][1 << 16];
  horus_cluster *restored = NULL, *built = golden_cluster(level);
  size_t lengths[2] = {0, 0};
  content(name);
  CHECK(size > 12 && bytes[8] == (char)version);
  CHECK_OK(horus_cluster_restore(NULL, bytes, size, &restored, &error));
  if (restored == NULL) return;
  CHECK(info_of(restored).nodes == GOLDEN_NODES && info_of(restored).devices == GOLDEN_DEVICES);
  CHECK(info_of(restored).jobs == (uint64_t)(GOLDEN_JOBS + level - 1));
  CHECK(info_of(restored).state_hash == info_of(built).state_hash);
  CHECK_OK(horus_cluster_snapshot(restored, sizeof written[0], written[0], &lengths[0], &error));
  CHECK_OK(horus_cluster_snapshot(built, sizeof written[1], written[1], &lengths[1], &error));
  CHECK(lengths[0] == lengths[1] && memcmp(written[0], written[1], lengths[0]) == 0);
  horus_cluster_free(restored);
  horus_cluster_free(built);
}

static void newer_snapshot_is_refused(const char* name) {
  horus_cluster* restored = NULL;
  content(name);
  ++bytes[8]; /* the format version, little-endian */
  CHECK_MESSAGE(HORUS_VERSION, "version 3 is newer than 2",
                horus_cluster_restore(NULL, bytes, size, &restored, &error));
  CHECK(restored == NULL);
}

static void interference_is_read(const char* name, const char* model) {
  horus_interference* interference = NULL;
  content(name);
  CHECK_OK(horus_interference_from_bytes(NULL, bytes, size, model, &interference, &error));
  CHECK(interference != NULL);
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
  CHECK(quality.rows > 0 && quality.trees > 0);
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
  snapshot_is_read("snapshots/2-now", 2, 3);
  newer_snapshot_is_refused("snapshots/2-now");
  interference_is_read("interference/2026-11-21-boosted.hbundle", NULL);
  interference_is_read("interference/2026-11-21-with-iapp.hbundle", NULL);
  interference_is_read("interference/2026-11-21-with-iapp.hbundle", "iapp");
  observations_are_read("observations/demands-alone", sizeof(uint64_t));
  observations_are_read("observations/two-parts", 0);
#ifdef GOLDEN_ONNX
  predictor_is_told_no("predictors/2026-11-21-first.hbundle", HORUS_CORRUPT, "series coverage");
  predictor_is_read("predictors/2026-11-21-reviewed.hbundle");
#endif
#ifdef GOLDEN_FILES
  files_are_read("yaml/2026-11-21/cluster.yaml", "yaml/2026-11-21/jobs.yaml", 23, 2, 12);
#endif
  return report();
}
