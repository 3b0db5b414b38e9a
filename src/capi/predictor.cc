// SPDX-License-Identifier: Apache-2.0
// horus/demand.h, the predictor.
#include "predict/predictor.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/demand_convert.h"
#include "capi/graph_handles.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/run_convert.h"
#include "capi/structs.h"
#include "horus/demand.h"

namespace horus::capi {
namespace {

absl::StatusOr<std::vector<GpuTypeId>> FindTypes(const Catalogue& catalogue, size_t count,
                                                 const char* const* gpu_types) {
  HORUS_RETURN_IF_ERROR(RequireColumn(gpu_types, "gpu_types", count));
  std::vector<GpuTypeId> types;
  for (size_t i = 0; i < count; ++i) {
    HORUS_RETURN_IF_ERROR(Require({{gpu_types[i], Element("gpu_types", i).c_str()}}));
    const absl::StatusOr<GpuTypeId> type = catalogue.Find(gpu_types[i]);
    if (!type.ok()) return At(Element("gpu_types", i), type.status());
    types.push_back(*type);
  }
  return types;
}

absl::Status CheckOutputs(size_t count, horus_demand* const* demands) {
  HORUS_RETURN_IF_ERROR(RequireColumn(demands, "demands", count));
  for (size_t i = 0; i < count; ++i) {
    if (const absl::Status status = CheckOutput(demands[i]); !status.ok()) return At(Element("demands", i), status);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_predictor_default(horus_predictor** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    *out = new horus_predictor{horus::Predictor::Default()};
    return absl::OkStatus();
  });
}

horus_status horus_predictor_from_bytes(const void* bytes, size_t size, horus_predictor** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{bytes, "bytes"}, {out, "out"}}));
    const std::span<const uint8_t> bundle(static_cast<const uint8_t*>(bytes), size);
    HORUS_ASSIGN_OR_RETURN(auto predictor, horus::Predictor::FromBundle(bundle));
    *out = new horus_predictor{std::move(predictor)};
    return absl::OkStatus();
  });
}

void horus_predictor_free(horus_predictor* predictor) { delete predictor; }

uint64_t horus_predictor_bytes_held(const horus_predictor* predictor) {
  return predictor == nullptr ? 0 : static_cast<uint64_t>(predictor->value->bytes_held());
}

horus_status horus_predictor_demand(const horus_predictor* predictor, const horus_catalogue* catalogue,
                                    const horus_graph* graph, const horus_run_spec* run, size_t count,
                                    const char* const* gpu_types, horus_demand* const* demands, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{predictor, "predictor"}, {graph, "graph"}}));
    const std::shared_ptr<const horus::Catalogue> known = CatalogueOf(catalogue);
    HORUS_ASSIGN_OR_RETURN(const std::vector<horus::GpuTypeId> types, FindTypes(*known, count, gpu_types));
    HORUS_RETURN_IF_ERROR(CheckOutputs(count, demands));
    HORUS_ASSIGN_OR_RETURN(const horus::RunSpec spec, RunFromC(run));
    HORUS_ASSIGN_OR_RETURN(const horus::JobProfile profile, horus::Analyse(graph->value, spec));
    for (size_t i = 0; i < count; ++i) {
      WriteStruct(DemandToC(predictor->value->Predict(profile, known->at(types[i]))), demands[i]);
    }
    return absl::OkStatus();
  });
}
