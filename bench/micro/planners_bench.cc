// SPDX-License-Identifier: Apache-2.0
// planners: decisions of two planners on one cluster beside those of one, and how often they conflict.
#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/patient_mutex.h"
#include "bench/micro/busy_cluster.h"
#include "bench/rows.h"

namespace horus::bench {
namespace {

constexpr double kSpeedupAim = 1.7;
constexpr int kRuns = 5;

// A cluster under a lock, as a handle of the C ABI is: shared while a plan reads it, alone for writes.
struct Shared {
  Setting setting;
  PatientMutex lock;
};

struct Planner {
  std::unique_ptr<Placer> placer;
  std::vector<JobId> residents;  // those that it releases
  JobId next = 0;
  int64_t applied = 0;
  int64_t conflicts = 0;
};

// Decides, applies and releases; what conflicts is planned again.
void Work(Shared& shared, const Shape& shape, Planner& planner, int decisions) {
  for (int i = 0; i < decisions; ++i) {
    const JobSpec job = MakeJob(shared.setting.types, planner.next++, shape.profiles);
    for (;;) {
      std::shared_lock<PatientMutex> reading(shared.lock);
      const Plan plan = Must(planner.placer->MakePlan(shared.setting.cluster, {&job, 1}, std::nullopt, nullptr,
                                                      [&reading] { reading.unlock(); }));
      const std::unique_lock<PatientMutex> writing(shared.lock);
      const absl::Status status = shared.setting.cluster.Apply(plan);
      if (absl::IsAborted(status)) {
        ++planner.conflicts;
        continue;
      }
      Must(status);
      if (!plan.actions.empty()) planner.residents.push_back(job.id);
      break;
    }
    ++planner.applied;
    const size_t victim = Draw(planner.next * 11, planner.residents.size());
    {
      const std::unique_lock<PatientMutex> writing(shared.lock);
      Must(shared.setting.cluster.Release(planner.residents[victim]));
    }
    planner.residents[victim] = planner.residents.back();
    planner.residents.pop_back();
  }
}

struct Outcome {
  double decisions_per_s = 0;
  double conflicts = 0;  // a decision
};

// Each planner a thread; on `clusters` clusters, one after the other or all on one.
Outcome Run(const Setting& setting, const Shape& shape, size_t planners, size_t clusters, int decisions) {
  std::deque<Shared> shared;
  for (size_t i = 0; i < clusters; ++i) shared.emplace_back().setting = setting;
  std::vector<Planner> all(planners);
  const size_t sharers = planners / clusters;
  for (size_t i = 0; i < planners; ++i) {
    all[i].placer = MakePlacer(shape);
    all[i].next = (JobId{1} << 40) * (i + 1);
    for (size_t r = i % sharers; r < setting.residents.size(); r += sharers) {
      all[i].residents.push_back(setting.residents[r]);
    }
  }
  // Until the placers know the job classes; in turns, so that nobody starts far behind the others.
  constexpr int kTurns = 10;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < planners; ++i) Work(shared[i / sharers], shape, all[i], decisions / 2 / kTurns);
  }
  for (Planner& planner : all) planner.applied = planner.conflicts = 0;
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < planners; ++i) {
      threads.emplace_back([&, i] { Work(shared[i / sharers], shape, all[i], decisions); });
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  Outcome outcome;
  double applied = 0;
  for (const Planner& planner : all) {
    applied += static_cast<double>(planner.applied);
    outcome.conflicts += static_cast<double>(planner.conflicts);
  }
  outcome.conflicts /= applied;
  outcome.decisions_per_s = applied / took.count();
  return outcome;
}

void Measure(const Options& options, std::vector<Row>* rows) {
  const Shape shape{.gpus = options.smoke ? 128 : 10'000};
  const Setting setting = MakeSetting(shape);
  const int decisions = options.smoke ? 100 : 20'000;
  std::vector<double> one, two, ratio, apart, conflicts;
  for (int run = 0; run < (options.smoke ? 1 : kRuns); ++run) {
    one.push_back(Run(setting, shape, 1, 1, decisions).decisions_per_s);
    const Outcome both = Run(setting, shape, 2, 1, decisions);
    two.push_back(both.decisions_per_s);
    ratio.push_back(two.back() / one.back());
    apart.push_back(Run(setting, shape, 2, 2, decisions).decisions_per_s / one.back());
    conflicts.push_back(both.conflicts);
  }
  const std::string protocol = absl::StrFormat(
      "%d GPUs, %d profiles, model %s, plan + apply, then a release, %d decisions a planner and run, one and two "
      "planners in turn, median of %d runs, wall time",
      shape.gpus, shape.profiles, shape.model, decisions, ratio.size());
  const auto median = [](const std::vector<double>& values) { return Quantile(values, 0.5); };
  rows->push_back({"planners_two_over_one", median(ratio), "ratio", kSpeedupAim, false,
                   absl::StrFormat("one planner %.4g decisions/s", median(one)), protocol});
  rows->push_back({"planners_two_apart_over_one", median(apart), "ratio", 0, false, "",
                   protocol + "; each of the two on a cluster of its own: what this machine allows"});
  rows->push_back({"planners_two_decisions_per_s", median(two), "1/s", 0, false, "", protocol});
  rows->push_back({"planners_conflicts_per_decision", median(conflicts), "ratio", 0, true, "", protocol});
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
