// SPDX-License-Identifier: Apache-2.0
// Collects what `horus inspect` prints.
#include "cli/inspect_report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace horus::cli {
namespace {

std::string TypeOf(const Node& node) {
  return node.domain.empty() ? node.op_type : absl::StrCat(node.domain, "::", node.op_type);
}

std::string ShapeOf(const ShapedGraph& shaped, const Op& op) {
  if (op.outputs.empty() || !op.outputs.front().valid()) return "";
  const Tensor& tensor = shaped.tensors[op.outputs.front().value()];
  std::string shape;
  for (const int64_t dim : tensor.dims) {
    absl::StrAppend(&shape, shape.empty() ? "" : "x", dim == kUnknownDim ? "?" : absl::StrCat(dim));
  }
  return shape;
}

OperatorCost CostOf(const ShapedGraph& shaped, const StepCost& cost, size_t index, const std::vector<OpTime>& times) {
  const Op& op = shaped.ops[index];
  const OpCost& amounts = cost.ops[index];
  OperatorCost row;
  row.op_type = TypeOf(*op.node);
  row.name = op.node->name;
  row.output_shape = ShapeOf(shaped, op);
  row.count = 1;
  row.forward_flops = amounts.forward_flops + amounts.forward_flops_other;
  row.backward_flops = amounts.backward_flops + amounts.backward_flops_other;
  row.bytes = amounts.forward_bytes + amounts.backward_bytes;
  if (!times.empty()) {
    row.time_us = times[index].forward_us + times[index].backward_us;
    row.limit = times[index].limit;
  }
  return row;
}

void Add(const OperatorCost& row, OperatorCost& sum) {
  sum.op_type = row.op_type;
  sum.count += 1;
  sum.forward_flops += row.forward_flops;
  sum.backward_flops += row.backward_flops;
  sum.bytes += row.bytes;
  if (row.time_us) sum.time_us = sum.time_us.value_or(0) + *row.time_us;
}

// The costliest first: by time where it is known, then FLOPs, then bytes; ties stay in execution order.
bool Costlier(const OperatorCost& a, const OperatorCost& b) {
  const auto key = [](const OperatorCost& row) {
    return std::tuple(row.time_us.value_or(0), row.forward_flops + row.backward_flops, row.bytes);
  };
  return key(a) > key(b);
}

void KeepTop(std::vector<OperatorCost>& rows, size_t top) {
  std::stable_sort(rows.begin(), rows.end(), Costlier);
  if (rows.size() > top) rows.resize(top);
}

void RankOperators(const JobProfile& profile, const std::vector<OpTime>& times, size_t top,
                   std::vector<OperatorCost>& by_type, std::vector<OperatorCost>& single) {
  std::map<std::string, OperatorCost> types;
  for (size_t i = 0; i < profile.shaped->ops.size(); ++i) {
    if (profile.shaped->ops[i].plumbing) continue;
    OperatorCost row = CostOf(*profile.shaped, profile.cost, i, times);
    const auto [sum, is_new] = types.try_emplace(row.op_type);
    if (is_new) sum->second.count = 0;
    Add(row, sum->second);
    single.push_back(std::move(row));
    // Bounded memory for graphs of millions of operators.
    if (single.size() > 4 * top + 4096) KeepTop(single, top);
  }
  for (auto& [type, sum] : types) {
    sum.name = type;
    by_type.push_back(std::move(sum));
  }
  KeepTop(by_type, top);
  KeepTop(single, top);
}

}  // namespace

std::string_view LimitName(Limit limit) {
  switch (limit) {
    case Limit::kCompute:
      return "compute";
    case Limit::kBandwidth:
      return "bandwidth";
    case Limit::kLaunch:
      return "launch";
  }
  return "unknown";
}

InspectReport MakeInspectReport(std::string path, std::shared_ptr<const Graph> graph, JobProfile profile,
                                const Predictor& predictor, const std::vector<GpuType>& types, size_t top) {
  InspectReport report;
  report.path = std::move(path);
  report.graph = std::move(graph);
  report.calibrated = predictor.calibrated();
  RankOperators(profile, {}, top, report.by_type, report.single);
  for (const GpuType& type : types) {
    GpuReport gpu;
    gpu.type = type;
    gpu.demand = predictor.Predict(profile, type);
    gpu.explanations = predictor.Explain(profile, type);
    gpu.roofline = RooflineOf(profile.cost, profile.run, type);
    StepMemory memory = profile.memory;
    memory.context = type.context_mib * (int64_t{1} << 20);
    gpu.features.resize(DeviceFeatureColumns().size());
    DeviceFeatures(gpu.roofline, memory, type, profile.run, gpu.features);
    RankOperators(profile, RooflineOps(profile.cost, profile.run, type), top, gpu.by_type, gpu.single);
    report.gpus.push_back(std::move(gpu));
  }
  report.profile = std::move(profile);
  return report;
}

}  // namespace horus::cli
