// SPDX-License-Identifier: Apache-2.0
// What every learned interference model is behind the seam: a function of two tenants, fitted to measured pairs.
//
// Enters:  to fit: rows of a PairSet. To answer: the tenants of one device and which device of the training set it is.
// Leaves:  to fit: a BundleTarget. To answer: for each ordered two tenants the slowdown of the first beside the second.
// Units:   slowdown = step time shared / step time alone.
// Cost:    stated by each kind.           Thread class: a PairModel is immutable, share freely.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "interference/laws.h"
#include "interference/pair_set.h"
#include "trees/bundle.h"

namespace horus {

// Who and where a bundle was trained on: positions in these lists are what models know devices and jobs by.
struct PairHeader {
  std::vector<PairDevice> devices;
  std::vector<uint64_t> profiles;  // of PairSet::jobs; 0 = none

  // The position, or kUnseen.
  [[nodiscard]] uint32_t DeviceOf(const PairDevice& device) const;
  friend bool operator==(const PairHeader&, const PairHeader&) = default;
};
inline constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();
[[nodiscard]] PairHeader HeaderOf(const PairSet& set);

class PairModel {
 public:
  virtual ~PairModel() = default;

  // out[i * n + j] becomes the slowdown of tenant i beside tenant j, for n = tenants.size() and i != j; what lies on
  // the diagonal is left alone. Finite and at least 1. `device` is a position in the header's list or kUnseen. Pure.
  virtual void Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const = 0;

  // The newcomer beside each of `others`, as Pairs says of the two: mine[i] becomes its slowdown, theirs[i] that of
  // others[i].
  virtual void Beside(uint32_t device, const Tenant& newcomer, std::span<const Tenant> others, std::span<float> mine,
                      std::span<float> theirs) const {
    for (size_t i = 0; i < others.size(); ++i) {
      std::array<float, 4> out;
      Pairs(device, std::array<Tenant, 2>{newcomer, others[i]}, out);
      mine[i] = out[1];
      theirs[i] = out[2];
    }
  }

  // Lower bounds of z (laws.h), up to rounding: a newcomer suffers from a resident no less than
  // LeastOf(newcomer).suffers + PartOf(resident).inflicts, and the resident from it no less than the other two. By
  // default nothing is known.
  struct Parts {
    double suffers = -std::numeric_limits<double>::infinity();
    double inflicts = -std::numeric_limits<double>::infinity();
  };
  [[nodiscard]] virtual Parts LeastOf(uint32_t /*device*/, const Tenant& /*newcomer*/) const { return {}; }
  [[nodiscard]] virtual Parts PartOf(uint32_t /*device*/, const Tenant& /*resident*/) const { return {}; }

  [[nodiscard]] virtual size_t bytes_held() const = 0;
};

struct PairFitOptions {
  uint32_t seed = 0;
  std::string library_path;  // of libhorus_train.so; empty: found as trees/trainer.h says
};

// One kind of learned model. `fit` reads jobs and devices of the set and those of its rows that it is given (at least
// one); equal input gives equal targets. `read` refuses (kDataLoss) what `fit` cannot have written.
struct PairModelKind {
  std::string_view name;  // of the target in a bundle too
  absl::StatusOr<BundleTarget> (*fit)(const PairSet& set, std::span<const PairRow> rows, const PairFitOptions& options);
  absl::StatusOr<std::unique_ptr<const PairModel>> (*read)(const PairHeader& header, const BundleTarget& target);
};

// ---- What the learned models share: their scale of slowdown, standardised points, the law they start from, stored
// series.
// Cost: nanoseconds a point.

using Columns = std::array<double, kPointColumns>;

// Mean and standard deviation of each column over the points that took part in training.
struct PointScale {
  Columns mean = {}, spread = {};

  // What is unknown is the mean; beyond kFarthest standard deviations, where few jobs are, none says more than there.
  [[nodiscard]] Columns Standardise(const JobPoint& point) const;

  // TheoryOf, where what is unknown is the mean.
  [[nodiscard]] double Theory(const JobPoint& victim, const JobPoint& other) const;
};
inline constexpr double kFarthest = 2;

// Whether device `d` or job `j` has a row: what has none must not be learned from.
struct Presence {
  std::vector<bool> devices, jobs;
};

[[nodiscard]] Presence PresenceOf(const PairSet& set, std::span<const PairRow> rows);
[[nodiscard]] PointScale ScaleOf(const PairSet& set, std::span<const PairRow> rows);
// Of the rows' margins over Theory, of each device and of all; a device without rows has that of all.
struct MeanResidual {
  std::vector<double> devices;
  double all = 0;
};
[[nodiscard]] MeanResidual MeanResidualOf(const PairSet& set, std::span<const PairRow> rows, const PointScale& scale);

// The margin over Theory of each row.
[[nodiscard]] std::vector<double> ResidualsOf(const PairSet& set, std::span<const PairRow> rows,
                                              const PointScale& scale);

void AddScale(const PointScale& scale, BundleTarget& target);
[[nodiscard]] absl::StatusOr<PointScale> ReadScale(const BundleTarget& target);

// A series of `count` numbers of magnitude up to `most`; else kDataLoss.
[[nodiscard]] absl::StatusOr<std::span<const double>> ReadSeries(const BundleTarget& target, std::string_view name,
                                                                 size_t count, double most);
// Name and link of a target that a learned model wrote, and how many features its trees read (0: it has no trees).
[[nodiscard]] absl::Status CheckPairTarget(const BundleTarget& target, std::string_view name, uint32_t features);

}  // namespace horus
