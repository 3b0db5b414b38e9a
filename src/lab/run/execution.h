// SPDX-License-Identifier: Apache-2.0
// Execution: jobs that run on devices, how far they are, and who finishes next. Rates are constant between changes, so
// progress is a product, never a sum of small steps.
//
// Enters:  jobs that start and stop on devices.
// Leaves:  the next finish; what each job had left; sums over time.
// Units:   microseconds; work in billionths of a microsecond alone at speed 1, so that sums are exact.
// Cost:    a start or stop asks the truth once for each of its devices and moves the finish of every tenant there:
//          O(devices x tenants x log jobs).
// Thread class: one thread at a time.
#pragma once

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/numeric/int128.h"
#include "base/id_map.h"
#include "lab/truth/truth.h"
#include "place/state/cluster.h"
#include "queue/indexed_heap.h"

namespace horus {

// ---- The nodes and devices of a cluster by number, in the order of Cluster::NodeIds and of their specs.

class ClusterMap {
 public:
  explicit ClusterMap(const Cluster& cluster) : nodes_(cluster.NodeIds()) {
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      node_of_id_.Insert(nodes_[node], node);
      const NodeInfo info = *cluster.Node(nodes_[node]);
      first_device_.push_back(static_cast<uint32_t>(devices_.size()));
      devices_.insert(devices_.end(), info.spec.devices.begin(), info.spec.devices.end());
      node_of_.resize(devices_.size(), node);
      const auto gpus = static_cast<int32_t>(std::max<size_t>(1, info.spec.devices.size()));
      fair_shares_.push_back(FairShare(info.spec.cpu_milli, info.spec.mem_mib, gpus));
    }
    first_device_.push_back(static_cast<uint32_t>(devices_.size()));
  }

  [[nodiscard]] size_t nodes() const { return nodes_.size(); }
  [[nodiscard]] size_t devices() const { return devices_.size(); }
  [[nodiscard]] NodeId id(uint32_t node) const { return nodes_[node]; }
  [[nodiscard]] const uint32_t* Find(NodeId id) const { return node_of_id_.Find(id); }  // null = not of the cluster
  [[nodiscard]] uint32_t at(NodeId id) const { return node_of_id_.at(id); }
  [[nodiscard]] uint32_t first_device(uint32_t node) const { return first_device_[node]; }
  [[nodiscard]] size_t devices_on(uint32_t node) const { return first_device_[node + 1] - first_device_[node]; }
  [[nodiscard]] uint32_t node_of(uint32_t device) const { return node_of_[device]; }
  [[nodiscard]] const DeviceSpec& device(uint32_t device) const { return devices_[device]; }
  [[nodiscard]] DeviceContext context(uint32_t device) const {
    const DeviceSpec& spec = devices_[device];
    return {spec.type, spec.mode, spec.compute_share};
  }
  [[nodiscard]] const HostShare& fair_share(uint32_t node) const { return fair_shares_[node]; }  // of each GPU

 private:
  std::vector<NodeId> nodes_;
  IdMap<uint32_t> node_of_id_;
  std::vector<DeviceSpec> devices_;
  std::vector<uint32_t> first_device_;  // by node, and the end
  std::vector<uint32_t> node_of_;       // by device
  std::vector<HostShare> fair_shares_;  // by node
};

// ---- What runs.

using Work = absl::int128;

inline constexpr int64_t kFullRate = 1'000'000'000;  // of a job alone at speed 1: work a microsecond

// Of the time that a job ran: what counts is known when it stops.
struct RunSums {
  Work done;         // work
  Work undisturbed;  // the same where each type's own speed alone counts as 1
  Work backlogged;   // work while others waited
};

// What there is to say of a job that stops.
struct RunEnd {
  Work left;          // 0 or less where it is done
  Work left_on_disk;  // as of its last checkpoint
  int64_t ran_us = 0;
  RunSums sums;
};

// What is to run.
struct RunBegin {
  uint32_t profile = 0;
  std::span<const uint32_t> devices;  // each once; none = a job for the host alone, at speed 1
  Work left = 0;                      // above 0
  double host_speed = 1;              // factor of its cores and host memory
};

class Execution {
 public:
  // `jobs`: numbers of jobs are below it. `checkpoint_us`: a job that runs writes one that often, in no time; 0 =
  // always. `truth` and `map` must outlive it.
  Execution(const Truth& truth, const ClusterMap& map, size_t jobs, int64_t checkpoint_us)
      : truth_(truth), map_(map), checkpoint_us_(checkpoint_us), tenants_(map.devices()), jobs_(jobs) {
    finishes_.Reserve(jobs);
    positions_.resize(jobs);
  }

