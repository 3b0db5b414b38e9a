// SPDX-License-Identifier: Apache-2.0
// Analyses a job before any GPU type is named, and turns its profile into a demand on one: the roofline, refined by a
// bundle and overridden by what was measured.
#include "predict/predictor.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/units.h"
#include "graph/from_config.h"
#include "predict/roofline.h"

namespace horus {

// Generated at build time from default.hbundle.
extern const unsigned char kDefaultBundle[];
extern const size_t kDefaultBundleSize;

namespace {

constexpr double kWholePct = 100;
constexpr double kOutsideFactor = 1.5;  // on the bounds, where the graph is not understood well enough
constexpr std::array kPublished = {Quantity::kGpuUtil, Quantity::kMemBwUtil, Quantity::kMemory, Quantity::kStepTime};

struct Estimate {
  double value = 0;
  double upper = 0;
};

constexpr size_t At(Quantity quantity) { return static_cast<size_t>(quantity); }

Bounded Real(const Estimate& of, double most) { return BoundedOf(of.value, of.upper, most); }
BoundedInt Whole(const Estimate& of, double most) { return BoundedIntOf(of.value, of.upper, most); }

// The geometric mean of what specifications say alone, which knows copies, and with the constants of step time, which
// knows kernels. A choice made with the folds of scripts/bench interference in sight.
double DeviceShareOf(const RowOnGpu& on, const TargetModel* step, std::string_view gpu) {
  const double alone_pct = on.terms.gpu_util_pct;
  if (step == nullptr) return alone_pct / kWholePct;
  const double fitted_pct =
      PriorOf(Quantity::kGpuUtilMax, TermsOf(on.row), step->factors, step->GpuFactor(on.row, gpu));
  return std::sqrt(alone_pct * fitted_pct) / kWholePct;
}

std::array<float, kTraitCount> TraitsOf(const StepCost& cost, const RooflineTerms& roofline, double device_share) {
  std::array<float, kTraitCount> traits = {};
  const auto set = [&traits](Trait trait, double value) {
    traits[static_cast<size_t>(trait)] = static_cast<float>(value);
  };
  const auto log = [](double value) { return std::log10(std::max(value, 1.0)); };
  set(Trait::kLogStepFlops, log(cost.StepFlops()));
  set(Trait::kLogStepBytes, log(cost.StepBytes()));
  set(Trait::kLogKernels, log(cost.StepKernels()));
  set(Trait::kComputeBoundShare, roofline.compute_share);
  set(Trait::kBandwidthBoundShare, roofline.bandwidth_share);
  set(Trait::kLogDeviceUs, log(roofline.device_time_us));
  constexpr double kLeastShare = 1e-4, kMostShare = 0.9999;  // its logarithm is below 0
  set(Trait::kLogDeviceShare, std::log10(std::clamp(device_share, kLeastShare, kMostShare)));
  set(Trait::kMeanParallelism, roofline.mean_parallelism);
  return traits;
}

}  // namespace

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
  JobProfile job{.run = given};
  const RunSpec& run = job.run;
  if (run.mode == RunMode::kTraining && ServesAlone(*graph)) {
    return InvalidArgument(
        "mode: expected inference of a graph that a config made to serve (logits of the last token alone), found "
        "training; "
        "horus_config_options.training = 1 (Python: training=True) makes one that trains");
  }
  const std::string_view frozen = SaidOf(*graph, "frozen");
  if (given.frozen.empty() && !frozen.empty()) job.run.frozen = absl::StrSplit(std::string(frozen), ',');
  if (IsEngine(run.framework) && run.mode == RunMode::kTraining)
    return InvalidArgument("framework: expected one that trains, found %s", Name(run.framework));
  if (IsEngine(run.framework) && ComputeTypeOf(*graph).empty()) {
    return InvalidArgument("framework: expected PyTorch or TensorFlow for what is made from no config, found %s",
                           Name(run.framework));
  }
  if (IsEngine(run.framework) && !IsHalf(run.precision)) {
    return InvalidArgument("precision: expected bf16 or fp16 under %s, found %s", Name(run.framework),
                           Name(run.precision));
  }
  if (run.mode == RunMode::kTraining && run.optimizer == Optimizer::kAdamWBf16 && run.precision != Precision::kBf16)
    return InvalidArgument("precision: expected bf16 under optimizer adamw-bf16, found %s", Name(run.precision));
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
    for (const Tensor& tensor : shaped->tensors)
      bytes += sizeof(Tensor) + tensor.name.capacity() + tensor.dims.capacity() * sizeof(int64_t);
    for (const Op& op : shaped->ops)
      bytes += sizeof(Op) + (op.inputs.capacity() + op.outputs.capacity()) * sizeof(TensorId);
  }
  return static_cast<int64_t>(bytes);
}

