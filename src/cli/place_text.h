// SPDX-License-Identifier: Apache-2.0
// A placement for people: the table of decisions, the reasons behind each, and the cluster's totals.
//
// Enters:  a PlacementReport.                  Leaves: text of at most 100 columns where names allow.
// Units:   with every number.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_CLI_PLACE_TEXT_H_
#define HORUS_CLI_PLACE_TEXT_H_

#include <span>
#include <string>

#include "io/placement.h"

namespace horus::cli {

[[nodiscard]] std::string DecisionsText(const PlacementReport& placement);
// Residents that the plan gives other CPU and host memory; empty where there are none.
[[nodiscard]] std::string ResizesText(const PlacementReport& placement);
// Who is beside whom in the end; empty where nobody shares.
[[nodiscard]] std::string SharedText(const PlacementReport& placement);
// Per job: demand, cost terms of winner and runner-up, effects, refusal counts.
[[nodiscard]] std::string ExplainText(const PlacementReport& placement);
[[nodiscard]] std::string TotalsText(const PlacementReport& placement);

// "0-3,6": indices in ascending order.
[[nodiscard]] std::string IndexRanges(std::span<const int32_t> indices);

}  // namespace horus::cli

#endif  // HORUS_CLI_PLACE_TEXT_H_
