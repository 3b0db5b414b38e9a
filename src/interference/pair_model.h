// SPDX-License-Identifier: Apache-2.0
// Measured co-locations of two jobs, and what every learned interference model is behind the seam: a function of two
// tenants, fitted to them.
//
// Enters:  to fit: rows of a PairSet. To answer: the tenants of one device and which device of the training set it is.
// Leaves:  to fit: a BundleTarget. To answer: for each ordered two tenants the slowdown of the first beside the second.
// Units:   slowdown = step time shared / step time alone.
// Cost:    stated by each kind.           Thread class: a PairModel is immutable, share freely.
#pragma once

#include <limits>
#include <string>

#include "interference/laws.h"
#include "trees/bundle.h"

namespace horus {

// ---- PairSet: from files or a caller's columns; one row a tenant and run.
// Units: slowdown = step time shared / step time alone; NaN = not measured.
// Cost:  about 100 bytes a run.

struct PairDevice {
  std::string gpu;  // canonical type name
  SharingMode mode = SharingMode::kTimeSlice;
  friend bool operator==(const PairDevice&, const PairDevice&) = default;
};

struct PairJob {
  std::string name;              // what runs call it
  std::string family;            // jobs of one family are left out together
  uint64_t profile_id = 0;       // 0 = none: nothing of it is remembered by name
  std::vector<JobPoint> points;  // one a device
};

struct PairRun {
  uint32_t device = 0;  // position in PairSet::devices
  uint32_t job_a = 0;   // positions in PairSet::jobs; may be equal: two copies of one job
  uint32_t job_b = 0;
  std::string campaign;   // runs of one campaign share what their sites had in common; may be empty
  double slowdown_a = 0;  // of job_a beside job_b
  double slowdown_b = 0;  // of job_b beside job_a
  std::string where;      // "pairs.csv: row 12", for errors
};

struct PairSet {
  std::vector<PairDevice> devices;
  std::vector<PairJob> jobs;
  std::vector<PairRun> runs;
};

// What one tenant of a run lost.
struct PairRow {
  uint32_t device = 0, victim = 0, other = 0;  // positions
  uint32_t campaign = 0;                       // equal for runs of one campaign on one device
  uint32_t run = 0;                            // position in PairSet::runs
  double slowdown = 1;
  friend bool operator==(const PairRow&, const PairRow&) = default;
};

// In the order of the runs, job_a's first; two copies of a job give one row, the mean of both; what was not measured
// gives none.
[[nodiscard]] std::vector<PairRow> RowsOf(const PairSet& set);

inline constexpr size_t kMostPairDevices = 64;
inline constexpr size_t kMostPairJobs = 2'048;
inline constexpr size_t kMostPairRuns = 200'000;
// Slower than alone by noise at most so much; and no more than any measurement shows. Both are chosen limits.
inline constexpr double kLeastMeasuredSlowdown = 0.5;
inline constexpr double kMostMeasuredSlowdown = 1'000;

// Positions in range, names and families given and names unique, one family a profile, points of every device finite or
// NaN, slowdowns within the limits or NaN. Errors name the run's place, field, expected and found.
[[nodiscard]] absl::Status CheckPairSet(const PairSet& set);

// Of all that training reads, in order.
[[nodiscard]] uint64_t FingerprintOf(const PairSet& set);

// ---- PairModel.

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
[[nodiscard]] absl::Status CheckPairTarget(const BundleTarget& target, std::string_view name, uint32_t features,
                                           Link link = Link::kExp);

}  // namespace horus
