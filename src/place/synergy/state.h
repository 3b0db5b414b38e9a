// SPDX-License-Identifier: Apache-2.0
// SynergyState: what is free and who holds what while a round is being made; of this folder only.
//
// Enters:  a checked SynergyInput, then placements and changes of shares.
// Leaves:  best-fit order of servers, room for slices, what reclaiming would free.
// Units:   as round.h; holders are the residents, then the jobs, by index.
// Cost:    a placement O(log servers), best fit O(servers / 64); a question about a server O(its holders).    Thread
// class: one thread at a time.
#ifndef HORUS_PLACE_SYNERGY_STATE_H_
#define HORUS_PLACE_SYNERGY_STATE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "place/state/groups.h"
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

  [[nodiscard]] const SynergyInput& input() const { return input_; }
  [[nodiscard]] int64_t gpus_free() const { return gpus_free_; }
  // The first server in best-fit order - (free GPUs, index) - with at least `gpus` free for which `fits` holds, which
  // it must not where less than `least` is free.
  template <typename Fits>
  [[nodiscard]] std::optional<uint32_t> BestFit(int32_t gpus, const HostShare& least, const Fits& fits);
  [[nodiscard]] const SynergyServer& server(uint32_t server) const { return servers_[server]; }  // as it is now
  [[nodiscard]] const SynergyHolder& holder(size_t holder) const { return holders_[holder]; }
  [[nodiscard]] size_t holders() const { return holders_.size(); }
  [[nodiscard]] std::span<const uint32_t> HoldersOn(uint32_t server) const { return on_[server]; }
  [[nodiscard]] size_t HolderOfJob(size_t job) const { return input_.residents.size() + job; }

  // What a server has free, and would have with all its holders at their floors. GPUs are the same in both.
  [[nodiscard]] HostShare Free(uint32_t server) const;
  [[nodiscard]] HostShare FreeAtFloors(uint32_t server) const;

  void Place(size_t holder, std::vector<SynergySlice> slices, const HostShare& share, const HostShare& floor);
  void Resize(size_t holder, const HostShare& share);
  // So many of its free GPUs count as taken, or with a number below 0 are free again; gpus_free() does not change.
  void SetAside(uint32_t server, int32_t gpus);
  // The most GPUs of the job that the server's host takes beside the jobs that this round has put there; whatever
  // their cores, memory and GPUs.
  [[nodiscard]] int32_t MostOn(size_t job, uint32_t server) const;
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
  // Servers of one free count whose indices share all but the last six bits, so that whole blocks can be passed over.
  struct Block {
    uint64_t members = 0;  // bit i: server 64 * block + i
    HostShare most;        // no member has more free
  };
  static constexpr uint32_t kBlockServers = 64;
  struct Host {
    int64_t storage_free_mb_s = 0;
    NodeGroups groups;  // of this round's jobs
  };
  void Enter(uint32_t server);
  void Leave(uint32_t server);
  void Take(const SynergySlice& slice, const HostShare& share, int32_t sign);

  SynergyInput input_;
  std::vector<SynergyServer> servers_;
  std::vector<SynergyHolder> holders_;
  std::vector<std::vector<uint32_t>> on_;                 // server -> holders, in order of placement
  std::map<int32_t, std::map<uint32_t, Block>> by_free_;  // free GPUs, above 0 -> index / 64 -> block
  int64_t gpus_free_ = 0;
  std::vector<Host> hosts_;  // empty where no job minds
};

template <typename Fits>
std::optional<uint32_t> SynergyState::BestFit(int32_t gpus, const HostShare& least, const Fits& fits) {
  for (auto bucket = by_free_.lower_bound(gpus); bucket != by_free_.end(); ++bucket) {
    for (auto& [index, block] : bucket->second) {
      if (!IsWithin(least, block.most)) continue;
      HostShare most = Free(index * kBlockServers + static_cast<uint32_t>(std::countr_zero(block.members)));
      for (uint64_t left = block.members; left != 0; left &= left - 1) {
        const uint32_t server = index * kBlockServers + static_cast<uint32_t>(std::countr_zero(left));
        if (fits(server)) return server;
        most = AtLeast(most, Free(server));
      }
      block.most = most;  // what a walk in vain has learnt
    }
  }
  return std::nullopt;
}

}  // namespace horus

#endif  // HORUS_PLACE_SYNERGY_STATE_H_
