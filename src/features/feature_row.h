// SPDX-License-Identifier: Apache-2.0
// Feature row: what a learned model reads of a job on a GPU type, as float32 in a fixed, versioned order.
//
// Enters:  cost, memory and run of a job; the roofline's terms and the specification of a GPU type.
// Leaves:  one float32 a column; the schema says name, unit and definition (FEATURES.md is made from it).
// Cost:    linear in operators for the job part, constant for the device part.
#pragma once

#include <optional>
#include <span>

#include "features/memory.h"

namespace horus {

struct GpuType;

inline constexpr uint32_t kFeatureSchemaVersion = 3;

struct FeatureColumn {
  std::string_view name;
  std::string_view unit;
  std::string_view definition;
};

// The columns of the job come first, then those that depend on the GPU type.
[[nodiscard]] std::span<const FeatureColumn> JobFeatureColumns();
[[nodiscard]] std::span<const FeatureColumn> DeviceFeatureColumns();
[[nodiscard]] size_t FeatureCount();
// Place of a column in the row; empty for a name that the schema lacks.
[[nodiscard]] std::optional<size_t> FindFeature(std::string_view name);

// Changes when a column's name, unit, definition or place changes; bundles carry it.
[[nodiscard]] uint64_t FeatureSchemaHash();

// Parts of the device time: one a KernelKind, and four that the kind does not tell.
inline constexpr size_t kPlainMatmulPart = kKernelKindCount;           // matrix products without matrix units
inline constexpr size_t kPlainConvolutionPart = kKernelKindCount + 1;  // convolutions likewise
inline constexpr size_t kLayoutPart = kKernelKindCount + 2;            // images turned for kernels of the other layout
inline constexpr size_t kLaunchPart = kKernelKindCount + 3;            // kernels too short to be anything else
inline constexpr size_t kTimeParts = kKernelKindCount + 4;
[[nodiscard]] std::string_view TimePartName(size_t part);  // as in its column, time_<part>_us

// The roofline's answer for one GPU type, filled by predict/roofline.h.
struct RooflineTerms {
  double step_time_us = 0;
  double device_time_us = 0;  // sum of kernel durations
  double host_time_us = 0;    // sum of dispatch times
  double copy_us = 0;         // the batch, from the host
  double gpu_util_pct = 0;
  double mem_bw_util_pct = 0;
  double compute_share = 0;  // shares of device time, 0-1
  double bandwidth_share = 0;
  double launch_share = 0;
  double mean_parallelism = 0;                  // 0-1
  std::array<double, kTimeParts> part_us = {};  // of device_time_us
  double mean_operator_us = 0;                  // of an operator, forward and backward together, weighted by that time
};

// The columns of JobFeatureColumns().
[[nodiscard]] std::vector<float> JobFeatures(const ShapedGraph& shaped, const StepCost& cost, const StepMemory& memory,
                                             const RunSpec& run);

// Writes the columns of DeviceFeatureColumns() to `out` (of exactly that size).
void DeviceFeatures(const RooflineTerms& roofline, const StepMemory& memory, const GpuType& gpu, std::span<float> out);

// The schema as Markdown: the part of src/features/FEATURES.md after its "schema" mark.
[[nodiscard]] std::string FeatureSchemaMarkdown();

}  // namespace horus
