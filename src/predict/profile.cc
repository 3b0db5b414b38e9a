// SPDX-License-Identifier: Apache-2.0
// Analyses a job before any GPU type is named, and gives it its fingerprint.
#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/status.h"
#include "features/feature_row.h"
#include "graph/fingerprint.h"
#include "graph/from_config.h"
#include "predict/predictor.h"

namespace horus {

uint64_t ProfileId(const ShapedGraph& shaped, const RunSpec& run) {
  uint64_t id = CombineHash(FingerprintOf(shaped), static_cast<uint64_t>(run.mode));
  id = CombineHash(id, static_cast<uint64_t>(run.precision));
  // An optimiser means nothing without training: all inference runs of a graph are one profile.
  id = CombineHash(id, run.mode == RunMode::kTraining ? static_cast<uint64_t>(run.optimizer) : 0);
  // The default leaves ids as they were before there was a choice.
  if (run.framework != Framework::kPyTorch) id = CombineHash(id, static_cast<uint64_t>(run.framework));
  if (run.layout != Layout::kNchw) id = CombineHash(id, static_cast<uint64_t>(run.layout));
  if (run.mode == RunMode::kTraining) {
    id = CombineHash(id, static_cast<uint64_t>(std::max<int64_t>(1, run.checkpoint_segments)));
    for (const std::string& prefix : run.frozen) id = CombineHash(id, Hash64(prefix));
    id = CombineHash(id, run.data_parallel > 1 ? 2 : 1);  // how many replicas changes nothing on one of them
  }
  return id == 0 ? 1 : id;  // 0 means "none"
}

absl::StatusOr<JobProfile> Analyse(std::shared_ptr<const Graph> graph, const RunSpec& given) {
  if (graph == nullptr || graph->bodies.empty()) return InvalidArgument("graph: expected one, found none");
  JobProfile job;
  job.run = given;
  const RunSpec& run = job.run;
  const std::string_view frozen = SaidOf(*graph, "frozen");
  if (given.frozen.empty() && !frozen.empty()) job.run.frozen = absl::StrSplit(std::string(frozen), ',');
  if (IsEngine(run.framework) && run.mode == RunMode::kTraining) {
    return InvalidArgument("framework: expected one that trains, found %s", Name(run.framework));
  }
  if (IsEngine(run.framework) && ComputeTypeOf(*graph).empty()) {
    return InvalidArgument("framework: expected PyTorch or TensorFlow for what is made from no config, found %s",
                           Name(run.framework));
  }
  if (IsEngine(run.framework) && !IsHalf(run.precision)) {
    return InvalidArgument("precision: expected bf16 or fp16 under %s, found %s", Name(run.framework),
                           Name(run.precision));
  }
  if (run.mode == RunMode::kTraining && run.optimizer == Optimizer::kAdamWBf16 && run.precision != Precision::kBf16) {
    return InvalidArgument("precision: expected bf16 under optimizer adamw-bf16, found %s", Name(run.precision));
  }
  HORUS_ASSIGN_OR_RETURN(ShapedGraph shaped, BindShapes(std::move(graph), run.dims));
  HORUS_RETURN_IF_ERROR(CheckInputSizes(shaped));
  job.profile_id = ProfileId(shaped, run);
  job.cost = CostOfStep(shaped, run);
  job.engine = EngineStepOf(shaped, job.cost, run);
  job.memory = MemoryOfStep(shaped, job.cost, run);
  job.features = JobFeatures(shaped, job.cost, job.memory, run);
  job.shaped = std::make_shared<const ShapedGraph>(std::move(shaped));
  return job;
}

int64_t JobProfile::bytes_held() const {
  size_t bytes = sizeof(JobProfile) + cost.ops.capacity() * sizeof(OpCost) + cost.needs_grad.capacity() +
                 cost.storage.capacity() * sizeof(TensorId) + cost.stored_bytes.capacity() * sizeof(double) +
                 features.capacity() * sizeof(float) + engine.operators.capacity() * sizeof(engine.operators[0]) +
                 engine.plain.capacity() * sizeof(engine.plain[0]);
  if (shaped != nullptr) {
    bytes += sizeof(ShapedGraph);
    for (const Tensor& tensor : shaped->tensors) {
      bytes += sizeof(Tensor) + tensor.name.capacity() + tensor.dims.capacity() * sizeof(int64_t);
    }
    for (const Op& op : shaped->ops) {
      bytes += sizeof(Op) + (op.inputs.capacity() + op.outputs.capacity()) * sizeof(TensorId);
    }
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace horus
