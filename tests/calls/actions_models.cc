// SPDX-License-Identifier: Apache-2.0
// Actions of the handles beside the cluster: catalogues, interference models, observations, latencies, hostile bytes.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "calls/arguments.h"
#include "calls/corrupt.h"
#include "calls/harness.h"

namespace horus::calls {
namespace {

using CatalogueHandle = Handle<horus_catalogue, horus_catalogue_free>;
const horus_catalogue* const kBuiltIn = nullptr;

void ExtendCatalogue(Harness& harness) {
  Roomy<horus_gpu> gpu{HORUS_GPU_INIT};
  Roomy<horus_mig_profile> mig{HORUS_MIG_PROFILE_INIT};
  const horus_mig_profile* const profiles[] = {&mig.value};
  const char* const aliases[] = {"another-one"};
  gpu.value.name = harness.choices.OneIn(4) ? "k80" : "made-up-gpu";
  gpu.value.architecture = "Ampere";
  gpu.value.compute_capability = 80;
  gpu.value.sm_count = 100;
  gpu.value.fp32_gflops = gpu.value.fp16_gflops = 10'000;
  gpu.value.mem_mib = 16'384;
  gpu.value.mem_bandwidth_mb_s = 900'000;
  gpu.value.boost_clock_mhz = 1'400;
  gpu.value.l2_kib = 4'096;
  gpu.value.pcie_mb_s = 15'754;
  gpu.value.alias_count = 1;
  gpu.value.aliases = aliases;
  if (harness.choices.OneIn(2)) {
    mig.value.name = "1g.2gb";
    mig.value.compute_slices = mig.value.memory_slices = 1;
    mig.value.mem_mib = 2'048;
    mig.value.max_instances = 7;
    gpu.value.mig_count = 1;
    gpu.value.mig_profiles = profiles;
    MaybeCorrupt(harness.choices, harness.options.hostile, mig);
  }
  MaybeCorrupt(harness.choices, 4, gpu);
  const horus_gpu* const gpus[] = {&gpu.value};
  horus_catalogue* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_catalogue_extend, kBuiltIn, size_t{1}, gpus, &out);
  const CatalogueHandle catalogue(out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a catalogue comes with success alone");
  if (out == nullptr) return;
  const size_t last = horus_catalogue_count(out) - 1;
  horus_gpu read = HORUS_GPU_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_catalogue_get, out, last, &read) == HORUS_OK,
                  "the type that was added");
  size_t found = 0;
  harness.Require(HORUS_TRY(harness, kNone, horus_catalogue_find, out, read.name, &found) == HORUS_OK && found == last,
                  "a type by its name", last, found);
  harness.Require(read.mig_count == 0 || read.mig_profiles[0]->name != nullptr, "a MIG profile without a name");
}

void FindType(Harness& harness) {
  size_t index = 0;
  HORUS_TRY(harness, kNone, horus_catalogue_find, kBuiltIn,
            harness.choices.OneIn(2) ? HostileText(harness.choices) : harness.choices.Of(kGpuTypes), &index);
}

void NewModel(Harness& harness) {
  constexpr std::array<const char*, 5> kModels = {"horus", "utilisation", "iasp", "iapp", "no such model"};
  horus_interference* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_interference_create, harness.choices.Of(kModels), &out);
  KeepModel(harness, status, out);
}

void ModelFromTable(Harness& harness) {
  constexpr size_t kRows = 3;
  std::array<const char*, kRows> types = {"k80", "v100-sxm2-16gb", "a100-40gb"};
  std::array<uint64_t, kRows> a = {}, b = {};
  std::array<double, kRows> slow_a = {1.2, 1.5, 2}, slow_b = {1.1, std::nan(""), 3};
  for (size_t i = 0; i < kRows; ++i) {
    a[i] = harness.choices.Below(24);
    b[i] = 1 + harness.choices.Below(24);
  }
  if (harness.choices.OneIn(4)) slow_a[0] = std::bit_cast<double>(harness.choices.HostileBits());
  if (harness.choices.OneIn(8)) types[1] = HostileText(harness.choices);
  Roomy<horus_pair_table> table{HORUS_PAIR_TABLE_INIT};
  table.value.count = 1 + harness.choices.Below(kRows);
  table.value.gpu_types = types.data();
  table.value.profiles_a = a.data();
  table.value.profiles_b = b.data();
  table.value.slowdown_a = slow_a.data();
  table.value.slowdown_b = slow_b.data();
  MaybeCorrupt(harness.choices, harness.options.hostile, table);
  horus_interference* out = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_interference_from_table, kBuiltIn, &table.value, SomeModel(harness), &out);
  KeepModel(harness, status, out);
}

