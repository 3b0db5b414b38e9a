// SPDX-License-Identifier: Apache-2.0
// Interning of tenant classes and device states.
#include "place/state/device_states.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/hash.h"
#include "base/seeded_hash.h"
#include "base/units.h"
#include "interference/laws.h"

namespace horus {
namespace {

uint64_t Bits(float value) { return std::bit_cast<uint32_t>(value == 0 ? 0.0f : value); }  // -0 equals 0

uint64_t Add(uint64_t seed, const Bounded& value) {
  return CombineHash(seed, Bits(value.estimate) << 32 | Bits(value.upper));
}

uint64_t Add(uint64_t seed, const BoundedInt& value) {
  return CombineHash(CombineHash(seed, static_cast<uint64_t>(value.estimate)), static_cast<uint64_t>(value.upper));
}

uint64_t StableHashOf(const Demand& demand) {
  uint64_t hash = CombineHash(demand.profile_id, demand.flags);
  hash = Add(hash, demand.gpu_util_pct);
  hash = Add(hash, demand.mem_bw_util_pct);
  hash = Add(hash, demand.mem_mib);
  hash = Add(hash, demand.step_time_us);
  hash = Add(hash, demand.power_w);
  hash = CombineHash(hash, static_cast<uint64_t>(demand.gradient_mib));
  hash = CombineHash(hash, Bits(demand.distance) << 32 | Bits(demand.operator_us));
  if (demand.sm_cap != 1) hash = CombineHash(hash, Bits(demand.sm_cap));
  if (demand.slowdown_bound != 0) hash = CombineHash(hash, Bits(demand.slowdown_bound));
  if (demand.host_us != 0) hash = CombineHash(hash, std::bit_cast<uint64_t>(demand.host_us));
  for (size_t i = 0; i < kTraitCount; i += 2)
    hash = CombineHash(hash, Bits(demand.traits[i]) << 32 | Bits(demand.traits[i + 1]));
  return hash;
}
static_assert(kTraitCount % 2 == 0);

// Of what the job states, `weight` and `worth` too: snapshots hold it, and what follows from it may be worked out
// otherwise one day.
uint64_t StableHashOf(const TenantClass& tenant, float weight, float worth) {
  uint64_t hash = CombineHash(StableHashOf(tenant.demand), Bits(tenant.promise.bound) << 32 |
                                                               static_cast<uint64_t>(tenant.gpu_milli) << 1 |
                                                               uint64_t{tenant.exclusive});
  hash = CombineHash(hash, static_cast<uint64_t>(tenant.gpus));
  hash = CombineHash(hash, static_cast<uint64_t>(static_cast<uint32_t>(tenant.priority)) << 32 |
                               static_cast<uint64_t>(tenant.kind) << 1 | uint64_t{tenant.distributed});
  // What most jobs do not state leaves the hash alone.
  if (tenant.promise.confidence != 0) hash = CombineHash(hash, Bits(tenant.promise.confidence));
  if (weight != 1) hash = CombineHash(hash, Bits(weight));
  if (worth != weight) hash = CombineHash(hash, Bits(worth));
  const int64_t upper = tenant.demand.mem_mib.upper;
  if (tenant.memory != GpuMemory{upper, upper}) {
    hash = CombineHash(CombineHash(hash, static_cast<uint64_t>(tenant.memory.request_mib)),
                       static_cast<uint64_t>(tenant.memory.limit_mib));
  }
  if (tenant.late != LateAlone()) hash = CombineHash(hash, Bits(tenant.late.bound_us) << 32 | Bits(tenant.late.p99_us));
  return hash;
}

// Equal of equal classes alone.
constexpr size_t kWordsBeforeTraits = 22;
using ClassWords = std::array<uint64_t, kWordsBeforeTraits + kTraitCount / 2>;
ClassWords WordsOf(const TenantClass& tenant) {
  const auto pair = [](float a, float b) { return Bits(a) << 32 | Bits(b); };
  const auto bounded = [&](const Bounded& value) { return pair(value.estimate, value.upper); };
  const auto whole = [](int64_t value) { return static_cast<uint64_t>(value); };
  const Demand& demand = tenant.demand;
  ClassWords words = {demand.profile_id,
                      uint64_t{demand.flags} | Bits(demand.sm_cap) << 32,
                      bounded(demand.gpu_util_pct),
                      bounded(demand.mem_bw_util_pct),
                      whole(demand.mem_mib.estimate),
                      whole(demand.mem_mib.upper),
                      whole(demand.step_time_us.estimate),
                      whole(demand.step_time_us.upper),
                      bounded(demand.power_w),
                      whole(demand.gradient_mib),
                      pair(demand.distance, demand.operator_us),
                      whole(tenant.gpu_milli) << 1 | uint64_t{tenant.exclusive},
                      whole(tenant.gpus) << 1 | uint64_t{tenant.distributed},
                      whole(tenant.priority) << 8 | static_cast<uint64_t>(tenant.kind),
                      pair(tenant.promise.bound, tenant.promise.confidence),
                      pair(tenant.weight, demand.duty),
                      pair(tenant.worth, tenant.late.bound_us),
                      pair(tenant.late.p99_us, tenant.late.expected_us),
                      pair(tenant.work_alone, demand.slowdown_bound),
                      whole(tenant.memory.request_mib),
                      whole(tenant.memory.limit_mib),
                      std::bit_cast<uint64_t>(demand.host_us)};
  for (size_t i = 0; i < kTraitCount; i += 2)
    words[kWordsBeforeTraits + i / 2] = pair(demand.traits[i], demand.traits[i + 1]);
  return words;
}

bool SameState(const DeviceRow& a, const DeviceRow& b) {
  return a.type == b.type && a.mode == b.mode && a.state == b.state && a.max_tenants == b.max_tenants &&
         a.mem_mib == b.mem_mib && a.compute_share == b.compute_share && a.tenants == b.tenants;
}

// Of a device without its tenants.
template <typename Add>
void AddDevice(const DeviceRow& row, const Add& add) {
  add(static_cast<uint64_t>(row.mode) << 8 | static_cast<uint64_t>(row.state));
  add(static_cast<uint64_t>(row.max_tenants));
  add(static_cast<uint64_t>(row.mem_mib));
  add(Bits(row.compute_share));
}

}  // namespace

uint64_t KindBit(int32_t gpu_milli, int32_t gpus) {
  constexpr int32_t kLastBit = 63;
  if (gpu_milli < kMilliPerGpu) return 1;
  return uint64_t{1} << std::min(gpus, kLastBit);
}

double RelativeSpeed(const JobSpec& job, const Demand& demand) {
  if (ServesAll(job, demand)) return 1;
  const double stretch = job.sm_cap_pct > 0 ? CapStretch(AsRun(job, demand)) : 1;
  const double own = StepUs(demand);
  if (own <= 0) return 1 / stretch;
  double fastest = own;
  for (const TypeDemand& entry : job.demands) {
    const double step = StepUs(entry.demand);
    if (step > 0) fastest = std::min(fastest, step);
  }
  return fastest / own / stretch;
}

TenantClass TenantAsked(const JobSpec& job, const Demand& demand, bool alone) {
  const Demand seen = AsRun(job, demand);
  const OwnBound bound = OwnBoundOf(job, seen);
  const double weight = WorkWeight(job), work_alone = WorkAlone(job);
  const double counted = Counted(static_cast<double>(BusyPct(seen).upper));
  return {.demand = seen,
          .promise = {bound.slowdown, bound.slowdown > 0 ? job.slowdown_confidence : 0},
          .gpu_milli = job.gpu_milli,
          .exclusive = job.exclusive || alone || RunsAloneForMemory(job, demand),
          .gpus = GpuCount(job),
          .distributed = job.tasks > 1,
          .kind = job.kind,
          .priority = job.priority,
          .weight = static_cast<float>(weight),
          .work_alone = static_cast<float>(work_alone),
          .worth = KeepsWork(seen) ? 0 : static_cast<float>(weight * work_alone * RelativeSpeed(job, demand)),
          .counted_milli = static_cast<int32_t>(std::ceil(kTenantMilli * counted)),
          .memory = GpuMemoryOf(job, demand),
          .late = bound.late};
}

TenantClass MakeTenantClass(const JobSpec& job, const Demand& demand, bool alone) {
  TenantClass tenant = TenantAsked(job, demand, alone);
  tenant.order = StableHashOf(tenant, job.weight, job.weight * static_cast<float>(RelativeSpeed(job, demand)));
  const ClassWords words = WordsOf(tenant);
  tenant.digest = Hash64(words.data(), sizeof words, ProcessSecret());
  return tenant;
}

bool SameTenant(const TenantClass& a, const TenantClass& b) {
  return a.demand == b.demand && a.promise == b.promise && a.gpu_milli == b.gpu_milli && a.exclusive == b.exclusive &&
         a.gpus == b.gpus && a.distributed == b.distributed && a.kind == b.kind && a.priority == b.priority &&
         a.weight == b.weight && a.work_alone == b.work_alone && a.worth == b.worth && a.memory == b.memory &&
         a.late == b.late;
}

bool TenantBefore(const TenantClass& a, const TenantClass& b) {
  return a.order != b.order ? a.order < b.order : WordsOf(a) < WordsOf(b);
}

uint32_t StateTable::InternTenant(const TenantClass& tenant) {
  return tenants_.Intern(
      tenant.digest, [&](const TenantClass& known) { return SameTenant(known, tenant); },
      [&](uint64_t digest) {
        TenantClass kept = tenant;
        kept.digest = digest;
        return kept;
      });
}

uint32_t StateTable::HoldTenant(const TenantClass& tenant) {
  const uint32_t id = InternTenant(tenant);
  tenants_.Hold(id);
  return id;
}

void StateTable::Finish(DeviceRow& row) const {
  std::ranges::sort(row.tenants, [this](uint32_t a, uint32_t b) { return TenantBefore(tenant(a), tenant(b)); });
  row.mem_used_upper_mib = row.mem_limit_mib = row.mem_used_mib = 0;
  row.milli_used = row.tenants_milli = 0;
  row.exclusive_held = false;
  row.bounded = false;
  row.kinds = 0;
  row.util_pct = row.util_upper_pct = 0;
  SecretHasher hasher;
  hasher.Add(row.type.value());
  AddDevice(row, [&](uint64_t word) { hasher.Add(word); });
  for (const uint32_t id : row.tenants) {
    const TenantClass& one = tenant(id);
    row.mem_used_upper_mib += one.memory.request_mib;
    row.mem_limit_mib += one.memory.limit_mib;
    row.mem_used_mib += one.demand.mem_mib.estimate;
    row.milli_used += std::max(one.gpu_milli, 1);
    row.tenants_milli += one.counted_milli;
    row.exclusive_held |= one.exclusive;
    row.bounded |= one.promise.bound > 0;
    row.kinds |= KindBit(one.gpu_milli, one.gpus);
    const auto share = static_cast<double>(row.compute_share);
    const Bounded busy = BusyPct(one.demand);
    row.util_pct += SliceUtilPct(static_cast<double>(busy.estimate), share);
    row.util_upper_pct += SliceUtilPct(static_cast<double>(busy.upper), share);
    hasher.Add(one.digest);
  }
  row.digest = std::max<uint64_t>(hasher.Hash(), 1);  // 0 means none
}

uint64_t StateTable::StableHash(const DeviceRow& row) const {
  uint64_t hash = row.type.value();
  AddDevice(row, [&](uint64_t word) { hash = CombineHash(hash, word); });
  for (const uint32_t id : row.tenants) hash = CombineHash(hash, tenant(id).order);
  return hash;
}

uint32_t StateTable::InternState(DeviceRow row) {
  Finish(row);
  return states_.Intern(
      row.digest, [&](const DeviceRow& known) { return SameState(known, row); },
      [&](uint64_t digest) {
        row.digest = digest;
        for (const uint32_t id : row.tenants) tenants_.Hold(id);
        return std::move(row);
      });
}

uint32_t StateTable::WithTenant(uint32_t state_id, const TenantClass& tenant, uint32_t& tenant_id, bool under_mps) {
  DeviceRow row = state(state_id);
  row.Settle(under_mps);
  row.tenants.reserve(row.tenants.size() + 1);
  tenants_.ReserveOne();
  states_.ReserveOne();  // a class that no state holds would stay for ever
  tenant_id = InternTenant(tenant);
  row.tenants.push_back(tenant_id);
  return InternState(std::move(row));
}

uint32_t StateTable::WithoutTenant(uint32_t state_id, uint32_t tenant_id, const DeviceSpec* device) {
  DeviceRow row = state(state_id);
  const auto at = std::ranges::find(row.tenants, tenant_id);
  if (at != row.tenants.end()) row.tenants.erase(at);
  if (device != nullptr && row.tenants.empty()) {
    row.mode = device->mode;
    row.mps_clients = device->mps_clients;
  }
  return InternState(std::move(row));
}

uint32_t StateTable::WithState(uint32_t state_id, AdminState admin) {
  DeviceRow row = state(state_id);
  row.state = admin;
  return InternState(std::move(row));
}

void StateTable::Unref(uint32_t id) noexcept {
  if (states_.holders(id) == 1) {
    for (const uint32_t tenant_id : states_.at(id).tenants) tenants_.Drop(tenant_id);
  }
  states_.Drop(id);
}

}  // namespace horus
