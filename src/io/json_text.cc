// SPDX-License-Identifier: Apache-2.0
// The one place that writes JSON of ours; see json_text.h.
#include "io/json_text.h"

#include <cmath>

namespace horus {

Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string JsonText(const Json& document, int indent) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace horus
