// SPDX-License-Identifier: Apache-2.0
// What libonnx takes for the same bytes: parsing and its own shape inference.
//
// Enters:  a serialised ModelProto.
// Leaves:  milliseconds, or nothing where the program was built without libonnx.
// Units:   milliseconds.
// Cost:    as measured.                  Thread class: one thread.
#ifndef HORUS_BENCH_MICRO_ONNX_BASELINE_H_
#define HORUS_BENCH_MICRO_ONNX_BASELINE_H_

#include <optional>
#include <string>

namespace horus::bench {

[[nodiscard]] std::optional<double> OnnxMilliseconds(const std::string& bytes);

}  // namespace horus::bench

#endif  // HORUS_BENCH_MICRO_ONNX_BASELINE_H_
