// SPDX-License-Identifier: Apache-2.0
// Costs of nodes for one task, for policies that price whole nodes. They are kept until the node changes.
//
// Enters:  a ledger, a job whose policy prices nodes, node rows.
// Leaves:  a node's cost and chosen devices, or the reason that refused each of its devices.
// Units:   costs in the policy's unit; infinity = the node cannot take the task.
// Cost:    a new or changed node: its devices and one ScoreNode; a kept one: a few instructions.
// Thread class: one thread at a time (holds scratch).
#pragma once

#include "place/search/scorer.h"
#include "place/state/ledger.h"

namespace horus {

// GPU type and sharing mode: a gang, and the GPUs of a task, never mix them. Empty devices that can have either mode
// are found beside those that share by time slicing.
[[nodiscard]] inline uint32_t GroupOf(const DeviceRow& device) {
  return uint32_t{device.type.value()} << 8 | static_cast<uint32_t>(ModeAlone(device.mode));
}

// The answer of one node for one task.
struct NodeOutcome {
  double cost = std::numeric_limits<double>::infinity();
  Reason refused = Reason::kNone;   // of the node as a whole; `devices` is then empty
  std::span<const Reason> devices;  // of each device; empty without GPUs; valid until the next Price
  uint32_t fitting = 0;             // devices that fit by themselves; without GPUs 1 if the node fits
  uint32_t most = 0;                // most fitting devices of one group (GroupOf)
  std::span<const int32_t> chosen;  // devices for the task, ascending; valid until the next Price
};

class NodePricer {
 public:
  explicit NodePricer(Scorer& scorer) : scorer_(scorer) {}

  // `view` must be the scorer's current job. Error: INTERNAL (the policy's score is invalid).
  [[nodiscard]] absl::StatusOr<NodeOutcome> Price(const Ledger& ledger, const JobView& view, uint32_t node_row);

  // Of the last Price with a finite cost.
  [[nodiscard]] const NodeCandidate& candidate() const { return candidate_; }
  [[nodiscard]] const NodeScore& score() const { return score_; }

 private:
  [[nodiscard]] absl::Status JudgeDevices(const Ledger& ledger, const LedgerNode& node, const JobView& view,
                                          NodeOutcome& outcome);
  // Clears `fits` where the group has too few devices for a task.
  void CountGroups(int32_t gpus, NodeOutcome& outcome);
  [[nodiscard]] absl::Status CheckScore(const JobSpec& job) const;

  Scorer& scorer_;
  NodeCandidate candidate_;
  NodeScore score_;
  std::vector<NodeDevice> devices_;
  std::vector<Reason> reasons_;
};

// Costs of all nodes for each request so far, updated from the ledger's log of changes. Serves one ledger.
class NodeScores {
 public:
  struct Prices {
    std::vector<double> cost;                         // by node row
    std::vector<uint32_t> fitting;                    // by node row
    std::vector<uint32_t> most;                       // by node row
    std::array<uint32_t, kReasonCount> refused = {};  // over all nodes, as SearchResult::refused
    uint32_t fitting_in_all = 0;
    std::vector<uint8_t> node_refused;    // by node row: Reason
    std::vector<uint8_t> device_refused;  // by device of the cluster: Reason
    uint64_t upto = 0;                    // changes of the ledger that are included
    bool whole = false;                   // every node is included
  };

  explicit NodeScores(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // The costs for the request of `view`, up to date; valid until the next call.
  [[nodiscard]] absl::StatusOr<const Prices*> Of(const Ledger& ledger, const JobView& view, uint64_t model_epoch,
                                                 NodePricer& pricer);

  [[nodiscard]] uint64_t bytes_held() const;

 private:
  void Clear();
  [[nodiscard]] absl::Status Update(const Ledger& ledger, const JobView& view, uint32_t row, NodePricer& pricer,
                                    Prices& prices) const;
  void Count(const Ledger& ledger, bool cpu_only, uint32_t row, bool add, Prices& prices) const;

  uint64_t most_bytes_;
  uint64_t epoch_ = 0;                     // of the model
  uint64_t generation_ = 0;                // of the ledger
  std::vector<uint64_t> last_change_;      // by node row: scratch
  IdMap<std::unique_ptr<Prices>> prices_;  // by JobView::request
  uint64_t bytes_ = 0;                     // of prices_
};

}  // namespace horus
