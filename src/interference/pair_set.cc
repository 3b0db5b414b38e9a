// SPDX-License-Identifier: Apache-2.0
// The rules of a PairSet, its rows and its fingerprint.
#include "interference/pair_set.h"

#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

absl::Status CheckSize(const char* what, size_t found, size_t most) {
  if (found <= most) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "%s: expected at most %d, found %d", what, most, found);
}

absl::Status CheckJob(const PairJob& job, size_t index, size_t devices) {
  if (job.name.empty() || job.family.empty()) {
    return InvalidArgument("jobs[%d]: expected a name and a family, found %s and %s", index, Quoted(job.name),
                           Quoted(job.family));
  }
  if (job.points.size() != devices) {
    return InvalidArgument("jobs[%d] (%s): expected %d points, one a device, found %d", index, Quoted(job.name),
                           devices, job.points.size());
  }
  for (const JobPoint& point : job.points) {
    for (size_t column = 0; column < kPointColumns; ++column) {
      if (!std::isinf(point[column])) continue;
      return InvalidArgument("jobs[%d] (%s): %s: expected a finite number or NaN, found %g", index, Quoted(job.name),
                             std::string(NameOf(static_cast<PointColumn>(column))), point[column]);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlowdown(const PairRun& run, const char* field, double value) {
  if (std::isnan(value) || (value >= kLeastMeasuredSlowdown && value <= kMostMeasuredSlowdown)) return absl::OkStatus();
  return InvalidArgument("%s: %s: expected a ratio from %g to %g, found %g", run.where, field, kLeastMeasuredSlowdown,
                         kMostMeasuredSlowdown, value);
}

}  // namespace

absl::Status CheckPairSet(const PairSet& set) {
  HORUS_RETURN_IF_ERROR(CheckSize("devices", set.devices.size(), kMostPairDevices));
  HORUS_RETURN_IF_ERROR(CheckSize("jobs", set.jobs.size(), kMostPairJobs));
  HORUS_RETURN_IF_ERROR(CheckSize("runs", set.runs.size(), kMostPairRuns));
  std::set<std::string_view> names;
  std::map<uint64_t, const PairJob*> by_profile;
  for (size_t i = 0; i < set.jobs.size(); ++i) {
    HORUS_RETURN_IF_ERROR(CheckJob(set.jobs[i], i, set.devices.size()));
    if (!names.insert(set.jobs[i].name).second) {
      return InvalidArgument("jobs[%d]: expected a name of its own, found %s twice", i, Quoted(set.jobs[i].name));
    }
    if (set.jobs[i].profile_id == 0) continue;
    const auto [at, fresh] = by_profile.emplace(set.jobs[i].profile_id, &set.jobs[i]);
    if (!fresh && at->second->family != set.jobs[i].family) {
      return InvalidArgument("jobs[%d]: expected the family %s of %s, which is the same job (graph and run), found %s",
                             i, Quoted(at->second->family), Quoted(at->second->name), Quoted(set.jobs[i].family));
    }
  }
  for (const PairRun& run : set.runs) {
    if (run.device >= set.devices.size() || run.job_a >= set.jobs.size() || run.job_b >= set.jobs.size()) {
      return InvalidArgument("%s: expected positions below %d devices and %d jobs, found device %d, jobs %d and %d",
                             run.where, set.devices.size(), set.jobs.size(), run.device, run.job_a, run.job_b);
    }
    HORUS_RETURN_IF_ERROR(CheckSlowdown(run, "slowdown_a", run.slowdown_a));
    HORUS_RETURN_IF_ERROR(CheckSlowdown(run, "slowdown_b", run.slowdown_b));
  }
  return absl::OkStatus();
}

std::vector<PairRow> RowsOf(const PairSet& set) {
  std::vector<PairRow> rows;
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> campaigns;
  for (uint32_t i = 0; i < set.runs.size(); ++i) {
    const PairRun& run = set.runs[i];
    const auto next = static_cast<uint32_t>(campaigns.size());
    const uint32_t campaign =
        campaigns.emplace(std::pair{run.device, std::string_view(run.campaign)}, next).first->second;
    const auto add = [&](uint32_t victim, uint32_t other, double slowdown) {
      if (std::isnan(slowdown)) return;
      rows.push_back({.device = run.device,
                      .victim = victim,
                      .other = other,
                      .campaign = campaign,
                      .run = i,
                      .slowdown = slowdown});
    };
    if (run.job_a == run.job_b) {
      const double mean = (run.slowdown_a + run.slowdown_b) / 2;
      add(run.job_a, run.job_b,
          !std::isnan(mean)            ? mean
          : std::isnan(run.slowdown_a) ? run.slowdown_b
                                       : run.slowdown_a);
    } else {
      add(run.job_a, run.job_b, run.slowdown_a);
      add(run.job_b, run.job_a, run.slowdown_b);
    }
  }
  return rows;
}

uint64_t FingerprintOf(const PairSet& set) {
  uint64_t hash = CombineHash(CombineHash(set.devices.size(), set.jobs.size()), set.runs.size());
  for (const PairDevice& device : set.devices) {
    hash = CombineHash(CombineHash(hash, Hash64(device.gpu)), static_cast<uint64_t>(device.mode));
  }
  for (const PairJob& job : set.jobs) {
    hash = CombineHash(CombineHash(CombineHash(hash, Hash64(job.name)), Hash64(job.family)), job.profile_id);
    for (const JobPoint& point : job.points) {
      for (const float value : point) hash = CombineHash(hash, std::bit_cast<uint32_t>(value));
    }
  }
  for (const PairRun& run : set.runs) {
    hash = CombineHash(CombineHash(CombineHash(hash, run.device), run.job_a), run.job_b);
    hash = CombineHash(CombineHash(hash, Hash64(run.campaign)), std::bit_cast<uint64_t>(run.slowdown_a));
    hash = CombineHash(hash, std::bit_cast<uint64_t>(run.slowdown_b));
  }
  return hash;
}

}  // namespace horus
