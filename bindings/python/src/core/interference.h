// SPDX-License-Identifier: Apache-2.0
// Interference models of the module, and devices as they see them.
#ifndef HORUS_PYTHON_INTERFERENCE_H_
#define HORUS_PYTHON_INTERFERENCE_H_

#include "graph.h"

namespace horus_python {

using InterferenceHandle = Handle<horus_interference, horus_interference_free>;

using horus::SharedDevice;
[[nodiscard]] SharedDevice FromC(const horus_device& device);

// Calls the caller's own model; `user` is the callable.
int32_t AskPython(void* user, const horus_device* device, size_t count, const horus_demand* const* demands,
                  float* slowdown, float* slowdown_upper);

}  // namespace horus_python

#endif  // HORUS_PYTHON_INTERFERENCE_H_
