// SPDX-License-Identifier: Apache-2.0
// Cores and host memory in plans of policies that share GPUs: what a newcomer gets, whom it takes them from, and who
// gets what others gave back.
//
// Enters:  the jobs of a plan, residents with sensitivities, a ledger.
// Leaves:  grants of newcomers; kResize moves of residents.
// Units:   those of placer.h; work as below.
// Cost:    nothing where no job has a sensitivity; else a search for each share that is tried, and a division for each
//          node that changed. Reclaim: O(residents with a sensitivity).
// Thread class: one thread at a time; of this room alone.
#pragma once

#include "place/engine.h"

namespace horus {

// ---- Which cores and host memory are worth giving to whom, where jobs share GPUs.
// Units: per GPU of a job: thousandths of a core, MiB; work, 0-1: speed / speed alone on the GPU with all it can use.
// Cost: of a division O(users^2 x choices^2).

// A job that may hold more or less.
struct HostUser {
  const Sensitivity* matrix = nullptr;
  double gpu_us = 0;    // of a step on its GPUs alone; 0 = unknown: then its best speed is taken for the GPU's
  double slowdown = 1;  // of its GPUs beside those who share them
  HostShare least;      // what it holds at least
  int32_t gpus = 1;     // that it has there
  double weight = 1;    // of a GPU's work
};

// Of one of its GPUs, given that much.
[[nodiscard]] double WorkWith(const HostUser& user, const HostShare& share);

// The least share for a job that may hold what it likes between `need` and `most`: `need`, or more where it would
// otherwise be slower than `bound` times as slow as with the fair share of a GPU, if the matrix knows such a share.
[[nodiscard]] HostShare LeastShare(const HostUser& user, const HostShare& need, const HostShare& fair,
                                   const HostShare& most, double bound);

// Shares from user.least to `most`, each faster than all smaller ones, the fastest first: at most `count` (from 2), of
// which the fastest is the smallest within kBestCellTolerance of the best, and the last is the least.
[[nodiscard]] std::vector<HostShare> SharesToTry(const HostUser& user, const HostShare& fair, const HostShare& most,
                                                 size_t count);

// By user: its least, and of `free`, which is left when all have that, to whom it does most work for its size, until
// nobody gains. `fair` measures sizes: cores and memory of a GPU's fair share weigh alike.
[[nodiscard]] std::vector<HostShare> DivideHost(std::span<const HostUser> users, HostShare free, const HostShare& fair);

// ---- PlanGrants: what of that a plan gives.

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

  [[nodiscard]] std::unique_ptr<Holder> HolderOf(const JobSpec& job, std::span<const PlacedSlot> slots) const;
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
