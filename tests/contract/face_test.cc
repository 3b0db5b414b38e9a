// SPDX-License-Identifier: Apache-2.0
// horus.hpp: the C++ face over the same library.
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <type_traits>

#include "face_check.h"

namespace {

horus::Node NodeOfTwo(uint64_t id) {
  return {.id = id,
          .name = "n",
          .cpu_milli = 16'000,
          .mem_mib = 65'536,
          .devices = {{.gpu_type = "t4"}, {.gpu_type = "t4"}},
          .labels = {{"zone", "a"}}};
}

horus::Job JobOf(uint64_t id, int64_t mem_mib) {
  horus::Demand demand;
  demand.gpu_util_pct = 40;
  demand.mem_mib = mem_mib;
  return {.id = id, .cpu_milli = 1'000, .demands = {{"", demand}}};
}

void HandlesMoveAndDoNotCopy() {
  static_assert(!std::is_copy_constructible_v<horus::Cluster> && std::is_nothrow_move_constructible_v<horus::Cluster>);
  static_assert(!std::is_copy_constructible_v<horus::Graph> && !std::is_copy_constructible_v<horus::Placer>);
  static_assert(std::is_copy_constructible_v<horus::Decision> && std::is_copy_constructible_v<horus::Job>);
  horus::Cluster first;
  first.AddNode(NodeOfTwo(1));
  const horus::Cluster second = std::move(first);
  CHECK(second.info().devices == 2);
}

void FailuresThrowTheirStatus() {
  horus::Cluster cluster;
  cluster.AddNode(NodeOfTwo(1));
  CHECK(StatusOf([&] { cluster.AddNode(NodeOfTwo(1)); }) == HORUS_ERR_EXISTS);
  CHECK(StatusOf([&] { cluster.Release(7); }) == HORUS_ERR_NOT_FOUND);
  CHECK(StatusOf([] { horus::Placer placer({.policy = "clairvoyant"}); }) == HORUS_ERR_NOT_FOUND);
  CHECK(StatusOf([] { (void)horus::Cluster::Restore({}); }) != HORUS_OK);
  CHECK(StatusOf([] { (void)horus::Catalogue().Find("abacus"); }) == HORUS_ERR_NOT_FOUND);
}

void JobsGoTheWholeWay() {
  horus::CheckAbi();
  horus::Cluster cluster;
  for (uint64_t id = 1; id <= 3; ++id) cluster.AddNode(NodeOfTwo(id));
  horus::Placer placer({.policy = "first-fit"});
  std::vector<horus::Job> jobs = {JobOf(1, 4'000), JobOf(2, 4'000), JobOf(3, 400'000)};
  jobs[1].selectors = {{"zone", "b"}};
  const horus::Plan plan = placer.MakePlan(cluster, jobs);
  CHECK(plan.size() == 3 && plan.at(0).placed() && !plan.at(1).placed() && !plan.at(2).placed());
  CHECK(plan.at(1).reason == HORUS_REASON_LABEL && plan.at(2).reason == HORUS_REASON_GPU_MEMORY);
  CHECK(plan.at(0).slots == std::vector<horus::Slot>{(horus::Slot{1, 0, 0})} && plan.at(0).effects.size() == 1);
  cluster.Apply(plan);
  CHECK(cluster.Jobs() == std::vector<uint64_t>{1});

  const std::array<uint64_t, 1> subset = {3};
  CHECK(placer.MakePlan(cluster, std::span(jobs).subspan(1, 0), subset).size() == 0);
  const horus::Job next = JobOf(4, 4'000);
  CHECK(placer.MakePlan(cluster, std::span(&next, 1), subset).at(0).slots.at(0).node == 3);
  const std::span<const uint64_t> nobody;
  CHECK(!placer.MakePlan(cluster, std::span(&next, 1), nobody).at(0).placed());  // an empty subset is not "all"

  CHECK(cluster.Adopt(JobOf(5, 4'000), {{2, 1, 0}}) == HORUS_REASON_NONE);
  CHECK(cluster.SetNodeState(2, HORUS_STATE_DOWN) == std::vector<uint64_t>{5});
  CHECK(cluster.SetNodeState(3, HORUS_STATE_DRAINED).empty());
  horus::Cluster restored = horus::Cluster::Restore(cluster.Snapshot());
  cluster.SnapshotFile("horus_contract_face.tmp");
  CHECK(horus::Cluster::RestoreFile("horus_contract_face.tmp").Snapshot() == cluster.Snapshot());
  CHECK(std::remove("horus_contract_face.tmp") == 0);
  CHECK(restored.info().state_hash == cluster.info().state_hash);
  restored.Release(5);
  restored.RemoveNode(2);
  CHECK(restored.info().nodes == 2 && cluster.info().nodes == 3);
}

void CataloguesCanBeRead() {
  const horus::Catalogue catalogue;
  CHECK(catalogue.size() >= 25 && std::string(catalogue.at(catalogue.Find("T4")).name) == "t4");
}

void NodesChangeUnderTheirJobs() {
  horus::Cluster cluster;
  cluster.AddNode(NodeOfTwo(1));
  CHECK(cluster.Adopt(JobOf(1, 4'000), {{1, 1, 0}}) == HORUS_REASON_NONE);
  horus::Node node = NodeOfTwo(1);
  node.devices.push_back({.gpu_type = "t4"});
  cluster.ChangeNode(node);
  CHECK(cluster.info().devices == 3);
  node.devices.resize(1);
  CHECK(StatusOf([&] { cluster.ChangeNode(node); }) == HORUS_ERR_STATE);  // job 1 would lose its place
  CHECK(StatusOf([&] { cluster.ChangeNode(NodeOfTwo(2)); }) == HORUS_ERR_NOT_FOUND);
  CHECK(cluster.info().devices == 3);
}

void TheBestWayThatFitsIsChosen() {
  horus::Cluster cluster;
  cluster.AddNode(NodeOfTwo(1));
  const std::vector<std::pair<std::string, horus::Demand>> demands = JobOf(1, 4'000).demands;
  const horus::Job job = {.id = 1,
                          .alternatives = {{.tasks = 1, .gpus_per_task = 1, .rate = 1, .demands = demands},
                                           {.tasks = 1, .gpus_per_task = 2, .rate = 2, .demands = demands},
                                           {.tasks = 1, .gpus_per_task = 4, .rate = 4, .demands = demands}}};
  const horus::Plan plan = horus::Placer({.policy = "first-fit"}).MakePlan(cluster, std::span(&job, 1));
  CHECK(plan.at(0).placed() && plan.at(0).slots.size() == 2);
}

void WaysStateTheirOwnHostResources() {
  horus::Cluster cluster;
  cluster.AddNode(NodeOfTwo(1));
  const horus::Demands demands = JobOf(1, 4'000).demands;
  const horus::Job job = {.id = 1,
                          .cpu_milli = 1'000,
                          .alternatives = {{.rate = 1, .demands = demands},
                                           {.gpus_per_task = 2, .rate = 2, .demands = demands, .cpu_milli = 32'000}}};
  const horus::Plan plan = horus::Placer({.policy = "first-fit"}).MakePlan(cluster, job);
  CHECK(plan.at(0).placed() && plan.at(0).alternative == 0 && plan.at(0).cpu_milli == 1'000);
}

void DevicesHaveTheMemoryOfTheirDriver() {
  horus::Cluster cluster;
  cluster.AddNode({.id = 1, .devices = {{.gpu_type = "t4"}}});
  const int64_t whole = cluster.info().gpu_mem_mib;
  cluster.AddNode({.id = 2, .devices = {{.gpu_type = "t4", .mem_mib = 10'000}}});
  CHECK(whole > 10'000 && cluster.info().gpu_mem_mib == whole + 10'000);
}

void RefusalsTellTheNearestMiss() {
  horus::Cluster cluster;
  cluster.AddNode(NodeOfTwo(1));
  horus::Placer placer({.policy = "first-fit", .mem_headroom_mib = -1, .max_jobs = 1});
  const horus::Decision refused = placer.MakePlan(cluster, JobOf(1, 400'000)).at(0);
  CHECK(refused.miss && refused.miss->reason == HORUS_REASON_GPU_MEMORY && refused.miss->needed == 400'000);
  CHECK(refused.miss->unit == "MiB" && refused.refusals.size() == 1 && refused.refusals[0].second == 2);
  const horus::Decision placed = placer.MakePlan(cluster, JobOf(2, 4'000)).at(0);
  CHECK(placed.placed() && !placed.miss && placed.refusals.empty());
  const std::vector<horus::Job> two = {JobOf(3, 1), JobOf(4, 1)};
  CHECK(StatusOf([&] { (void)placer.MakePlan(cluster, two); }) == HORUS_ERR_LIMIT);
}

void JobsComeBackFromTheCAbi() {
  horus::Job job = JobOf(7, 4'000);
  job.name = "n";
  job.priority = 3;
  job.spread_tasks = true;
  job.groups = {"g"};
  job.avoid_groups = {"h"};
  job.selectors = {{"zone", "a"}};
  job.alternatives = {{.tasks = 2, .rate = 1, .demands = {{"t4", job.demands[0].second}}, .mem_mib = -1}};
  job.sensitivity = horus::Sensitivity{{1'000, 2'000}, {512}, {1, 2}};
  job.stated_cpu_milli = -1;
  const horus::Job back = horus::JobFrom(*horus::detail::CJob(job).get());
  CHECK(back.id == 7 && back.name == "n" && back.tenant.empty() && back.priority == 3 && back.spread_tasks);
  CHECK(back.groups == job.groups && back.avoid_groups == job.avoid_groups && back.selectors == job.selectors);
  CHECK(back.demands.size() == 1 && back.demands[0].first.empty() && back.demands[0].second.mem_mib == 4'000);
  CHECK(back.alternatives.size() == 1 && back.alternatives[0].tasks == 2 && back.alternatives[0].mem_mib == -1);
  CHECK(back.alternatives[0].demands.size() == 1 && back.alternatives[0].demands[0].first == "t4");
  CHECK(back.sensitivity && back.sensitivity->cpu_milli == job.sensitivity->cpu_milli);
  CHECK(back.sensitivity->mem_mib == std::vector<int64_t>{512} && back.sensitivity->speeds == job.sensitivity->speeds);
  CHECK(back.stated_cpu_milli == -1 && back.stated_mem_mib == 0);
}

void ResidentsTellWhatTheyStatedAndAreObserved() {
  horus::Cluster cluster;
  cluster.AddNode(NodeOfTwo(1));
  horus::Observations seen;
  for (const uint64_t id : {1, 2}) {
    horus::Job job = JobOf(id, 4'000);
    job.name = "n" + std::to_string(id);
    job.demands[0].second.profile_id = id;
    cluster.Adopt(job, {{1, 0, 0}});
  }
  const horus::Resident told = cluster.GetJob(2);
  CHECK(told.adopted && !told.over_committed && told.job.name == "n2" && told.job.demands.size() == 1);
  CHECK(told.job.demands[0].second.mem_mib == 4'000 && told.job.demands[0].second.profile_id == 2);
  CHECK(StatusOf([&] { (void)cluster.GetJob(3); }) == HORUS_ERR_NOT_FOUND);
  horus_slowdown_observation lost = HORUS_SLOWDOWN_OBSERVATION_INIT;
  lost.cluster = cluster.get();
  lost.job_id = 2;
  lost.node_id = 1;
  lost.slowdown = 1.5;
  lost.device_id = 4;
  seen.AddResident(lost);
  CHECK(seen.Devices().size() == 1 && seen.Devices()[0].profile_id == 2 && seen.Devices()[0].observed == 1.5);
}

void TornMatricesAreRefused() {
  horus::Cluster cluster;
  cluster.AddNode(NodeOfTwo(1));
  horus::Job job = JobOf(1, 4'000);
  job.sensitivity = horus::Sensitivity{{1'000, 2'000}, {512}, {1, 2}};
  CHECK(horus::Placer({.policy = "synergy-tune"}).MakePlan(cluster, job).at(0).placed());
  job.sensitivity->speeds.pop_back();
  try {
    cluster.Adopt(job, {{1, 0, 0}});
    CHECK(false);
  } catch (const horus::Error& error) {
    const std::string told = error.what();
    CHECK(error.status() == HORUS_ERR_INVALID_ARGUMENT);
    CHECK(told.find("Job.sensitivity.speeds: expected 2 values (cores x memory), found 1") != std::string::npos);
  }
}

#ifdef HORUS_GRAPHS_DIR
void GraphsTellWhatAStepCosts() {
  const horus::Graph graph = horus::Graph::FromFile(HORUS_GRAPHS_DIR "/bert_base.onnx");
  std::ifstream file(HORUS_GRAPHS_DIR "/bert_base.onnx", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  CHECK(horus::Graph::FromBytes(std::as_bytes(std::span(bytes))).info().fingerprint == graph.info().fingerprint);
  CHECK(graph.info().nodes > 0 && StatusOf([] { (void)horus::Graph::FromBytes({}); }) != HORUS_OK);
  CHECK((graph.Dims() == std::vector<std::string>{"batch", "seq"}));
  const horus::RunSpec one = {.batch = 1, .dims = {{"seq", 64}}};
  const horus::RunSpec two = {.batch = 2, .dims = {{"seq", 64}}};
  CHECK(horus::StepCost(graph, one).forward_flops > 0 &&
        horus::StepCost(graph, two).forward_flops == 2 * horus::StepCost(graph, one).forward_flops);
  CHECK(!horus::Features(graph, one).empty() && horus::Features(graph, one) != horus::Features(graph, two));
  CHECK(StatusOf([&] { (void)horus::StepCost(graph, {.dims = {{"seq", -1}}}); }) == HORUS_ERR_INVALID_ARGUMENT);
}

void TheLargestBatchIsSolvedFor() {
  const horus::Graph graph = horus::Graph::FromFile(HORUS_GRAPHS_DIR "/resnet18.onnx");
  const horus::Predictor predictor;
  const std::vector<std::string> types = {"t4", "t4"};
  const auto solutions = predictor.Solve(graph, {}, {.resident_mib = {0, 8'000}}, types);
  CHECK(solutions.size() == 2 && solutions[0].largest > solutions[1].largest && solutions[1].largest > 0);
  CHECK(solutions[0].reason == HORUS_SOLVED_MEMORY && solutions[0].short_mib > 0 && solutions[0].message.empty());
  const auto demands = predictor.Demands(graph, {.batch = solutions[1].largest}, types);
  CHECK(demands[1].mem_mib_upper == solutions[1].mem_mib_upper);
  CHECK(StatusOf([&] { (void)predictor.Solve(graph, {}, {.dim = "depth"}, types); }) == HORUS_ERR_INVALID_ARGUMENT);
  CHECK(StatusOf([&] { (void)predictor.Solve(graph, {}, {.resident_mib = {1}}, types); }) ==
        HORUS_ERR_INVALID_ARGUMENT);
}

void MeasuredDemandsAreCommitted() {
  const horus::Graph graph = horus::Graph::FromFile(HORUS_GRAPHS_DIR "/resnet18.onnx");
  const horus::Predictor predictor;
  const std::vector<std::string> types = {"t4"};
  const horus::Demand before = predictor.Demands(graph, {.batch = 8}, types)[0];
  horus::Observations observations;
  horus_demand_observation seen = HORUS_DEMAND_OBSERVATION_INIT;
  seen.profile_id = before.profile_id;
  seen.gpu_type = "t4";
  seen.measured = HORUS_OBSERVED_STEP_TIME;
  seen.step_time_us = 12'345;
  observations.Add(seen);
  const horus::Predictor corrected = predictor.Commit(horus::Observations(observations.Snapshot()));
  CHECK(corrected.Demands(graph, {.batch = 8}, types)[0].step_time_us == 12'345);
  CHECK(corrected.epoch() == 1 && predictor.epoch() == 0);
  const horus::Predictor again(predictor.Bundle());
  CHECK(again.Demands(graph, {.batch = 8}, types)[0].step_time_us == before.step_time_us);
  const horus_training_data none = HORUS_TRAINING_DATA_INIT;
  CHECK(StatusOf([&] { (void)horus::FitPredictor(none); }) == HORUS_ERR_INVALID_ARGUMENT);
}
#endif

}  // namespace

int main() {
  HandlesMoveAndDoNotCopy();
  FailuresThrowTheirStatus();
  JobsGoTheWholeWay();
  CataloguesCanBeRead();
  NodesChangeUnderTheirJobs();
  TheBestWayThatFitsIsChosen();
  WaysStateTheirOwnHostResources();
  DevicesHaveTheMemoryOfTheirDriver();
  RefusalsTellTheNearestMiss();
  JobsComeBackFromTheCAbi();
  ResidentsTellWhatTheyStatedAndAreObserved();
  TornMatricesAreRefused();
#ifdef HORUS_GRAPHS_DIR
  GraphsTellWhatAStepCosts();
  TheLargestBatchIsSolvedFor();
  MeasuredDemandsAreCommitted();
#endif
  return report();
}
