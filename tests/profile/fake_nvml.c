// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 for tests: one GPU, whose state is what lies in the folder $FAKE_NVML.
//   util        per cent, read at each query           lost        the GPU does not answer while this file exists
//   gpm         it has hardware counters while this file exists; gpm_secret: only the administrator may read them
//   mig         it is partitioned while this file exists
//   procs/PID   MiB that the living process PID holds  uninit      nvmlInit fails while this file exists
//   capability  compute capability times ten           mode        compute mode
//   foreign     processes go by ids of another namespace, and their memory is not told, as in a container
//   secret      who is on it is not told               slow        milliseconds that each query of utilisation takes
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum {
  SUCCESS = 0,
  NOT_SUPPORTED = 3,
  NO_PERMISSION = 4,
  DRIVER_NOT_LOADED = 9,
  INSUFFICIENT_SIZE = 7,
  GPU_IS_LOST = 15
};
enum { TOTAL_MIB = 140000, IDLE_MIB = 300, MAX_PROCESSES = 64, SAMPLE_US = 100000, FOREIGN_IDS = 5000000 };

typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} Process;

typedef struct {
  unsigned version;
  unsigned long long total, reserved, free, used;
} Memory2;

typedef struct {
  unsigned long long total, free, used;
} Memory1;

typedef struct {
  unsigned long long at_us;
  union {
    double number;
    unsigned value;
    unsigned long long wide;
  } value;
} UtilSample;

static const char* in_folder(const char* name, char* path) {
  const char* folder = getenv("FAKE_NVML");
  snprintf(path, 1024, "%s/%s", folder ? folder : ".", name);
  return path;
}

static int exists(const char* name) {
  char path[1024];
  struct stat info;
  return stat(in_folder(name, path), &info) == 0;
}

static unsigned number_in(const char* name, unsigned otherwise) {
  char path[1024];
  unsigned value = otherwise;
  FILE* file = fopen(in_folder(name, path), "r");
  if (file) {
    if (fscanf(file, "%u", &value) != 1) value = otherwise;
    fclose(file);
  }
  return value;
}

static int state(void) { return exists("lost") ? GPU_IS_LOST : SUCCESS; }

static unsigned processes(Process* out) {
  char path[1024], entry_path[300], alive[300];
  struct stat info;
  unsigned count = 0;
  DIR* folder = opendir(in_folder("procs", path));
  if (!folder) return 0;
  for (struct dirent* entry; (entry = readdir(folder)) && count < MAX_PROCESSES;) {
    snprintf(alive, sizeof alive, "/proc/%s", entry->d_name);
    if (entry->d_name[0] == '.' || stat(alive, &info) != 0) continue;
    snprintf(entry_path, sizeof entry_path, "procs/%s", entry->d_name);
    out[count].pid = (unsigned)atoi(entry->d_name);
    out[count].used = (unsigned long long)number_in(entry_path, 0) << 20;
    out[count].gpu_instance = out[count].compute_instance = 0;
    ++count;
  }
  closedir(folder);
  return count;
}

static unsigned long long used_bytes(void) {
  Process found[MAX_PROCESSES];
  unsigned long long used = (unsigned long long)IDLE_MIB << 20;
  for (unsigned i = 0, count = processes(found); i < count; ++i) used += found[i].used;
  return used;
}

const char* nvmlErrorString(int code) {
  switch (code) {
    case GPU_IS_LOST:
      return "GPU is lost";
    case DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    default:
      return "fake error";
  }
}

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  return exists("uninit") ? DRIVER_NOT_LOADED : SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int only;
  *device = &only;
  return index == 0 ? SUCCESS : 2;
}

int nvmlDeviceGetName(void* device, char* name, unsigned size) {
  (void)device;
  snprintf(name, size, "NVIDIA H200");
  return SUCCESS;
}

int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  snprintf(version, size, "580.0-fake");
  return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  const unsigned known = number_in("capability", 90);
  (void)device;
  *major = (int)known / 10;
  *minor = (int)known % 10;
  return SUCCESS;
}

