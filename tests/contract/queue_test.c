/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of horus/queue.h: names, options, jobs in and out, windows; NULL, wrong structs, outputs on failure. */
#include <stddef.h>

#include "fixture.h"

static horus_queue* queue_of(const char* discipline) {
  horus_queue_options options = HORUS_QUEUE_OPTIONS_INIT;
  horus_queue* queue = NULL;
  options.gpu_milli = 8000;
  options.cpu_milli = 64000;
  options.mem_mib = 65536;
  CHECK_OK(horus_queue_create(discipline, &options, &queue, &error));
  return queue;
}

static horus_queue_info queue_info_of(const horus_queue* queue) {
  horus_queue_info info = HORUS_QUEUE_INFO_INIT;
  CHECK_OK(horus_queue_get_info(queue, &info, &error));
  return info;
}

static horus_queued_job job_of(uint64_t id, int64_t submit_us) {
  horus_queued_job job = HORUS_QUEUED_JOB_INIT;
  job.id = id;
  job.submit_us = submit_us;
  return job;
}

static void push(horus_queue* queue, uint64_t id, int64_t submit_us) {
  const horus_queued_job job = job_of(id, submit_us);
  CHECK_OK(horus_queue_push(queue, &job, &error));
}

static void OptionsOfHorusPlusHaveBounds(void) {
  horus_queue_options options = HORUS_QUEUE_OPTIONS_INIT;
  horus_queue* queue = NULL;
  options.clusters = 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "clusters", horus_queue_create("horus-plus", &options, &queue, &error));
  options.clusters = 6;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "clusters", horus_queue_create("horus-plus", &options, &queue, &error));
  options.clusters = 5;
  options.recluster_share = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "recluster", horus_queue_create("horus-plus", &options, &queue, &error));
  CHECK(queue == NULL);
  options.recluster_share = 0.5;
  CHECK_OK(horus_queue_create("horus-plus", &options, &queue, &error));
  push(queue, 1, 0);
  CHECK(queue_info_of(queue).jobs == 1);
  horus_queue_free(queue);
}

static void EveryNamedDisciplineServesWhatItIsGiven(void) {
  const char* const* disciplines = library_info().disciplines;
  size_t i, count = 0;
  uint64_t ids[4] = {0, 0, 0, 77}, first = 0;
  for (i = 0; disciplines[i] != NULL; ++i) {
    horus_queue* queue = queue_of(disciplines[i]);
    const uint64_t empty = horus_queue_bytes_held(queue);
    CHECK(empty > 0 && queue_info_of(queue).jobs == 0);
    CHECK(queue_info_of(queue).look_ahead == (strncmp(disciplines[i], "horus", 5) == 0 ? 5u : 1u));
    push(queue, 9, 20);
    push(queue, 4, 20);
    push(queue, 5, 10);
    CHECK(queue_info_of(queue).jobs == 3 && horus_queue_bytes_held(queue) > empty);
    CHECK_OK(horus_queue_window(queue, 30, 4, ids, &count, &error));
    CHECK(count == 3 && ids[0] == 5 && ids[1] == 4 && ids[2] == 9 && ids[3] == 77);
    CHECK_OK(horus_queue_window(queue, 30, 2, ids, &count, &error));
    CHECK(count == 2 && ids[0] == 5);
    CHECK_OK(horus_queue_window(queue, 30, 0, NULL, &count, &error));
    CHECK(count == 3 && queue_info_of(queue).jobs == 3); /* capacity 0 asks for the count */
    CHECK_OK(horus_queue_pop(queue, 30, &first, &count, &error));
    CHECK(count == 1 && first == 5);
    CHECK_OK(horus_queue_serve(queue, 9, 30, &error));
    CHECK_OK(horus_queue_remove(queue, 4, &error));
    CHECK_OK(horus_queue_pop(queue, 30, &first, &count, &error));
    CHECK(count == 0 && first == 5);
    horus_queue_free(queue);
  }
  CHECK(i == 10);
  CHECK(strcmp(disciplines[0], "fifo") == 0);
}

