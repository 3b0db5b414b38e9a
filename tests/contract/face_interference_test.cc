// SPDX-License-Identifier: Apache-2.0
// interference.hpp and observations.hpp: models asked, saved, trained, corrected and used in a placer, from C++.
#include <cmath>
#include <type_traits>

#include "face_check.h"

namespace {

constexpr char kGpu[] = "v100-pcie-16gb";

// Job `index`: the higher, the busier and the longer its kernels.
horus::Demand DemandOf(uint64_t index) {
  horus::Demand demand;
  demand.profile_id = 100 + index;
  demand.gpu_util_pct = 40.0f + 10.0f * static_cast<float>(index);
  demand.mem_mib = 1'000;
  demand.step_time_us = 20'000 + 5'000 * static_cast<int64_t>(index);
  demand.operator_us = 100.0f * static_cast<float>(1 + index);
  return demand;
}

horus::SlowdownObservation Observed(double slowdown) {
  return {.device = {.gpu_type = kGpu},
          .job = DemandOf(0),
          .co_tenants = {DemandOf(1)},
          .slowdown = slowdown,
          .predicted = 2,
          .predicted_upper = 2.5,
          .device_id = 9};
}

std::vector<horus::Slowdown> Beside(const horus::Interference& model, uint64_t a, uint64_t b) {
  const std::vector<horus::Demand> tenants = {DemandOf(a), DemandOf(b)};
  return model.Slowdowns({.gpu_type = kGpu}, tenants);
}

// Both of jobs 0 and 1 slow down so.
horus::PairTable TableOf(double slowdown) {
  return {.pairs = {
              {.gpu_type = kGpu, .profile_a = 100, .profile_b = 101, .slowdown_a = slowdown, .slowdown_b = slowdown}}};
}

void ModelsAreMadeByNameAndAsked() {
  static_assert(!std::is_copy_constructible_v<horus::Interference>);
  static_assert(std::is_nothrow_move_constructible_v<horus::Interference>);
  CHECK(horus::Interference().name() == "horus");
  horus::Interference first("utilisation");
  const horus::Interference model = std::move(first);
  CHECK(model.name() == "utilisation" && model.epoch() != horus::Interference().epoch());
  const auto slowdowns = Beside(model, 2, 4);  // 60 % and 80 % busy
  CHECK(slowdowns.size() == 2 && slowdowns[0] == slowdowns[1] && slowdowns[0].estimate == 1.4f);
  CHECK(slowdowns[0].upper >= slowdowns[0].estimate && horus::BytesHeld(model) > 0 && model.Changes().empty());
  const std::vector<horus::Demand> two = {DemandOf(0), DemandOf(0)};
  const auto slice = model.Slowdowns({kGpu, HORUS_SHARING_MIG, 0.5}, two);
  CHECK(std::abs(slice[0].estimate - 1.6f) < 1e-6f);
  CHECK(model.Slowdowns({.gpu_type = kGpu}, {}).empty());
}

void FailuresThrowTheirStatus() {
  const horus::Interference model;
  horus::Observations observations;
  const std::vector<horus::Demand> one = {DemandOf(0)};
  CHECK(StatusOf([] { horus::Interference oracle("oracle"); }) == HORUS_ERR_NOT_FOUND);
  CHECK(StatusOf([&] { (void)model.Slowdowns({.gpu_type = "abacus"}, one); }) == HORUS_ERR_NOT_FOUND);
  CHECK(StatusOf([&] { (void)model.Slowdowns({}, one); }) == HORUS_ERR_INVALID_ARGUMENT);
  CHECK(StatusOf([&] { (void)model.Bundle(); }) == HORUS_ERR_UNSUPPORTED);
  CHECK(StatusOf([&] { (void)horus::Interference::FromTable(TableOf(1e9)); }) == HORUS_ERR_INVALID_ARGUMENT);
  CHECK(StatusOf([&] { observations.AddSlowdown(Observed(NAN)); }) == HORUS_ERR_INVALID_ARGUMENT);
  CHECK(StatusOf([&] { observations.AddSlowdown({}); }) != HORUS_OK);
  CHECK(StatusOf([&] { (void)horus::Interference::FromCallback(nullptr, nullptr, 1); }) == HORUS_ERR_INVALID_ARGUMENT);
  const std::vector<std::byte> noise(64);
  CHECK(StatusOf([&] { (void)horus::Interference::FromBytes(noise); }) != HORUS_OK);
  CHECK(observations.Devices().empty() && observations.calibration().predictions == 0);
}

void TablesAnswerWithWhatWasMeasured() {
  const horus::Interference fallback("utilisation");
  const horus::Interference model = horus::Interference::FromTable(TableOf(1.75), &fallback);
  CHECK(model.name() == "table" && Beside(model, 0, 1)[0].estimate == 1.75f);
  CHECK(Beside(model, 0, 2) == Beside(fallback, 0, 2));
  const std::vector<horus::Demand> tenants = {DemandOf(0), DemandOf(1), DemandOf(2)};
  CHECK(model.Measured({.gpu_type = kGpu}, tenants) == (std::vector<uint8_t>{1, 1, 0, 1, 1, 0, 0, 0, 1}));
  horus::PairTable half = TableOf(1.75);
  half.pairs[0].slowdown_b = horus::kNotMeasured;
  CHECK(Beside(horus::Interference::FromTable(half, &fallback), 1, 0)[0] == Beside(fallback, 1, 0)[0]);
}

void ACommitMovesAnswersAndSaysWhose() {
  const horus::Interference before;
  horus::Observations observations;
  for (int i = 0; i < 3; ++i) observations.AddSlowdown(Observed(3));
  const horus::Interference after = before.Commit(observations);
  CHECK(Beside(after, 0, 1)[0].estimate > Beside(before, 0, 1)[0].estimate && after.epoch() != before.epoch());
  const std::vector<horus::ChangedJob> changes = after.Changes();
  // 0: every job, on a GPU type that the model was not trained on.
  CHECK(changes.size() == 3 && changes[0] == (horus::ChangedJob{kGpu, HORUS_SHARING_TIME_SLICE, 0}));
  CHECK(changes[1] == (horus::ChangedJob{kGpu, HORUS_SHARING_TIME_SLICE, 100}));

  const horus::Observations restored(observations.Snapshot());
  const auto seen = restored.Devices();
  CHECK(seen.size() == 1 && seen[0].device_id == 9 && seen[0].profile_id == 100 && seen[0].times == 3);
  CHECK(seen[0].observed == 3 && seen[0].predicted == 2 && seen[0].predicted_upper == 2.5);
  CHECK(restored.calibration().predictions > 2.9 && std::abs(restored.calibration().error - 0.5) < 1e-12);
  CHECK(Beside(before.Commit(restored), 0, 1) == Beside(after, 0, 1) && horus::BytesHeld(restored) > 0);
}

// The smallest set that trains: six jobs of six families, each pair once.
horus::PairData RunsOfSix() {
  constexpr uint32_t kJobs = 6;
  horus::PairData data = {.devices = {{.gpu_type = kGpu}}};
  for (uint32_t i = 0; i < kJobs; ++i) {
    data.jobs.push_back({.family = std::string(1, static_cast<char>('a' + i)), .demands = {DemandOf(i)}});
    for (uint32_t j = 0; j < i; ++j) {
      data.runs.push_back({.job_a = i, .job_b = j, .slowdown_a = 1.2 + 0.1 * j, .slowdown_b = 1.2 + 0.1 * i});
    }
  }
  return data;
}

void ModelsAreTrainedAndReadAgain() {
  horus::PairData data = RunsOfSix();
  const horus_status trained = StatusOf([&] { (void)horus::FitInterference(data); });
  if (trained == HORUS_ERR_UNSUPPORTED) return;  // a build without graphs trains nothing
  const horus::Interference model = horus::FitInterference(data, {.promise = 0.5});
  CHECK(std::abs(Beside(model, 5, 4)[0].estimate - 1.6f) < 0.1f);
  const std::vector<std::byte> bundle = model.Bundle();
  CHECK(Beside(horus::Interference::FromBytes(bundle), 5, 0) == Beside(model, 5, 0));
  CHECK(StatusOf([&] { (void)horus::Interference::FromBytes(bundle, "iasp"); }) == HORUS_ERR_NOT_FOUND);
  CHECK(StatusOf([&] { (void)horus::FitInterference(data, {.model = "oracle"}); }) == HORUS_ERR_NOT_FOUND);
  data.jobs[3].demands.clear();
  CHECK(StatusOf([&] { (void)horus::FitInterference(data); }) == HORUS_ERR_INVALID_ARGUMENT);
}

int32_t SlowsThreefold(void*, const horus_device*, size_t count, const horus_demand* const*, float* slowdown, float*) {
  for (size_t i = 0; i < count; ++i) slowdown[i] = count > 1 ? 3 : 1;
  return 0;
}

// The second of two jobs on a cluster of one GPU.
horus::Decision SecondDecision(const horus::Interference& model) {
  horus::Cluster cluster;
  cluster.AddNode({.id = 1, .cpu_milli = 16'000, .mem_mib = 65'536, .devices = {{.gpu_type = kGpu}}});
  horus::Placer placer({.slowdown_bound = 1.5f, .interference = &model});
  horus::Decision decision;
  for (uint64_t id = 0; id < 2; ++id) {
    const horus::Plan plan = placer.MakePlan(cluster, {.id = id + 1, .demands = {{"", DemandOf(id)}}});
    decision = plan.at(0);
    cluster.Apply(plan);
  }
  return decision;
}

void PlacersAskTheModelTheyAreGiven() {
  const horus::Decision shared = SecondDecision(horus::Interference::FromTable(TableOf(1.125)));
  CHECK(shared.placed() && shared.slowdown == 1.125f && shared.effects.size() == 2);
  CHECK(!SecondDecision(horus::Interference::FromTable(TableOf(1.75))).placed());
  CHECK(!SecondDecision(horus::Interference::FromCallback(SlowsThreefold, nullptr, 1)).placed());
}

void LatencyFollowsFromSlowdown() {
  const horus::RequestLoad load = {.requests_per_s = 500, .service_us = 1'000, .service_cv = 1};
  CHECK(std::abs(horus::PredictLatency(load).mean_us - 2'000) < 1e-6);
  const double largest = horus::LargestSlowdown(load, 20'000);
  CHECK(largest > 1 && largest < 2);
  CHECK(horus::PredictLatency({.requests_per_s = 500, .service_us = 1'000, .slowdown = largest, .service_cv = 1})
            .p99_us <= 20'000);
  CHECK(StatusOf([&] { (void)horus::PredictLatency({}); }) == HORUS_ERR_INVALID_ARGUMENT);
  CHECK(StatusOf([&] { (void)horus::LargestSlowdown(load, NAN); }) == HORUS_ERR_INVALID_ARGUMENT);
}

}  // namespace

int main() {
  ModelsAreMadeByNameAndAsked();
  FailuresThrowTheirStatus();
  TablesAnswerWithWhatWasMeasured();
  ACommitMovesAnswersAndSaysWhose();
  ModelsAreTrainedAndReadAgain();
  PlacersAskTheModelTheyAreGiven();
  LatencyFollowsFromSlowdown();
  return report();
}
