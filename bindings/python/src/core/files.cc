// SPDX-License-Identifier: Apache-2.0
// People's files: clusters, jobs and traces, by the reader of the command.
#include "sim.h"

namespace horus_python {
namespace {

const char* TextOf(const std::optional<std::string>& text) { return text ? text->c_str() : nullptr; }

const horus_predictor* PointerTo(const PredictorHandle* predictor) {
  return predictor == nullptr ? nullptr : predictor->get();
}

py::tuple ReadCluster(const CatalogueHandle* catalogue, const PredictorHandle* predictor, const std::string& path,
                      const std::optional<std::string>& text) {
  horus_catalogue* extended = nullptr;
  auto cluster = Make<ClusterHandle, horus_cluster>([&](horus_cluster** out, horus_error* error) {
    return horus_cluster_from_yaml(Of(catalogue), PointerTo(predictor), path.c_str(), TextOf(text), &extended, out,
                                   error);
  });
  auto types = std::make_unique<CatalogueHandle>(extended);
  return py::make_tuple(std::move(cluster), std::move(types));
}

py::tuple ReadJobs(const ClusterHandle& cluster, const PredictorHandle* predictor, const std::string& path,
                   const std::optional<std::string>& text) {
  return JobsOf(*Make<JobList, horus_job_list>([&](horus_job_list** out, horus_error* error) {
    return cluster.Read(error, [&](horus_error* e) {
      return horus_job_list_from_yaml(cluster.get(), PointerTo(predictor), path.c_str(), TextOf(text), out, e);
    });
  }));
}

std::unique_ptr<TraceHandle> ReadTrace(const std::string& path, const std::optional<std::string>& format) {
  return Make<TraceHandle, horus_trace>([&](horus_trace** out, horus_error* error) {
    return horus_trace_from_file(path.c_str(), TextOf(format), out, error);
  });
}

}  // namespace

void BindFiles(py::module_& m) {
  m.def("read_cluster", &ReadCluster, py::arg("catalogue").none(true), py::arg("predictor").none(true), py::arg("path"),
        py::arg("text"),
        "read_cluster(catalogue: CatalogueHandle | None, predictor: PredictorHandle | None, path: str, text: str | "
        "None) -> tuple[ClusterHandle, CatalogueHandle]");
  m.def("read_jobs", &ReadJobs, py::arg("cluster"), py::arg("predictor").none(true), py::arg("path"), py::arg("text"),
        "read_jobs(cluster: ClusterHandle, predictor: PredictorHandle | None, path: str, text: str | None) -> "
        "tuple[Job, ...]");
  m.def("read_trace", &ReadTrace, py::arg("path"), py::arg("format"),
        "read_trace(path: str, format: str | None) -> TraceHandle");
}

}  // namespace horus_python
