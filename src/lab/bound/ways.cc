// SPDX-License-Identifier: Apache-2.0
// Lists the ways of a GPU, and leaves out those that others replace.
#include "lab/bound/ways.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

namespace horus {
namespace {

bool Counts(const WorkProblem& problem, const std::vector<double>& mix, const PairSpeed& pair) {
  return problem.gpus[pair.gpu] > 0 && mix[pair.a] > 0 && mix[pair.b] > 0;
}

}  // namespace

std::vector<Way> WaysAlone(const WorkProblem& problem, const std::vector<double>& mix) {
  std::vector<Way> ways;
  for (uint32_t gpu = 0; gpu < problem.gpus.size(); ++gpu) {
    for (uint32_t profile = 0; profile < mix.size(); ++profile) {
      const double rate = problem.alone[gpu * mix.size() + profile];
      if (problem.gpus[gpu] == 0 || mix[profile] == 0 || rate == 0) continue;
      ways.push_back({.gpu = gpu, .a = profile, .rate_a = rate});
    }
  }
  return ways;
}

// Pairs that do no more than their jobs one after another (summed speed at most 1) never raise the rate.
void AddWaysTogether(const WorkProblem& problem, const std::vector<double>& mix, double bound, std::vector<Way>& ways) {
  for (const PairSpeed& pair : problem.pairs) {
    if (!Counts(problem, mix, pair)) continue;
    if (!pair.IsAdmitted(bound) || pair.speed_a + pair.speed_b <= 1) continue;
    const double* const alone = &problem.alone[pair.gpu * mix.size()];
    ways.push_back({pair.gpu, pair.a, pair.b, alone[pair.a] * pair.speed_a, alone[pair.b] * pair.speed_b});
  }
}

namespace {

// ---- Pairs whose jobs may wait for their hosts: truth.h, Truth::SharesOfHosts.

// Who does not care for cores holds nothing and always runs at its best.
constexpr std::array<HostChoice, 1> kHoldsNothing = {{{{}, 1}}};

std::span<const HostChoice> CellsOf(const HostResources& hosts, uint32_t profile) {
  const std::vector<HostChoice>& cells = hosts.profiles[profile].cells;
  if (cells.empty()) return kHoldsNothing;
  return cells;
}

double BestOf(const HostResources& hosts, uint32_t profile) {
  return hosts.profiles[profile].cells.empty() ? 1 : hosts.profiles[profile].best;
}

HostShare LimitOf(const HostsOfType& type, HostLimit limit) {
  return limit == HostLimit::kFairShare ? type.fair : type.most;
}

// One side of a pair: its choices, and what the other costs its GPU part.
struct Side {
  std::span<const HostChoice> cells;
  double best = 1;
  double share = 1;   // of its speed that it keeps where neither waits
  double excess = 0;  // 1 / share - 1

  Side(const HostResources& hosts, uint32_t profile, double kept)
      : cells(CellsOf(hosts, profile)), best(BestOf(hosts, profile)), share(kept), excess(1 / kept - 1) {}

  [[nodiscard]] double Busy(const HostChoice& cell) const { return cell.speed / best; }
  // Relative to the speed alone at the fair share; min(host, best / (1 + busy of the other * excess)). Measured shares
  // above 1 are noise, and count as where nobody waits.
  [[nodiscard]] double Speed(const HostChoice& cell, double other_busy) const {
    if (cell.speed == best && other_busy == 1) return best * share;
    return std::min(cell.speed * std::max(1.0, share), best / (1 + other_busy * excess));
  }
  [[nodiscard]] double Slowdown(const HostChoice& cell, double other_busy, double counted_excess) const {
    return std::max(1.0, Busy(cell) * (1 + other_busy * counted_excess));
  }
};

class PairWays {
 public:
  PairWays(const WorkProblem& problem, const PairSpeed& pair, double bound, HostLimit limit)
      : pair_(pair),
        bound_(bound),
        limit_(LimitOf(problem.hosts->types[pair.gpu], limit)),
        a_(*problem.hosts, pair.a, pair.speed_a),
        b_(*problem.hosts, pair.b, pair.speed_b) {}

  void AddTo(const double* alone, std::vector<Way>& ways) const {
    for (const HostChoice& a : a_.cells) {
      if (!IsWithin(a.share, limit_)) continue;
      for (const HostChoice& b : b_.cells) {
        const HostShare held = a.share + b.share;
        if (!IsWithin(held, limit_) || !Admits(a, b)) continue;
        const double speed_a = a_.Speed(a, b_.Busy(b)), speed_b = b_.Speed(b, a_.Busy(a));
        // Its jobs in turn, each alone with what it holds here, do as much.
        if (speed_a / a.speed + speed_b / b.speed <= 1) continue;
        if (HasLess(a_, a, b_, b) || HasLess(b_, b, a_, a)) continue;
        ways.push_back({.gpu = pair_.gpu,
                        .a = pair_.a,
                        .b = pair_.b,
                        .rate_a = alone[pair_.a] * speed_a,
                        .rate_b = alone[pair_.b] * speed_b,
                        .cpu_milli = static_cast<double>(held.cpu_milli),
                        .mem_mib = static_cast<double>(held.mem_mib)});
      }
    }
  }

