// SPDX-License-Identifier: Apache-2.0
// What `horus inspect` found out, before it is printed as text or JSON: what a step costs and demands of GPUs, what a
// served model needs on each, and how two jobs slow each other on one.
//
// Enters:  a job's profile, a service (predict/service.h), two jobs; the predictor and the GPU types asked for.
// Leaves:  text or JSON.
// Units:   as in the rooms; slowdown = step time shared / alone on the whole GPU.
// Cost:    linear in operators and GPU types.   Thread class: values, and pure functions over them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "features/feature_row.h"
#include "features/run_spec.h"
#include "interference/model.h"
#include "io/json_text.h"
#include "predict/predictor.h"
#include "predict/roofline.h"
#include "predict/service.h"

namespace horus::cli {

// ---- A step.

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

// ---- A served model.

inline constexpr double kUsPerMs = 1e3;

struct ServedOn {
  GpuType gpu;
  Service service;
  std::optional<ServiceSolution> solved;  // where something was to be found; `service` is at its value
};

struct ServicesReport {
  std::string path;
  RunSpec run;
  ServiceLoad load;
  std::optional<ServiceUnknown> unknown;
  std::vector<ServedOn> rows;
  bool all = false;  // the types that do not serve are counted, not listed
};

[[nodiscard]] std::string ServicesText(const ServicesReport& report);
[[nodiscard]] std::string ServicesJson(const ServicesReport& report);

// "2 requests a second, 1024 tokens in and 256 out, each further one within 60 ms"
[[nodiscard]] std::string LoadText(const ServiceLoad& load, std::optional<ServiceUnknown> unknown = std::nullopt);

// "load", "context", "gpus": words of --solve.
inline constexpr std::string_view kServiceUnknowns[] = {"load", "context", "gpus"};

// ---- Two jobs on one GPU, in each mode that it has; and of services what their users then get.

struct BesideJob {
  std::string path;
  std::string run;                     // as RunText says it
  std::string load;                    // of a service, as LoadText says it
  std::vector<Demand> demands;         // parallel to the GPU types
  std::vector<Service> services = {};  // likewise, of a service; else none
  Framework engine = Framework::kPyTorch;
};

[[nodiscard]] absl::StatusOr<std::string> BesideReport(const std::array<BesideJob, 2>& jobs,
                                                       std::span<const GpuTypeId> types, const Catalogue& catalogue,
                                                       const InterferenceModel& model, bool json);

}  // namespace horus::cli
