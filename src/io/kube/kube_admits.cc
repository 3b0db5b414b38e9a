// SPDX-License-Identifier: Apache-2.0
// Taints and node affinity.
#include "io/kube/kube_admits.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 3> kStateTaints = {
    "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"};

bool Tolerates(const KubeToleration& toleration, const KubeTaint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return !toleration.key.empty() && (toleration.op.empty() || toleration.op == "Equal") &&
         toleration.value == taint.value;
}

bool Holds(const KubeRequirement& requirement, const KubeNode& node) {
  const std::string* value = nullptr;
  if (requirement.field) {
    if (requirement.key == "metadata.name") value = &node.name;
  } else if (const auto at = node.labels.find(requirement.key); at != node.labels.end()) {
    value = &at->second;
  }
  const auto& values = requirement.values;
  const bool listed = value != nullptr && std::ranges::find(values, *value) != values.end();
  if (requirement.op == "In") return listed;
  if (requirement.op == "NotIn") return !listed;
  if (requirement.op == "Exists") return value != nullptr;
  if (requirement.op == "DoesNotExist") return value == nullptr;
  if (value == nullptr || values.size() != 1) return false;
  const std::optional<int64_t> found = ParseNumber<int64_t>(*value), limit = ParseNumber<int64_t>(values[0]);
  if (!found || !limit) return false;
  return requirement.op == "Gt" ? *found > *limit : requirement.op == "Lt" && *found < *limit;
}

}  // namespace

KubeRules RulesOf(const KubePod& pod) { return {pod.has_affinity, pod.affinity, pod.tolerations}; }

bool Admits(const KubeRules& rules, const KubeNode& node) {
  for (const KubeTaint& taint : node.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (std::ranges::find(kStateTaints, taint.key) != kStateTaints.end()) continue;
    const bool tolerated =
        std::ranges::any_of(rules.tolerations, [&](const KubeToleration& one) { return Tolerates(one, taint); });
    if (!tolerated) return false;
  }
  if (!rules.has_affinity) return true;
  return std::ranges::any_of(rules.affinity, [&](const KubeTerm& term) {
    // A term without requirements holds nowhere.
    return !term.empty() && std::ranges::all_of(term, [&](const auto& one) { return Holds(one, node); });
  });
}

}  // namespace horus
