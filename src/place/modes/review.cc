// SPDX-License-Identifier: Apache-2.0
// Looks at every shared device, then at the jobs in trouble, the worst first.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/status.h"
#include "place/modes/mover.h"
#include "place/modes/rebalance.h"
#include "place/state/fit.h"

namespace horus {
namespace {

constexpr double kLeastLoss = 1e-6;  // of work: less is rounding

class Reviewer {
 public:
  Reviewer(Placer& placer, const Cluster& cluster, const RebalanceOptions& options)
      : engine_(placer.engine()),
        cluster_(cluster),
        options_(options),
        meter_(cluster, engine_.scorer()),
        mover_(engine_, meter_, cluster) {}

  absl::StatusOr<ReviewResult> Run();

 private:
  absl::Status LookAt(uint32_t node_row, int32_t device, std::vector<TenantReview>& seen);
  // The job as things stand in the ledger.
  absl::StatusOr<TenantReview> Now(JobId job);
  absl::Status Relieve(TenantReview& tenant, Plan& plan);

  Engine& engine_;
  const Cluster& cluster_;
  const RebalanceOptions& options_;
  WorkMeter meter_;
  ResidentMover mover_;
  uint64_t searches_ = 0;
  IdMap<bool> gangs_;                 // that were looked at
  std::vector<Slowdown> of_tenants_;  // scratch
};

// A line for each tenant of a device that several share.
absl::Status Reviewer::LookAt(uint32_t node_row, int32_t device, std::vector<TenantReview>& seen) {
  const Ledger& ledger = engine_.ledger();
  const uint32_t row = ledger.node(node_row).first_device + static_cast<uint32_t>(device);
  const std::span<const LedgerResident> residents = ledger.residents(row);
  if (residents.size() < 2) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(engine_.scorer().Residents(ledger.states(), ledger.state_id(row), of_tenants_));
  const TenantIds& tenants = ledger.state(row).tenants;
  absl::InlinedVector<Slowdown, 4> slowdowns;
  for (const LedgerResident& one : residents)
    slowdowns.push_back(of_tenants_[static_cast<size_t>(std::ranges::find(tenants, one.tenant) - tenants.begin())]);
  const FitLimits& limits = engine_.scorer().limits();
  const bool trial = IsTrial(slowdowns);
  double work = 0;
  for (const Slowdown& slowdown : slowdowns) work += 1 / static_cast<double>(slowdown.estimate);
  for (size_t i = 0; i < residents.size(); ++i) {
    const TenantClass& tenant = ledger.states().tenant(residents[i].tenant);
    const Promise& promise = tenant.promise;
    if (tenant.gpus > 1 && !gangs_.contains(residents[i].job)) gangs_.Insert(residents[i].job, true);
    seen.push_back({.job = residents[i].job,
                    .node = ledger.spec(node_row).id,
                    .device = device,
                    .slowdown = slowdowns[i],
                    .held = SlowdownFor(promise, slowdowns[i], limits),
                    .bound = BoundOf(promise, limits),
                    .pack_work = work,
                    .trial = trial});
  }
  return absl::OkStatus();
}

// The worst first.
bool Before(const TenantReview& a, const TenantReview& b) {
  const auto key = [](const TenantReview& one) {
    return std::tuple(one.broken() ? -one.held / one.bound : 0.0, one.pack_work, one.job,
                      -static_cast<double>(one.slowdown.estimate));
  };
  return key(a) < key(b);
}

absl::StatusOr<TenantReview> Reviewer::Now(JobId job) {
  const JobRow& row = cluster_.rows().jobs[cluster_.rows().RowOfJob(job)];
  std::vector<TenantReview> seen;
  for (const PlacedSlot& slot : row.slots) HORUS_RETURN_IF_ERROR(LookAt(slot.node_row, slot.device, seen));
  TenantReview worst{.job = job, .bound = 1, .pack_work = 1};  // of one who shares no more
  bool shares = false;
  for (const TenantReview& one : seen) {
    if (one.job == job && (!std::exchange(shares, true) || Before(one, worst))) worst = one;
  }
  return worst;
}

absl::Status Reviewer::Relieve(TenantReview& tenant, Plan& plan) {
  HORUS_ASSIGN_OR_RETURN(const TenantReview now, Now(tenant.job));
  if (!now.broken() && !now.loses()) return absl::OkStatus();  // an earlier move relieved it
  tenant.advice = Advice::kRunAlone;
  if (plan.moves.size() >= options_.max_migrations || searches_ >= options_.max_searches) return absl::OkStatus();
  ++searches_;
  const ClusterRows& rows = cluster_.rows();
  const JobSpec& job = rows.RequestOf(rows.jobs[rows.RowOfJob(tenant.job)]);
  const double cost = MostWork(job) * options_.downtime_s / options_.horizon_s;
  const auto accepts = [&](double gain) { return now.broken() || gain - cost > options_.min_gain; };
  HORUS_ASSIGN_OR_RETURN(const ResidentMover::Outcome outcome, mover_.Move(tenant.job, cost, accepts, plan));
  if (outcome.moved) tenant.advice = Advice::kMove;
  return absl::OkStatus();
}

absl::StatusOr<ReviewResult> Reviewer::Run() {
  ReviewResult result;
  HORUS_ASSIGN_OR_RETURN(result.plan, StartPlan(engine_, cluster_, meter_));
  const Ledger& ledger = engine_.ledger();
  std::vector<TenantReview> seen;
  for (const uint32_t row : ledger.order()) {
    HORUS_RETURN_IF_ERROR(engine_.GoOn());
    for (size_t i = 0; i < ledger.spec(row).devices.size(); ++i) {
      HORUS_RETURN_IF_ERROR(LookAt(row, static_cast<int32_t>(i), seen));
    }
  }
  std::ranges::sort(seen, Before);
  IdMap<bool> known;
  result.tenants.reserve(seen.size());
  for (const TenantReview& one : seen) {  // of a gang the device where it is worst
    if (gangs_.contains(one.job)) {
      if (known.contains(one.job)) continue;
      known.Insert(one.job, true);
    }
    result.tenants.push_back(one);
  }
  for (TenantReview& tenant : result.tenants) {
    if (!tenant.broken() && !tenant.loses()) continue;
    HORUS_RETURN_IF_ERROR(engine_.GoOn());
    HORUS_RETURN_IF_ERROR(Relieve(tenant, result.plan));
  }
  mover_.AddSeen(result.plan);
  return result;
}

}  // namespace

bool TenantReview::broken() const { return IsBeyond(held, bound); }
bool TenantReview::loses() const { return pack_work < 1 - kLeastLoss; }

absl::StatusOr<ReviewResult> Review(Placer& placer, const Cluster& cluster, const RebalanceOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckRebalance(options));
  return Reviewer(placer, cluster, options).Run();
}

}  // namespace horus
