// SPDX-License-Identifier: Apache-2.0
// Fits and calibrates one kind after the other.
#include "lab/models/train_pairs.h"

#include <algorithm>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "horus/version.h"
#include "interference/pair_bounds.h"
#include "interference/pair_bundle.h"
#include "lab/models/learned_models.h"

namespace horus {

// ---- The list of learned kinds.

std::span<const PairModelKind> PairModelKinds() {
  static constexpr std::array<PairModelKind, 4> kKinds = {{{kKernelName, FitKernelTarget, ReadKernelModel},
                                                           {kBoostedName, FitBoosted, ReadBoosted},
                                                           {kIaspName, FitIasp, ReadIasp},
                                                           {kIappName, FitIapp, ReadIapp}}};
  return kKinds;
}

absl::StatusOr<const PairModelKind*> FindPairModelKind(std::string_view name) {
  for (const PairModelKind& kind : PairModelKinds()) {
    if (kind.name == name) return &kind;
  }
  return MakeError(absl::StatusCode::kNotFound, "learned interference model: expected one of %s, found %s",
                   Listed(LearnedModelNames()), Quoted(name));
}

absl::StatusOr<std::vector<const PairModelKind*>> PairModelKindsNamed(const std::vector<std::string>& names) {
  std::vector<const PairModelKind*> kinds;
  for (const PairModelKind& kind : PairModelKinds()) {
    if (names.empty()) kinds.push_back(&kind);
  }
  for (const std::string& name : names) {
    HORUS_ASSIGN_OR_RETURN(const PairModelKind* kind, FindPairModelKind(name));
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

namespace {

// The least of what the bounds of all devices promise and were seen to cover.
TrainedKind Summary(std::string_view kind, const PairBounds& bounds, const LeftOutErrors& errors) {
  TrainedKind summary{.kind = std::string(kind), .pair_mape = errors.pair, .family_mape = errors.family};
  const auto least = [&bounds](double PairMargin::* field, PairMargin PairBounds::Device::* which) {
    double value = 1;
    for (const PairBounds::Device& device : bounds.devices) value = std::min(value, device.*which.*field);
    return bounds.devices.empty() ? 0 : value;
  };
  summary.pair_promised = least(&PairMargin::promised, &PairBounds::Device::pair);
  summary.pair_observed = least(&PairMargin::observed, &PairBounds::Device::pair);
  summary.family_promised = least(&PairMargin::promised, &PairBounds::Device::family);
  summary.family_observed = least(&PairMargin::observed, &PairBounds::Device::family);
  return summary;
}

}  // namespace

absl::StatusOr<Bundle> TrainInterference(const PairSet& set, const PairTrainOptions& options,
                                         const PairProgress& progress, std::vector<TrainedKind>* report) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  if (!(options.promise >= 0.5 && options.promise <= 0.99))
    return InvalidArgument("promise: expected 0.5 to 0.99, found %g", options.promise);
  HORUS_ASSIGN_OR_RETURN(const auto kinds, PairModelKindsNamed(options.kinds));
  const std::vector<PairRow> rows = RowsOf(set);
  if (rows.size() < kLeastPairRows)
    return InvalidArgument("pairs: expected at least %d measured slowdowns, found %d", kLeastPairRows, rows.size());

  const CalibrationPlan plan{.promise = options.promise};
  const size_t fits = kinds.size() * (1 + FitsToCalibrate(set, rows, plan, options.fit.seed));
  size_t made = 0;
  const auto done = [&] { return !progress || progress(static_cast<double>(++made) / static_cast<double>(fits)); };

  Bundle bundle;
  bundle.data_fingerprint = FingerprintOf(set);
  bundle.library_version = Formatted("%d.%d.%d", HORUS_VERSION_MAJOR, HORUS_VERSION_MINOR, HORUS_VERSION_PATCH);
  WriteHead(HeadOf(set, rows), bundle);
  std::vector<TrainedKind> trained;
  for (const PairModelKind* kind : kinds) {
    HORUS_ASSIGN_OR_RETURN(BundleTarget target, kind->fit(set, rows, options.fit));
    if (!done()) return MakeError(absl::StatusCode::kCancelled, "training was cancelled");
    LeftOutErrors errors;
    HORUS_ASSIGN_OR_RETURN(const PairBounds bounds, CalibratePairs(*kind, set, rows, plan, options.fit, done, &errors));
    WriteBounds(bounds, target);
    bundle.targets.push_back(std::move(target));
    trained.push_back(Summary(kind->name, bounds, errors));
  }
  bundle.training_summary = Formatted("interference of %d jobs on %d devices: %d slowdowns", set.jobs.size(),
                                      set.devices.size(), rows.size());
  if (report != nullptr) *report = std::move(trained);
  return bundle;
}

}  // namespace horus
