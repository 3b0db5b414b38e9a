// SPDX-License-Identifier: Apache-2.0
// The predictor: bounds, profiles, and what a bundle of boosters may and may not change.
#include "predict/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "device/catalogue.h"
#include "features/feature_row.h"
#include "features/graph_builder.h"
#include "graph/reader.h"
#include "lab/evaluate/evaluate_predictor.h"
#include "predict/demand_cache.h"
#include "trees/bundle.h"

namespace horus {
namespace {

GpuType A100() {
  const auto catalogue = Catalogue::Default();
  return catalogue->at(*catalogue->Find("a100-40gb"));
}

// A profile without the reader and the shape rules.
JobProfile Profile(int64_t batch, int64_t width = 1024, int layers = 4, const RunSpec& run = {}) {
  GraphBuilder b;
  BuildPerceptron(b, batch, width, layers);
  JobProfile job;
  job.profile_id = 7;
  job.run = run;
  job.cost = CostOfStep(b.shaped(), run);
  job.memory = MemoryOfStep(b.shaped(), job.cost, run);
  job.features = JobFeatures(b.shaped(), job.cost, job.memory, run);
  return job;
}

// A target with the typical constants and one leaf, which is added to the margin of every row.
Bundle Constant(Quantity quantity, float leaf) {
  TargetModel model;
  model.quantity = quantity;
  model.factors.assign(FactorsOf(quantity).size(), 0.0);
  ForestData forest;
  forest.num_features = static_cast<uint32_t>(FeatureCount());
  forest.nodes.push_back({.value = leaf});
  forest.tree_sizes.push_back(1);
  model.forest = *Forest::Create(forest);
  Bundle bundle;
  bundle.schema_hash = FeatureSchemaHash();
  bundle.library_version = "test";
  bundle.targets.push_back(ToBundle(model));
  return bundle;
}

absl::StatusOr<std::shared_ptr<const Predictor>> Load(const Bundle& bundle) {
  const std::string bytes = *WriteBundle(bundle);
  return Predictor::FromBundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(Predictor, PriorGivesAValidDemandOnEveryCataloguedGpu) {
  const auto predictor = Predictor::Prior();
  for (const RunMode mode : {RunMode::kTraining, RunMode::kInference}) {
    const JobProfile job = Profile(64, 1024, 4, {.mode = mode});
    for (const GpuType& gpu : Catalogue::Default()->types()) {
      const Demand demand = predictor->Predict(job, gpu);
      EXPECT_TRUE(ValidateDemand(demand).ok()) << gpu.name << ": " << ValidateDemand(demand);
      EXPECT_GT(demand.step_time_us.estimate, 0) << gpu.name;
      EXPECT_GE(demand.mem_mib.estimate, gpu.context_mib) << gpu.name;
      EXPECT_EQ(demand.flags, kDemandUncalibrated | kDemandPredicted) << gpu.name;
      EXPECT_EQ(demand.profile_id, 7u);
    }
  }
}

TEST(Predictor, MemoryFallsWithTheBatchByAtMostOneAllocatorSegment) {
  constexpr int64_t kSegmentMib = 20;
  const auto predictor = Predictor::Prior();
  int64_t last = 0;
  for (int64_t batch = 1; batch <= 8192; batch *= 2) {
    const Demand demand = predictor->Predict(Profile(batch), A100());
    EXPECT_GE(demand.mem_mib.estimate + kSegmentMib, last);
    last = demand.mem_mib.estimate;
  }
}

TEST(Predictor, GraphsThatAreNotUnderstoodAreFlaggedAndWidened) {
  GraphBuilder b;
  const TensorId x = b.Input({64, 64});
  b.Output(b.Make("my::Mystery", {b.Make("Relu", {x}, {64, 64})}, {64, 64}));
  JobProfile job;
  job.cost = CostOfStep(b.shaped(), {});
  const Demand demand = Predictor::Prior()->Predict(job, A100());
  EXPECT_NE(demand.flags & kDemandOutside, 0u);
  EXPECT_EQ(demand.mem_mib.upper, kUnboundedMemMib) << "what it needs is unknown, not small";
}

TEST(Predictor, MemoryHasABoundWhereNineTenthsAreUnderstood) {
  for (const int unknown : {1, 2}) {
    GraphBuilder b;
    TensorId x = b.Input({64, 64});
    for (int i = 0; i < 11 - unknown; ++i) x = b.Make("Relu", {x}, {64, 64});
    for (int i = 0; i < unknown; ++i) x = b.Make("my::Mystery", {x}, {64, 64});
    b.Output(x);
    JobProfile job;
    job.cost = CostOfStep(b.shaped(), {});
    for (const auto& predictor : {Predictor::Prior(), Predictor::Default()}) {
      EXPECT_EQ(predictor->Predict(job, A100()).mem_mib.upper < kUnboundedMemMib, unknown == 1);
    }
  }
}

// Weights, their gradients, Adam's two moments and the batch; the inputs of its layers while it trains.
TEST(Predictor, AJobWhoseTensorsExceedTheGpuIsTooLargeBeyondDoubt) {
  GpuType small = A100();
  const RunSpec adam = {.optimizer = Optimizer::kAdam};
  const JobProfile job = Profile(4096, 1024, 4, adam);
  constexpr int64_t kWeights = 4 * 4 * 1024 * 1024, kLayerInputs = 3 * 4 * 4096 * 1024, kBatch = 4 * 4096 * 1024;
  EXPECT_GE(job.memory.least, 3 * kWeights + kLayerInputs + kBatch);
  EXPECT_LE(job.memory.least, job.memory.Peak());
  small.mem_mib = job.memory.least / 1048576 - 1;
  EXPECT_NE(Predictor::Default()->Predict(job, small).flags & kDemandTooLarge, 0u);
  small.mem_mib += 2;
  EXPECT_EQ(Predictor::Default()->Predict(job, small).flags & kDemandTooLarge, 0u);
}

TEST(Predictor, TheBoundThatIsJudgedIsTheOneThatIsPublished) {
  const auto predictor = Predictor::Default();
  for (const int64_t width : {2, 1024, 65'536}) {  // inside and outside what it was trained on
    const JobProfile job = Profile(64, width, 1);
    TrainingRow row{.measured = {50, 50, 4000, 5000, 50, 100}};
    const GpuType gpu = A100();
    Describe(job, &gpu, row);
    row.gpu = gpu.name;
    const TrainingRow* rows[] = {&row};
    const Demand demand = predictor->Predict(job, A100());
    const auto judged = [&](Quantity q) { return EvaluateModel(*predictor->FindModel(q), rows).rows.at(0); };
    EXPECT_EQ(std::ceil(judged(Quantity::kMemory).upper), static_cast<double>(demand.mem_mib.upper)) << width;
    EXPECT_EQ(std::ceil(judged(Quantity::kMemory).predicted), static_cast<double>(demand.mem_mib.estimate)) << width;
    EXPECT_EQ(std::ceil(judged(Quantity::kStepTime).upper), static_cast<double>(demand.step_time_us.upper)) << width;
  }
}

TEST(Predictor, UnboundDimensionsDoNotLookLikeASlowJob) {
  GraphBuilder b;
  const TensorId x = b.Unknown(), w = b.Parameter({4096, 4096});
  const TensorId y = b.Unknown();
  b.Op("MatMul", {x, w}, {y});
  JobProfile job;
  job.cost = CostOfStep(b.shaped(), {});
  const Demand demand = Predictor::Prior()->Predict(job, A100());
  EXPECT_NE(demand.flags & kDemandOutside, 0u);
  EXPECT_LT(demand.step_time_us.estimate, 5000);  // its weights are read and updated, no more is known
}

TEST(Predictor, GradientsAreWhatAGangExchanges) {
  EXPECT_EQ(Predictor::Prior()->Predict(Profile(8, 1024, 4), A100()).gradient_mib, 4 * 4);
  EXPECT_EQ(Predictor::Prior()->Predict(Profile(8, 1024, 4, {.mode = RunMode::kInference}), A100()).gradient_mib, 0);
}

TEST(Predictor, ProfileIdDependsOnGraphRunAndShapes) {
  const auto shaped = [](uint64_t fingerprint, int64_t size) {
    auto graph = std::make_shared<Graph>();
    graph->fingerprint = fingerprint;
    return ShapedGraph{.graph = graph, .tensors = {{.dtype = DType::kFloat32, .known = true, .dims = {size}}}};
  };
  const RunSpec sgd;
  EXPECT_EQ(ProfileId(shaped(1, 8), sgd), ProfileId(shaped(1, 8), sgd));
  EXPECT_NE(ProfileId(shaped(1, 8), sgd), ProfileId(shaped(2, 8), sgd));
  EXPECT_NE(ProfileId(shaped(1, 8), sgd), ProfileId(shaped(1, 9), sgd));
  RunSpec adam = sgd;
  adam.optimizer = Optimizer::kAdam;
  EXPECT_NE(ProfileId(shaped(1, 8), sgd), ProfileId(shaped(1, 8), adam));
  RunSpec inference = sgd;
  inference.mode = adam.mode = RunMode::kInference;
  EXPECT_EQ(ProfileId(shaped(1, 8), inference), ProfileId(shaped(1, 8), adam));  // no optimiser without training
}

TEST(Predictor, EqualBoundShapesGiveEqualProfileIds) {
  const auto graph = [](DeclaredDim leading) {
    auto made = std::make_shared<Graph>();
    made->opset = 17;
    made->symbols = {"batch", "seq"};
    GraphBody body;
    body.values = {Value{.name = "x", .dtype = DType::kFloat32, .dims = {{leading, {.symbol = SymbolId(1)}}}},
                   Value{.name = "y"}};
    body.inputs = {ValueId(0)};
    body.outputs = {ValueId(1)};
    body.nodes = {Node{.op_type = "Relu", .inputs = {ValueId(0)}, .outputs = {ValueId(1)}}};
    made->bodies = {body};
    return made;
  };
  const auto id = [](const std::shared_ptr<const Graph>& bound, const DimBindings& dims) {
    return Analyse(bound, {.dims = dims}).value().profile_id;
  };
  const auto fixed = graph({.size = 8});
  EXPECT_EQ(id(fixed, {.dims = {{"seq", 4}}}), id(fixed, {.batch = 8, .dims = {{"seq", 4}}})) << "the file's batch";
  EXPECT_NE(id(fixed, {.dims = {{"seq", 4}}}), id(fixed, {.batch = 9, .dims = {{"seq", 4}}}));
  EXPECT_NE(id(fixed, {.dims = {{"seq", 4}}}), id(fixed, {.dims = {{"seq", 5}}}));
  const auto open = graph({.symbol = SymbolId(0)});
  EXPECT_EQ(id(open, {.dims = {{"seq", 4}}}), id(open, {.batch = 1, .dims = {{"seq", 4}}})) << "an open batch is 1";
  EXPECT_EQ(id(open, {.batch = 6, .dims = {{"seq", 4}}}), id(open, {.dims = {{"seq", 4}, {"batch", 6}}}));
}

TEST(Predictor, AnalyseRefusesNoGraph) {
  EXPECT_EQ(Analyse(nullptr, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Predictor::Prior()->Predict(nullptr, {}, A100()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Predictor, ABundleChangesTheQuantitiesThatItHolds) {
  const JobProfile job = Profile(64);
  const Demand prior = Predictor::Prior()->Predict(job, A100());
  const auto plain = Load(Constant(Quantity::kStepTime, 0)),
             twice = Load(Constant(Quantity::kStepTime, std::log(2.0f)));
  ASSERT_TRUE(plain.ok() && twice.ok()) << plain.status();
  const Demand one = (*plain)->Predict(job, A100()), two = (*twice)->Predict(job, A100());
  EXPECT_NEAR(static_cast<double>(two.step_time_us.estimate), 2.0 * static_cast<double>(one.step_time_us.estimate), 3);
  EXPECT_EQ(two.gpu_util_pct, prior.gpu_util_pct);  // the bundle says nothing of it
  EXPECT_EQ(two.mem_mib, prior.mem_mib);
  EXPECT_NE(two.flags & kDemandUncalibrated, 0u);
  EXPECT_GT((*twice)->bytes_held(), Predictor::Prior()->bytes_held());
  EXPECT_TRUE(ValidateDemand(two).ok());
}

// Neither of time: FLOPs over the peak of the precision, whatever was learned.
TEST(Predictor, NoBundleMakesAStepFasterThanThePeak) {
  const JobProfile job = Profile(8192, 8192);
  const auto fast = *Load(Constant(Quantity::kStepTime, -5.0F));
  const Demand demand = fast->Predict(job, A100());
  const double flops = job.cost.totals.forward.flops + job.cost.totals.backward.flops;
  EXPECT_GE(static_cast<double>(demand.step_time_us.estimate), flops / (static_cast<double>(A100().fp32_gflops) * 1e3));
  EXPECT_GE(demand.step_time_us.upper, demand.step_time_us.estimate);
}

// Of half precision that is the best that was measured and what the power sustains, on every type.
TEST(Predictor, NoBundleMakesProductsFasterThanTheChipSustains) {
  const JobProfile job = Profile(8192, 8192, 4, {.precision = Precision::kBf16});
  const auto fast = *Load(Constant(Quantity::kStepTime, -5.0F));
  const double tflop = (job.cost.totals.forward.flops + job.cost.totals.backward.flops) / 1e12;
  const std::pair<const char*, double> most[] = {
      {"a100-80gb", .87 * 312}, {"a100-pcie-80gb", .82 * 312}, {"l40s", .74 * 362.1}, {"h100-sxm", .87 * 989.4}};
  for (const auto& [name, rate] : most) {
    const auto catalogue = Catalogue::Default();
    const Demand demand = fast->Predict(job, catalogue->at(*catalogue->Find(name)));
    EXPECT_GE(static_cast<double>(demand.step_time_us.estimate) / 1e6, tflop / rate) << name;
  }
}

TEST(Predictor, NoBundleTakesAwayMemoryThatEveryFrameworkHoldsAtOnce) {
  const JobProfile job = Profile(64, 8192);
  const auto low = *Load(Constant(Quantity::kMemory, -5.0F));
  const int64_t least = (job.memory.least >> 20) + A100().context_mib;
  EXPECT_GE(low->Predict(job, A100()).mem_mib.estimate, least);
  EXPECT_GE(low->Predict(job, A100()).mem_mib.upper, low->Predict(job, A100()).mem_mib.estimate);
  EXPECT_GT(Predictor::Prior()->Predict(job, A100()).mem_mib.estimate, least);  // else nothing was taken away
}

TEST(Predictor, PercentagesAreCappedAndPowerIsKnownOnlyFromABundle) {
  const JobProfile job = Profile(64);
  const Demand high = (*Load(Constant(Quantity::kGpuUtil, 50)))->Predict(job, A100());
  EXPECT_EQ(high.gpu_util_pct.estimate, 100);
  EXPECT_EQ(high.gpu_util_pct.upper, 100);
  EXPECT_EQ(high.power_w, Bounded{});
  const Demand power = (*Load(Constant(Quantity::kPower, 0)))->Predict(job, A100());
  EXPECT_GT(power.power_w.estimate, 0);
  EXPECT_LT(power.power_w.estimate, 400);
}

TEST(Predictor, TheDefaultGivesAValidDemandOnEveryCataloguedGpu) {
  const auto predictor = Predictor::Default();
  for (const RunMode mode : {RunMode::kTraining, RunMode::kInference}) {
    const JobProfile job = Profile(64, 1024, 4, {.mode = mode});
    for (const GpuType& gpu : Catalogue::Default()->types()) {
      const Demand demand = predictor->Predict(job, gpu);
      EXPECT_TRUE(ValidateDemand(demand).ok()) << gpu.name << ": " << ValidateDemand(demand);
      EXPECT_EQ(demand.power_w, Bounded{}) << gpu.name;  // the public runs with power are of one GPU type
    }
  }
}

TEST(Predictor, TheDefaultSaysWhenAJobIsUnlikeWhatItWasTrainedOn) {
  const auto predictor = Predictor::Default();
  const Demand tiny = predictor->Predict(Profile(1, 2, 1), A100());
  EXPECT_NE(tiny.flags & kDemandOutside, 0u);
  EXPECT_GT(tiny.distance, 1);
}

// Where a step is a few launches, trees that only large jobs taught fade, but not towards more. The built-in ones may
// still read how much of a step is launches, which falls as the batch grows: a seventh is theirs.
TEST(Predictor, OneSampleTakesNoLongerThanSixtyFour) {
  constexpr double kOfTrees = 1.15;
  const auto predictor = Predictor::Default();
  const auto holds = [&](const char* name, const RunSpec& run, const auto& profile) {
    const JobProfile one = profile(1), many = profile(64);
    for (const GpuType& gpu : Catalogue::Default()->types()) {
      EXPECT_LE(static_cast<double>(predictor->Predict(one, gpu).step_time_us.estimate),
                kOfTrees * static_cast<double>(predictor->Predict(many, gpu).step_time_us.estimate))
          << name << " on " << gpu.name << ", " << Name(run.mode) << ", " << Name(run.precision) << ", "
          << Name(run.framework);
    }
  };
  for (const RunMode mode : {RunMode::kTraining, RunMode::kInference}) {
    for (const Precision precision : {Precision::kFp32, Precision::kAmpFp16, Precision::kBf16}) {
      for (const Framework framework : {Framework::kPyTorch, Framework::kPyTorchCompiled, Framework::kTensorFlow}) {
        RunSpec run = {.mode = mode, .precision = precision, .framework = framework};
        for (const int64_t width : {8, 128, 2048}) {
          holds("a perceptron", run, [&](int64_t batch) { return Profile(batch, width, 6, run); });
        }
        for (const char* net : {"shufflenet_v2_x1_0", "dqn_atari", "bert_tiny", "dcgan_discriminator"}) {
          const auto graph = ReadOnnxFile(std::string(HORUS_SOURCE_DIR) + "/examples/models/graphs/" + net + ".onnx");
          ASSERT_TRUE(graph.ok()) << graph.status();
          holds(net, run, [&](int64_t batch) {
            run.dims = {.batch = batch, .dims = {}};
            if (net == std::string_view("bert_tiny")) run.dims.dims = {{"seq", 64}};
            return Analyse(*graph, run).value();
          });
        }
      }
    }
  }
}

TEST(Predictor, ExplanationsAddUpToThePrediction) {
  const JobProfile job = Profile(64);
  for (const Explanation& one : Predictor::Default()->Explain(job, A100())) {
    if (one.parts.distance > 0) continue;
    double margin = MarginOf(InfoOf(one.quantity).link, one.parts.fitted);
    for (const FeatureShift& shift : one.shifts) margin += shift.shift;
    const double value = std::min(ApplyLink(InfoOf(one.quantity).link, margin), InfoOf(one.quantity).most);
    // The forest's mean over its training rows is near, not at, zero.
    EXPECT_NEAR(std::log1p(value), std::log1p(one.parts.value), 0.15) << InfoOf(one.quantity).name;
  }
}

TEST(Predictor, MeasuredBeatsPredictedInANewPredictor) {
  const JobProfile job = Profile(64);
  const auto before = Predictor::Default();
  MeasuredDemands measured;
  ASSERT_TRUE(measured.Add(job.profile_id, "a100-40gb", {.gpu_util_pct = 33, .step_time_us = 4321}).ok());
  const auto after = before->WithMeasured(measured);
  const Demand demand = after->Predict(job, A100());
  EXPECT_EQ(demand.gpu_util_pct.estimate, 33);
  EXPECT_EQ(demand.step_time_us.estimate, 4321);
  EXPECT_NE(demand.flags & kDemandMeasured, 0u);
  EXPECT_EQ(before->Predict(job, A100()).flags & kDemandMeasured, 0u);  // the old one is as it was
  EXPECT_EQ(after->epoch(), 1u);
  EXPECT_EQ(before->epoch(), 0u);
}

TEST(Predictor, RefusesBundlesOfAnotherSchemaOfOtherTargetsAndDamagedOnes) {
  Bundle bundle = Constant(Quantity::kStepTime, 0);
  bundle.schema_hash ^= 1;
  EXPECT_EQ(Load(bundle).status().code(), absl::StatusCode::kFailedPrecondition);
  bundle = Constant(Quantity::kStepTime, 0);
  bundle.targets[0].name = "colour";
  EXPECT_EQ(Load(bundle).status().code(), absl::StatusCode::kDataLoss);
  const std::vector<uint8_t> garbage(100, 0x5A);
  EXPECT_FALSE(Predictor::FromBundle(std::span<const uint8_t>(garbage)).ok());
  EXPECT_FALSE(Predictor::FromBundle(std::span<const uint8_t>()).ok());
}

TEST(DemandCache, AnotherLayoutIsAnotherRun) {
  EXPECT_NE(KeyOf(Graph(), {.layout = Layout::kNchw}), KeyOf(Graph(), {.layout = Layout::kNhwc}));
}

}  // namespace
}  // namespace horus
