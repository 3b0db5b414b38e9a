/* SPDX-License-Identifier: Apache-2.0 */
/* People's files that fail while they are read: the error names the file and nothing comes out; what is met halfway is
 * no error. */
#include <stdlib.h>
#include <unistd.h>

#include "failing_files.h"
#include "fixture.h"

static horus_cluster* cluster; /* that jobs are read for */
static char trace_path[] = "horus_faults_trace_XXXXXX";

/* What a file becomes: reads it, forgets it, tells how much it held (0: nothing came out). */
typedef struct Reader {
  const char* path;
  horus_status (*read)(const char* path, uint64_t* held, horus_error* error);
} Reader;

static horus_status read_cluster(const char* path, uint64_t* held, horus_error* error) {
  horus_cluster* out = NULL;
  const horus_status status = horus_cluster_from_yaml(NULL, NULL, path, NULL, NULL, &out, error);
  *held = out == NULL ? 0 : state_hash(out);
  horus_cluster_free(out);
  return status;
}

static horus_status read_jobs(const char* path, uint64_t* held, horus_error* error) {
  horus_job_list* list = NULL;
  const horus_status status = horus_job_list_from_yaml(cluster, NULL, path, NULL, &list, error);
  *held = horus_job_list_count(list);
  horus_job_list_free(list);
  return status;
}

static horus_status read_trace(const char* path, uint64_t* held, horus_error* error) {
  horus_trace* trace = NULL;
  const horus_status status = horus_trace_from_file(path, NULL, &trace, error);
  *held = horus_trace_count(trace);
  horus_trace_free(trace);
  return status;
}

/* The file itself is read first, then the models that it names. */
static void ErrorsNameTheFileAndNothingComesOut(const Reader* reader) {
  const enum FileFault faults[] = {kOpenRefused, kOpenTooMany, kReadBroken};
  size_t i;
  for (i = 0; i < sizeof faults / sizeof *faults; ++i) {
    int before, met = 1;
    for (before = 0; met > 0; ++before) {
      horus_error found = HORUS_ERROR_INIT;
      uint64_t held = 0;
      horus_status status;
      FailFiles(faults[i], before, 1);
      status = reader->read(reader->path, &held, &found);
      met = FaultsMet();
      FailFiles(kNoFault, -1, 0);
      if (met > 0) {
        CHECK(status == HORUS_ERR_IO && held == 0);
        CHECK(strstr(found.message, reader->path) != NULL || (before > 0 && strstr(found.message, ".onnx") != NULL));
      } else {
        CHECK(status == HORUS_OK && before > 0);
      }
    }
  }
}

static void AFileThatEndsAtOnceIsRefused(const Reader* reader) {
  horus_error found = HORUS_ERROR_INIT;
  uint64_t held = 0;
  FailFiles(kReadEnds, 0, 1000);
  CHECK(reader->read(reader->path, &held, &found) != HORUS_OK && held == 0);
  CHECK(FaultsMet() > 0 && strstr(found.message, reader->path) != NULL);
  FailFiles(kNoFault, -1, 0);
}

static void InterruptionsAndPartsAreNoErrors(const Reader* reader) {
  const enum FileFault faults[] = {kOpenInterrupted, kReadInterrupted, kReadShort};
  uint64_t whole = 0;
  size_t i;
  CHECK_OK(reader->read(reader->path, &whole, &error));
  CHECK(whole != 0);
  for (i = 0; i < sizeof faults / sizeof *faults; ++i) {
    uint64_t held = 0;
    FailFiles(faults[i], 0, 100);
    CHECK_OK(reader->read(reader->path, &held, &error));
    CHECK(FaultsMet() > 0 && held == whole);
    FailFiles(kNoFault, -1, 0);
  }
}

int main(void) {
  static const char kTrace[] = "submit_us,duration_us,profile\n0,5,a\n3,7,b\n";
  const int fd = mkstemp(trace_path);
  const Reader readers[] = {{HORUS_EXAMPLES_DIR "/cluster.yaml", read_cluster},
                            {HORUS_EXAMPLES_DIR "/jobs.yaml", read_jobs},
                            {trace_path, read_trace}};
  size_t i;
  if (fd < 0 || write(fd, kTrace, sizeof kTrace - 1) < 0 || close(fd) != 0) return 1;
  cluster = cluster_of(1);
  for (i = 0; i < sizeof readers / sizeof *readers; ++i) {
    ErrorsNameTheFileAndNothingComesOut(&readers[i]);
    AFileThatEndsAtOnceIsRefused(&readers[i]);
    InterruptionsAndPartsAreNoErrors(&readers[i]);
  }
  horus_cluster_free(cluster);
  unlink(trace_path);
  return report();
}
