// SPDX-License-Identifier: Apache-2.0
// Counts of groups, and the two questions asked of them.
#include "place/state/groups.h"

#include <algorithm>

#include "base/hash.h"

namespace horus {
namespace {

const GroupCount* Find(const NodeGroups& groups, uint64_t group) {
  const auto at = std::ranges::find_if(groups, [&](const GroupCount& one) { return one.group == group; });
  return at == groups.end() ? nullptr : &*at;
}

}  // namespace

uint64_t HashOfGroup(const std::string& name) { return Hash64(name); }

void ChangeGroup(const GroupCount& change, NodeGroups& groups) {
  const GroupCount* known = Find(groups, change.group);
  if (known == nullptr) {
    groups.push_back(change);
    return;
  }
  GroupCount& count = groups[static_cast<size_t>(known - groups.data())];
  count.members += change.members;
  count.avoiders += change.avoiders;
  if (count.members != 0 || count.avoiders != 0) return;
  count = groups.back();
  groups.pop_back();
}

bool KeepsAway(const JobSpec& job, const NodeGroups& groups) {
  if (groups.empty()) return false;
  if (groups.size() + GroupsOf(job) > kMaxGroupsPerNode) return true;
  for (const std::string& name : job.avoid_groups) {
    const GroupCount* there = Find(groups, HashOfGroup(name));
    if (there != nullptr && there->members > 0) return true;
  }
  for (const std::string& name : job.groups) {
    const GroupCount* there = Find(groups, HashOfGroup(name));
    if (there != nullptr && there->avoiders > 0) return true;
  }
  return false;
}

uint64_t OwnerMark(const JobSpec& job) {
  return Hash64(job.tenant) << 1 | (job.share == ShareWith::kSameTenant && !IsCpuOnly(job) ? 1 : 0);
}

}  // namespace horus
