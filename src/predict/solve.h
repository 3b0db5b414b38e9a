// SPDX-License-Identifier: Apache-2.0
// Solve: the largest value of a dimension (batch, sequence, ...) whose memory bound fits a GPU beside its residents.
//
// Enters:  upper bounds as a function of the value, or a graph, a run, the dimension's name and GPU types.
// Leaves:  a Solution per target: it fits; the next value does not, is refused by the graph, or exceeds the maximum.
// Units:   MiB; values in elements of the dimension.
// Cost:    at most log2(maximum) + 1 bindings for all targets, then up to 3 log2(maximum) a target, usually 2.
#pragma once

#include "predict/predictor.h"

namespace horus {

inline constexpr int64_t kDefaultSolveMax = int64_t{1} << 20;
inline constexpr int64_t kMostSolveMax = 2147483647;           // 2^31 - 1
inline constexpr int64_t kMostResidentMib = int64_t{1} << 32;  // as ValidateDemand allows one resident
inline constexpr std::string_view kBatchDimension = "batch";   // the batch, whatever the graph calls it

// What ends the range behind the largest value.
enum class SolveEnd : uint8_t {
  kMemory = 1,  // the next value's bound exceeds the free memory
  kGraph,       // the graph refuses the next value
  kMaximum,     // the largest value is the maximum that was asked for
};
[[nodiscard]] std::string_view SolveEndName(SolveEnd end);  // "memory", "graph", "maximum"

struct Solution {
  int64_t largest = 0;  // 0 = not even the least value fits
  SolveEnd end = SolveEnd::kMemory;
  int64_t next = 0;       // the value that is refused: largest + 1; the least that the graph takes where largest is 0;
                          // 0 with kMaximum
  int64_t upper_mib = 0;  // bound at `largest`; 0 where that is 0
  int64_t short_mib = 0;  // kMemory: what `next` lacks, > 0
  std::string message;    // kGraph: what the graph says of `next`
  friend bool operator==(const Solution&, const Solution&) = default;
};

// Upper bounds (MiB) of several columns, e.g. GPU types, for one value; deterministic. InvalidArgument and
// ResourceExhausted mean that the value is refused; any other error ends the search.
using UpperBounds = std::function<absl::StatusOr<std::vector<int64_t>>(int64_t value)>;

struct SolveTarget {
  size_t column = 0;     // of UpperBounds
  int64_t free_mib = 0;  // may be negative: nothing fits
};

// Called before each new evaluation; false cancels.
using SolveProgress = std::function<bool(size_t solved, size_t targets)>;

// Doubles the value until it no longer fits, then narrows by interpolation and bisection. Values are evaluated once,
// whichever targets ask; a target's answer does not depend on the others. A range that begins above 1 (a signal
// longer than the filter) is found if one of its powers of two, or the maximum, lies in it.
// Guarantee: `largest` fits and `next` does not. A bound that is not monotone may hold larger values that fit.
// Errors: no tried value was taken (the error of value 1), cancelled, those of `bounds`.
[[nodiscard]] absl::StatusOr<std::vector<Solution>> SolveLargest(const UpperBounds& bounds,
                                                                 std::span<const SolveTarget> targets,
                                                                 int64_t max_value,
                                                                 const SolveProgress& progress = nullptr);

struct SolveRequest {
  std::string dim = std::string(kBatchDimension);
  int64_t max_value = kDefaultSolveMax;  // 1 to kMostSolveMax
};

// A GPU with residents; `type` is a position among the types given.
struct SolveDevice {
  size_t type = 0;
  int64_t resident_mib = 0;  // sum of the residents' upper bounds, contexts included; 0 to kMostResidentMib
};

struct Solved {
  std::vector<Solution> solutions;  // one per device, in order
  int64_t bindings = 0;             // values tried
  uint32_t flags = 0;               // DemandFlag bits of any prediction made
};

// Binds the graph anew for every value tried. `run` must leave the dimension open and bind all others: a bound over
// unknown shapes would be none.
// Errors: a dimension of no input (the known ones are named), one that the run binds, another one that is open, ranges;
// those of SolveLargest.
[[nodiscard]] absl::StatusOr<Solved> SolveDimension(const std::shared_ptr<const Graph>& graph, const RunSpec& run,
                                                    const SolveRequest& request, const Predictor& predictor,
                                                    std::span<const GpuType> types,
                                                    std::span<const SolveDevice> devices,
                                                    const SolveProgress& progress = nullptr);

}  // namespace horus
