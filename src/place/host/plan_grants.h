// SPDX-License-Identifier: Apache-2.0
// Cores and host memory in plans of policies that share GPUs: what a newcomer gets, whom it takes them from, and who
// gets what others gave back.
//
// Enters:  the jobs of a plan, residents with sensitivities, a ledger.
// Leaves:  grants of newcomers; kResize moves of residents.
// Units:   those of placer.h; work as in divide.h.
// Cost:    nothing where no job has a sensitivity; else a search for each share that is tried, and a division for each
//          node that changed. Reclaim: O(residents with a sensitivity).
// Thread class: one thread at a time; of this room alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "place/engine.h"
#include "place/host/divide.h"

namespace horus {

class PlanGrants {
 public:
  explicit PlanGrants(Engine& engine) : engine_(engine) {}

  // Begins a plan: follows the cluster, as the ledger did. It is not needed afterwards.
  void Follow(const Cluster& cluster);
  // Whether anything is to be granted: to one of the jobs, or a resident.
  [[nodiscard]] bool Active(std::span<const JobSpec> jobs) const;
  // Whether the job is one whose cores and memory are chosen here.
  [[nodiscard]] bool Chooses(const JobSpec& job) const;
  // A place and a share, of residents' too where nothing else is left.
  absl::Status Choose(const JobSpec& job, ChosenWay& choice);
  // Where nothing is free residents give back what they hold beyond their least, if a newcomer that was deferred does
  // more with it than they.
  absl::Status Reclaim(const JobSpec& way, ChosenWay& choice);
  // The plan's last action placed a job there.
  void Placed(const Plan& plan, std::span<const PlacedSlot> slots);
  // Divides anew what nodes have.
  absl::Status Finish(Plan& plan, RowList& touched);

 private:
  struct Holder {
    std::shared_ptr<const JobSpec> was;  // in the cluster; null of a newcomer
    std::shared_ptr<JobSpec> spec;       // with what it holds on the ledger
    PlacedSlots slots;                   // on one node
    HostUser user;                       // as if alone on its GPUs; at its least
    size_t decision = 0, action = 0;     // of a newcomer: positions in the plan
  };
  // Who may hold more or less on a node.
  struct Node {
    std::vector<Holder*> holders;
    std::vector<HostUser> users;  // of each, beside others
    HostShare free;               // beside the least of all
    HostShare fair;
  };

  void FollowNode(const ClusterRows& rows, uint32_t node_row);
  void MeasureNodes();
  [[nodiscard]] HostUser UserOf(const JobSpec& job, const HostShare& fair) const;
  absl::Status SetBeside(const Holder& holder, HostUser& user) const;
  absl::Status Read(uint32_t node_row, Holder* guest, Node& node);
  void Hold(Holder& holder, const HostShare& share);
  absl::Status Divide(uint32_t node_row, Plan& plan, RowList& touched);

  Engine& engine_;
  std::map<uint32_t, std::vector<std::unique_ptr<Holder>>> residents_;  // by node row
  std::map<uint32_t, std::vector<std::unique_ptr<Holder>>> newcomers_;  // of this plan
  std::vector<Holder*> changed_;                                        // residents that the plan resized
  std::map<uint32_t, uint64_t> read_;                                   // node row -> version that residents_ has
  std::map<uint32_t, uint64_t> settled_;    // node row -> version at which nobody there is to be resized
  uint64_t generation_ = 0, followed_ = 0;  // of the ledger's log
  bool whole_ = false;
  HostShare fair_, most_;  // the largest of a GPU and of a node; once MeasureNodes was called in this plan
  bool measured_ = false;
};

}  // namespace horus
