// SPDX-License-Identifier: Apache-2.0
// Cluster: nodes, devices, the jobs on them, and every change of that state; what a plan changes.
//
// Enters:  node descriptions, state changes, jobs that already run, plans, releases.
// Leaves:  queries in ascending id order; a hash that is equal for equal states whatever led there.
// Cost:    Apply and Release O(devices of the job); queries O(what they return), Job makes its JobSpec anew; a copy
//          O(cluster). Under 220 bytes a GPU where 2.4 jobs of few kinds share each (docs/place.md).
// Thread class: value with one writer at a time; any number of readers while nobody writes.
#pragma once

#include "base/status.h"
#include "place/job/reason.h"
#include "place/state/cluster_rows.h"

namespace horus {

// ---- Changes: what a plan does to a cluster, and on which nodes it relies.
// Cost: about 900 bytes a job, and a copy of the JobSpec.

enum class ActionKind : uint8_t {
  kPlace = 0,
  kResize = 1,   // a resident gets the CPU and host memory of `job`, and nothing else changes; no slots
  kMigrate = 2,  // a resident moves to `slots`
  kPreempt = 3,  // a resident leaves; no slots
};

struct Action {
  ActionKind kind = ActionKind::kPlace;
  std::shared_ptr<const JobSpec> job;  // never null
  Slots slots;                         // ascending (task, node, device)
};
using Actions = absl::InlinedVector<Action, 1>;

// The version of a node on which the plan relies.
struct SeenNode {
  NodeId node = 0;
  uint64_t version = 0;
  friend bool operator==(const SeenNode&, const SeenNode&) = default;
};
using SeenNodes = absl::InlinedVector<SeenNode, 1>;

struct Changes {
  Actions actions;            // in planning order
  SeenNodes seen;             // the nodes that the actions use, ascending id
  bool hypothetical = false;  // answers a what-if: Apply refuses it
};

// ---- What a cluster says of itself.

struct ClusterTotals {
  uint64_t nodes = 0;
  uint64_t devices = 0;
  uint64_t devices_used = 0;  // with at least one resident
  uint64_t jobs = 0;
  uint64_t slots = 0;       // job x device pairs
  double gpu_util_pct = 0;  // summed estimates per device, capped at 100, mean over all devices
  int64_t gpu_mem_mib = 0;
  int64_t gpu_mem_used_mib = 0;  // by the residents' requests
  int64_t cpu_milli = 0;
  int64_t cpu_used_milli = 0;
  int64_t mem_mib = 0;  // host memory
  int64_t mem_used_mib = 0;
  friend bool operator==(const ClusterTotals&, const ClusterTotals&) = default;
};

struct NodeInfo {
  NodeSpec spec;  // as resolved
  AdminState state = AdminState::kUp;
  uint64_t version = 0;        // changes with every change of the node
  int64_t cpu_free_milli = 0;  // negative where adopted jobs over-commit
  int64_t mem_free_mib = 0;
  int64_t storage_free_mb_s = 0;
  std::vector<JobId> jobs;  // ascending
};

struct Resident {
  JobId job = 0;
  int32_t task = 0;
  friend auto operator<=>(const Resident&, const Resident&) = default;
};

struct DeviceInfo {
  DeviceSpec spec;           // as resolved; of several modes the one that its residents have
  const char* id = nullptr;  // null = none; borrowed until the node changes
  AdminState node_state = AdminState::kUp;
  AdminState state = AdminState::kUp;
  int64_t mem_used_upper_mib = 0;  // by requests: what fit counts
  int64_t mem_limit_mib = 0;       // by limits
  int64_t mem_used_mib = 0;        // by estimates
  int32_t milli_used = 0;          // hard requests; a sharer without one counts 1
  double util_pct = 0;             // sum of the estimates, may exceed 100
  double util_upper_pct = 0;
  std::vector<Resident> residents;  // ascending job id
};

struct JobInfo {
  std::shared_ptr<const JobSpec> spec;
  Slots slots;  // ascending (task, node, device)
  bool adopted = false;
  bool over_committed = false;  // adopted where the library's own rules would have refused it
};

struct AdoptResult {
  bool over_committed = false;
  Reason reason = Reason::kNone;  // the first rule that the job breaks where it runs
};

struct FitLimits;  // fit.h

class Cluster {
 public:
  // An empty cluster; GPU type ids are those of `catalogue` (nullptr = a catalogue without types).
  explicit Cluster(std::shared_ptr<const Catalogue> catalogue, const ClusterLimits& limits = {});

