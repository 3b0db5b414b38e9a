// SPDX-License-Identifier: Apache-2.0
// The best rate at which GPUs can do a mix of work, jobs alone or in pairs: the bound that no policy passes.
//
// Enters:  GPUs by type, the share of the work that each profile brings, speeds alone and of pairs; perhaps what cores
//          and host memory do to them.
// Leaves:  the rate without sharing and the best one with it, which GPUs do what, and prices that prove the bound.
// Units:   work in seconds that a job takes alone on its reference GPU; rates in work a second, that is in such GPUs.
// Cost:    two linear programs, with hosts four; 22 profiles: milliseconds, 200 profiles on 5 types: seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "place/job/sensitivity.h"

namespace horus {

// Two jobs on one GPU. Speeds are normalised throughput: speed shared / speed alone on that type; both 0 = they do not
// run together. `slowdown` is the slower side's as bounds count it; 0 = what the speeds say.
struct PairSpeed {
  uint32_t gpu = 0, a = 0, b = 0;  // positions of the type and of two profiles; a == b: two copies
  double speed_a = 0, speed_b = 0;
  double slowdown = 0;

  [[nodiscard]] bool Runs() const { return speed_a > 0 && speed_b > 0; }
  [[nodiscard]] double Slowdown() const;              // of its slower side; of a pair that runs
  [[nodiscard]] bool IsAdmitted(double bound) const;  // runs together, and nobody is slowed beyond `bound`
};

// Cores and host memory of the nodes of a GPU type.
struct HostsOfType {
  double cpu_milli = 0, mem_mib = 0;  // of all of them
  HostShare fair;                     // of one GPU; GPUs * fair is within the sum
  HostShare most;                     // of the largest node, and so of one GPU's jobs; at least `fair`
};

// What cores and memory do to a profile: at a share above 0 its speed, relative to `alone` of the problem. No cells: it
// holds nothing and always runs at 1.
struct HostsOfProfile {
  std::vector<HostChoice> cells;  // where profiles bring work, one at least is within the fair share of some type
  double best = 1;                // the GPU's own speed; no cell is faster
};

struct HostResources {
  std::vector<HostsOfType> types;        // as WorkProblem::gpus
  std::vector<HostsOfProfile> profiles;  // as WorkProblem::mix
};

// The useful cells of each profile's matrix. With a fair share below everything that was measured a job runs at the
// least speed that was, as in SensitiveTruth.
[[nodiscard]] HostResources MakeHostResources(std::vector<HostsOfType> types,
                                              std::span<const SharedSensitivity> sensitivities);

struct WorkProblem {
  std::vector<double> gpus;      // by type: how many
  std::vector<double> mix;       // by profile: share of the work; any unit, some above 0
  std::vector<double> alone;     // [type * profiles + profile] work a second of one GPU; 0 = does not run there
  std::vector<PairSpeed> pairs;  // each unordered pair once a type; what is missing does not run together
  std::optional<HostResources> hosts = {};  // none: cores and memory do not count
};

inline constexpr size_t kMostWorkTypes = 64;
inline constexpr size_t kMostWorkProfiles = 2'048;
inline constexpr size_t kMostWorkPairs = 4'000'000;
inline constexpr double kMostHostWays = 4'000'000;  // of profiles and pairs, each with every choice of cores and memory

struct WorkRateOptions {
  double slowdown_bound = std::numeric_limits<double>::infinity();  // of both sides of a pair, at least 1
  std::string lp_library;                                           // file of libhorus_lp.so; empty = looked for
};

// So many GPUs of a type run one profile alone or one pair.
struct WorkUse {
  static constexpr uint32_t kAlone = std::numeric_limits<uint32_t>::max();
  uint32_t gpu = 0, a = 0, b = kAlone;
  double gpus = 0;
  double rate = 0;  // work a second of all of them
  friend bool operator==(const WorkUse&, const WorkUse&) = default;
};

// The best rate where jobs hold what cores and memory do most for the mix. The rate is what GPUs, cores and memory are
// worth at these prices.
struct HostWorkRate {
  double rate = 0;
  std::vector<WorkUse> uses;                   // those of a pair with several choices are one
  std::vector<double> prices, rentals;         // as below; a rental is what is left when cores and memory are paid
  std::vector<double> cpu_prices, mem_prices;  // by type: of a thousandth of a core, of a MiB
};

// With hosts, `exclusive` and `bound` keep to the fair share: each job alone has that of its GPU, two jobs part it as
// suits them.
struct WorkRate {
  double exclusive = 0;         // the best rate without pairs
  double bound = 0;             // the best rate with them, >= exclusive
  std::vector<WorkUse> uses;    // that reach the bound; by type, then profiles. One of several solutions
  std::vector<double> prices;   // by profile: what a unit of its work is worth; the mix is worth 1 a unit
  std::vector<double> rentals;  // by type: what a GPU does at these prices; gpus * rentals = bound
  // With hosts, any choice of cores and memory: without pairs, >= exclusive; and with them, >= all others.
  std::optional<HostWorkRate> resizing = {}, both = {};
};

// Profiles are worked on in proportion to the mix, as a backlog that drains evenly: a schedule that does the work
// W in T seconds has sum(W) / T <= bound of the mix W. INVALID_ARGUMENT: sizes, numbers out of range, a profile that no
// type runs. RESOURCE_EXHAUSTED: too large. UNAVAILABLE: no libhorus_lp.so. INTERNAL: the solver gave up, or its prices
// prove nothing, which happens where parts of the mix lie ten orders of magnitude apart.
[[nodiscard]] absl::StatusOr<WorkRate> WorkRateBound(const WorkProblem& problem, const WorkRateOptions& options = {});

// The errors above that need no solver.
[[nodiscard]] absl::Status CheckWorkProblem(const WorkProblem& problem);

// ---- What one GPU may do: run a profile or a pair, with each choice of cores and host memory. Without hosts no job
// holds anything, and all run at 1. A pair costs the product of both choices, times their sum.

struct Way {
  uint32_t gpu = 0, a = 0, b = WorkUse::kAlone;
  double rate_a = 0, rate_b = 0;      // work a second
  double cpu_milli = 0, mem_mib = 0;  // that its jobs hold together

  [[nodiscard]] double Worth(const std::vector<double>& prices) const {
    return rate_a * prices[a] + (b == WorkUse::kAlone ? 0 : rate_b * prices[b]);
  }
};

enum class HostLimit : uint8_t {
  kFairShare,  // all that run on a GPU hold together no more than its fair share
  kNode,       // no more than the largest node has; rows of the program bound the sum
};

[[nodiscard]] std::vector<Way> WaysAlone(const WorkProblem& problem, const std::vector<double>& mix, HostLimit limit);
void AddWaysTogether(const WorkProblem& problem, const std::vector<double>& mix, double bound, HostLimit limit,
                     std::vector<Way>& ways);

// How many of both there may be before those that never help are left out.
[[nodiscard]] double MostWays(const WorkProblem& problem);

}  // namespace horus
