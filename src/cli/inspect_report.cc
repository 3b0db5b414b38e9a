// SPDX-License-Identifier: Apache-2.0
// Collects what `horus inspect` prints.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/inspect.h"
#include "cli/print.h"
#include "graph/from_config.h"
#include "interference/laws.h"
#include "io/placement.h"

namespace horus::cli {
namespace {

std::string TypeOf(const Node& node) {
  return node.domain.empty() ? node.op_type : absl::StrCat(node.domain, "::", node.op_type);
}

std::string ShapeOf(const ShapedGraph& shaped, const Op& op) {
  if (op.outputs.empty() || !op.outputs.front().valid()) return "";
  const Tensor& tensor = shaped.tensors[op.outputs.front().value()];
  std::string shape;
  for (const int64_t dim : tensor.dims)
    absl::StrAppend(&shape, shape.empty() ? "" : "x", dim == kUnknownDim ? "?" : absl::StrCat(dim));
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
  row.forward_flops = amounts.forward.AllFlops();
  row.backward_flops = amounts.backward.AllFlops();
  row.bytes = amounts.forward.bytes + amounts.backward.bytes;
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

std::string LimitName(Limit limit) {
  constexpr std::array<const char*, 3> kNames = {"compute", "bandwidth", "launch"};
  return kNames[static_cast<size_t>(limit)];
}

// ---- How each predicted quantity was arrived at: roofline, fitted constants, trees, and what moved them.
// Cost: linear in the features.

constexpr size_t kShownShifts = 3;

std::string_view FeatureName(size_t index) {
  const size_t job = JobFeatureColumns().size();
  return index < job ? JobFeatureColumns()[index].name : DeviceFeatureColumns()[index - job].name;
}

std::string Value(Quantity quantity, double value) {
  if (quantity == Quantity::kStepTime) return Duration(value);
  if (quantity == Quantity::kMemory) return Mib(std::llround(std::ceil(value)));
  return quantity == Quantity::kPower ? absl::StrFormat("%.0f W", value) : Percent(value);
}

std::string Times(double shift) { return absl::StrFormat("x%.2f", std::exp(shift)); }

double SumOf(const std::vector<FeatureShift>& shifts) {
  double sum = 0;
  for (const FeatureShift& shift : shifts) sum += shift.shift;
  return sum;
}

// What a range column counts, for people.
std::string_view WorkOf(std::string_view column) {
  if (column == "step_flops") return "arithmetic in a step";
  if (column == "step_bytes") return "memory traffic in a step";
  if (column == "step_kernels") return "kernels in a step";
  return "arithmetic for its memory traffic";
}

// What is predicted, for people.
std::string_view WhatOf(Quantity quantity) {
  if (quantity == Quantity::kMemory) return "memory";
  return quantity == Quantity::kStepTime ? "step time" : "utilisation";
}

// "step_flops is 2.3 times beyond the training data"; empty for a job inside it.
std::string OutsideText(const GpuReport& gpu) {
  std::vector<std::string> reasons;
  for (const Explanation& one : gpu.explanations) {
    if (one.quantity == Quantity::kGpuUtilMax || one.quantity == Quantity::kPower) continue;  // not part of the flag
    const Refined& parts = one.parts;
    const std::string what(WhatOf(one.quantity));
    if (!parts.hardest.empty()) {
      std::string kind(parts.hardest);
      std::replace(kind.begin(), kind.end(), '_', ' ');
      reasons.push_back("much of its time goes to kernels of a kind that is predicted less well: " + kind);
    }
    if (parts.distance <= kOutsideDistance) continue;
    const double times = std::exp(parts.distance);
    if (parts.farthest == "training" || parts.farthest == "precision") {
      reasons.push_back(
          absl::StrFormat("%s was not measured in this %s", what, parts.farthest == "training" ? "mode" : "precision"));
    } else {
      reasons.push_back(absl::StrFormat("%s was measured of nets with at %s %.3g times this %s", what,
                                        parts.below ? "least" : "most", parts.below ? times : 1 / times,
                                        std::string(WorkOf(parts.farthest))));
    }
  }
  std::string text;
  for (const std::string& reason : reasons) {
    if (text.find(reason) == std::string::npos) absl::StrAppend(&text, text.empty() ? "" : "; ", reason);
  }
  return text;
}

std::string ExplainText(const GpuReport& gpu) {
  if (gpu.explanations.empty()) return "";
  Table table("QUANTITY|>ROOFLINE|>FITTED|>TREES|>PREDICTED|>AT MOST|>DISTANCE|~MOVED MOST BY");
  for (const Explanation& one : gpu.explanations) {
    std::string moved = one.lifted ? "raised to a floor" : "";
    for (size_t i = 0; i < one.shifts.size() && i < kShownShifts; ++i) {
      absl::StrAppendFormat(&moved, "%s%s %s", moved.empty() ? "" : ", ",
                            std::string(FeatureName(one.shifts[i].feature)), Times(one.shifts[i].shift));
    }
    const Refined& parts = one.parts;
    table.AddRow({std::string(InfoOf(one.quantity).name),
                  parts.roofline > 0 ? Value(one.quantity, parts.roofline) : "-", Value(one.quantity, parts.fitted),
                  one.shifts.empty() ? "-" : Times(SumOf(one.shifts)), Value(one.quantity, parts.value),
                  Value(one.quantity, parts.upper), absl::StrFormat("%.2f", parts.distance), moved});
  }
  return "\nWhy, on " + gpu.type.name + "\n" + table.Render("  ");
}

Json ExplainJson(const GpuReport& gpu) {
  Json list = Json::array();
  for (const Explanation& one : gpu.explanations) {
    Json shifts = Json::array();
    for (const FeatureShift& shift : one.shifts)
      shifts.push_back({{"feature", std::string(FeatureName(shift.feature))}, {"factor", std::exp(shift.shift)}});
    const Refined& parts = one.parts;
    list.push_back({{"quantity", std::string(InfoOf(one.quantity).name)},
                    {"roofline", parts.roofline},
                    {"fitted", parts.fitted},
                    {"predicted", parts.value},
                    {"upper", parts.upper},
                    {"calibrated", parts.calibrated},
                    {"distance", parts.distance},
                    {"farthest", std::string(parts.farthest)},
                    {"shifts", shifts}});
  }
  return list;
}

// ---- Prints an inspect report for people.

constexpr size_t kShownNameBytes = 48;

std::string Share(double part, double whole) { return whole > 0 ? Percent(100 * part / whole) : "-"; }

std::string UnknownText(const CostCoverage& coverage) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < coverage.unknown.size() && i < kShown; ++i) {
    const auto& [name, count] = coverage.unknown[i];
    absl::StrAppend(&text, i == 0 ? "; not understood: " : ", ", Printable(name), " x", count);
  }
  if (coverage.unknown.size() > kShown) absl::StrAppend(&text, ", and ", coverage.unknown.size() - kShown, " more");
  return text;
}

std::string SummaryText(const InspectReport& report) {
  const StepCost& cost = report.profile.cost;
  const Graph& graph = *report.graph;
  const bool training = report.profile.run.mode == RunMode::kTraining;
  Table table("|>|~");
  table.AddRow({"parameters", Count(cost.parameters), absl::StrFormat("%.0f trained", cost.parameters)});
  table.AddRow({"forward", Flops(cost.totals.forward.flops),
                "convolutions and matrix products of the batch, a multiply-add counts 2"});
  table.AddRow({"", Flops(cost.totals.forward.flops_other), "everything else"});
  table.AddRow({training ? "training step" : "step", Flops(cost.StepFlops()),
                training ? "forward, backward and optimiser" : "forward only"});
  table.AddRow({"memory traffic", Bytes(cost.StepBytes()), "device memory read and written by one step"});
  table.AddRow({"kernels", Count(cost.StepKernels()), "launched by one step"});
  table.AddRow({"coverage", Percent(100 * cost.coverage.flops_share),
                absl::StrFormat("of the forward FLOPs; %d of %d operators understood%s", cost.coverage.ops_known,
                                cost.coverage.ops, UnknownText(cost.coverage))});
  table.AddRow({"graph", Count(static_cast<double>(graph.main().nodes.size())),
                absl::StrFormat("nodes, IR %d, opset %d%s%s", graph.ir_version, graph.opset,
                                graph.producer.empty() ? "" : ", by ", Printable(graph.producer))});
  return table.Render("  ");
}

struct MemoryPart {
  const char *name, *key, *meaning;
  int64_t StepMemory::* bytes;
  bool always = true;  // also where it is 0
};
constexpr MemoryPart kMemoryParts[] = {
    {"weights", "weights_bytes", "parameters and buffers", &StepMemory::weights},
    {"gradients", "gradients_bytes", "of the parameters", &StepMemory::gradients},
    {"optimiser state", "optimizer_bytes", "", &StepMemory::optimizer},
    {"master weights", "master_weights_bytes", "copies in the other precision", &StepMemory::master_weights, false},
    {"gradient buckets", "buckets_bytes", "exchanged by the replicas", &StepMemory::buckets, false},
    {"inputs", "inputs_bytes", "the batch, and caches", &StepMemory::inputs},
    {"activations", "activations_bytes", "kept for backward", &StepMemory::activations},
    {"transient", "transient_bytes", "temporaries and gradients of activations", &StepMemory::transient},
    {"workspace", "workspace_bytes", "scratch of the libraries", &StepMemory::workspace},
    {"loaded kernels", "loaded_kernels_bytes", "code of the libraries", &StepMemory::loaded_kernels},
    {"allocator slack", "allocator_slack_bytes", "rounding and fragments", &StepMemory::allocator_slack},
};

// The parts, then per GPU type its context, the sum and the bound.
std::string MemoryText(const InspectReport& report) {
  const StepMemory& memory = report.profile.memory;
  Table table("|>|~");
  const auto add = [&table](const std::string& part, int64_t bytes, const char* meaning) {
    table.AddRow({part, Bytes(static_cast<double>(bytes)), meaning});
  };
  for (const MemoryPart& part : kMemoryParts) {
    if (part.always || memory.*part.bytes > 0) add(part.name, memory.*part.bytes, part.meaning);
  }
  if (report.gpus.empty()) {
    const std::string bound = IsUnderstood(report.profile.cost.coverage)
                                  ? "at most " + Bytes(static_cast<double>(memory.Upper()))
                                  : "of what is understood, which is too little for a bound";
    table.AddRow({"peak", Bytes(static_cast<double>(memory.Peak())), bound + "; name a --gpu to add its CUDA context"});
  }
  for (const GpuReport& gpu : report.gpus) {
    const int64_t context = gpu.type.context_mib * kBytesPerMib;
    const int64_t predicted = gpu.demand.mem_mib.estimate * kBytesPerMib;
    add("context, " + gpu.type.name, context, "CUDA context");
    add("correction, " + gpu.type.name, predicted - memory.Peak() - context, "by what measured runs took");
    table.AddRow({"all, " + gpu.type.name, Bytes(static_cast<double>(predicted)),
                  HasMemoryBound(gpu.demand) ? "at most " + Mib(gpu.demand.mem_mib.upper)
                                             : "of what is understood, which is too little for a bound"});
  }
  return "\nMemory of a step at its peak\n" + table.Render("  ");
}

// "77 % compute": the largest share of the kernels' time.
std::string BoundBy(const RooflineTerms& terms) {
  std::pair<double, const char*> most = {0, ""};
  for (const auto& one : {std::pair(terms.compute_share, "compute"), std::pair(terms.bandwidth_share, "bandwidth"),
                          std::pair(terms.launch_share, "launch")}) {
    if (one.first > most.first) most = one;
  }
  return most.first > 0 ? absl::StrFormat("%.0f %% %s", 100 * most.first, most.second) : "";
}

// " +25 %"
std::string Width(double estimate, double upper) {
  return estimate > 0 ? absl::StrFormat(" +%.0f %%", 100 * (upper / estimate - 1)) : "";
}

// What the bound of memory has for a site that nobody measured is in it.
Refined SiteOf(const GpuReport& gpu) {
  for (const Explanation& one : gpu.explanations) {
    if (one.quantity == Quantity::kMemory) return one.parts;
  }
  return {};
}

std::string GpusText(const InspectReport& report) {
  constexpr double kFewTypes = 0.895;  // a promise below nine of ten
  if (report.gpus.empty()) return "";
  Table table("GPU|>GPU UTIL|>MEM BW|>MEMORY|>OF|>STEP|>SAMPLES/S|~BOUND BY");
  constexpr double kUsPerSecond = 1e6;
  for (const GpuReport& gpu : report.gpus) {
    const Demand& demand = gpu.demand;
    const auto step = static_cast<double>(demand.step_time_us.estimate);
    const bool fits = demand.mem_mib.upper <= gpu.type.mem_mib;
    const auto memory = static_cast<double>(demand.mem_mib.estimate);
    table.AddRow(
        {gpu.type.name, Percent(static_cast<double>(demand.gpu_util_pct.estimate)),
         Percent(static_cast<double>(demand.mem_bw_util_pct.estimate)),
         Mib(demand.mem_mib.estimate) +
             (HasMemoryBound(demand) ? Width(memory, static_cast<double>(demand.mem_mib.upper)) : " or more"),
         Mib(gpu.type.mem_mib) + (fits ? "" : " !"),
         Duration(step) + Width(step, static_cast<double>(demand.step_time_us.upper)),
         step > 0 ? Plain(std::round(static_cast<double>(report.profile.shaped->batch) * kUsPerSecond / step)) : "-",
         fits                     ? BoundBy(gpu.roofline)
         : HasMemoryBound(demand) ? "! the bound exceeds the GPU"
                                  : "! no bound: state or measure its memory"});
  }
  std::string text = "\nPredicted demand, running alone\n" + table.Render("  ");
  if (report.calibrated) text += "  + is how far the bound lies above: nine unseen nets of ten stay below it.\n";
  if (!report.calibrated) text += "  Analytical prediction without trained models: the bounds are wide on purpose.\n";
  for (const GpuReport& gpu : report.gpus) {
    for (const Explanation& one : gpu.explanations) {
      const double promised = one.parts.promised;
      if (one.quantity != Quantity::kStepTime || !(promised > 0 && promised < kFewTypes)) continue;
      absl::StrAppendFormat(
          &text, "  %s: no run on its chip was measured: step times stay below on %.0f %% of such GPU types.\n",
          gpu.type.name, 100 * promised);
    }
  }
  if (const Refined site = SiteOf(report.gpus.front()); site.site_mib > 0) {
    absl::StrAppendFormat(&text,
                          "  Memory: %s of the bound is for a site that nobody measured; %.0f %% of sites stay below.\n"
                          "  `horus calibrate` with four of your runs removes it.\n",
                          Mib(std::llround(site.site_mib)), 100 * site.promised);
  }
  for (const GpuReport& gpu : report.gpus) {
    if ((gpu.demand.flags & kDemandOutside) == 0) continue;
    const std::string why = OutsideText(gpu);
    text += Paragraph(
        gpu.type.name + ": outside what the prediction was made for" + (why.empty() ? "" : ": " + why) + ".", "  ");
  }
  return text;
}

// `timed`: rows carry times on a GPU type, and `total` is one; else FLOPs.
std::string TypesText(const std::string& title, const std::vector<OperatorCost>& rows, double total, bool timed) {
  if (rows.empty()) return "";
  Table table(timed ? "~TYPE|>COUNT|>FORWARD|>BACKWARD|>TRAFFIC|>TIME|>SHARE"
                    : "~TYPE|>COUNT|>FORWARD|>BACKWARD|>TRAFFIC|>|>SHARE");
  for (const OperatorCost& row : rows) {
    const double part = timed ? row.time_us.value_or(0) : row.forward_flops + row.backward_flops;
    table.AddRow({Printable(row.name, kShownNameBytes), std::to_string(row.count), Flops(row.forward_flops),
                  Flops(row.backward_flops), Bytes(row.bytes), timed ? Duration(part) : "", Share(part, total)});
  }
  return "\n" + title + ", by type\n" + table.Render("  ");
}

std::string SingleText(const std::string& title, const std::vector<OperatorCost>& rows, double total, bool timed) {
  if (rows.empty()) return "";
  Table table(timed ? "~OPERATOR|~OUTPUT|>FLOPS|>TRAFFIC|>TIME|>SHARE|BOUND BY"
                    : "~OPERATOR|~OUTPUT|>FLOPS|>TRAFFIC|>|>SHARE|");
  for (const OperatorCost& row : rows) {
    const double flops = row.forward_flops + row.backward_flops;
    const double part = timed ? row.time_us.value_or(0) : flops;
    table.AddRow({row.op_type + (row.name.empty() ? "" : " " + Printable(row.name, kShownNameBytes)), row.output_shape,
                  Flops(flops), Bytes(row.bytes), timed ? Duration(part) : "", Share(part, total),
                  row.limit ? LimitName(*row.limit) : ""});
  }
  return "\n" + title + ", one by one\n" + table.Render("  ");
}

std::string CostliestText(const InspectReport& report) {
  if (report.gpus.empty()) {
    const std::string title = "Operators that cost most";
    const double total = report.profile.cost.StepFlops();
    return TypesText(title, report.by_type, total, false) + SingleText(title, report.single, total, false);
  }
  const GpuReport& gpu = report.gpus.front();
  const std::string title = "Operators that cost most on " + gpu.type.name;
  const double total = gpu.roofline.device_time_us;
  return TypesText(title, gpu.by_type, total, true) + SingleText(title, gpu.single, total, true);
}

std::string FeaturesText(const InspectReport& report) {
  Table table("FEATURE|>VALUE|UNIT|~MEANING");
  const auto add = [&table](std::span<const FeatureColumn> columns, const std::vector<float>& values) {
    for (size_t i = 0; i < columns.size() && i < values.size(); ++i) {
      table.AddRow({std::string(columns[i].name), Plain(static_cast<double>(values[i])), std::string(columns[i].unit),
                    std::string(columns[i].definition)});
    }
  };
  add(JobFeatureColumns(), report.profile.features);
  if (!report.gpus.empty()) add(DeviceFeatureColumns(), report.gpus.front().features);
  const std::string of = report.gpus.empty() ? "" : " on " + report.gpus.front().type.name;
  return absl::StrFormat("\nFeature row%s (schema %d)\n", of, kFeatureSchemaVersion) + table.Render("  ");
}

// ---- Writes an inspect report as JSON; docs/reference/json.md lists the keys.

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

Json CoverageJson(const CostCoverage& coverage) {
  Json unknown = Json::array();
  for (const auto& [name, count] : coverage.unknown) unknown.push_back({{"op_type", name}, {"count", count}});
  return {{"ops", coverage.ops},
          {"ops_known", coverage.ops_known},
          {"flops_share", coverage.flops_share},
          {"unknown", unknown}};
}

Json MemoryJson(const StepMemory& memory, bool understood) {
  Json json = Json::object();
  for (const MemoryPart& part : kMemoryParts) json[part.key] = memory.*part.bytes;
  json.update({{"saved_total_bytes", memory.saved_total},
               {"peak_without_context_bytes", memory.Peak()},
               {"upper_without_context_bytes", understood ? Json(memory.Upper()) : Json(nullptr)},
               {"least_bytes", memory.least},
               {"largest_scratch_bytes", memory.largest_scratch},
               {"horus_estimate_bytes", memory.horus}});
  return json;
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
    if (single) entry["bound_by"] = row.limit ? Json(LimitName(*row.limit)) : Json(nullptr);
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
               {"memory_unseen_site_mib", std::llround(SiteOf(gpu).site_mib)},
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
               {"work_share", ShortDouble(static_cast<float>(WorkShare(demand)))},
               {"outside_training_data", (demand.flags & kDemandOutside) != 0},
               {"distance", ShortDouble(demand.distance)},
               {"operator_types", OperatorsJson(gpu.by_type, false)},
               {"operators", OperatorsJson(gpu.single, true)}};
  if (report.with_explanations) json["explanations"] = ExplainJson(gpu);
  if (report.with_features) json["features"] = FeaturesJson(DeviceFeatureColumns(), gpu.features);
  return json;
}

