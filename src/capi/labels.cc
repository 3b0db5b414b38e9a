// SPDX-License-Identifier: Apache-2.0
// Key-value pairs from two text columns.
#include "capi/labels.h"

#include "capi/args.h"

namespace horus::capi {

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> LabelsFromC(const LabelColumns& columns,
                                                                             size_t max_count) {
  const std::string keys = std::string(columns.name) + "_keys";
  const std::string values = std::string(columns.name) + "_values";
  if (columns.count > max_count) {
    return InvalidArgument("%s_count: expected at most %d, found %d", columns.name, max_count, columns.count);
  }
  HORUS_RETURN_IF_ERROR(RequireColumn(columns.keys, keys.c_str(), columns.count));
  HORUS_RETURN_IF_ERROR(RequireColumn(columns.values, values.c_str(), columns.count));
  std::vector<std::pair<std::string, std::string>> pairs(columns.count);
  for (size_t i = 0; i < columns.count; ++i) {
    HORUS_ASSIGN_OR_RETURN(pairs[i].first, ReadText(columns.keys[i], Element(keys.c_str(), i).c_str()));
    HORUS_ASSIGN_OR_RETURN(pairs[i].second, ReadText(columns.values[i], Element(values.c_str(), i).c_str()));
  }
  return pairs;
}

}  // namespace horus::capi
