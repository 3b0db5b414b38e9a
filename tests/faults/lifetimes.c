/* SPDX-License-Identifier: Apache-2.0 */
/* A process that treats the library roughly: loads and unloads it, forks, cancels a thread inside a call, ends while it
 * is in use, works in another folder than it was started in.
 *
 * Usage: lifetimes LIBRARY load|fork|cancel|exit|two|beside|moved [SECOND_LIBRARY]. It is opened with dlopen, never
 * linked.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define LOADS 50     /* of the library in a row */
#define CANCELLED 20 /* threads */
#define EXITS 20     /* processes */
#define NODES 200
#define DEVICES_EACH 4
#define JOBS 400

typedef struct api {
  void* library;
  horus_status (*cluster_create)(const horus_catalogue*, horus_cluster**, horus_error*);
  horus_status (*cluster_add_node)(horus_cluster*, const horus_node*, horus_error*);
  horus_status (*cluster_get_info)(const horus_cluster*, horus_cluster_info*, horus_error*);
  void (*cluster_free)(horus_cluster*);
  horus_status (*placer_create)(const horus_placer_options*, horus_placer**, horus_error*);
  void (*placer_free)(horus_placer*);
  horus_status (*placer_plan)(horus_placer*, const horus_cluster*, size_t, const horus_job* const*, size_t,
                              const uint64_t*, horus_progress, void*, horus_plan**, horus_error*);
  horus_status (*plan_get_info)(const horus_plan*, horus_plan_info*, horus_error*);
  void (*plan_free)(horus_plan*);
  horus_status (*cluster_apply)(horus_cluster*, const horus_plan*, horus_error*);
} api;

static void find(void* library, const char* name, void* function) {
  void* const found = dlsym(library, name);
  CHECK(found != NULL);
  memcpy(function, &found, sizeof found);
}

static int load(const char* path, int flags, api* to) {
  to->library = dlopen(path, RTLD_NOW | flags);
  if (to->library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  find(to->library, "horus_cluster_create", &to->cluster_create);
  find(to->library, "horus_cluster_add_node", &to->cluster_add_node);
  find(to->library, "horus_cluster_get_info", &to->cluster_get_info);
  find(to->library, "horus_cluster_free", &to->cluster_free);
  find(to->library, "horus_placer_create", &to->placer_create);
  find(to->library, "horus_placer_free", &to->placer_free);
  find(to->library, "horus_placer_plan", &to->placer_plan);
  find(to->library, "horus_plan_get_info", &to->plan_get_info);
  find(to->library, "horus_plan_free", &to->plan_free);
  find(to->library, "horus_cluster_apply", &to->cluster_apply);
  return failures == 0;
}

static horus_cluster* cluster_of(const api* horus, uint64_t nodes) {
  const char* const types[DEVICES_EACH] = {"t4", "t4", "t4", "t4"};
  horus_node node = HORUS_NODE_INIT;
  horus_cluster* cluster = NULL;
  CHECK(horus->cluster_create(NULL, &cluster, NULL) == HORUS_OK);
  node.device_count = DEVICES_EACH;
  node.gpu_types = types;
  node.cpu_milli = 64000;
  node.mem_mib = 65536;
  for (node.id = 1; node.id <= nodes; ++node.id) CHECK(horus->cluster_add_node(cluster, &node, NULL) == HORUS_OK);
  return cluster;
}

/* Jobs 1 to `count`, at most JOBS. */
static horus_status plan(const api* horus, horus_placer* placer, const horus_cluster* cluster, size_t count,
                         horus_plan** out) {
  horus_demand demand = HORUS_DEMAND_INIT;
  const horus_demand* const demands[1] = {&demand};
  horus_job job = HORUS_JOB_INIT;
  horus_job jobs[JOBS];
  const horus_job* pointers[JOBS];
  size_t i;
  demand.flags = HORUS_DEMAND_GIVEN;
  demand.gpu_util_pct = 30;
  demand.mem_mib = 2000;
  demand.step_time_us = 100000;
  job.demand_count = 1;
  job.demands = demands;
  for (i = 0; i < count; ++i) {
    jobs[i] = job;
    jobs[i].id = i + 1;
    pointers[i] = &jobs[i];
  }
  return horus->placer_plan(placer, cluster, count, pointers, 0, NULL, NULL, NULL, out, NULL);
}

/* A cluster, a plan, applied: 1 if the library works. */
static int works(const api* horus) {
  horus_cluster* cluster = cluster_of(horus, 3);
  horus_placer* placer = NULL;
  horus_plan* made = NULL;
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  CHECK(horus->placer_create(NULL, &placer, NULL) == HORUS_OK);
  CHECK(plan(horus, placer, cluster, 5, &made) == HORUS_OK);
  CHECK(horus->cluster_apply(cluster, made, NULL) == HORUS_OK);
  CHECK(horus->cluster_get_info(cluster, &info, NULL) == HORUS_OK && info.jobs == 5);
  horus->plan_free(made);
  horus->placer_free(placer);
  horus->cluster_free(cluster);
  return failures == 0;
}

static long resident_pages(void) {
  long whole = 0, resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &whole, &resident) != 2) resident = 0;
  if (file != NULL) fclose(file);
  return resident;
}

