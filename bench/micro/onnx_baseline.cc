// SPDX-License-Identifier: Apache-2.0
// Times libonnx, where it is there.
#include "bench/micro/onnx_baseline.h"

#ifdef HORUS_BENCH_LIBONNX
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <chrono>
#endif

namespace horus::bench {

#ifdef HORUS_BENCH_LIBONNX
std::optional<double> OnnxMilliseconds(const std::string& bytes) {
  const auto start = std::chrono::steady_clock::now();
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return std::nullopt;
  // Types checked, no error ends it, and constants are propagated through shape arithmetic: what ours does too.
  const onnx::ShapeInferenceOptions options(true, 0, true);
  onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}
#else
std::optional<double> OnnxMilliseconds(const std::string&) { return std::nullopt; }
#endif

}  // namespace horus::bench