// Slower by a tenth for each neighbour; four tenants are too many for it.
int32_t SlowByCallback(void*, const horus_device*, size_t count, const horus_demand* const*, float* slowdown,
                       float* slowdown_upper) {
  if (count > 3) return 1;
  for (size_t i = 0; i < count; ++i) slowdown[i] = slowdown_upper[i] = 1.0f + 0.1f * static_cast<float>(count - 1);
  return 0;
}

void ModelFromCallback(Harness& harness) {
  horus_interference* out = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_interference_from_callback, kBuiltIn,
                harness.choices.OneIn(8) ? nullptr : SlowByCallback, &harness, harness.choices.Below(4), 0.0, &out);
  KeepModel(harness, status, out);
}

void ModelFromBytes(Harness& harness) {
  std::string bytes(harness.choices.Below(128), '\0');
  for (char& byte : bytes) byte = static_cast<char>(harness.choices.Below(256));
  horus_interference* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_interference_from_bytes, kBuiltIn, bytes.data(),
                                        bytes.size(), static_cast<const char*>(nullptr), &out);
  harness.Require(status != HORUS_OK && out == nullptr, "random bytes are no model");
  horus_observations* read = nullptr;
  harness.Require(
      HORUS_TRY(harness, kNone, horus_observations_restore, bytes.data(), bytes.size(), &read) != HORUS_OK &&
          read == nullptr,
      "random bytes are no observations");
  horus_predictor* predictor = nullptr;
  harness.Require(
      HORUS_TRY(harness, kNone, horus_predictor_from_bytes, bytes.data(), bytes.size(), &predictor) != HORUS_OK,
      "random bytes are no predictor");
  horus_graph* graph = nullptr;
  HORUS_TRY(harness, kNone, horus_graph_from_bytes, bytes.data(), bytes.size(),
            static_cast<const horus_graph_limits*>(nullptr), &graph);
  horus_graph_free(graph);
}

struct TenantsArgument {
  std::array<Roomy<horus_demand>, 4> demands;
  std::array<const horus_demand*, 4> pointers = {};
};

size_t MakeTenants(Harness& harness, TenantsArgument& out) {
  const size_t count = 1 + harness.choices.Below(out.demands.size());
  for (size_t i = 0; i < count; ++i) {
    MakeDemand(harness.choices, harness.options.hostile, out.demands[i]);
    out.pointers[i] = harness.choices.OneIn(8 * harness.options.hostile) ? nullptr : &out.demands[i].value;
  }
  return count;
}

void AskModel(Harness& harness) {
  TenantsArgument tenants;
  const size_t count = MakeTenants(harness, tenants);
  Roomy<horus_device> device{HORUS_DEVICE_INIT};
  device.value.gpu_type = harness.choices.Of(kGpuTypes);
  device.value.sharing_mode = static_cast<int32_t>(harness.choices.Below(4));
  MaybeCorrupt(harness.choices, harness.options.hostile, device);
  std::array<float, 4> slowdown = {}, upper = {};
  std::array<uint8_t, 16> measured = {};
  Roomy<horus_slowdowns> columns{HORUS_SLOWDOWNS_INIT};
  columns.value.slowdown = slowdown.data();
  columns.value.slowdown_upper = upper.data();
  columns.value.measured = measured.data();
  const horus_status status = HORUS_TRY(harness, kNone, horus_interference_slowdown, SomeModel(harness), kBuiltIn,
                                        &device.value, count, tenants.pointers.data(), 0.0, &columns.value);
  for (size_t i = 0; i < count; ++i) {
    if (status == HORUS_OK) {
      harness.Require(slowdown[i] >= 1 && upper[i] >= slowdown[i], "slowdowns are at least 1", i);
    } else {
      harness.Require(slowdown[i] == 0 && upper[i] == 0, "outputs of a call that failed", i);
    }
  }
}

