// SPDX-License-Identifier: Apache-2.0
// Features and training in a build without ONNX: the same symbols, which say what is missing.
#include "capi/boundary.h"
#include "horus/lab/features.h"
#include "horus/lab/memory.h"
#include "horus/lab/train.h"

using horus::capi::kWithoutOnnx;

HORUS_MISSING(horus_graph_cost, kWithoutOnnx, const horus_graph*, const horus_run_spec*, horus_step_cost*)
HORUS_MISSING(horus_graph_features, kWithoutOnnx, const horus_graph*, const horus_run_spec*, size_t, float*, size_t*)

size_t horus_feature_count(void) { return 0; }
const char* horus_feature_name(size_t) { return nullptr; }
const char* horus_feature_unit(size_t) { return nullptr; }
const char* horus_feature_definition(size_t) { return nullptr; }
uint64_t horus_feature_schema_hash(void) { return 0; }

HORUS_MISSING(horus_predictor_fit, kWithoutOnnx, const horus_catalogue*, const horus_training_data*,
              const horus_training_options*, horus_progress, void*, horus_predictor**)
HORUS_MISSING(horus_predictor_get_quality, kWithoutOnnx, const horus_predictor*, const char*, horus_prediction_quality*)
HORUS_MISSING(horus_interference_fit, kWithoutOnnx, const horus_catalogue*, const horus_pair_data*,
              const horus_pair_options*, horus_progress, void*, horus_interference**)
uint64_t horus_predictor_bytes_held(const horus_predictor*) { return 0; }
