// SPDX-License-Identifier: Apache-2.0
// What place and shadow share: a bound from the command line, the jobs that run already.
//
// Enters:  options and a cluster file.   Leaves: values, or errors that name option or place.
// Units:   slowdown = shared / alone.
// Cost:    that of adopting.             Thread class: main thread.
#ifndef HORUS_CLI_PLACING_H_
#define HORUS_CLI_PLACING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/inputs.h"
#include "cli/interference_choice.h"
#include "io/cluster_file.h"
#include "place/cluster.h"

namespace horus::cli {

// Of --slowdown-bound; 0 = the policy's default.
[[nodiscard]] absl::StatusOr<double> ParseBound(const std::string& text);

[[nodiscard]] absl::Status AdoptResidents(const ClusterFile& file, const std::vector<GpuTypeId>& present,
                                          DemandShelf& shelf, Cluster& cluster);

// "table, horus": measured pairs first.
[[nodiscard]] std::string NameOf(const InterferenceChoice& choice);

}  // namespace horus::cli

#endif  // HORUS_CLI_PLACING_H_
