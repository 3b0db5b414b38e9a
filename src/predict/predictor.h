// SPDX-License-Identifier: Apache-2.0
// Predictor: what a job will demand of a GPU type, predicted from its graph without running it.
//
// Enters:  a graph and how it is run; a GPU type; optionally a bundle of trained boosters.
// Leaves:  a Demand (estimates and upper bounds), and on the way the JobProfile that explains it.
// Cost:    Analyse: linear in operators (ms); Predict from a profile: about 20 ns an operator.
#pragma once

#include "features/memory.h"
#include "predict/engine_step.h"
#include "predict/measured.h"
#include "predict/target_model.h"

namespace horus {

struct GpuType;

// All that is known of a job before a GPU type is named. A value; the shaped graph is shared.
struct JobProfile {
  uint64_t profile_id = 0;  // never 0
  RunSpec run;
  std::shared_ptr<const ShapedGraph> shaped;
  StepCost cost;
  StepMemory memory;            // without the context of a GPU type
  std::vector<float> features;  // JobFeatureColumns()
  EngineStep engine;            // empty but for runs of an engine

  [[nodiscard]] int64_t bytes_held() const;  // approximate heap bytes, the graph excluded
};

// Fingerprint of graph, bound shapes and run: equal jobs share it on every machine, in whatever words their sizes were
// given (a batch by number or left to the file).
[[nodiscard]] uint64_t ProfileId(const ShapedGraph& shaped, const RunSpec& run);

// Binds shapes, then costs and memory. Errors are those of BindShapes (node and operator named).
[[nodiscard]] absl::StatusOr<JobProfile> Analyse(std::shared_ptr<const Graph> graph, const RunSpec& run);

// Below this share of the operators, or of the forward FLOPs, a graph counts as not understood: its bounds widen, and
// of its memory there is none (kUnboundedMemMib).
inline constexpr double kLeastKnownShare = 0.9;
[[nodiscard]] bool IsUnderstood(const CostCoverage& coverage);

// The feature row of a job on a GPU type, and the roofline's own answers with their default bounds.
struct RowOnGpu {
  std::vector<float> row;  // FeatureCount()
  std::array<double, kQuantityCount> roofline = {};
  std::array<double, kQuantityCount> roofline_upper = {};  // >= roofline
  RooflineTerms terms;
  int64_t gradient_mib = 0;
  bool understood = true;  // IsUnderstood
};
[[nodiscard]] RowOnGpu DescribeOn(const JobProfile& job, const GpuType& gpu);

// How a quantity was arrived at, for people.
struct FeatureShift {
  size_t feature = 0;  // position in the feature row
  double shift = 0;    // of the margin: a ratio's logarithm
};
struct Explanation {
  Quantity quantity = Quantity::kStepTime;
  Refined parts;
  std::vector<FeatureShift> shifts;  // of the forest, largest first; empty without one
  bool lifted = false;               // a step that is its floor or roofline, not what prior and trees say
};

class Predictor {
 public:
  // What the library brings: the built-in bundle. Never null.
  [[nodiscard]] static std::shared_ptr<const Predictor> Default();

  // The roofline prior with its documented, uncalibrated bounds; never null.
  [[nodiscard]] static std::shared_ptr<const Predictor> Prior();

  // The prior refined by a bundle. Errors: damaged bytes, another format version or feature schema.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const Predictor>> FromBundle(std::span<const uint8_t> bundle);
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const Predictor>> FromBundle(const Bundle& bundle);

  // A new predictor that answers with what was measured where it was; `epoch` tells the two apart.
  [[nodiscard]] std::shared_ptr<const Predictor> WithMeasured(MeasuredDemands measured) const;

  [[nodiscard]] absl::StatusOr<Demand> Predict(std::shared_ptr<const Graph> graph, const RunSpec& run,
                                               const GpuType& gpu) const;

  // For several GPU types: analyse once, predict for each.
  [[nodiscard]] Demand Predict(const JobProfile& job, const GpuType& gpu) const;

  // The two halves of Predict: without what was measured, and with it put in its place.
  [[nodiscard]] Demand PredictUnmeasured(const JobProfile& job, const GpuType& gpu) const;
  [[nodiscard]] Demand WithMeasurements(const GpuType& gpu, const Demand& predicted) const;

  // One entry for each quantity that this predictor refines.
  [[nodiscard]] std::vector<Explanation> Explain(const JobProfile& job, const GpuType& gpu) const;

  // The bundle's bytes; empty where there is none.
  [[nodiscard]] std::string_view bundle() const;

  // The model of a quantity; nullptr where the roofline stands alone.
  [[nodiscard]] const TargetModel* FindModel(Quantity quantity) const;

  // False while a bound of utilisation, bandwidth, memory or step time is the prior's default factor.
  [[nodiscard]] bool calibrated() const;
  [[nodiscard]] uint64_t epoch() const;  // of the measured demands; 0 without
  [[nodiscard]] int64_t bytes_held() const;

  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

 private:
  struct Impl;
  explicit Predictor(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace horus