static void WhatIsLeftOutTakesItsDefault(void) {
  horus_queue* queue = queue_of("srtf");
  horus_queued_job job = job_of(1, 5), out = HORUS_QUEUED_JOB_INIT;
  job.tasks = 3;
  job.gpu_util_pct = 40;
  job.gpu_mem_mib = 100;
  job.total_us = 50;
  CHECK_OK(horus_queue_push(queue, &job, &error));
  CHECK_OK(horus_queue_get_job(queue, 1, &out, &error));
  CHECK(out.id == 1 && out.submit_us == 5 && out.tasks == 3 && out.gpus == 3 && out.gpu_milli == 1000);
  job.id = 9;
  job.gpus = HORUS_JOB_NO_GPUS;
  CHECK_OK(horus_queue_push(queue, &job, &error));
  CHECK_OK(horus_queue_get_job(queue, 9, &out, &error));
  CHECK(out.gpus == HORUS_JOB_NO_GPUS);
  CHECK_OK(horus_queue_remove(queue, 9, &error));
  CHECK_OK(horus_queue_get_job(queue, 1, &out, &error));
  CHECK(out.gpu_util_pct_upper == 40 && out.gpu_mem_mib_upper == 100);
  CHECK(out.total_us == 50 && out.remaining_us == -1);
  CHECK_OK(horus_queue_update(queue, 1, 70, -1, &error));
  CHECK_OK(horus_queue_update(queue, 1, -1, 0, &error));
  CHECK_OK(horus_queue_get_job(queue, 1, &out, &error));
  CHECK(out.attained_gpu_us == 70 && out.remaining_us == 0);
  horus_queue_free(queue);
  queue = NULL;
  CHECK_OK(horus_queue_create("fifo", NULL, &queue, &error));
  horus_queue_free(queue);
}

static void OptionsReachTheDiscipline(void) {
  const int64_t thresholds[2] = {10, 20};
  horus_queue_options options = HORUS_QUEUE_OPTIONS_INIT;
  horus_queue* queue = NULL;
  horus_queued_job job = job_of(1, 0);
  uint64_t ids[2] = {0, 0};
  size_t count = 0;
  options.las_threshold_count = 2;
  options.las_thresholds_gpu_us = thresholds;
  options.patience_us = 100;
  CHECK_OK(horus_queue_create("las", &options, &queue, &error));
  job.attained_gpu_us = 15;
  CHECK_OK(horus_queue_push(queue, &job, &error));
  push(queue, 2, 40);
  CHECK_OK(horus_queue_window(queue, 99, 2, ids, &count, &error));
  CHECK(ids[0] == 2 && ids[1] == 1);
  CHECK_OK(horus_queue_window(queue, 100, 2, ids, &count, &error)); /* 1 waited its 100 us */
  CHECK(ids[0] == 1 && ids[1] == 2);
  horus_queue_free(queue);
}

static void OwnersAreServedBySharesOfTheCapacity(void) {
  horus_queue* queue = queue_of("drf");
  horus_queued_job job = job_of(1, 0);
  uint64_t ids[2] = {0, 0};
  size_t count = 0;
  job.owner = 1;
  CHECK_OK(horus_queue_push(queue, &job, &error));
  job = job_of(2, 1);
  job.owner = 2;
  CHECK_OK(horus_queue_push(queue, &job, &error));
  CHECK_OK(horus_queue_set_owner_usage(queue, 1, 1000, 0, 0, &error));  /* 1/8 */
  CHECK_OK(horus_queue_set_owner_usage(queue, 2, 0, 16000, 0, &error)); /* 1/4 */
  CHECK_OK(horus_queue_window(queue, 0, 2, ids, &count, &error));
  CHECK(count == 2 && ids[0] == 1);
  CHECK_OK(horus_queue_set_capacity(queue, 2000, 64000, 65536, &error)); /* 1/2 */
  CHECK_OK(horus_queue_window(queue, 0, 2, ids, &count, &error));
  CHECK(ids[0] == 2);
  horus_queue_free(queue);
}

