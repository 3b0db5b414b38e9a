// SPDX-License-Identifier: Apache-2.0
// The linear program of the work rate, and the proof of its bound by prices.
#include "lab/bound/work_rate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "lab/bound/ways.h"
#include "lab/lp/linear_program.h"

namespace horus {
namespace {

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

// The rows of cores and memory, as shares of all that a type has.
class HostRows {
 public:
  HostRows(const WorkProblem& problem, LinearProgram& program) : problem_(problem) {
    for (size_t gpu = 0; gpu < problem.gpus.size(); ++gpu) {
      cpu_.push_back(program.AddRow(-kInfinity, 1));
      mem_.push_back(program.AddRow(-kInfinity, 1));
    }
  }

  void Add(const Way& way, std::vector<std::pair<int32_t, double>>& elements) const {
    const HostsOfType& type = problem_.hosts->types[way.gpu];
    const double gpus = problem_.gpus[way.gpu];
    if (way.cpu_milli > 0) elements.emplace_back(cpu_[way.gpu], gpus * way.cpu_milli / type.cpu_milli);
    if (way.mem_mib > 0) elements.emplace_back(mem_[way.gpu], gpus * way.mem_mib / type.mem_mib);
  }

  // `all`: by which the rate is scaled.
  void ReadPrices(const std::vector<double>& prices, double all, Solved& solved) const {
    const auto read = [&](int32_t row, double amount) { return amount > 0 ? prices[row] * all / amount : 0; };
    for (size_t gpu = 0; gpu < cpu_.size(); ++gpu) {
      solved.cpu_prices.push_back(read(cpu_[gpu], problem_.hosts->types[gpu].cpu_milli));
      solved.mem_prices.push_back(read(mem_[gpu], problem_.hosts->types[gpu].mem_mib));
    }
  }

 private:
  const WorkProblem& problem_;
  std::vector<int32_t> cpu_, mem_;
};

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
  std::vector<int32_t> type_rows;
  for (size_t gpu = 0; gpu < problem.gpus.size(); ++gpu) type_rows.push_back(program.AddRow(-kInfinity, 1));
  std::optional<HostRows> host_rows;
  if (rows == Rows::kHosts) host_rows.emplace(problem, program);
  for (const Way& way : ways) {
    const double share = problem.gpus[way.gpu] / all;
    std::vector<std::pair<int32_t, double>> elements = {{type_rows[way.gpu], 1}};
    if (way.a == way.b) {
      elements.emplace_back(profile_rows[way.a], share * (way.rate_a + way.rate_b));
    } else {
      elements.emplace_back(profile_rows[way.a], share * way.rate_a);
      if (way.b != WorkUse::kAlone) elements.emplace_back(profile_rows[way.b], share * way.rate_b);
    }
    if (host_rows) host_rows->Add(way, elements);
    program.AddColumn(0, elements);
  }
  program.AddColumn(1, rate_column);

  HORUS_ASSIGN_OR_RETURN(LinearProgram::Solution solution, program.Solve(library));
  Solved solved{.reached = solution.objective * all, .values = std::move(solution.values)};
  solved.values.pop_back();
  for (const int32_t row : profile_rows) solved.prices.push_back(row < 0 ? 0 : -solution.prices[row]);
  if (host_rows) host_rows->ReadPrices(solution.prices, all, solved);
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
  const double ways = MostHostWays(problem);
  if (ways <= kMostHostWays) return absl::OkStatus();
  return ResourceExhausted(
      "work rate: expected at most %g ways to give jobs and pairs their choice of cores and memory, found "
      "%g: state fewer cells or fewer profiles",
      kMostHostWays, ways);
}

}  // namespace

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
  if (std::accumulate(problem.mix.begin(), problem.mix.end(), 0.0) == 0) {
    return InvalidArgument("mix: expected some work, found none");
  }
  for (size_t profile = 0; profile < problem.mix.size(); ++profile) {
    bool runs = problem.mix[profile] == 0;
    for (size_t gpu = 0; gpu < problem.gpus.size(); ++gpu) {
      runs = runs || (problem.gpus[gpu] > 0 && problem.alone[gpu * problem.mix.size() + profile] > 0);
    }
    if (!runs) return InvalidArgument("mix[%d]: expected a GPU that runs this profile, found none", profile);
  }
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> known;
  for (size_t i = 0; i < problem.pairs.size(); ++i) HORUS_RETURN_IF_ERROR(CheckPair(problem, i, known));
  return problem.hosts ? CheckHosts(problem) : absl::OkStatus();
}

namespace {

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
  std::vector<Way> ways = HostWaysAlone(problem, mix, HostLimit::kNode);
  HORUS_ASSIGN_OR_RETURN(rate.resizing, HostRate(problem, mix, ways, rate.exclusive, options.lp_library));
  AddHostWaysTogether(problem, mix, options.slowdown_bound, HostLimit::kNode, ways);
  const double least = std::max(rate.bound, rate.resizing->rate);
  HORUS_ASSIGN_OR_RETURN(rate.both, HostRate(problem, mix, ways, least, options.lp_library));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WorkRate> WorkRateBound(const WorkProblem& problem, const WorkRateOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckWorkProblem(problem));
  if (!(options.slowdown_bound >= 1)) {
    return InvalidArgument("slowdown bound: expected at least 1, found %g", options.slowdown_bound);
  }
  std::vector<double> mix = problem.mix;
  const double sum = std::accumulate(mix.begin(), mix.end(), 0.0);
  for (double& share : mix) share /= sum;

  const bool hosts = problem.hosts.has_value();
  std::vector<Way> ways = hosts ? HostWaysAlone(problem, mix, HostLimit::kFairShare) : WaysAlone(problem, mix);
  const size_t singles = ways.size();
  HORUS_ASSIGN_OR_RETURN(Solved solved, SolveRate(problem, mix, ways, options.lp_library));
  WorkRate rate{.exclusive = solved.proved};
  if (hosts) {
    AddHostWaysTogether(problem, mix, options.slowdown_bound, HostLimit::kFairShare, ways);
  } else {
    AddWaysTogether(problem, mix, options.slowdown_bound, ways);
  }
  if (ways.size() > singles) {
    HORUS_ASSIGN_OR_RETURN(solved, SolveRate(problem, mix, ways, options.lp_library));
  }
  rate.bound = std::max(rate.exclusive, solved.proved);  // apart by rounding where sharing gains nothing
  rate.uses = UsesOf(problem, ways, solved);
  rate.prices = std::move(solved.prices);
  rate.rentals = std::move(solved.rentals);
  if (hosts) HORUS_RETURN_IF_ERROR(AddHostRates(problem, mix, options, rate));
  return rate;
}

}  // namespace horus
