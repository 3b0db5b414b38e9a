// SPDX-License-Identifier: Apache-2.0
// muri: jobs whose stages complement each other take turns on host, arithmetic and memory; idle devices first.
#include <algorithm>
#include <array>

#include "lab/policies/rivals.h"
#include "place/policies/tiers.h"

namespace horus {
namespace {

// What a step does one after the other, as far as a demand tells; see docs/policies.md.
constexpr size_t kStages = 3;  // host, arithmetic, device memory
using Stages = std::array<double, kStages>;

// In units of the step's time, or in microseconds where every tenant's is known.
Stages StagesOf(const Demand& demand, bool timed) {
  const double busy = std::clamp(static_cast<double>(demand.gpu_util_pct.estimate) / 100.0, 0.0, 1.0);
  const double memory = std::clamp(static_cast<double>(demand.mem_bw_util_pct.estimate) / 100.0, 0.0, busy);
  const double step = timed ? static_cast<double>(demand.step_time_us.estimate) : 1.0;
  return {(1 - busy) * step, (busy - memory) * step, memory * step};
}

// The time of one round in which each job does one step, the i-th job `offsets[i]` stages ahead.
double RoundTime(std::span<const Stages> jobs, const std::array<size_t, kStages>& offsets) {
  double time = 0;
  for (size_t slot = 0; slot < kStages; ++slot) {
    double longest = 0;
    for (size_t i = 0; i < jobs.size(); ++i) longest = std::max(longest, jobs[i][(slot + offsets[i]) % kStages]);
    time += longest;
  }
  return time;
}

// Share of the round in which a resource is busy, mean over the resources, for the best order: 1 = no gap.
double Efficiency(std::span<const Stages> jobs) {
  double work = 0;
  for (const Stages& job : jobs) work += job[0] + job[1] + job[2];
  if (work <= 0) return 0;
  // Only differences matter, so the first job never moves: two orders for two jobs and for three.
  const double best = std::min(RoundTime(jobs, {0, 1, 2}), RoundTime(jobs, {0, 2, 1}));
  return work / (static_cast<double>(kStages) * best);
}

class MuriPolicy final : public Policy {
 public:
  std::string_view name() const override { return "muri"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = DeviceScore();
    if (candidate.residents() == 0) return absl::OkStatus();
    score.declined = candidate.demands.size() > kStages;  // one job a stage: the rest would wait
    if (score.declined) return absl::OkStatus();
    const bool timed = std::all_of(candidate.demands.begin(), candidate.demands.end(),
                                   [](const Demand* demand) { return demand->step_time_us.estimate > 0; });
    std::array<Stages, kStages> jobs;
    for (size_t i = 0; i < candidate.demands.size(); ++i) jobs[i] = StagesOf(*candidate.demands[i], timed);
    score.cost = TierOf(candidate) + 1 - Efficiency(std::span(jobs).first(candidate.demands.size()));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakeMuriPolicy(const PolicyOptions& /*options*/) { return std::make_unique<MuriPolicy>(); }

}  // namespace horus
