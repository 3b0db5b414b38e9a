// SPDX-License-Identifier: Apache-2.0
// Graphs, what a step of them costs, and the schema of the feature row.
#include "graph.h"

#include <pybind11/numpy.h>

#include "lean.h"

namespace horus_python {
namespace {

std::unique_ptr<GraphHandle> FromFile(const std::string& path) {
  return Make<GraphHandle, horus_graph>(
      [&](horus_graph** out, horus_error* error) { return horus_graph_from_file(path.c_str(), nullptr, out, error); });
}

std::unique_ptr<GraphHandle> FromBytes(const py::buffer& source) {
  const Bytes bytes(source, "source");
  return Make<GraphHandle, horus_graph>([&](horus_graph** out, horus_error* error) {
    return horus_graph_from_bytes(bytes.data(), bytes.size(), nullptr, out, error);
  });
}

std::unique_ptr<GraphHandle> FromConfig(const std::string& text, bool training, int64_t tensor_parallel,
                                        int64_t pipeline_parallel, int64_t pipeline_stage, int64_t expert_parallel,
                                        int64_t lora_rank, const std::string& weights, const std::string& cache,
                                        const std::string& lora_targets) {
  horus_config_options options = HORUS_CONFIG_OPTIONS_INIT;
  options.training = training ? 1 : 0;
  options.tensor_parallel = tensor_parallel;
  options.pipeline_parallel = pipeline_parallel;
  options.pipeline_stage = pipeline_stage;
  options.expert_parallel = expert_parallel;
  options.lora_rank = lora_rank;
  options.weights = weights.empty() ? nullptr : weights.c_str();
  options.cache = cache.empty() ? nullptr : cache.c_str();
  options.lora_targets = lora_targets.empty() ? nullptr : lora_targets.c_str();
  return Make<GraphHandle, horus_graph>([&](horus_graph** out, horus_error* error) {
    return horus_graph_from_config(text.data(), text.size(), &options, out, error);
  });
}

py::dict Info(const GraphHandle& graph) {
  horus_graph_info info = HORUS_GRAPH_INFO_INIT;
  Run([&](horus_error* error) { return horus_graph_get_info(graph.get(), &info, error); });
  py::list dims;
  for (size_t i = 0; i < info.dims; ++i) dims.append(horus_graph_dim_name(graph.get(), i));
  py::dict out;
  out["ir_version"] = info.ir_version;
  out["opset"] = info.opset;
  out["nodes"] = info.nodes;
  out["dims"] = py::tuple(dims);
  out["fingerprint"] = info.fingerprint;
  out["bytes_held"] = info.bytes_held;
  return out;
}

py::dict Cost(const GraphHandle& graph, const RunSpec& run) {
  const horus::detail::CRunSpec c(run);
  horus_step_cost cost = HORUS_STEP_COST_INIT;
  Run([&](horus_error* error) { return horus_graph_cost(graph.get(), c.get(), &cost, error); });
  py::dict out;
  out["parameters"] = cost.parameters;
  out["forward_flops"] = cost.forward_flops;
  out["forward_flops_other"] = cost.forward_flops_other;
  out["training_flops"] = cost.training_flops;
  out["horus_flops"] = cost.horus_flops;
  out["step_bytes"] = cost.step_bytes;
  out["kernels"] = cost.kernels;
  out["operators"] = cost.operators;
  out["operators_unknown"] = cost.operators_unknown;
  out["weights_bytes"] = cost.weights_bytes;
  out["gradients_bytes"] = cost.gradients_bytes;
  out["optimizer_bytes"] = cost.optimizer_bytes;
  out["activations_bytes"] = cost.activations_bytes;
  out["workspace_bytes"] = cost.workspace_bytes;
  out["horus_memory_bytes"] = cost.horus_memory_bytes;
  return out;
}

py::array_t<float> Features(const GraphHandle& graph, const RunSpec& run) {
  const horus::detail::CRunSpec c(run);
  py::array_t<float> values(static_cast<py::ssize_t>(horus_feature_count()));
  float* data = values.mutable_data();
  size_t count = 0;
  const auto capacity = static_cast<size_t>(values.size());
  Run([&](horus_error* error) { return horus_graph_features(graph.get(), c.get(), capacity, data, &count, error); });
  return values;
}

py::list FeatureSchema() {
  py::list columns;
  for (size_t i = 0; i < horus_feature_count(); ++i) {
    columns.append(py::make_tuple(horus_feature_name(i), horus_feature_unit(i), horus_feature_definition(i)));
  }
  return columns;
}

}  // namespace

void BindGraph(py::module_& m) {
  Class<GraphHandle>(m, "GraphHandle")
      .def_static("from_file", &FromFile, py::arg("path"), "from_file(path: str) -> GraphHandle")
      .def_static("from_bytes", &FromBytes, py::arg("source"),
                  "from_bytes(source: collections.abc.Buffer) -> GraphHandle")
      .def_static(
          "from_config", &FromConfig, py::arg("text"), py::arg("training"), py::arg("tensor_parallel"),
          py::arg("pipeline_parallel"), py::arg("pipeline_stage"), py::arg("expert_parallel"), py::arg("lora_rank"),
          py::arg("weights"), py::arg("cache"), py::arg("lora_targets"),
          "from_config(text: str, training: bool, tensor_parallel: int, pipeline_parallel: int, pipeline_stage: "
          "int, expert_parallel: int, lora_rank: int, weights: str, cache: str, lora_targets: str) -> GraphHandle")
      .def("info", &Info, "info(self) -> dict[str, typing.Any]")
      .def("cost", &Cost, py::arg("run"), "cost(self, run: RunSpec) -> dict[str, typing.Any]")
      .def("features", &Features, py::arg("run"),
           "features(self, run: RunSpec) -> numpy.typing.NDArray[numpy.float32]");
  m.def("feature_schema", &FeatureSchema, "feature_schema() -> list[tuple[str, str, str]]");
  m.def("feature_schema_hash", &horus_feature_schema_hash, "feature_schema_hash() -> int");
  m.def(
      "without_weights",
      [](const py::buffer& source) {
        const Bytes bytes(source, "source");
        std::string lean;
        {
          const Released released;
          lean = WithoutWeights(static_cast<const char*>(bytes.data()), bytes.size());
        }
        return py::bytes(lean);
      },
      py::arg("source"), "without_weights(source: collections.abc.Buffer) -> bytes");
}

}  // namespace horus_python
