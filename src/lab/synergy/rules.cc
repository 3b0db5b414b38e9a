// SPDX-License-Identifier: Apache-2.0
// The books of a round, where one job goes, what is handed out of what is left; greedy, fair and tune by these.
#include "lab/synergy/rules.h"

#include <algorithm>
#include <array>
#include <limits>

namespace horus {
namespace {

// ---- Keeps the books of a round: free resources, holders, reclaiming.

int32_t GpusOn(const SynergyHolder& holder, uint32_t server) {
  int32_t gpus = 0;
  for (const SynergySlice& slice : holder.slices) gpus += slice.server == server ? slice.gpus : 0;
  return gpus;
}

// ---- Where one job goes: best fit on one server, else slices over several.

// With more classes of servers the least need is not worth its price; chosen.
constexpr size_t kMaxClassesCompared = 32;

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
    std::ranges::stable_sort(rooms, [](const SynergySlice& a, const SynergySlice& b) { return a.gpus > b.gpus; });
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
    const HostShare share = levels.*step_.level;
    if (step_.reclaim) {
      for (const SynergySlice& slice : slices) state_.Reclaim(slice.server, share * slice.gpus);
    }
    const HostShare floor = step_.level == &HostLevels::fair ? share : levels.floor;
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
      const HostShare need = demands_.On(servers.front()).*step_.level * job_.gpus;
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
    const HostShare share = demands_.On(server).*step_.level;
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

// ---- Hands out what a round leaves over.

struct Growth {
  size_t holder = 0;
  HostShare share;
  double rate = 0;  // speed gained per fair share of resources; 0 = nothing to gain
};

// The most rewarding step up of one holder that its servers can carry.
Growth BestGrowth(const SynergyState& state, size_t index, std::span<const HostChoice> choices, const HostShare& fair) {
  const SynergyHolder& holder = state.holder(index);
  const double speed = holder.SpeedAt(holder.held);
  Growth best{.holder = index};
  for (const HostChoice& choice : choices) {
    const HostShare share = AtLeast(choice.share, holder.held);
    if (choice.speed <= speed || !state.CanResize(index, share)) continue;
    const double rate = (choice.speed - speed) / (SizeOf(share - holder.held, fair) * holder.gpus);
    if (rate > best.rate) best = {index, share, rate};
  }
  return best;
}

constexpr double kLeastExchange = 1e-6;  // of speed: what is less differs by rounding alone

// Gives a holder more and cuts others of the server back for it, if all together are faster so.
bool Exchange(SynergyState& state, uint32_t server, uint32_t index, const HostShare& share) {
  const std::vector<uint32_t> holders(state.HoldersOn(server).begin(), state.HoldersOn(server).end());
  std::vector<HostShare> before;
  double gain = 0;
  for (const uint32_t one : holders) {
    before.push_back(state.holder(one).held);
    gain -= state.holder(one).SpeedAt(state.holder(one).held);
  }
  const SynergyHolder& holder = state.holder(index);
  state.Reclaim(server, (share - holder.held) * holder.gpus);
  const bool fits = state.CanResize(index, share);
  if (fits) state.Resize(index, share);
  for (const uint32_t one : holders) gain += state.holder(one).SpeedAt(state.holder(one).held);
  if (fits && gain > kLeastExchange) return true;
  for (size_t i = 0; i < holders.size(); ++i) {
    if (state.holder(holders[i]).held != before[i]) state.Resize(holders[i], before[i]);
  }
  return false;
}

// Exchanges until none makes the server's jobs faster.
void ExchangeAll(SynergyState& state, uint32_t server, const std::vector<std::vector<HostChoice>>& choices) {
  const std::vector<uint32_t> holders(state.HoldersOn(server).begin(), state.HoldersOn(server).end());
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t index : holders) {
      if (state.holder(index).slices.size() != 1) continue;
      for (const HostChoice& choice : choices[index]) {
        const SynergyHolder& holder = state.holder(index);
        if (choice.speed <= holder.SpeedAt(holder.held)) continue;
        changed = Exchange(state, server, index, AtLeast(choice.share, holder.held)) || changed;
      }
    }
  }
}

