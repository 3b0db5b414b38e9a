// SPDX-License-Identifier: Apache-2.0
// Shared steps of commands that place jobs.
#include "cli/placing.h"

#include <limits>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "base/text.h"

namespace horus::cli {

absl::StatusOr<double> ParseBound(const std::string& text) {
  if (text.empty()) return 0;
  if (text == "none") return std::numeric_limits<double>::infinity();
  double bound = 0;
  if (CLI::detail::lexical_cast(text, bound) && bound >= 1) return bound;
  return InvalidArgument("--slowdown-bound: expected a number of at least 1, or none, found %s", Quoted(text));
}

absl::Status AdoptResidents(const ClusterFile& file, const std::vector<GpuTypeId>& present, DemandShelf& shelf,
                            Cluster& cluster) {
  for (const FileResident& resident : file.residents) {
    HORUS_ASSIGN_OR_RETURN(const JobSpec job, shelf.Complete(resident.job, present));
    if (absl::Status status = cluster.Adopt(job, resident.slots).status(); !status.ok()) {
      return MakeError(status.code(), "%s: %s", resident.job.where, std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

std::string NameOf(const InterferenceChoice& choice) {
  return choice.pairs.empty() ? choice.name : "table, " + choice.name;
}

}  // namespace horus::cli
