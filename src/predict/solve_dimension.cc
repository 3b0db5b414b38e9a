// SPDX-License-Identifier: Apache-2.0
// Solves for a dimension of a graph: binds it anew for every value and predicts the bound on every GPU type.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "predict/solve.h"

namespace horus {
namespace {

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
  const auto bound = std::find_if(run.dims.dims.begin(), run.dims.dims.end(),
                                  [&dim](const auto& given) { return given.first == dim; });
  if (is_batch && run.dims.batch > 0) {
    return InvalidArgument("solve: expected a run that leaves %s open, found it bound to %d", dim, run.dims.batch);
  }
  if (bound == run.dims.dims.end()) return absl::OkStatus();
  return InvalidArgument("solve: expected a run that leaves %s open, found it bound to %d", Quoted(dim), bound->second);
}

}  // namespace

absl::StatusOr<Solved> SolveDimension(const std::shared_ptr<const Graph>& graph, const RunSpec& run,
                                      const SolveRequest& request, const Predictor& predictor,
                                      std::span<const GpuType> types, std::span<const SolveDevice> devices,
                                      const SolveProgress& progress) {
  if (graph == nullptr || graph->bodies.empty()) return InvalidArgument("graph: expected one, found none");
  HORUS_RETURN_IF_ERROR(CheckDimension(*graph, run, request.dim));
  std::vector<SolveTarget> targets;
  for (const SolveDevice& device : devices) {
    if (device.type >= types.size()) {
      return InvalidArgument("solve: expected a type below %d, found %d", types.size(), device.type);
    }
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
        return MakeError(absl::StatusCode::kFailedPrecondition,
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