struct Predictor::Impl {
  std::array<std::shared_ptr<const TargetModel>, kQuantityCount> models;
  std::shared_ptr<const std::string> bundle;        // null without
  std::shared_ptr<const MeasuredDemands> measured;  // null without
  bool calibrated = false;
};

Predictor::Predictor(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Predictor::~Predictor() = default;

std::shared_ptr<const Predictor> Predictor::Default() {
  auto built_in = FromBundle(std::span(kDefaultBundle, kDefaultBundleSize));
  // Only a feature schema that changed after the bundle was made can refuse it; a test forbids that.
  return built_in.ok() ? *std::move(built_in) : Prior();
}

std::shared_ptr<const Predictor> Predictor::Prior() {
  return std::shared_ptr<const Predictor>(new Predictor(std::make_unique<const Impl>()));
}

absl::StatusOr<std::shared_ptr<const Predictor>> Predictor::FromBundle(std::span<const uint8_t> bytes) {
  HORUS_ASSIGN_OR_RETURN(const Bundle bundle, ReadBundle(bytes, {}, FeatureSchemaHash()));
  return FromBundle(bundle);  // writing it gives these very bytes
}

absl::StatusOr<std::shared_ptr<const Predictor>> Predictor::FromBundle(const Bundle& bundle) {
  auto impl = std::make_unique<Impl>();
  for (const BundleTarget& target : bundle.targets) {
    HORUS_ASSIGN_OR_RETURN(TargetModel model, horus::FromBundle(target, FeatureCount()));
    impl->models[At(model.quantity)] = std::make_shared<const TargetModel>(std::move(model));
  }
  if (bundle.targets.empty()) return InvalidArgument("bundle: expected at least one target, found none");
  HORUS_ASSIGN_OR_RETURN(std::string bytes, WriteBundle(bundle));
  impl->bundle = std::make_shared<const std::string>(std::move(bytes));
  impl->calibrated = std::all_of(kPublished.begin(), kPublished.end(), [&impl](Quantity q) {
    return impl->models[At(q)] != nullptr && impl->models[At(q)]->upper_margin >= 0;
  });
  return std::shared_ptr<const Predictor>(new Predictor(std::move(impl)));
}

std::shared_ptr<const Predictor> Predictor::WithMeasured(MeasuredDemands measured) const {
  auto impl = std::make_unique<Impl>(*impl_);
  impl->measured = std::make_shared<const MeasuredDemands>(std::move(measured));
  return std::shared_ptr<const Predictor>(new Predictor(std::move(impl)));
}

bool IsUnderstood(const CostCoverage& coverage) {
  const double known = kLeastKnownShare * static_cast<double>(coverage.ops);
  return coverage.flops_share >= kLeastKnownShare && static_cast<double>(coverage.ops_known) >= known;
}

RowOnGpu DescribeOn(const JobProfile& job, const GpuType& gpu) {
  RowOnGpu on;
  StepMemory memory = job.memory;
  memory.context = std::max<int64_t>(0, gpu.context_mib) * kBytesPerMib;
  on.terms = RooflineOf(job.cost, job.run, gpu);
  on.gradient_mib = MibCeil(memory.gradients);
  on.understood = IsUnderstood(job.cost.coverage);
  const auto mib = [](int64_t bytes) { return static_cast<double>(MibCeil(bytes)); };
  on.roofline[At(Quantity::kGpuUtil)] = on.roofline[At(Quantity::kGpuUtilMax)] = on.terms.gpu_util_pct;
  on.roofline[At(Quantity::kMemBwUtil)] = on.terms.mem_bw_util_pct;
  on.roofline[At(Quantity::kMemory)] = mib(memory.Peak());
  on.roofline[At(Quantity::kStepTime)] = on.terms.step_time_us;
  const double widen = on.understood ? 1 : kOutsideFactor;
  for (size_t q = 0; q < kQuantityCount; ++q)
    on.roofline_upper[q] = on.roofline[q] * kQuantities[q].default_factor * widen;
  // What is not understood may need any memory.
  on.roofline_upper[At(Quantity::kMemory)] =
      on.understood ? mib(memory.Upper()) : static_cast<double>(kUnboundedMemMib);

  on.row.resize(FeatureCount());
  const size_t job_columns = std::min(job.features.size(), JobFeatureColumns().size());
  std::copy_n(job.features.begin(), job_columns, on.row.begin());
  DeviceFeatures(on.terms, memory, gpu, std::span(on.row).subspan(JobFeatureColumns().size()));
  return on;
}

absl::StatusOr<Demand> Predictor::Predict(std::shared_ptr<const Graph> graph, const RunSpec& run,
                                          const GpuType& gpu) const {
  HORUS_ASSIGN_OR_RETURN(const JobProfile job, Analyse(std::move(graph), run));
  return Predict(job, gpu);
}

Demand Predictor::Predict(const JobProfile& job, const GpuType& gpu) const {
  return WithMeasurements(gpu, PredictUnmeasured(job, gpu));
}

Demand Predictor::WithMeasurements(const GpuType& gpu, const Demand& predicted) const {
  return impl_->measured == nullptr ? predicted : impl_->measured->Apply(gpu.name, predicted);
}

// What the host takes for a layer's forward pass in transformers' own code: Qwen-1.8B and 7B in bf16 generate 54.09 and
// 40.93 tokens a second on an A100 (QwenLM/Qwen, README), 0.770 and 0.763 ms for each of 24 and 32 layers, though
// reading the weights takes a tenth and a third of that. Hosts differ, hence the bound: an assumption.
constexpr double kHostLayerUs = 765, kHostLayerUpper = 1.5;

// To the floor, and the bound by as much. Of graphs from a config that eager PyTorch runs to the roofline: the trees
// have seen no such net, and lie far below what Qwen took on an A100, the roofline close to it (`bench memory`:
// language_step_time, and by the trees alone; `bench/quality/steps.py --only configs`). Then to what the host takes:
// the answer is how many times as long the GPU has for its work.
static double LiftStep(const JobProfile& job, const GpuType& gpu, double roofline_us, double& us, double& upper_us) {
  const bool eager = job.run.framework == Framework::kPyTorch || job.run.framework == Framework::kPyTorch1;
  const bool unseen = eager && job.shaped != nullptr && !ComputeTypeOf(*job.shaped->graph).empty();
  const double floor_us = std::max(FloorUs(job.cost, job.run, gpu), unseen ? roofline_us : 0);
  if (us < floor_us) {
    upper_us *= floor_us / us;
    us = floor_us;
  }
  if (!unseen) return 1;
  const double host_us = kHostLayerUs * static_cast<double>(job.cost.attention_layers),
               longer = std::max(1.0, host_us / us);
  us *= longer;
  upper_us = std::max(upper_us, longer > 1 ? kHostLayerUpper * host_us : us);
  return longer;
}

Demand Predictor::PredictUnmeasured(const JobProfile& job, const GpuType& gpu) const {
  RowOnGpu on = DescribeOn(job, gpu);
  std::array<Estimate, kQuantityCount> estimates;
  Demand demand{.flags = kDemandPredicted};
  if (job.memory.least > gpu.mem_mib * kBytesPerMib) demand.flags |= kDemandTooLarge;
  if (!on.understood) demand.flags |= kDemandOutside;
  if (!impl_->calibrated) demand.flags |= kDemandUncalibrated;
  for (size_t q = 0; q < kQuantityCount; ++q) {
    estimates[q] = {on.roofline[q], on.roofline_upper[q]};
    const TargetModel* model = impl_->models[q].get();
    if (model == nullptr) continue;
    const Refined refined = model->Refine(on.row, gpu.name, {on.roofline[q], on.roofline_upper[q], on.understood});
    estimates[q] = {refined.value, refined.upper};
    if (IsEngine(job.run.framework) && static_cast<Quantity>(q) != Quantity::kMemory) continue;
    const bool published =
        std::find(kPublished.begin(), kPublished.end(), static_cast<Quantity>(q)) != kPublished.end();
    if (!published) continue;
    demand.distance = std::max(demand.distance, static_cast<float>(refined.distance));
    if (refined.outside) demand.flags |= kDemandOutside;
    if (!refined.calibrated) demand.flags |= kDemandUncalibrated;
  }
  // No correction takes away what every framework holds at once.
  double& memory = estimates[At(Quantity::kMemory)].value;
  memory = std::max(memory, static_cast<double>(MibCeil(job.memory.least) + std::max<int64_t>(0, gpu.context_mib)));
  // Nor is a bound below the analytic one where training may keep what the graph does not show.
  Estimate& bytes = estimates[At(Quantity::kMemory)];
  if (job.memory.unfused > 0) bytes.upper = std::max(bytes.upper, on.roofline_upper[At(Quantity::kMemory)]);
  Estimate& step = estimates[At(Quantity::kStepTime)];
  const double longer = LiftStep(job, gpu, on.terms.step_time_us, step.value, step.upper);
  for (const Quantity q : {Quantity::kGpuUtil, Quantity::kMemBwUtil}) estimates[At(q)].value /= longer;
  double device_share = DeviceShareOf(on, impl_->models[At(Quantity::kStepTime)].get(), gpu.name) / longer;
  if (IsEngine(job.run.framework)) {
    const EngineTime time = TimeOf(job.engine, gpu);
    device_share = time.device_us / std::max(1.0, time.step_us);
    on.terms.device_time_us = time.device_us;
    step = {time.step_us, time.step_upper_us};  // floors are the operators' own
    estimates[At(Quantity::kGpuUtil)] = {kWholePct * device_share, kWholePct};
    const double bytes_per_us = std::max<double>(1, static_cast<double>(gpu.mem_bandwidth_mb_s));
    const double traffic_pct = kWholePct * job.cost.StepBytes() / bytes_per_us / std::max(1.0, time.step_us);
    estimates[At(Quantity::kMemBwUtil)] = {std::min(kWholePct, traffic_pct), kWholePct};
  }
  demand.profile_id = job.profile_id;
  demand.gpu_util_pct = Real(estimates[At(Quantity::kGpuUtil)], InfoOf(Quantity::kGpuUtil).most);
  demand.mem_bw_util_pct = Real(estimates[At(Quantity::kMemBwUtil)], InfoOf(Quantity::kMemBwUtil).most);
  demand.mem_mib = Whole(estimates[At(Quantity::kMemory)], kMostMemMib);
  demand.step_time_us = Whole(estimates[At(Quantity::kStepTime)], kMostStepUs);
  demand.power_w = Real(estimates[At(Quantity::kPower)], kMostPowerW);
  demand.gradient_mib = on.gradient_mib;
  demand.traits = TraitsOf(job.cost, on.terms, device_share);
  demand.operator_us = static_cast<float>(on.terms.mean_operator_us);
  return demand;
}

std::vector<Explanation> Predictor::Explain(const JobProfile& job, const GpuType& gpu) const {
  const RowOnGpu on = DescribeOn(job, gpu);
  std::vector<Explanation> all;
  for (size_t q = 0; q < kQuantityCount; ++q) {
    const TargetModel* model = impl_->models[q].get();
    const auto quantity = static_cast<Quantity>(q);
    const bool by_operators =
        IsEngine(job.run.framework) && quantity != Quantity::kMemory && quantity != Quantity::kPower;
    if (model == nullptr || by_operators) continue;
    Explanation one{.quantity = model->quantity,
                    .parts = model->Refine(on.row, gpu.name, {on.roofline[q], on.roofline_upper[q], on.understood})};
    if (quantity == Quantity::kStepTime) {
      const double of_trees = one.parts.value;
      LiftStep(job, gpu, on.terms.step_time_us, one.parts.value, one.parts.upper);
      one.lifted = one.parts.value > of_trees;
    }
    std::vector<double> shifts(model->forest.num_features());
    if (model->forest.num_trees() > 0) static_cast<void>(model->forest.Contributions(on.row, shifts));
    for (size_t f = 0; f < shifts.size(); ++f) {
      const double shift = shifts[f] * one.parts.forest_share;
      if (shift != 0) one.shifts.push_back({.feature = f, .shift = shift});
    }
    std::stable_sort(one.shifts.begin(), one.shifts.end(),
                     [](const auto& a, const auto& b) { return std::abs(a.shift) > std::abs(b.shift); });
    all.push_back(std::move(one));
  }
  return all;
}

std::string_view Predictor::bundle() const {
  return impl_->bundle == nullptr ? std::string_view() : std::string_view(*impl_->bundle);
}

const TargetModel* Predictor::FindModel(Quantity quantity) const { return impl_->models[At(quantity)].get(); }
bool Predictor::calibrated() const { return impl_->calibrated; }
uint64_t Predictor::epoch() const { return impl_->measured == nullptr ? 0 : impl_->measured->epoch(); }

int64_t Predictor::bytes_held() const {
  size_t bytes = sizeof(Predictor) + sizeof(Impl);
  for (const auto& model : impl_->models) {
    if (model != nullptr) bytes += model->bytes_held();
  }
  return static_cast<int64_t>(bytes + bundle().size()) +
         (impl_->measured == nullptr ? 0 : impl_->measured->bytes_held());
}

}  // namespace horus