// ---- Leases: keeps the GPUs of jobs that ran until now from those before them, as long as there are others.
// Cost: O(log servers) a lease; all leases again where a job finds no place beside them.

class Leases {
 public:
  // Of the first jobs in policy order that the free GPUs hold together: those after them may lose theirs anyhow.
  Leases(SynergyState& state) : state_(state) {
    const std::span<const SynergyJob> jobs = state.input().jobs;
    if (std::ranges::all_of(jobs, [](const SynergyJob& job) { return job.held.empty(); })) return;
    held_.resize(jobs.size());
    int64_t left = state.gpus_free();
    for (; end_ < jobs.size() && left > 0; ++end_) {
      if (jobs[end_].gpus > left) continue;
      left -= jobs[end_].gpus;
      if (CanHold(end_)) Hold(end_, 1);
    }
  }

  // It is the job's turn: its GPUs are free for it.
  void End(size_t job) {
    if (job < end_ && held_[job] != 0) Hold(job, -1);
  }

  // Frees all, and keeps again of jobs after `job` those that are still free. Whether there were any.
  bool Suspend() {
    bool any = false;
    for (size_t job = 0; job < end_; ++job) {
      any |= held_[job] != 0;
      End(job);
    }
    return any;
  }

  void ResumeAfter(size_t job) {
    for (++job; job < end_; ++job) {
      if (CanHold(job)) Hold(job, 1);
    }
  }

 private:
  [[nodiscard]] bool CanHold(size_t job) const {
    const std::span<const SynergySlice> slices = state_.input().jobs[job].held;
    return !slices.empty() && std::ranges::all_of(slices, [this](const SynergySlice& slice) {
      return state_.server(slice.server).gpus_free >= slice.gpus;
    });
  }

  void Hold(size_t job, int32_t sign) {
    for (const SynergySlice& slice : state_.input().jobs[job].held) state_.SetAside(slice.server, sign * slice.gpus);
    held_[job] = sign > 0 ? 1 : 0;
  }

  SynergyState& state_;
  size_t end_ = 0;             // of the jobs whose leases count
  std::vector<uint8_t> held_;  // by job; empty where none has any
};

constexpr std::array<std::string_view, 4> kNames = {"synergy-greedy", "synergy-fair", "synergy-tune", "synergy-opt"};
constexpr SynergyStep kGreedySteps[] = {{&HostLevels::best}};

std::span<const SynergyStep> StepsOf(SynergyRule rule) {
  if (rule == SynergyRule::kGreedy) return kGreedySteps;
  if (rule == SynergyRule::kFair) return kFairSteps;
  return kTuneSteps;
}

SynergyState PlaceAll(std::span<const SynergyStep> steps, const SynergyInput& input, const ServerClasses& classes,
                      double tolerance) {
  SynergyState state(input);
  Leases leases(state);
  for (size_t j = 0; j < input.jobs.size(); ++j) {
    JobDemands demands(input.jobs[j], classes, tolerance);
    leases.End(j);
    if (PlaceJob(state, classes, demands, j, steps) || !leases.Suspend()) continue;
    PlaceJob(state, classes, demands, j, steps);
    leases.ResumeAfter(j);
  }
  return state;
}

}  // namespace

HostShare AtLeast(const HostShare& share, const HostShare& least) {
  return {std::max(share.cpu_milli, least.cpu_milli), std::max(share.mem_mib, least.mem_mib)};
}