// ---- What was read between the lines of the graph, and may be meant otherwise.

// Names of the graph's inputs that were taken for weights, or that are fed at each step.
std::vector<std::string_view> InputsOf(const ShapedGraph& shaped, bool fed) {
  std::vector<std::string_view> names;
  for (const ValueId id : shaped.graph->main().inputs) {
    const bool is_fed = std::any_of(shaped.inputs.begin(), shaped.inputs.end(),
                                    [id](const ShapedInput& input) { return input.value == id; });
    if (is_fed == fed) names.emplace_back(shaped.graph->main().values[id.value()].name);
  }
  return names;
}

// A table that tokens are looked up in, and a product's weight of the same sizes that the exporter made itself: its
// name is no parameter's.
std::string TiedNote(const ShapedGraph& shaped, const StepCost& cost) {
  const Tensor* table = nullptr;
  for (const Op& op : shaped.ops) {
    const auto weight = [&](size_t i) -> const Tensor* {
      if (i >= op.inputs.size() || !op.inputs[i].valid()) return nullptr;
      const Tensor& tensor = shaped.tensors[cost.storage[op.inputs[i].value()].value()];
      return tensor.role == TensorRole::kParameter && tensor.dims.size() == 2 ? &tensor : nullptr;
    };
    const Tensor* read = weight(op.node->op_type == "Gather" ? 0 : 1);
    if (read == nullptr) continue;
    if (op.node->op_type == "Gather" && (table == nullptr || read->elements() > table->elements())) table = read;
    const bool made = read->name.starts_with("onnx::") || read->name.starts_with("val_");
    if (!made || op.node->op_type != "MatMul" || table == nullptr || read == table ||
        read->elements() != table->elements())
      continue;
    if (std::minmax(read->dims[0], read->dims[1]) != std::minmax(table->dims[0], table->dims[1])) continue;
    return absl::StrFormat(
        "%s and %s are of the same sizes: if they are one tied weight, the exporter stored it twice, and %s of "
        "weights, as "
        "much of gradients and its optimiser state are counted too much; export without constant folding",
        Quoted(table->name), Quoted(read->name), Bytes(static_cast<double>(read->bytes())));
  }
  return "";
}

