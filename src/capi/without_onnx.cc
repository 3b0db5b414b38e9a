// SPDX-License-Identifier: Apache-2.0
// horus/graph.h and the predictor in a build without ONNX: the same symbols, which say what is missing.
#include "capi/guard.h"
#include "horus/demand.h"
#include "horus/graph.h"
#include "horus/learn.h"
#include "horus/learn_pairs.h"
#include "horus/metrics.h"

namespace {

horus_status Missing(horus_error* error) {
  return horus::capi::Fail(error, HORUS_ERR_UNSUPPORTED,
                           "this libhorus was built without graphs and predictions: configure with HORUS_WITH_ONNX=ON");
}

}  // namespace

horus_status horus_graph_from_file(const char*, const horus_graph_limits*, horus_graph**, horus_error* error) {
  return Missing(error);
}
horus_status horus_graph_from_bytes(const void*, size_t, const horus_graph_limits*, horus_graph**, horus_error* error) {
  return Missing(error);
}
void horus_graph_free(horus_graph*) {}
horus_status horus_graph_get_info(const horus_graph*, horus_graph_info*, horus_error* error) { return Missing(error); }
const char* horus_graph_dim_name(const horus_graph*, size_t) { return nullptr; }
horus_status horus_graph_cost(const horus_graph*, const horus_run_spec*, horus_step_cost*, horus_error* error) {
  return Missing(error);
}
horus_status horus_graph_features(const horus_graph*, const horus_run_spec*, size_t, float*, size_t*,
                                  horus_error* error) {
  return Missing(error);
}

size_t horus_feature_count(void) { return 0; }
const char* horus_feature_name(size_t) { return nullptr; }
const char* horus_feature_unit(size_t) { return nullptr; }
const char* horus_feature_definition(size_t) { return nullptr; }
uint64_t horus_feature_schema_hash(void) { return 0; }

horus_status horus_predictor_default(horus_predictor**, horus_error* error) { return Missing(error); }
horus_status horus_predictor_from_bytes(const void*, size_t, horus_predictor**, horus_error* error) {
  return Missing(error);
}
void horus_predictor_free(horus_predictor*) {}
uint64_t horus_predictor_bytes_held(const horus_predictor*) { return 0; }
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

horus_status horus_predictor_fit(const horus_catalogue*, const horus_training_data*, const horus_training_options*,
                                 horus_progress, void*, horus_predictor**, horus_error* error) {
  return Missing(error);
}
horus_status horus_predictor_to_bytes(const horus_predictor*, size_t, void*, size_t*, horus_error* error) {
  return Missing(error);
}
horus_status horus_predictor_get_quality(const horus_predictor*, const char*, horus_prediction_quality*,
                                         horus_error* error) {
  return Missing(error);
}
horus_status horus_predictor_commit(const horus_predictor*, const horus_observations*, horus_predictor**,
                                    horus_error* error) {
  return Missing(error);
}
horus_status horus_interference_fit(const horus_catalogue*, const horus_pair_data*, const horus_pair_options*,
                                    horus_progress, void*, horus_interference**, horus_error* error) {
  return Missing(error);
}
uint64_t horus_predictor_epoch(const horus_predictor*) { return 0; }
