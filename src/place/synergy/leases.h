// SPDX-License-Identifier: Apache-2.0
// Leases: keeps the GPUs of jobs that ran until now from those before them, as long as there are others; of this folder
// only.
//
// Enters:  the state of a round; whose turn it is.
// Leaves:  GPUs that count as taken until then.
// Units:   as round.h.
// Cost:    O(log servers) a lease; all leases again where a job finds no place beside them.
// Thread class: one thread at a time, as the state.
#ifndef HORUS_PLACE_SYNERGY_LEASES_H_
#define HORUS_PLACE_SYNERGY_LEASES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "place/synergy/state.h"

namespace horus {

class Leases {
 public:
  // Of the first jobs in policy order that the free GPUs hold together: those after them may lose theirs anyhow.
  explicit Leases(SynergyState& state);
  // It is the job's turn: its GPUs are free for it.
  void End(size_t job);
  // Frees all, and keeps again of jobs after `job` those that are still free. Whether there were any.
  bool Suspend();
  void ResumeAfter(size_t job);

 private:
  [[nodiscard]] bool CanHold(size_t job) const;
  void Hold(size_t job, int32_t sign);

  SynergyState& state_;
  size_t end_ = 0;             // of the jobs whose leases count
  std::vector<uint8_t> held_;  // by job; empty where none has any
};

}  // namespace horus

#endif  // HORUS_PLACE_SYNERGY_LEASES_H_