static void WrongCallsAreRefusedAndChangeNothing(void) {
  horus_queue* queue = queue_of("fifo");
  horus_queue* other = NULL;
  horus_queue_options options = HORUS_QUEUE_OPTIONS_INIT;
  horus_queue_info info = HORUS_QUEUE_INFO_INIT;
  horus_queued_job job = job_of(1, 0);
  uint64_t ids[1] = {77}, bytes;
  size_t count = 55;
  push(queue, 1, 0);
  bytes = horus_queue_bytes_held(queue);
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "horus-plus", horus_queue_create("lifo", NULL, &other, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_create(NULL, NULL, &other, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_create("fifo", NULL, NULL, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "capacity", horus_queue_create("drf", NULL, &other, &error));
  options.las_threshold_count = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "las_thresholds_gpu_us",
                horus_queue_create("las", &options, &other, &error));
  options.las_threshold_count = 65;
  options.las_thresholds_gpu_us = &options.gpu_milli;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "las_threshold_count", horus_queue_create("las", &options, &other, &error));
  options.las_threshold_count = 0;
  options.las_continuous = 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "las_continuous", horus_queue_create("las", &options, &other, &error));
  CHECK(other == NULL);

  CHECK_STATUS(HORUS_ERR_EXISTS, horus_queue_push(queue, &job, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_push(NULL, &job, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_push(queue, NULL, &error));
  job.id = 2;
  job.gpus = -2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "queued job 2: gpus", horus_queue_push(queue, &job, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_queue_remove(queue, 2, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_queue_serve(queue, 2, 0, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_serve(queue, 1, INT64_MAX, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_queue_update(queue, 2, 0, 0, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_update(queue, 1, -2, 0, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_window(queue, INT64_MIN, 1, ids, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_window(queue, 0, 1, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_window(queue, 0, 1, ids, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_pop(queue, INT64_MAX, ids, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_pop(queue, 0, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_pop(queue, 0, ids, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_set_capacity(queue, -1, 0, 0, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_set_owner_usage(queue, 1, 0, -1, 0, &error));
  CHECK(ids[0] == 77 && count == 55);
  CHECK(queue_info_of(queue).jobs == 1 && horus_queue_bytes_held(queue) == bytes);

  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_remove(NULL, 1, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_serve(NULL, 1, 0, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_update(NULL, 1, 0, 0, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_window(NULL, 0, 1, ids, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_pop(NULL, 0, ids, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_get_job(NULL, 1, &job, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_set_capacity(NULL, 1, 1, 1, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_set_owner_usage(NULL, 1, 1, 1, 1, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_get_info(NULL, &info, &error));
  CHECK(horus_queue_bytes_held(NULL) == 0);
  horus_queue_free(NULL);
  horus_queue_free(queue);
}

static void StructsOfOtherVersionsAreReadOrRefused(void) {
  horus_queue* queue = queue_of("fifo");
  horus_queue* other = NULL;
  struct {
    horus_queued_job known;
    unsigned char tail[16];
  } job, before;
  struct {
    horus_queue_options known;
    unsigned char tail[16];
  } options;
  memset(&job, 0, sizeof job);
  job.known = job_of(3, 0);
  job.known.struct_size = sizeof job;
  CHECK_OK(horus_queue_push(queue, &job.known, &error)); /* newer, and nothing new is set */
  job.known.id = 4;
  job.tail[5] = 1;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_queue_push(queue, &job.known, &error));
  job.known.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_queue_push(queue, &job.known, &error));
  job.known.struct_size = sizeof job.known;
  job.known.reserved = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "reserved", horus_queue_push(queue, &job.known, &error));
  memset(&options, 0, sizeof options);
  options.known.struct_size = sizeof options;
  options.tail[0] = 1;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_queue_create("fifo", &options.known, &other, &error));
  options.known.struct_size = 4;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_queue_create("fifo", &options.known, &other, &error));
  options.known.struct_size = sizeof options.known;
  options.known.reserved = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "reserved", horus_queue_create("fifo", &options.known, &other, &error));
  CHECK(other == NULL && queue_info_of(queue).jobs == 1);

  memset(&job, 0xAB, sizeof job);
  job.known.struct_size = 4;
  before = job;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_queue_get_job(queue, 3, &job.known, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_queue_get_job(queue, 3, NULL, &error));
  CHECK(memcmp(&job, &before, sizeof job) == 0);
  job.known.struct_size = sizeof job;
  before = job;
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_queue_get_job(queue, 4, &job.known, &error));
  CHECK(memcmp(&job, &before, sizeof job) == 0);
  CHECK_OK(horus_queue_get_job(queue, 3, &job.known, &error));
  CHECK(job.known.struct_size == sizeof job && job.known.id == 3 && job.tail[0] == 0xAB);
  horus_queue_free(queue);
}

int main(void) {
  OptionsOfHorusPlusHaveBounds();
  EveryNamedDisciplineServesWhatItIsGiven();
  WhatIsLeftOutTakesItsDefault();
  OptionsReachTheDiscipline();
  OwnersAreServedBySharesOfTheCapacity();
  WrongCallsAreRefusedAndChangeNothing();
  StructsOfOtherVersionsAreReadOrRefused();
  return report();
}