  // Lets time pass to `to_us`, not before now. `waits`: whether somebody waited for a place meanwhile.
  void PassTime(int64_t to_us, bool waits) {
    const int64_t passed = to_us - std::exchange(now_us_, to_us);
    if (waits) backlog_us_ += passed;
    done_ += Work(passed) * rate_;
  }
  // Starts a job that is not there, at the speed of its slowest device. False, and nothing changes, where it cannot run
  // beside those who are there. INVALID_ARGUMENT: the truth does not know it there.
  [[nodiscard]] absl::StatusOr<bool> Start(uint32_t job, const RunBegin& begin);
  // A job that runs gets other cores or host memory. Errors: the truth's.
  [[nodiscard]] absl::Status SetHostSpeed(uint32_t job, double host_speed) {
    Running& running = jobs_[job];
    Advance(running);
    running.host_speed = host_speed;
    for (const OnDevice& one : running.devices) HORUS_RETURN_IF_ERROR(Refresh(one.device));
    return absl::OkStatus();
  }
  // Takes a running job away.
  [[nodiscard]] absl::StatusOr<RunEnd> Stop(uint32_t job);
  // Work that was counted is lost, of a job on so many devices.
  void Lose(Work work, size_t devices) { done_ -= work * static_cast<int64_t>(devices); }
  // How long a running job has run since it started.
  [[nodiscard]] int64_t RanUs(uint32_t job) const { return now_us_ - jobs_[job].begun_us; }
  // What a running job has left now.
  [[nodiscard]] Work LeftOf(uint32_t job) const {
    return jobs_[job].left - Work(now_us_ - jobs_[job].since_us) * jobs_[job].rate;
  }

  [[nodiscard]] int64_t backlog_us() const { return backlog_us_; }  // how long somebody waited
  // Of all jobs, each counted by its GPUs: work so far, never more than each had, and work per microsecond now.
  [[nodiscard]] Work done() const { return done_; }
  [[nodiscard]] Work rate() const { return rate_; }
  [[nodiscard]] bool empty() const { return finishes_.empty(); }
  // Of a job that runs; requires one. The lowest number among those that finish at the same time.
  struct Finish {
    int64_t time_us = 0;
    uint32_t job = 0;
    friend auto operator<=>(const Finish&, const Finish&) = default;
  };
  [[nodiscard]] Finish Next() const { return finishes_.top().key; }

  // Of a job that runs: its share of its speed alone on one of its devices; 0 where it is not.
  [[nodiscard]] double ShareOn(uint32_t job, uint32_t device) const {
    const auto& devices = jobs_[job].devices;
    const auto at = std::ranges::find(devices, device, &OnDevice::device);
    return at == devices.end() ? 0 : at->share;
  }
  [[nodiscard]] std::span<const uint32_t> TenantsOf(uint32_t device) const { return tenants_[device]; }

 private:
  using Tenants = absl::InlinedVector<uint32_t, 3>;
  struct OnDevice {
    uint32_t device = 0;
    int64_t rate = 0;
    double share = 0;
  };
  struct Running {
    uint32_t profile = 0;
    double host_speed = 1;
    int64_t since_us = 0;  // left and sums are of then
    int64_t since_backlog_us = 0;
    int64_t begun_us = 0;
    Work left_on_disk = 0;
    Work left = 0;
    RunSums sums;
    int64_t rate = 0;   // of the slowest device
    int64_t share = 0;  // there
    absl::InlinedVector<OnDevice, 1> devices;
  };

  [[nodiscard]] absl::Status SharesOn(uint32_t device, std::span<const uint32_t> tenants);
  void Advance(Running& job) const;
  void Schedule(uint32_t job);
  [[nodiscard]] absl::Status Refresh(uint32_t device);

  const Truth& truth_;
  const ClusterMap& map_;
  int64_t checkpoint_us_;
  std::vector<Tenants> tenants_;  // by device
  std::vector<Running> jobs_;     // by job number
  IndexedHeap<Finish> finishes_;
  HeapPositions positions_;
  int64_t now_us_ = 0;
  int64_t backlog_us_ = 0;
  Work done_ = 0;
  Work rate_ = 0;
  std::vector<uint32_t> profiles_;  // scratch
  std::vector<double> hosts_;
  std::vector<double> shares_;
};

}  // namespace horus