void Observe(Harness& harness) {
  TenantsArgument tenants;
  const size_t count = MakeTenants(harness, tenants);
  for (size_t i = 0; i < count; ++i) tenants.demands[i].value.profile_id = 1 + harness.choices.Below(24);
  Roomy<horus_slowdown_observation> seen{HORUS_SLOWDOWN_OBSERVATION_INIT};
  seen.value.gpu_type = harness.choices.Of(kGpuTypes);
  seen.value.job = &tenants.demands[0].value;
  seen.value.co_tenant_count = count;
  seen.value.co_tenants = tenants.pointers.data();
  seen.value.slowdown = 1 + 0.1 * static_cast<double>(harness.choices.Below(20));
  seen.value.device_id = harness.choices.Below(16);
  MaybeCorrupt(harness.choices, harness.options.hostile, seen);
  HORUS_TRY(harness, kNone, horus_observations_add_slowdown, harness.observations.get(), kBuiltIn, &seen.value);
  Roomy<horus_demand_observation> demand{HORUS_DEMAND_OBSERVATION_INIT};
  demand.value.measured = static_cast<uint32_t>(harness.choices.Below(17));
  demand.value.profile_id = 1 + harness.choices.Below(24);
  demand.value.gpu_type = harness.choices.Of(kGpuTypes);
  demand.value.gpu_util_pct = static_cast<double>(harness.choices.Below(102));
  demand.value.mem_mib = static_cast<double>(harness.choices.Below(16'384));
  demand.value.step_time_us = static_cast<double>(harness.choices.Below(65'536));
  MaybeCorrupt(harness.choices, harness.options.hostile, demand);
  HORUS_TRY(harness, kNone, horus_observations_add_demand, harness.observations.get(), kBuiltIn, &demand.value);
}

// What a resident is seen to lose where it is, or where it is not.
void ObserveResident(Harness& harness) {
  Roomy<horus_slowdown_observation> seen{HORUS_SLOWDOWN_OBSERVATION_INIT};
  seen.value.cluster = harness.cluster.get();
  seen.value.job_id = harness.SomeJob();
  seen.value.node_id = harness.SomeNode();
  seen.value.device = static_cast<uint32_t>(harness.choices.Below(4));
  if (const auto job = harness.jobs.find(seen.value.job_id); job != harness.jobs.end() && !harness.choices.OneIn(4)) {
    seen.value.node_id = job->second.slots.front().node;
    seen.value.device = job->second.slots.front().device;
  }
  seen.value.slowdown = 1 + 0.1 * static_cast<double>(harness.choices.Below(20));
  MaybeCorrupt(harness.choices, harness.options.hostile, seen);
  HORUS_TRY(harness, kNone, horus_observations_add_slowdown, harness.observations.get(), kBuiltIn, &seen.value);
}

void CommitObservations(Harness& harness) {
  horus_interference* out = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_interference_commit, SomeModel(harness), kBuiltIn, harness.observations.get(),
                static_cast<horus_progress>(nullptr), static_cast<void*>(nullptr), &out);
  KeepModel(harness, status, out);
  if (out == nullptr) return;
  size_t count = 0;
  HORUS_TRY(harness, kNone, horus_interference_get_changes, out, size_t{0}, nullptr, nullptr, nullptr, &count);
}

void SaveObservations(Harness& harness) {
  // A commit costs by all that was seen, up to 16,384 sets: a long run that never forgot would slow down.
  constexpr uint64_t kSavesToForget = 32;
  if (harness.choices.OneIn(kSavesToForget)) return harness.BeginObservations();
  size_t size = 0, again = 0;
  HORUS_TRY(harness, kNone, horus_observations_snapshot, harness.observations.get(), size_t{0}, nullptr, &size);
  std::string bytes(size, '\0');
  harness.Require(HORUS_TRY(harness, kNone, horus_observations_snapshot, harness.observations.get(), size, bytes.data(),
                            &again) == HORUS_OK &&
                      again == size,
                  "observations are saved", size, again);
  const bool damaged = harness.choices.OneIn(2) && size > 0;
  if (damaged) bytes[harness.choices.Below(size)] ^= static_cast<char>(1 + harness.choices.Below(255));
  horus_observations* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_observations_restore, bytes.data(), bytes.size(), &out);
  ObservationsHandle restored(out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "observations come with success alone");
  harness.Require(damaged ? status != HORUS_OK : status == HORUS_OK, "damage is seen, and nothing else");
  if (out != nullptr) harness.observations = std::move(restored);
  horus_calibration calibration = HORUS_CALIBRATION_INIT;
  HORUS_TRY(harness, kNone, horus_observations_get_calibration, harness.observations.get(), &calibration);
}

void Latency(Harness& harness) {
  Roomy<horus_request_load> load{HORUS_REQUEST_LOAD_INIT};
  load.value.requests_per_s = static_cast<double>(harness.choices.Below(256));
  load.value.service_us = static_cast<double>(1 + harness.choices.Below(10'000));
  load.value.service_cv = 0.5;
  MaybeCorrupt(harness.choices, harness.options.hostile, load);
  horus_latency latency = HORUS_LATENCY_INIT;
  if (HORUS_TRY(harness, kNone, horus_latency_predict, &load.value, &latency) == HORUS_OK) {
    harness.Require(latency.utilisation >= 0 && latency.mean_us >= 0 && latency.p99_us >= 0, "a latency");
  }
  double slowdown = -1;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_latency_largest_slowdown, &load.value,
                harness.choices.OneIn(8) ? std::bit_cast<double>(harness.choices.HostileBits()) : 1e5, &slowdown);
  harness.Require(status == HORUS_OK ? slowdown == 0 || (slowdown >= 1 && slowdown <= 1e9) : slowdown == -1,
                  "the largest slowdown");
}

void Names(Harness& harness) {
  const auto number = static_cast<int32_t>(harness.choices.HostileBits());
  harness.Require(horus_status_name(number) != nullptr && horus_reason_name(number) != nullptr &&
                      horus_reason_text(number) != nullptr,
                  "a name for every number");
  (void)horus_feature_name(harness.choices.HostileBits());
  (void)horus_catalogue_count(nullptr);
  HORUS_TRY(harness, kNone, horus_abi_check, static_cast<uint32_t>(harness.choices.HostileBits()));
}

}  // namespace

horus_library_info Library() {
  horus_library_info info = HORUS_LIBRARY_INFO_INIT;
  (void)horus_library_get_info(&info, nullptr);
  return info;
}

horus_interference_info InfoOf(const horus_interference* model) {
  horus_interference_info info = HORUS_INTERFERENCE_INFO_INIT;
  (void)horus_interference_get_info(model, &info, nullptr);
  return info;
}

void KeepModel(Harness& harness, horus_status status, horus_interference* model) {
  harness.Require((status == HORUS_OK) == (model != nullptr), "a model comes with success alone");
  if (model == nullptr) return;
  harness.Require(InfoOf(model).name != nullptr, "a model without a name");
  constexpr size_t kMostModels = 3;
  if (harness.models.size() >= kMostModels) harness.models.erase(harness.models.begin());
  harness.models.emplace_back(model);
}

const horus_interference* SomeModel(Harness& harness) {
  return harness.models.empty() ? nullptr : harness.models[harness.choices.Below(harness.models.size())].get();
}

std::vector<Action> ModelActions() {
  return {{ExtendCatalogue, 2},  {FindType, 8}, {NewModel, 1}, {ModelFromTable, 2},  {ModelFromCallback, 1},
          {ModelFromBytes, 2},   {AskModel, 8}, {Observe, 8},  {ObserveResident, 4}, {CommitObservations, 1},
          {SaveObservations, 1}, {Latency, 8},  {Names, 4}};
}

}  // namespace horus::calls