  [[nodiscard]] const Catalogue& catalogue() const { return *catalogue_; }
  [[nodiscard]] const std::shared_ptr<const Catalogue>& shared_catalogue() const { return catalogue_; }

  // On failure of any of these, a failed allocation (bad_alloc) included, the cluster is as before.

  // ALREADY_EXISTS, INVALID_ARGUMENT, RESOURCE_EXHAUSTED (limits).
  [[nodiscard]] absl::Status AddNode(NodeSpec node);
  // Replaces the description of node.id. NOT_FOUND; FAILED_PRECONDITION when a resident would lose its
  // device or its host resources (the message names it); as AddNode.
  [[nodiscard]] absl::Status ChangeNode(NodeSpec node);
  // NOT_FOUND; FAILED_PRECONDITION while jobs are there (how many and the lowest id).
  [[nodiscard]] absl::Status RemoveNode(NodeId node);
  // The ids of the jobs there, ascending; they stay resident until released. NOT_FOUND.
  [[nodiscard]] absl::StatusOr<std::vector<JobId>> SetNodeState(NodeId node, AdminState state);
  [[nodiscard]] absl::StatusOr<std::vector<JobId>> SetDeviceState(NodeId node, int32_t device, AdminState state);

  // The first rule that the job, not there yet, would break on those slots, slowdowns aside. Errors as Adopt.
  [[nodiscard]] absl::StatusOr<Reason> BrokenRule(const JobSpec& job, std::span<const Slot> slots,
                                                  const FitLimits& limits) const;

  // Takes in a job that runs already. What runs is true even where it breaks a constraint; that is flagged. States
  // are no such constraint: jobs stay on drained nodes.
  // ALREADY_EXISTS, NOT_FOUND (node or device), INVALID_ARGUMENT (job, number or shape of the slots),
  // RESOURCE_EXHAUSTED (kMaxResidentsPerDevice, the limit of jobs, kMostOwed, kMaxGroupsPerNode).
  [[nodiscard]] absl::StatusOr<AdoptResult> Adopt(const JobSpec& job, std::span<const Slot> slots);

  // Carries out every action of `plan`, or none; as if at once: first leave all that move or are preempted, then those
  // who stay give and take host resources, then come all that move or are placed; what a resize adds must be there in
  // the end. ALREADY_EXISTS: a job that it places is resident (so a second apply is harmless).
  // ABORTED: a node that it touches, those that jobs leave included, changed since, or is gone. NOT_FOUND: a job that
  // it moves, resizes or preempts is not there. INVALID_ARGUMENT and FAILED_PRECONDITION for plans that no planner
  // made, and for answers to what-ifs.
  [[nodiscard]] absl::Status Apply(const Changes& plan);
  // NOT_FOUND (so a second release is harmless).
  [[nodiscard]] absl::Status Release(JobId job);

  [[nodiscard]] ClusterTotals Totals() const;
  [[nodiscard]] size_t node_count() const { return rows_.order.size(); }
  [[nodiscard]] size_t device_count() const { return rows_.live_devices; }
  [[nodiscard]] size_t job_count() const { return rows_.job_of.size(); }
  [[nodiscard]] std::vector<NodeId> NodeIds() const;  // ascending
  [[nodiscard]] std::vector<JobId> JobIds() const;    // ascending
  [[nodiscard]] bool HasJob(JobId job) const { return rows_.RowOfJob(job) != kNoRow; }
  [[nodiscard]] bool HasNode(NodeId node) const { return rows_.node_of.contains(node); }
  [[nodiscard]] absl::StatusOr<NodeInfo> Node(NodeId node) const;
  [[nodiscard]] absl::StatusOr<DeviceInfo> Device(NodeId node, int32_t device) const;
  [[nodiscard]] absl::StatusOr<JobInfo> Job(JobId job) const;

  // Equal for equal nodes, states and jobs, whatever the history; versions are not part of it.
  [[nodiscard]] uint64_t state_hash() const;
  [[nodiscard]] uint64_t bytes_held() const;

