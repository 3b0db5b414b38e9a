// SPDX-License-Identifier: Apache-2.0
// Interference models of the module, and devices as they see them.
#ifndef HORUS_PYTHON_INTERFERENCE_H_
#define HORUS_PYTHON_INTERFERENCE_H_

#include "graph.h"

namespace horus_python {

using InterferenceHandle = Handle<horus_interference, horus_interference_free>;

struct SharedDevice {
  static constexpr const char* kName = "SharedDevice";
  std::string gpu_type = {};
  int32_t sharing_mode = 0;
  double compute_share = 0;
  [[nodiscard]] horus_device ToC() const {
    return {sizeof(horus_device), sharing_mode, gpu_type.empty() ? nullptr : gpu_type.c_str(), compute_share};
  }
};
[[nodiscard]] SharedDevice FromC(const horus_device& device);

template <>
struct Arg<SharedDevice> : ValueArg<SharedDevice> {};

// Calls the caller's own model; `user` is the callable.
int32_t AskPython(void* user, const horus_device* device, size_t count, const horus_demand* const* demands,
                  float* slowdown, float* slowdown_upper);

}  // namespace horus_python

#endif  // HORUS_PYTHON_INTERFERENCE_H_
