// SPDX-License-Identifier: Apache-2.0
// horus/graph.h and the predictor in a build without ONNX: the same symbols, which say what is missing.
#include "capi/handles.h"
#include "horus/demand.h"
#include "horus/graph.h"
#include "horus/learn.h"

using horus::capi::kWithoutOnnx;

std::vector<std::string_view> horus::capi::KnownModels() { return {}; }

HORUS_MISSING(horus_graph_from_file, kWithoutOnnx, const char*, const horus_graph_limits*, horus_graph**)
HORUS_MISSING(horus_graph_from_bytes, kWithoutOnnx, const void*, size_t, const horus_graph_limits*, horus_graph**)
HORUS_MISSING(horus_graph_from_config, kWithoutOnnx, const void*, size_t, const horus_config_options*, horus_graph**)
void horus_graph_free(horus_graph*) {}
HORUS_MISSING(horus_graph_get_info, kWithoutOnnx, const horus_graph*, horus_graph_info*)
const char* horus_graph_dim_name(const horus_graph*, size_t) { return nullptr; }

HORUS_MISSING(horus_predictor_default, kWithoutOnnx, horus_predictor**)
HORUS_MISSING(horus_predictor_from_bytes, kWithoutOnnx, const void*, size_t, horus_predictor**)
void horus_predictor_free(horus_predictor*) {}
HORUS_MISSING(horus_predictor_set_metrics, kWithoutOnnx, horus_predictor*, const horus_metrics*)
HORUS_MISSING(horus_predictor_demand, kWithoutOnnx, const horus_predictor*, const horus_catalogue*, const horus_graph*,
              const horus_run_spec*, size_t, const char* const*, horus_demand* const*)
HORUS_MISSING(horus_predictor_solve, kWithoutOnnx, const horus_predictor*, const horus_catalogue*, const horus_graph*,
              const horus_run_spec*, const horus_solve_options*, size_t, const char* const*, horus_progress, void*,
              horus_solution* const*)
HORUS_MISSING(horus_predictor_service, kWithoutOnnx, const horus_predictor*, const horus_catalogue*, const horus_graph*,
              const horus_run_spec*, const horus_service_load*, size_t, const char* const*, horus_service* const*,
              horus_demand* const*)

HORUS_MISSING(horus_predictor_to_bytes, kWithoutOnnx, const horus_predictor*, size_t, void*, size_t*)
HORUS_MISSING(horus_predictor_commit, kWithoutOnnx, const horus_predictor*, const horus_observations*,
              horus_predictor**)
uint64_t horus_predictor_epoch(const horus_predictor*) { return 0; }
