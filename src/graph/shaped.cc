// SPDX-License-Identifier: Apache-2.0
// BindShapes: a Graph and sizes in, a ShapedGraph out.
#include "graph/shaped.h"

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

absl::StatusOr<ShapedGraph> BindShapes(std::shared_ptr<const Graph> graph, const DimBindings& bindings,
                                       const ShapeLimits& limits) {
  if (graph == nullptr || graph->bodies.empty()) return InvalidArgument("no graph to bind shapes to");
  Binder binder(std::move(graph), bindings, limits);
  HORUS_RETURN_IF_ERROR(binder.Run());
  ShapedGraph result = std::move(binder.result);
  result.tensors = std::move(binder.state.tensors);
  AssignRoles(binder.state, &result);
  return result;
}

}  // namespace horus
