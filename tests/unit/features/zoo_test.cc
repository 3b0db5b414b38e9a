// SPDX-License-Identifier: Apache-2.0
// Every net of examples/models: parameters exact, forward FLOPs within 2 % of an independent count and of the
// published figure, everything understood.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "features/cost.h"
#include "features/memory.h"
#include "graph/reader.h"
#include "graph/shaped.h"

namespace horus {
namespace {

constexpr double kTolerance = 0.02;
const std::string kZoo = std::string(HORUS_SOURCE_DIR) + "/examples/models/";

using Row = std::map<std::string, std::string>;

std::vector<std::string> Split(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char ch : line) {
    if (ch == '"') {
      quoted = !quoted;
    } else if (ch == ',' && !quoted) {
      fields.emplace_back();
    } else if (ch != '\r') {
      fields.back() += ch;
    }
  }
  return fields;
}

std::vector<Row> ReadRows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::vector<Row> rows;
  std::getline(file, line);
  const std::vector<std::string> names = Split(line);
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = Split(line);
    Row row;
    for (size_t i = 0; i < names.size() && i < fields.size(); ++i) row[names[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

std::vector<Row> Zoo() { return ReadRows(kZoo + "zoo.csv"); }

// "tokens: batch=1 x seq=128" binds batch and seq to the sizes of the published figures.
DimBindings DefaultDims(const std::string& inputs) {
  DimBindings bindings;
  std::map<std::string, int64_t> seen;
  for (size_t at = inputs.find('='); at != std::string::npos; at = inputs.find('=', at + 1)) {
    size_t begin = at;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(inputs[begin - 1])) != 0 || inputs[begin - 1] == '_'))
      --begin;
    seen[inputs.substr(begin, at - begin)] = std::stoll(inputs.substr(at + 1));
  }
  for (const auto& [name, size] : seen) {
    if (name == "batch") {
      bindings.batch = size;
    } else {
      bindings.dims.emplace_back(name, size);
    }
  }
  return bindings;
}

class ZooTest : public testing::TestWithParam<Row> {
 protected:
  // The net's cost under `run` at its default sizes, times `factor` for the batch.
  StepCost Cost(RunSpec run, int64_t factor = 1) {
    const Row& row = GetParam();
    const auto graph = ReadOnnxFile(kZoo + row.at("file"));
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (!graph.ok()) return {};
    run.dims = DefaultDims(row.at("inputs"));
    if (run.dims.batch > 0) run.dims.batch *= factor;
    const auto shaped = BindShapes(*graph, run.dims);
    EXPECT_TRUE(shaped.ok()) << shaped.status();
    if (!shaped.ok()) return {};
    StepCost cost = CostOfStep(*shaped, run);
    memory_ = MemoryOfStep(*shaped, cost, run);
    return cost;
  }
  StepMemory memory_;
};

TEST_P(ZooTest, ParametersAreExact) { EXPECT_EQ(Cost({}).parameters, std::stod(GetParam().at("parameters_exact"))); }

TEST_P(ZooTest, ForwardFlopsAgreeWithTheIndependentCountAndThePublishedFigure) {
  const Row& row = GetParam();
  const double flops = Cost({.mode = RunMode::kInference}).totals.forward.flops;
  if (!row.at("own_forward_macs").empty()) {
    const double own = 2 * std::stod(row.at("own_forward_macs"));
    EXPECT_NEAR(flops / own, 1, kTolerance) << "independent count";
  }
  if (!row.at("published_forward_gflops").empty()) {
    const double published =
        std::stod(row.at("published_forward_gflops")) * 2 / std::stod(row.at("multiply_add_counts"));
    EXPECT_NEAR(flops / 1e9 / published, 1, kTolerance) << "published figure";
  }
}

TEST_P(ZooTest, EveryOperatorIsUnderstood) {
  const StepCost cost = Cost({});
  EXPECT_EQ(cost.coverage.ops, cost.coverage.ops_known);
  for (const auto& [name, count] : cost.coverage.unknown) ADD_FAILURE() << count << " unknown " << name;
}

