// SPDX-License-Identifier: Apache-2.0
// horus/demand.h, the predictor.

#include "capi/convert.h"
#include "capi/graph_handles.h"
#include "capi/handles.h"
#include "horus/learn.h"
#include "predict/service.h"
#include "predict/solve.h"

namespace horus::capi {
namespace {

static_assert(Same(HORUS_SOLVED_MEMORY, SolveEnd::kMemory) && Same(HORUS_SOLVED_GRAPH, SolveEnd::kGraph) &&
              Same(HORUS_SOLVED_MAXIMUM, SolveEnd::kMaximum));

absl::StatusOr<std::vector<const GpuType*>> FindTypes(const Catalogue& catalogue, size_t count,
                                                      const char* const* gpu_types) {
  HORUS_RETURN_IF_ERROR(RequireColumn(gpu_types, "gpu_types", count));
  std::vector<const GpuType*> types;
  for (size_t i = 0; i < count; ++i) {
    HORUS_RETURN_IF_ERROR(Require({{gpu_types[i], Element("gpu_types", i).c_str()}}));
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, At(Element("gpu_types", i), catalogue.Find(gpu_types[i])));
    types.push_back(&catalogue.at(type));
  }
  return types;
}

absl::Status CheckOutputs(size_t count, auto* const* structs, const char* name) {
  HORUS_RETURN_IF_ERROR(RequireColumn(structs, name, count));
  for (size_t i = 0; i < count; ++i) {
    if (const absl::Status status = CheckOutput(structs[i]); !status.ok()) return At(Element(name, i), status);
  }
  return absl::OkStatus();
}

// The devices of a search, each type once.
struct SolveInputs {
  SolveRequest request;
  std::vector<GpuType> types;
  std::vector<SolveDevice> devices;
};

absl::StatusOr<SolveInputs> SolveFromC(const Catalogue& catalogue, const horus_solve_options* given, size_t count,
                                       const char* const* gpu_types) {
  SolveInputs inputs;
  HORUS_ASSIGN_OR_RETURN(const horus_solve_options c, ReadOptionalStruct(given));
  HORUS_ASSIGN_OR_RETURN(const std::string dim, ReadOptionalText(c.dim, "dim"));
  if (!dim.empty()) inputs.request.dim = dim;
  SetUnlessZero(inputs.request.max_value, c.max_value);
  HORUS_ASSIGN_OR_RETURN(const auto types, FindTypes(catalogue, count, gpu_types));
  for (size_t i = 0; i < count; ++i) {
    const auto known = std::ranges::find(inputs.types, types[i]->name, &GpuType::name);
    const auto type = static_cast<size_t>(known - inputs.types.begin());
    if (known == inputs.types.end()) inputs.types.push_back(*types[i]);
    inputs.devices.push_back({type, c.resident_mib == nullptr ? 0 : c.resident_mib[i]});
  }
  return inputs;
}

SolveProgress ProgressFromC(horus_progress progress, void* user) {
  if (progress == nullptr) return nullptr;
  return [progress, user](size_t solved, size_t targets) {
    return progress(user, static_cast<double>(solved) / static_cast<double>(targets)) == 0;
  };
}

absl::StatusOr<std::vector<Demand>> DemandsOf(const horus_predictor& predictor,
                                              const std::shared_ptr<const Graph>& graph, const RunSpec& run,
                                              const std::vector<const GpuType*>& types) {
  HORUS_ASSIGN_OR_RETURN(CachedDemands found, PredictCached(*predictor.value, *predictor.cache, graph, run, types));
  if (const auto& telemetry = predictor.telemetry.get(); telemetry != nullptr)
    telemetry->metrics().Looked(Cache::kDemands, found.known ? types.size() : 0, found.known ? 0 : types.size());
  return std::move(found.demands);
}

static_assert(HORUS_SERVICE_SERVED == static_cast<int>(ServiceVerdict::kServed) &&
              HORUS_SERVICE_NO_ROOM == static_cast<int>(ServiceVerdict::kNoRoom) &&
              HORUS_SERVICE_OVERLOADED == static_cast<int>(ServiceVerdict::kOverloaded) &&
              HORUS_SERVICE_LATE == static_cast<int>(ServiceVerdict::kLate) &&
              HORUS_SERVICE_UNSUPPORTED == static_cast<int>(ServiceVerdict::kUnsupported));

absl::StatusOr<ServiceRun> ServiceRunFromC(const Catalogue& catalogue, const horus_service_run* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_service_run c, ReadStruct(given));
  ServiceRun run{.concurrency = c.concurrency, .first_token_us = c.first_token_us, .token_us = c.token_us};
  HORUS_ASSIGN_OR_RETURN(run.gpu, ReadText(c.gpu_type, "gpu_type"));
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(run.gpu));
  run.gpu = catalogue.at(type).name;  // of an alias
  return run;
}

