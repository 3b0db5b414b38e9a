// SPDX-License-Identifier: Apache-2.0
// The rules that every bundle keeps.
#include "trees/bundle_check.h"

#include <cmath>

#include "base/text.h"

namespace horus {
namespace {

absl::Status CheckSize(std::string_view what, size_t size, size_t limit, std::string_view unit) {
  if (size <= limit) return absl::OkStatus();
  return ResourceExhausted("bundle: %s: %d %s, the limit is %d", what, size, unit, limit);
}

absl::Status CheckName(std::string_view what, std::string_view name, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckSize(what, name.size(), limits.max_name_bytes, "bytes of name"));
  bool printable = !name.empty();
  for (const char c : name) printable = printable && c > ' ' && c <= '~';
  if (printable) return absl::OkStatus();
  return DataLoss("bundle: %s: expected a name of printable ASCII without spaces, found %s", what, Quoted(name));
}

absl::Status CheckSeries(std::string_view owner, std::span<const NamedSeries> all, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckSize(owner, all.size(), limits.max_series, "series"));
  for (const NamedSeries& series : all) {
    HORUS_RETURN_IF_ERROR(CheckName(owner, series.name, limits));
    HORUS_RETURN_IF_ERROR(CheckSize(series.name, series.values.size(), limits.max_series_values, "values"));
    if (FindSeries(all, series.name) != &series) {
      return DataLoss("bundle: %s: the series %s occurs twice", owner, Quoted(series.name));
    }
    for (size_t i = 0; i < series.values.size(); ++i) {
      if (!std::isnan(series.values[i])) continue;
      return DataLoss("bundle: %s: series %s value %d: expected a number, found NaN", owner, Quoted(series.name), i);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTarget(const Bundle& bundle, const BundleTarget& target, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckName("target", target.name, limits));
  if (bundle.FindTarget(target.name) != &target) {
    return DataLoss("bundle: the target %s occurs twice", Quoted(target.name));
  }
  if (static_cast<uint32_t>(target.link) >= kLinkCount) {
    return DataLoss("bundle: target %s: expected a link below %d, found %d", Quoted(target.name), kLinkCount,
                    static_cast<uint32_t>(target.link));
  }
  HORUS_RETURN_IF_ERROR(CheckSeries(target.name, target.calibration, limits));
  if (const absl::Status status = ValidateForest(target.forest, limits.forest); !status.ok()) {
    return MakeError(status.code(), "bundle: target %s: %s", Quoted(target.name), std::string(status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBundle(const Bundle& bundle, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckSize("manifest", bundle.targets.size(), limits.max_targets, "targets"));
  HORUS_RETURN_IF_ERROR(CheckSize("library version", bundle.library_version.size(), limits.max_name_bytes, "bytes"));
  HORUS_RETURN_IF_ERROR(CheckSize("training summary", bundle.training_summary.size(), limits.max_text_bytes, "bytes"));
  HORUS_RETURN_IF_ERROR(CheckSeries("manifest", bundle.series, limits));
  for (const BundleTarget& target : bundle.targets) HORUS_RETURN_IF_ERROR(CheckTarget(bundle, target, limits));
  return absl::OkStatus();
}

}  // namespace horus
