/* SPDX-License-Identifier: Apache-2.0 */
/* Files that fail under a snapshot: what is met halfway is no error, what is one leaves the old file whole. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_files.h"
#include "fixture.h"

static char folder[] = "horus_faults_XXXXXX";
static char path[256];

static int files_in_folder(void) {
  DIR* const listing = opendir(folder);
  int count = 0;
  const struct dirent* entry;
  while (listing != NULL && (entry = readdir(listing)) != NULL) count += entry->d_name[0] != '.';
  if (listing != NULL) closedir(listing);
  return count;
}

static uint64_t hash_of_file(void) {
  horus_cluster* restored = NULL;
  uint64_t hash;
  CHECK_OK(horus_cluster_restore_file(NULL, path, &restored, &error));
  if (restored == NULL) return 0;
  hash = state_hash(restored);
  horus_cluster_free(restored);
  return hash;
}

/* Whether the fault came; then the call must have answered `expected`. */
static int saved_under(const horus_cluster* cluster, enum FileFault fault, int before, horus_status expected) {
  horus_error error = HORUS_ERROR_INIT;
  horus_status status;
  FailFiles(fault, before, fault == kWriteShort || fault == kReadShort ? 1000 : 1);
  status = horus_cluster_snapshot_file(cluster, path, &error);
  if (FaultsMet() == 0) expected = HORUS_OK;
  FailFiles(kNoFault, -1, 0);
  if (status != expected || (status != HORUS_OK && strstr(error.message, path) == NULL)) {
    fprintf(stderr, "fault %d after %d calls: %s: %s\n", (int)fault, before, horus_status_name(status), error.message);
    ++failures;
  }
  return FaultsMet();
}

static void ErrorsOfWritingLeaveTheOldFile(const horus_cluster* old, const horus_cluster* cluster) {
  const enum FileFault faults[] = {kOpenRefused,  kOpenTooMany, kWriteFull, kWriteBroken,
                                   kWriteNothing, kSyncBroken,  kCloseFull, kRenameFull};
  size_t i;
  for (i = 0; i < sizeof faults / sizeof *faults; ++i) {
    int before, met = 0;
    for (before = 0; before < 4; ++before) {
      horus_error found = HORUS_ERROR_INIT;
      horus_status status;
      CHECK_OK(horus_cluster_snapshot_file(old, path, &error));
      FailFiles(faults[i], before, 1);
      status = horus_cluster_snapshot_file(cluster, path, &found);
      if (FaultsMet() > 0) {
        const int folder_only = faults[i] == kSyncBroken && before == 1; /* behind the rename, as the message says */
        FailFiles(kNoFault, -1, 0);
        ++met;
        /* The folder's own close, after everything is done, matters to nobody. */
        if (faults[i] == kCloseFull && before == 1) continue;
        CHECK(status == HORUS_ERR_IO && strstr(found.message, path) != NULL);
        CHECK(hash_of_file() == state_hash(folder_only ? cluster : old));
        CHECK(!folder_only || strstr(found.message, "folder") != NULL);
        CHECK(files_in_folder() == 1);
      }
      FailFiles(kNoFault, -1, 0);
    }
    CHECK(met > 0);
  }
}

static void InterruptionsAndPartsAreNoErrors(const horus_cluster* cluster) {
  const enum FileFault writing[] = {kOpenInterrupted, kWriteInterrupted, kWriteShort, kSyncInterrupted,
                                    kCloseInterrupted};
  const enum FileFault reading[] = {kOpenInterrupted, kReadInterrupted, kReadShort};
  size_t i;
  for (i = 0; i < sizeof writing / sizeof *writing; ++i) {
    int before;
    CHECK(unlink(path) == 0);
    for (before = 0; before < 2; ++before) saved_under(cluster, writing[i], before, HORUS_OK);
    CHECK(hash_of_file() == state_hash(cluster));
  }
  for (i = 0; i < sizeof reading / sizeof *reading; ++i) {
    FailFiles(reading[i], 0, 100);
    CHECK(hash_of_file() == state_hash(cluster));
    CHECK(FaultsMet() > 0);
    FailFiles(kNoFault, -1, 0);
  }
}

static void ErrorsOfReadingGiveNoCluster(void) {
  horus_cluster* out = NULL;
  FailFiles(kOpenRefused, 0, 1);
  CHECK_MESSAGE(HORUS_ERR_IO, path, horus_cluster_restore_file(NULL, path, &out, &error));
  FailFiles(kReadBroken, 0, 1);
  CHECK_MESSAGE(HORUS_ERR_IO, path, horus_cluster_restore_file(NULL, path, &out, &error));
  FailFiles(kReadEnds, 0, 1);
  CHECK_MESSAGE(HORUS_ERR_CORRUPT, path, horus_cluster_restore_file(NULL, path, &out, &error));
  FailFiles(kNoFault, -1, 0);
  CHECK(out == NULL);
}

