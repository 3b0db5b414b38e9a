// SPDX-License-Identifier: Apache-2.0
// Why a rule left a job out of a round, where the search for places knows no reason.
//
// Enters:  the servers of a round, a job and those of them that it may use.
// Leaves:  the least that the rule would give it; whether it would ever run; the nearest miss.
// Units:   as round.h and decision.h.
// Cost:    O(servers) a question.         Thread class: pure functions.
#ifndef HORUS_PLACE_SYNERGY_REFUSAL_H_
#define HORUS_PLACE_SYNERGY_REFUSAL_H_

#include <cstdint>
#include <span>

#include "place/decision.h"
#include "place/state/ledger.h"
#include "place/synergy/cluster_round.h"
#include "place/synergy/demands.h"

namespace horus {

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

#endif  // HORUS_PLACE_SYNERGY_REFUSAL_H_
