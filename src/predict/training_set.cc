// SPDX-License-Identifier: Apache-2.0
// Checks measured runs before anything is learned from them, and names a set of them.
#include "predict/training_set.h"

#include <bit>
#include <cmath>
#include <optional>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "device/gpu_type.h"
#include "features/feature_row.h"
#include "predict/predictor.h"

namespace horus {
namespace {

constexpr size_t kMostNameBytes = 60;  // with its prefix, a series of a bundle

absl::Status CheckName(const TrainingRow& row, const char* what, const std::string& name) {
  bool printable = !name.empty() && name.size() <= kMostNameBytes;
  for (const char c : name) printable = printable && c >= ' ' && c <= '~';
  if (printable) return absl::OkStatus();
  return InvalidArgument("%s: %s: expected 1 to %d printable ASCII characters, found %s", row.where, what,
                         kMostNameBytes, Quoted(name));
}

absl::Status CheckRow(const TrainingRow& row) {
  HORUS_RETURN_IF_ERROR(CheckName(row, "gpu", row.gpu));
  HORUS_RETURN_IF_ERROR(CheckName(row, "family", row.family));
  HORUS_RETURN_IF_ERROR(CheckName(row, "model", row.model));
  if (row.gpu.find(' ') != std::string::npos) {
    return InvalidArgument("%s: gpu: expected a name without spaces, found %s", row.where, Quoted(row.gpu));
  }
  if (row.features.size() != FeatureCount()) {
    return InvalidArgument("%s: expected %d features, found %d", row.where, FeatureCount(), row.features.size());
  }
  for (size_t i = 0; i < row.features.size(); ++i) {
    if (std::isinf(row.features[i])) {
      return InvalidArgument("%s: feature %d: expected a finite number or NaN, found %g", row.where, i,
                             row.features[i]);
    }
  }
  for (size_t q = 0; q < kQuantityCount; ++q) {
    const QuantityInfo& info = kQuantities[q];
    const double value = row.measured[q];
    const bool zero_allowed = info.link == Link::kExpm1;
    if (std::isnan(value) || (value <= info.most && (value > 0 || (zero_allowed && value == 0)))) continue;
    return InvalidArgument("%s: %s: expected %s 0 to %g %s, found %g", row.where, info.name,
                           zero_allowed ? "from" : "above", info.most, info.unit, value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTrainingSet(const TrainingSet& set) {
  for (const TrainingRow& row : set.rows) HORUS_RETURN_IF_ERROR(CheckRow(row));
  return absl::OkStatus();
}

void Describe(const JobProfile& job, const GpuType* gpu, TrainingRow& row) {
  RowOnGpu on = DescribeOn(job, gpu != nullptr ? *gpu : GpuType());
  row.analytic_upper = on.roofline_upper;
  row.understood = on.understood;
  row.features = std::move(on.row);
  if (gpu != nullptr) return;
  static const size_t peak = *FindFeature("mem_peak");
  for (size_t i = JobFeatureColumns().size(); i < row.features.size(); ++i) {
    if (i != peak) row.features[i] = std::numeric_limits<float>::quiet_NaN();
  }
}

double RooflineOf(Quantity quantity, const std::vector<float>& features) {
  static const std::array<std::optional<size_t>, kQuantityCount> columns = {
      FindFeature("roofline_gpu_util_pct"), FindFeature("roofline_mem_bw_util_pct"), FindFeature("mem_peak"),
      FindFeature("roofline_step_time_us"), FindFeature("roofline_gpu_util_pct"),    std::nullopt};
  const std::optional<size_t> at = columns[static_cast<size_t>(quantity)];
  const double value = at && *at < features.size() ? double{features[*at]} : 0.0;
  return quantity == Quantity::kMemory ? value / kBytesPerMib : value;
}

uint64_t FingerprintOf(const TrainingSet& set) {
  constexpr uint64_t kNoNumber = ~uint64_t{0};  // the bits of no finite value
  uint64_t hash = CombineHash(FeatureSchemaHash(), set.rows.size());
  for (const TrainingRow& row : set.rows) {
    for (const std::string* text : {&row.gpu, &row.family, &row.model}) hash = CombineHash(hash, Hash64(*text));
    if (!row.campaign.empty()) hash = CombineHash(hash, Hash64(row.campaign));
    for (const float value : row.features) {
      hash = CombineHash(hash, std::isnan(value) ? kNoNumber : std::bit_cast<uint32_t>(value));
    }
    for (const double value : row.measured) {
      hash = CombineHash(hash, std::isnan(value) ? kNoNumber : std::bit_cast<uint64_t>(value));
    }
  }
  return hash;
}

}  // namespace horus