int nvmlDeviceGetComputeMode(void* device, int* mode) {
  (void)device;
  *mode = (int)number_in("mode", 0);
  return SUCCESS;
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  (void)device;
  *current = *pending = exists("mig") ? 1 : 0;
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  (void)device;
  usleep(1000 * number_in("slow", 0));
  rates[0] = number_in("util", 0);
  rates[1] = rates[0] / 2;
  return state();
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  (void)device;
  *milliwatts = 100000 + 1000 * number_in("util", 0);
  return state();
}

int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* mhz) {
  (void)device;
  *mhz = clock == 1 ? 1980 : 3201;
  return state();
}

int nvmlDeviceGetMemoryInfo(void* device, Memory1* memory) {
  (void)device;
  memory->total = (unsigned long long)TOTAL_MIB << 20;
  memory->used = used_bytes();
  memory->free = memory->total - memory->used;
  return state();
}

int nvmlDeviceGetMemoryInfo_v2(void* device, Memory2* memory) {
  (void)device;
  memory->total = (unsigned long long)TOTAL_MIB << 20;
  memory->reserved = 0;
  memory->used = used_bytes();
  memory->free = memory->total - memory->used;
  return state();
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* out) {
  Process found[MAX_PROCESSES];
  const unsigned here = processes(found);
  (void)device;
  if (state() != SUCCESS) return state();
  if (exists("secret")) return NO_PERMISSION;
  if (here == 0) {
    *count = 0;
    return SUCCESS;
  }
  if (!out || *count < here) {
    *count = here;
    return INSUFFICIENT_SIZE;
  }
  memcpy(out, found, here * sizeof *found);
  for (unsigned i = 0; exists("foreign") && i < here; ++i) {
    out[i].pid += FOREIGN_IDS;
    out[i].used = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE
  }
  *count = here;
  return SUCCESS;
}

// The driver's own record: a sample every 100 ms, on the round tenth of a second.
int nvmlDeviceGetSamples(void* device, int kind, unsigned long long since_us, int* value_kind, unsigned* count,
                         UtilSample* out) {
  struct timeval now;
  (void)device;
  if (kind != 1) return NOT_SUPPORTED;
  gettimeofday(&now, NULL);
  const unsigned long long last = ((unsigned long long)now.tv_sec * 1000000 + (unsigned)now.tv_usec) / SAMPLE_US;
  unsigned long long first = since_us / SAMPLE_US + 1;
  if (last >= 100 && first < last - 99) first = last - 99;
  const unsigned here = first > last ? 0 : (unsigned)(last - first + 1);
  *value_kind = 1;
  if (!out) {
    *count = here;
    return state();
  }
  if (*count > here) *count = here;
  for (unsigned i = 0; i < *count; ++i) {
    out[i].at_us = (first + i) * SAMPLE_US;
    out[i].value.wide = 0;
    out[i].value.value = number_in("util", 0);
  }
  return state();
}

typedef struct {
  unsigned version, supported;
} GpmSupport;

typedef struct {
  unsigned metric, status;
  double value;
  const char* names[3];
} GpmMetric;

typedef struct {
  unsigned version, count;
  void *first, *last;
  GpmMetric metrics[];
} GpmAsk;

int nvmlGpmQueryDeviceSupport(void* device, GpmSupport* support) {
  (void)device;
  support->supported = exists("gpm") ? 1 : 0;
  return SUCCESS;
}

int nvmlGpmSampleAlloc(void** sample) {
  *sample = malloc(1);
  return SUCCESS;
}

int nvmlGpmSampleFree(void* sample) {
  free(sample);
  return SUCCESS;
}

int nvmlGpmSampleGet(void* device, void* sample) {
  (void)device;
  if (exists("gpm_secret")) return NO_PERMISSION;
  return sample ? state() : NOT_SUPPORTED;
}

// Each metric's value is ten times its number; occupancy (3) is one that this GPU does not tell.
int nvmlGpmMetricsGet(GpmAsk* ask) {
  if (!ask->first || !ask->last || ask->first == ask->last) return NOT_SUPPORTED;
  for (unsigned i = 0; i < ask->count; ++i) {
    ask->metrics[i].status = ask->metrics[i].metric == 3 ? NOT_SUPPORTED : SUCCESS;
    ask->metrics[i].value = 10.0 * ask->metrics[i].metric;
  }
  return SUCCESS;
}
