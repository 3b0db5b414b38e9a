// SPDX-License-Identifier: Apache-2.0
// Victims: the cheapest residents of one node whose leaving lets one task in.
//
// Enters:  an engine whose ledger is as things stand; the task; who may be preempted and what that loses.
// Leaves:  the cheapest set for a node, below a bound, and whether it is surely the cheapest.
// Units:   useful work (work.h).
// Cost:    2^residents of a device, then sets of devices; limits below.
// Thread class: one thread at a time, with the engine.
#ifndef HORUS_PLACE_MODES_VICTIMS_H_
#define HORUS_PLACE_MODES_VICTIMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "place/engine.h"
#include "place/work.h"

namespace horus {

struct VictimSet {
  std::vector<JobId> jobs;  // ascending
  double loss = 0;
  bool exact = true;
};

class Victims {
 public:
  // Who may go: residents of `cluster` below `priority`.
  Victims(Engine& engine, const Cluster& cluster, int32_t priority, uint64_t max_checks)
      : engine_(engine), cluster_(cluster), priority_(priority), max_checks_(max_checks) {}

  // The loss of each; to be called once, on the ledger before anybody left.
  [[nodiscard]] absl::Status Measure(WorkMeter& meter);
  [[nodiscard]] double LossOf(JobId job) const { return losses_.at(job); }

  // Of one task on one node, for less than `bound`; `group` = only devices of it (search_nodes.h), kAnyGroup = all.
  // `found` = false where nothing below the bound lets it in.
  static constexpr uint32_t kAnyGroup = UINT32_MAX;
  [[nodiscard]] absl::Status Cheapest(const JobView& task, uint32_t node_row, uint32_t group, double bound,
                                      VictimSet& set, bool& found);

  // Takes them out of the ledger, or puts one back.
  void Remove(std::span<const JobId> jobs);
  // Who is out for good, and is not to be thought of again; replaces those told before.
  void SetGone(std::span<const JobId> jobs) { gone_.assign(jobs.begin(), jobs.end()); }
  void PutBack(JobId job);
  [[nodiscard]] bool spent() const { return checks_ >= max_checks_; }

 private:
  struct Option {  // victims on one device
    std::vector<JobId> jobs;
    double loss = 0;
  };
  struct Device {
    uint32_t group = 0;
    std::vector<Option> options;  // ascending loss; none contains another
  };
  [[nodiscard]] const JobRow& RowOf(JobId job) const { return cluster_.rows().jobs[cluster_.rows().RowOfJob(job)]; }
  [[nodiscard]] const JobSpec& RequestOf(JobId job) const { return cluster_.rows().RequestOf(RowOf(job)); }
  [[nodiscard]] double LossOf(std::span<const JobId> jobs) const;
  [[nodiscard]] absl::Status DeviceOptions(const JobView& task, uint32_t node_row, int32_t device, double bound,
                                           Device& out, bool& exact);
  void Combine(const JobView& task, double bound, bool& exact);
  [[nodiscard]] absl::Status Check(const JobView& task, uint32_t node_row, uint32_t group,
                                   std::span<const JobId> victims, bool& fits);
  [[nodiscard]] absl::Status Extend(const JobView& task, uint32_t node_row, uint32_t group, const Option& base,
                                    VictimSet& set, bool& found);
  [[nodiscard]] std::vector<JobId> OnNode(uint32_t node_row) const;

  Engine& engine_;
  const Cluster& cluster_;
  int32_t priority_;
  uint64_t max_checks_;
  uint64_t checks_ = 0;
  IdMap<double> losses_;  // of those who may go
  std::vector<JobId> gone_;
  std::vector<Device> devices_;
  std::vector<Option> leaves_;
  std::vector<uint32_t> one_node_;
  SearchResult found_;
};

}  // namespace horus

#endif  // HORUS_PLACE_MODES_VICTIMS_H_
