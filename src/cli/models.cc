// SPDX-License-Identifier: Apache-2.0
// horus models: the language models that are known by name.
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "cli/commands.h"
#include "cli/print.h"
#include "features/cost.h"
#include "graph/architecture.h"
#include "graph/from_config.h"
#include "graph/shaped.h"
#include "io/json_text.h"

namespace horus::cli {
namespace {

constexpr char kModelsFooter[] = R"(
Examples:
  horus models
  horus inspect qwen3-8b --dim seq=2048 --gpu a100-80gb      prefill of 2,048 tokens

`horus inspect` and jobs.yaml take a name, or the config.json of any model of these types.)";

absl::Status Models(bool as_json) {
  Table table({{"NAME"}, {"TYPE"}, Right("PARAMETERS"), Right("LAYERS"), Right("CONTEXT")});
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
  const Json json = {{"schema", "horus-models"}, {"version", 1}, {"models", list}};
  std::fputs((as_json ? JsonText(json) : table.Render()).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command AddModels(CLI::App& parser) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* app = parser.add_subcommand("models", "The language models that are known by name");
  app->add_flag("--json", *as_json, "Print JSON");
  app->footer(kModelsFooter);
  return {app, [as_json] {
            const absl::Status status = Models(*as_json);
            return status.ok() ? kExitDecided : Fail(status);
          }};
}

}  // namespace horus::cli
