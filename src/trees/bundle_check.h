// SPDX-License-Identifier: Apache-2.0
// The rules that every bundle keeps, asked of what was read and of what is about to be written.
//
// Enters:  a Bundle.   Leaves: OK, or the first rule that is broken and where.
#pragma once

#include "trees/bundle.h"

namespace horus {

// Names not empty, printable and unique; no NaN; known links; whole forests; all within the limits.
[[nodiscard]] absl::Status CheckBundle(const Bundle& bundle, const BundleLimits& limits);

}  // namespace horus
