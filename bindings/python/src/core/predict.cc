// SPDX-License-Identifier: Apache-2.0
// Predictors: demands of graphs, one by one and as columns, solving for a dimension, learning from observations.
#include "columns.h"
#include "graph.h"
#include "record.h"

namespace horus_python {
namespace {

using horus::Solution;

const Word kSolved[] = {
    {HORUS_SOLVED_MEMORY, "memory"}, {HORUS_SOLVED_GRAPH, "graph"}, {HORUS_SOLVED_MAXIMUM, "maximum"}, {0, nullptr}};
using Predictor = std::unique_ptr<PredictorHandle>;

Predictor Default() { return Make<PredictorHandle, horus_predictor>(&horus_predictor_default); }

Predictor FromBytes(const py::buffer& source) {
  const Bytes bytes(source, "bundle");
  return Make<PredictorHandle, horus_predictor>([&](horus_predictor** out, horus_error* error) {
    return horus_predictor_from_bytes(bytes.data(), bytes.size(), out, error);
  });
}

py::bytes ToBundle(const PredictorHandle& predictor) {
  return ToBytes(Collect<char>([&](size_t capacity, char* data, size_t* count, horus_error* error) {
    return horus_predictor_to_bytes(predictor.get(), capacity, data, count, error);
  }));
}

Predictor Commit(const PredictorHandle& predictor, const ObservationsHandle& observations) {
  return Make<PredictorHandle, horus_predictor>([&](horus_predictor** out, horus_error* error) {
    return observations.Read(
        error, [&](horus_error* e) { return horus_predictor_commit(predictor.get(), observations.get(), out, e); });
  });
}

std::vector<Demand> Predict(const PredictorHandle& predictor, const CatalogueHandle* catalogue,
                            const GraphHandle& graph, const RunSpec& run, const std::vector<std::string>& gpu_types) {
  const horus::detail::CRunSpec c(run);
  const std::vector<const char*> names = Texts(gpu_types);
  std::vector<Demand> demands(names.size());
  std::vector<horus_demand*> out;
  for (Demand& demand : demands) out.push_back(&demand);
  Run([&](horus_error* error) {
    return predictor.Read(error, [&](horus_error* e) {
      return horus_predictor_demand(predictor.get(), Of(catalogue), graph.get(), c.get(), names.size(), names.data(),
                                    out.data(), e);
    });
  });
  return demands;
}

// A row of graphs, runs and types; what is alike is predicted once by the predictor's cache.
DemandArray PredictRows(const PredictorHandle& predictor, const CatalogueHandle* catalogue, const py::sequence& graphs,
                        const py::sequence& runs, const std::vector<std::string>& gpu_types,
                        const py::object& progress) {
  const size_t rows = gpu_types.size();
  if (graphs.size() != rows)
    Refuse("graphs", std::to_string(rows) + " rows, as gpu_types", std::to_string(graphs.size()));
  if (runs.size() != rows) Refuse("runs", std::to_string(rows) + " rows, as gpu_types", std::to_string(runs.size()));
  DemandArray demands(static_cast<py::ssize_t>(rows));
  horus_demand* data = demands.mutable_data();
  Progress tell(progress);
  for (size_t i = 0; i < rows; ++i) {
    const py::object graph = graphs[i];
    const py::object run = runs[i];
    const horus::detail::CRunSpec c(py::cast<const RunSpec&>(run));
    const auto& handle = py::cast<const GraphHandle&>(graph);
    const char* name = gpu_types[i].c_str();
    data[i] = HORUS_DEMAND_INIT;
    horus_demand* out = &data[i];
    Run([&](horus_error* error) {
      return predictor.Read(error, [&](horus_error* e) {
        return horus_predictor_demand(predictor.get(), Of(catalogue), handle.get(), c.get(), 1, &name, &out, e);
      });
    });
    tell.Check(static_cast<double>(i + 1) / static_cast<double>(rows));
  }
  return demands;
}

std::vector<Solution> Solve(const PredictorHandle& predictor, const CatalogueHandle* catalogue,
                            const GraphHandle& graph, const RunSpec& run, const std::string& dim, int64_t max_value,
                            const std::optional<std::vector<int64_t>>& resident_mib,
                            const std::vector<std::string>& gpu_types, const py::object& progress) {
  if (resident_mib && resident_mib->size() != gpu_types.size()) {
    Refuse("resident_mib", std::to_string(gpu_types.size()) + " values, one a GPU type",
           std::to_string(resident_mib->size()));
  }
  const horus::detail::CRunSpec c(run);
  const horus_solve_options options = {sizeof(horus_solve_options), 0, dim.c_str(), max_value,
                                       resident_mib ? resident_mib->data() : nullptr};
  const std::vector<const char*> names = Texts(gpu_types);
  std::vector<horus_solution> found(names.size(), horus_solution(HORUS_SOLUTION_INIT));
  std::vector<horus_solution*> out;
  for (horus_solution& solution : found) out.push_back(&solution);
  Progress tell(progress);
  Run([&](horus_error* error) {
    return predictor.Read(error, [&](horus_error* e) {
      return horus_predictor_solve(predictor.get(), Of(catalogue), graph.get(), c.get(), &options, names.size(),
                                   names.data(), &Progress::Tell, &tell, out.data(), e);
    });
  });
  std::vector<Solution> solutions;
  for (const horus_solution& solution : found) solutions.push_back(horus::detail::SolutionFrom(solution));
  return solutions;
}

// By quantity; those that the roofline alone predicts are left out.
py::dict Quality(const PredictorHandle& predictor) {
  py::dict out;
  for (const char* quantity : kQuantities) {
    horus_prediction_quality q = HORUS_PREDICTION_QUALITY_INIT;
    horus_error error = HORUS_ERROR_INIT;
    const horus_status status = horus_predictor_get_quality(predictor.get(), quantity, &q, &error);
    if (status == HORUS_ERR_NOT_FOUND) continue;
    if (status != HORUS_OK) Raise(status, error.message);
    py::dict row;
    row["promised"] = q.promised;
    row["observed"] = q.observed;
    row["rows"] = q.rows;
    row["families"] = q.families;
    row["gpu_types"] = q.gpu_types;
    row["trees"] = q.trees;
    out[quantity] = row;
  }
  return out;
}

}  // namespace

void BindPredictor(py::module_& m) {
  PYBIND11_NUMPY_DTYPE(horus_demand, struct_size, flags, profile_id, gpu_util_pct, gpu_util_pct_upper, mem_bw_util_pct,
                       mem_bw_util_pct_upper, mem_mib, mem_mib_upper, step_time_us, step_time_us_upper, gradient_mib,
                       traits, power_w, power_w_upper, distance, operator_us, host_us);
  m.attr("demand_dtype") = py::dtype::of<horus_demand>();
  Record<Solution>(m, "Solution", "The largest value of a dimension that fits one device.")
      .Field("largest", &Solution::largest, "elements; 0 = not even the least value fits")
      .OneOf("reason", &Solution::reason, kSolved, "what ends the range: memory, the graph, or max_value")
      .Field("next", &Solution::next, "the value that does not fit")
      .Field("mem_mib_upper", &Solution::mem_mib_upper, "bound of memory at largest, in MiB")
      .Field("short_mib", &Solution::short_mib, "that next lacks")
      .Field("flags", &Solution::flags, "sum of horus.DemandFlag of the predictions made")
      .Field("message", &Solution::message, "why the graph refuses next");
  Class<PredictorHandle>(m, "PredictorHandle")
      .def(py::init(&Default), "__init__(self) -> None")
      .def_static("from_bytes", &FromBytes, py::arg("bundle"),
                  "from_bytes(bundle: collections.abc.Buffer) -> PredictorHandle")
      .def("to_bytes", &ToBundle, "to_bytes(self) -> bytes")
      .def("commit", &Commit, py::arg("observations"),
           "commit(self, observations: ObservationsHandle) -> PredictorHandle")
      .def(
          "predict",
          [](const PredictorHandle& p, const CatalogueHandle* c, const GraphHandle& g, const RunSpec& r,
             const std::vector<std::string>& t) { return Arg<std::vector<Demand>>::To(Predict(p, c, g, r, t)); },
          py::arg("catalogue").none(true), py::arg("graph"), py::arg("run"), py::arg("gpu_types"),
          "predict(self, catalogue: CatalogueHandle | None, graph: GraphHandle, run: RunSpec, gpu_types: "
          "collections.abc.Sequence[str]) -> tuple[Demand, ...]")
      .def("predict_rows", &PredictRows, py::arg("catalogue").none(true), py::arg("graphs"), py::arg("runs"),
           py::arg("gpu_types"), py::arg("progress"),
           "predict_rows(self, catalogue: CatalogueHandle | None, graphs: collections.abc.Sequence[GraphHandle], runs: "
           "collections.abc.Sequence[RunSpec], gpu_types: collections.abc.Sequence[str], progress: "
           "collections.abc.Callable[[float], object] | None) -> numpy.typing.NDArray[numpy.void]")
      .def(
          "solve",
          [](const PredictorHandle& p, const CatalogueHandle* c, const GraphHandle& g, const RunSpec& r,
             const std::string& dim, int64_t max_value, const py::object& residents,
             const std::vector<std::string>& types, const py::object& progress) {
            return Arg<std::vector<Solution>>::To(
                Solve(p, c, g, r, dim, max_value,
                      Arg<std::optional<std::vector<int64_t>>>::From(residents, "resident_mib"), types, progress));
          },
          py::arg("catalogue").none(true), py::arg("graph"), py::arg("run"), py::arg("dim"), py::arg("max_value"),
          py::arg("resident_mib"), py::arg("gpu_types"), py::arg("progress"),
          "solve(self, catalogue: CatalogueHandle | None, graph: GraphHandle, run: RunSpec, dim: str, max_value: int, "
          "resident_mib: collections.abc.Sequence[int] | None, gpu_types: collections.abc.Sequence[str], progress: "
          "collections.abc.Callable[[float], object] | None) -> tuple[Solution, ...]")
      .def("quality", &Quality, "quality(self) -> dict[str, dict[str, float]]")
      .def(
          "epoch", [](const PredictorHandle& p) { return horus_predictor_epoch(p.get()); }, "epoch(self) -> int")
      .def(
          "bytes_held", [](const PredictorHandle& p) { return horus_predictor_bytes_held(p.get()); },
          "bytes_held(self) -> int");
}

}  // namespace horus_python
