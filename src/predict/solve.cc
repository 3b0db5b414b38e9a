// SPDX-License-Identifier: Apache-2.0
// Searches the largest value of a dimension that fits: doubling, then interpolation and bisection over shared values.
#include "predict/solve.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

// Every third probe halves the bracket, whatever shape the bound has.
constexpr int kHalvingPeriod = 3;

bool IsRefusal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument || status.code() == absl::StatusCode::kResourceExhausted;
}

// Evaluates each value once.
class SharedBounds {
 public:
  SharedBounds(const UpperBounds& bounds, const SolveProgress& progress, size_t targets)
      : bounds_(bounds), progress_(progress), targets_(targets) {}

  // The bounds, or why the value is refused. Another error than a refusal is in the outer status.
  [[nodiscard]] absl::StatusOr<const absl::StatusOr<std::vector<int64_t>>*> At(int64_t value, size_t solved) {
    if (const auto known = known_.find(value); known != known_.end()) return &known->second;
    if (progress_ != nullptr && !progress_(solved, targets_))
      return absl::CancelledError("the progress callback asked to stop");
    absl::StatusOr<std::vector<int64_t>> upper = bounds_(value);
    if (!upper.ok() && !IsRefusal(upper.status())) return upper.status();
    return &known_.emplace(value, std::move(upper)).first->second;
  }

 private:
  const UpperBounds& bounds_;
  const SolveProgress& progress_;
  size_t targets_;
  std::map<int64_t, absl::StatusOr<std::vector<int64_t>>> known_;
};

enum class Verdict : uint8_t { kFits, kOver, kRefused };

struct Probe {
  int64_t value = 0;
  Verdict verdict = Verdict::kRefused;
  int64_t upper_mib = 0;  // unless refused
};

// The search for one target. Its probes depend on its own bounds alone.
class TargetSearch {
 public:
  TargetSearch(SharedBounds& bounds, const SolveTarget& target, int64_t max_value, size_t solved)
      : bounds_(bounds), target_(target), max_value_(max_value), solved_(solved) {}

  [[nodiscard]] absl::StatusOr<Solution> Run() {
    HORUS_RETURN_IF_ERROR(Gallop());
    if (!fits_ && next_->verdict == Verdict::kOver) HORUS_RETURN_IF_ERROR(FindLeast());
    if (fits_ && next_) HORUS_RETURN_IF_ERROR(Narrow());
    return Result();
  }

 private:
  [[nodiscard]] absl::StatusOr<Probe> Try(int64_t value) {
    HORUS_ASSIGN_OR_RETURN(const auto* upper, bounds_.At(value, solved_));
    if (!upper->ok()) return Probe{value, Verdict::kRefused, 0};
    if (target_.column >= (*upper)->size()) {
      return MakeError(absl::StatusCode::kInternal, "solve: expected at least %d upper bounds, found %d",
                       target_.column + 1, (*upper)->size());
    }
    const int64_t mib = (**upper)[target_.column];
    return Probe{value, mib <= target_.free_mib ? Verdict::kFits : Verdict::kOver, mib};
  }

  // 1, 2, 4, ... up to the first value that is over, or refused after one that fits.
  [[nodiscard]] absl::Status Gallop() {
    for (int64_t value = 1;; value = value > max_value_ / 2 ? max_value_ : 2 * value) {
      HORUS_ASSIGN_OR_RETURN(const Probe probe, Try(value));
      if (probe.verdict == Verdict::kFits) {
        fits_ = probe;
      } else if (probe.verdict == Verdict::kOver || fits_) {
        next_ = probe;
        return absl::OkStatus();
      } else {
        below_ = value;
      }
      if (value < max_value_) continue;
      if (fits_) return absl::OkStatus();
      HORUS_ASSIGN_OR_RETURN(const auto* first, bounds_.At(1, solved_));
      return first->status();
    }
  }

