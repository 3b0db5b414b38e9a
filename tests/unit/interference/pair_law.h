// SPDX-License-Identifier: Apache-2.0
// Pairs with a known law, and the rules that every learned model keeps.
#ifndef HORUS_TESTS_UNIT_INTERFERENCE_PAIR_LAW_H_
#define HORUS_TESTS_UNIT_INTERFERENCE_PAIR_LAW_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "draw.h"
#include "interference/pair_model.h"
#include "trees/bundle.h"

namespace horus {

inline constexpr size_t kLawDevices = 3;  // the last has no runs

// 1 and a share that grows with how busy the other is and with how long its turns are beside the victim's.
inline double LawOf(const JobPoint& victim, const JobPoint& other, uint32_t device) {
  const double turns = double{other[1]} - double{victim[1]};
  return 1 + (device == 0 ? 1.0 : 1.4) * std::exp(double{other[3]}) * std::exp(0.3 * turns);
}

inline PairSet LawfulSet(size_t jobs = 20) {
  PairSet set;
  for (size_t d = 0; d < kLawDevices; ++d) set.devices.push_back({.gpu = "gpu" + std::to_string(d)});
  for (size_t j = 0; j < jobs; ++j) {
    const auto in = [j](uint64_t column, double low, double high) {
      return low + (high - low) * Draw(16 * j + column);
    };
    const JobPoint point = {static_cast<float>(in(0, 9, 13)), static_cast<float>(in(1, 3, 6)),
                            static_cast<float>(in(2, 5, 8)), static_cast<float>(std::log(in(3, 0.2, 1)))};
    set.jobs.push_back({.name = "job" + std::to_string(j),
                        .family = "family" + std::to_string(j / 2),
                        .profile_id = 1000 + j,
                        .points = std::vector<JobPoint>(kLawDevices, point)});
  }
  for (uint32_t d = 0; d + 1 < kLawDevices; ++d) {
    for (uint32_t a = 0; a < jobs; ++a) {
      for (uint32_t b = a; b < jobs; ++b) {
        const JobPoint &pa = set.jobs[a].points[d], &pb = set.jobs[b].points[d];
        set.runs.push_back({.device = d,
                            .job_a = a,
                            .job_b = b,
                            .campaign = "",
                            .slowdown_a = LawOf(pa, pb, d),
                            .slowdown_b = LawOf(pb, pa, d),
                            .where = "law"});
      }
    }
  }
  return set;
}

inline Tenant TenantOfJob(const PairSet& set, uint32_t job, uint32_t device) {
  return {.profile_id = set.jobs[job].profile_id, .point = set.jobs[job].points[device]};
}

inline float PairOf(const PairModel& model, uint32_t device, const Tenant& victim, const Tenant& other) {
  const std::vector<Tenant> tenants = {victim, other};
  std::vector<float> out(4, -1);
  model.Pairs(device, tenants, out);
  EXPECT_EQ(out[0], -1);  // the diagonal is left alone
  EXPECT_EQ(out[3], -1);
  return out[1];
}

// Rows of which no job is one of every `step`, and the others.
inline std::pair<std::vector<PairRow>, std::vector<PairRow>> WithoutJobs(const PairSet& set, uint32_t step) {
  std::vector<PairRow> kept, left_out;
  for (const PairRow& row : RowsOf(set)) {
    (row.victim % step == 0 || row.other % step == 0 ? left_out : kept).push_back(row);
  }
  return {kept, left_out};
}

// Mean error of jobs left out, as a share of that of the mean of the rows that remain.
inline double ErrorBesideConstant(const PairModelKind& kind, const PairFitOptions& options = {}) {
  const PairSet set = LawfulSet();
  const auto [kept, left_out] = WithoutJobs(set, 5);
  const auto target = kind.fit(set, kept, options);
  EXPECT_TRUE(target.ok()) << target.status();
  if (!target.ok()) return NAN;
  const auto model = kind.read(HeaderOf(set), *target);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return NAN;
  double constant = 0, error = 0, of_constant = 0;
  for (const PairRow& row : kept) constant += row.slowdown / static_cast<double>(kept.size());
  for (const PairRow& row : left_out) {
    const auto found = double{
        PairOf(**model, row.device, TenantOfJob(set, row.victim, row.device), TenantOfJob(set, row.other, row.device))};
    error += std::abs(found - row.slowdown) / row.slowdown;
    of_constant += std::abs(constant - row.slowdown) / row.slowdown;
  }
  return error / of_constant;
}

// The whole target survives a bundle's bytes, and the model read from them answers as before.
inline void ExpectRoundTrip(const PairModelKind& kind, const PairSet& set, const BundleTarget& target) {
  Bundle bundle;
  bundle.targets.push_back(target);
  const auto bytes = WriteBundle(bundle);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto read = ReadBundle({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->targets[0], target);
  const auto before = kind.read(HeaderOf(set), target), after = kind.read(HeaderOf(set), read->targets[0]);
  ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  EXPECT_GT((*after)->bytes_held(), 0u);
  for (uint32_t j = 1; j < set.jobs.size(); ++j) {
    const Tenant a = TenantOfJob(set, j - 1, 0), b = TenantOfJob(set, j, 0);
    EXPECT_EQ(PairOf(**before, 0, a, b), PairOf(**after, 0, a, b));
  }
}

// Every series shortened, lengthened, missing, or with a number that no fit writes.
inline void ExpectDamageRefused(const PairModelKind& kind, const PairSet& set, const BundleTarget& target) {
  const auto refused = [&](const BundleTarget& damaged, const std::string& named) {
    const auto read = kind.read(HeaderOf(set), damaged);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << named;
    EXPECT_NE(read.status().message().find(named), std::string::npos) << read.status();
  };
  for (size_t i = 0; i < target.calibration.size(); ++i) {
    const std::string& name = target.calibration[i].name;
    BundleTarget damaged = target;
    damaged.calibration[i].values.pop_back();
    refused(damaged, name);
    damaged.calibration[i].values.resize(target.calibration[i].values.size() + 1);
    refused(damaged, name);
    damaged.calibration.erase(damaged.calibration.begin() + static_cast<std::ptrdiff_t>(i));
    refused(damaged, name);
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL, 1e30}) {
      damaged = target;
      damaged.calibration[i].values.back() = value;
      refused(damaged, name);
    }
  }
  BundleTarget renamed = target;
  renamed.name = "other";
  refused(renamed, "other");
  BundleTarget relinked = target;
  relinked.link = Link::kIdentity;
  refused(relinked, "link");
  BundleTarget wider = target;
  ++wider.forest.num_features;
  refused(wider, "features");
}

