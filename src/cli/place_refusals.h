// SPDX-License-Identifier: Apache-2.0
// Refusals for people: a few words for a table's cell, and a paragraph below it.
//
// Enters:  a PlacementReport and decisions of it.   Leaves: text.
// Units:   with every number.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_CLI_PLACE_REFUSALS_H_
#define HORUS_CLI_PLACE_REFUSALS_H_

#include <string>

#include "io/placement.h"

namespace horus::cli {

// As people named them, printable.
[[nodiscard]] std::string NodeName(const PlacementReport& placement, NodeId node);
[[nodiscard]] std::string JobName(const PlacementReport& placement, JobId job);

// With which probability its slowdown is held against a bound.
[[nodiscard]] double ConfidenceOf(const JobSpec& job);

// The place that came nearest and how far off it was.
[[nodiscard]] std::string MissText(const PlacementReport& placement, const Decision& decision);
// A few words: what keeps it off the nearest place.
[[nodiscard]] std::string RefusalColumn(const PlacementReport& placement, const Decision& decision);
// A paragraph a job that waits; empty where none does.
[[nodiscard]] std::string NotPlacedText(const PlacementReport& placement);

}  // namespace horus::cli

#endif  // HORUS_CLI_PLACE_REFUSALS_H_
