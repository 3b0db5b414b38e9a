// SPDX-License-Identifier: Apache-2.0
// Writes an inspect report as JSON; docs/cli.md lists the keys.
#include "absl/strings/str_format.h"
#include "base/units.h"
#include "cli/explain_report.h"
#include "cli/inspect_report.h"
#include "io/json_text.h"
#include "io/placement_json.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kInspectJsonVersion = 1;

std::string Hex(uint64_t value) { return absl::StrFormat("%016x", value); }

Json ModelJson(const InspectReport& report) {
  const Graph& graph = *report.graph;
  return {{"path", report.path},
          {"name", graph.name},
          {"producer", graph.producer},
          {"ir_version", graph.ir_version},
          {"opset", graph.opset},
          {"nodes", graph.main().nodes.size()},
          {"fingerprint", Hex(graph.fingerprint)}};
}

Json RunJson(const JobProfile& profile) {
  Json dims = Json::object();
  for (const auto& [name, size] : profile.run.dims.dims) dims[name] = size;
  return {{"mode", std::string(Name(profile.run.mode))},
          {"precision", std::string(Name(profile.run.precision))},
          {"optimizer", std::string(Name(profile.run.optimizer))},
          {"framework", std::string(Name(profile.run.framework))},
          {"batch", profile.shaped->batch},
          {"dims", dims},
          {"checkpoint_segments", profile.run.checkpoint_segments},
          {"frozen", profile.run.frozen},
          {"replicas", profile.run.data_parallel}};
}

Json CoverageJson(const CostCoverage& coverage) {
  Json unknown = Json::array();
  for (const auto& [name, count] : coverage.unknown) unknown.push_back({{"op_type", name}, {"count", count}});
  return {{"ops", coverage.ops},
          {"ops_known", coverage.ops_known},
          {"flops_share", coverage.flops_share},
          {"unknown", unknown}};
}

Json MemoryJson(const StepMemory& memory, bool understood) {
  return {{"weights_bytes", memory.weights},
          {"gradients_bytes", memory.gradients},
          {"optimizer_bytes", memory.optimizer},
          {"master_weights_bytes", memory.master_weights},
          {"buckets_bytes", memory.buckets},
          {"inputs_bytes", memory.inputs},
          {"activations_bytes", memory.activations},
          {"transient_bytes", memory.transient},
          {"workspace_bytes", memory.workspace},
          {"loaded_kernels_bytes", memory.loaded_kernels},
          {"allocator_slack_bytes", memory.allocator_slack},
          {"saved_total_bytes", memory.saved_total},
          {"peak_without_context_bytes", memory.Peak()},
          {"upper_without_context_bytes", understood ? Json(memory.Upper()) : Json(nullptr)},
          {"least_bytes", memory.least},
          {"largest_scratch_bytes", memory.largest_scratch},
          {"horus_estimate_bytes", memory.horus}};
}

Json OperatorsJson(const std::vector<OperatorCost>& rows, bool single) {
  Json list = Json::array();
  for (const OperatorCost& row : rows) {
    Json entry;
    if (single) entry["name"] = row.name;
    entry["op_type"] = row.op_type;
    if (single) entry["output_shape"] = row.output_shape;
    if (!single) entry["count"] = row.count;
    entry["forward_flops"] = row.forward_flops;
    entry["backward_flops"] = row.backward_flops;
    entry["bytes"] = row.bytes;
    entry["time_us"] = row.time_us ? Json(*row.time_us) : Json(nullptr);
    if (single) entry["bound_by"] = row.limit ? Json(std::string(LimitName(*row.limit))) : Json(nullptr);
    list.push_back(std::move(entry));
  }
  return list;
}

Json FeaturesJson(std::span<const FeatureColumn> columns, const std::vector<float>& values) {
  Json list = Json::array();
  for (size_t i = 0; i < columns.size() && i < values.size(); ++i) {
    list.push_back({{"name", std::string(columns[i].name)},
                    {"unit", std::string(columns[i].unit)},
                    {"value", ShortDouble(values[i])}});
  }
  return list;
}

