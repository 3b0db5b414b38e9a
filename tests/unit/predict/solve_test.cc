// SPDX-License-Identifier: Apache-2.0
// Solving for what fits: the guarantee on any bound, and on nets of the zoo over the whole catalogue.
#include "predict/solve.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "device/catalogue.h"
#include "graph/reader.h"

namespace horus {
namespace {

constexpr int64_t kMax = kDefaultSolveMax;
constexpr int kLogMax = 20;

std::shared_ptr<const Graph> Net(const std::string& name) {
  auto graph = ReadOnnxFile(std::string(HORUS_SOURCE_DIR) + "/examples/models/graphs/" + name + ".onnx");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : nullptr;
}

std::vector<GpuType> Types() {
  const auto catalogue = Catalogue::Default();
  return {catalogue->types().begin(), catalogue->types().end()};
}

GpuType Type(const std::string& name) {
  const auto catalogue = Catalogue::Default();
  return catalogue->at(*catalogue->Find(name));
}

// One column whose bound is start + slope x value.
UpperBounds Line(int64_t start, int64_t slope) {
  return [start, slope](int64_t value) -> absl::StatusOr<std::vector<int64_t>> {
    return std::vector<int64_t>{start + slope * value};
  };
}

absl::StatusOr<Solution> SolveOne(const UpperBounds& bounds, int64_t free_mib, int64_t max_value = kMax) {
  const SolveTarget target{.column = 0, .free_mib = free_mib};
  absl::StatusOr<std::vector<Solution>> solutions = SolveLargest(bounds, {&target, 1}, max_value);
  if (!solutions.ok()) return solutions.status();
  return solutions->front();
}

TEST(SolveLargest, FindsTheLastValueUnderALine) {
  for (const int64_t slope : {1, 3, 80, 5'000}) {
    for (const int64_t free : {1'000, 1'001, 16'384, 40'960, 184'320}) {
      const auto solution = SolveOne(Line(900, slope), free);
      ASSERT_TRUE(solution.ok()) << solution.status();
      const int64_t expected = (free - 900) / slope;
      EXPECT_EQ(solution->largest, expected);
      EXPECT_EQ(solution->next, expected + 1);
      EXPECT_EQ(solution->end, SolveEnd::kMemory);
      EXPECT_EQ(solution->short_mib, 900 + slope * (expected + 1) - free);
      EXPECT_EQ(solution->upper_mib, expected == 0 ? 0 : 900 + slope * expected);
    }
  }
}

TEST(SolveLargest, StopsAtTheMaximum) {
  for (const int64_t most : {int64_t{1}, int64_t{7}, int64_t{1000}, kMostSolveMax}) {
    const auto solution = SolveOne(Line(10, 0), 10, most);
    ASSERT_TRUE(solution.ok());
    EXPECT_EQ(solution->largest, most);
    EXPECT_EQ(solution->end, SolveEnd::kMaximum);
    EXPECT_EQ(solution->next, 0);
    EXPECT_EQ(solution->upper_mib, 10);
  }
}

TEST(SolveLargest, SaysByHowMuchTheLeastValueIsOver) {
  const auto solution = SolveOne(Line(900, 100), -500);
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(*solution, (Solution{.largest = 0, .next = 1, .upper_mib = 0, .short_mib = 1'500}));
}

// Steps up and down that no order can be relied on; the values above `refused_from` contradict the graph.
UpperBounds Rugged(uint64_t seed, int64_t refused_from, std::set<int64_t>* tried) {
  return [=](int64_t value) -> absl::StatusOr<std::vector<int64_t>> {
    EXPECT_TRUE(tried->insert(value).second) << value << " was evaluated twice";
    if (value >= refused_from) return InvalidArgument("refused %d", value);
    const auto noise = static_cast<int64_t>(CombineHash(seed, static_cast<uint64_t>(value)) % 64);
    return std::vector<int64_t>{700 + 3 * value + noise, 400 + 3 * value - noise};
  };
}

TEST(SolveLargest, HoldsItsGuaranteeOnRuggedBounds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const int64_t refused_from = seed % 3 == 0 ? 1000 + static_cast<int64_t>(seed) : 2 * kMax;
    std::vector<SolveTarget> targets;
    for (size_t i = 0; i < 12; ++i) targets.push_back({i % 2, 300 + static_cast<int64_t>(i * i * 61 + seed)});
    std::set<int64_t> tried;
    const auto solutions = SolveLargest(Rugged(seed, refused_from, &tried), targets, kMax);
    ASSERT_TRUE(solutions.ok()) << solutions.status();
    for (size_t i = 0; i < targets.size(); ++i) {
      std::set<int64_t> ignored;
      const UpperBounds bounds = Rugged(seed, refused_from, &ignored);
      const Solution& solution = (*solutions)[i];
      EXPECT_EQ(solution.next, solution.largest + 1);
      if (solution.largest > 0) {
        const int64_t upper = bounds(solution.largest)->at(targets[i].column);
        EXPECT_LE(upper, targets[i].free_mib);
        EXPECT_EQ(upper, solution.upper_mib);
      }
      const auto next = bounds(solution.next);
      ASSERT_EQ(solution.end, next.ok() ? SolveEnd::kMemory : SolveEnd::kGraph);
      if (next.ok()) {
        EXPECT_EQ(next->at(targets[i].column) - targets[i].free_mib, solution.short_mib);
        EXPECT_GT(solution.short_mib, 0);
      } else {
        EXPECT_EQ(solution.message, "refused " + std::to_string(solution.next));
      }
    }
  }
}

TEST(SolveLargest, AnswersDoNotDependOnTheOtherTargets) {
  std::vector<SolveTarget> targets;
  for (int64_t i = 0; i < 40; ++i) targets.push_back({0, 700 + 37 * i * i});
  std::set<int64_t> tried;
  const auto together = SolveLargest(Rugged(7, 2 * kMax, &tried), targets, kMax);
  ASSERT_TRUE(together.ok());
  for (size_t i = 0; i < targets.size(); ++i) {
    std::set<int64_t> own;
    const auto alone = SolveOne(Rugged(7, 2 * kMax, &own), targets[i].free_mib);
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ(*alone, (*together)[i]) << i;
    EXPECT_LE(own.size(), size_t{kLogMax + 1 + 3 * kLogMax});
  }
}

TEST(SolveLargest, BracketsHalveOnBoundsThatMisleadInterpolation) {
  int evaluations = 0;
  const UpperBounds cliff = [&](int64_t value) -> absl::StatusOr<std::vector<int64_t>> {
    ++evaluations;
    return std::vector<int64_t>{value <= 400'000 ? 1 : int64_t{1} << 40};
  };
  const auto solution = SolveOne(cliff, 16'384);
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->largest, 400'000);
  EXPECT_LE(evaluations, kLogMax + 1 + 3 * kLogMax);
}

TEST(SolveLargest, FindsARangeThatBeginsAboveOne) {
  const UpperBounds signal = [](int64_t value) -> absl::StatusOr<std::vector<int64_t>> {
    if (value < 400) return InvalidArgument("%d samples are shorter than the filter", value);
    return std::vector<int64_t>{10 * value};
  };
  EXPECT_EQ(SolveOne(signal, 50'000)->largest, 5'000);
  EXPECT_EQ(SolveOne(signal, 4'500)->largest, 450);  // below the first power of two in the range
  const auto none = SolveOne(signal, 3'000);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, (Solution{.largest = 0, .next = 400, .upper_mib = 0, .short_mib = 1'000}));
}

TEST(SolveLargest, ReportsWhyNoValueIsTaken) {
  const UpperBounds none = [](int64_t value) -> absl::StatusOr<std::vector<int64_t>> {
    return InvalidArgument("refused %d", value);
  };
  const auto solution = SolveOne(none, 1'000);
  EXPECT_EQ(solution.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(solution.status().message(), "refused 1");
}

TEST(SolveLargest, PassesOnOtherErrorsAndStopsWhenCancelled) {
  const UpperBounds broken = [](int64_t value) -> absl::StatusOr<std::vector<int64_t>> {
    if (value == 8) return absl::InternalError("broken");
    return std::vector<int64_t>{value};
  };
  EXPECT_EQ(SolveOne(broken, 1'000).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(SolveLargest(Line(1, 1), std::vector<SolveTarget>{{1, 9}}, kMax).status().code(),
            absl::StatusCode::kInternal)
      << "a column that the bounds lack";
  int calls = 0;
  const auto cancelled =
      SolveLargest(Line(1, 1), std::vector<SolveTarget>{{0, 900}, {0, 90}}, kMax, [&calls](size_t done, size_t all) {
        EXPECT_LE(done, all);
        return ++calls < 3;
      });
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 3);
}

TEST(SolveLargest, RefusesAMaximumOutOfRange) {
  for (const int64_t most : {int64_t{-1}, int64_t{0}, kMostSolveMax + 1}) {
    EXPECT_EQ(SolveOne(Line(1, 1), 9, most).status().code(), absl::StatusCode::kInvalidArgument) << most;
  }
}

struct ZooCase {
  std::string net;
  std::string dim;
  RunSpec run;
};

std::vector<ZooCase> ZooCases() {
  std::vector<ZooCase> cases = {
      {"resnet50", "batch", {}},
      {"mobilenet_v2", "batch", {.mode = RunMode::kInference}},
      {"bert_small", "seq", {.optimizer = Optimizer::kAdamW}},
      {"lstm_wikitext2", "batch", {}},
      {"tinyllama_1b1", "seq", {.precision = Precision::kAmpBf16, .optimizer = Optimizer::kAdam}},
  };
  cases[2].run.dims.batch = 8;
  cases[3].run.dims.dims = {{"seq", 35}};
  return cases;
}

TEST(SolveDimension, TheAnswerFitsAndTheNextValueDoesNotOnEveryGpu) {
  const std::vector<GpuType> types = Types();
  const auto predictor = Predictor::Prior();
  std::vector<SolveDevice> devices;
  for (size_t i = 0; i < types.size(); ++i) devices.push_back({i, i % 2 == 0 ? 0 : 3'000});
  for (const ZooCase& zoo : ZooCases()) {
    SCOPED_TRACE(zoo.net + " " + zoo.dim);
    const auto graph = Net(zoo.net);
    const auto solved = SolveDimension(graph, zoo.run, {.dim = zoo.dim}, *predictor, types, devices);
    ASSERT_TRUE(solved.ok()) << solved.status();
    const auto upper = [&](const GpuType& type, int64_t value) -> absl::StatusOr<int64_t> {
      RunSpec run = zoo.run;
      if (zoo.dim == "batch") {
        run.dims.batch = value;
      } else {
        run.dims.dims.emplace_back(zoo.dim, value);
      }
      HORUS_ASSIGN_OR_RETURN(const Demand demand, predictor->Predict(graph, run, type));
      return demand.mem_mib.upper;
    };
    ASSERT_EQ(solved->solutions.size(), devices.size());
    for (size_t i = 0; i < devices.size(); i += 5) {
      const Solution& solution = solved->solutions[i];
      const int64_t free = types[i].mem_mib - devices[i].resident_mib;
      if (solution.largest > 0) {
        const auto at = upper(types[i], solution.largest);
        ASSERT_TRUE(at.ok()) << at.status();
        EXPECT_LE(*at, free) << types[i].name;
        EXPECT_EQ(*at, solution.upper_mib);
      }
      ASSERT_NE(solution.end, SolveEnd::kMaximum) << types[i].name;
      EXPECT_EQ(solution.next, solution.largest + 1);
      const auto next = upper(types[i], solution.next);
      ASSERT_EQ(solution.end, next.ok() ? SolveEnd::kMemory : SolveEnd::kGraph) << types[i].name;
      if (!next.ok()) continue;
      EXPECT_EQ(*next - free, solution.short_mib) << types[i].name;
    }
    // Doubling is shared; a straight line needs the answer, its neighbour and now and then one more.
    EXPECT_LE(solved->bindings, kLogMax + 1 + 4 * static_cast<int64_t>(devices.size()));
  }
}

TEST(SolveDimension, ResidentsNeverRaiseTheAnswer) {
  const std::vector<GpuType> types = {Type("v100-pcie-16gb")};
  std::vector<SolveDevice> devices;
  for (int64_t mib = 0; mib <= 16'384; mib += 1'024) devices.push_back({0, mib});
  const auto solved = SolveDimension(Net("resnet50"), {}, {}, *Predictor::Prior(), types, devices);
  ASSERT_TRUE(solved.ok()) << solved.status();
  for (size_t i = 1; i < devices.size(); ++i) {
    EXPECT_LE(solved->solutions[i].largest, solved->solutions[i - 1].largest) << devices[i].resident_mib;
  }
  EXPECT_GT(solved->solutions.front().largest, 64);
}

TEST(SolveDimension, ResidentsLargerThanTheDeviceLeaveNothing) {
  const std::vector<GpuType> types = {Type("t4")};
  const std::vector<SolveDevice> devices = {{0, 20'000}, {0, 30'000}};
  const auto solved = SolveDimension(Net("resnet18"), {}, {}, *Predictor::Prior(), types, devices);
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_EQ(solved->solutions[0].largest, 0);
  EXPECT_EQ(solved->solutions[0].end, SolveEnd::kMemory);
  EXPECT_GT(solved->solutions[0].short_mib, 20'000 - types[0].mem_mib);
  EXPECT_EQ(solved->solutions[1].short_mib, solved->solutions[0].short_mib + 10'000);
  EXPECT_EQ(solved->bindings, 1);
}

TEST(SolveDimension, APositionTableEndsTheSequence) {
  const std::vector<GpuType> types = {Type("a100-80gb"), Type("h200")};
  const std::vector<SolveDevice> devices = {{0, 0}, {1, 0}};
  for (const auto& [net, longest] : {std::pair("gpt2", 1024), std::pair("bert_base", 512)}) {
    const auto solved = SolveDimension(Net(net), {}, {.dim = "seq"}, *Predictor::Prior(), types, devices);
    ASSERT_TRUE(solved.ok()) << solved.status();
    for (const Solution& solution : solved->solutions) {
      EXPECT_EQ(solution.largest, longest) << net;
      EXPECT_EQ(solution.end, SolveEnd::kGraph) << net;
      EXPECT_EQ(solution.next, longest + 1) << net;
      EXPECT_NE(solution.message.find("node "), std::string::npos) << solution.message;
      EXPECT_NE(solution.message.find(std::to_string(longest)), std::string::npos) << solution.message;
    }
    EXPECT_LE(solved->bindings, 2 * kLogMax + 2);
  }
}

TEST(SolveDimension, RefusesWhatItCannotSolveFor) {
  const auto graph = Net("bert_small");
  const std::vector<GpuType> types = {Type("t4")};
  const auto failure = [&](const RunSpec& run, const SolveRequest& request, const std::vector<SolveDevice>& devices) {
    const auto solved = SolveDimension(graph, run, request, *Predictor::Prior(), types, devices);
    EXPECT_EQ(solved.status().code(), absl::StatusCode::kInvalidArgument) << solved.status();
    return std::string(solved.status().message());
  };
  const std::vector<SolveDevice> one = {{0, 0}};
  const std::string unknown = failure({}, {.dim = "sequence"}, one);
  EXPECT_NE(unknown.find("'sequence'"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("batch or one of 'seq'"), std::string::npos) << unknown;
  const std::string open = failure({}, {.dim = "batch"}, one);
  EXPECT_NE(open.find("a size for 'seq'"), std::string::npos) << "a bound over unknown shapes would be none: " << open;
  RunSpec run;
  run.dims.batch = 4;
  EXPECT_NE(failure(run, {}, one).find("found it bound to 4"), std::string::npos);
  run.dims = {.dims = {{"seq", 64}}};
  EXPECT_NE(failure(run, {.dim = "seq"}, one).find("found it bound to 64"), std::string::npos);
  run.dims = {.dims = {{"batch", 3}}};
  EXPECT_NE(failure(run, {}, one).find("found it bound to 3"), std::string::npos);
  failure({}, {.max_value = 0}, one);
  failure({}, {}, {{1, 0}});
  failure({}, {}, {{0, -1}});
  failure({}, {}, {{0, kMostResidentMib + 1}});
  EXPECT_EQ(SolveDimension(nullptr, {}, {}, *Predictor::Prior(), types, one).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace horus
