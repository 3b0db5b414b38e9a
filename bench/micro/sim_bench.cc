// SPDX-License-Identifier: Apache-2.0
// sim: time of a simulation against its jobs and GPUs, and of an event of it.
#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "bench/micro/busy_cluster.h"
#include "bench/rows.h"
#include "interference/registry.h"
#include "lab/simulator.h"
#include "lab/trace/synthetic.h"

namespace horus::bench {
namespace {

constexpr double kAim1mS = 120;
constexpr double kAimMib = 4096;
constexpr double kAimGrowth = 3;
constexpr int32_t kLoadMilli = 950;  // of what the GPUs do without sharing, at the speed of each job's fastest type

double PeakMib() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Outcome {
  double seconds = 0;
  double events = 0;  // arrivals, starts and finishes
  double decisions = 0;
  double finished = 0;  // share of the jobs
  double used = 0;      // share of the device time
};

Outcome Run(int32_t gpus, int64_t jobs) {
  Setting setting = MakeSetting({.gpus = gpus, .fill = 0});
  SyntheticOptions synthetic{.jobs = jobs,
                             .arrivals = Arrivals::kPoisson,
                             .capacity_gpu_milli = int64_t{gpus} * kMilliPerGpu,
                             .load_milli = kLoadMilli,
                             .sizes = {{1, 1}},
                             .durations = PhillyDurations(),
                             .profiles = NumberedProfiles(static_cast<int32_t>(kProfiles))};
  const Trace trace = Must(MakeSynthetic(synthetic));
  std::vector<ProfileDemands> beliefs;
  for (size_t i = 0; i < trace.profiles.size(); ++i) beliefs.push_back(MakeJob(setting.types, i, 0).demands);
  const std::unique_ptr<Truth> truth = Must(ModelTruth::Create(Must(MakeInterferenceModel("utilisation")), beliefs));
  const std::unique_ptr<Placer> placer = MakePlacer({.gpus = gpus});
  const std::unique_ptr<Queue> queue = Must(MakeQueue("fifo"));
  double events = 0;
  const auto start = std::chrono::steady_clock::now();
  const SimResult result = Must(
      Simulate(trace, beliefs, *truth, setting.cluster, *queue, *placer, {.look_ahead = 5}, [&events](const SimEvent&) {
        ++events;
        return true;
      }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  double finished = 0;
  for (const SimJob& job : result.jobs) finished += job.end == SimEnd::kFinished ? 1 : 0;
  return {took.count(), events, static_cast<double>(result.decisions), finished / static_cast<double>(jobs),
          static_cast<double>(result.use.used_us) / static_cast<double>(result.use.device_us)};
}

void Measure(const Options& options, std::vector<Row>* rows) {
  const char* const kProtocol =
      "%d one-GPU jobs of 200 profiles on %d GPUs of 5 types, Poisson arrivals at load %.2f, Philly's durations, "
      "policy horus, model %s for beliefs and utilisation for the truth, fifo with look-ahead 5; wall time, one "
      "thread";
  double per_event = 0;
  const std::vector<std::pair<int32_t, int64_t>> sizes =
      options.smoke ? std::vector<std::pair<int32_t, int64_t>>{{64, 1000}}
                    : std::vector<std::pair<int32_t, int64_t>>{{1000, 100'000}, {10'000, 1'000'000}};
  for (const auto& [gpus, jobs] : sizes) {
    const Outcome outcome = Run(gpus, jobs);
    const std::string size = jobs == 1'000'000 ? "1m" : absl::StrFormat("%dk", jobs / 1000);
    const std::string protocol = absl::StrFormat(kProtocol, jobs, gpus, kLoadMilli / 1000.0, Shape().model);
    const bool largest = jobs == 1'000'000;
    rows->push_back({"sim_" + size + "_s", outcome.seconds, "s", largest ? kAim1mS : 0, true,
                     absl::StrFormat("%.3g decisions a job", outcome.decisions / static_cast<double>(jobs)), protocol});
    rows->push_back({"sim_event_us_" + size, 1e6 * outcome.seconds / outcome.events, "us", 0, true, "", protocol});
    rows->push_back({"sim_finished_share_" + size, outcome.finished, "ratio", 0, false, "", protocol});
    rows->push_back({"sim_used_share_" + size, outcome.used, "ratio", 0, false, "", protocol});
    rows->push_back({"sim_peak_mib_" + size, PeakMib(), "MiB", largest ? kAimMib : 0, true, "", protocol});
    const double before = std::exchange(per_event, outcome.seconds / outcome.events);
    if (before > 0) {
      rows->push_back({"sim_event_growth_1k_10k_gpus", per_event / before, "ratio", kAimGrowth, true, "", protocol});
    }
  }
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