SynergyState::SynergyState(const SynergyInput& input)
    : input_(input),
      servers_(input.servers.begin(), input.servers.end()),
      holders_(input.residents.size() + input.jobs.size()),
      on_(input.servers.size()) {
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    gpus_free_ += servers_[i].gpus_free;
    Enter(i);
  }
  for (uint32_t i = 0; i < input.residents.size(); ++i) {
    const SynergyResident& resident = input.residents[i];
    holders_[i] = {
        .slices = resident.slices, .held = resident.held, .floor = resident.floor, .sensitivity = resident.sensitivity};
    for (const SynergySlice& slice : resident.slices) {
      holders_[i].gpus += slice.gpus;
      on_[slice.server].push_back(i);
    }
  }
  for (size_t j = 0; j < input.jobs.size(); ++j) {
    SynergyHolder& holder = holders_[HolderOfJob(j)];
    holder.gpus = input.jobs[j].gpus;
    holder.sensitivity = input.jobs[j].sensitivity;
  }
  const auto minds = [](const SynergyJob& job) { return job.spec != nullptr; };
  if (std::ranges::none_of(input.jobs, minds)) return;
  for (const SynergyServer& server : servers_) {
    if (hosts_.size() <= server.host) hosts_.resize(server.host + 1);
    hosts_[server.host].storage_free_mb_s = server.storage_free_mb_s;
  }
}

int32_t SynergyState::MostOn(size_t job, uint32_t server) const {
  constexpr int32_t kAll = std::numeric_limits<int32_t>::max();
  const SynergyJob& wanted = input_.jobs[job];
  if (wanted.spec == nullptr) return kAll;
  const Host& host = hosts_[servers_[server].host];
  if (KeepsAway(*wanted.spec, host.groups)) return 0;
  int64_t units = wanted.spec->spread_tasks ? 1 : kAll;
  const int64_t storage = wanted.spec->storage_mb_s;
  if (storage > 0) units = std::min(units, std::max<int64_t>(0, host.storage_free_mb_s) / storage);
  return static_cast<int32_t>(std::min<int64_t>(kAll, units * wanted.unit));
}

// Idempotent: a server that is in already may have more free than before.
void SynergyState::Enter(uint32_t server) {
  if (servers_[server].gpus_free == 0) return;
  Block& block = by_free_[servers_[server].gpus_free][server / kBlockServers];
  block.most = block.members == 0 ? Free(server) : AtLeast(block.most, Free(server));
  block.members |= uint64_t{1} << (server % kBlockServers);
}

void SynergyState::Leave(uint32_t server) {
  const auto bucket = by_free_.find(servers_[server].gpus_free);
  if (bucket == by_free_.end()) return;
  const auto block = bucket->second.find(server / kBlockServers);
  if (block == bucket->second.end()) return;
  block->second.members &= ~(uint64_t{1} << (server % kBlockServers));
  if (block->second.members == 0) bucket->second.erase(block);
  if (bucket->second.empty()) by_free_.erase(bucket);
}

HostShare SynergyState::FreeAtFloors(uint32_t server) const {
  HostShare free = Free(server);
  for (const uint32_t index : on_[server]) {
    const SynergyHolder& holder = holders_[index];
    free = free + (holder.held - holder.floor) * GpusOn(holder, server);
  }
  return free;
}

void SynergyState::Place(size_t holder, std::vector<SynergySlice> slices, const HostShare& share,
                         const HostShare& floor) {
  std::ranges::sort(slices, [](const SynergySlice& a, const SynergySlice& b) { return a.server < b.server; });
  for (const SynergySlice& slice : slices) {
    SynergyServer& server = servers_[slice.server];
    Leave(slice.server);
    server.gpus_free -= slice.gpus;
    gpus_free_ -= slice.gpus;
    Take(slice, share, 1);
    Enter(slice.server);
    on_[slice.server].push_back(static_cast<uint32_t>(holder));
    if (holder < input_.residents.size() || input_.jobs[holder - input_.residents.size()].spec == nullptr) continue;
    const SynergyJob& job = input_.jobs[holder - input_.residents.size()];
    Host& host = hosts_[server.host];
    const int32_t units = slice.gpus / job.unit;
    host.storage_free_mb_s -= units * job.spec->storage_mb_s;
    ForEachGroup(*job.spec, [&](const GroupCount& one) {
      ChangeGroup({one.group, units * one.members, units * one.avoiders}, host.groups);
    });
  }
  holders_[holder].slices = std::move(slices);
  holders_[holder].held = share;
  holders_[holder].floor = floor;
}

