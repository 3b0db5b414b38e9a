// SPDX-License-Identifier: Apache-2.0
// horus/graph.h and the predictor in a build without ONNX: the same symbols, which say what is missing.
#include "capi/error.h"
#include "capi/handles.h"
#include "horus/demand.h"
#include "horus/graph.h"
#include "horus/learn.h"
#include "horus/metrics.h"

namespace {

horus_status Missing(horus_error* error) {
  return horus::capi::Fail(error, HORUS_ERR_UNSUPPORTED,
                           "this libhorus was built without graphs and predictions: configure with HORUS_WITH_ONNX=ON");
}

}  // namespace

std::vector<std::string_view> horus::capi::KnownModels() { return {}; }

horus_status horus_graph_from_file(const char*, const horus_graph_limits*, horus_graph**, horus_error* error) {
  return Missing(error);
}
horus_status horus_graph_from_bytes(const void*, size_t, const horus_graph_limits*, horus_graph**, horus_error* error) {
  return Missing(error);
}
horus_status horus_graph_from_config(const void*, size_t, const horus_config_options*, horus_graph**,
                                     horus_error* error) {
  return Missing(error);
}
void horus_graph_free(horus_graph*) {}
horus_status horus_graph_get_info(const horus_graph*, horus_graph_info*, horus_error* error) { return Missing(error); }
const char* horus_graph_dim_name(const horus_graph*, size_t) { return nullptr; }

horus_status horus_predictor_default(horus_predictor**, horus_error* error) { return Missing(error); }
horus_status horus_predictor_from_bytes(const void*, size_t, horus_predictor**, horus_error* error) {
  return Missing(error);
}
void horus_predictor_free(horus_predictor*) {}
horus_status horus_predictor_set_metrics(horus_predictor*, const horus_metrics*, horus_error* error) {
  return Missing(error);
}
horus_status horus_predictor_demand(const horus_predictor*, const horus_catalogue*, const horus_graph*,
                                    const horus_run_spec*, size_t, const char* const*, horus_demand* const*,
                                    horus_error* error) {
  return Missing(error);
}
horus_status horus_predictor_solve(const horus_predictor*, const horus_catalogue*, const horus_graph*,
                                   const horus_run_spec*, const horus_solve_options*, size_t, const char* const*,
                                   horus_progress, void*, horus_solution* const*, horus_error* error) {
  return Missing(error);
}
horus_status horus_predictor_service(const horus_predictor*, const horus_catalogue*, const horus_graph*,
                                     const horus_run_spec*, const horus_service_load*, size_t, const char* const*,
                                     horus_service* const*, horus_demand* const*, horus_error* error) {
  return Missing(error);
}

horus_status horus_predictor_to_bytes(const horus_predictor*, size_t, void*, size_t*, horus_error* error) {
  return Missing(error);
}
horus_status horus_predictor_commit(const horus_predictor*, const horus_observations*, horus_predictor**,
                                    horus_error* error) {
  return Missing(error);
}
uint64_t horus_predictor_epoch(const horus_predictor*) { return 0; }
