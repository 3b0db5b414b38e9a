// SPDX-License-Identifier: Apache-2.0
// The openb trace (Alibaba, 2023; hkust-adsl/kubernetes-scheduler-simulator): node and pod lists as published.
//
// Enters:  bytes of openb_node_list_*.csv or openb_pod_list_*.csv.
// Leaves:  rows in file order; or "pods.csv: row 12: num_gpu: expected ..., found ...".
// Units:   thousandths of a core and of a GPU, MiB.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_LAB_IO_OPENB_FILE_H_
#define HORUS_LAB_IO_OPENB_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace horus {

struct OpenbNode {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  int32_t gpus = 0;
  std::string model;  // of its GPUs; empty without
};

struct OpenbPod {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  int32_t gpus = 0;
  int32_t gpu_milli = 0;            // per GPU; 0 without GPUs
  std::vector<std::string> models;  // that it may run on, in file order; empty = any
  std::string spec;                 // the same as written
};

class CsvRow;

// One row of a pod list; INVALID_ARGUMENT names its place, column, expected and found.
[[nodiscard]] absl::StatusOr<OpenbPod> ReadOpenbPod(const CsvRow& row);

inline constexpr size_t kMaxOpenbBytes = 64u << 20;  // of one file; the published ones have 0.6 MB

[[nodiscard]] absl::StatusOr<std::vector<OpenbNode>> ParseOpenbNodes(std::string_view bytes, const std::string& file);
[[nodiscard]] absl::StatusOr<std::vector<OpenbPod>> ParseOpenbPods(std::string_view bytes, const std::string& file);

}  // namespace horus

#endif  // HORUS_LAB_IO_OPENB_FILE_H_