std::vector<std::string> NotesOf(const InspectReport& report) {
  const ShapedGraph& shaped = *report.profile.shaped;
  const StepCost& cost = report.profile.cost;
  std::vector<std::string> notes;
  if (const auto weights = InputsOf(shaped, false); !weights.empty()) {
    notes.push_back(absl::StrFormat("of the graph's inputs, %s are taken for weights (%d in all); fed at each step: %s",
                                    QuotedSome(weights), weights.size(), QuotedSome(InputsOf(shaped, true))));
  }
  if (const std::string_view vision = SaidOf(*shaped.graph, "vision"); !vision.empty()) {
    notes.push_back(
        absl::StrFormat("a vision tower of %s parameters lies beside the text model; images and their "
                        "tokens are not counted",
                        vision));
  }
  if (std::string tied = TiedNote(shaped, cost); !tied.empty()) notes.push_back(std::move(tied));
  const auto is_dropout = [](const Op& op) { return op.node->op_type == "Dropout"; };
  if (report.profile.run.mode == RunMode::kTraining && !IsConfigPath(report.path) &&
      cost.by_class[static_cast<size_t>(OpClass::kAttention)].ops > 0 &&
      std::none_of(shaped.ops.begin(), shaped.ops.end(), is_dropout)) {
    notes.emplace_back(
        "attention without Dropout: if training has it, it keeps masks and dropped copies that are not counted here; "
        "export the model in training mode (training=torch.onnx.TrainingMode.TRAINING)");
  }
  return notes;
}

