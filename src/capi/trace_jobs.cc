// SPDX-License-Identifier: Apache-2.0
// horus/trace.h: the jobs of a trace, as columns.
#include "capi/args.h"
#include "capi/columns.h"
#include "capi/guard.h"
#include "capi/sim_handles.h"
#include "capi/structs.h"
#include "horus/trace.h"

namespace horus::capi {
namespace {

void PutJob(const Trace& trace, size_t row, const horus_trace_jobs& c) {
  const TraceJob& job = trace.jobs[row];
  Put(c.ids, row, job.id);
  Put(c.submit_us, row, job.submit_us);
  Put(c.duration_us, row, job.duration_us);
  Put(c.steps, row, job.steps);
  Put(c.endless, row, job.endless ? 1 : 0);
  Put(c.deadline_us, row, job.deadline_us);
  Put(c.tasks, row, job.tasks);
  Put(c.gpus_per_task, row, job.gpus_per_task == 0 ? HORUS_JOB_NO_GPUS : job.gpus_per_task);
  Put(c.gpu_milli, row, job.gpu_milli);
  Put(c.cpu_milli, row, job.cpu_milli);
  Put(c.mem_mib, row, job.mem_mib);
  Put(c.kinds, row, static_cast<int32_t>(job.kind));
  Put(c.priorities, row, job.priority);
  Put(c.profiles, row, job.profile);
  Put(c.owners, row, job.owner);
  Put(c.gpu_types, row, job.gpu_types);
  const TraceStepTimes times = job.step_times == kNotStated ? TraceStepTimes() : trace.step_times[job.step_times];
  Put(c.step_us, row, times.step_us);
  Put(c.host_us, row, times.host_us);
  Put(c.gpu_us, row, times.gpu_us);
  Put(c.network_us, row, times.network_us);
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

const char* horus_trace_owner_name(const horus_trace* trace, size_t index) {
  return trace != nullptr && index < trace->value->owners.size() ? trace->value->owners[index].c_str() : nullptr;
}

const char* horus_trace_type_name(const horus_trace* trace, size_t list, size_t index) {
  if (trace == nullptr || list >= trace->value->type_lists.size()) return nullptr;
  const horus::GpuTypeNames& names = trace->value->type_lists[list];
  return index < names.size() ? names[index].c_str() : nullptr;
}

horus_status horus_trace_get_jobs(const horus_trace* trace, const horus_trace_jobs* jobs, size_t* count,
                                  horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{trace, "trace"}, {count, "count"}}));
    HORUS_ASSIGN_OR_RETURN(const horus_trace_jobs columns, ReadStruct(jobs));
    const size_t rows = trace->value->jobs.size();
    HORUS_RETURN_IF_ERROR(CheckCapacity(rows, columns.capacity, count));
    for (size_t row = 0; row < rows; ++row) PutJob(*trace->value, row, columns);
    *count = rows;
    return absl::OkStatus();
  });
}
