// SPDX-License-Identifier: Apache-2.0
// Features and training in a build without ONNX: the same symbols, which say what is missing.
#include "capi/error.h"
#include "horus/lab/features.h"
#include "horus/lab/memory.h"
#include "horus/lab/train.h"

namespace {

horus_status Missing(horus_error* error) {
  return horus::capi::Fail(error, HORUS_ERR_UNSUPPORTED,
                           "this libhorus was built without graphs and predictions: configure with HORUS_WITH_ONNX=ON");
}

}  // namespace

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

horus_status horus_predictor_fit(const horus_catalogue*, const horus_training_data*, const horus_training_options*,
                                 horus_progress, void*, horus_predictor**, horus_error* error) {
  return Missing(error);
}
horus_status horus_predictor_get_quality(const horus_predictor*, const char*, horus_prediction_quality*,
                                         horus_error* error) {
  return Missing(error);
}
horus_status horus_interference_fit(const horus_catalogue*, const horus_pair_data*, const horus_pair_options*,
                                    horus_progress, void*, horus_interference**, horus_error* error) {
  return Missing(error);
}
uint64_t horus_predictor_bytes_held(const horus_predictor*) { return 0; }
