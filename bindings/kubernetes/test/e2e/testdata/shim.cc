// SPDX-License-Identifier: Apache-2.0
//
// Stands before libhorus (LD_PRELOAD) and lets a function of it fail while the file named by HORUS_FAULT says so:
// "<function> <fault>", such as "horus_placer_plan hang". Otherwise it calls the real one.

#include <dlfcn.h>
#include <horus/horus.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

// Returns the status to fail with, or HORUS_OK where the real function is to be called.
horus_status Fault(const char* function) {
  const char* path = std::getenv("HORUS_FAULT");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "r");
  if (file == nullptr) return HORUS_OK;
  char named[64] = "";
  char fault[64] = "";
  const int read = std::fscanf(file, "%63s %63s", named, fault);
  std::fclose(file);
  if (read != 2 || std::strcmp(named, function) != 0) return HORUS_OK;
  if (std::strcmp(fault, "segv") == 0) *static_cast<volatile int*>(nullptr) = 0;
  if (std::strcmp(fault, "abort") == 0) std::abort();
  if (std::strcmp(fault, "throw") == 0) throw std::bad_alloc();
  if (std::strcmp(fault, "stop") == 0) {
    std::raise(SIGSTOP);  // and on it goes with SIGCONT, as if nothing had been
    return HORUS_OK;
  }
  while (std::strcmp(fault, "hang") == 0) pause();
  return HORUS_ERR_INTERNAL;
}

template <typename Function, typename... Arguments>
horus_status Call(Function* /*of the header*/, const char* name, Arguments... arguments) {
  if (const horus_status fault = Fault(name); fault != HORUS_OK) return fault;
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name))(arguments...);
}

}  // namespace

horus_status horus_placer_verdicts(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                   size_t node_count, const uint64_t* node_ids, int32_t* verdicts, double* costs,
                                   int32_t* reasons, horus_error* error) {
  return Call(&horus_placer_verdicts, __func__, placer, cluster, job, node_count, node_ids, verdicts, costs, reasons,
              error);
}

horus_status horus_placer_plan(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                               const horus_job* const* jobs, size_t node_count, const uint64_t* node_ids,
                               horus_progress progress, void* user, horus_plan** out, horus_error* error) {
  return Call(&horus_placer_plan, __func__, placer, cluster, job_count, jobs, node_count, node_ids, progress, user, out,
              error);
}

horus_status horus_placer_appraise(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                   size_t slot_count, const uint64_t* node_ids, const uint32_t* devices,
                                   const uint32_t* tasks, horus_appraisal* appraisal, horus_error* error) {
  return Call(&horus_placer_appraise, __func__, placer, cluster, job, slot_count, node_ids, devices, tasks, appraisal,
              error);
}

horus_status horus_cluster_adopt(horus_cluster* cluster, const horus_job* job, size_t slot_count,
                                 const uint64_t* node_ids, const uint32_t* devices, const uint32_t* tasks,
                                 int32_t* reason, horus_error* error) {
  return Call(&horus_cluster_adopt, __func__, cluster, job, slot_count, node_ids, devices, tasks, reason, error);
}