std::string NotesText(const InspectReport& report) {
  std::string text;
  for (const std::string& note : NotesOf(report)) text += Paragraph("Note: " + note + ".", "  ");
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

InspectReport MakeInspectReport(std::string path, std::shared_ptr<const Graph> graph, JobProfile profile,
                                const Predictor& predictor, const std::vector<GpuType>& types, size_t top) {
  InspectReport report{.path = std::move(path), .graph = std::move(graph), .calibrated = predictor.calibrated()};
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
    DeviceFeatures(gpu.roofline, memory, type, gpu.features);
    std::vector<OpTime> times = RooflineOps(profile.cost, profile.run, type);
    if (IsEngine(profile.run.framework)) {
      const std::vector<double> us = OperatorTimesOf(*profile.shaped, profile.cost, profile.run, type);
      for (size_t i = 0; i < us.size(); ++i) times[i].forward_us = us[i];
      gpu.roofline.device_time_us = std::accumulate(us.begin(), us.end(), 0.0);
    }
    RankOperators(profile, times, top, gpu.by_type, gpu.single);
    report.gpus.push_back(std::move(gpu));
  }
  report.profile = std::move(profile);
  return report;
}

std::string RunText(const RunSpec& run, int64_t batch) {
  std::string text(Name(run.mode));
  if (batch > 0) absl::StrAppend(&text, ", batch ", batch);
  absl::StrAppend(&text, ", ", std::string(Name(run.precision)));
  if (run.mode == RunMode::kTraining) {
    absl::StrAppend(&text, ", ", std::string(Name(run.optimizer)));
    if (run.checkpoint_segments > 1) absl::StrAppend(&text, ", ", run.checkpoint_segments, " checkpoint segments");
    if (!run.frozen.empty()) absl::StrAppend(&text, ", ", run.frozen.size(), " frozen prefixes");
    if (run.data_parallel > 1) absl::StrAppend(&text, ", one of ", run.data_parallel, " replicas");
  }
  if (run.framework != Framework::kPyTorch) absl::StrAppend(&text, ", ", std::string(Name(run.framework)));
  if (run.layout != Layout::kNchw) absl::StrAppend(&text, ", ", std::string(Name(run.layout)));
  for (const auto& [name, size] : run.dims.dims) absl::StrAppend(&text, ", ", Printable(name), "=", size);
  return text;
}

