// SPDX-License-Identifier: Apache-2.0
// A document of ours as JSON text, whatever bytes the names and paths in it have.
//
// Enters:  a document; how many blanks a level is indented by.   Leaves: text that ends with a newline.
#pragma once

#include <cmath>
#include <string>

#include "nlohmann/json.hpp"

namespace horus {

using Json = nlohmann::ordered_json;

inline constexpr int kJsonPage = 2;   // of reports
inline constexpr int kJsonDense = 1;  // of files with many lines
inline constexpr int kJsonLine = -1;  // all on one line

// Null where it is infinite or no number.
[[nodiscard]] inline Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// What `make` makes of each value, as a list.
[[nodiscard]] Json JsonList(const auto& values, const auto& make) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(make(value));
  return list;
}

// Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] inline std::string JsonText(const Json& document, int indent = kJsonPage) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace horus
