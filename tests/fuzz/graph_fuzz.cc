// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes through the ONNX reader, what it accepts through shape binding, and that through cost and
// memory.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "features/cost.h"
#include "features/memory.h"
#include "graph/from_config.h"
#include "graph/reader.h"
#include "graph/shaped.h"

namespace {

// Small limits keep one input far below the fuzzer's limits on memory and time.
constexpr horus::ReadLimits kReadLimits = {.max_nodes = 20'000, .max_bytes_held = 32 << 20};
constexpr horus::ShapeLimits kShapeLimits = {.max_ops = 20'000};

void Check(bool rule) {
  if (!rule) std::abort();
}

// What readers of a ShapedGraph rely on.
void CheckShaped(const horus::ShapedGraph& shaped) {
  for (const horus::Tensor& tensor : shaped.tensors) {
    Check(tensor.elements() >= 0 && tensor.bytes() >= 0);
    if (tensor.alias_of.valid()) Check(tensor.alias_of.value() < shaped.tensors.size());
  }
  for (const horus::Op& op : shaped.ops) {
    Check(op.node != nullptr && op.repeat >= 1);
    for (const horus::TensorId t : op.inputs) Check(!t.valid() || t.value() < shaped.tensors.size());
    for (const horus::TensorId t : op.outputs) Check(!t.valid() || t.value() < shaped.tensors.size());
  }
}

// What readers of a cost rely on.
void CheckCost(const horus::ShapedGraph& shaped, const horus::RunSpec& run) {
  const horus::StepCost cost = horus::CostOfStep(shaped, run);
  for (const horus::OpCost& op : cost.ops) {
    for (const double amount : {op.forward.flops, op.forward.flops_other, op.backward.flops, op.forward.bytes,
                                op.backward.bytes, op.forward.kernels, op.saved_bytes, op.workspace_bytes}) {
      Check(std::isfinite(amount) && amount >= 0);
    }
  }
  Check(cost.coverage.ops_known <= cost.coverage.ops);
  Check(cost.coverage.flops_share >= 0 && cost.coverage.flops_share <= 1);
  const horus::StepMemory memory = horus::MemoryOfStep(shaped, cost, run);
  for (const int64_t part : {memory.weights, memory.gradients, memory.optimizer, memory.inputs, memory.activations,
                             memory.transient, memory.allocator_slack}) {
    Check(part >= 0);
  }
  Check(memory.Upper() >= memory.Peak() && memory.Peak() >= memory.weights);
}

const horus::RunSpec kRuns[] = {
    {.optimizer = horus::Optimizer::kMomentum},
    {.precision = horus::Precision::kAmpFp16, .optimizer = horus::Optimizer::kAdam},
    {.mode = horus::RunMode::kInference, .precision = horus::Precision::kBf16},
};

// A text in braces is a config.json; how it ends says which part of the model is made.
void LookAtConfig(std::string_view text) {
  const auto last = static_cast<int64_t>(text.back());
  horus::ConfigOptions options{.training = last % 2 != 0, .tensor_parallel = 1 + (last & 2)};
  if ((last & 4) != 0) options.weights = "int4";
  const auto graph = horus::GraphFromConfig(text, options);
  if (!graph.ok()) return;
  const auto shaped = horus::BindShapes(*graph, {.batch = 2, .dims = {{"seq", 3}}}, kShapeLimits);
  if (!shaped.ok()) return;
  CheckShaped(*shaped);
  CheckCost(*shaped, options.training ? kRuns[0] : kRuns[2]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && data[0] == '{') LookAtConfig({reinterpret_cast<const char*>(data), size});
  const auto graph = horus::ReadOnnx(std::span(data, size), kReadLimits);
  if (!graph.ok()) return 0;
  Check((*graph)->bytes_held <= kReadLimits.max_bytes_held);
  for (const int64_t batch : {int64_t{0}, int64_t{64}}) {
    const auto shaped = horus::BindShapes(*graph, {.batch = batch}, kShapeLimits);
    if (!shaped.ok()) continue;
    CheckShaped(*shaped);
    for (const horus::RunSpec& run : kRuns) CheckCost(*shaped, run);
  }
  return 0;
}
