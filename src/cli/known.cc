// SPDX-License-Identifier: Apache-2.0
// horus gpus: the device catalogue, as a table or with everything known of one type. horus models: the language models
// that are known by name.

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "device/gpu_fields.h"
#include "features/cost.h"
#include "graph/architecture.h"
#include "graph/from_config.h"
#include "graph/shaped.h"

namespace horus::cli {
namespace {

constexpr char kGpusFooter[] = R"(
Examples:
  horus gpus                     all types, one a line
  horus gpus a100-40gb           everything about one type, with sources
  horus gpus "Tesla V100-SXM2-32GB" --json
  horus gpus --gpus-file my-gpus.yaml

Rates are dense peaks at the boost clock; a multiply-add counts as two operations.
docs/files.md describes the file that adds types.)";

struct GpusFlags {
  std::string name;
  std::vector<std::string> gpus_files;
  bool json = false;
};

Json TypeJson(const GpuType& type) {
  Json json = {{"name", type.name}, {"display_name", type.display_name}, {"architecture", type.architecture}};
  for (const GpuField& field : GpuFields()) json[std::string(field.key)] = type.*field.member;
  Json profiles = Json::array();
  for (const MigProfile& profile : type.mig) {
    Json entry = {{"name", profile.name}};
    for (const MigField& field : MigFields()) entry[std::string(field.key)] = profile.*field.member;
    profiles.push_back(entry);
  }
  json["mig"] = profiles;
  json["aliases"] = type.aliases;
  json["spec_source"] = type.spec_source;
  json["chip_source"] = type.chip_source;
  json["context_source"] = type.context_source;
  json["mig_source"] = type.mig_source;
  return json;
}

std::string Rate(int64_t gflops) {
  constexpr double kGigaPerTera = 1000;
  return gflops == 0 ? "-" : absl::StrFormat("%.4g", static_cast<double>(gflops) / kGigaPerTera);
}

std::string AllText(const Catalogue& catalogue) {
  constexpr double kMbPerGb = 1000, kMibPerGib = 1024;
  Table table("NAME|ARCHITECTURE|>SM|>FP32|>TF32|>FP16|>BF16|>GiB|>GB/s|>TDP W|MIG|NVLINK");
  for (const GpuType& type : catalogue.types()) {
    table.AddRow({type.name, Printable(type.architecture, kMaxGpuTextBytes), std::to_string(type.sm_count),
                  Rate(type.fp32_gflops), Rate(type.tf32_gflops), Rate(type.fp16_gflops), Rate(type.bf16_gflops),
                  absl::StrFormat("%.1f", static_cast<double>(type.mem_mib) / kMibPerGib),
                  absl::StrFormat("%.0f", static_cast<double>(type.mem_bandwidth_mb_s) / kMbPerGb),
                  std::to_string(type.tdp_w), type.mig.empty() ? "-" : "yes", type.nvlink_mb_s == 0 ? "-" : "yes"});
  }
  return table.Render() +
         absl::StrFormat(
             "%d types; FP32 to BF16 in TFLOP/s, memory as nvidia-smi shows it. `horus gpus NAME` shows one whole.\n",
             catalogue.size());
}

std::string OneText(const GpuType& type) {
  std::string text = absl::StrFormat("%s - %s (%s)\n\n", type.name, Printable(type.display_name, kMaxGpuTextBytes),
                                     Printable(type.architecture, kMaxGpuTextBytes));
  Table fields("FIELD|>VALUE|UNIT");
  for (const GpuField& field : GpuFields())
    fields.AddRow({std::string(field.key), std::to_string(type.*field.member), std::string(field.unit)});
  text += fields.Render("  ");
  if (!type.mig.empty()) {
    Table profiles("MIG PROFILE|>COMPUTE SLICES|>MEMORY SLICES|>MiB|>AT MOST");
    for (const MigProfile& profile : type.mig) {
      profiles.AddRow({Printable(profile.name), std::to_string(profile.compute_slices),
                       std::to_string(profile.memory_slices), std::to_string(profile.mem_mib),
                       std::to_string(profile.max_instances)});
    }
    text += "\n" + profiles.Render("  ");
  }
  Table sources("SOURCE OF|~");
  sources.AddRow({"rates, memory, links, power", Printable(type.spec_source, kMaxGpuTextBytes)});
  sources.AddRow({"SMs, clock, L2", Printable(type.chip_source, kMaxGpuTextBytes)});
  sources.AddRow({"context", Printable(type.context_source, kMaxGpuTextBytes)});
  if (!type.mig_source.empty()) sources.AddRow({"MIG", Printable(type.mig_source, kMaxGpuTextBytes)});
  text += "\n" + sources.Render("  ");
  const std::string aliases = absl::StrJoin(type.aliases, ", ");
  if (!aliases.empty()) text += "\n  Also called: " + Printable(aliases, aliases.size()) + "\n";
  return text;
}

absl::StatusOr<std::string> GpusToText(const GpusFlags& options) {
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.gpus_files));
  if (!options.name.empty()) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId id, catalogue->Find(options.name));
    const GpuType& type = catalogue->at(id);
    return options.json ? JsonText(TypeJson(type)) : OneText(type);
  }
  if (!options.json) return AllText(*catalogue);
  return JsonText({{"schema", "horus-gpus"}, {"version", 1}, {"gpu_types", JsonList(catalogue->types(), TypeJson)}});
}

// ---- horus models.

constexpr char kModelsFooter[] = R"(
Examples:
  horus models
  horus inspect qwen3-8b --dim seq=2048 --gpu a100-80gb      prefill of 2,048 tokens

`horus inspect` and jobs.yaml take a name, or the config.json of any model of these types.)";

absl::StatusOr<std::string> Models(bool as_json) {
  Table table("NAME|TYPE|>PARAMETERS|>LAYERS|>CONTEXT");
  Json list = Json::array();
  for (size_t i = 0; !KnownModelName(i).empty(); ++i) {
    const std::string name(KnownModelName(i));
    HORUS_ASSIGN_OR_RETURN(const Architecture a, ReadArchitecture(name));
    HORUS_ASSIGN_OR_RETURN(auto graph, GraphFromConfig(name));
    HORUS_ASSIGN_OR_RETURN(const ShapedGraph shaped, BindShapes(std::move(graph), {.dims = {{"seq", 1}}}));
    const auto parameters = static_cast<int64_t>(CostOfStep(shaped, {.mode = RunMode::kInference}).parameters);
    table.AddRow(
        {name, a.type, Count(static_cast<double>(parameters)), std::to_string(a.layers), std::to_string(a.context)});
    list.push_back({{"name", name},
                    {"model_type", a.type},
                    {"parameters", parameters},
                    {"layers", a.layers},
                    {"context", a.context}});
  }
  return as_json ? JsonText({{"schema", "horus-models"}, {"version", 1}, {"models", list}}) : table.Render();
}

}  // namespace

Command AddGpus(CLI::App& parser) {
  auto options = std::make_shared<GpusFlags>();
  CLI::App* app = parser.add_subcommand("gpus", "The GPU types that are known, with specifications and sources");
  app->add_option("NAME", options->name, "Show everything about this type (any usual spelling)");
  AddGpusFileOption(*app, options->gpus_files);
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kGpusFooter);
  return {app, [options] { return Print(GpusToText(*options)); }};
}

Command AddModels(CLI::App& parser) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* app = parser.add_subcommand("models", "The language models that are known by name");
  app->add_flag("--json", *as_json, "Print JSON");
  app->footer(kModelsFooter);
  return {app, [as_json] { return Print(Models(*as_json)); }};
}

}  // namespace horus::cli
