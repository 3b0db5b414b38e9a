// SPDX-License-Identifier: Apache-2.0
// What two jobs lose when they share a GPU, before and after they were seen doing so: ask -> observe three times ->
// commit -> ask again. Usage: interference
#include <cstdio>
#include <horus/horus.hpp>
#include <vector>

namespace {

// What a job asks of the GPU alone, measured here; horus::Predictor predicts it from a graph (place.cpp).
horus::Demand MeasuredAlone(uint64_t profile_id, float gpu_util_pct, int64_t step_time_us, float operator_us) {
  horus::Demand demand;
  demand.flags = HORUS_DEMAND_GIVEN;
  demand.profile_id = profile_id;  // how observations know the job again
  demand.gpu_util_pct = gpu_util_pct;
  demand.step_time_us = step_time_us;
  demand.operator_us = operator_us;
  return demand;
}

void Print(const char* when, const std::vector<horus::Slowdown>& slowdowns) {
  std::printf("%s:", when);
  for (const horus::Slowdown& slowdown : slowdowns) {
    std::printf("  %.2f times its own step time (bound %.2f)", static_cast<double>(slowdown.estimate),
                static_cast<double>(slowdown.upper));
  }
  std::printf("\n");
}

void Run() {
  horus::CheckAbi();
  const horus::SharedDevice device = {.gpu_type = "v100-pcie-16gb", .sharing_mode = HORUS_SHARING_TIME_SLICE};
  const std::vector<horus::Demand> tenants = {MeasuredAlone(1, 85, 190'000, 900), MeasuredAlone(2, 40, 25'000, 60)};

  const horus::Interference model;  // the built-in "horus"
  const std::vector<horus::Slowdown> before = model.Slowdowns(device, tenants);
  Print("before", before);

  // The first job ran beside the second; its steps took longer than predicted.
  horus::Observations observations;
  for (const double factor : {1.30, 1.24, 1.27}) {
    observations.AddSlowdown({.device = device,
                              .job = tenants[0],
                              .co_tenants = {tenants[1]},
                              .slowdown = before[0].estimate * factor,
                              .predicted = before[0].estimate,
                              .predicted_upper = before[0].upper,
                              .device_id = 7});
  }
  for (const horus::ObservedTenant& seen : observations.Devices()) {
    std::printf("device %llu, job %llu: predicted %.2f, last seen %.2f\n",
                static_cast<unsigned long long>(seen.device_id), static_cast<unsigned long long>(seen.profile_id),
                seen.predicted, seen.observed);
  }

  // A new model; whoever holds the old one keeps its answers. Give it to a placer: PlacerOptions::interference.
  const horus::Interference learned = model.Commit(observations);
  for (const horus::ChangedJob& changed : learned.Changes()) {
    std::printf("changed: job %llu on %s\n", static_cast<unsigned long long>(changed.profile_id),
                changed.gpu_type.c_str());
  }
  Print("after ", learned.Slowdowns(device, tenants));
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