static void TheFileKeepsItsModeAndItsLink(const horus_cluster* old, const horus_cluster* cluster) {
  char link[256];
  struct stat info;
  CHECK_OK(horus_cluster_snapshot_file(old, path, &error));
  CHECK(chmod(path, 0600) == 0);
  CHECK_OK(horus_cluster_snapshot_file(cluster, path, &error));
  CHECK(stat(path, &info) == 0 && (info.st_mode & 07777) == 0600);
  snprintf(link, sizeof link, "%s/link", folder);
  CHECK(symlink("state", link) == 0);
  CHECK_OK(horus_cluster_snapshot_file(old, link, &error));
  CHECK(hash_of_file() == state_hash(old) && lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
  CHECK(unlink(link) == 0 && symlink(link + strlen(folder) + 1, link) == 0); /* to itself */
  CHECK_MESSAGE(HORUS_ERR_IO, link, horus_cluster_snapshot_file(old, link, &error));
  CHECK(unlink(link) == 0 && files_in_folder() == 1);
}

static void APipeIsRefusedAndStays(const horus_cluster* cluster) {
  char pipe[256];
  struct stat info;
  snprintf(pipe, sizeof pipe, "%s/pipe", folder);
  CHECK(mkfifo(pipe, 0600) == 0);
  CHECK_MESSAGE(HORUS_ERR_IO, "expected a regular file", horus_cluster_snapshot_file(cluster, pipe, &error));
  CHECK(stat(pipe, &info) == 0 && S_ISFIFO(info.st_mode));
  CHECK(unlink(pipe) == 0);
}

/* Another thread's printf would go into the snapshot. */
static void NoSnapshotIsWrittenThroughAStandardStream(const horus_cluster* cluster) {
  const int kept = dup(STDOUT_FILENO);
  horus_status status;
  CHECK(kept > STDERR_FILENO && close(STDOUT_FILENO) == 0);
  FailFiles(kNoFault, -1, 0);
  status = horus_cluster_snapshot_file(cluster, path, NULL);
  CHECK(status == HORUS_OK && LowestWritten() > STDERR_FILENO);
  CHECK(dup2(kept, STDOUT_FILENO) == STDOUT_FILENO && close(kept) == 0);
}

static void EveryTruncationIsSeen(void) {
  horus_cluster* out = NULL;
  struct stat info;
  off_t size;
  CHECK(stat(path, &info) == 0);
  for (size = info.st_size - 1; size >= 0; --size) {
    CHECK(truncate(path, size) == 0);
    CHECK_MESSAGE(HORUS_ERR_CORRUPT, path, horus_cluster_restore_file(NULL, path, &out, &error));
  }
  CHECK(out == NULL);
}

#if HORUS_WITH_ONNX
static void GraphsAreReadUnderTheSameFaults(void) {
  const char* const graph_path = HORUS_GRAPHS_DIR "/resnet50.onnx";
  const enum FileFault faults[] = {kOpenRefused, kReadBroken, kReadEnds};
  horus_graph* graph = NULL;
  size_t i;
  for (i = 0; i < sizeof faults / sizeof *faults; ++i) {
    horus_error error = HORUS_ERROR_INIT;
    FailFiles(faults[i], 0, 1000); /* a file that ended once has ended for good */
    (void)horus_graph_from_file(graph_path, NULL, &graph, &error);
    CHECK(FaultsMet() > 0 && graph == NULL && error.status != HORUS_OK && error.message[0] != '\0');
    FailFiles(kNoFault, -1, 0);
    horus_graph_free(graph);
    graph = NULL;
  }
  FailFiles(kReadShort, 0, 3);
  CHECK_OK(horus_graph_from_file(graph_path, NULL, &graph, &error));
  FailFiles(kNoFault, -1, 0);
  horus_graph_free(graph);
}
#endif

int main(void) {
  horus_cluster* old = cluster_of(1);
  horus_cluster* cluster = cluster_of(3);
  if (mkdtemp(folder) == NULL) return 1;
  snprintf(path, sizeof path, "%s/state", folder);
  ErrorsOfWritingLeaveTheOldFile(old, cluster);
  InterruptionsAndPartsAreNoErrors(cluster);
  ErrorsOfReadingGiveNoCluster();
  TheFileKeepsItsModeAndItsLink(old, cluster);
  APipeIsRefusedAndStays(cluster);
  NoSnapshotIsWrittenThroughAStandardStream(cluster);
#if HORUS_WITH_ONNX
  GraphsAreReadUnderTheSameFaults();
#endif
  EveryTruncationIsSeen();
  unlink(path);
  rmdir(folder);
  horus_cluster_free(old);
  horus_cluster_free(cluster);
  return report();
}