Json RunJson(const RunSpec& run, int64_t batch) {
  Json dims = Json::object();
  for (const auto& [name, size] : run.dims.dims) dims[name] = size;
  return {{"mode", std::string(Name(run.mode))},
          {"precision", std::string(Name(run.precision))},
          {"optimizer", std::string(Name(run.optimizer))},
          {"framework", std::string(Name(run.framework))},
          {"layout", std::string(Name(run.layout))},
          {"batch", batch > 0 ? Json(batch) : Json(nullptr)},
          {"dims", dims},
          {"checkpoint_segments", run.checkpoint_segments},
          {"frozen", run.frozen},
          {"replicas", run.data_parallel}};
}

std::string InspectText(const InspectReport& report) {
  std::string text =
      absl::StrFormat("%s - %s\n", Printable(report.path), RunText(report.profile.run, report.profile.shaped->batch));
  text += SummaryText(report) + NotesText(report) + MemoryText(report) + GpusText(report);
  if (report.with_explanations) {
    for (const GpuReport& gpu : report.gpus) text += ExplainText(gpu);
  }
  text += CostliestText(report);
  if (report.with_features) text += FeaturesText(report);
  return text;
}

std::string InspectJson(const InspectReport& report) {
  const JobProfile& profile = report.profile;
  const StepCost& cost = profile.cost;
  Json json = {{"schema", "horus-inspect"},
               {"version", kInspectJsonVersion},
               {"model", ModelJson(report)},
               {"run", RunJson(profile.run, profile.shaped->batch)},
               {"profile_id", Hex(profile.profile_id)},
               {"parameters", cost.parameters},
               {"buffers", cost.buffers},
               {"activations", cost.activations},
               {"forward_flops", cost.totals.forward.flops},
               {"forward_flops_other", cost.totals.forward.flops_other},
               {"horus_flops", cost.totals.horus_flops},
               {"step_flops", cost.StepFlops()},
               {"step_bytes", cost.StepBytes()},
               {"step_kernels", cost.StepKernels()},
               {"coverage", CoverageJson(cost.coverage)},
               {"notes", NotesOf(report)},
               {"memory", MemoryJson(profile.memory, IsUnderstood(cost.coverage))},
               {"calibrated", report.calibrated},
               {"gpus", JsonList(report.gpus, [&](const GpuReport& gpu) { return GpuJson(report, gpu); })},
               {"operator_types", OperatorsJson(report.by_type, false)},
               {"operators", OperatorsJson(report.single, true)}};
  if (report.with_features) {
    json["feature_schema_version"] = kFeatureSchemaVersion;
    json["features"] = FeaturesJson(JobFeatureColumns(), profile.features);
  }
  return JsonText(json);
}

}  // namespace horus::cli
