// SPDX-License-Identifier: Apache-2.0
// ClusterRound: a cluster as a round sees it, servers with what is free and residents with what they hold.
//
// Enters:  a ledger that follows the cluster, the nodes to consider; the cluster itself while it is being read.
// Leaves:  SynergyServer and SynergyResident columns; which devices a server stands for.
// Cost:    O(devices), and O(jobs) where residents may be resized or a node mixes its GPUs.
// Thread class: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/id_map.h"
#include "lab/synergy/round.h"
#include "lab/synergy/rules.h"
#include "place/decision.h"
#include "place/state/cluster.h"
#include "place/state/ledger.h"

namespace horus {

// Whether rules know such jobs: whole GPUs, run in one way.
[[nodiscard]] bool TakesRounds(const JobSpec& job);

class ClusterRound {
 public:
  // GPUs of one node that are alike: type, sharing mode, memory, share of a card. A node that mixes several is as many
  // servers, each with its GPUs' part of cores and memory, so that no GPU's fair share depends on its neighbours.
  struct Place {
    uint32_t node_row = 0;
    uint32_t sample = 0;  // one of the devices
  };
  struct ResidentJob {
    std::shared_ptr<const JobSpec> spec;
    PlacedSlots slots;
  };

  // `nodes`: rows, ascending id. Residents are those that the rule may resize: on whole GPUs, on nodes that are up and
  // considered. Those of `gone` count as gone, as they must in the ledger.
  void Read(const Cluster& cluster, const Ledger& ledger, std::span<const uint32_t> nodes,
            const SynergySettings& settings, const IdMap<bool>* gone = nullptr);

  // The servers of those slots; none where a node is not up or not considered.
  [[nodiscard]] std::vector<SynergySlice> SlicesOf(const Ledger& ledger, std::span<const PlacedSlot> slots) const;

  [[nodiscard]] std::span<const SynergyServer> servers() const { return servers_; }
  [[nodiscard]] const Place& place(size_t server) const { return places_[server]; }
  [[nodiscard]] uint32_t kinds() const { return kinds_; }  // above every SynergyServer::kind
  [[nodiscard]] std::span<const SynergyResident> residents() const { return residents_; }
  [[nodiscard]] const ResidentJob& resident(size_t index) const { return jobs_[index]; }  // ascending job id
  // Devices of the server that are idle and up in the ledger, ascending.
  [[nodiscard]] std::vector<int32_t> IdleOn(const Ledger& ledger, size_t server) const;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  void AddServers(const Ledger& ledger, std::span<const uint32_t> nodes);
  [[nodiscard]] std::vector<HostShare> ReadJobs(const Cluster& cluster, const Ledger& ledger,
                                                const SynergySettings& settings, const IdMap<bool>* gone);
  void ShareOut(const Ledger& ledger, std::span<const HostShare> used);

  std::vector<SynergyServer> servers_;
  std::vector<Place> places_;
  std::vector<uint32_t> server_of_;  // by device
  uint32_t kinds_ = 0;
  bool mixed_ = false;  // some node is several servers
  std::vector<ResidentJob> jobs_;
  std::vector<SynergyResident> residents_;
};

// ---- Why a rule left a job out of a round, where the search for places knows no reason.
// Cost: O(servers) a question.

// A job as a round sees it.
struct RoundJob {
  const JobSpec* spec = nullptr;
  SynergyJob job;
  std::span<const uint32_t> allowed;  // servers, ascending; also where `job.allowed` is empty because it is all of them
};

class RoundRefusals {
 public:
  RoundRefusals(const ClusterRound& round, const SynergySettings& settings)
      : round_(round), settings_(settings), classes_(ClassesOf(round.servers())) {}

  // The least share per GPU by which the rule would run the job on one of `allowed`; what it needs where that is empty.
  [[nodiscard]] HostShare Least(const RoundJob& job) const;
  // Whether the rule would run it alone, on the servers `allowed` when idle.
  [[nodiscard]] bool FitsAlone(const RoundJob& job, const Ledger& ledger) const;
  // Reason and nearest miss: on the servers as they are, or idle.
  void Explain(const RoundJob& job, const Ledger& ledger, bool idle, Decision& decision) const;

 private:
  [[nodiscard]] HostShare LevelOn(JobDemands& demands, uint32_t server) const;

  const ClusterRound& round_;
  const SynergySettings& settings_;
  ServerClasses classes_;
};

}  // namespace horus