std::optional<SynergyState::Cut> SynergyState::CheapestCut(uint32_t server, const HostShare& lack) const {
  std::optional<Cut> best;
  for (const uint32_t index : on_[server]) {
    const SynergyHolder& holder = holders_[index];
    if (holder.held == holder.floor) continue;
    const std::vector<HostChoice> choices = holder.sensitivity == nullptr
                                                ? std::vector<HostChoice>{{holder.floor, 1}}
                                                : holder.sensitivity->Choices(holder.floor, holder.held);
    const double speed = holder.SpeedAt(holder.held);
    for (const HostChoice& choice : choices) {
      const HostShare back = (holder.held - choice.share) * GpusOn(holder, server);
      const HostShare freed = {std::min(lack.cpu_milli, back.cpu_milli), std::min(lack.mem_mib, back.mem_mib)};
      const double useful = SizeOf(freed, lack);
      if (useful <= 0) continue;
      const double price = (speed - choice.speed) / useful;
      // In order of holders and of shares: among equals the lowest holder's largest share.
      if (!best.has_value() || price < best->price || (price == best->price && index == best->holder))
        best = {index, choice.share, price};
    }
  }
  return best;
}

void SynergyState::Reclaim(uint32_t server, const HostShare& wanted) {
  while (true) {
    const HostShare free = Free(server);
    if (IsWithin(wanted, free)) return;
    const std::optional<Cut> cut = CheapestCut(server, AtLeast(wanted - free, {}));
    if (!cut.has_value()) return;
    Resize(cut->holder, cut->share);
  }
}

SynergyRound SynergyState::ToRound() const {
  SynergyRound round;
  for (uint32_t i = 0; i < input_.residents.size(); ++i) {
    if (holders_[i].held != input_.residents[i].held) round.resizes.push_back({i, holders_[i].held});
  }
  for (size_t j = 0; j < input_.jobs.size(); ++j) {
    const SynergyHolder& holder = holders_[HolderOfJob(j)];
    if (holder.slices.empty()) {
      round.grants.emplace_back();
    } else {
      round.grants.push_back({holder.slices, holder.held, holder.SpeedAt(holder.held)});
    }
  }
  return round;
}

// ---- Sorts servers into classes and works out a job's three demands on each.

ServerClasses ClassesOf(std::span<const SynergyServer> servers) {
  const auto key = [](const SynergyServer& s) { return ServerClass{s.kind, s.gpus, s.cpu_milli, s.mem_mib}; };
  ServerClasses result;
  for (const SynergyServer& server : servers) result.classes.push_back(key(server));
  std::ranges::sort(result.classes);
  result.classes.erase(std::unique(result.classes.begin(), result.classes.end()), result.classes.end());
  result.members.resize(result.classes.size());
  for (uint32_t i = 0; i < servers.size(); ++i) {
    const auto found = std::lower_bound(result.classes.begin(), result.classes.end(), key(servers[i]));
    result.of.push_back(static_cast<uint32_t>(found - result.classes.begin()));
    if (servers[i].gpus > 0) result.members[result.of.back()].push_back(i);
  }
  return result;
}

HostShare MostPerGpu(const ServerClass& servers, int32_t gpus) {
  return FairShare(servers.cpu_milli, servers.mem_mib, std::max(1, std::min(gpus, servers.gpus)));
}

