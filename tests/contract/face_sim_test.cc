// SPDX-License-Identifier: Apache-2.0
// sim.hpp: traces, truths, simulations and potentials from C++.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "face_check.h"

namespace {

constexpr char kGpu[] = "v100-pcie-16gb";
constexpr double kNone = std::numeric_limits<double>::infinity();

horus::Cluster OneNode() {
  horus::Cluster cluster;
  cluster.AddNode({.id = 1, .cpu_milli = 64'000, .mem_mib = 262'144, .devices = {{kGpu}, {kGpu}}});
  return cluster;
}

std::vector<horus::ProfileDemand> Beliefs() {
  horus::Demand demand;
  demand.gpu_util_pct = 40;
  demand.mem_mib = 2000;
  demand.step_time_us = 100'000;
  demand.flags = HORUS_DEMAND_GIVEN;
  return {{"a", "", demand}, {"b", kGpu, demand}};
}

horus::Speeds Measured() {
  return {.gpu_types = {kGpu},
          .profiles = {"a", "b"},
          .alone = {10, 5},
          .pairs = {{.a = 0, .b = 1, .speed_a = 0.5, .speed_b = 0.8}}};
}

horus::Trace Two() {
  const std::vector<horus::TraceJob> jobs = {
      {.id = 71, .submit_us = 100'000, .steps = 2, .profile = "b", .owner = "ann", .gpu_types = {kGpu, "t4"}},
      {.id = 70, .duration_us = 1'000'000, .profile = "a"}};
  return horus::Trace(jobs);
}

horus::Placer Sharing() {
  return horus::Placer({.policy = "first-fit", .slowdown_bound = std::numeric_limits<float>::infinity()});
}

void TracesSummariseTheirJobs() {
  static_assert(!std::is_copy_constructible_v<horus::Trace> && std::is_nothrow_move_constructible_v<horus::Trace>);
  const horus::Trace trace = Two();
  CHECK(trace.size() == 2 && trace.bytes_held() > 0 && (trace.Profiles() == std::vector<std::string>{"a", "b"}));
  const horus_trace_summary summary = trace.summary();
  CHECK(summary.jobs == 2 && summary.owners == 1 && summary.by_steps == 1 && summary.last_submit_us == 100'000);
  const std::vector<horus::TraceJob> wrong = {{.id = 1}};
  CHECK(StatusOf([&] { (void)horus::Trace(wrong); }) == HORUS_ERR_INVALID_ARGUMENT);
}

void TracesTellTheirJobs() {
  const horus::Trace drawn = horus::Trace::Synthetic({.jobs = 30, .profiles = {{"a", 2}, {"b", 1, 500}}, .owners = 3});
  std::vector<horus::TraceJob> jobs = drawn.Jobs();
  CHECK(jobs.size() == 30 && !jobs[7].profile.empty() && !jobs[7].owner.empty() && jobs[7].duration_us > 0);
  CHECK(horus::Trace(jobs).summary().digest == drawn.summary().digest);
  jobs[7].step_us = 100;
  jobs[7].gpu_types = {kGpu, "t4"};
  const horus::Trace changed(jobs);
  CHECK(changed.summary().digest != drawn.summary().digest);
  CHECK(changed.Jobs()[7].step_us == 100 && changed.Jobs()[7].gpu_types.size() == 2);
  CHECK(horus::Trace(changed.Jobs()).summary().digest == changed.summary().digest);
  CHECK(horus::Trace::Synthetic({.preset = "horus2020"}).size() == 2500);
  const horus::Trace alike =
      horus::Trace::Synthetic({.jobs = 5, .sizes = {{.gpus = 4}}, .durations = {{0, 60'000'000}, {1000, 60'000'000}}});
  for (const horus::TraceJob& job : alike.Jobs()) {
    CHECK(job.tasks * job.gpus_per_task == 4 && job.duration_us == 60'000'000);
  }
  CHECK(StatusOf([] { (void)horus::Trace::Synthetic({.preset = "rome"}); }) == HORUS_ERR_NOT_FOUND);
}

void SimulationsTellWhatBecameOfTheJobs() {
  const horus::Cluster cluster = OneNode();
  horus::Placer placer = Sharing();
  std::vector<int32_t> kinds;
  double done = 0;
  const horus::SimOptions options = {.observer =
                                         [&](const horus::SimEvent& event) {
                                           kinds.push_back(event.kind);
                                           CHECK(event.kind == HORUS_SIM_ARRIVE || event.slots.size() == 1);
                                           return true;
                                         },
                                     .progress =
                                         [&](double share) {
                                           done = share;
                                           return true;
                                         }};
  const horus::Truth truth = horus::Truth::FromSpeeds(Measured());
  const horus::SimResult result = horus::Simulate(Two(), Beliefs(), truth, cluster, placer, options);
  CHECK(kinds.size() == 6 && kinds[1] == HORUS_SIM_START && done == 1 && truth.bytes_held() > 0);
  const std::vector<horus::SimJob> jobs = result.Jobs();
  CHECK(jobs.size() == 2 && jobs[0].id == 70 && jobs[0].end_us == 1'250'000 && jobs[1].end_us == 600'000);
  CHECK(jobs[1].work_us == 400'000 && jobs[1].end == HORUS_SIM_END_FINISHED && jobs[1].restarts == 0);
  CHECK(result.Metrics().finished == 2 && result.Metrics({.from_us = 1}).jobs == 1);
  CHECK(result.BacklogWork() == std::vector<double>(2) && result.DecisionTimes().size() == 2);
  CHECK(result.bytes_held() > 0);
}

void OptionsReachTheSimulation() {
  const horus::Cluster cluster = OneNode();
  horus::Placer placer = Sharing();
  const horus::Truth truth = horus::Truth::FromModel(Beliefs());
  const std::vector<horus::TraceJob> jobs = {{.id = 1, .duration_us = 100, .profile = "a"}};
  const horus::Trace trace(jobs);
  const auto end = [&](const horus::SimOptions& options) {
    return horus::Simulate(trace, Beliefs(), truth, cluster, placer, options).Jobs()[0].end_us;
  };
  CHECK(end({}) == 100);
  CHECK(end({.latency_us = 7}) == 107);
  CHECK(end({.horizon_us = 50}) == -1);
  CHECK(end({.outages = {{1, 50, 80}}}) == 130);
  CHECK(end({.discipline = "tetris", .know_run_times = false, .rebalance_us = 10, .rebalance = {.min_gain = 1}}) ==
        100);
  CHECK(StatusOf([&] { end({.discipline = "lifo"}); }) == HORUS_ERR_NOT_FOUND);
  CHECK(StatusOf([&] { end({.weights = 9}); }) == HORUS_ERR_INVALID_ARGUMENT);
}

void CoresCountWhereTheTruthFollowsThem() {
  const horus::Cluster cluster = OneNode();
  horus::Placer placer({.policy = "synergy-tune"});
  const std::vector<horus::ProfileSensitivity> doubled = {{"a", {{32'000, 48'000}, {1}, {1, 2}}}};
  const horus::Truth truth = horus::Truth::FromSpeeds(Measured()).WithSensitivities(doubled);
  const std::vector<horus::TraceJob> jobs = {{.id = 1, .duration_us = 100, .profile = "a"}};
  const horus::Trace trace(jobs);
  const auto end = [&](const horus::SimOptions& options) {
    return horus::Simulate(trace, Beliefs(), truth, cluster, placer, options).Jobs()[0].end_us;
  };
  CHECK(end({}) == 100);
  CHECK(end({.sensitivities = doubled}) == 50);
  const std::vector<horus::ProfileSensitivity> torn = {{"a", {{32'000, 48'000}, {1}, {1}}}};
  CHECK(StatusOf([&] { (void)truth.WithSensitivities(torn); }) == HORUS_ERR_INVALID_ARGUMENT);
}

void WhatWasLearnedIsAModel() {
  const horus::Cluster cluster = OneNode();
  horus::Placer placer = Sharing();
  const horus::Truth truth = horus::Truth::FromSpeeds(Measured());
  const auto run = [&](int32_t learns) {
    return horus::Simulate(Two(), Beliefs(), truth, cluster, placer, {.learns = learns});
  };
  const horus::Interference model = run(HORUS_SIM_LEARNS_CORRECTS).Model();
  CHECK(horus::BytesHeld(model) > 0 && !model.name().empty());
  CHECK(StatusOf([&] { (void)run(HORUS_SIM_LEARNS_NOTHING).Model(); }) == HORUS_ERR_INVALID_ARGUMENT);
}

void WhatACallbackThrowsGoesOn() {
  const horus::Cluster cluster = OneNode();
  horus::Placer placer = Sharing();
  const horus::Truth truth = horus::Truth::FromSpeeds(Measured());
  const auto run = [&](const horus::SimOptions& options) {
    (void)horus::Simulate(Two(), Beliefs(), truth, cluster, placer, options);
  };
  bool caught = false;
  try {
    run({.observer = [](const horus::SimEvent&) -> bool { throw std::domain_error("enough"); }});
  } catch (const std::domain_error&) {
    caught = true;
  }
  CHECK(caught);
  CHECK(StatusOf([&] { run({.progress = [](double) { return false; }}); }) == HORUS_ERR_CANCELLED);
  run({});
}

void PotentialsTellGains() {
  const horus::Speeds speeds = Measured();
  try {
    const horus::SharingPotential potential =
        horus::PotentialOf(speeds, {5, 8}, {4}, {.slowdown_bounds = {1.5, kNone}, .least_gain = 0.1});
    CHECK(potential.all.run == 1 && potential.at.size() == 2 && potential.at[0].gain == 0 && !potential.at[0].pays);
    CHECK(std::abs(potential.at[1].gain - 0.3) < 1e-9 && potential.at[1].pays && potential.at[1].admitted == 1);
    CHECK(horus::PotentialOf(speeds, {5, 8}, {4}).at.size() == 5);
  } catch (const horus::Error& error) {
    CHECK(error.status() == HORUS_ERR_IO);  // the build has no libhorus_lp
  }
  CHECK(StatusOf([&] { (void)horus::PotentialOf(speeds, {5}, {4}); }) == HORUS_ERR_INVALID_ARGUMENT);
  horus::Speeds wrong = speeds;
  wrong.alone.pop_back();
  CHECK(StatusOf([&] { (void)horus::Truth::FromSpeeds(wrong); }) == HORUS_ERR_INVALID_ARGUMENT);
}

}  // namespace

int main() {
  TracesSummariseTheirJobs();
  TracesTellTheirJobs();
  SimulationsTellWhatBecameOfTheJobs();
  OptionsReachTheSimulation();
  CoresCountWhereTheTruthFollowsThem();
  WhatWasLearnedIsAModel();
  WhatACallbackThrowsGoesOn();
  PotentialsTellGains();
  return report();
}
