// SPDX-License-Identifier: Apache-2.0
// What takes back a plan that could not be carried out to its end; of Cluster::Apply alone.
//
// Enters:  each step once it is made.
// Leaves:  the cluster as it was, unless Keep() was called.
// Units:   none.
// Cost:    O(actions of the plan).         Thread class: one thread at a time, as the cluster.
#ifndef HORUS_PLACE_STATE_CLUSTER_UNDO_H_
#define HORUS_PLACE_STATE_CLUSTER_UNDO_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "place/state/cluster.h"

namespace horus {

// Takes back what a plan did unless all of it came about.
class Cluster::Undo {
 public:
  Undo(Cluster& cluster, const Plan& plan) : cluster_(cluster), plan_(plan), changes_(cluster.rows_.changes) {
    steps_.reserve(2 * plan.actions.size());
  }
  ~Undo() {
    for (; !steps_.empty(); steps_.pop_back()) {
      if (!kept_) {
        TakeBack(steps_.back());
      } else if (steps_.back().resized != RequestTable::kNone) {
        cluster_.rows_.requests.Drop(steps_.back().resized);
      } else if (!steps_.back().came) {
        cluster_.rows_.LetGo(steps_.back().left);
      }
    }
    if (kept_) return;
    for (const SeenNode& node : plan_.seen) {
      cluster_.rows_.nodes[cluster_.rows_.node_of.at(node.node)].version = node.version;
    }
    cluster_.rows_.changes = changes_;
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  void Left(JobRow job) noexcept { steps_.push_back({.came = false, .job = job.id, .left = std::move(job)}); }
  void Came(JobId job) noexcept { steps_.push_back({.came = true, .job = job, .left = {}}); }
  // `before`: the request that it held until then.
  void Resized(JobId job, uint32_t before) noexcept { steps_.push_back({.job = job, .left = {}, .resized = before}); }
  void Keep() noexcept { kept_ = true; }

 private:
  struct Step {
    bool came = false;
    JobId job = 0;
    JobRow left;                             // of one that left, with what it holds
    uint32_t resized = RequestTable::kNone;  // of one that stayed: the request that it held
  };

  void TakeBack(Step& step) noexcept {
    if (step.resized != RequestTable::kNone) {
      cluster_.rows_.requests.Drop(cluster_.SwapRequest(cluster_.rows_.RowOfJob(step.job), step.resized));
    } else if (step.came) {
      cluster_.rows_.LetGo(cluster_.TakeJob(cluster_.rows_.RowOfJob(step.job)));
    } else {
      cluster_.PutJob(std::move(step.left));  // all it needs was there before it left
    }
  }

  Cluster& cluster_;
  const Plan& plan_;
  uint64_t changes_;
  std::vector<Step> steps_;
  bool kept_ = false;
};

// A resident that a plan gives more of something.
struct Cluster::Growth {
  uint32_t job_row = 0;
  bool cpu = false;
  bool mem = false;
};

}  // namespace horus

#endif  // HORUS_PLACE_STATE_CLUSTER_UNDO_H_