const HostLevels& JobDemands::On(uint32_t server) {
  const uint32_t index = classes_->of[server];
  const auto [found, is_new] = levels_.try_emplace(index);
  HostLevels& levels = found->second;
  if (!is_new) return levels;
  const ServerClass& servers = classes_->classes[index];
  const HostShare fair = FairShare(servers.cpu_milli, servers.mem_mib, std::max(1, servers.gpus));
  levels.fair = AtLeast(fair, job_->need);
  levels.floor = SynergyFloor(*job_, fair);
  levels.best = levels.floor;
  if (chosen_.has_value()) {
    levels.best = AtLeast(*chosen_, levels.floor);
  } else if (job_->sensitivity != nullptr) {
    const auto choices = job_->sensitivity->Choices(levels.floor, MostPerGpu(servers, job_->gpus));
    levels.best = BestChoice(choices, fair, tolerance_).share;
  }
  return levels;
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

void GrowHolders(SynergyState& state, const ServerClasses& classes) {
  std::vector<std::vector<HostChoice>> choices(state.holders());
  for (uint32_t server = 0; server < classes.of.size(); ++server) {
    const ServerClass& servers = classes.classes[classes.of[server]];
    if (servers.gpus == 0) continue;
    const HostShare fair = FairShare(servers.cpu_milli, servers.mem_mib, servers.gpus);
    for (const uint32_t index : state.HoldersOn(server)) {
      const SynergyHolder& holder = state.holder(index);
      if (holder.sensitivity == nullptr || !choices[index].empty()) continue;
      choices[index] = holder.sensitivity->Choices(holder.floor, MostPerGpu(servers, holder.gpus));
    }
    while (true) {
      Growth best;
      for (const uint32_t index : state.HoldersOn(server)) {
        const Growth growth = BestGrowth(state, index, choices[index], fair);
        if (growth.rate > best.rate) best = growth;
      }
      if (best.rate == 0) break;
      state.Resize(best.holder, best.share);
    }
    ExchangeAll(state, server, choices);
  }
}

// ---- The rules, one after the other.

std::span<const std::string_view> SynergyNames() { return kNames; }

size_t RunningJobs(const SynergyState& state) {
  size_t count = 0;
  for (size_t j = 0; j < state.input().jobs.size(); ++j)
    count += state.holder(state.HolderOfJob(j)).slices.empty() ? 0 : 1;
  return count;
}

SynergyState RaiseInPlace(const SynergyState& fair, std::span<JobDemands> demands) {
  SynergyState state(fair.input());
  const auto for_each = [&](auto visit) {
    for (size_t j = 0; j < demands.size(); ++j) {
      const std::vector<SynergySlice>& slices = fair.holder(fair.HolderOfJob(j)).slices;
      if (!slices.empty()) visit(fair.HolderOfJob(j), slices, demands[j].On(slices.front().server));
    }
  };
  for_each([&](size_t holder, const std::vector<SynergySlice>& slices, const HostLevels& levels) {
    state.Place(holder, slices, levels.floor, levels.floor);
  });
  for_each([&](size_t holder, const std::vector<SynergySlice>&, const HostLevels& levels) {
    if (state.CanResize(holder, levels.best)) state.Resize(holder, levels.best);
  });
  return state;
}

HostShare SynergyFloor(const SynergyJob& job, const HostShare& fair) {
  return AtLeast(job.sensitivity == nullptr ? fair : job.sensitivity->Floor(fair), job.need);
}

absl::StatusOr<SynergyRound> AllocateRound(SynergyRule rule, const SynergyInput& input, const SynergyOptions& options) {
  const ServerClasses classes = ClassesOf(input.servers);
  if (rule == SynergyRule::kOpt) return PlaceOptimally(input, classes, options);
  SynergyState state = PlaceAll(StepsOf(rule), input, classes, options.tolerance);
  if (rule != SynergyRule::kTune) return state.ToRound();
  // Servers full of cores can send tune elsewhere and tear apart what an unsplittable job needs: then fair's places
  // hold.
  if (RunningJobs(state) < input.jobs.size()) {
    const SynergyState fair = PlaceAll(kFairSteps, input, classes, options.tolerance);
    if (RunningJobs(fair) > RunningJobs(state)) {
      std::vector<JobDemands> demands;
      for (const SynergyJob& job : input.jobs) demands.emplace_back(job, classes, options.tolerance);
      state = RaiseInPlace(fair, demands);
    }
  }
  if (options.grow) GrowHolders(state, classes);
  return state.ToRound();
}

}  // namespace horus
