// SPDX-License-Identifier: Apache-2.0
// horus/lab/files.h and traces of files, over the reader of the command. Without HORUS_WITH_FILES: without_files.cc.

#include "capi/graph_handles.h"
#include "io/cluster_file.h"
#include "io/demand_shelf.h"
#include "io/jobs_file.h"
#include "lab/capi/handles.h"
#include "lab/io/traces/trace_file.h"

namespace horus::capi {
namespace {

std::shared_ptr<const Predictor> PredictorOf(const horus_predictor* handle) {
  return handle == nullptr ? Predictor::Default() : handle->value;
}

absl::StatusOr<ClusterFile> FileOf(const char* path, const char* text, std::shared_ptr<const Catalogue> catalogue) {
  if (text == nullptr) return ReadClusterFile(path, std::move(catalogue));
  return LoadClusterFile(path, text, std::move(catalogue));
}

absl::StatusOr<std::vector<JobRequest>> RequestsOf(const char* path, const char* text, const Catalogue& catalogue) {
  if (text == nullptr) return ReadJobsFile(path, catalogue);
  return LoadJobsFile(path, text, catalogue);
}

absl::StatusOr<std::unique_ptr<horus_job_list>> ListOf(const Cluster& cluster, const horus_predictor* predictor,
                                                       const char* path, const char* text) {
  HORUS_ASSIGN_OR_RETURN(const std::vector<JobRequest> requests, RequestsOf(path, text, cluster.catalogue()));
  DemandShelf shelf(cluster.shared_catalogue(), PredictorOf(predictor));
  HORUS_ASSIGN_OR_RETURN(std::vector<JobSpec> specs, CompleteJobs(requests, cluster, TypesOf(cluster), shelf));
  return std::make_unique<horus_job_list>(cluster.shared_catalogue(), std::move(specs));
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_cluster_from_yaml(const horus_catalogue* catalogue, const horus_predictor* predictor,
                                     const char* path, const char* text, horus_catalogue** extended,
                                     horus_cluster** out, horus_error* error) {
  return Guard(error, {{path, "path"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const ClusterFile file, FileOf(path, text, CatalogueOf(catalogue)));
    HORUS_ASSIGN_OR_RETURN(Cluster cluster, MakeCluster(file));
    DemandShelf shelf(file.catalogue, PredictorOf(predictor));
    HORUS_RETURN_IF_ERROR(AdoptResidents(file, TypesPresent(file), shelf, cluster));
    auto made = std::make_unique<horus_cluster>(std::move(cluster));
    if (extended != nullptr) *extended = new horus_catalogue(file.catalogue);
    return Give(made.release(), out);
  });
}

horus_status horus_job_list_from_yaml(const horus_cluster* cluster, const horus_predictor* predictor, const char* path,
                                      const char* text, horus_job_list** out, horus_error* error) {
  return Guard(error, {{cluster, "cluster"}, {path, "path"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Read());
    return Give(ListOf(cluster->value, predictor, path, text), out);
  });
}

horus_status horus_trace_from_file(const char* path, const char* format, horus_trace** out, horus_error* error) {
  return Guard(error, {{path, "path"}, {out, "out"}}, [&] {
    TraceReadOptions options;
    if (format != nullptr) HORUS_SET_OR_RETURN(options.format, ParseTraceFormat(format));
    HORUS_ASSIGN_OR_RETURN(TraceRead read, ReadTrace(path, options));
    return Give(new horus_trace{std::make_shared<const Trace>(std::move(read.trace))}, out);
  });
}
