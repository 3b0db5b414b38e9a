// SPDX-License-Identifier: Apache-2.0
// The one place that writes JSON of ours; see json_text.h.
#include "io/json_text.h"

#include <cmath>

#include "nlohmann/json.hpp"

namespace horus {

nlohmann::ordered_json NumberOrNull(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

std::string JsonText(const nlohmann::ordered_json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace horus
