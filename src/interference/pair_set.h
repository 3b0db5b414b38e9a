// SPDX-License-Identifier: Apache-2.0
// PairSet: measured co-locations of two jobs, from which the learned models are trained.
//
// Enters:  jobs with their demands, devices, and runs of two jobs side by side; from files or a caller's columns.
// Leaves:  a plain value with its check and fingerprint; one row a tenant and run.
// Units:   slowdown = step time shared / step time alone; NaN = not measured.
// Cost:    about 100 bytes a run.        Thread class: value, share freely.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "device/sharing_mode.h"
#include "interference/laws.h"

namespace horus {

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

}  // namespace horus
