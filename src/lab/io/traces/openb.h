// SPDX-License-Identifier: Apache-2.0
// A row of a pod list of the openb trace (Alibaba, 2023; hkust-adsl/kubernetes-scheduler-simulator).
//
// Enters:  a row as published.   Leaves: what the pod asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/csv.h"

namespace horus {

struct OpenbPod {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  int32_t gpus = 0;
  int32_t gpu_milli = 0;            // per GPU; 0 without GPUs
  std::vector<std::string> models;  // that it may run on, in file order; empty = any
  std::string spec;                 // the same as written
};

// INVALID_ARGUMENT names the row's place, column, expected and found.
[[nodiscard]] absl::StatusOr<OpenbPod> ReadOpenbPod(const CsvRow& row);

// At most as long as the name of a node or a job may be.
[[nodiscard]] absl::StatusOr<std::string> OpenbText(const CsvRow& row, std::string_view column);

}  // namespace horus