  // The rows of those slots, by task, node and device. INVALID_ARGUMENT: not what the job asks for, or a device twice;
  // NOT_FOUND: a node or device.
  [[nodiscard]] absl::StatusOr<PlacedSlots> ResolveSlots(const JobSpec& job, std::span<const Slot> slots) const;

  // The columns behind it; for planners of this room.
  [[nodiscard]] const ClusterRows& rows() const { return rows_; }

 private:
  friend class ClusterRestorer;  // snapshot.cc

  [[nodiscard]] absl::StatusOr<uint32_t> FindNode(NodeId node) const;
  [[nodiscard]] absl::StatusOr<uint32_t> FindDevice(const NodeRow& node, int32_t device) const;
  [[nodiscard]] absl::Status CheckChange(const NodeRow& row, const NodeSpec& next) const;
  [[nodiscard]] std::vector<JobId> JobsOnDevices(uint32_t first, size_t count) const;
  [[nodiscard]] std::vector<JobId> JobsOnNode(const NodeRow& row) const;  // those without GPUs too
  // Changes are made in two steps: what may fail (allocations) before anything is touched, then what cannot.
  void ReserveNode();
  void ReserveDevices(size_t count);
  [[nodiscard]] uint32_t TakeDevices(size_t count) noexcept;  // after ReserveDevices
  void GiveDevices(uint32_t first, size_t count) noexcept;    // after ReserveNode
  void SetDevice(uint32_t device, uint32_t state) noexcept;
  void Touch(uint32_t node_row, uint64_t what) noexcept;
  void TouchStructure(uint32_t node_row, uint64_t what) noexcept;  // when it is added, changed or removed

  // What Adopt refuses of a valid job.
  [[nodiscard]] absl::StatusOr<PlacedSlots> ResolveAdopted(const JobSpec& job, std::span<const Slot> slots) const;
  // LIMIT where the job would take a node too deep into what it has not, or bring too many groups.
  [[nodiscard]] absl::Status CheckDebts(const JobSpec& job, std::span<const PlacedSlot> slots) const;
  // `runs`: the job is there already; a drained or failed node only refuses those that are to come.
  [[nodiscard]] Reason FirstBrokenRule(const JobSpec& job, std::span<const PlacedSlot> slots, const FitLimits& limits,
                                       bool runs) const;
  // What no planner's option can change.
  [[nodiscard]] static FitLimits PhysicalLimits();
  // Whether everybody on a device accepts the job's owner, and the job theirs.
  [[nodiscard]] bool MayShare(const JobSpec& job, const Residents& residents) const;
  class Undo;
  struct Growth;
  struct Held;
  [[nodiscard]] absl::Status CheckActions(const Changes& plan) const;
  // Those who take more are appended to `grown`.
  [[nodiscard]] absl::Status ApplyResize(const Action& action, std::span<const NodeId> seen, Undo& undo,
                                         std::vector<Growth>& grown);
  [[nodiscard]] absl::Status CheckGrown(std::span<const Growth> grown) const;
  // The row holds `request` from now on, which may differ in host resources; returns the one before, still held.
  void SwapHeld(uint32_t job_row, JobRow& other) noexcept;
  [[nodiscard]] absl::Status CheckSeen(const JobSpec& job, uint32_t row, std::span<const NodeId> seen) const;
  [[nodiscard]] absl::Status ApplyLeave(const Action& action, std::span<const NodeId> seen, Undo& undo);
  [[nodiscard]] absl::Status ApplyCome(const Action& action, std::span<const NodeId> seen, Undo& undo);
  // `alike`: the request of a job in the cluster that asks for the same, or kNone; becomes that of this job.
  void InsertJob(const JobSpec& given, std::span<const PlacedSlot> slots, bool adopted, bool over_committed,
                 uint32_t& alike);
  // Makes known of a job's request what its classes are on those slots.
  void HoldClasses(const JobSpec& job, std::span<const PlacedSlot> slots, uint32_t request);
  // What cannot fail once all is reserved. The row brings and takes along what it holds of ClusterRows::states and
  // requests.
  void PutJob(JobRow job) noexcept;
  [[nodiscard]] JobRow TakeJob(uint32_t job_row) noexcept;

  std::shared_ptr<const Catalogue> catalogue_;
  ClusterLimits limits_;
  ClusterRows rows_;
};

}  // namespace horus
