// SPDX-License-Identifier: Apache-2.0
// Where one job goes: best fit on one server, else slices over several.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "place/synergy/rules.h"

namespace horus {
namespace {

// With more classes of servers the least need is not worth its price; chosen.
constexpr size_t kMaxClassesCompared = 32;

HostShare Times(const HostShare& share, int64_t gpus) { return {share.cpu_milli * gpus, share.mem_mib * gpus}; }

// How many GPUs with `share` each that room holds, at most `limit`.
int32_t Hold(const HostShare& room, const HostShare& share, int32_t limit) {
  int64_t count = limit;
  if (share.cpu_milli > 0) count = std::min(count, room.cpu_milli / share.cpu_milli);
  if (share.mem_mib > 0) count = std::min(count, room.mem_mib / share.mem_mib);
  return static_cast<int32_t>(std::max<int64_t>(0, count));
}

class Attempt {
 public:
  Attempt(SynergyState& state, const ServerClasses& classes, JobDemands& demands, size_t index, SynergyStep step)
      : state_(state), classes_(classes), demands_(demands), index_(index), step_(step), job_(demands.job()) {}

  // Where the job ran until now.
  bool OnHeld(std::vector<SynergySlice>& slices) {
    int64_t gpus = 0;
    for (const SynergySlice& slice : job_.held) {
      gpus += slice.gpus;
      if (slice.gpus % job_.unit != 0 || Room(slice.server) < slice.gpus) return false;
      if (classes_.of[slice.server] != classes_.of[job_.held.front().server]) return false;
    }
    if (gpus != job_.gpus) return false;
    slices.assign(job_.held.begin(), job_.held.end());
    return true;
  }

  // The server with fewest free GPUs, lowest index among equals, that takes the whole job.
  bool OnOne(std::vector<SynergySlice>& slices) {
    const auto fits = [this](uint32_t server) { return Room(server) >= job_.gpus; };
    const std::optional<uint32_t> server = state_.BestFit(job_.gpus, LeastNeed(), fits);
    if (server.has_value()) slices = {{*server, job_.gpus}};
    return server.has_value();
  }

  // As few servers of the class as possible: the roomiest, and for the last slice the best fit.
  bool OnSeveral(std::span<const uint32_t> servers, std::vector<SynergySlice>& slices) {
    std::vector<SynergySlice> rooms;
    for (const uint32_t server : servers) {
      const int32_t room = Room(server) / job_.unit * job_.unit;
      if (room > 0) rooms.push_back({server, room});
    }
    std::stable_sort(rooms.begin(), rooms.end(),
                     [](const SynergySlice& a, const SynergySlice& b) { return a.gpus > b.gpus; });
    slices.clear();
    int32_t left = job_.gpus;
    size_t next = 0;
    for (; next < rooms.size() && rooms[next].gpus < left; ++next) {
      slices.push_back(rooms[next]);
      left -= rooms[next].gpus;
    }
    if (next == rooms.size()) return false;
    const auto free = [this](const SynergySlice& slice) {
      return std::pair(state_.server(slice.server).gpus_free, slice.server);
    };
    SynergySlice last = rooms[next];
    for (; next < rooms.size() && rooms[next].gpus >= left; ++next) {
      if (free(rooms[next]) < free(last)) last = rooms[next];
    }
    slices.push_back({last.server, left});
    return true;
  }

  void Commit(const std::vector<SynergySlice>& slices) {
    const HostLevels& levels = demands_.On(slices.front().server);
    const HostShare share = LevelOf(levels, step_.level);
    if (step_.reclaim) {
      for (const SynergySlice& slice : slices) state_.Reclaim(slice.server, Times(share, slice.gpus));
    }
    const HostShare floor = step_.level == HostLevel::kFair ? share : levels.floor;
    state_.Place(state_.HolderOfJob(index_), slices, share, floor);
  }

 private:
  // What no server can do with less of; nothing where that is not worth working out.
  HostShare LeastNeed() {
    HostShare least = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::min()};
    if (step_.reclaim || classes_.members.size() > kMaxClassesCompared) return least;
    bool first = true;
    for (const std::vector<uint32_t>& servers : classes_.members) {
      if (servers.empty()) continue;
      const HostShare need = Times(LevelOf(demands_.On(servers.front()), step_.level), job_.gpus);
      least =
          first ? need : HostShare{std::min(least.cpu_milli, need.cpu_milli), std::min(least.mem_mib, need.mem_mib)};
      first = false;
    }
    // A need of nothing is met on over-committed servers too.
    if (least.cpu_milli == 0) least.cpu_milli = std::numeric_limits<int64_t>::min();
    if (least.mem_mib == 0) least.mem_mib = std::numeric_limits<int64_t>::min();
    return least;
  }

  // GPUs that the job could have there at this step.
  int32_t Room(uint32_t server) {
    if (!demands_.Allows(server)) return 0;
    const HostShare share = LevelOf(demands_.On(server), step_.level);
    const int32_t limit = std::min({job_.gpus, state_.server(server).gpus_free, state_.MostOn(index_, server)});
    return Hold(step_.reclaim ? state_.FreeAtFloors(server) : state_.Free(server), share, limit);
  }

  SynergyState& state_;
  const ServerClasses& classes_;
  JobDemands& demands_;
  size_t index_;  // of the job
  SynergyStep step_;
  const SynergyJob& job_;
};

}  // namespace

HostShare LevelOf(const HostLevels& levels, HostLevel level) {
  if (level == HostLevel::kBest) return levels.best;
  return level == HostLevel::kFloor ? levels.floor : levels.fair;
}

bool PlaceJob(SynergyState& state, const ServerClasses& classes, JobDemands& demands, size_t index,
              std::span<const SynergyStep> steps) {
  const SynergyJob& job = demands.job();
  if (job.gpus > state.gpus_free()) return false;
  std::vector<SynergySlice> slices;
  // A job is not torn apart for cores or memory as long as the GPUs of one server hold it.
  for (const SynergyStep& step : steps) {
    Attempt attempt(state, classes, demands, index, step);
    if (!attempt.OnHeld(slices) && !attempt.OnOne(slices)) continue;
    attempt.Commit(slices);
    return true;
  }
  if (job.unit == job.gpus) return false;
  for (const SynergyStep& step : steps) {
    for (const std::vector<uint32_t>& servers : classes.members) {
      Attempt attempt(state, classes, demands, index, step);
      if (!attempt.OnSeveral(servers, slices)) continue;
      attempt.Commit(slices);
      return true;
    }
  }
  return false;
}

}  // namespace horus