// A damaged but readable file: every number that may be is as large as it may be, and the answer is still a slowdown.
inline void ExpectFiniteWhateverIsRead(const PairModelKind& kind, const PairSet& set, const BundleTarget& target) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  for (const double value : {-1e3, -100.0, -50.0, -1.0, 0.0, 1.0, 50.0, 100.0, 1e3}) {
    for (size_t i = 0; i < target.calibration.size(); ++i) {
      BundleTarget damaged = target;
      for (double& each : damaged.calibration[i].values) each = value;
      const auto model = kind.read(HeaderOf(set), damaged);
      if (!model.ok()) continue;
      for (const float column : {-kHuge, -1.0f, 0.0f, kHuge, std::numeric_limits<float>::infinity()}) {
        const Tenant odd{.profile_id = 1, .point = {column, -column, column, column}};
        for (const uint32_t device : {0u, 2u, kUnseen}) {
          const float found = PairOf(**model, device, odd, TenantOfJob(set, 0, 0));
          EXPECT_TRUE(found >= 1 && found <= kMaxSlowdown) << found;
        }
      }
    }
  }
}

// A device that nobody knows, one without runs, and jobs of which nothing is known.
inline void ExpectAnswersForTheUnknown(const PairModelKind& kind, const PairSet& set, const BundleTarget& target) {
  const auto model = kind.read(HeaderOf(set), target);
  ASSERT_TRUE(model.ok()) << model.status();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tenant known = TenantOfJob(set, 1, 0), unknown{.profile_id = 0, .point = {kNan, kNan, kNan, kNan}};
  for (const uint32_t device : {0u, 1u, 2u, 77u, kUnseen}) {
    for (const auto& [victim, other] : {std::pair{known, unknown}, {unknown, known}, {unknown, unknown}}) {
      const float found = PairOf(**model, device, victim, other);
      EXPECT_TRUE(found >= 1 && found < 10) << found;
    }
  }
  const Tenant a = TenantOfJob(set, 1, 0), b = TenantOfJob(set, 2, 0);
  EXPECT_EQ(PairOf(**model, 2, a, b), PairOf(**model, kUnseen, a, b));
  EXPECT_NE(PairOf(**model, 0, a, b), PairOf(**model, kUnseen, a, b));
  // The law differs by device; what is said of another lies about its devices.
  const float least = std::min(PairOf(**model, 0, a, b), PairOf(**model, 1, a, b));
  const float most = std::max(PairOf(**model, 0, a, b), PairOf(**model, 1, a, b));
  EXPECT_GT(PairOf(**model, kUnseen, a, b), 0.9f * least);
  EXPECT_LT(PairOf(**model, kUnseen, a, b), 1.1f * most);
}

// Jobs and runs that no given row speaks of may be anything.
inline void ExpectOnlyGivenRowsCount(const PairModelKind& kind, const PairFitOptions& options = {}) {
  const PairSet set = LawfulSet();
  const auto [kept, left_out] = WithoutJobs(set, 5);
  PairSet changed = set;
  for (uint32_t j = 0; j < set.jobs.size(); ++j) {
    for (JobPoint& point : changed.jobs[j].points) {
      if (j % 5 == 0) point = {1, 2, 3, -1};
    }
    changed.jobs[j].points[2] = {1, 2, 3, -1};  // the device without runs
  }
  for (PairRun& run : changed.runs) {
    if (run.job_a % 5 == 0 || run.job_b % 5 == 0) run.slowdown_a = run.slowdown_b = 100;
  }
  const auto target = kind.fit(set, kept, options), again = kind.fit(changed, kept, options);
  ASSERT_TRUE(target.ok() && again.ok()) << target.status() << again.status();
  EXPECT_EQ(*target, *again);
}

}  // namespace horus

#endif  // HORUS_TESTS_UNIT_INTERFERENCE_PAIR_LAW_H_
