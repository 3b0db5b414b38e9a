// SPDX-License-Identifier: Apache-2.0
// The work of devices by the estimates, with the slowdowns of each state kept.
#include "place/work.h"

#include <algorithm>

#include "base/status.h"
#include "interference/slice.h"

namespace horus {
namespace {

constexpr size_t kMostKept = size_t{4} << 20;  // slowdowns; 16 MiB

}  // namespace

double SpeedAlone(const JobSpec& job, const DeviceRow& device) {
  if (job.demands.empty()) return 1;
  const Demand& demand = DemandOn(job, device.type);
  int64_t fastest = 0;
  for (const TypeDemand& entry : job.demands) {
    const int64_t step = entry.demand.step_time_us.estimate;
    if (step > 0 && (fastest == 0 || step < fastest)) fastest = step;
  }
  const int64_t step = demand.step_time_us.estimate;
  const double speed = step > 0 ? static_cast<double>(fastest) / static_cast<double>(step) : 1.0;
  if (device.compute_share == 1) return speed;
  return speed * SliceSpeed(static_cast<double>(demand.gpu_util_pct.estimate),
                            static_cast<double>(demand.mem_bw_util_pct.estimate),
                            static_cast<double>(device.compute_share));
}

void WorkMeter::Know(const JobSpec& job) {
  if (const JobSpec** known = known_.Find(job.id)) {
    *known = &job;
  } else {
    known_.Insert(job.id, &job);
  }
}

const JobSpec* WorkMeter::SpecOf(JobId job) const {
  if (const JobSpec* const* known = known_.Find(job)) return *known;
  const uint32_t row = cluster_.rows().RowOfJob(job);
  return row == kNoRow ? nullptr : &cluster_.rows().RequestOf(cluster_.rows().jobs[row]);
}

absl::Status WorkMeter::Slowdowns(const Ledger& ledger, uint32_t device, std::span<const float>& slowdowns) {
  const DeviceRow& row = ledger.state(device);
  if (row.tenants.size() <= 1) {
    undisturbed_.assign(row.tenants.size(), 1.0f);
    slowdowns = undisturbed_;
    return absl::OkStatus();
  }
  if (const uint32_t* at = memo_.Find(row.digest)) {
    slowdowns = std::span<const float>(slowdowns_).subspan(*at, row.tenants.size());
    return absl::OkStatus();
  }
  if (slowdowns_.size() + row.tenants.size() > kMostKept) {
    memo_.clear();
    slowdowns_.clear();
  }
  demands_.clear();
  for (const uint32_t tenant : row.tenants) demands_.push_back(&ledger.states().tenant(tenant).demand);
  predicted_.assign(demands_.size(), Slowdown());
  HORUS_RETURN_IF_ERROR(scorer_.model().Predict(ContextOf(row), std::span(demands_), predicted_));
  const auto first = static_cast<uint32_t>(slowdowns_.size());
  for (const Slowdown& one : predicted_) {
    if (!(one.estimate > 0)) {
      return MakeError(absl::StatusCode::kInternal, "interference model %s: expected a slowdown above 0, found %g",
                       std::string(scorer_.model().name()), one.estimate);
    }
    slowdowns_.push_back(one.estimate);
  }
  memo_.Insert(row.digest, first);
  slowdowns = std::span<const float>(slowdowns_).subspan(first);
  return absl::OkStatus();
}

double WorkMeter::Share(const Ledger& ledger, uint32_t device, const LedgerResident& resident,
                        std::span<const float> slowdowns) const {
  const DeviceRow& row = ledger.state(device);
  const JobSpec* job = SpecOf(resident.job);
  const auto at = std::find(row.tenants.begin(), row.tenants.end(), resident.tenant);
  if (job == nullptr || at == row.tenants.end()) return 0;  // cannot be: the resident is there
  const float slowdown = slowdowns[static_cast<size_t>(at - row.tenants.begin())];
  return PriorityWeight(job->priority) * SpeedAlone(*job, row) / static_cast<double>(slowdown);
}

absl::Status WorkMeter::OfDevice(const Ledger& ledger, uint32_t device, double& work) {
  work = 0;
  std::span<const float> slowdowns;
  HORUS_RETURN_IF_ERROR(Slowdowns(ledger, device, slowdowns));
  for (const LedgerResident& one : ledger.residents(device)) work += Share(ledger, device, one, slowdowns);
  return absl::OkStatus();
}

absl::Status WorkMeter::OfResident(const Ledger& ledger, uint32_t device, JobId job, double& work) {
  work = 0;
  std::span<const float> slowdowns;
  HORUS_RETURN_IF_ERROR(Slowdowns(ledger, device, slowdowns));
  for (const LedgerResident& one : ledger.residents(device)) {
    if (one.job == job) work = Share(ledger, device, one, slowdowns);
  }
  return absl::OkStatus();
}

double WorkMeter::GainOf(const Ledger& ledger, uint32_t device, const JobSpec& job,
                         const DeviceCandidate& candidate) const {
  const DeviceRow& row = ledger.state(device);
  double gain =
      PriorityWeight(job.priority) * candidate.relative_speed / static_cast<double>(candidate.after.back().estimate);
  for (const LedgerResident& resident : ledger.residents(device)) {
    const auto at = std::find(row.tenants.begin(), row.tenants.end(), resident.tenant);
    const auto i = static_cast<size_t>(at - row.tenants.begin());
    const JobSpec* spec = SpecOf(resident.job);
    if (spec == nullptr || i >= candidate.residents()) continue;  // cannot be
    gain += PriorityWeight(spec->priority) * SpeedAlone(*spec, row) *
            (1.0 / static_cast<double>(candidate.after[i].estimate) -
             1.0 / static_cast<double>(candidate.before[i].estimate));
  }
  return gain;
}

absl::Status WorkMeter::OfSlots(const Ledger& ledger, std::span<const PlacedSlot> slots, double& work) {
  work = 0;
  devices_.clear();
  for (const PlacedSlot& slot : slots) {
    if (slot.device != kNoDevice) devices_.push_back(ledger.device_of(slot));
  }
  std::sort(devices_.begin(), devices_.end());
  devices_.erase(std::unique(devices_.begin(), devices_.end()), devices_.end());
  for (const uint32_t device : devices_) {
    double one = 0;
    HORUS_RETURN_IF_ERROR(OfDevice(ledger, device, one));
    work += one;
  }
  return absl::OkStatus();
}

absl::Status WorkMeter::OfAll(const Ledger& ledger, double& work) {
  work = 0;
  for (const uint32_t row : ledger.order()) {
    const LedgerNode& node = ledger.node(row);
    for (uint32_t i = 0; i < node.spec->devices.size(); ++i) {
      double one = 0;
      HORUS_RETURN_IF_ERROR(OfDevice(ledger, node.first_device + i, one));
      work += one;
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
