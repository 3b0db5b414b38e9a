// SPDX-License-Identifier: Apache-2.0
// The ways of a GPU, their linear program, and the proof of its bound by prices.
#include "lab/bound/work_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "base/status.h"
#include "lab/lp/linear_program.h"

namespace horus {
namespace {

bool Counts(const WorkProblem& problem, const std::vector<double>& mix, const PairSpeed& pair) {
  return problem.gpus[pair.gpu] > 0 && mix[pair.a] > 0 && mix[pair.b] > 0 && pair.Runs();
}

// ---- Pairs whose jobs may wait for their hosts: truth.h, Truth::SharesOfHosts.

// Who does not care for cores holds nothing and always runs at its best.
constexpr std::array<HostChoice, 1> kHoldsNothing = {{{{}, 1}}};

std::span<const HostChoice> CellsOf(const WorkProblem& problem, size_t profile) {
  if (!problem.hosts || problem.hosts->profiles[profile].cells.empty()) return kHoldsNothing;
  return problem.hosts->profiles[profile].cells;
}

HostShare LimitOf(const WorkProblem& problem, uint32_t gpu, HostLimit limit) {
  if (!problem.hosts) return {};
  const HostsOfType& type = problem.hosts->types[gpu];
  return limit == HostLimit::kFairShare ? type.fair : type.most;
}

// One side of a pair: its choices, and what the other costs its GPU part.
struct Side {
  std::span<const HostChoice> cells;
  double best = 1;
  double share = 1;   // of its speed that it keeps where neither waits
  double excess = 0;  // 1 / share - 1

