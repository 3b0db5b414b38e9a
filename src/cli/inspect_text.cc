// SPDX-License-Identifier: Apache-2.0
// Prints an inspect report for people.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/explain_report.h"
#include "cli/inspect_report.h"
#include "cli/numbers.h"
#include "cli/table.h"

namespace horus::cli {
namespace {

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
  Table table({{""}, Right(""), {"", Align::kLeft, true}});
  table.AddRow({"parameters", Count(cost.parameters), absl::StrFormat("%.0f trained", cost.parameters)});
  table.AddRow({"forward", Flops(cost.totals.forward_flops),
                "convolutions and matrix products of the batch, a multiply-add counts 2"});
  table.AddRow({"", Flops(cost.totals.forward_flops_other), "everything else"});
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

// The parts, then per GPU type its context, the sum and the bound.
std::string MemoryText(const InspectReport& report) {
  const StepMemory& memory = report.profile.memory;
  Table table({{""}, Right(""), {"", Align::kLeft, true}});
  const auto add = [&table](const std::string& part, int64_t bytes, const char* meaning) {
    table.AddRow({part, Bytes(static_cast<double>(bytes)), meaning});
  };
  const auto add_peak = [&](const std::string& part, const StepMemory& of, const char* more) {
    const std::string bound = IsUnderstood(report.profile.cost.coverage)
                                  ? "at most " + Bytes(static_cast<double>(of.Upper()))
                                  : "of what is understood, which is too little for a bound";
    table.AddRow({part, Bytes(static_cast<double>(of.Peak())), bound + more});
  };
  add("weights", memory.weights, "parameters and buffers");
  add("gradients", memory.gradients, "of the parameters");
  add("optimiser state", memory.optimizer, "");
  if (memory.master_weights > 0) add("master weights", memory.master_weights, "copies in the other precision");
  if (memory.buckets > 0) add("gradient buckets", memory.buckets, "exchanged by the replicas");
  add("inputs", memory.inputs, "the batch");
  add("activations", memory.activations, "kept for backward");
  add("transient", memory.transient, "temporaries and gradients of activations");
  add("workspace", memory.workspace, "scratch of the libraries");
  add("loaded kernels", memory.loaded_kernels, "code of the libraries");
  add("allocator slack", memory.allocator_slack, "rounding and fragments");
  if (report.gpus.empty()) add_peak("peak", memory, "; name a --gpu to add its CUDA context");
  for (const GpuReport& gpu : report.gpus) {
    StepMemory whole = memory;
    whole.context = gpu.type.context_mib * kBytesPerMib;
    add("context, " + gpu.type.name, whole.context, "CUDA context");
    add_peak("peak, " + gpu.type.name, whole, "");
  }
  return "\nMemory of a step at its peak\n" + table.Render("  ");
}

// "77 % compute, 23 % bandwidth": shares of the kernels' time, the small ones left out.
std::string BoundBy(const RooflineTerms& terms) {
  constexpr double kShownShare = 0.005;
  std::string text;
  const auto add = [&text](double share, const char* name) {
    if (share >= kShownShare) absl::StrAppendFormat(&text, "%s%.0f %% %s", text.empty() ? "" : ", ", 100 * share, name);
  };
  add(terms.compute_share, "compute");
  add(terms.bandwidth_share, "bandwidth");
  add(terms.launch_share, "launch");
  return text;
}

std::string GpusText(const InspectReport& report) {
  if (report.gpus.empty()) return "";
  Table table({{"GPU"},
               Right("GPU UTIL"),
               Right("MEM BW"),
               Right("MEMORY"),
               Right("OF"),
               Right("STEP"),
               Right("SAMPLES/S"),
               {"BOUND BY", Align::kLeft, true}});
  constexpr double kUsPerSecond = 1e6;
  for (const GpuReport& gpu : report.gpus) {
    const Demand& demand = gpu.demand;
    const auto step = static_cast<double>(demand.step_time_us.estimate);
    const bool fits = demand.mem_mib.upper <= gpu.type.mem_mib;
    table.AddRow(
        {gpu.type.name, Percent(static_cast<double>(demand.gpu_util_pct.estimate)),
         Percent(static_cast<double>(demand.mem_bw_util_pct.estimate)), Mib(demand.mem_mib.estimate),
         Mib(gpu.type.mem_mib) + (fits ? "" : " !"), Duration(step),
         step > 0 ? Plain(std::round(static_cast<double>(report.profile.shaped->batch) * kUsPerSecond / step)) : "-",
         BoundBy(gpu.roofline)});
    table.AddRow({"  at most", Percent(static_cast<double>(demand.gpu_util_pct.upper)),
                  Percent(static_cast<double>(demand.mem_bw_util_pct.upper)), Mib(demand.mem_mib.upper), "",
                  Duration(static_cast<double>(demand.step_time_us.upper)), "",
                  fits                     ? ""
                  : HasMemoryBound(demand) ? "! the bound exceeds the GPU"
                                           : "! no bound: state or measure its memory"});
  }
  std::string text = "\nPredicted demand, running alone\n" + table.Render("  ");
  if (!report.calibrated) {
    text += "  Analytical prediction without trained models: the bounds are wide on purpose.\n";
  }
  for (const GpuReport& gpu : report.gpus) {
    if ((gpu.demand.flags & kDemandOutside) == 0) continue;
    const std::string why = OutsideText(gpu);
    for (const std::string& line :
         Wrap(gpu.type.name + ": outside what the prediction was made for" + (why.empty() ? "" : ": " + why) + ".",
              kPageWidth - 2)) {
      text += "  " + line + "\n";
    }
  }
  return text;
}

// `timed`: rows carry times on a GPU type, and `total` is one; else FLOPs.
std::string TypesText(const std::string& title, const std::vector<OperatorCost>& rows, double total, bool timed) {
  if (rows.empty()) return "";
  Table table({{"TYPE", Align::kLeft, true},
               Right("COUNT"),
               Right("FORWARD"),
               Right("BACKWARD"),
               Right("TRAFFIC"),
               Right(timed ? "TIME" : ""),
               Right("SHARE")});
  for (const OperatorCost& row : rows) {
    const double part = timed ? row.time_us.value_or(0) : row.forward_flops + row.backward_flops;
    table.AddRow({Printable(row.name, kShownNameBytes), std::to_string(row.count), Flops(row.forward_flops),
                  Flops(row.backward_flops), Bytes(row.bytes), timed ? Duration(part) : "", Share(part, total)});
  }
  return "\n" + title + ", by type\n" + table.Render("  ");
}

std::string SingleText(const std::string& title, const std::vector<OperatorCost>& rows, double total, bool timed) {
  if (rows.empty()) return "";
  Table table({{"OPERATOR", Align::kLeft, true},
               {"OUTPUT", Align::kLeft, true},
               Right("FLOPS"),
               Right("TRAFFIC"),
               Right(timed ? "TIME" : ""),
               Right("SHARE"),
               {timed ? "BOUND BY" : ""}});
  for (const OperatorCost& row : rows) {
    const double flops = row.forward_flops + row.backward_flops;
    const double part = timed ? row.time_us.value_or(0) : flops;
    table.AddRow({row.op_type + (row.name.empty() ? "" : " " + Printable(row.name, kShownNameBytes)), row.output_shape,
                  Flops(flops), Bytes(row.bytes), timed ? Duration(part) : "", Share(part, total),
                  row.limit ? std::string(LimitName(*row.limit)) : ""});
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
  for (const auto& [name, size] : run.dims.dims) absl::StrAppend(&text, ", ", Printable(name), "=", size);
  return text;
}

std::string InspectText(const InspectReport& report) {
  std::string text =
      absl::StrFormat("%s - %s\n", Printable(report.path), RunText(report.profile.run, report.profile.shaped->batch));
  text += SummaryText(report) + MemoryText(report) + GpusText(report);
  if (report.with_explanations) {
    for (const GpuReport& gpu : report.gpus) text += ExplainText(gpu);
  }
  text += CostliestText(report);
  if (report.with_features) text += FeaturesText(report);
  return text;
}

}  // namespace horus::cli
