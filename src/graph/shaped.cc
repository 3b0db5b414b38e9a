// SPDX-License-Identifier: Apache-2.0
// BindShapes: a Graph and sizes in, a ShapedGraph out.
#include "graph/shaped.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "graph/binder.h"
#include "graph/roles.h"

namespace horus {

int64_t Tensor::elements() const { return known ? ElementsOf(dims) : 0; }

int64_t Tensor::bytes() const {
  // The number of elements is limited to 2^48 or what the caller says; bits of one element to 128.
  if (!known) return 0;
  const Wide bits = static_cast<Wide>(ElementsOf(dims)) * BitsOf(dtype);
  return static_cast<int64_t>((bits + 7) / 8);
}

std::vector<std::string_view> InputDims(const Graph& graph) {
  std::vector<std::string_view> names;
  std::vector<bool> seen(graph.symbols.size());
  for (const ValueId input : graph.main().inputs) {
    const Value& value = graph.main().values[input.value()];
    if (!value.dims.has_value()) continue;
    for (const DeclaredDim& dim : *value.dims) {
      if (!dim.symbol.valid() || seen[dim.symbol.value()]) continue;
      seen[dim.symbol.value()] = true;
      names.push_back(graph.symbols[dim.symbol.value()]);
    }
  }
  return names;
}

absl::Status CheckInputSizes(const ShapedGraph& shaped) {
  std::vector<std::string_view> open;
  std::string_view input;  // the first that has one
  for (const ShapedInput& one : shaped.inputs) {
    const Tensor& tensor = shaped.tensors[one.tensor.value()];
    const Value& value = shaped.graph->main().values[one.value.value()];
    for (size_t i = 0; value.dims.has_value() && i < value.dims->size() && i < tensor.dims.size(); ++i) {
      if (tensor.dims[i] != kUnknownDim) continue;
      const SymbolId symbol = (*value.dims)[i].symbol;
      if (!symbol.valid()) {
        return InvalidArgument("graph input %s: dimension %d has neither size nor name; export the graph with either",
                               Quoted(tensor.name), i);
      }
      const std::string_view name = shaped.graph->symbols[symbol.value()];
      if (std::ranges::find(open, name) != open.end()) continue;
      if (open.empty()) input = tensor.name;
      open.push_back(name);
    }
  }
  if (open.empty()) return absl::OkStatus();
  return InvalidArgument(
      "graph input %s: expected a size for %s, found none; give it in the run's dims (--dim NAME=SIZE, dim_names in C)",
      Quoted(input), QuotedSome(open));
}

absl::StatusOr<ShapedGraph> BindShapes(std::shared_ptr<const Graph> graph, const DimBindings& bindings,
                                       const ShapeLimits& limits) {
  if (graph == nullptr || graph->bodies.empty()) return InvalidArgument("no graph to bind shapes to");
  // Sizes at their most may contradict others that the data decides too: then they are unknown.
  for (bool bounds = true;; bounds = false) {
    Binder binder(graph, bindings, limits);
    binder.state.bounds_sizes = bounds;
    if (absl::Status status = binder.Run(); !status.ok()) {
      if (binder.state.bounded == 0) return status;
      continue;
    }
    ShapedGraph result = std::move(binder.result);
    result.tensors = std::move(binder.state.tensors);
    result.coverage.sizes_at_most = binder.state.bounded;
    AssignRoles(binder.state, &result);
    return result;
  }
}

}  // namespace horus