absl::StatusOr<ServiceLoad> LoadFromC(const Catalogue& catalogue, const horus_service_load* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_service_load c, ReadStruct(given));
  ServiceLoad load;
  HORUS_COPY_FIELDS(c, load, requests_per_s, concurrency, tokens_in, tokens_out, longest, first_token_us, token_us)
  SetUnlessZero(load.confidence, c.confidence);
  HORUS_RETURN_IF_ERROR(RequireColumn(c.measured, "measured", c.measured_count));
  if (c.measured_count > kMostServiceRuns)
    return InvalidArgument("measured: expected at most %d, found %d", kMostServiceRuns, c.measured_count);
  const auto read = [&](const horus_service_run* run) { return ServiceRunFromC(catalogue, run); };
  HORUS_ASSIGN_OR_RETURN(load.measured, ReadEach("measured", c.measured_count, c.measured, read));
  return load;
}

horus_service ServiceToC(const Service& service) {
  horus_service c = HORUS_SERVICE_INIT;
  c.verdict = static_cast<int32_t>(service.verdict);
  HORUS_COPY_FIELDS(service, c, weights_mib, activations_mib, engine_mib, cache_mib, cache_tokens, running,
                    most_running, requests_per_s, tokens_per_s, most_requests_per_s, busy, largest_slowdown)
  c.first_token_us = service.first_token.estimate_us;
  c.first_token_us_upper = service.first_token.upper_us;
  c.token_us = service.token.estimate_us;
  c.token_us_upper = service.token.upper_us;
  CopyLine(service.engine_arguments, c.engine_arguments, sizeof c.engine_arguments);
  return c;
}

horus_solution SolutionToC(const Solution& solution, uint32_t flags) {
  horus_solution c = HORUS_SOLUTION_INIT;
  c.reason = static_cast<int32_t>(solution.end);
  c.flags = flags;
  HORUS_COPY_FIELDS(solution, c, largest, next, short_mib)
  c.mem_mib_upper = solution.upper_mib;
  CopyLine(solution.message, c.message, sizeof c.message);
  return c;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_predictor_default(horus_predictor** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] { return Give(new horus_predictor(Predictor::Default()), out); });
}

horus_status horus_predictor_from_bytes(const void* bytes, size_t size, horus_predictor** out, horus_error* error) {
  return Guard(error, {{bytes, "bytes"}, {out, "out"}}, [&] {
    const std::span<const uint8_t> bundle(static_cast<const uint8_t*>(bytes), size);
    HORUS_ASSIGN_OR_RETURN(auto predictor, Predictor::FromBundle(bundle));
    return Give(new horus_predictor(std::move(predictor)), out);
  });
}

void horus_predictor_free(horus_predictor* predictor) { delete predictor; }

horus_status horus_predictor_set_metrics(horus_predictor* predictor, const horus_metrics* telemetry,
                                         horus_error* error) {
  return Guard(error, {{predictor, "predictor"}}, [&] {
    predictor->telemetry.Set(TelemetryOf(telemetry), HandleKind::kPredictor,
                             [predictor] { return std::optional(predictor->bytes_held()); });
    return absl::OkStatus();
  });
}

horus_status horus_predictor_demand(const horus_predictor* predictor, const horus_catalogue* catalogue,
                                    const horus_graph* graph, const horus_run_spec* run, size_t count,
                                    const char* const* gpu_types, horus_demand* const* demands, horus_error* error) {
  return GuardMetered(predictor, Call::kDemand, error, [&] {
    HORUS_RETURN_IF_ERROR(Require({{predictor, "predictor"}, {graph, "graph"}}));
    const std::shared_ptr<const Catalogue> known = CatalogueOf(catalogue);
    HORUS_ASSIGN_OR_RETURN(const auto types, FindTypes(*known, count, gpu_types));
    HORUS_RETURN_IF_ERROR(CheckOutputs(count, demands, "demands"));
    HORUS_ASSIGN_OR_RETURN(const RunSpec spec, RunFromC(run));
    HORUS_ASSIGN_OR_RETURN(const std::vector<Demand> found, DemandsOf(*predictor, graph->value, spec, types));
    for (size_t i = 0; i < count; ++i) WriteStruct(DemandToC(found[i]), demands[i]);
    return absl::OkStatus();
  });
}

