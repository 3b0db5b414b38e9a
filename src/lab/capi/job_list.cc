// SPDX-License-Identifier: Apache-2.0
// Lists of jobs: what they hold, and those of a cluster.
#include "lab/capi/job_list.h"

#include "capi/args.h"
#include "capi/error.h"
#include "capi/handles.h"
#include "capi/structs.h"

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_cluster_job_specs(const horus_cluster* cluster, size_t job_count, const uint64_t* job_ids,
                                     horus_job_list** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}, {out, "out"}}));
    HORUS_RETURN_IF_ERROR(RequireColumn(job_ids, "job_ids", job_count));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Read());
    const horus::Cluster& held = cluster->value;
    const std::vector<horus::JobId> ids =
        job_ids == nullptr ? held.JobIds() : std::vector<horus::JobId>(job_ids, job_ids + job_count);
    if (ids.size() > held.JobIds().size()) {
      return horus::MakeError(absl::StatusCode::kResourceExhausted,
                              "job_ids: expected at most the %d jobs of the cluster, found %d", held.JobIds().size(),
                              ids.size());
    }
    std::vector<horus::JobSpec> specs;
    for (const horus::JobId id : ids) {
      HORUS_ASSIGN_OR_RETURN(const horus::JobInfo job, held.Job(id));
      specs.push_back(*job.spec);
    }
    *out = new horus_job_list(held.shared_catalogue(), std::move(specs));
    return absl::OkStatus();
  });
}

void horus_job_list_free(horus_job_list* list) { delete list; }

size_t horus_job_list_count(const horus_job_list* list) { return list == nullptr ? 0 : list->specs.size(); }

horus_status horus_job_list_get(const horus_job_list* list, size_t index, horus_job* job, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{list, "list"}}));
    HORUS_RETURN_IF_ERROR(CheckOutput(job));
    if (index >= list->jobs.size()) {
      return horus::MakeError(absl::StatusCode::kNotFound, "index: expected less than %d, found %d", list->jobs.size(),
                              index);
    }
    WriteStruct(list->jobs[index]->get(), job);
    return absl::OkStatus();
  });
}
