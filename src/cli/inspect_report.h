// SPDX-License-Identifier: Apache-2.0
// What `horus inspect` found out, before it is printed as text or JSON.
//
// Enters:  a job's profile, the predictor and the GPU types asked for.
// Leaves:  demands per type, and the operators by type and one by one, the costliest first.
// Units:   as in the rooms.
// Cost:    linear in operators and GPU types.   Thread class: value, share freely.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/gpu_type.h"
#include "features/feature_row.h"
#include "io/json_text.h"
#include "predict/predictor.h"
#include "predict/roofline.h"

namespace horus::cli {

// One operator, or all operators of one type.
struct OperatorCost {
  std::string name;  // node name, or operator type ("domain::type" outside the default domain)
  std::string op_type;
  std::string output_shape;  // of single operators: "64x256x56x56"
  int64_t count = 1;
  double forward_flops = 0;  // both kinds
  double backward_flops = 0;
  double bytes = 0;               // forward and backward
  std::optional<double> time_us;  // on the GPU type, forward and backward; absent without one
  std::optional<Limit> limit;
};

struct GpuReport {
  GpuType type;
  Demand demand;
  RooflineTerms roofline;
  std::vector<float> features;  // DeviceFeatureColumns()
  std::vector<Explanation> explanations;
  std::vector<OperatorCost> by_type;  // costliest first, at most `top`
  std::vector<OperatorCost> single;
};

struct InspectReport {
  std::string path;
  std::shared_ptr<const Graph> graph;
  JobProfile profile;
  std::vector<GpuReport> gpus;
  std::vector<OperatorCost> by_type;  // by FLOPs, for a report without GPU types
  std::vector<OperatorCost> single;
  bool calibrated = false;
  bool with_features = false;
  bool with_explanations = false;
};

[[nodiscard]] InspectReport MakeInspectReport(std::string path, std::shared_ptr<const Graph> graph, JobProfile profile,
                                              const Predictor& predictor, const std::vector<GpuType>& types,
                                              size_t top);

[[nodiscard]] std::string InspectText(const InspectReport& report);
[[nodiscard]] std::string InspectJson(const InspectReport& report);

// "training, batch 64, fp32, sgd, seq=128"; without the batch when it is 0.
[[nodiscard]] std::string RunText(const RunSpec& run, int64_t batch);
[[nodiscard]] Json RunJson(const RunSpec& run, int64_t batch);  // the batch null when it is 0

}  // namespace horus::cli
