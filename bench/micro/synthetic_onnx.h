// SPDX-License-Identifier: Apache-2.0
// Synthetic ONNX files of any size: a chain of layers, and a transformer as exporters write it.
//
// Enters:  a shape of net and a number of nodes.
// Leaves:  wire bytes in pieces, so that the payload of a weight can be a hole in a file.
// Units:   nodes, bytes.
// Cost:    linear.                       Thread class: values.
#ifndef HORUS_BENCH_MICRO_SYNTHETIC_ONNX_H_
#define HORUS_BENCH_MICRO_SYNTHETIC_ONNX_H_

#include <cstdint>
#include <string>
#include <vector>

namespace horus::bench {

// One initialiser of float32 without its payload.
struct SyntheticWeight {
  std::string name;
  std::vector<int64_t> dims;

  [[nodiscard]] int64_t payload_bytes() const;
};

struct SyntheticNet {
  std::string name;
  std::string nodes;   // fields of GraphProto
  std::string header;  // other fields of GraphProto
  std::vector<SyntheticWeight> weights;
  int64_t node_count = 0;

  // The ModelProto without payloads.
  [[nodiscard]] std::string Bytes() const;

  // Writes the ModelProto to `path` with zeros as payloads: holes, where the file system has them.
  [[nodiscard]] bool WriteWithPayloads(const std::string& path) const;
};

// Gemm and Relu in turn; `nodes` at least 2.
[[nodiscard]] SyntheticNet Chain(int64_t nodes);

// Encoder layers of width `hidden` with their normalisation, GELU and shape arithmetic written out: about `nodes`
// nodes, whole layers. BERT-base is 12 layers of width 768.
[[nodiscard]] SyntheticNet Transformer(int64_t nodes, int64_t hidden);

}  // namespace horus::bench

#endif  // HORUS_BENCH_MICRO_SYNTHETIC_ONNX_H_
