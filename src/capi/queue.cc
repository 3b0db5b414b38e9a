// SPDX-License-Identifier: Apache-2.0
// horus/queue.h: disciplines, jobs in and out, windows.

#include "base/units.h"
#include "capi/planning.h"

namespace horus::capi {
namespace {

// What both structs have alike, either way.
void CopyAlike(const auto& from, auto& to){HORUS_COPY_FIELDS(from, to, id, owner, submit_us, priority, cpu_milli,
                                                             mem_mib, total_us, attained_gpu_us, deadline_us, ideal_us)}

absl::StatusOr<QueuedJob> QueuedJobFromC(const horus_queued_job* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_queued_job c, ReadStruct(given));
  QueuedJob job;
  CopyAlike(c, job);
  job.tasks = c.tasks == 0 ? 1 : c.tasks;
  job.gpus = c.gpus == 0 ? job.tasks : c.gpus;
  if (c.gpus == HORUS_JOB_NO_GPUS) job.gpus = 0;
  job.gpu_milli = c.gpu_milli == 0 ? kMilliPerGpu : c.gpu_milli;
  job.gpu_util_pct = {c.gpu_util_pct, c.gpu_util_pct_upper == 0 ? c.gpu_util_pct : c.gpu_util_pct_upper};
  job.gpu_mem_mib = {c.gpu_mem_mib, c.gpu_mem_mib_upper == 0 ? c.gpu_mem_mib : c.gpu_mem_mib_upper};
  job.remaining_us = c.remaining_us == 0 ? -1 : c.remaining_us;
  return job;
}

horus_queued_job ToC(const QueuedJob& job) {
  horus_queued_job c = HORUS_QUEUED_JOB_INIT;
  CopyAlike(job, c);
  HORUS_COPY_FIELDS(job, c, tasks, gpu_milli, remaining_us)
  c.gpus = job.gpus == 0 ? HORUS_JOB_NO_GPUS : job.gpus;
  c.gpu_util_pct = job.gpu_util_pct.estimate;
  c.gpu_util_pct_upper = job.gpu_util_pct.upper;
  c.gpu_mem_mib = job.gpu_mem_mib.estimate;
  c.gpu_mem_mib_upper = job.gpu_mem_mib.upper;
  return c;
}

absl::Status Pop(Queue& queue, int64_t now_us, uint64_t* id, size_t* count) {
  HORUS_ASSIGN_OR_RETURN(const std::optional<uint64_t> first, queue.Pop(now_us));
  if (first.has_value()) *id = *first;
  *count = first.has_value() ? 1 : 0;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<QueueOptions> QueueOptionsFromC(const horus_queue_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_queue_options c, ReadOptionalStruct(given));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.las_thresholds_gpu_us, "las_thresholds_gpu_us", c.las_threshold_count));
  if (c.las_threshold_count > kMostLasThresholds) {
    return InvalidArgument("las_threshold_count: expected at most %d, found %d", kMostLasThresholds,
                           c.las_threshold_count);
  }
  HORUS_RETURN_IF_ERROR(CheckFlag("las_continuous", c.las_continuous));
  QueueOptions options;
  options.capacity = {c.gpu_milli, c.cpu_milli, c.mem_mib};
  if (c.las_threshold_count > 0)
    options.las_thresholds_gpu_us.assign(c.las_thresholds_gpu_us, c.las_thresholds_gpu_us + c.las_threshold_count);
  options.las_continuous = c.las_continuous == 1;
  options.aging_us_per_pct = c.aging_us_per_pct;
  HORUS_SET_FIELDS_UNLESS_ZERO(c, options, clusters, recluster_share)
  options.patience_us = c.patience_us;
  return options;
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_queue_create(const char* discipline, const horus_queue_options* options, horus_queue** out,
                                horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(discipline, "discipline"));
    HORUS_ASSIGN_OR_RETURN(const QueueOptions known, QueueOptionsFromC(options));
    HORUS_ASSIGN_OR_RETURN(auto queue, MakeQueue(name, known));
    return Give(new horus_queue{std::move(queue)}, out);
  });
}

void horus_queue_free(horus_queue* queue) { delete queue; }

horus_status horus_queue_get_info(const horus_queue* queue, horus_queue_info* info, horus_error* error) {
  return Guard(error, {{queue, "queue"}}, [&] {
    return Answer<horus_queue_info>({.struct_size = sizeof(horus_queue_info),
                                     .look_ahead = static_cast<uint32_t>(queue->value->look_ahead()),
                                     .jobs = queue->value->size()},
                                    info);
  });
}

horus_status horus_queue_push(horus_queue* queue, const horus_queued_job* job, horus_error* error) {
  return Guard(error, {{queue, "queue"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const QueuedJob value, QueuedJobFromC(job));
    return queue->value->Push(value);
  });
}

horus_status horus_queue_remove(horus_queue* queue, uint64_t id, horus_error* error) {
  return Guard(error, {{queue, "queue"}}, [&] { return queue->value->Remove(id); });
}

horus_status horus_queue_serve(horus_queue* queue, uint64_t id, int64_t now_us, horus_error* error) {
  return Guard(error, {{queue, "queue"}}, [&] { return queue->value->Serve(id, now_us); });
}

horus_status horus_queue_update(horus_queue* queue, uint64_t id, int64_t attained_gpu_us, int64_t remaining_us,
                                horus_error* error) {
  return Guard(error, {{queue, "queue"}}, [&] {
    return queue->value->Update(id, {.attained_gpu_us = attained_gpu_us, .remaining_us = remaining_us});
  });
}

horus_status horus_queue_get_job(const horus_queue* queue, uint64_t id, horus_queued_job* job, horus_error* error) {
  return Guard(error, {{queue, "queue"}}, [&] {
    HORUS_RETURN_IF_ERROR(CheckOutput(job));
    const QueuedJob* found = queue->value->Find(id);
    if (found == nullptr) return NoSuchQueuedJob(id);
    WriteStruct(ToC(*found), job);
    return absl::OkStatus();
  });
}

horus_status horus_queue_window(horus_queue* queue, int64_t now_us, size_t capacity, uint64_t* ids, size_t* count,
                                horus_error* error) {
  return Guard(error, {{queue, "queue"}, {count, "count"}}, [&] {
    HORUS_RETURN_IF_ERROR(RequireColumn(ids, "ids", capacity));
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue->value->Window(now_us, capacity));
    std::copy(window.begin(), window.end(), ids);
    *count = capacity == 0 ? queue->value->size() : window.size();
    return absl::OkStatus();
  });
}

horus_status horus_queue_pop(horus_queue* queue, int64_t now_us, uint64_t* id, size_t* count, horus_error* error) {
  return Guard(error, {{queue, "queue"}, {id, "id"}, {count, "count"}},
               [&] { return Pop(*queue->value, now_us, id, count); });
}

horus_status horus_queue_set_capacity(horus_queue* queue, int64_t gpu_milli, int64_t cpu_milli, int64_t mem_mib,
                                      horus_error* error) {
  return Guard(error, {{queue, "queue"}}, [&] { return queue->value->SetCapacity({gpu_milli, cpu_milli, mem_mib}); });
}

horus_status horus_queue_set_owner_usage(horus_queue* queue, uint64_t owner, int64_t gpu_milli, int64_t cpu_milli,
                                         int64_t mem_mib, horus_error* error) {
  return Guard(error, {{queue, "queue"}},
               [&] { return queue->value->SetOwnerUsage(owner, {gpu_milli, cpu_milli, mem_mib}); });
}
