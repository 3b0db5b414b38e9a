// SPDX-License-Identifier: Apache-2.0
// The rules of a round: what is free and who holds what while it is made, where one job goes, and what the leftovers
// are worth; of this folder only.
//
// Enters:  the state of the round and a job's demands.
// Leaves:  the state with the job placed, or as it was.
// Cost:    placing O(log servers) where the first server fits, O(servers) at worst; growing O(holders x cells).
// Thread class: one thread at a time, as the state.
#pragma once

#include <bit>
#include <map>
#include <optional>

#include "lab/synergy/round.h"
#include "place/state/groups.h"

namespace horus {

// ---- SynergyState: what is free and who holds what while a round is being made; of this folder only.
// Cost: a placement O(log servers), best fit O(servers / 64); a question about a server O(its holders). Thread class:
// one thread at a time.

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
  [[nodiscard]] HostShare Free(uint32_t server) const {
    return {servers_[server].cpu_free_milli, servers_[server].mem_free_mib};
  }
  [[nodiscard]] HostShare FreeAtFloors(uint32_t server) const;

  void Place(size_t holder, std::vector<SynergySlice> slices, const HostShare& share, const HostShare& floor);
  void Resize(size_t holder, const HostShare& share) {
    for (const SynergySlice& slice : holders_[holder].slices) {
      Take(slice, holders_[holder].held, -1);
      Take(slice, share, 1);
      Enter(slice.server);
    }
    holders_[holder].held = share;
  }
  // So many of its free GPUs count as taken, or with a number below 0 are free again; gpus_free() does not change.
  void SetAside(uint32_t server, int32_t gpus) {
    Leave(server);
    servers_[server].gpus_free -= gpus;
    Enter(server);
  }
  // The most GPUs of the job that the server's host takes beside the jobs that this round has put there; whatever
  // their cores, memory and GPUs.
  [[nodiscard]] int32_t MostOn(size_t job, uint32_t server) const;
  // Whether the holder can have `share` where it is.
  [[nodiscard]] bool CanResize(size_t holder, const HostShare& share) const {
    const HostShare& held = holders_[holder].held;
    for (const SynergySlice& slice : holders_[holder].slices) {
      const SynergyServer& server = servers_[slice.server];
      // Over-committed servers take nothing more, yet what is given back is always welcome.
      const HostShare more = (share - held) * slice.gpus;
      if (more.cpu_milli > 0 && more.cpu_milli > server.cpu_free_milli) return false;
      if (more.mem_mib > 0 && more.mem_mib > server.mem_free_mib) return false;
    }
    return true;
  }
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
  void Take(const SynergySlice& slice, const HostShare& share, int32_t sign) {
    servers_[slice.server].cpu_free_milli -= sign * slice.gpus * share.cpu_milli;
    servers_[slice.server].mem_free_mib -= sign * slice.gpus * share.mem_mib;
  }

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

// ---- What a job asks for on each kind of server: its fair share, its floor and its best cell; of this folder only.
// Cost: O(cells) a class, made on first use.

// Servers of one kind and size.
struct ServerClass {
  uint32_t kind = 0;
  int32_t gpus = 0;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  friend auto operator<=>(const ServerClass&, const ServerClass&) = default;
};

struct ServerClasses {
  std::vector<ServerClass> classes;            // ascending
  std::vector<uint32_t> of;                    // server -> class
  std::vector<std::vector<uint32_t>> members;  // class -> servers with GPUs, ascending
};
[[nodiscard]] ServerClasses ClassesOf(std::span<const SynergyServer> servers);

struct HostLevels {
  HostShare fair;
  HostShare floor;
  HostShare best;
};

// The most that a GPU of a job of `gpus` GPUs can have on servers of the class.
[[nodiscard]] HostShare MostPerGpu(const ServerClass& servers, int32_t gpus);

class JobDemands {
 public:
  JobDemands(const SynergyJob& job, const ServerClasses& classes, double tolerance)
      : job_(&job), classes_(&classes), tolerance_(tolerance) {}

  // From now on stands for the best cell.
  void Choose(const HostShare& share) {
    chosen_ = share;
    levels_.clear();
  }

  [[nodiscard]] const SynergyJob& job() const { return *job_; }
  [[nodiscard]] const HostLevels& On(uint32_t server);
  [[nodiscard]] bool Allows(uint32_t server) const {
    return job_->allowed.empty() || std::binary_search(job_->allowed.begin(), job_->allowed.end(), server);
  }

 private:
  const SynergyJob* job_;
  const ServerClasses* classes_;
  double tolerance_;
  std::optional<HostShare> chosen_;
  std::map<uint32_t, HostLevels> levels_;  // by class, of those asked for
};

// One attempt at a job: at which demand, and whether others may be cut back to their floors for it.
struct SynergyStep {
  HostShare HostLevels::* level = nullptr;
  bool reclaim = false;
};
inline constexpr SynergyStep kFairSteps[] = {{&HostLevels::fair}};
inline constexpr SynergyStep kTuneSteps[] = {{&HostLevels::best}, {&HostLevels::floor}, {&HostLevels::floor, true}};

// Places job `index` at the first step that works: on one server, the one with fewest free GPUs that fits, or where the
// GPUs allow none in slices over servers of one class, as few as possible.
bool PlaceJob(SynergyState& state, const ServerClasses& classes, JobDemands& demands, size_t index,
              std::span<const SynergyStep> steps);

// Hands what is left on each server to the holders there, most speed per resource first.
void GrowHolders(SynergyState& state, const ServerClasses& classes);

// Jobs that got GPUs.
[[nodiscard]] size_t RunningJobs(const SynergyState& state);

// The places of `fair` with everyone at its floor, then in policy order at its best cell where that fits.
[[nodiscard]] SynergyState RaiseInPlace(const SynergyState& fair, std::span<JobDemands> demands);

// AllocateRound by kOpt.
[[nodiscard]] absl::StatusOr<SynergyRound> PlaceOptimally(const SynergyInput& input, const ServerClasses& classes,
                                                          const SynergyOptions& options);

}  // namespace horus
