// SPDX-License-Identifier: Apache-2.0
// Prints the shapes of the outputs of ONNX files; node_shapes.py compares them with computed results.
#include <cstdio>
#include <string>

#include "graph/reader.h"
#include "graph/shaped.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::printf("file %s\n", argv[i]);
    const auto graph = horus::ReadOnnxFile(argv[i]);
    const auto shaped = graph.ok() ? horus::BindShapes(*graph, {}) : graph.status();
    if (!shaped.ok()) {
      std::printf("error %s\n", std::string(shaped.status().message()).c_str());
      continue;
    }
    for (const horus::TensorId id : shaped->outputs) {
      const bool known = id.valid() && shaped->tensors[id.value()].known;
      std::printf(known ? "known" : "unknown");
      if (id.valid()) {
        for (const int64_t dim : shaped->tensors[id.value()].dims) std::printf(" %lld", static_cast<long long>(dim));
      }
      std::printf("\n");
    }
  }
  return 0;
}
