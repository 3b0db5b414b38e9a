// SPDX-License-Identifier: Apache-2.0
// Place, watch, mend: what a scheduler does while jobs share. place -> observe -> commit -> review -> apply; and back
// to the model before, should the new one predict worse. Prints output.txt. Usage: loop
#include <cstdio>
#include <horus/modes.hpp>
#include <horus/observations.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr const char* kGpu = "v100-sxm2-16gb";

// Three jobs, measured alone; horus::Predictor predicts the same from a graph (examples/cpp/place.cpp).
horus::Job MakeJob(uint64_t id, const char* name, float gpu_util_pct, int64_t step_time_us) {
  horus::Demand demand;
  demand.flags = HORUS_DEMAND_GIVEN;
  demand.profile_id = id;  // how observations know the job again
  demand.gpu_util_pct = gpu_util_pct;
  demand.mem_mib = 3000;
  demand.step_time_us = step_time_us;
  horus::Job job;
  job.id = id;
  job.name = name;
  job.demands = {{kGpu, demand}};
  return job;
}

// What the runtime would report: the step time now / alone. Here the second and the third job do each other harm.
double Metered(uint64_t job, const std::vector<uint64_t>& beside) {
  double slowdown = 1;
  for (const uint64_t other : beside) slowdown += job + other == 5 ? 1.3 : 0.1;
  return slowdown;
}

using Gpus = std::map<uint64_t, uint32_t>;  // where each job is

// Each tenant of each shared GPU, for three minutes.
void Observe(const char* title, const Gpus& gpus, const std::vector<horus::Job>& jobs, const horus::Interference& model,
             horus::Observations& observations) {
  const horus::SharedDevice device = {.gpu_type = kGpu, .sharing_mode = HORUS_SHARING_TIME_SLICE};
  std::printf("%s\n", title);
  for (const auto& [id, gpu] : gpus) {
    std::vector<uint64_t> beside;
    std::string names;
    std::vector<horus::Demand> tenants = {jobs[id - 1].demands[0].second};  // the job first
    for (const auto& [other, there] : gpus) {
      if (other == id || there != gpu) continue;
      beside.push_back(other);
      names += " job " + std::to_string(other);
      tenants.push_back(jobs[other - 1].demands[0].second);
    }
    if (beside.empty()) continue;
    const horus::Slowdown predicted = model.Slowdowns(device, tenants)[0];
    const double seen = Metered(id, beside);
    std::printf("  job %u on gpu %u beside%s: expected %.2fx, seen %.2fx\n", static_cast<unsigned>(id), gpu,
                names.c_str(), static_cast<double>(predicted.estimate), seen);
    for (int minute = 0; minute < 3; ++minute) {
      observations.AddSlowdown({.device = device,
                                .job = tenants[0],
                                .co_tenants = {tenants.begin() + 1, tenants.end()},
                                .slowdown = seen,
                                .predicted = predicted.estimate,
                                .predicted_upper = predicted.upper});
    }
  }
}

void Run() {
  horus::CheckAbi();
  horus::Cluster cluster;
  cluster.AddNode({.id = 1,
                   .name = "gpu-node",
                   .cpu_milli = 32'000,
                   .mem_mib = 131'072,
                   .devices = {{.gpu_type = kGpu}, {.gpu_type = kGpu}}});
  const std::vector<horus::Job> jobs = {MakeJob(1, "vision", 85, 190'000), MakeJob(2, "language", 30, 40'000),
                                        MakeJob(3, "speech", 25, 60'000)};
  std::optional<horus::Interference> model(std::in_place);  // the built-in "horus"
  horus::Placer placer({.interference = &*model});
  const horus::Plan plan = placer.MakePlan(cluster, jobs);
  Gpus gpus;
  for (size_t i = 0; i < plan.size(); ++i) {
    const horus::Decision decision = plan.at(i);
    std::printf("job %llu: %s\n", static_cast<unsigned long long>(decision.job), decision.text.c_str());
    gpus[decision.job] = decision.slots.at(0).device;
  }
  cluster.Apply(plan);

  horus::Observations observations;
  Observe("By the built-in model:", gpus, jobs, *model, observations);

  // A new model beside the old one: keep it where it predicts what was seen, else go on with the old one.
  horus::Interference learned = model->Commit(observations);
  horus::Observations again;
  Observe("By a model that learned from it:", gpus, jobs, learned, again);
  const auto error = [](const horus::Observations& seen) { return seen.calibration().error; };
  const bool better = error(again) <= error(observations);
  std::printf("The new model errs by %.0f %%, the old one by %.0f %%: the %s one is kept.\nReview:\n",
              100 * error(again), 100 * error(observations), better ? "new" : "old");
  if (better) model.emplace(std::move(learned));

  horus::Placer mender({.interference = &*model});
  const horus::Plan review = horus::Review(mender, cluster);
  for (const horus::TenantReview& one : horus::ReviewsOf(review)) {
    const char* const advice[] = {"stay", "move", "run alone"};
    std::printf("  job %u on gpu %u: slowed %.2fx, the GPU does %.2f of the work of one job alone: %s\n",
                static_cast<unsigned>(one.job), one.device, static_cast<double>(one.slowdown), one.pack_work,
                advice[one.advice]);
  }
  for (const horus::Move& move : horus::MovesOf(review)) {
    gpus[move.job] = move.to.at(0).device;
    std::printf("  job %u moves to gpu %u: %.2f of work gained\n", static_cast<unsigned>(move.job), gpus[move.job],
                move.gain);
  }
  cluster.Apply(review);
  horus::Observations after;
  Observe("After the review:", gpus, jobs, *model, after);
}

}  // namespace

int main() {
  try {
    Run();
    return 0;
  } catch (const horus::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
