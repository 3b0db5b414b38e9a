// SPDX-License-Identifier: Apache-2.0
// Predictors: demands of graphs, one by one and as columns, solving for a dimension, learning from observations.
#include "columns.h"
#include "graph.h"
#include "record.h"

namespace horus_python {
namespace {

using horus::Service;
using horus::Solution;

const Word kSolved[] = {
    {HORUS_SOLVED_MEMORY, "memory"}, {HORUS_SOLVED_GRAPH, "graph"}, {HORUS_SOLVED_MAXIMUM, "maximum"}, {0, nullptr}};
const Word kVerdicts[] = {{HORUS_SERVICE_SERVED, "served"},           {HORUS_SERVICE_NO_ROOM, "no-room"},
                          {HORUS_SERVICE_OVERLOADED, "overloaded"},   {HORUS_SERVICE_LATE, "late"},
                          {HORUS_SERVICE_UNSUPPORTED, "unsupported"}, {0, nullptr}};
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

std::vector<Service> Serve(const PredictorHandle& predictor, const CatalogueHandle* catalogue, const GraphHandle& graph,
                           const RunSpec& run, const horus::ServiceLoad& load,
                           const std::vector<std::string>& gpu_types) {
  const horus::detail::CRunSpec c(run);
  const std::vector<const char*> names = Texts(gpu_types);
  std::vector<Service> services(names.size());
  std::vector<horus_service*> out;
  std::vector<horus_demand*> demands;
  for (Service& service : services) {
    out.push_back(&service);
    demands.push_back(&service.demand);
  }
  Run([&](horus_error* error) {
    return predictor.Read(error, [&](horus_error* e) {
      return horus_predictor_service(predictor.get(), Of(catalogue), graph.get(), c.get(), &load, names.size(),
                                     names.data(), out.data(), demands.data(), e);
    });
  });
  return services;
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
                       traits, power_w, power_w_upper, distance, operator_us, host_us, duty, slowdown_bound);
  m.attr("demand_dtype") = py::dtype::of<horus_demand>();
  Record<Solution>(m, "Solution", "The largest value of a dimension that fits one device.")
      .Field("largest", &Solution::largest, "elements; 0 = not even the least value fits")
      .OneOf("reason", &Solution::reason, kSolved, "what ends the range: memory, the graph, or max_value")
      .Field("next", &Solution::next, "the value that does not fit")
      .Field("mem_mib_upper", &Solution::mem_mib_upper, "bound of memory at largest, in MiB")
      .Field("short_mib", &Solution::short_mib, "that next lacks")
      .Field("flags", &Solution::flags, "sum of horus.DemandFlag of the predictions made")
      .Field("message", &Solution::message, "why the graph refuses next");
  Record<Service>(m, "Service", "A language model that an engine serves, on one GPU of those that share it.")
      .OneOf("verdict", &Service::verdict, kVerdicts, "whether the load is served here, its times kept")
      .Field("weights_mib", &Service::weights_mib, "memory in MiB of an engine that takes no more than the load needs")
      .Field("activations_mib", &Service::activations_mib, "of one step's chunk of prompts")
      .Field("engine_mib", &Service::engine_mib, "context, CUDA graphs, buffers of collectives")
      .Field("cache_mib", &Service::cache_mib, "of cache_tokens keys and values")
      .Field("cache_tokens", &Service::cache_tokens, "tokens")
      .Field("running", &Service::running, "requests that are served at once, mean")
      .Field("most_running", &Service::most_running, "that the engine should admit at once")
      .Field("first_token_us", &Service::first_token_us, "time to the first token, mean, in microseconds")
      .Field("first_token_us_upper", &Service::first_token_us_upper, "its bound")
      .Field("token_us", &Service::token_us, "time of each further token, mean, in microseconds")
      .Field("token_us_upper", &Service::token_us_upper, "its bound")
      .Field("requests_per_s", &Service::requests_per_s, "served")
      .Field("tokens_per_s", &Service::tokens_per_s, "of answers")
      .Field("most_requests_per_s", &Service::most_requests_per_s, "with the whole GPU, times kept; 0 of users")
      .Field("busy", &Service::busy, "share of all time in which a step runs, 0-1")
      .Field("largest_slowdown", &Service::largest_slowdown,
             "at which load and times are kept; below 1: not even alone")
      .Add(
          "engine_arguments", "str", "str", "that tell the engine to take no more; empty where it is not served",
          [](Service& service, py::handle given, const std::string& what) {
            const auto text = Arg<std::string>::From(given, what);
            text.copy(service.engine_arguments, sizeof service.engine_arguments - 1);
            service.engine_arguments[std::min(text.size(), sizeof service.engine_arguments - 1)] = '\0';
          },
          [](const Service& service) -> py::object { return py::str(service.engine_arguments); })
      .Field("demand", &Service::demand, "what to place: mem_mib is what the engine must be told to take");
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
      .def(
          "serve",
          [](const PredictorHandle& p, const CatalogueHandle* c, const GraphHandle& g, const RunSpec& r,
             double requests_per_s, double users, double tokens_in, double tokens_out, double longest,
             int64_t first_token_us, int64_t token_us, double confidence, const std::vector<std::string>& types,
             const std::vector<std::tuple<std::string, double, double, double>>& measured) {
            horus::ServiceLoad load;
            std::vector<horus_service_run> runs(measured.size(), horus_service_run(HORUS_SERVICE_RUN_INIT));
            std::vector<const horus_service_run*> pointers;
            for (size_t i = 0; i < runs.size(); ++i) {
              const auto& [gpu, asking, first_us, further_us] = measured[i];
              runs[i].gpu_type = gpu.c_str();
              runs[i].concurrency = asking;
              runs[i].first_token_us = first_us;
              runs[i].token_us = further_us;
              pointers.push_back(&runs[i]);
            }
            load.measured_count = pointers.size();
            load.measured = pointers.data();
            load.requests_per_s = requests_per_s;
            load.concurrency = users;
            load.tokens_in = tokens_in;
            load.tokens_out = tokens_out;
            load.longest = longest;
            load.first_token_us = first_token_us;
            load.token_us = token_us;
            load.confidence = static_cast<float>(confidence);
            return Arg<std::vector<Service>>::To(Serve(p, c, g, r, load, types));
          },
          py::arg("catalogue").none(true), py::arg("graph"), py::arg("run"), py::arg("requests_per_s"),
          py::arg("users"), py::arg("tokens_in"), py::arg("tokens_out"), py::arg("longest"), py::arg("first_token_us"),
          py::arg("token_us"), py::arg("confidence"), py::arg("gpu_types"), py::arg("measured"),
          "serve(self, catalogue: CatalogueHandle | None, graph: GraphHandle, run: RunSpec, requests_per_s: float, "
          "users: "
          "float, tokens_in: float, tokens_out: float, longest: float, first_token_us: int, token_us: int, confidence: "
          "float, gpu_types: collections.abc.Sequence[str], measured: collections.abc.Sequence[tuple[str, float, "
          "float, "
          "float]]) -> tuple[Service, ...]")
      .def("quality", &Quality, "quality(self) -> dict[str, dict[str, float]]")
      .def(
          "epoch", [](const PredictorHandle& p) { return horus_predictor_epoch(p.get()); }, "epoch(self) -> int")
      .def(
          "bytes_held", [](const PredictorHandle& p) { return horus_predictor_bytes_held(p.get()); },
          "bytes_held(self) -> int");
}

}  // namespace horus_python