  Side(const WorkProblem& problem, uint32_t profile, double kept)
      : cells(CellsOf(problem, profile)),
        best(problem.hosts && !problem.hosts->profiles[profile].cells.empty() ? problem.hosts->profiles[profile].best
                                                                              : 1),
        share(kept),
        excess(1 / kept - 1) {}

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
        limit_(LimitOf(problem, pair.gpu, limit)),
        a_(problem, pair.a, pair.speed_a),
        b_(problem, pair.b, pair.speed_b) {}

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

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMostGpus = 1e9;       // of a type; chosen
constexpr double kMostAloneRate = 1e9;  // of one GPU; chosen
// Faster together than alone is noise; no measurement shows more. Chosen, as kLeastMeasuredSlowdown.
constexpr double kMostPairSpeed = 2;
// Clp keeps to 1e-7; a proof further away than this from what was found is no proof.
constexpr double kMostProofGap = 1e-5;
constexpr double kLeastUse = 1e-9;  // share of a type's GPUs; less is the solver's rounding

bool IsWithin(double value, double most) { return value >= 0 && value <= most; }

struct Solved {
  double reached = 0, proved = 0;
  std::vector<double> values;  // by way: share of its type's GPUs
  std::vector<double> prices, rentals;
  std::vector<double> cpu_prices, mem_prices;  // by type; empty where hosts do not bound the ways
};

// Rows of GPUs alone, or of cores and memory too.
enum class Rows : uint8_t { kGpus, kHosts };

// Any prices of the mix, and any of cores and memory that are not negative, prove a bound: no GPU does more than its
// best way is worth, of which what it holds is paid.
void Prove(const WorkProblem& problem, const std::vector<double>& mix, const std::vector<Way>& ways, Solved& solved) {
  const double worth = std::inner_product(mix.begin(), mix.end(), solved.prices.begin(), 0.0);
  for (double& price : solved.prices) price /= worth;
  solved.rentals.assign(problem.gpus.size(), 0);
  const bool hosts = !solved.cpu_prices.empty();
  for (size_t gpu = 0; hosts && gpu < problem.gpus.size(); ++gpu) {
    solved.cpu_prices[gpu] = std::max(0.0, solved.cpu_prices[gpu] / worth);
    solved.mem_prices[gpu] = std::max(0.0, solved.mem_prices[gpu] / worth);
  }
  for (const Way& way : ways) {
    double left = way.Worth(solved.prices);
    if (hosts) left -= way.cpu_milli * solved.cpu_prices[way.gpu] + way.mem_mib * solved.mem_prices[way.gpu];
    solved.rentals[way.gpu] = std::max(solved.rentals[way.gpu], left);
  }
  solved.proved = std::inner_product(problem.gpus.begin(), problem.gpus.end(), solved.rentals.begin(), 0.0);
  for (size_t gpu = 0; hosts && gpu < problem.gpus.size(); ++gpu) {
    const HostsOfType& type = problem.hosts->types[gpu];
    solved.proved += type.cpu_milli * solved.cpu_prices[gpu] + type.mem_mib * solved.mem_prices[gpu];
  }
}

// Maximise the rate r: each profile's work is mix * r, no type runs more than its GPUs. Scaled by all GPUs.
absl::StatusOr<Solved> SolveRate(const WorkProblem& problem, const std::vector<double>& mix,
                                 const std::vector<Way>& ways, const std::string& library, Rows rows = Rows::kGpus) {
  const double all = std::accumulate(problem.gpus.begin(), problem.gpus.end(), 0.0);
  LinearProgram program;
  std::vector<int32_t> profile_rows(mix.size(), -1);
  std::vector<std::pair<int32_t, double>> rate_column;
  for (size_t profile = 0; profile < mix.size(); ++profile) {
    if (mix[profile] == 0) continue;
    profile_rows[profile] = program.AddRow(0, 0);
    rate_column.emplace_back(profile_rows[profile], -mix[profile]);
  }
  // Of GPUs, cores and memory, as shares of all that a type has.
  const bool hosts = rows == Rows::kHosts;
  std::vector<int32_t> type_rows, cpu_rows, mem_rows;
  for (size_t gpu = 0; gpu < problem.gpus.size(); ++gpu) type_rows.push_back(program.AddRow(-kInfinity, 1));
  for (size_t gpu = 0; hosts && gpu < problem.gpus.size(); ++gpu) {
    cpu_rows.push_back(program.AddRow(-kInfinity, 1));
    mem_rows.push_back(program.AddRow(-kInfinity, 1));
  }
  for (const Way& way : ways) {
    const double share = problem.gpus[way.gpu] / all;
    std::vector<std::pair<int32_t, double>> elements = {{type_rows[way.gpu], 1}};
    if (way.a == way.b) {
      elements.emplace_back(profile_rows[way.a], share * (way.rate_a + way.rate_b));
    } else {
      elements.emplace_back(profile_rows[way.a], share * way.rate_a);
      if (way.b != WorkUse::kAlone) elements.emplace_back(profile_rows[way.b], share * way.rate_b);
    }
    const auto add = [&](const std::vector<int32_t>& of, double held, double HostsOfType::* all_held) {
      if (!hosts || held == 0) return;
      elements.emplace_back(of[way.gpu], problem.gpus[way.gpu] * held / (problem.hosts->types[way.gpu].*all_held));
    };
    add(cpu_rows, way.cpu_milli, &HostsOfType::cpu_milli);
    add(mem_rows, way.mem_mib, &HostsOfType::mem_mib);
    program.AddColumn(0, elements);
  }
  program.AddColumn(1, rate_column);

  HORUS_ASSIGN_OR_RETURN(LinearProgram::Solution solution, program.Solve(library));
  Solved solved{.reached = solution.objective * all, .values = std::move(solution.values)};
  solved.values.pop_back();
  for (const int32_t row : profile_rows) solved.prices.push_back(row < 0 ? 0 : -solution.prices[row]);
  const auto read = [&](const std::vector<int32_t>& of, double HostsOfType::* amount, std::vector<double>& prices) {
    for (size_t gpu = 0; gpu < of.size(); ++gpu) {
      const double held = problem.hosts->types[gpu].*amount;
      prices.push_back(held > 0 ? solution.prices[of[gpu]] * all / held : 0);
    }
  };
  read(cpu_rows, &HostsOfType::cpu_milli, solved.cpu_prices);
  read(mem_rows, &HostsOfType::mem_mib, solved.mem_prices);
  Prove(problem, mix, ways, solved);
  if (std::abs(solved.proved - solved.reached) <= kMostProofGap * solved.proved) return solved;
  return MakeError(absl::StatusCode::kInternal,
                   "work rate: expected prices that prove the rate of %g within %g of it, found %g", solved.reached,
                   kMostProofGap, solved.proved);
}

absl::Status CheckPair(const WorkProblem& problem, size_t position,
                       std::set<std::tuple<uint32_t, uint32_t, uint32_t>>& known) {
  const PairSpeed& pair = problem.pairs[position];
  const size_t profiles = problem.mix.size();
  if (pair.gpu >= problem.gpus.size() || pair.a >= profiles || pair.b >= profiles) {
    return InvalidArgument("pairs[%d]: expected one of %d GPU types and two of %d profiles, found %d, %d and %d",
                           position, problem.gpus.size(), profiles, pair.gpu, pair.a, pair.b);
  }
  const bool none = pair.speed_a == 0 && pair.speed_b == 0;
  if (!IsWithin(pair.speed_a, kMostPairSpeed) || !IsWithin(pair.speed_b, kMostPairSpeed) || (!none && !pair.Runs())) {
    return InvalidArgument(
        "pairs[%d]: expected two speeds above 0 up to %g of those alone, or two zeros (do not run together), found %g "
        "and %g",
        position, kMostPairSpeed, pair.speed_a, pair.speed_b);
  }
  if (!(pair.slowdown == 0 || pair.slowdown >= 1)) {
    return InvalidArgument("pairs[%d]: slowdown: expected at least 1, or 0 (as the speeds), found %g", position,
                           pair.slowdown);
  }
  const double* const alone = &problem.alone[pair.gpu * profiles];
  if (pair.Runs() && (alone[pair.a] == 0 || alone[pair.b] == 0)) {
    return InvalidArgument("pairs[%d]: expected profiles that run alone on GPU type %d, found %g and %g work a second",
                           position, pair.gpu, alone[pair.a], alone[pair.b]);
  }
  const auto [first, second] = std::minmax(pair.a, pair.b);
  if (known.emplace(pair.gpu, first, second).second) return absl::OkStatus();
  return InvalidArgument("pairs[%d]: expected each pair once a GPU type, found profiles %d and %d on type %d again",
                         position, pair.a, pair.b, pair.gpu);
}

absl::Status CheckSizes(const WorkProblem& problem) {
  if (problem.gpus.empty() || problem.mix.empty()) {
    return InvalidArgument("work rate: expected GPU types and profiles, found %d and %d", problem.gpus.size(),
                           problem.mix.size());
  }
  if (problem.gpus.size() > kMostWorkTypes || problem.mix.size() > kMostWorkProfiles ||
      problem.pairs.size() > kMostWorkPairs) {
    return ResourceExhausted("work rate: expected at most %d GPU types, %d profiles and %d pairs, found %d, %d and %d",
                             kMostWorkTypes, kMostWorkProfiles, kMostWorkPairs, problem.gpus.size(), problem.mix.size(),
                             problem.pairs.size());
  }
  if (problem.alone.size() == problem.gpus.size() * problem.mix.size()) return absl::OkStatus();
  return InvalidArgument("alone: expected %d rates, one a GPU type and profile, found %d",
                         problem.gpus.size() * problem.mix.size(), problem.alone.size());
}

// What MakeHostResources made: that cells, shares and sums agree is its work.
absl::Status CheckHosts(const WorkProblem& problem) {
  const HostResources& hosts = *problem.hosts;
  if (hosts.types.size() != problem.gpus.size() || hosts.profiles.size() != problem.mix.size()) {
    return InvalidArgument("hosts: expected %d GPU types and %d profiles, found %d and %d", problem.gpus.size(),
                           problem.mix.size(), hosts.types.size(), hosts.profiles.size());
  }
  const double ways = MostWays(problem);
  if (ways <= kMostHostWays) return absl::OkStatus();
  return ResourceExhausted(
      "work rate: expected at most %g ways to give jobs and pairs their choice of cores and memory, found "
      "%g: state fewer cells or fewer profiles",
      kMostHostWays, ways);
}

// By type, then profiles; a pair with several choices of cores and memory is one.
std::vector<WorkUse> UsesOf(const WorkProblem& problem, const std::vector<Way>& ways, const Solved& solved) {
  std::vector<WorkUse> uses;
  for (size_t i = 0; i < ways.size(); ++i) {
    if (solved.values[i] < kLeastUse) continue;
    const double gpus = solved.values[i] * problem.gpus[ways[i].gpu];
    uses.push_back({ways[i].gpu, ways[i].a, ways[i].b, gpus, gpus * (ways[i].rate_a + ways[i].rate_b)});
  }
  const auto key = [](const WorkUse& use) { return std::tie(use.gpu, use.a, use.b); };
  std::ranges::sort(uses, [&](const WorkUse& x, const WorkUse& y) { return key(x) < key(y); });
  std::vector<WorkUse> joined;
  for (const WorkUse& use : uses) {
    if (joined.empty() || key(joined.back()) != key(use)) {
      joined.push_back(use);
    } else {
      joined.back().gpus += use.gpus;
      joined.back().rate += use.rate;
    }
  }
  return joined;
}

// `least`: what fewer ways already reach.
absl::StatusOr<HostWorkRate> HostRate(const WorkProblem& problem, const std::vector<double>& mix,
                                      const std::vector<Way>& ways, double least, const std::string& library) {
  HORUS_ASSIGN_OR_RETURN(Solved solved, SolveRate(problem, mix, ways, library, Rows::kHosts));
  return HostWorkRate{.rate = std::max(least, solved.proved),
                      .uses = UsesOf(problem, ways, solved),
                      .prices = std::move(solved.prices),
                      .rentals = std::move(solved.rentals),
                      .cpu_prices = std::move(solved.cpu_prices),
                      .mem_prices = std::move(solved.mem_prices)};
}

absl::Status AddHostRates(const WorkProblem& problem, const std::vector<double>& mix, const WorkRateOptions& options,
                          WorkRate& rate) {
  std::vector<Way> ways = WaysAlone(problem, mix, HostLimit::kNode);
  HORUS_ASSIGN_OR_RETURN(rate.resizing, HostRate(problem, mix, ways, rate.exclusive, options.lp_library));
  AddWaysTogether(problem, mix, options.slowdown_bound, HostLimit::kNode, ways);
  const double least = std::max(rate.bound, rate.resizing->rate);
  HORUS_ASSIGN_OR_RETURN(rate.both, HostRate(problem, mix, ways, least, options.lp_library));
  return absl::OkStatus();
}

}  // namespace

std::vector<Way> WaysAlone(const WorkProblem& problem, const std::vector<double>& mix, HostLimit limit) {
  std::vector<Way> ways;
  for (uint32_t gpu = 0; gpu < problem.gpus.size(); ++gpu) {
    const HostShare most = LimitOf(problem, gpu, limit);
    for (uint32_t profile = 0; profile < mix.size(); ++profile) {
      const double rate = problem.alone[gpu * mix.size() + profile];
      if (problem.gpus[gpu] == 0 || mix[profile] == 0 || rate == 0) continue;
      double best = 0;
      for (const HostChoice& cell : CellsOf(problem, profile)) {
        if (!IsWithin(cell.share, most)) continue;
        best = std::max(best, cell.speed);
        if (limit == HostLimit::kFairShare) continue;
        ways.push_back({.gpu = gpu,
                        .a = profile,
                        .rate_a = rate * cell.speed,
                        .cpu_milli = static_cast<double>(cell.share.cpu_milli),
                        .mem_mib = static_cast<double>(cell.share.mem_mib)});
      }
      // What is left of the fair share nobody else gets.
      if (limit == HostLimit::kFairShare && best > 0) ways.push_back({.gpu = gpu, .a = profile, .rate_a = rate * best});
    }
  }
  return ways;
}

void AddWaysTogether(const WorkProblem& problem, const std::vector<double>& mix, double bound, HostLimit limit,
                     std::vector<Way>& ways) {
  for (const PairSpeed& pair : problem.pairs) {
    if (!Counts(problem, mix, pair)) continue;
    PairWays(problem, pair, bound, limit).AddTo(&problem.alone[pair.gpu * mix.size()], ways);
  }
}

double MostWays(const WorkProblem& problem) {
  const auto cells = [&](size_t profile) { return static_cast<double>(CellsOf(problem, profile).size()); };
  double ways = 0;
  for (size_t i = 0; i < problem.alone.size(); ++i) {
    const size_t profile = i % problem.mix.size();
    const bool counts = problem.gpus[i / problem.mix.size()] > 0 && problem.mix[profile] > 0 && problem.alone[i] > 0;
    if (counts) ways += cells(profile);
  }
  for (const PairSpeed& pair : problem.pairs) {
    if (Counts(problem, problem.mix, pair)) ways += cells(pair.a) * cells(pair.b);
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

double PairSpeed::Slowdown() const { return slowdown > 0 ? slowdown : std::max(1 / speed_a, 1 / speed_b); }

bool PairSpeed::IsAdmitted(double bound) const { return Runs() && Slowdown() <= bound; }

absl::Status CheckWorkProblem(const WorkProblem& problem) {
  HORUS_RETURN_IF_ERROR(CheckSizes(problem));
  const auto check = [](const char* what, const std::vector<double>& values, double most) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (IsWithin(values[i], most)) continue;
      return InvalidArgument("%s[%d]: expected a number from 0 to %g, found %g", what, i, most, values[i]);
    }
    return absl::OkStatus();
  };
  HORUS_RETURN_IF_ERROR(check("gpus", problem.gpus, kMostGpus));
  HORUS_RETURN_IF_ERROR(check("mix", problem.mix, std::numeric_limits<double>::max() / kMostWorkProfiles));
  HORUS_RETURN_IF_ERROR(check("alone", problem.alone, kMostAloneRate));
  if (std::accumulate(problem.mix.begin(), problem.mix.end(), 0.0) == 0)
    return InvalidArgument("mix: expected some work, found none");
  for (size_t profile = 0; profile < problem.mix.size(); ++profile) {
    bool runs = problem.mix[profile] == 0;
    for (size_t gpu = 0; gpu < problem.gpus.size(); ++gpu)
      runs = runs || (problem.gpus[gpu] > 0 && problem.alone[gpu * problem.mix.size() + profile] > 0);
    if (!runs) return InvalidArgument("mix[%d]: expected a GPU that runs this profile, found none", profile);
  }
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> known;
  for (size_t i = 0; i < problem.pairs.size(); ++i) HORUS_RETURN_IF_ERROR(CheckPair(problem, i, known));
  return problem.hosts ? CheckHosts(problem) : absl::OkStatus();
}

absl::StatusOr<WorkRate> WorkRateBound(const WorkProblem& problem, const WorkRateOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckWorkProblem(problem));
  if (!(options.slowdown_bound >= 1))
    return InvalidArgument("slowdown bound: expected at least 1, found %g", options.slowdown_bound);
  std::vector<double> mix = problem.mix;
  const double sum = std::accumulate(mix.begin(), mix.end(), 0.0);
  for (double& share : mix) share /= sum;

  std::vector<Way> ways = WaysAlone(problem, mix, HostLimit::kFairShare);
  const size_t singles = ways.size();
  HORUS_ASSIGN_OR_RETURN(Solved solved, SolveRate(problem, mix, ways, options.lp_library));
  WorkRate rate{.exclusive = solved.proved};
  AddWaysTogether(problem, mix, options.slowdown_bound, HostLimit::kFairShare, ways);
  if (ways.size() > singles) HORUS_SET_OR_RETURN(solved, SolveRate(problem, mix, ways, options.lp_library));
  rate.bound = std::max(rate.exclusive, solved.proved);  // apart by rounding where sharing gains nothing
  rate.uses = UsesOf(problem, ways, solved);
  rate.prices = std::move(solved.prices);
  rate.rentals = std::move(solved.rentals);
  if (problem.hosts) HORUS_RETURN_IF_ERROR(AddHostRates(problem, mix, options, rate));
  return rate;
}

}  // namespace horus
