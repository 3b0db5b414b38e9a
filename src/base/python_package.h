// SPDX-License-Identifier: Apache-2.0
// How to install the Python package: the one place in C++ that says so (in Python: horus/_install.py).
//
// Enters:  an extra of bindings/python/pyproject.toml, or none.   Leaves: a command, for error messages.
#pragma once

#include <string_view>

#include "base/format.h"

namespace horus {

// Never by its name alone: no package index has it, and whoever registers it there would run code on our users'
// machines.
[[nodiscard]] inline std::string InstallPythonPackage(std::string_view extra) {
  const std::string with = extra.empty() ? "" : Formatted("[%s]", extra);
  return Formatted("pip install './bindings/python%s' in the sources of libhorus, or with a wheel 'WHEEL.whl%s'", with,
                   with);
}

}  // namespace horus
