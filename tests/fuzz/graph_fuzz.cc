// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes through the ONNX reader, and what it accepts through shape binding.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph = horus::ReadOnnx(std::span(data, size), kReadLimits);
  if (!graph.ok()) return 0;
  Check((*graph)->bytes_held <= kReadLimits.max_bytes_held);
  for (const int64_t batch : {int64_t{0}, int64_t{64}}) {
    const auto shaped = horus::BindShapes(*graph, {.batch = batch}, kShapeLimits);
    if (shaped.ok()) CheckShaped(*shaped);
  }
  return 0;
}
