// SPDX-License-Identifier: Apache-2.0
// The model bundle: one file with a manifest and the trained forest of every target.
//
// Enters:  bytes of a bundle, or a Bundle to write.
// Leaves:  a Bundle (a plain value), or bytes; write then read gives an equal value, read then write the same bytes.
// Units:   each target's name carries its unit; calibration numbers are what the writer says they are.
// Cost:    linear in the bytes; memory at most 4 times the bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trees/forest.h"

namespace horus {

// From a margin m to the target's own unit. The numbers are stored in bundles: append only.
enum class Link : uint32_t {
  kIdentity = 0,  // m
  kExp = 1,       // exp(m)
  kExpm1 = 2,     // exp(m) - 1
};
inline constexpr uint32_t kLinkCount = 3;

[[nodiscard]] double ApplyLink(Link link, double margin);

// Numbers under a name: calibration quantiles, centres and scales of the training data, ...
// Infinite values are allowed (a bound that promises nothing), NaN is not.
struct NamedSeries {
  std::string name;
  std::vector<double> values;
  friend bool operator==(const NamedSeries&, const NamedSeries&) = default;
};

struct BundleTarget {
  std::string name;  // with its unit, as "step_time_us"
  Link link = Link::kIdentity;
  std::vector<NamedSeries> calibration;
  ForestData forest;
  friend bool operator==(const BundleTarget&, const BundleTarget&) = default;
};

struct Bundle {
  uint64_t schema_hash = 0;       // of the feature row that the forests read
  uint64_t data_fingerprint = 0;  // of the training rows; the rows themselves are never in a bundle
  std::string library_version;    // of the writer
  std::string training_summary;   // text for people
  std::vector<NamedSeries> series;
  std::vector<BundleTarget> targets;

  // nullptr when absent.
  [[nodiscard]] const BundleTarget* FindTarget(std::string_view name) const;
  friend bool operator==(const Bundle&, const Bundle&) = default;
};

// nullptr when absent.
[[nodiscard]] const NamedSeries* FindSeries(std::span<const NamedSeries> series, std::string_view name);

inline constexpr uint32_t kBundleFormatVersion = 1;

// Above these a bundle is refused with kResourceExhausted.
struct BundleLimits {
  uint64_t max_bytes = uint64_t{256} << 20;
  uint32_t max_targets = 64;
  uint32_t max_series = 256;            // of the bundle, and of each target
  uint32_t max_series_values = 65'536;  // of each series
  uint32_t max_name_bytes = 64;
  uint32_t max_text_bytes = 65'536;
  ForestLimits forest;  // of each target
};

// `expected_schema` is the hash of the caller's feature row; a bundle of another schema is refused with
// kFailedPrecondition. A newer format is kOutOfRange, damage is kDataLoss.
[[nodiscard]] absl::StatusOr<Bundle> ReadBundle(std::span<const uint8_t> bytes, const BundleLimits& limits = {},
                                                std::optional<uint64_t> expected_schema = std::nullopt);

// Refuses what ReadBundle would refuse.
[[nodiscard]] absl::StatusOr<std::string> WriteBundle(const Bundle& bundle, const BundleLimits& limits = {});

}  // namespace horus
