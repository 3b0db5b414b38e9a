// SPDX-License-Identifier: Apache-2.0
// Devices, jobs and bounds as named series, and back.
#include "interference/pair_bundle.h"

#include <set>
#include <utility>

#include "base/format.h"
#include "base/statistics.h"
#include "base/status.h"
#include "base/text.h"
#include "interference/kernel_model.h"

namespace horus {
namespace {

// ---- The list of learned kinds and how each is read.

// Written before anybody can read it: see RegisterLabPairModels.
constinit std::span<const PairModelReader> lab_readers;

}  // namespace

void RegisterLabPairModels(std::span<const PairModelReader> readers) { lab_readers = readers; }

std::vector<std::string_view> LearnedModelNames() {
  std::vector<std::string_view> names = {kKernelName};
  for (const PairModelReader& reader : lab_readers) names.push_back(reader.name);
  return names;
}

const char* WhereOtherModelsAre() { return lab_readers.empty() ? "; those of papers are in libhorus_lab" : ""; }

absl::StatusOr<std::unique_ptr<const PairModel>> ReadPairModel(const PairHeader& header, const BundleTarget& target) {
  if (target.name == kKernelName) return ReadKernelModel(header, target);
  for (const PairModelReader& reader : lab_readers) {
    if (reader.name == target.name) return reader.read(header, target);
  }
  return MakeError(absl::StatusCode::kNotFound, "interference model: expected one of %s, found %s%s",
                   Listed(LearnedModelNames()), Quoted(target.name), WhereOtherModelsAre());
}

namespace {

constexpr char kDevicePrefix[] =
    "device:";                          // then the GPU type, ':' and the mode; values: positions of the jobs seen there
constexpr double kHalf = 4294967296.0;  // a profile id as two whole numbers: float64 holds 53 bits
constexpr double kMostMargin = 100;
constexpr size_t kMarginValues = 3;
constexpr double kBoundRounding = 1e-9;
constexpr char kStrangersSeries[] = "bounds_strangers";
constexpr char kScaleSeries[] = "bounds_scale";  // the probability of the margins, and the level in common

absl::Status CorruptBundle(const std::string& where, const std::string& expected, const std::string& found) {
  return MakeError(absl::StatusCode::kDataLoss, "%s: expected %s, found %s", where, expected, found);
}

bool Whole(double value, double limit) { return value >= 0 && value < limit && value == std::floor(value); }

absl::StatusOr<PairDevice> ReadDevice(const std::string& name) {
  const size_t colon = name.rfind(':');
  const size_t start = sizeof(kDevicePrefix) - 1;
  if (colon <= start) return CorruptBundle("series " + Quoted(name), "device:GPU:MODE", "no such name");
  PairDevice device{.gpu = name.substr(start, colon - start)};
  const absl::StatusOr<SharingMode> mode = ParseSharingMode(name.substr(colon + 1));
  if (!mode.ok())
    return CorruptBundle("series " + Quoted(name), "a sharing mode at its end", Quoted(name.substr(colon + 1)));
  device.mode = *mode;
  return device;
}

absl::Status AddDevice(const NamedSeries& series, PairBundleHead& head) {
  HORUS_ASSIGN_OR_RETURN(PairDevice device, ReadDevice(series.name));
  if (head.header.DeviceOf(device) != kUnseen)
    return CorruptBundle("series " + Quoted(series.name), "one of its kind", "two");
  std::vector<uint32_t>& seen = head.seen.emplace_back();
  for (const double value : series.values) {
    if (!Whole(value, static_cast<double>(head.header.profiles.size())) || (!seen.empty() && value <= seen.back()))
      return CorruptBundle("series " + Quoted(series.name), "ascending positions of jobs", Formatted("%g", value));
    seen.push_back(static_cast<uint32_t>(value));
  }
  head.header.devices.push_back(std::move(device));
  return absl::OkStatus();
}

absl::StatusOr<PairMargin> ReadMargin(const BundleTarget& target, const std::vector<double>& values, size_t at) {
  const PairMargin margin{values[at], values[at + 1], values[at + 2]};
  const auto share = [](double value) { return value >= 0 && value <= 1; };
  if (!(margin.margin >= 0 && margin.margin <= kMostMargin) || !share(margin.promised) || !share(margin.observed)) {
    return CorruptBundle("target " + target.name + ": series bounds", "a margin from 0 to 100 and two shares",
                         Formatted("%g, %g, %g", margin.margin, margin.promised, margin.observed));
  }
  return margin;
}

// Bundles of 24 Nov 2026 and before kept each margin at the probability that it promised, and told no level apart.
void ConvertOld(PairBounds& bounds) {
  const auto convert = [](PairMargin& margin) {
    const double told = std::clamp(margin.promised, kLeastProbability, kMostProbability);
    // Bounded: at most kMostMargin, and told above kLeastProbability.
    if (told > kLeastProbability) margin.margin *= kDeviationsToUpper / DeviationsAt(told);
    margin.margin = std::min(margin.margin, kMostMargin);
  };
  for (PairBounds::Device& device : bounds.devices) {
    convert(device.pair);
    convert(device.family);
    device.family.margin = std::max(device.family.margin, device.pair.margin);
    device.strangers = device.family;
  }
  convert(bounds.unseen);
  for (const PairBounds::Device& device : bounds.devices)
    bounds.unseen.margin = std::max(bounds.unseen.margin, device.family.margin);
  bounds.level = std::min(kLevelError, bounds.unseen.margin / kDeviationsToUpper);
}

absl::Status ReadScale(const BundleTarget& target, PairBounds& bounds) {
  const NamedSeries *scale = FindSeries(target.calibration, kScaleSeries),
                    *strangers = FindSeries(target.calibration, kStrangersSeries);
  if (scale == nullptr && strangers == nullptr) {
    ConvertOld(bounds);
    return absl::OkStatus();
  }
  // Bounded: at most kMostPairDevices devices.
  const size_t expected = kMarginValues * bounds.devices.size();
  if (scale == nullptr || strangers == nullptr || strangers->values.size() != expected) {
    return CorruptBundle("target " + target.name + ": series bounds_strangers and bounds_scale",
                         Formatted("%d values and 2", expected), "others");
  }
  for (size_t d = 0; d < bounds.devices.size(); ++d) {
    // Bounded: at most kMostPairDevices devices.
    HORUS_ASSIGN_OR_RETURN(bounds.devices[d].strangers, ReadMargin(target, strangers->values, kMarginValues * d));
  }
  if (scale->values.size() != 2 || scale->values[0] != kUpperProbability ||
      !(scale->values[1] >= 0 && scale->values[1] <= bounds.unseen.margin / kDeviationsToUpper + kBoundRounding)) {
    return CorruptBundle("target " + target.name + ": series bounds_scale",
                         Formatted("%g and a level within the margin of an unseen type", kUpperProbability), "others");
  }
  bounds.level = scale->values[1];
  return absl::OkStatus();
}

}  // namespace

PairBundleHead HeadOf(const PairSet& set, std::span<const PairRow> rows) {
  std::vector<std::set<uint32_t>> seen(set.devices.size());
  for (const PairRow& row : rows) {
    seen[row.device].insert(row.victim);
    seen[row.device].insert(row.other);
  }
  PairBundleHead head{.header = HeaderOf(set), .seen = {}};
  for (const auto& jobs : seen) head.seen.emplace_back(jobs.begin(), jobs.end());
  return head;
}

void WriteHead(const PairBundleHead& head, Bundle& bundle) {
  bundle.schema_hash = PointSchemaHash();
  NamedSeries profiles{.name = "profiles", .values = {}};
  for (const uint64_t profile : head.header.profiles) {
    profiles.values.push_back(static_cast<double>(profile >> 32));
    profiles.values.push_back(static_cast<double>(profile & 0xffffffffu));
  }
  bundle.series.push_back(std::move(profiles));
  for (size_t d = 0; d < head.header.devices.size(); ++d) {
    const PairDevice& device = head.header.devices[d];
    bundle.series.push_back({kDevicePrefix + device.gpu + ":" + std::string(SharingModeName(device.mode)),
                             {head.seen[d].begin(), head.seen[d].end()}});
  }
}

void WriteBounds(const PairBounds& bounds, BundleTarget& target) {
  NamedSeries series{.name = "bounds", .values = {}}, strangers{.name = kStrangersSeries, .values = {}};
  const auto add = [](const PairMargin& margin, NamedSeries& to) {
    to.values.insert(to.values.end(), {margin.margin, margin.promised, margin.observed});
  };
  for (const PairBounds::Device& device : bounds.devices) {
    add(device.pair, series);
    add(device.family, series);
    add(device.strangers, strangers);
  }
  add(bounds.unseen, series);
  target.calibration.push_back(std::move(series));
  target.calibration.push_back(std::move(strangers));
  target.calibration.push_back({kScaleSeries, {kUpperProbability, bounds.level}});
}

absl::StatusOr<PairBundleHead> ReadHead(const Bundle& bundle) {
  if (bundle.schema_hash != PointSchemaHash()) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "bundle: expected interference models (schema %016x), found schema %016x", PointSchemaHash(),
                     bundle.schema_hash);
  }
  PairBundleHead head;
  const NamedSeries* profiles = FindSeries(bundle.series, "profiles");
  if (profiles == nullptr || profiles->values.size() % 2 != 0 || profiles->values.size() > 2 * kMostPairJobs) {
    return CorruptBundle("series profiles", Formatted("two values a job, at most %d jobs", kMostPairJobs),
                         profiles == nullptr ? "none" : Formatted("%d values", profiles->values.size()));
  }
  for (size_t i = 0; i < profiles->values.size(); i += 2) {
    const double high = profiles->values[i], low = profiles->values[i + 1];
    if (!Whole(high, kHalf) || !Whole(low, kHalf))
      return CorruptBundle("series profiles", "whole 32-bit numbers", "others");
    head.header.profiles.push_back(static_cast<uint64_t>(high) << 32 | static_cast<uint64_t>(low));
  }
  for (const NamedSeries& series : bundle.series) {
    if (series.name.starts_with(kDevicePrefix)) HORUS_RETURN_IF_ERROR(AddDevice(series, head));
  }
  if (head.header.devices.empty() || head.header.devices.size() > kMostPairDevices) {
    return CorruptBundle("bundle", Formatted("1 to %d devices", kMostPairDevices),
                         Formatted("%d", head.header.devices.size()));
  }
  return head;
}

