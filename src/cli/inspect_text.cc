// SPDX-License-Identifier: Apache-2.0
// Prints an inspect report for people.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/units.h"
#include "cli/inspect_report.h"
#include "cli/numbers.h"
#include "cli/table.h"

namespace horus::cli {
namespace {

constexpr size_t kShownNameBytes = 48;

Column Right(std::string title) { return {std::move(title), Align::kRight, false}; }

std::string Share(double part, double whole) { return whole > 0 ? Percent(100 * part / whole) : "-"; }

std::string RunText(const JobProfile& profile) {
  const RunSpec& run = profile.run;
  std::string text = absl::StrFormat("%s, batch %d, %s", std::string(Name(run.mode)), profile.shaped->batch,
                                     std::string(Name(run.precision)));
  if (run.mode == RunMode::kTraining) absl::StrAppend(&text, ", ", std::string(Name(run.optimizer)));
  for (const auto& [name, size] : run.dims.dims) absl::StrAppend(&text, ", ", Printable(name), "=", size);
  return text;
}

std::string SummaryText(const InspectReport& report) {
  const StepCost& cost = report.profile.cost;
  const bool training = report.profile.run.mode == RunMode::kTraining;
  Table table({{""}, Right(""), {"", Align::kLeft, true}});
  table.AddRow({"parameters", Count(cost.parameters), absl::StrFormat("%.0f trained", cost.parameters)});
  table.AddRow(
      {"forward", Flops(cost.totals.forward_flops),
       absl::StrFormat("convolutions and matrix products of the batch; everything else %s; a multiply-add is 2",
                       Flops(cost.totals.forward_flops_other))});
  table.AddRow({training ? "training step" : "step", Flops(cost.StepFlops()),
                training ? "forward, backward and optimiser" : "forward only"});
  table.AddRow({"device memory traffic", Bytes(cost.StepBytes()), "read and written by one step"});
  table.AddRow({"kernels", Count(cost.StepKernels()), "launched by one step"});
  return table.Render("  ");
}

std::string CoverageText(const CostCoverage& coverage) {
  std::string text =
      absl::StrFormat("  coverage               %d of %d operators understood, %s of the forward FLOPs\n",
                      coverage.ops_known, coverage.ops, Percent(100 * coverage.flops_share));
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < coverage.unknown.size() && i < kShown; ++i) {
    const auto& [name, count] = coverage.unknown[i];
    absl::StrAppend(&text, i == 0 ? "                         not understood: " : ", ", Printable(name), " x", count);
  }
  if (coverage.unknown.size() > kShown)
    absl::StrAppend(&text, ", and ", coverage.unknown.size() - kShown, " more types");
  return coverage.unknown.empty() ? text : text + "\n";
}

std::string MemoryText(const InspectReport& report) {
  const StepMemory& memory = report.profile.memory;
  Table table({{""}, Right(""), {"", Align::kLeft, true}});
  const auto add = [&table](const char* part, int64_t bytes, const char* meaning) {
    table.AddRow({part, Bytes(static_cast<double>(bytes)), meaning});
  };
  add("weights", memory.weights, "parameters and buffers");
  add("gradients", memory.gradients, "of the parameters");
  add("optimiser state", memory.optimizer, "");
  if (memory.master_weights > 0) add("master weights", memory.master_weights, "copies in the other precision");
  add("inputs", memory.inputs, "the batch");
  add("activations", memory.activations, "kept for backward, at the peak");
  add("transient", memory.transient, "temporaries and gradients of activations, at the peak");
  add("workspace", memory.workspace, "scratch of the libraries, at the peak");
  add("allocator slack", memory.allocator_slack, "rounding and fragments");
  std::string text = "Memory of a step at its peak\n" + table.Render("  ");
  Table totals({{""}, Right(""), {"", Align::kLeft, true}});
  if (report.gpus.empty()) {
    totals.AddRow({"peak", Bytes(static_cast<double>(memory.Peak())),
                   "at most " + Bytes(static_cast<double>(memory.Upper())) + "; name a --gpu to add its CUDA context"});
  }
  for (const GpuReport& gpu : report.gpus) {
    StepMemory whole = memory;
    whole.context = gpu.type.context_mib * kBytesPerMib;
    totals.AddRow({"context + peak on " + gpu.type.name,
                   Mib(gpu.type.context_mib) + " + " + Bytes(static_cast<double>(memory.Peak())) + " = " +
                       Bytes(static_cast<double>(whole.Peak())),
                   "at most " + Bytes(static_cast<double>(whole.Upper()))});
  }
  const std::string lines = totals.Render("  ");
  return text + lines.substr(lines.find('\n') + 1);  // without the empty title line
}

std::string GpusText(const InspectReport& report) {
  if (report.gpus.empty()) return "";
  Table table({{"GPU"},
               Right("UTILISATION"),
               Right("BANDWIDTH"),
               Right("MEMORY"),
               Right("OF"),
               Right("STEP"),
               Right("SAMPLES/S"),
               {"BOUND BY"}});
  constexpr double kUsPerSecond = 1e6;
  for (const GpuReport& gpu : report.gpus) {
    const Demand& demand = gpu.demand;
    const auto step = static_cast<double>(demand.step_time_us.estimate);
    const bool fits = demand.mem_mib.upper <= gpu.type.mem_mib;
    const RooflineTerms& terms = gpu.roofline;
    table.AddRow(
        {gpu.type.name, Percent(static_cast<double>(demand.gpu_util_pct.estimate)),
         Percent(static_cast<double>(demand.mem_bw_util_pct.estimate)), Mib(demand.mem_mib.estimate),
         Mib(gpu.type.mem_mib) + (fits ? "" : " !"), Duration(step),
         step > 0 ? Plain(std::round(static_cast<double>(report.profile.shaped->batch) * kUsPerSecond / step)) : "-",
         absl::StrFormat("%.0f %% compute, %.0f bandwidth, %.0f launch", 100 * terms.compute_share,
                         100 * terms.bandwidth_share, 100 * terms.launch_share)});
    table.AddRow({"  at most", Percent(static_cast<double>(demand.gpu_util_pct.upper)),
                  Percent(static_cast<double>(demand.mem_bw_util_pct.upper)), Mib(demand.mem_mib.upper), "",
                  Duration(static_cast<double>(demand.step_time_us.upper)), "",
                  fits ? "" : "! the bound exceeds the GPU"});
  }
  std::string text = "\nPredicted demand, running alone\n" + table.Render("  ");
  if (!report.calibrated) {
    text += "  Analytical prediction without trained models: the bounds are wide on purpose.\n";
  }
  for (const GpuReport& gpu : report.gpus) {
    if ((gpu.demand.flags & kDemandOutside) == 0) continue;
    text += "  " + gpu.type.name + ": the job lies outside what the prediction was made for.\n";
  }
  return text;
}

std::string OperatorsText(const std::string& title, const std::vector<OperatorCost>& rows, double total, bool single,
                          bool timed) {
  if (rows.empty()) return "";
  Table table({{single ? "OPERATOR" : "TYPE"},
               {single ? "OUTPUT" : ""},
               Right("COUNT"),
               Right("FORWARD"),
               Right("BACKWARD"),
               Right("MEMORY TRAFFIC"),
               Right(timed ? "TIME" : ""),
               Right("SHARE"),
               {timed && single ? "BOUND BY" : ""}});
  for (const OperatorCost& row : rows) {
    const std::string name = Printable(row.name, kShownNameBytes);
    const double part = timed ? row.time_us.value_or(0) : row.forward_flops + row.backward_flops;
    table.AddRow({single ? (name.empty() ? row.op_type : row.op_type + " " + name) : name, row.output_shape,
                  single ? "" : std::to_string(row.count), Flops(row.forward_flops), Flops(row.backward_flops),
                  Bytes(row.bytes), timed ? Duration(part) : "", Share(part, total),
                  single && row.limit ? std::string(LimitName(*row.limit)) : ""});
  }
  return "\n" + title + "\n" + table.Render("  ");
}

std::string CostliestText(const InspectReport& report) {
  if (report.gpus.empty()) {
    const double total = report.profile.cost.StepFlops();
    return OperatorsText("Operators that cost most, by type", report.by_type, total, false, false) +
           OperatorsText("Operators that cost most, one by one", report.single, total, true, false);
  }
  const GpuReport& gpu = report.gpus.front();
  const double total = gpu.roofline.device_time_us;
  return OperatorsText("Operators that cost most on " + gpu.type.name + ", by type", gpu.by_type, total, false, true) +
         OperatorsText("Operators that cost most on " + gpu.type.name + ", one by one", gpu.single, total, true, true);
}

std::string FeaturesText(const InspectReport& report) {
  Table table({{"FEATURE"}, Right("VALUE"), {"UNIT"}, {"MEANING", Align::kLeft, true}});
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

}  // namespace

std::string InspectText(const InspectReport& report) {
  const Graph& graph = *report.graph;
  std::string text = absl::StrFormat("%s - %s\n", Printable(report.path), RunText(report.profile));
  const std::string summary = SummaryText(report);
  text += summary.substr(summary.find('\n') + 1) + CoverageText(report.profile.cost.coverage);
  absl::StrAppendFormat(&text, "  graph                  %d nodes, IR %d, opset %d%s%s\n\n", graph.main().nodes.size(),
                        graph.ir_version, graph.opset, graph.producer.empty() ? "" : ", by ",
                        Printable(graph.producer));
  const std::string memory = MemoryText(report);
  text += memory + GpusText(report) + CostliestText(report);
  if (report.with_features) text += FeaturesText(report);
  return text;
}

}  // namespace horus::cli