static int open_files(void) {
  DIR* const listing = opendir("/proc/self/fd");
  int count = 0;
  while (listing != NULL && readdir(listing) != NULL) ++count;
  if (listing != NULL) closedir(listing);
  return count;
}

/* Global and local in turn; neither memory nor open files grow. */
static void load_in_a_loop(const char* path) {
  const long most_growth = 512; /* pages, 2 MiB in all: less than one load of the library leaves if it leaks */
  long pages = 0;
  int files = 0, i;
  for (i = 0; i < LOADS && failures == 0; ++i) {
    api horus;
    if (!load(path, i % 2 == 0 ? RTLD_GLOBAL : RTLD_LOCAL, &horus)) {
      ++failures;
      return;
    }
    CHECK(works(&horus));
    CHECK(dlclose(horus.library) == 0);
    if (i == LOADS / 2) {
      pages = resident_pages();
      files = open_files();
    }
  }
  printf("%d loads: %ld pages more in the second half\n", LOADS, resident_pages() - pages);
  CHECK(resident_pages() - pages < most_growth);
  CHECK(open_files() == files);
}

/* Loaded and used before the fork; child and parent go on with the same handles, each with its own copy. */
static void fork_and_use(const char* path) {
  api horus;
  horus_cluster* cluster;
  horus_placer* placer = NULL;
  horus_plan* made = NULL;
  horus_plan_info info = HORUS_PLAN_INFO_INIT;
  pid_t child;
  int status = 1, i;
  for (i = 0; i < 2; ++i) { /* 0: forked before the first call; 1: between two calls */
    if (!load(path, RTLD_LOCAL, &horus)) return;
    cluster = NULL;
    placer = NULL;
    if (i == 1) {
      cluster = cluster_of(&horus, NODES);
      CHECK(horus.placer_create(NULL, &placer, NULL) == HORUS_OK);
      CHECK(plan(&horus, placer, cluster, JOBS, &made) == HORUS_OK);
      horus.plan_free(made);
    }
    child = fork();
    if (i == 1) {
      CHECK(plan(&horus, placer, cluster, JOBS, &made) == HORUS_OK);
      CHECK(horus.plan_get_info(made, &info, NULL) == HORUS_OK && info.decisions == JOBS);
      CHECK(horus.cluster_apply(cluster, made, NULL) == HORUS_OK);
      horus.plan_free(made);
      horus.placer_free(placer);
      horus.cluster_free(cluster);
    }
    CHECK(works(&horus));
    if (child == 0) _exit(failures == 0 ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

typedef struct planning {
  const api* horus;
  const horus_cluster* cluster;
  int cancel_inside; /* from the progress callback, which is a cancellation point here */
} planning;

static int32_t until_cancelled(void* user, double done) {
  (void)done;
  if (((const planning*)user)->cancel_inside) pthread_cancel(pthread_self());
  pthread_testcancel();
  return 0;
}

static void* plan_for_ever(void* argument) {
  const planning* const it = argument;
  horus_placer* placer = NULL;
  horus_demand demand = HORUS_DEMAND_INIT;
  const horus_demand* const demands[1] = {&demand};
  horus_job job = HORUS_JOB_INIT;
  const horus_job* const jobs[1] = {&job};
  demand.flags = HORUS_DEMAND_GIVEN;
  demand.gpu_util_pct = 30;
  demand.mem_mib = 2000;
  job.id = 1;
  job.demand_count = 1;
  job.demands = demands;
  if (it->horus->placer_create(NULL, &placer, NULL) != HORUS_OK) return NULL;
  for (;;) {
    horus_plan* made = NULL;
    if (it->horus->placer_plan(placer, it->cluster, 1, jobs, 0, NULL, until_cancelled, argument, &made, NULL) !=
        HORUS_OK)
      return NULL;
    it->horus->plan_free(made);
    pthread_testcancel();
  }
}

/* The placer of a cancelled thread is gone with it; the cluster that others share is as good as before. */
static void cancel_threads(const char* path) {
  api horus;
  horus_cluster* cluster;
  horus_cluster_info before = HORUS_CLUSTER_INFO_INIT, after = HORUS_CLUSTER_INFO_INIT;
  int i;
  if (!load(path, RTLD_LOCAL, &horus)) return;
  cluster = cluster_of(&horus, NODES);
  CHECK(horus.cluster_get_info(cluster, &before, NULL) == HORUS_OK);
  for (i = 0; i < CANCELLED; ++i) {
    pthread_t thread;
    void* answer = NULL;
    planning it;
    it.horus = &horus;
    it.cluster = cluster;
    it.cancel_inside = i % 2;
    CHECK(pthread_create(&thread, NULL, plan_for_ever, &it) == 0);
    if (!it.cancel_inside) {
      usleep(1000 * (useconds_t)i);
      pthread_cancel(thread);
    }
    CHECK(pthread_join(thread, &answer) == 0 && answer == PTHREAD_CANCELED);
  }
  CHECK(horus.cluster_get_info(cluster, &after, NULL) == HORUS_OK && after.state_hash == before.state_hash);
  CHECK(works(&horus));
  horus.cluster_free(cluster);
}

/* Two copies of the library, each with state of its own, one of them global. */
static void use_two(const char* first, const char* second) {
  api one, other;
  horus_cluster *of_one, *of_other;
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  if (!load(first, RTLD_GLOBAL, &one) || !load(second, RTLD_LOCAL, &other)) {
    ++failures;
    return;
  }
  CHECK(one.cluster_create != other.cluster_create);
  of_one = cluster_of(&one, 2);
  of_other = cluster_of(&other, 3);
  CHECK(one.cluster_get_info(of_one, &info, NULL) == HORUS_OK && info.nodes == 2);
  CHECK(other.cluster_get_info(of_other, &info, NULL) == HORUS_OK && info.nodes == 3);
  CHECK(works(&one) && works(&other));
  one.cluster_free(of_one);
  CHECK(dlclose(one.library) == 0);
  CHECK(works(&other));
  other.cluster_free(of_other);
  CHECK(dlclose(other.library) == 0);
}

static api at_exit;

static void use_at_exit(void) {
  if (!works(&at_exit)) _exit(1);
}

static void* use_for_ever(void* unused) {
  (void)unused;
  while (works(&at_exit)) {
  }
  _exit(1);
}

/* A thread goes on with calls while the process ends, and so does an exit handler that was there before the library. */
static void exit_and_use(const char* path) {
  int i, status = 1;
  for (i = 0; i < EXITS && failures == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      pthread_t thread;
      if (atexit(use_at_exit) != 0 || !load(path, RTLD_LOCAL, &at_exit) || !works(&at_exit)) _exit(1);
      if (pthread_create(&thread, NULL, use_for_ever, NULL) != 0 || pthread_detach(thread) != 0) _exit(1);
      exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

/* Another version of the library came first, for all to see: no call inside ours may end in it. `stranger` has every
 * function of libhorus, and each ends the process. */
static void use_beside(const char* stranger, const char* path) {
  void* const first = dlopen(stranger, RTLD_NOW | RTLD_GLOBAL);
  const char* (*profile_name)(const horus_trace*, size_t);
  api ours;
  CHECK(first != NULL);
  if (first == NULL || !load(path, RTLD_LOCAL, &ours)) return;
  CHECK(dlsym(RTLD_DEFAULT, "horus_cluster_create") == dlsym(first, "horus_cluster_create"));
  CHECK(works(&ours));
  find(ours.library, "horus_trace_profile_name", &profile_name);
  CHECK(profile_name(NULL, 0) == NULL); /* asks horus_trace_profile_count */
  CHECK(dlclose(ours.library) == 0 && dlclose(first) == 0);
}

/* Found by a relative name, the library still finds its solver when the process works elsewhere, and never runs what
 * lies there: `stranger` ends the process when loaded. */
static void use_moved(const char* path, const char* stranger, const char* solver) {
  static const double ones[1] = {1};
  char folder[] = "/tmp/horus_moved_XXXXXX", name[64], target[128];
  const char* const slash = strrchr(path, '/');
  const char* before = slash;
  horus_status (*compute)(const horus_speeds*, const double*, const double*, const horus_potential_options*,
                          horus_progress, void*, horus_potential*, const horus_potential_rows*, size_t*, horus_error*);
  horus_potential found = HORUS_POTENTIAL_INIT;
  horus_speeds speeds = HORUS_SPEEDS_INIT;
  api horus;
  while (before != NULL && before > path && before[-1] != '/') --before; /* where the library's folder begins */
  CHECK(before != NULL && before > path && mkdtemp(folder) != NULL);
  if (failures > 0) return;
  snprintf(name, sizeof name, "%.*s", (int)(slash - before), before);
  snprintf(target, sizeof target, "%s/%s", folder, name);
  CHECK(mkdir(target, 0700) == 0);
  snprintf(target, sizeof target, "%s/%s/%s", folder, name, solver);
  CHECK(symlink(stranger, target) == 0);
  snprintf(target, sizeof target, "%.*s", (int)(before - path), path);
  CHECK(chdir(target) == 0);
  CHECK(load(before, RTLD_LOCAL, &horus) && chdir(folder) == 0);
  if (failures > 0) return;
  find(horus.library, "horus_potential_compute", &compute);
  speeds.gpu_count = speeds.profile_count = 1;
  speeds.alone = ones;
  CHECK(compute(&speeds, ones, ones, NULL, NULL, NULL, &found, NULL, NULL, NULL) == HORUS_OK);
  snprintf(target, sizeof target, "%s/%s", name, solver);
  CHECK(unlink(target) == 0 && rmdir(name) == 0 && rmdir(folder) == 0);
}

int main(int argc, char** argv) {
  const char* const way = argc < 3 ? "" : argv[2];
  if (strcmp(way, "load") == 0) {
    load_in_a_loop(argv[1]);
  } else if (strcmp(way, "fork") == 0) {
    fork_and_use(argv[1]);
  } else if (strcmp(way, "cancel") == 0) {
    cancel_threads(argv[1]);
  } else if (strcmp(way, "exit") == 0) {
    exit_and_use(argv[1]);
  } else if (strcmp(way, "two") == 0 && argc == 4) {
    use_two(argv[1], argv[3]);
  } else if (strcmp(way, "beside") == 0 && argc == 4) {
    use_beside(argv[3], argv[1]);
  } else if (strcmp(way, "moved") == 0 && argc == 5) {
    use_moved(argv[1], argv[3], argv[4]);
  } else {
    return 2;
  }
  return report();
}
