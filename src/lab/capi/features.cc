// SPDX-License-Identifier: Apache-2.0
// horus/lab/features.h: what one step costs, the feature row and its schema.
#include "horus/lab/features.h"

#include <algorithm>
#include <span>

#include "capi/args.h"
#include "capi/error.h"
#include "capi/graph_handles.h"
#include "capi/structs.h"
#include "features/feature_row.h"
#include "predict/predictor.h"

namespace horus::capi {
namespace {

// Whole number nearest to an amount; the largest one for amounts beyond 64 bits.
int64_t Whole(double amount) {
  constexpr double kLimit = 9.2e18;  // below 2^63
  return amount >= kLimit ? std::numeric_limits<int64_t>::max() : std::llround(amount);
}

horus_step_cost CostToC(const JobProfile& profile) {
  const CostTotals& totals = profile.cost.totals;
  const StepMemory& memory = profile.memory;
  horus_step_cost c = HORUS_STEP_COST_INIT;
  c.parameters = Whole(profile.cost.parameters);
  c.forward_flops = totals.forward.flops;
  c.forward_flops_other = totals.forward.flops_other;
  c.training_flops = totals.forward.flops + totals.backward.flops;
  c.horus_flops = totals.horus_flops;
  c.step_bytes = profile.cost.StepBytes();
  c.kernels = Whole(profile.cost.StepKernels());
  c.operators = static_cast<int64_t>(profile.shaped->ops.size());
  c.operators_unknown = profile.cost.coverage.ops - profile.cost.coverage.ops_known;
  c.weights_bytes = memory.weights;
  c.gradients_bytes = memory.gradients;
  c.optimizer_bytes = memory.optimizer + memory.master_weights;
  c.activations_bytes = memory.activations;
  c.workspace_bytes = memory.buckets + memory.inputs + memory.transient + memory.workspace + memory.loaded_kernels +
                      memory.allocator_slack;
  c.horus_memory_bytes = memory.horus;
  return c;
}

absl::StatusOr<JobProfile> ProfileOf(const horus_graph* graph, const horus_run_spec* given) {
  HORUS_RETURN_IF_ERROR(Require({{graph, "graph"}}));
  HORUS_ASSIGN_OR_RETURN(const RunSpec run, RunFromC(given));
  return Analyse(graph->value, run);
}

// Column `index` of the schema; null past the end.
const FeatureColumn* ColumnAt(size_t index) {
  const std::span<const FeatureColumn> columns = JobFeatureColumns();
  return index < columns.size() ? &columns[index] : nullptr;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_graph_cost(const horus_graph* graph, const horus_run_spec* run, horus_step_cost* cost,
                              horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(CheckOutput(cost));
    HORUS_ASSIGN_OR_RETURN(const horus::JobProfile profile, ProfileOf(graph, run));
    WriteStruct(CostToC(profile), cost);
    return absl::OkStatus();
  });
}

horus_status horus_graph_features(const horus_graph* graph, const horus_run_spec* run, size_t capacity, float* values,
                                  size_t* count, horus_error* error) {
  return Guard(error, {{count, "count"}}, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(RequireColumn(values, "values", capacity));
    HORUS_ASSIGN_OR_RETURN(const horus::JobProfile profile, ProfileOf(graph, run));
    HORUS_ASSIGN_OR_RETURN(const size_t rows, RowsToWrite(profile.features.size(), capacity, count));
    std::copy_n(profile.features.begin(), rows, values);
    *count = profile.features.size();
    return absl::OkStatus();
  });
}

size_t horus_feature_count(void) { return horus::JobFeatureColumns().size(); }

// The texts are literals, so data() is ended by NUL.
const char* horus_feature_name(size_t index) {
  const horus::FeatureColumn* column = ColumnAt(index);
  return column == nullptr ? nullptr : column->name.data();
}

const char* horus_feature_unit(size_t index) {
  const horus::FeatureColumn* column = ColumnAt(index);
  return column == nullptr ? nullptr : column->unit.data();
}

const char* horus_feature_definition(size_t index) {
  const horus::FeatureColumn* column = ColumnAt(index);
  return column == nullptr ? nullptr : column->definition.data();
}

uint64_t horus_feature_schema_hash(void) { return horus::FeatureSchemaHash(); }
