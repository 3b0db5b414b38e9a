// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as a bundle of interference models; what is accepted answers with slowdowns.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "interference/learned_model.h"
#include "interference/pair_bundle.h"
#include "reseal.h"
#include "trees/bundle.h"

namespace {

using horus::Demand;

// Of which nothing, little and all is known.
std::vector<Demand> Jobs() {
  Demand busy{.profile_id = 1, .gpu_util_pct = {95, 100}, .step_time_us = {200'000, 300'000}, .operator_us = 700};
  busy.traits[static_cast<size_t>(horus::Trait::kLogKernels)] = 3;
  const Demand idle{.profile_id = 2, .gpu_util_pct = {1, 5}, .step_time_us = {1, 1}};
  return {Demand{}, idle, busy};
}

void Ask(const horus::LearnedModel& model, const horus::Catalogue& catalogue) {
  const std::vector<Demand> jobs = Jobs();
  const std::vector<const Demand*> tenants = {jobs.data(), &jobs[1], &jobs[2]};
  if (model.bytes_held() == 0) std::abort();
  for (const char* gpu : {"v100", "t4", "h100"}) {
    const auto type = catalogue.Find(gpu);
    for (const horus::SharingMode mode : {horus::SharingMode::kTimeSlice, horus::SharingMode::kMps}) {
      std::vector<horus::Slowdown> out(tenants.size());
      const horus::DeviceContext device{.type = type.ok() ? *type : horus::GpuTypeId(9999), .mode = mode};
      if (!model.Predict(device, tenants, out).ok()) std::abort();
      for (const horus::Slowdown& s : out) {
        if (!(s.estimate >= 1 && s.upper >= s.estimate && s.upper <= horus::kMaxSlowdown)) std::abort();
      }
    }
  }
}

void Check(const std::string& bytes) {
  const auto bundle = horus::ReadBundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!bundle.ok()) return;  // bundle_fuzz.cc looks at those
  const auto catalogue = horus::Catalogue::Default();
  for (const std::string_view kind : horus::LearnedModelNames()) {
    const auto model = horus::LearnedModel::Create(*bundle, kind, *catalogue);
    if (model.ok()) {
      Ask(**model, *catalogue);
    } else if (model.status().message().empty()) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check(bytes);
  if (horus::Reseal(bytes)) Check(bytes);
  return 0;
}
