// SPDX-License-Identifier: Apache-2.0
// The optimum by linear programs: which cells on one merged machine, then which servers, then rounded.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "lab/lp/linear_program.h"
#include "lab/synergy/rules.h"

namespace horus {
namespace {

constexpr double kWhole = 1 - 1e-6;  // a variable of Clp that means 1: its tolerance is 1e-7
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// More columns or elements than a program may have.
absl::Status TooLarge(const char* what, size_t most) {
  return ResourceExhausted("synergy-opt: expected at most %d %s, found more", most, what);
}

// What one holder may be given on the merged machine.
struct Candidate {
  size_t holder = 0;
  int32_t gpus = 0;
  HostShare floor;
  std::vector<HostChoice> choices;  // the first is the floor
};

// Both programs and what they decide.
class Optimum {
 public:
  Optimum(const SynergyInput& input, const ServerClasses& classes, const SynergyOptions& options)
      : input_(input), classes_(classes), options_(options), state_(input) {
    for (const SynergyJob& job : input.jobs) demands_.emplace_back(job, classes, options.tolerance);
  }

  absl::StatusOr<SynergyRound> Solve() {
    HORUS_RETURN_IF_ERROR(ChooseRunnable());
    if (candidates_.empty()) return state_.ToRound();
    HORUS_ASSIGN_OR_RETURN(const double bound, ChooseCells());
    HORUS_RETURN_IF_ERROR(ChooseServers());
    SynergyState fair(input_);
    for (const size_t job : runnable_) PlaceJob(fair, classes_, demands_[job], job, kFairSteps);
    if (RunningJobs(fair) > RunningJobs(state_)) state_ = RaiseInPlace(fair, demands_);
    GrowHolders(state_, classes_);
    SynergyRound round = state_.ToRound();
    round.bound = bound;
    return round;
  }

 private:
  // The jobs whose GPUs and floors fit the merged machine, in policy order; residents always run.
  absl::Status ChooseRunnable() {
    if (input_.jobs.size() * input_.servers.size() > kMaxLpColumns)
      return TooLarge("pairs of a job and a server", kMaxLpColumns);
    size_t cells = 0;
    HostShare floors;
    for (size_t i = 0; i < input_.residents.size(); ++i) {
      const SynergyHolder& holder = state_.holder(i);
      const ServerClass& servers = classes_.classes[classes_.of[holder.slices.front().server]];
      Candidate candidate{.holder = i, .gpus = holder.gpus, .floor = holder.floor};
      const HostShare most = AtLeast(MostPerGpu(servers, holder.gpus), holder.held);
      candidate.choices = holder.sensitivity == nullptr ? std::vector<HostChoice>{{holder.floor, 1}}
                                                        : holder.sensitivity->Choices(holder.floor, most);
      if ((cells += candidate.choices.size()) > kMaxLpColumns) return TooLarge("cells of all jobs", kMaxLpColumns);
      candidates_.push_back(std::move(candidate));
      floors = floors + holder.floor * holder.gpus;
      total_ = total_ + holder.held * holder.gpus;
    }
    for (uint32_t s = 0; s < input_.servers.size(); ++s) total_ = total_ + state_.Free(s);
    total_ = AtLeast(total_, floors);
    int64_t gpus = state_.gpus_free();
    for (size_t j = 0; j < input_.jobs.size(); ++j) {
      if (input_.jobs[j].gpus > gpus) continue;
      Candidate candidate = CandidateOf(j);
      const HostShare with = floors + candidate.floor * candidate.gpus;
      if (!IsWithin(with, total_)) continue;
      if ((cells += candidate.choices.size()) > kMaxLpColumns) return TooLarge("cells of all jobs", kMaxLpColumns);
      floors = with;
      gpus -= candidate.gpus;
      runnable_.push_back(j);
      candidates_.push_back(std::move(candidate));
    }
    return absl::OkStatus();
  }

