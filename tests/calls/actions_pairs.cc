// SPDX-License-Identifier: Apache-2.0
// Actions of interference models that are learned from measured pairs, and of their bundles.
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "calls/arguments.h"
#include "calls/corrupt.h"
#include "calls/harness.h"

namespace horus::calls {
namespace {

constexpr size_t kJobs = 4, kRuns = 10;
const horus_catalogue* const kBuiltIn = nullptr;

struct PairsArgument {
  Roomy<horus_pair_data> data{HORUS_PAIR_DATA_INIT};
  std::array<const char*, 1> gpu_types = {};
  std::array<const char*, kJobs> families = {"a", "a", "b", "c"};
  std::array<Roomy<horus_demand>, kJobs> demands;
  std::array<const horus_demand*, kJobs> pointers = {};
  std::array<uint32_t, kRuns> devices = {}, a = {}, b = {};
  std::array<double, kRuns> slowdown_a = {}, slowdown_b = {};
};

// Every pair of the four jobs, two copies of one included.
void MakePairs(Harness& harness, PairsArgument& out) {
  out.gpu_types[0] = harness.choices.OneIn(32) ? HostileText(harness.choices) : harness.choices.Of(kGpuTypes);
  for (size_t i = 0; i < kJobs; ++i) {
    MakeDemand(harness.choices, 8 * harness.options.hostile, out.demands[i]);
    out.demands[i].value.profile_id = i + 1;
    out.pointers[i] = &out.demands[i].value;
  }
  size_t row = 0;
  for (uint32_t a = 0; a < kJobs; ++a) {
    for (uint32_t b = a; b < kJobs; ++b, ++row) {
      out.a[row] = a;
      out.b[row] = b;
      out.slowdown_a[row] = 1 + 0.1 * static_cast<double>(harness.choices.Below(16));
      out.slowdown_b[row] = 1 + 0.1 * static_cast<double>(harness.choices.Below(16));
    }
  }
  if (harness.choices.OneIn(8)) out.slowdown_a[0] = std::bit_cast<double>(harness.choices.HostileBits());
  if (harness.choices.OneIn(8)) out.a[1] = static_cast<uint32_t>(harness.choices.HostileBits());
  horus_pair_data& data = out.data.value;
  data.device_count = out.gpu_types.size();
  data.gpu_types = out.gpu_types.data();
  data.job_count = kJobs;
  data.families = out.families.data();
  data.demands = out.pointers.data();
  data.count = kRuns;
  data.devices = out.devices.data();
  data.jobs_a = out.a.data();
  data.jobs_b = out.b.data();
  data.slowdown_a = out.slowdown_a.data();
  data.slowdown_b = out.slowdown_b.data();
  MaybeCorrupt(harness.choices, harness.options.hostile, out.data);
}

int32_t GoOnMostly(void* user, double) { return static_cast<Harness*>(user)->choices.OneIn(64) ? 1 : 0; }

void FitPairs(Harness& harness) {
  if (harness.fits++ >= harness.options.max_fits) return;
  constexpr std::array<const char*, 4> kModels = {"horus", "iasp", "iapp", "no such model"};
  PairsArgument pairs;
  MakePairs(harness, pairs);
  Roomy<horus_pair_options> options{HORUS_PAIR_OPTIONS_INIT};
  options.value.model = harness.choices.Of(kModels);
  options.value.promise = 0.6;
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  horus_interference* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_interference_fit, kBuiltIn, &pairs.data.value,
                                        &options.value, GoOnMostly, static_cast<void*>(&harness), &out);
  KeepModel(harness, status, out);
  if (out != nullptr) harness.Note(InfoOf(out).epoch);
}

void SaveModel(Harness& harness) {
  const horus_interference* model = SomeModel(harness);
  size_t size = 0;
  const horus_status room = HORUS_TRY(harness, kNone, horus_interference_to_bytes, model, size_t{0}, nullptr, &size);
  if (room != HORUS_OK) return;
  std::string bytes(size, '\0'), again(size, '\0');
  harness.Require(HORUS_TRY(harness, kNone, horus_interference_to_bytes, model, size, bytes.data(), &size) == HORUS_OK,
                  "a bundle into enough room");
  const bool damaged = harness.choices.OneIn(2);
  if (damaged) bytes[harness.choices.Below(size)] ^= static_cast<char>(1 + harness.choices.Below(255));
  const std::string name = InfoOf(model).name;
  horus_interference* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_interference_from_bytes, kBuiltIn, bytes.data(),
                                        bytes.size(), name.c_str(), &out);
  harness.Require(damaged ? status != HORUS_OK : status == HORUS_OK, "damage is seen, and nothing else");
  if (out != nullptr) {
    harness.Require(
        HORUS_TRY(harness, kNone, horus_interference_to_bytes, out, size, again.data(), &size) == HORUS_OK &&
            again == bytes,
        "a bundle's bytes come back");
  }
  KeepModel(harness, status, out);
}

void LookAtObservedDevices(Harness& harness) {
  constexpr size_t kRoom = 64;
  std::array<uint64_t, kRoom> devices = {}, times = {};
  std::array<double, kRoom> observed = {};
  size_t count = 0;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_observations_get_devices, harness.observations.get(), kRoom, devices.data(),
                nullptr, observed.data(), nullptr, nullptr, times.data(), &count);
  harness.Require((status == HORUS_OK) == (count <= kRoom), "observed devices that fit", kRoom, count);
  for (size_t i = 0; status == HORUS_OK && i < count; ++i) {
    harness.Require(devices[i] != 0 && observed[i] > 0 && times[i] > 0, "an observed device", i);
  }
}

}  // namespace

std::vector<Action> PairActions() { return {{FitPairs, 1}, {SaveModel, 1}, {LookAtObservedDevices, 1}}; }

}  // namespace horus::calls
