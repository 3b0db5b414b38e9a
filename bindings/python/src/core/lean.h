// SPDX-License-Identifier: Apache-2.0
// ONNX bytes without the payload of large weights: what a pickled graph carries. The reader skips payloads anyway.
#ifndef HORUS_PYTHON_LEAN_H_
#define HORUS_PYTHON_LEAN_H_

#include <cstddef>
#include <string>

namespace horus_python {

// The same model, its initialisers of more than a few KiB without their values. Bytes that are not of this form come
// back as they are: the reader has the last word.
[[nodiscard]] std::string WithoutWeights(const char* data, size_t size);

}  // namespace horus_python

#endif  // HORUS_PYTHON_LEAN_H_
