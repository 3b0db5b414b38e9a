// SPDX-License-Identifier: Apache-2.0
// What a policy is told of a node before its devices are priced.
#include "place/admit.h"

#include <algorithm>

namespace horus {
namespace {

bool HoldsDistributed(const Ledger& ledger, uint32_t device) {
  const StateTable& states = ledger.states();
  const TenantIds& tenants = ledger.state(device).tenants;
  return std::any_of(tenants.begin(), tenants.end(), [&](uint32_t id) { return states.tenant(id).distributed; });
}

}  // namespace

Reason AdmitNode(const Policy& policy, const Ledger& ledger, uint32_t node_row, const JobSpec& job) {
  if (!policy.admits_nodes()) return Reason::kNone;
  const LedgerNode& node = ledger.node(node_row);
  NodeAdmission admission{.job = &job, .node = node.spec.get()};
  for (uint32_t i = 0; i < node.spec->devices.size() && !admission.holds_distributed; ++i)
    admission.holds_distributed = HoldsDistributed(ledger, node.first_device + i);
  return policy.AdmitsNode(admission) ? Reason::kNone : Reason::kPolicy;
}

}  // namespace horus
