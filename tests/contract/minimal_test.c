/* SPDX-License-Identifier: Apache-2.0 */
/* A build without ONNX: graphs and predictions say what is missing; the placer works without them. */
#include "fixture.h"

#define MISSING(call) CHECK_MESSAGE(HORUS_ERR_UNSUPPORTED, "HORUS_WITH_ONNX", call)

int main(void) {
  horus_graph* graph = NULL;
  horus_predictor* predictor = NULL;
  horus_graph_info info = HORUS_GRAPH_INFO_INIT;
  horus_step_cost cost = HORUS_STEP_COST_INIT;
  horus_library_info library = HORUS_LIBRARY_INFO_INIT;
  size_t count = 7;
  MISSING(horus_graph_from_file("model.onnx", NULL, &graph, &error));
  MISSING(horus_graph_from_bytes("", 0, NULL, &graph, &error));
  MISSING(horus_graph_from_config("", 0, NULL, &graph, &error));
  MISSING(horus_graph_get_info(graph, &info, &error));
  MISSING(horus_graph_cost(graph, NULL, &cost, &error));
  MISSING(horus_graph_features(graph, NULL, 0, NULL, &count, &error));
  MISSING(horus_predictor_default(&predictor, &error));
  MISSING(horus_predictor_from_bytes("", 0, &predictor, &error));
  MISSING(horus_predictor_demand(predictor, NULL, graph, NULL, 0, NULL, NULL, &error));
  MISSING(horus_predictor_solve(predictor, NULL, graph, NULL, NULL, 0, NULL, NULL, NULL, NULL, &error));
  MISSING(horus_predictor_service(predictor, NULL, graph, NULL, NULL, 0, NULL, NULL, NULL, &error));
  CHECK(graph == NULL && predictor == NULL && count == 7);
  CHECK_OK(horus_library_get_info(&library, &error));
  CHECK(library.models[0] == NULL && strcmp(library.policies[0], "horus") == 0);
  CHECK(horus_graph_dim_name(NULL, 0) == NULL && horus_predictor_bytes_held(NULL) == 0);
  CHECK(horus_feature_count() == 0 && horus_feature_schema_hash() == 0 && horus_feature_name(0) == NULL);
  CHECK(horus_feature_unit(0) == NULL && horus_feature_definition(0) == NULL);
  horus_graph_free(NULL);
  horus_predictor_free(NULL);
  return report();
}
