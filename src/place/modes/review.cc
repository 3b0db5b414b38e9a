// SPDX-License-Identifier: Apache-2.0
// Looks at every shared device, then at the jobs in trouble, the worst first.
#include "place/modes/review.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "place/engine.h"
#include "place/fit.h"
#include "place/modes/moves.h"
#include "place/work.h"

namespace horus {
namespace {

constexpr double kLeastLoss = 1e-6;  // of work: less is rounding

class Reviewer {
 public:
  Reviewer(Placer& placer, const Cluster& cluster, const RebalanceOptions& options)
      : engine_(placer),
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

  Engine engine_;
  const Cluster& cluster_;
  const RebalanceOptions& options_;
  WorkMeter meter_;
  ResidentMover mover_;
  uint64_t searches_ = 0;
};

// A line for each tenant of a device that several share.
absl::Status Reviewer::LookAt(uint32_t node_row, int32_t device, std::vector<TenantReview>& seen) {
  const Ledger& ledger = engine_.ledger();
  const uint32_t row = ledger.node(node_row).first_device + static_cast<uint32_t>(device);
  const std::span<const LedgerResident> residents = ledger.residents(row);
  if (residents.size() < 2) return absl::OkStatus();
  std::vector<const Demand*> demands;
  for (const LedgerResident& one : residents) demands.push_back(&ledger.states().tenant(one.tenant).demand);
  std::vector<Slowdown> slowdowns(demands.size());
  const FitLimits& limits = engine_.scorer().limits();
  HORUS_RETURN_IF_ERROR(engine_.scorer().model().Predict(ContextOf(ledger.state(row)), demands, slowdowns));
  double work = 0;
  for (const Slowdown& slowdown : slowdowns) work += 1 / static_cast<double>(slowdown.estimate);
  for (size_t i = 0; i < residents.size(); ++i) {
    const Promise& promise = ledger.states().tenant(residents[i].tenant).promise;
    seen.push_back({.job = residents[i].job,
                    .node = ledger.spec(node_row).id,
                    .device = device,
                    .slowdown = slowdowns[i],
                    .held = SlowdownFor(promise, slowdowns[i], limits),
                    .bound = BoundOf(promise, limits),
                    .pack_work = work,
                    .trial = IsTrial(slowdowns)});
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
  const double cost = WorkWeight(job) * GpuCount(job) * options_.downtime_s / options_.horizon_s;
  const auto accepts = [&](double gain) { return now.broken() || gain - cost > options_.min_gain; };
  HORUS_ASSIGN_OR_RETURN(const ResidentMover::Outcome outcome, mover_.Move(tenant.job, cost, accepts, plan));
  if (outcome.moved) tenant.advice = Advice::kMove;
  return absl::OkStatus();
}

absl::StatusOr<ReviewResult> Reviewer::Run() {
  HORUS_RETURN_IF_ERROR(engine_.Start(cluster_));
  const Ledger& ledger = engine_.ledger();
  ReviewResult result;
  result.plan.model_epoch = engine_.scorer().model().epoch();
  result.plan.has_work = true;
  HORUS_RETURN_IF_ERROR(meter_.OfAll(ledger, result.plan.work_before));
  result.plan.work_after = result.plan.work_before;
  std::vector<TenantReview> seen;
  for (const uint32_t row : ledger.order()) {
    HORUS_RETURN_IF_ERROR(engine_.GoOn());
    for (size_t i = 0; i < ledger.spec(row).devices.size(); ++i) {
      HORUS_RETURN_IF_ERROR(LookAt(row, static_cast<int32_t>(i), seen));
    }
  }
  std::sort(seen.begin(), seen.end(), Before);
  IdMap<bool> known;
  for (const TenantReview& one : seen) {  // of a gang the device where it is worst
    if (known.contains(one.job)) continue;
    known.Insert(one.job, true);
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