horus_status horus_predictor_solve(const horus_predictor* predictor, const horus_catalogue* catalogue,
                                   const horus_graph* graph, const horus_run_spec* run,
                                   const horus_solve_options* options, size_t count, const char* const* gpu_types,
                                   horus_progress progress, void* user, horus_solution* const* solutions,
                                   horus_error* error) {
  return GuardMetered(predictor, Call::kSolve, error, [&] {
    HORUS_RETURN_IF_ERROR(Require({{predictor, "predictor"}, {graph, "graph"}}));
    HORUS_ASSIGN_OR_RETURN(const SolveInputs inputs, SolveFromC(*CatalogueOf(catalogue), options, count, gpu_types));
    HORUS_RETURN_IF_ERROR(CheckOutputs(count, solutions, "solutions"));
    HORUS_ASSIGN_OR_RETURN(const RunSpec spec, RunFromC(run));
    HORUS_ASSIGN_OR_RETURN(const Solved solved,
                           SolveDimension(graph->value, spec, inputs.request, *predictor->value, inputs.types,
                                          inputs.devices, ProgressFromC(progress, user)));
    for (size_t i = 0; i < count; ++i) WriteStruct(SolutionToC(solved.solutions[i], solved.flags), solutions[i]);
    return absl::OkStatus();
  });
}

horus_status horus_predictor_service(const horus_predictor* predictor, const horus_catalogue* catalogue,
                                     const horus_graph* graph, const horus_run_spec* run,
                                     const horus_service_load* load, size_t count, const char* const* gpu_types,
                                     horus_service* const* services, horus_demand* const* demands, horus_error* error) {
  return GuardMetered(predictor, Call::kDemand, error, [&] {
    HORUS_RETURN_IF_ERROR(Require({{predictor, "predictor"}, {graph, "graph"}, {load, "load"}}));
    const std::shared_ptr<const Catalogue> known = CatalogueOf(catalogue);
    HORUS_ASSIGN_OR_RETURN(const auto types, FindTypes(*known, count, gpu_types));
    if (services != nullptr) HORUS_RETURN_IF_ERROR(CheckOutputs(count, services, "services"));
    if (demands != nullptr) HORUS_RETURN_IF_ERROR(CheckOutputs(count, demands, "demands"));
    HORUS_ASSIGN_OR_RETURN(const RunSpec spec, RunFromC(run));
    HORUS_ASSIGN_OR_RETURN(const ServiceLoad asked, LoadFromC(*known, load));
    HORUS_ASSIGN_OR_RETURN(const std::vector<Service> found,
                           PredictServices(*predictor->value, graph->value, spec, asked, types));
    for (size_t i = 0; i < count; ++i) {
      if (services != nullptr) WriteStruct(ServiceToC(found[i]), services[i]);
      if (demands != nullptr) WriteStruct(DemandToC(found[i].demand), demands[i]);
    }
    return absl::OkStatus();
  });
}

// ---- horus/learn.h, the predictor: saved, and corrected by what was measured.

horus_status horus_predictor_to_bytes(const horus_predictor* predictor, size_t capacity, void* bytes, size_t* count,
                                      horus_error* error) {
  return Guard(error, {{predictor, "predictor"}},
               [&] { return WriteBytes(predictor->value->bundle(), capacity, bytes, count); });
}

horus_status horus_predictor_commit(const horus_predictor* predictor, const horus_observations* observations,
                                    horus_predictor** out, horus_error* error) {
  return Guard(error, {{predictor, "predictor"}, {observations, "observations"}, {out, "out"}}, [&] {
    return Give(new horus_predictor(predictor->value->WithMeasured(observations->demands), predictor->cache), out);
  });
}

uint64_t horus_predictor_epoch(const horus_predictor* predictor) {
  return predictor == nullptr ? 0 : predictor->value->epoch();
}
