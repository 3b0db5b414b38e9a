// SPDX-License-Identifier: Apache-2.0
// An imported cluster as the files that the other commands read.
//
// Enters:  an imported cluster.   Leaves: texts; each was read again by the reader that it is for.
// Units:   docs/files.md, docs/shadow.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "io/kube/kube_import.h"

namespace horus {

struct ImportFiles {
  std::string cluster;    // cluster.yaml: nodes alone
  std::string jobs;       // jobs.yaml: what runs and what waits
  std::string decisions;  // decisions.csv: where what runs was put, in order
  std::string now;        // now.yaml: nodes, and what runs as residents
  std::string waiting;    // waiting.yaml: what waits
  size_t too_long = 0;    // gangs whose line the log cannot hold
};

// `gpus_files`: paths of files with GPU types, as seen from where the files will lie. `catalogue` knows their types.
[[nodiscard]] absl::StatusOr<ImportFiles> WriteImport(const ImportedCluster& imported,
                                                      const std::shared_ptr<const Catalogue>& catalogue,
                                                      const std::vector<std::string>& gpus_files);

}  // namespace horus
