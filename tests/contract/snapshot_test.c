/* SPDX-License-Identifier: Apache-2.0 */
/* A thousand jobs through the whole life of a cluster: planned, applied, saved, restored, released. */
#include <stdlib.h>

#include "fixture.h"

#define JOBS 1000
#define NODES 400 /* 800 GPUs */

static given_job given[JOBS];
static const horus_job* jobs[JOBS];

static size_t place_all(horus_cluster* cluster, horus_placer* placer) {
  horus_plan* plan = NULL;
  size_t i, placed = 0;
  for (i = 0; i < JOBS; ++i) {
    /* Utilisation and memory of many sizes, from a fixed rule; every tenth job is a gang of two. */
    give_job(&given[i], 1000 + i, (float)(10 + i * 7 % 50), 1000 + (int64_t)(i * 13 % 9) * 700);
    given[i].job.name = i % 2 == 0 ? "caf\xc3\xa9" : NULL;
    given[i].job.tasks = i % 10 == 0 ? 2 : 1;
    given[i].job.submit_us = (int64_t)i;
    jobs[i] = &given[i].job;
  }
  CHECK_OK(horus_placer_plan(placer, cluster, JOBS, jobs, 0, NULL, NULL, NULL, &plan, &error));
  CHECK(decisions_of(plan) == JOBS);
  for (i = 0; i < JOBS; ++i) {
    horus_decision decision = HORUS_DECISION_INIT;
    CHECK_OK(horus_plan_get(plan, i, &decision, &error));
    CHECK(decision.job_id == 1000 + i); /* planning order: by submission */
    placed += decision.verdict == HORUS_VERDICT_PLACE;
  }
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  return placed;
}

static void* save(const horus_cluster* cluster, size_t* size) {
  void* bytes;
  *size = 0;
  CHECK_OK(horus_cluster_snapshot(cluster, 0, NULL, size, &error));
  CHECK(*size > 0);
  bytes = malloc(*size);
  CHECK_OK(horus_cluster_snapshot(cluster, *size, bytes, size, &error));
  return bytes;
}

static void RestoredClustersAreTheSame(horus_cluster* cluster, horus_placer* placer) {
  horus_cluster* restored = NULL;
  horus_plan *here, *there;
  horus_decision a = HORUS_DECISION_INIT, b = HORUS_DECISION_INIT;
  size_t size = 0, again = 0;
  given_job next;
  void* bytes = save(cluster, &size);
  void* bytes_again;
  CHECK_OK(horus_cluster_restore(NULL, bytes, size, &restored, &error));
  CHECK(state_hash(restored) == state_hash(cluster));
  bytes_again = save(restored, &again);
  CHECK(again == size && memcmp(bytes, bytes_again, size) == 0);

  give_job(&next, 5000, 35, 3000); /* later decisions are those of the original */
  here = plan_one(placer, cluster, &next);
  there = plan_one(placer, restored, &next);
  CHECK_OK(horus_plan_get(here, 0, &a, &error));
  CHECK_OK(horus_plan_get(there, 0, &b, &error));
  CHECK(a.verdict == b.verdict && a.cost == b.cost && strcmp(a.text, b.text) == 0);
  CHECK_OK(horus_cluster_apply(restored, there, &error));
  CHECK(state_hash(restored) != state_hash(cluster));
  CHECK_OK(horus_cluster_release(restored, 5000, &error));
  CHECK(state_hash(restored) == state_hash(cluster));
  horus_plan_free(here);
  horus_plan_free(there);
  horus_cluster_free(restored);
  free(bytes);
  free(bytes_again);
}

static void DamagedSnapshotsAreRefused(const horus_cluster* cluster) {
  horus_cluster* out = NULL;
  size_t size = 0, i;
  unsigned char* bytes = save(cluster, &size);
  unsigned char byte = 0;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_restore(NULL, NULL, 0, &out, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_restore(NULL, bytes, size, NULL, &error));
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_cluster_restore(NULL, &byte, 0, &out, &error));
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_cluster_restore(NULL, "not a snapshot", 14, &out, &error));
  for (i = 1; i < size; i += 1 + size / 61) {
    CHECK_STATUS(HORUS_ERR_CORRUPT, horus_cluster_restore(NULL, bytes, size - i, &out, &error));
  }
  for (i = size / 3; i < size; i += 1 + size / 61) { /* one bit, behind the header */
    bytes[i] ^= 4;
    CHECK_STATUS(HORUS_ERR_CORRUPT, horus_cluster_restore(NULL, bytes, size, &out, &error));
    bytes[i] ^= 4;
  }
  CHECK(out == NULL);
  free(bytes);
}

static void SnapshotArgumentsAreChecked(const horus_cluster* cluster) {
  unsigned char bytes[4] = {9, 9, 9, 9};
  size_t count = 0;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_snapshot(NULL, 4, bytes, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_snapshot(cluster, 4, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_snapshot(cluster, 4, bytes, NULL, &error));
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_cluster_snapshot(cluster, 4, bytes, &count, &error));
  CHECK(count > 4 && bytes[0] == 9 && bytes[3] == 9);
}

static void FilesHoldTheSnapshot(const horus_cluster* cluster) {
  const char* const path = "horus_contract_snapshot.tmp";
  horus_cluster* restored = NULL;
  size_t size = 0;
  char* bytes = save(cluster, &size);
  char* written = malloc(size + 1);
  FILE* file;
  CHECK_OK(horus_cluster_snapshot_file(cluster, path, &error));
  CHECK_OK(horus_cluster_snapshot_file(cluster, path, &error)); /* replaces */
  file = fopen(path, "rb");
  CHECK(file != NULL && fread(written, 1, size + 1, file) == size && memcmp(written, bytes, size) == 0);
  if (file != NULL) fclose(file);
  CHECK_OK(horus_cluster_restore_file(NULL, path, &restored, &error));
  CHECK(state_hash(restored) == state_hash(cluster));
  horus_cluster_free(restored);
  restored = NULL;
  CHECK(remove(path) == 0);
  CHECK_MESSAGE(HORUS_ERR_IO, path, horus_cluster_restore_file(NULL, path, &restored, &error));
  CHECK_MESSAGE(HORUS_ERR_IO, "no/such/folder", horus_cluster_snapshot_file(cluster, "no/such/folder/file", &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_snapshot_file(NULL, path, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_snapshot_file(cluster, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_restore_file(NULL, NULL, &restored, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_restore_file(NULL, path, NULL, &error));
  CHECK(restored == NULL);
  free(bytes);
  free(written);
}

static void EverythingCanBeReleased(horus_cluster* cluster, uint64_t empty_hash) {
  uint64_t ids[JOBS];
  size_t count = 0, i;
  CHECK_OK(horus_cluster_jobs(cluster, JOBS, ids, &count, &error));
  for (i = 0; i < count; ++i) CHECK_OK(horus_cluster_release(cluster, ids[i], &error));
  CHECK(state_hash(cluster) == empty_hash);
}

int main(void) {
  horus_cluster* cluster = cluster_of(NODES);
  horus_placer* placer = placer_of("horus");
  const uint64_t empty_hash = state_hash(cluster);
  const size_t placed = place_all(cluster, placer);
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  CHECK_OK(horus_cluster_get_info(cluster, &info, &error));
  CHECK(placed > JOBS / 2 && info.jobs == placed);
  RestoredClustersAreTheSame(cluster, placer);
  DamagedSnapshotsAreRefused(cluster);
  SnapshotArgumentsAreChecked(cluster);
  FilesHoldTheSnapshot(cluster);
  EverythingCanBeReleased(cluster, empty_hash);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  return report();
}