  // LP 1: y >= 0 for each choice of each holder, summing to 1 a holder; most summed speed within the merged machine,
  // and residents within the servers that they are on.
  absl::StatusOr<double> ChooseCells() {
    LinearProgram program;
    const int32_t cpu = program.AddRow(-kInfinity, static_cast<double>(total_.cpu_milli));
    const int32_t mem = program.AddRow(-kInfinity, static_cast<double>(total_.mem_mib));
    std::vector<int32_t> server_rows(input_.servers.size(), -1);
    for (uint32_t s = 0; s < server_rows.size(); ++s) {
      if (state_.HoldersOn(s).empty()) continue;
      const auto [held, floors] = HeldOn(s);
      const HostShare limit = AtLeast(state_.Free(s) + held, floors);
      server_rows[s] = program.AddRow(-kInfinity, static_cast<double>(limit.cpu_milli));
      program.AddRow(-kInfinity, static_cast<double>(limit.mem_mib));
    }
    for (const Candidate& candidate : candidates_) {
      const int32_t one = program.AddRow(1, 1);
      for (const HostChoice& choice : candidate.choices) {
        const auto cores = static_cast<double>(choice.share.cpu_milli);
        const auto mib = static_cast<double>(choice.share.mem_mib);
        std::vector<std::pair<int32_t, double>> elements = {
            {one, 1.0}, {cpu, candidate.gpus * cores}, {mem, candidate.gpus * mib}};
        for (const SynergySlice& slice : state_.holder(candidate.holder).slices) {
          elements.emplace_back(server_rows[slice.server], slice.gpus * cores);
          elements.emplace_back(server_rows[slice.server] + 1, slice.gpus * mib);
        }
        program.AddColumn(choice.speed, elements);
        if (program.elements() > kMaxLpElements) return TooLarge("cells times servers of residents", kMaxLpElements);
      }
    }
    HORUS_ASSIGN_OR_RETURN(const LinearProgram::Solution solution, program.Solve(options_.lp_library));
    std::span<const double> values = solution.values;
    for (const Candidate& candidate : candidates_) {
      SetChosen(candidate, values.first(candidate.choices.size()));
      values = values.subspan(candidate.choices.size());
    }
    return solution.objective;
  }

  // LP 2: x >= 0 for each job on each server, summing to at most 1 a job, within the servers' GPUs, cores and memory;
  // as many GPUs in use as possible. Jobs that the vertex splits are then placed as tune does, largest first.
  absl::Status ChooseServers() {
    LinearProgram program;
    std::vector<int32_t> server_rows(input_.servers.size(), -1);
    for (uint32_t s = 0; s < server_rows.size(); ++s) {
      const HostShare free = AtLeast(state_.Free(s), {});
      server_rows[s] = program.AddRow(-kInfinity, state_.server(s).gpus_free);
      program.AddRow(-kInfinity, static_cast<double>(free.cpu_milli));
      program.AddRow(-kInfinity, static_cast<double>(free.mem_mib));
    }
    std::vector<std::pair<size_t, uint32_t>> pairs;  // by column
    // That all jobs stay where they ran is worth less than one more GPU in use.
    const double stay = 0.5 / static_cast<double>(std::max<int64_t>(1, state_.gpus_free()));
    for (const size_t job : runnable_) {
      const int32_t one = program.AddRow(-kInfinity, 1);
      const auto gpus = static_cast<double>(input_.jobs[job].gpus);
      for (uint32_t s = 0; s < server_rows.size(); ++s) {
        if (state_.server(s).gpus_free == 0 || !demands_[job].Allows(s)) continue;
        const HostShare share = demands_[job].On(s).best;
        const std::span<const SynergySlice> held = input_.jobs[job].held;
        const bool stays = held.size() == 1 && held.front().server == s;
        program.AddColumn(stays ? gpus * (1 + stay) : gpus,
                          {{one, 1.0},
                           {server_rows[s], gpus},
                           {server_rows[s] + 1, gpus * static_cast<double>(share.cpu_milli)},
                           {server_rows[s] + 2, gpus * static_cast<double>(share.mem_mib)}});
        pairs.emplace_back(job, s);
      }
    }
    if (pairs.empty()) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(const LinearProgram::Solution solution, program.Solve(options_.lp_library));
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto [job, s] = pairs[i];
      const HostLevels& levels = demands_[job].On(s);
      const int64_t gpus = input_.jobs[job].gpus;
      if (solution.values[i] < kWhole || state_.server(s).gpus_free < gpus) continue;
      if (state_.MostOn(job, s) < gpus) continue;
      if (!IsWithin(levels.best * gpus, state_.Free(s))) continue;  // off by Clp's tolerance
      state_.Place(state_.HolderOfJob(job), {{s, static_cast<int32_t>(gpus)}}, levels.best, levels.floor);
    }
    std::vector<size_t> split;
    for (const size_t job : runnable_) {
      if (state_.holder(state_.HolderOfJob(job)).slices.empty()) split.push_back(job);
    }
    std::ranges::stable_sort(split, [this](size_t a, size_t b) { return input_.jobs[a].gpus > input_.jobs[b].gpus; });
    for (const size_t job : split) PlaceJob(state_, classes_, demands_[job], job, kTuneSteps);
    return absl::OkStatus();
  }

