// SPDX-License-Identifier: Apache-2.0
// Two text columns of the C ABI as key-value pairs: node labels and node selectors.
//
// Enters:  the columns and their length.  Leaves: pairs in the caller's order; errors name column and element.
// Units:   elements.
// Cost:    linear in the text.            Thread class: pure functions.
#ifndef HORUS_CAPI_LABELS_H_
#define HORUS_CAPI_LABELS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace horus::capi {

struct LabelColumns {
  const char* name;  // "label" of label_count, label_keys, label_values
  size_t count;
  const char* const* keys;
  const char* const* values;
};

[[nodiscard]] absl::StatusOr<std::vector<std::pair<std::string, std::string>>> LabelsFromC(const LabelColumns& columns,
                                                                                           size_t max_count);

}  // namespace horus::capi

#endif  // HORUS_CAPI_LABELS_H_
