// SPDX-License-Identifier: Apache-2.0
// Turns a job's profile into a demand on a GPU type: the roofline prior, refined by boosters where there are any.
#include "predict/predictor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "device/gpu_type.h"
#include "features/feature_row.h"
#include "predict/roofline.h"
#include "trees/bundle.h"
#include "trees/forest.h"

namespace horus {
namespace {

// Default factors from estimate to upper bound while nothing was measured: assumptions, flagged as such.
constexpr double kUtilFactor = 2.0;
constexpr double kBandwidthFactor = 2.0;
constexpr double kStepTimeFactor = 2.5;
constexpr double kOutsideFactor = 1.5;            // on top, where the graph is not understood well enough
constexpr double kLeastKnownShare = 0.9;          // of forward FLOPs, below which the job counts as outside
constexpr double kMostStepUs = 35184372088832.0;  // 2^45, the limit of ValidateDemand
constexpr double kMostMemMib = 4294967296.0;      // 2^32, likewise
constexpr double kFullPct = 100.0;

// What the boosters of a bundle may refine.
enum Target : size_t { kUtil, kBandwidth, kMemory, kStepTime, kTargetCount };
constexpr std::array<std::string_view, kTargetCount> kTargetNames = {"gpu_util_pct", "mem_bw_util_pct", "mem_mib",
                                                                     "step_time_us"};
// Calibration series of a target: what to add to the margin for the upper bound.
constexpr std::string_view kUpperMargin = "upper_margin";

struct Refiner {
  Forest forest;
  Link link = Link::kIdentity;
  double upper_margin = -1;  // < 0: not calibrated, the prior's factor is used
};

struct Estimate {
  double value = 0;
  double upper = 0;
};

double ToMargin(Link link, double value) {
  constexpr double kLeast = 1e-6;  // a target of zero has no logarithm
  switch (link) {
    case Link::kExp:
      return std::log(std::max(value, kLeast));
    case Link::kExpm1:
      return std::log1p(std::max(value, 0.0));
    case Link::kIdentity:
      break;
  }
  return value;
}

void Refine(const Refiner& refiner, std::span<const float> row, Estimate& estimate) {
  const double ratio = estimate.value > 0 ? estimate.upper / estimate.value : 1;
  const auto base = static_cast<float>(ToMargin(refiner.link, estimate.value));
  const double margin = static_cast<double>(refiner.forest.PredictMargin(row, base));
  const double refined = ApplyLink(refiner.link, margin);
  if (!std::isfinite(refined)) return;  // the prior stands
  estimate.value = std::max(refined, 0.0);
  estimate.upper = refiner.upper_margin >= 0 ? ApplyLink(refiner.link, margin + refiner.upper_margin)
                                             : estimate.value * std::max(ratio, 1.0);
}

Bounded Percent(const Estimate& estimate) {
  const double value = std::clamp(estimate.value, 0.0, kFullPct);
  const double upper = std::isnan(estimate.upper) ? kFullPct : std::clamp(estimate.upper, value, kFullPct);
  Bounded bounded{.estimate = static_cast<float>(value), .upper = static_cast<float>(upper)};
  bounded.upper = std::max(bounded.upper, bounded.estimate);
  return bounded;
}

BoundedInt Whole(const Estimate& estimate, double most) {
  const double value = std::clamp(std::ceil(estimate.value), 0.0, most);
  const double upper = std::isnan(estimate.upper) ? most : std::clamp(std::ceil(estimate.upper), value, most);
  return {.estimate = static_cast<int64_t>(value), .upper = static_cast<int64_t>(upper)};
}

std::array<float, kTraitCount> TraitsOf(const StepCost& cost, const RooflineTerms& roofline) {
  std::array<float, kTraitCount> traits = {};
  const auto set = [&traits](Trait trait, double value) {
    traits[static_cast<size_t>(trait)] = static_cast<float>(value);
  };
  const auto log = [](double value) { return std::log10(std::max(value, 1.0)); };
  set(Trait::kLogStepFlops, log(cost.StepFlops()));
  set(Trait::kLogStepBytes, log(cost.StepBytes()));
  set(Trait::kLogKernels, log(cost.StepKernels()));
  set(Trait::kComputeBoundShare, roofline.compute_share);
  set(Trait::kBandwidthBoundShare, roofline.bandwidth_share);
  set(Trait::kLaunchBoundShare, roofline.launch_share);
  const double products = cost.totals.forward_flops + cost.totals.backward_flops;
  set(Trait::kMatrixFlopShare, cost.StepFlops() > 0 ? products / cost.StepFlops() : 0);
  set(Trait::kMeanParallelism, roofline.mean_parallelism);
  return traits;
}

}  // namespace

struct Predictor::Impl {
  std::array<std::unique_ptr<const Refiner>, kTargetCount> refiners;
  bool calibrated = false;
};

Predictor::Predictor(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Predictor::~Predictor() = default;

std::shared_ptr<const Predictor> Predictor::Default() {
  return std::shared_ptr<const Predictor>(new Predictor(std::make_unique<const Impl>()));
}

absl::StatusOr<std::shared_ptr<const Predictor>> Predictor::FromBundle(std::span<const uint8_t> bundle) {
  HORUS_ASSIGN_OR_RETURN(Bundle read, ReadBundle(bundle, {}, FeatureSchemaHash()));
  auto impl = std::make_unique<Impl>();
  size_t used = 0;
  impl->calibrated = true;
  for (size_t t = 0; t < kTargetCount; ++t) {
    const BundleTarget* target = read.FindTarget(kTargetNames[t]);
    if (target == nullptr) {
      impl->calibrated = false;
      continue;
    }
    if (target->forest.num_features > FeatureCount()) {
      return InvalidArgument("bundle target %s: expected at most %d features, found %d", std::string(kTargetNames[t]),
                             FeatureCount(), target->forest.num_features);
    }
    auto refiner = std::make_unique<Refiner>();
    HORUS_ASSIGN_OR_RETURN(refiner->forest, Forest::Create(target->forest));
    refiner->link = target->link;
    const NamedSeries* upper = FindSeries(target->calibration, kUpperMargin);
    if (upper != nullptr && upper->values.size() == 1 && upper->values[0] >= 0) {
      refiner->upper_margin = upper->values[0];
    } else if (upper != nullptr) {
      return InvalidArgument("bundle target %s: calibration %s: expected one number >= 0, found %d numbers",
                             std::string(kTargetNames[t]), std::string(kUpperMargin), upper->values.size());
    } else {
      impl->calibrated = false;
    }
    impl->refiners[t] = std::move(refiner);
    ++used;
  }
  if (used == 0) {
    return InvalidArgument(
        "bundle: expected a target named gpu_util_pct, mem_bw_util_pct, mem_mib or step_time_us, "
        "found none of them");
  }
  return std::shared_ptr<const Predictor>(new Predictor(std::move(impl)));
}

absl::StatusOr<Demand> Predictor::Predict(std::shared_ptr<const Graph> graph, const RunSpec& run,
                                          const GpuType& gpu) const {
  HORUS_ASSIGN_OR_RETURN(const JobProfile job, Analyse(std::move(graph), run));
  return Predict(job, gpu);
}

Demand Predictor::Predict(const JobProfile& job, const GpuType& gpu) const {
  StepMemory memory = job.memory;
  memory.context = std::max<int64_t>(0, gpu.context_mib) * kBytesPerMib;
  const RooflineTerms roofline = RooflineOf(job.cost, job.run, gpu);
  const bool outside = job.cost.coverage.flops_share < kLeastKnownShare;
  const double widen = outside ? kOutsideFactor : 1;
  const auto mib = [](int64_t bytes) { return static_cast<double>(MibCeil(bytes)); };

  std::array<Estimate, kTargetCount> estimates;
  estimates[kUtil] = {roofline.gpu_util_pct, roofline.gpu_util_pct * kUtilFactor * widen};
  estimates[kBandwidth] = {roofline.mem_bw_util_pct, roofline.mem_bw_util_pct * kBandwidthFactor * widen};
  estimates[kMemory] = {mib(memory.Peak()), mib(memory.Upper()) * widen};
  estimates[kStepTime] = {roofline.step_time_us, roofline.step_time_us * kStepTimeFactor * widen};

  const bool refined =
      std::any_of(impl_->refiners.begin(), impl_->refiners.end(), [](const auto& r) { return r != nullptr; });
  if (refined) {
    std::vector<float> row(FeatureCount());
    const size_t job_columns = std::min(job.features.size(), JobFeatureColumns().size());
    std::copy_n(job.features.begin(), job_columns, row.begin());
    DeviceFeatures(roofline, memory, gpu, job.run, std::span(row).subspan(JobFeatureColumns().size()));
    for (size_t t = 0; t < kTargetCount; ++t) {
      if (impl_->refiners[t] != nullptr) Refine(*impl_->refiners[t], row, estimates[t]);
    }
  }

  Demand demand;
  demand.profile_id = job.profile_id;
  demand.gpu_util_pct = Percent(estimates[kUtil]);
  demand.mem_bw_util_pct = Percent(estimates[kBandwidth]);
  demand.mem_mib = Whole(estimates[kMemory], kMostMemMib);
  demand.step_time_us = Whole(estimates[kStepTime], kMostStepUs);
  demand.gradient_mib = MibCeil(memory.gradients);
  demand.flags = (outside ? kDemandOutside : 0u) | (impl_->calibrated ? 0u : kDemandUncalibrated);
  demand.traits = TraitsOf(job.cost, roofline);
  return demand;
}

bool Predictor::calibrated() const { return impl_->calibrated; }

int64_t Predictor::bytes_held() const {
  size_t bytes = sizeof(Predictor) + sizeof(Impl);
  for (const auto& refiner : impl_->refiners) {
    if (refiner != nullptr) bytes += sizeof(Refiner) + refiner->forest.bytes_held();
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace horus