  // The vertex mixes the cells of few holders: those get the fastest cell within the mixture, never below the floor.
  void SetChosen(const Candidate& candidate, std::span<const double> weights) {
    double cpu = 0, mem = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      cpu += weights[k] * static_cast<double>(candidate.choices[k].share.cpu_milli);
      mem += weights[k] * static_cast<double>(candidate.choices[k].share.mem_mib);
    }
    const HostShare mixture = {std::llround(cpu), std::llround(mem)};
    HostChoice chosen = candidate.choices.front();
    for (const HostChoice& choice : candidate.choices) {
      if (IsWithin(choice.share, mixture) && choice.speed > chosen.speed) chosen = choice;
    }
    if (candidate.holder >= input_.residents.size()) {
      demands_[candidate.holder - input_.residents.size()].Choose(chosen.share);
    } else if (state_.CanResize(candidate.holder, chosen.share)) {
      state_.Resize(candidate.holder, chosen.share);
    }
  }

  // Servers may differ: the least floor and the most that any of them gives, so that the bound holds for all.
  [[nodiscard]] Candidate CandidateOf(size_t job) {
    Candidate result{.holder = state_.HolderOfJob(job), .gpus = input_.jobs[job].gpus};
    HostShare most;
    bool first = true;
    for (size_t c = 0; c < classes_.classes.size(); ++c) {
      if (classes_.members[c].empty()) continue;
      const HostShare floor = demands_[job].On(classes_.members[c].front()).floor;
      result.floor = first ? floor
                           : HostShare{std::min(result.floor.cpu_milli, floor.cpu_milli),
                                       std::min(result.floor.mem_mib, floor.mem_mib)};
      most = AtLeast(most, MostPerGpu(classes_.classes[c], result.gpus));
      first = false;
    }
    result.choices = input_.jobs[job].sensitivity == nullptr
                         ? std::vector<HostChoice>{{result.floor, 1}}
                         : input_.jobs[job].sensitivity->Choices(result.floor, most);
    return result;
  }

  // What the residents of a server hold, and would hold at their floors.
  [[nodiscard]] std::pair<HostShare, HostShare> HeldOn(uint32_t server) const {
    HostShare held, floors;
    for (const uint32_t index : state_.HoldersOn(server)) {
      for (const SynergySlice& slice : state_.holder(index).slices) {
        if (slice.server != server) continue;
        held = held + state_.holder(index).held * slice.gpus;
        floors = floors + state_.holder(index).floor * slice.gpus;
      }
    }
    return {held, floors};
  }

  const SynergyInput& input_;
  const ServerClasses& classes_;
  const SynergyOptions& options_;
  SynergyState state_;
  std::vector<JobDemands> demands_;
  std::vector<size_t> runnable_;       // jobs, in policy order
  std::vector<Candidate> candidates_;  // residents, then the runnable jobs
  HostShare total_;                    // of the merged machine, residents included
};

}  // namespace

absl::StatusOr<SynergyRound> PlaceOptimally(const SynergyInput& input, const ServerClasses& classes,
                                            const SynergyOptions& options) {
  return Optimum(input, classes, options).Solve();
}

}  // namespace horus
