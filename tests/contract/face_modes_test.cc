// SPDX-License-Identifier: Apache-2.0
// modes.hpp: batches, rebalancing, what-ifs and preemption from C++.
#include <cmath>
#include <vector>

#include "face_check.h"

namespace {

constexpr char kGpu[] = "v100-pcie-16gb";

horus::Cluster TwoGpus() {
  horus::Cluster cluster;
  cluster.AddNode({.id = 1, .cpu_milli = 64'000, .mem_mib = 262'144, .devices = {{kGpu}, {kGpu}}});
  return cluster;
}

horus::Job JobOf(uint64_t id, float util, int64_t mem_mib, int32_t priority = 0) {
  horus::Demand demand;
  demand.gpu_util_pct = util;
  demand.mem_mib = mem_mib;
  demand.flags = HORUS_DEMAND_GIVEN;
  horus::Job job;
  job.id = id;
  job.priority = priority;
  job.demands = {{"", demand}};
  return job;
}

void BatchesMovesAndWork() {
  horus::Cluster cluster = TwoGpus();
  horus::Placer placer;
  const std::vector<horus::Job> jobs = {JobOf(1, 30, 2000), JobOf(2, 40, 2000)};
  const horus::Plan batch = horus::PlanBatch(placer, cluster, jobs, {.max_rounds = 2});
  CHECK(batch.size() == 2 && batch.at(0).placed() && horus::MovesOf(batch).empty());
  CHECK(horus::WorkOf(batch).after >= horus::WorkOf(batch).before);
  CHECK(StatusOf([&] { (void)horus::PlanBatch(placer, cluster, jobs, {}, std::vector<uint64_t>{7}); }) ==
        HORUS_ERR_NOT_FOUND);
  cluster.Apply(batch);
  CHECK(horus::MovesOf(horus::Rebalance(placer, cluster, {.downtime_s = -1})).empty());
  CHECK(StatusOf([&] { (void)horus::Rebalance(placer, cluster, {.jobs = std::vector<uint64_t>{9}}); }) ==
        HORUS_ERR_NOT_FOUND);
}

void WhatIfsAreNotApplied() {
  horus::Cluster cluster = TwoGpus();
  horus::Placer placer;
  const std::vector<horus::Job> jobs = {JobOf(1, 30, 2000)};
  const std::vector<horus::Change> changes = {
      {.kind = HORUS_CHANGE_NODE_STATE, .node = 1, .state = HORUS_STATE_DRAINED}};
  const horus::Plan plan = horus::WhatIf(placer, cluster, changes, jobs);
  CHECK(!plan.at(0).placed() && plan.at(0).reason == HORUS_REASON_NODE_DRAINED);
  CHECK(StatusOf([&] { cluster.Apply(plan); }) == HORUS_ERR_STATE);
  const std::vector<horus::Change> placed = {
      {.kind = HORUS_CHANGE_PLACE, .spec = JobOf(5, 30, 2000), .slots = {{1, 0, 0}}}};
  CHECK(std::abs(horus::WorkOf(horus::WhatIf(placer, cluster, placed, {})).after - 1) < 1e-6);
}

void PreemptionsNameTheirVictims() {
  horus::Cluster cluster = TwoGpus();
  horus::Placer placer;
  const std::vector<horus::Job> jobs = {JobOf(1, 10, 14'000, 2), JobOf(2, 10, 14'000, 1)};
  cluster.Apply(placer.MakePlan(cluster, jobs));
  const horus::Plan plan = horus::Preempt(placer, cluster, JobOf(3, 10, 14'000, 5));
  const std::vector<horus::Preemption> found = horus::PreemptionsOf(plan);
  CHECK(found.size() == 1 && found[0].victims == std::vector<uint64_t>{2} && found[0].exact && found[0].node == 1);
  CHECK(found[0].losses.size() == 1 && std::abs(found[0].loss - 2) < 1e-6 && found[0].slots == plan.at(0).slots);
  const std::vector<horus::Move> moves = horus::MovesOf(plan);
  CHECK(moves.size() == 1 && moves[0].kind == HORUS_MOVE_PREEMPT && moves[0].from == found[0].slots);
  cluster.Apply(plan);
}

}  // namespace

int main() {
  BatchesMovesAndWork();
  WhatIfsAreNotApplied();
  PreemptionsNameTheirVictims();
  return report();
}
