// SPDX-License-Identifier: Apache-2.0
// SynergyState: what is free and who holds what while a round is being made; of this folder only.
//
// Enters:  a checked SynergyInput, then placements and changes of shares.
// Leaves:  best-fit order of servers, room for slices, what reclaiming would free.
// Units:   as round.h; holders are the residents, then the jobs, by index.
// Cost:    a placement O(log servers); a question about a server O(its holders).    Thread class: one thread at a time.
#ifndef HORUS_PLACE_SYNERGY_STATE_H_
#define HORUS_PLACE_SYNERGY_STATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "place/synergy/round.h"

namespace horus {

// Who runs, or may run, in a round.
struct SynergyHolder {
  std::vector<SynergySlice> slices;  // empty = not placed
  int32_t gpus = 0;
  HostShare held;
  HostShare floor;
  const Sensitivity* sensitivity = nullptr;

  [[nodiscard]] double SpeedAt(const HostShare& share) const {
    return sensitivity == nullptr ? 1 : sensitivity->Speed(share);
  }
};

// The larger of two in each resource.
[[nodiscard]] HostShare AtLeast(const HostShare& share, const HostShare& least);

class SynergyState {
 public:
  explicit SynergyState(const SynergyInput& input);

  [[nodiscard]] const SynergyInput& input() const { return *input_; }
  [[nodiscard]] int64_t gpus_free() const { return gpus_free_; }
  // (free GPUs, server), ascending: the best-fit order. Servers without a free GPU are not in it.
  [[nodiscard]] const std::set<std::pair<int32_t, uint32_t>>& by_free() const { return by_free_; }
  [[nodiscard]] const SynergyServer& server(uint32_t server) const { return servers_[server]; }  // as it is now
  [[nodiscard]] const SynergyHolder& holder(size_t holder) const { return holders_[holder]; }
  [[nodiscard]] size_t holders() const { return holders_.size(); }
  [[nodiscard]] std::span<const uint32_t> HoldersOn(uint32_t server) const { return on_[server]; }
  [[nodiscard]] size_t HolderOfJob(size_t job) const { return input_->residents.size() + job; }

  // What a server has free, and would have with all its holders at their floors. GPUs are the same in both.
  [[nodiscard]] HostShare Free(uint32_t server) const;
  [[nodiscard]] HostShare FreeAtFloors(uint32_t server) const;

  void Place(size_t holder, std::vector<SynergySlice> slices, const HostShare& share, const HostShare& floor);
  void Resize(size_t holder, const HostShare& share);
  // Whether the holder can have `share` where it is.
  [[nodiscard]] bool CanResize(size_t holder, const HostShare& share) const;
  // Cuts holders back, never below their floors, until `wanted` is free: each time the cut that costs least speed for
  // what it adds to it.
  void Reclaim(uint32_t server, const HostShare& wanted);

  [[nodiscard]] SynergyRound ToRound() const;

 private:
  struct Cut {
    uint32_t holder = 0;
    HostShare share;
    double price = 0;  // speed lost, per part of the lack that it frees
  };
  [[nodiscard]] std::optional<Cut> CheapestCut(uint32_t server, const HostShare& lack) const;
  void Take(const SynergySlice& slice, const HostShare& share, int32_t sign);

  const SynergyInput* input_;
  std::vector<SynergyServer> servers_;
  std::vector<SynergyHolder> holders_;
  std::vector<std::vector<uint32_t>> on_;  // server -> holders, in order of placement
  std::set<std::pair<int32_t, uint32_t>> by_free_;
  int64_t gpus_free_ = 0;
};

}  // namespace horus

#endif  // HORUS_PLACE_SYNERGY_STATE_H_
