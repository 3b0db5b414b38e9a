// SPDX-License-Identifier: Apache-2.0
// Fuzz target: restores observed slowdowns from any bytes; what is accepted saves the same bytes, keeps its limits,
// takes one more observation and corrects a model.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "interference/corrected_model.h"
#include "interference/observed_slowdowns.h"
#include "interference/registry.h"

namespace {

using horus::Demand;

void CheckCorrections(const horus::ObservedSlowdowns& observed) {
  const auto model = horus::CorrectedModel::Commit(std::make_shared<const horus::UtilisationModel>(), observed,
                                                   *horus::Catalogue::Default());
  if (!model.ok()) std::abort();
  std::vector<Demand> jobs(3);
  for (uint64_t i = 0; i < jobs.size(); ++i) jobs[i] = {.profile_id = i + 1, .gpu_util_pct = {70, 80}};
  const std::vector<const Demand*> tenants = {&jobs[0], &jobs[1], &jobs[2]};
  for (const size_t count : {size_t{2}, size_t{3}}) {
    std::vector<horus::Slowdown> out(count);
    const horus::DeviceContext device{.type = horus::GpuTypeId(0)};
    if (!(*model)->Predict(device, std::span(tenants).first(count), out).ok()) std::abort();
    for (const horus::Slowdown& s : out) {
      if (!(s.estimate >= 1 && s.upper >= s.estimate && s.upper <= horus::kMaxSlowdown)) std::abort();
    }
  }
}

void Check(const std::string& bytes) {
  auto restored = horus::ObservedSlowdowns::Restore({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!restored.ok()) {
    if (restored.status().message().empty()) std::abort();
    return;
  }
  if (restored->Save() != bytes) std::abort();
  if (restored->situations().size() > restored->capacity() ||
      restored->DevicesOldestFirst().size() > restored->capacity()) {
    std::abort();
  }
  CheckCorrections(*restored);
  const Demand victim{.profile_id = 1}, other{.profile_id = 2};
  const std::vector<const Demand*> others = {&other};
  const uint64_t before = restored->epoch();
  if (!restored->Add({.gpu = "v100", .victim = &victim, .others = others, .slowdown = 2, .device_id = 1}).ok())
    std::abort();
  if (restored->epoch() != before + 1 || restored->situations().size() > restored->capacity()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check(bytes);
  // Makes the checksum fit, so that mutated bytes reach the code behind it: 8 magic, 4 version, 8 checksum, then the
  // body.
  constexpr size_t kHashAt = 12, kBody = 20;
  if (size < kBody) return 0;
  const uint64_t hash = horus::Hash64(bytes.data() + kBody, size - kBody);
  std::memcpy(bytes.data() + kHashAt, &hash, sizeof hash);
  Check(bytes);
  return 0;
}
