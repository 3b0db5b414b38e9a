// SPDX-License-Identifier: Apache-2.0
// horus/graph.h: reading graphs.
#include "horus/graph.h"

#include <algorithm>
#include <span>
#include <utility>

#include "capi/args.h"
#include "capi/error.h"
#include "capi/graph_handles.h"
#include "capi/structs.h"
#include "graph/architecture.h"
#include "graph/from_config.h"
#include "graph/reader.h"

namespace horus::capi {
namespace {

// A limit that was left 0 keeps its default; one beyond 64 signed bits is as good as none.
void SetLimit(uint64_t given, int64_t& limit) {
  if (given != 0) limit = static_cast<int64_t>(std::min<uint64_t>(given, std::numeric_limits<int64_t>::max()));
}

absl::StatusOr<ReadLimits> LimitsFromC(const horus_graph_limits* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_graph_limits c, ReadOptionalStruct(given));
  ReadLimits limits;
  SetLimit(c.max_nodes, limits.max_nodes);
  SetLimit(c.max_nesting, limits.max_nesting);
  SetLimit(c.max_held_bytes, limits.max_bytes_held);
  SetLimit(c.max_literal_elements, limits.max_literal_elements);
  SetLimit(c.max_name_bytes, limits.max_name_bytes);
  SetLimit(c.max_rank, limits.max_rank);
  return limits;
}

absl::StatusOr<ConfigOptions> ConfigFromC(const horus_config_options* given) {
  ConfigOptions options;
  if (given == nullptr) return options;
  HORUS_ASSIGN_OR_RETURN(const horus_config_options c, ReadStruct(given));
  if (c.training != 0 && c.training != 1) return InvalidArgument("training: expected 0 or 1, found %d", c.training);
  const auto or_one = [](int64_t value) { return value == 0 ? 1 : value; };
  options.training = c.training != 0;
  options.tensor_parallel = or_one(c.tensor_parallel);
  options.pipeline_parallel = or_one(c.pipeline_parallel);
  options.pipeline_stage = c.pipeline_stage;
  options.expert_parallel = or_one(c.expert_parallel);
  options.lora_rank = c.lora_rank;
  if (c.weights != nullptr) options.weights = c.weights;
  if (c.cache != nullptr) options.cache = c.cache;
  if (c.lora_targets != nullptr) options.lora_targets = c.lora_targets;
  return options;
}

horus_graph_info InfoOf(const Graph& graph) {
  horus_graph_info info = HORUS_GRAPH_INFO_INIT;
  info.ir_version = graph.ir_version;
  info.opset = graph.opset;
  for (const GraphBody& body : graph.bodies) info.nodes += body.nodes.size();
  info.dims = graph.symbols.size();
  info.fingerprint = graph.fingerprint;
  info.bytes_held = static_cast<uint64_t>(graph.bytes_held);
  return info;
}

}  // namespace

std::vector<std::string_view> KnownModels() {
  std::vector<std::string_view> names;
  for (size_t i = 0; !KnownModelName(i).empty(); ++i) names.push_back(KnownModelName(i));
  return names;
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_graph_from_file(const char* path, const horus_graph_limits* limits, horus_graph** out,
                                   horus_error* error) {
  return Guard(error, {{path, "path"}, {out, "out"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::ReadLimits checked, LimitsFromC(limits));
    HORUS_ASSIGN_OR_RETURN(auto graph, horus::ReadOnnxFile(path, checked));
    return Give(new horus_graph{std::move(graph)}, out);
  });
}

horus_status horus_graph_from_bytes(const void* bytes, size_t size, const horus_graph_limits* limits, horus_graph** out,
                                    horus_error* error) {
  return Guard(error, {{bytes, "bytes"}, {out, "out"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::ReadLimits checked, LimitsFromC(limits));
    const std::span<const uint8_t> given(static_cast<const uint8_t*>(bytes), size);
    HORUS_ASSIGN_OR_RETURN(auto graph, horus::ReadOnnx(given, checked));
    return Give(new horus_graph{std::move(graph)}, out);
  });
}

horus_status horus_graph_from_config(const void* text, size_t size, const horus_config_options* options,
                                     horus_graph** out, horus_error* error) {
  return Guard(error, {{text, "text"}, {out, "out"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::ConfigOptions checked, ConfigFromC(options));
    const std::string_view given(static_cast<const char*>(text), size);
    HORUS_ASSIGN_OR_RETURN(auto graph, horus::GraphFromConfig(given, checked));
    return Give(new horus_graph{std::move(graph)}, out);
  });
}

void horus_graph_free(horus_graph* graph) { delete graph; }

horus_status horus_graph_get_info(const horus_graph* graph, horus_graph_info* info, horus_error* error) {
  return Guard(error, {{graph, "graph"}}, [&]() -> absl::Status { return Answer(InfoOf(*graph->value), info); });
}

const char* horus_graph_dim_name(const horus_graph* graph, size_t index) {
  if (graph == nullptr || index >= graph->value->symbols.size()) return nullptr;
  return graph->value->symbols[index].c_str();
}
