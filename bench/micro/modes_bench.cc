// SPDX-License-Identifier: Apache-2.0
// modes: time of a batch, of rebalancing, of a what-if, of a preemption, of a review and of snapshots in a busy
// cluster.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "bench/micro/busy_cluster.h"
#include "bench/must.h"
#include "bench/rows.h"
#include "place/modes/batch.h"
#include "place/modes/preempt.h"
#include "place/modes/rebalance.h"
#include "place/modes/what_if.h"
#include "place/state/snapshot.h"

namespace horus::bench {
namespace {

constexpr double kBatchAimS = 3, kReviewAimS = 0.05, kSnapshotAimS = 0.3;

template <typename Run>
auto Timed(const Run& run, double* seconds) {
  const double start = NowUs();
  auto value = Must(run());
  *seconds = 1e-6 * (NowUs() - start);
  return value;
}

void Measure(const Options& options, std::vector<Row>* rows) {
  const int32_t gpus = options.smoke ? 400 : 100'000;
  const size_t batch_size = options.smoke ? 80 : 10'000;
  const std::string size = options.smoke ? "_smoke" : "_100k";
  const Shape shape{.gpus = gpus};
  const Setting setting = MakeSetting(shape);
  const auto placer = MakePlacer(shape);
  const std::string protocol =
      absl::StrFormat("%d GPUs, 80 %% of the slots taken, 200 profiles, model %s", gpus, shape.model);
  std::vector<JobSpec> jobs;
  for (size_t i = 0; i < batch_size; ++i) jobs.push_back(MakeJob(setting.types, (JobId{1} << 40) + i, kProfiles));
  double seconds = 0;
  double cold = 0;
  const Plan first = Timed([&] { return placer->MakePlan(setting.cluster, jobs); }, &cold);
  const Plan one = Timed([&] { return placer->MakePlan(setting.cluster, jobs); }, &seconds);
  const Plan batch = Timed([&] { return PlanBatch(*placer, setting.cluster, jobs); }, &cold);
  rows->push_back(
      {"batch_s" + size, cold, "s", kBatchAimS, true,
       absl::StrFormat("%.3g s one by one; work %.7g against %.7g", seconds, batch.work_after, batch.work_before),
       absl::StrFormat("%d jobs, %s", batch_size, protocol)});
  const RebalanceOptions moves = {.max_migrations = 16};
  const Plan rebalanced = Timed([&] { return Rebalance(*placer, setting.cluster, moves); }, &seconds);
  rows->push_back({"rebalance_s" + size, seconds, "s", 0, true,
                   absl::StrFormat("%d migrations gain %.4g", rebalanced.moves.size(),
                                   rebalanced.work_after - rebalanced.work_before),
                   "at most 16 migrations of any job, " + protocol});
  // Every tenant is looked at; those in trouble get no search.
  const RebalanceOptions looks = {.max_searches = 0};
  (void)Timed([&] { return Review(*placer, setting.cluster, looks); }, &cold);
  const ReviewResult review = Timed([&] { return Review(*placer, setting.cluster, looks); }, &seconds);
  rows->push_back({"review_s" + size, seconds, "s", kReviewAimS, true, absl::StrFormat("the first %.3g s", cold),
                   absl::StrFormat("%d tenants that share, no moves looked for, %s", review.tenants.size(), protocol)});
  const std::string bytes = Timed([&] { return SaveSnapshot(setting.cluster); }, &seconds);
  const std::string jobs_held = absl::StrFormat("%d jobs, %.3g MB, %s", setting.residents.size(),
                                                1e-6 * static_cast<double>(bytes.size()), protocol);
  rows->push_back({"snapshot_save_s" + size, seconds, "s", kSnapshotAimS, true, "", jobs_held});
  const std::span<const uint8_t> saved(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  (void)Timed([&] { return RestoreSnapshot(saved, setting.catalogue); }, &seconds);
  rows->push_back({"snapshot_restore_s" + size, seconds, "s", kSnapshotAimS, true, "", jobs_held});
  const std::vector<SupposedChange> drain = {
      {.kind = ChangeKind::kNodeState, .node = 1, .state = AdminState::kDrained}};
  const std::vector<JobSpec> few(jobs.begin(), jobs.begin() + 8);
  Timed([&] { return WhatIf(*placer, setting.cluster, drain, few, /*work=*/false); }, &seconds);
  rows->push_back(
      {"what_if_us" + size, 1e6 * seconds, "us", 0, true, "", "one node drained, 8 jobs decided, " + protocol});
  JobSpec urgent = jobs.front();
  urgent.priority = 100;
  urgent.gpus_per_task = kGpusPerNode;
  urgent.exclusive = true;
  const Plan preempted = Timed([&] { return PlanPreemption(*placer, setting.cluster, urgent); }, &seconds);
  if (preempted.candidates.empty()) Must(absl::NotFoundError("preemption: expected candidates, found none"));
  rows->push_back({"preempt_s" + size, seconds, "s", 0, true,
                   absl::StrFormat("%d candidates, the best loses %.3g", preempted.candidates.size(),
                                   preempted.candidates.front().loss),
                   "all GPUs of a node alone, 8 candidates of all nodes, " + protocol});
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
