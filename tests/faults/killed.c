/* SPDX-License-Identifier: Apache-2.0 */
/* An embedder that will be killed: it restores its snapshot, adopts what started and releases what ended since, then
 * places and releases jobs for ever.
 *
 * Usage: killed STATE_FILE JOURNAL. The journal stands for the machines: which job runs where, in the order in which
 * they were told: a line "+ job node device" or "- job", each one write. Every second job is in the snapshot first. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

#define NODES 8
#define LINE_BYTES 64
#define MOST_LIVE 24    /* jobs at a time */
#define SNAPSHOT_EACH 3 /* changes between two snapshots: the journal is ahead of the file */

typedef struct place {
  uint64_t job, node;
  uint32_t device;
} place;

static place live[MOST_LIVE + 1];
static size_t live_count;
static uint64_t last_job;

static void read_journal(const char* path) {
  FILE* const file = fopen(path, "r");
  char line[LINE_BYTES];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    unsigned long long job = 0, node = 0;
    unsigned device = 0;
    size_t i;
    if (strchr(line, '\n') == NULL) break; /* the kill cut it: the machine was never told */
    if (sscanf(line, "+ %llu %llu %u", &job, &node, &device) == 3) {
      const place at = {job, node, device};
      live[live_count++] = at;
      last_job = job;
    } else if (sscanf(line, "- %llu", &job) == 1) {
      for (i = 0; i < live_count && live[i].job != job; ++i) {
      }
      if (i == live_count) {
        fprintf(stderr, "the journal ends job %llu, which never began\n", job);
        exit(1);
      }
      live[i] = live[--live_count];
    }
  }
  if (file != NULL) fclose(file);
}

static void describe(given_job* given, uint64_t id) {
  give_job(given, id, (float)(5 + id % 20), 500 + (int64_t)(id % 7) * 300);
}

static int is_live(uint64_t job) {
  size_t i;
  for (i = 0; i < live_count; ++i) {
    if (live[i].job == job) return 1;
  }
  return 0;
}

/* What the snapshot has and the machines do not is released; what they run and it lacks is adopted. */
static void reconcile(horus_cluster* cluster) {
  uint64_t ids[MOST_LIVE + 1];
  size_t count = 0, i;
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  CHECK_OK(horus_cluster_jobs(cluster, MOST_LIVE + 1, ids, &count, &error));
  for (i = 0; i < count; ++i) {
    if (!is_live(ids[i])) CHECK_OK(horus_cluster_release(cluster, ids[i], &error));
  }
  for (i = 0; i < live_count; ++i) {
    horus_job_info known = HORUS_JOB_INFO_INIT;
    given_job given;
    horus_slots slots = HORUS_SLOTS_INIT;
    uint64_t node = 0;
    uint32_t device = 0;
    size_t slot_count = 0;
    slots.capacity = 1;
    slots.node_ids = &node;
    slots.devices = &device;
    if (horus_cluster_get_job(cluster, live[i].job, &known, 0, NULL, NULL, NULL) == HORUS_OK) {
      CHECK_OK(horus_cluster_job_slots(cluster, live[i].job, &slots, &slot_count, &error));
      CHECK(slot_count == 1 && node == live[i].node && device == live[i].device);
      continue;
    }
    describe(&given, live[i].job);
    node = live[i].node;
    device = live[i].device;
    CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, &node, &device, NULL, NULL, &error));
  }
  CHECK_OK(horus_cluster_get_info(cluster, &info, &error));
  CHECK(info.jobs == live_count && info.slots == live_count); /* nothing lost, nothing twice */
}

/* Booked on every device what the machines run there, neither more nor less. */
static void check_devices(const horus_cluster* cluster) {
  uint64_t node;
  for (node = 1; node <= NODES; ++node) {
    uint32_t device;
    for (device = 0; device < 2; ++device) {
      horus_device_info info = HORUS_DEVICE_INFO_INIT;
      int64_t mem_mib = 0;
      uint64_t tenants = 0;
      size_t i;
      for (i = 0; i < live_count; ++i) {
        given_job given;
        if (live[i].node != node || live[i].device != device) continue;
        describe(&given, live[i].job);
        mem_mib += given.demand.mem_mib;
        ++tenants;
      }
      CHECK_OK(horus_cluster_get_device(cluster, node, device, &info, 0, NULL, NULL, &error));
      CHECK(info.tenants == tenants && info.mem_used_mib == mem_mib);
    }
  }
}

static void tell(int journal, const char* line) {
  if (write(journal, line, strlen(line)) != (ssize_t)strlen(line)) exit(1);
}

static void start_one(horus_cluster* cluster, horus_placer* placer, int journal, const char* state) {
  given_job given;
  char line[LINE_BYTES];
  horus_plan* plan;
  horus_decision decision;
  place at = {0, 0, 0};
  size_t count = 0;
  horus_slots slots = HORUS_SLOTS_INIT;
  describe(&given, last_job + 1);
  plan = plan_one(placer, cluster, &given);
  decision = decision_of(plan, 0);
  CHECK(decision.verdict == HORUS_VERDICT_PLACE);
  slots.capacity = 1;
  slots.node_ids = &at.node;
  slots.devices = &at.device;
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_DECISION, 0, &slots, &count, &error));
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  at.job = ++last_job;
  live[live_count++] = at;
  if (at.job % 2 == 0) CHECK_OK(horus_cluster_snapshot_file(cluster, state, &error));
  snprintf(line, sizeof line, "+ %llu %llu %u\n", (unsigned long long)at.job, (unsigned long long)at.node, at.device);
  tell(journal, line);
}

static void end_one(horus_cluster* cluster, int journal) {
  char line[LINE_BYTES];
  const size_t which = last_job % live_count;
  const uint64_t job = live[which].job;
  CHECK_OK(horus_cluster_release(cluster, job, &error));
  live[which] = live[--live_count];
  snprintf(line, sizeof line, "- %llu\n", (unsigned long long)job);
  tell(journal, line);
}

int main(int argc, char** argv) {
  horus_cluster* cluster = NULL;
  horus_placer* placer;
  struct stat info;
  int journal, step;
  if (argc != 3) return 2;
  read_journal(argv[2]);
  if (stat(argv[1], &info) == 0) {
    CHECK_OK(horus_cluster_restore_file(NULL, argv[1], &cluster, &error));
  } else {
    cluster = cluster_of(NODES);
  }
  if (cluster == NULL) return 1;
  reconcile(cluster);
  check_devices(cluster);
  if (report() != 0) return 1;
  printf("restored %llu jobs\n", (unsigned long long)live_count);
  fflush(stdout);
  placer = placer_of("horus");
  journal = open(argv[2], O_WRONLY | O_APPEND | O_CREAT, 0666);
  for (step = 0; report() == 0; ++step) {
    if (live_count < MOST_LIVE / 2 || (live_count < MOST_LIVE && step % 3 != 0)) {
      start_one(cluster, placer, journal, argv[1]);
    } else {
      end_one(cluster, journal);
    }
    if (step % SNAPSHOT_EACH == 0) CHECK_OK(horus_cluster_snapshot_file(cluster, argv[1], &error));
  }
  return 1;
}