Json GpuJson(const InspectReport& report, const GpuReport& gpu) {
  constexpr double kUsPerSecond = 1e6;
  const Demand& demand = gpu.demand;
  const auto step = static_cast<double>(demand.step_time_us.estimate);
  const double samples = static_cast<double>(report.profile.shaped->batch) * kUsPerSecond;
  Json json = {{"gpu_type", gpu.type.name},
               {"display_name", gpu.type.display_name},
               {"gpu_util_pct", ShortDouble(demand.gpu_util_pct.estimate)},
               {"gpu_util_upper_pct", ShortDouble(demand.gpu_util_pct.upper)},
               {"mem_bw_util_pct", ShortDouble(demand.mem_bw_util_pct.estimate)},
               {"mem_bw_util_upper_pct", ShortDouble(demand.mem_bw_util_pct.upper)},
               {"memory_mib", demand.mem_mib.estimate},
               {"memory_upper_mib", HasMemoryBound(demand) ? Json(demand.mem_mib.upper) : Json(nullptr)},
               {"gpu_memory_mib", gpu.type.mem_mib},
               {"context_mib", gpu.type.context_mib},
               {"fits", demand.mem_mib.upper <= gpu.type.mem_mib},
               {"step_time_us", demand.step_time_us.estimate},
               {"step_time_upper_us", demand.step_time_us.upper},
               {"samples_per_s", step > 0 ? Json(samples / step) : Json(nullptr)},
               {"power_w", ShortDouble(demand.power_w.estimate)},
               {"power_upper_w", ShortDouble(demand.power_w.upper)},
               {"gradient_mib", demand.gradient_mib},
               {"compute_share", gpu.roofline.compute_share},
               {"bandwidth_share", gpu.roofline.bandwidth_share},
               {"launch_share", gpu.roofline.launch_share},
               {"operator_us", ShortDouble(demand.operator_us)},
               {"outside_training_data", (demand.flags & kDemandOutside) != 0},
               {"distance", ShortDouble(demand.distance)},
               {"operator_types", OperatorsJson(gpu.by_type, false)},
               {"operators", OperatorsJson(gpu.single, true)}};
  if (report.with_explanations) json["explanations"] = ExplainJson(gpu);
  if (report.with_features) json["features"] = FeaturesJson(DeviceFeatureColumns(), gpu.features);
  return json;
}

}  // namespace

std::string InspectJson(const InspectReport& report) {
  const JobProfile& profile = report.profile;
  const StepCost& cost = profile.cost;
  Json gpus = Json::array();
  for (const GpuReport& gpu : report.gpus) gpus.push_back(GpuJson(report, gpu));
  Json json = {{"schema", "horus-inspect"},
               {"version", kInspectJsonVersion},
               {"model", ModelJson(report)},
               {"run", RunJson(profile)},
               {"profile_id", Hex(profile.profile_id)},
               {"parameters", cost.parameters},
               {"buffers", cost.buffers},
               {"activations", cost.activations},
               {"forward_flops", cost.totals.forward_flops},
               {"forward_flops_other", cost.totals.forward_flops_other},
               {"horus_flops", cost.totals.horus_flops},
               {"step_flops", cost.StepFlops()},
               {"step_bytes", cost.StepBytes()},
               {"step_kernels", cost.StepKernels()},
               {"coverage", CoverageJson(cost.coverage)},
               {"memory", MemoryJson(profile.memory, IsUnderstood(cost.coverage))},
               {"calibrated", report.calibrated},
               {"gpus", gpus},
               {"operator_types", OperatorsJson(report.by_type, false)},
               {"operators", OperatorsJson(report.single, true)}};
  if (report.with_features) {
    json["feature_schema_version"] = kFeatureSchemaVersion;
    json["features"] = FeaturesJson(JobFeatureColumns(), profile.features);
  }
  return JsonText(json);
}

}  // namespace horus::cli