 private:
  // A stated slowdown is that of one side, nobody says which: either reading admits.
  [[nodiscard]] bool Admits(const HostChoice& a, const HostChoice& b) const {
    const double busy_a = a_.Busy(a), busy_b = b_.Busy(b);
    if (busy_a == 1 && busy_b == 1) return pair_.IsAdmitted(bound_);
    const auto admits = [&](double excess_a, double excess_b) {
      return a_.Slowdown(a, busy_b, excess_a) <= bound_ && b_.Slowdown(b, busy_a, excess_b) <= bound_;
    };
    if (pair_.slowdown == 0) return admits(a_.excess, b_.excess);
    const double most = pair_.slowdown - 1;
    return admits(most, std::min(most, b_.excess)) || admits(std::min(most, a_.excess), most);
  }

  // Whether `cell` has a smaller one with which the pair does as much: where the GPU's part is what holds a job back,
  // and less of its input only makes it less in the way of the other. Chains of smaller ones end, so that the last is
  // kept. Where a job gains by company (noise of measurements), that does not follow.
  [[nodiscard]] static bool HasLess(const Side& side, const HostChoice& cell, const Side& other,
                                    const HostChoice& others) {
    if (other.excess < 0) return false;
    const double other_busy = other.Busy(others);
    const double speed = side.Speed(cell, other_busy);
    return std::ranges::any_of(side.cells, [&](const HostChoice& less) {
      return less.share != cell.share && IsWithin(less.share, cell.share) && less.speed <= cell.speed &&
             side.Speed(less, other_busy) >= speed;
    });
  }

  const PairSpeed& pair_;
  double bound_;
  HostShare limit_;
  Side a_, b_;
};

}  // namespace

std::vector<Way> HostWaysAlone(const WorkProblem& problem, const std::vector<double>& mix, HostLimit limit) {
  std::vector<Way> ways;
  for (const Way& way : WaysAlone(problem, mix)) {
    const HostShare most = LimitOf(problem.hosts->types[way.gpu], limit);
    const HostChoice* best = nullptr;
    for (const HostChoice& cell : CellsOf(*problem.hosts, way.a)) {
      if (!IsWithin(cell.share, most)) continue;
      if (best == nullptr || cell.speed > best->speed) best = &cell;
      if (limit == HostLimit::kFairShare) continue;
      ways.push_back(way);
      ways.back().rate_a = way.rate_a * cell.speed;
      ways.back().cpu_milli = static_cast<double>(cell.share.cpu_milli);
      ways.back().mem_mib = static_cast<double>(cell.share.mem_mib);
    }
    if (limit != HostLimit::kFairShare || best == nullptr) continue;
    // What is left of the fair share nobody else gets.
    ways.push_back(way);
    ways.back().rate_a = way.rate_a * best->speed;
  }
  return ways;
}

void AddHostWaysTogether(const WorkProblem& problem, const std::vector<double>& mix, double bound, HostLimit limit,
                         std::vector<Way>& ways) {
  for (const PairSpeed& pair : problem.pairs) {
    if (!Counts(problem, mix, pair) || !pair.Runs()) continue;
    PairWays(problem, pair, bound, limit).AddTo(&problem.alone[pair.gpu * mix.size()], ways);
  }
}

double MostHostWays(const WorkProblem& problem) {
  const auto cells = [&](uint32_t profile) { return static_cast<double>(CellsOf(*problem.hosts, profile).size()); };
  double ways = 0;
  for (const Way& way : WaysAlone(problem, problem.mix)) ways += cells(way.a);
  for (const PairSpeed& pair : problem.pairs) {
    if (Counts(problem, problem.mix, pair) && pair.Runs()) ways += cells(pair.a) * cells(pair.b);
  }
  return ways;
}

HostResources MakeHostResources(std::vector<HostsOfType> types, std::span<const SharedSensitivity> sensitivities) {
  constexpr HostShare kAny = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()};
  HostResources hosts{.types = std::move(types), .profiles = {}};
  for (const SharedSensitivity& sensitivity : sensitivities) {
    HostsOfProfile& profile = hosts.profiles.emplace_back();
    const Sensitivity* const matrix = sensitivity.get();
    if (matrix == nullptr) continue;
    profile.best = static_cast<double>(matrix->speeds().back());  // monotone
    double least = profile.best;
    for (const HostChoice& choice : matrix->Choices({}, kAny)) {
      if (choice.speed == 0) continue;
      profile.cells.push_back(choice);
      least = std::min(least, choice.speed);
    }
    // With less than was measured a job runs at the least speed that was.
    for (const HostsOfType& type : hosts.types) {
      const bool measured =
          std::ranges::any_of(profile.cells, [&](const HostChoice& cell) { return IsWithin(cell.share, type.fair); });
      if (!measured) profile.cells.push_back({type.fair, least});
    }
  }
  return hosts;
}

}  // namespace horus