// Fused attention computes its scores again; PyTorch 1 has none.
TEST_P(ZooTest, BackwardProductsAreOneToTwoTimesForward) {
  const StepCost cost = Cost({.framework = Framework::kPyTorch1});
  EXPECT_LE(cost.totals.backward.flops, 2.0 * cost.totals.forward.flops);
  EXPECT_GE(cost.totals.backward.flops, 0.9 * cost.totals.forward.flops);
}

TEST_P(ZooTest, MemoryAndFlopsGrowWithTheBatch) {
  const StepCost one = Cost({});
  const StepMemory small = memory_;
  const StepCost four = Cost({}, 4);
  EXPECT_GE(four.totals.forward.flops, one.totals.forward.flops);
  EXPECT_GE(memory_.saved_total, small.saved_total);
  EXPECT_GE(memory_.Upper(), small.Upper());
  EXPECT_EQ(memory_.weights, small.weights);
}

INSTANTIATE_TEST_SUITE_P(Models, ZooTest, testing::ValuesIn(Zoo()),
                         [](const auto& net) { return net.param.at("net"); });

// Operators whose number does not depend on the exporter's version, on folded normalisations or on how it writes
// shapes.
const std::set<std::string> kStableOperators = {"Clip", "Conv",   "Erf",       "Gemm",    "HardSigmoid",
                                                "Relu", "MatMul", "HardSwish", "MaxPool", "Softmax"};

// "{Conv: 5, Gemm: 3}", the stable operators alone.
std::map<std::string, int64_t> ReadHistogram(std::string text) {
  for (char& ch : text) ch = ch == '{' || ch == '}' || ch == ',' || ch == ':' ? ' ' : ch;
  std::istringstream words(text);
  std::map<std::string, int64_t> histogram;
  std::string name;
  int64_t count = 0;
  while (words >> name >> count) {
    if (kStableOperators.count(name) != 0) histogram[name] = count;
  }
  return histogram;
}

// The table's rows of one name differ by author and opset; a net is the same as one of them. Language models of one
// name are exported with another head there.
TEST(Zoo, OperatorsAndParametersAreThoseOfPublishedExports) {
  const std::vector<Row> published = ReadRows(HORUS_SHARED_DATA "/onnx/onnx_model_zoo_stats.csv");
  if (published.empty()) {
    GTEST_SKIP() << "SKIPPED: no " HORUS_SHARED_DATA
                    "/onnx/onnx_model_zoo_stats.csv (CMake: -DHORUS_SHARED_DATA=DIR), nothing was compared";
  }
  std::map<std::string, std::vector<const Row*>> by_name;
  for (const Row& row : published) {
    if (row.at("task") == "Computer_Vision") by_name[row.at("model_name")].push_back(&row);
  }
  int compared = 0;
  for (const Row& net : Zoo()) {
    const auto found = by_name.find(net.at("net"));
    if (found == by_name.end()) continue;
    const auto graph = ReadOnnxFile(kZoo + net.at("file"));
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto shaped = BindShapes(*graph, DefaultDims(net.at("inputs")));
    ASSERT_TRUE(shaped.ok()) << shaped.status();
    std::map<std::string, int64_t> own;
    for (const Op& op : shaped->ops) {
      if (kStableOperators.count(op.node->op_type) != 0) ++own[op.node->op_type];
    }
    const double parameters = CostOfStep(*shaped, {}).parameters;
    const auto equal = [&](const Row* row) {
      return std::stod(row->at("parameters")) == parameters && ReadHistogram(row->at("ops")) == own;
    };
    EXPECT_TRUE(std::any_of(found->second.begin(), found->second.end(), equal)) << net.at("net");
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

TEST(Zoo, IsThere) { EXPECT_GE(Zoo().size(), 24u); }

}  // namespace
}  // namespace horus