absl::StatusOr<PairBounds> ReadBounds(const PairHeader& header, const BundleTarget& target) {
  const NamedSeries* series = FindSeries(target.calibration, "bounds");
  const size_t expected = kMarginValues * (2 * header.devices.size() + 1);
  if (series == nullptr || series->values.size() != expected) {
    return CorruptBundle("target " + target.name + ": series bounds", Formatted("%d values", expected),
                         series == nullptr ? "none" : Formatted("%d", series->values.size()));
  }
  PairBounds bounds;
  for (size_t d = 0; d < header.devices.size(); ++d) {
    PairBounds::Device& device = bounds.devices.emplace_back();
    // Bounded: at most kMostPairDevices devices.
    HORUS_ASSIGN_OR_RETURN(device.pair, ReadMargin(target, series->values, 2 * d * kMarginValues));
    // Bounded: at most kMostPairDevices devices.
    HORUS_ASSIGN_OR_RETURN(device.family, ReadMargin(target, series->values, (2 * d + 1) * kMarginValues));
  }
  HORUS_ASSIGN_OR_RETURN(bounds.unseen, ReadMargin(target, series->values, expected - kMarginValues));
  HORUS_RETURN_IF_ERROR(ReadScale(target, bounds));
  return bounds;
}

}  // namespace horus