  // Between a value that is refused for being small and one that is over: one that fits, or the least that is over.
  [[nodiscard]] absl::Status FindLeast() {
    while (next_->value - below_ > 1) {
      HORUS_ASSIGN_OR_RETURN(const Probe probe, Try(below_ + (next_->value - below_) / 2));
      if (probe.verdict == Verdict::kOver) next_ = probe;
      if (probe.verdict == Verdict::kRefused) below_ = probe.value;
      if (probe.verdict != Verdict::kFits) continue;
      fits_ = probe;
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status Narrow() {
    for (int i = 1; next_->value - fits_->value > 1; ++i) {
      HORUS_ASSIGN_OR_RETURN(const Probe probe, Try(i % kHalvingPeriod == 0 ? Middle() : Guess()));
      (probe.verdict == Verdict::kFits ? fits_ : next_) = probe;
    }
    return absl::OkStatus();
  }

  [[nodiscard]] int64_t Middle() const { return fits_->value + (next_->value - fits_->value) / 2; }

  // Where a straight line between the two ends of the bracket meets the free memory.
  [[nodiscard]] int64_t Guess() const {
    if (next_->verdict == Verdict::kRefused) return Middle();
    const auto room = static_cast<double>(target_.free_mib - fits_->upper_mib);
    const auto rise = static_cast<double>(next_->upper_mib - fits_->upper_mib);  // > room >= 0
    const auto width = static_cast<double>(next_->value - fits_->value);
    return std::clamp(fits_->value + static_cast<int64_t>(width * (room / rise)), fits_->value + 1, next_->value - 1);
  }

  [[nodiscard]] absl::StatusOr<Solution> Result() {
    Solution solution;
    if (fits_) {
      solution.largest = fits_->value;
      solution.upper_mib = fits_->upper_mib;
    }
    if (!next_) {
      solution.end = SolveEnd::kMaximum;
      return solution;
    }
    solution.next = next_->value;
    if (next_->verdict == Verdict::kOver) {
      solution.end = SolveEnd::kMemory;
      solution.short_mib = next_->upper_mib - target_.free_mib;
      return solution;
    }
    solution.end = SolveEnd::kGraph;
    HORUS_ASSIGN_OR_RETURN(const auto* refused, bounds_.At(next_->value, solved_));
    solution.message = std::string(refused->status().message());
    return solution;
  }

  SharedBounds& bounds_;
  const SolveTarget& target_;
  int64_t max_value_;
  size_t solved_;
  int64_t below_ = 0;  // refused, and so is every power of two below
  std::optional<Probe> fits_;
  std::optional<Probe> next_;  // does not fit; beyond fits_
};

// "batch or one of 'seq', 'height'": what the graph lets one choose.
std::string Choices(std::vector<std::string_view> names) {
  std::erase(names, kBatchDimension);
  return std::string(kBatchDimension) + (names.empty() ? "" : " or one of " + QuotedSome(names));
}

absl::Status CheckDimension(const Graph& graph, const RunSpec& run, const std::string& dim) {
  const bool is_batch = dim == kBatchDimension;
  const std::vector<std::string_view> names = InputDims(graph);
  if (!is_batch && std::find(names.begin(), names.end(), dim) == names.end()) {
    return InvalidArgument("solve: expected %s, found %s, which is a dimension of no graph input", Choices(names),
                           Quoted(dim));
  }
  const auto bound = std::ranges::find_if(run.dims.dims, [&dim](const auto& given) { return given.first == dim; });
  if (is_batch && run.dims.batch > 0)
    return InvalidArgument("solve: expected a run that leaves %s open, found it bound to %d", dim, run.dims.batch);
  if (bound == run.dims.dims.end()) return absl::OkStatus();
  return InvalidArgument("solve: expected a run that leaves %s open, found it bound to %d", Quoted(dim), bound->second);
}

}  // namespace

std::string_view SolveEndName(SolveEnd end) {
  return end == SolveEnd::kMemory ? "memory" : end == SolveEnd::kGraph ? "graph" : "maximum";
}

absl::StatusOr<std::vector<Solution>> SolveLargest(const UpperBounds& bounds, std::span<const SolveTarget> targets,
                                                   int64_t max_value, const SolveProgress& progress) {
  if (max_value < 1 || max_value > kMostSolveMax)
    return InvalidArgument("solve: expected a maximum from 1 to %d, found %d", kMostSolveMax, max_value);
  SharedBounds shared(bounds, progress, targets.size());
  std::vector<Solution> solutions;
  for (const SolveTarget& target : targets)
    HORUS_SET_OR_RETURN(solutions.emplace_back(), TargetSearch(shared, target, max_value, solutions.size()).Run());
  return solutions;
}

// Binds the graph anew for every value and predicts the bound on every GPU type.
absl::StatusOr<Solved> SolveDimension(const std::shared_ptr<const Graph>& graph, const RunSpec& run,
                                      const SolveRequest& request, const Predictor& predictor,
                                      std::span<const GpuType> types, std::span<const SolveDevice> devices,
                                      const SolveProgress& progress) {
  if (graph == nullptr || graph->bodies.empty()) return InvalidArgument("graph: expected one, found none");
  HORUS_RETURN_IF_ERROR(CheckDimension(*graph, run, request.dim));
  std::vector<SolveTarget> targets;
  for (const SolveDevice& device : devices) {
    if (device.type >= types.size())
      return InvalidArgument("solve: expected a type below %d, found %d", types.size(), device.type);
    if (device.resident_mib < 0 || device.resident_mib > kMostResidentMib) {
      return InvalidArgument("solve: expected residents of 0 to %d MiB, found %d", kMostResidentMib,
                             device.resident_mib);
    }
    targets.push_back({device.type, types[device.type].mem_mib - device.resident_mib});
  }
  Solved solved;
  const UpperBounds bounds = [&](int64_t value) -> absl::StatusOr<std::vector<int64_t>> {
    ++solved.bindings;
    RunSpec tried = run;
    if (request.dim == kBatchDimension) {
      tried.dims.batch = value;
    } else {
      tried.dims.dims.emplace_back(request.dim, value);
    }
    HORUS_ASSIGN_OR_RETURN(const JobProfile profile, Analyse(graph, tried));
    std::vector<int64_t> upper;
    for (const GpuType& type : types) {
      const Demand demand = predictor.Predict(profile, type);
      if (!HasMemoryBound(demand)) {
        return FailedPrecondition(
            "solve: expected a graph of which at least %g of operators and forward FLOPs are understood, "
            "found %d of %d operators and %.2f of the FLOPs: its memory has no bound",
            kLeastKnownShare, profile.cost.coverage.ops_known, profile.cost.coverage.ops,
            profile.cost.coverage.flops_share);
      }
      upper.push_back(demand.mem_mib.upper);
      solved.flags |= demand.flags;
    }
    return upper;
  };
  HORUS_ASSIGN_OR_RETURN(solved.solutions, SolveLargest(bounds, targets, request.max_value, progress));
  return solved;
}

}  // namespace horus
