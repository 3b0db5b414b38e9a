// SPDX-License-Identifier: Apache-2.0
// Groups on a node, and what a policy is told of it before its devices are priced.
#include "place/admit.h"

#include <algorithm>

#include "base/hash.h"

namespace horus {
namespace {

bool HoldsDistributed(const Ledger& ledger, uint32_t device) {
  const StateTable& states = ledger.states();
  const TenantIds& tenants = ledger.state(device).tenants;
  return std::any_of(tenants.begin(), tenants.end(), [&](uint32_t id) { return states.tenant(id).distributed; });
}

}  // namespace

Reason AdmitNode(const Policy& policy, const Ledger& ledger, uint32_t node_row, const JobSpec& job) {
  const LedgerNode& node = ledger.node(node_row);
  if (KeepsAway(job, node.groups)) return Reason::kAntiAffinity;
  if (!policy.admits_nodes()) return Reason::kNone;
  NodeAdmission admission{.job = &job, .node = node.spec.get()};
  for (uint32_t i = 0; i < node.spec->devices.size() && !admission.holds_distributed; ++i)
    admission.holds_distributed = HoldsDistributed(ledger, node.first_device + i);
  return policy.AdmitsNode(admission) ? Reason::kNone : Reason::kPolicy;
}

uint64_t RequestOn(const Ledger& ledger, const JobView& view) {
  return ledger.owners_matter() && !MindsOwners(view.owner) ? CombineHash(view.request, view.owner) : view.request;
}

}  // namespace horus
