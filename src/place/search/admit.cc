// SPDX-License-Identifier: Apache-2.0
// Asks a node, its groups and the policy, and a device and its owners.
#include "place/search/admit.h"

#include <algorithm>

#include "base/hash.h"

namespace horus {
namespace {

bool HoldsDistributed(const Ledger& ledger, uint32_t device) {
  const StateTable& states = ledger.states();
  const TenantIds& tenants = ledger.state(device).tenants;
  return std::ranges::any_of(tenants, [&](uint32_t id) { return states.tenant(id).distributed; });
}

}  // namespace

Reason AdmitNode(const Policy& policy, const Ledger& ledger, uint32_t node_row, const JobSpec& job, int64_t tasks,
                 Shortfall* shortfall) {
  const LedgerNode& node = ledger.node(node_row);
  if (const Reason reason = FitNode(job, *node.spec, node.state); reason != Reason::kNone) return reason;
  if (const Reason reason = FitHost(job, node.free, tasks, shortfall); reason != Reason::kNone) return reason;
  if (KeepsAway(job, node.groups)) return Reason::kAntiAffinity;
  if (!policy.admits_nodes()) return Reason::kNone;
  NodeAdmission admission{.job = &job, .node = node.spec.get()};
  for (uint32_t i = 0; i < node.spec->devices.size() && !admission.holds_distributed; ++i)
    admission.holds_distributed = HoldsDistributed(ledger, node.first_device + i);
  return policy.AdmitsNode(admission) ? Reason::kNone : Reason::kPolicy;
}

absl::StatusOr<DeviceVerdict> JudgeDevice(Scorer& scorer, const Ledger& ledger, const JobView& view, uint32_t device,
                                          bool memo) {
  DeviceVerdict verdict;
  const uint32_t state = ledger.state_id(device);
  HORUS_RETURN_IF_ERROR(memo ? scorer.Judge(ledger.states(), state, verdict)
                             : scorer.Weigh(ledger.states(), state, verdict));
  BarDevice(ledger, device, view, verdict);
  return verdict;
}

void BarDevice(const Ledger& ledger, uint32_t device, const JobView& view, DeviceVerdict& verdict) {
  if (verdict.reason != Reason::kNone) return;
  const Reason barred = BarsFrom(ledger, device, view);
  if (barred != Reason::kNone) verdict = {Distance(barred, {}), barred};
}

Reason BarsFrom(const Ledger& ledger, uint32_t device, const JobView& view) {
  return ledger.BarsFrom(device, view.owner, GpuCount(*view.job));
}

uint64_t RequestOn(const Ledger& ledger, const JobView& view) {
  uint64_t request = view.request;
  if (ledger.owners_matter() && !MindsOwners(view.owner)) request = CombineHash(request, view.owner);
  return ledger.SharingIsFull(GpuCount(*view.job)) ? CombineHash(request, 1) : request;
}

}  // namespace horus
