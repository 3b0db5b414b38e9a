// SPDX-License-Identifier: Apache-2.0
// Who keeps away from whom: groups of jobs on a node, and owners of devices.
//
// Enters:  jobs with their groups, the groups that they avoid, their tenant.
// Leaves:  counts a node; whether a job may come to a node, or beside a tenant.
// Units:   tasks; groups and owners by the hash of their name.
// Cost:    O(groups of the job x groups on the node); nothing for jobs that state none.
#pragma once

#include "place/job/job.h"

namespace horus {

// Tasks on a node that are of a group, and tasks that keep away from it.
struct GroupCount {
  uint64_t group = 0;  // hash of its name
  int32_t members = 0;
  int32_t avoiders = 0;
  friend bool operator==(const GroupCount&, const GroupCount&) = default;
};
using NodeGroups = std::vector<GroupCount>;        // in no order; those of which there are any
inline constexpr size_t kMaxGroupsPerNode = 4096;  // each is looked at for every group of a newcomer

// Adds `change`; a group that nobody is left of goes. Fails only where a new group finds no room reserved.
void ChangeGroup(const GroupCount& change, NodeGroups& groups);
// Calls visit(GroupCount) for what one task of the job adds to a node.
template <typename Visit>
void ForEachGroup(const JobSpec& job, const Visit& visit);
[[nodiscard]] inline size_t GroupsOf(const JobSpec& job) { return job.groups.size() + job.avoid_groups.size(); }

// Whether the job avoids a group that is there, somebody there avoids one of the job's, or there may be too many then.
[[nodiscard]] bool KeepsAway(const JobSpec& job, const NodeGroups& groups);

// The job's owner, and in the lowest bit whether it shares devices with its owner's jobs alone, which one without GPUs
// need not. Owners of equal hash
// count as one here; Cluster::Apply compares their names.
[[nodiscard]] uint64_t OwnerMark(const JobSpec& job);
[[nodiscard]] inline bool MindsOwners(uint64_t mark) { return (mark & 1) != 0; }
[[nodiscard]] inline bool OwnersClash(uint64_t a, uint64_t b) { return MindsOwners(a | b) && a >> 1 != b >> 1; }

[[nodiscard]] uint64_t HashOfGroup(const std::string& name);

template <typename Visit>
void ForEachGroup(const JobSpec& job, const Visit& visit) {
  for (const std::string& name : job.groups) visit(GroupCount{HashOfGroup(name), 1, 0});
  for (const std::string& name : job.avoid_groups) visit(GroupCount{HashOfGroup(name), 0, 1});
}

}  // namespace horus
