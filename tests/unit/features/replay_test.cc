// SPDX-License-Identifier: Apache-2.0
// The replay against what PyTorch allocates in the same training steps, recorded by
// bench/quality/record_allocations.py.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "features/cost.h"
#include "features/memory.h"
#include "graph/reader.h"
#include "graph/shaped.h"

namespace horus {
namespace {

// Largest differences over the nets recorded: live bytes follow the rules of autograd, reserved ones also the order of
// requests that share a kernel here and not there.
constexpr double kLiveTolerance = 0.035;
constexpr double kReservedTolerance = 0.16;

const std::string kSource = HORUS_SOURCE_DIR;

struct Recorded {
  std::string net;
  int64_t batch = 0;
  double peak = 0;
  double reserved = 0;
};

std::vector<Recorded> ReadRecorded() {
  std::ifstream file(kSource + "/tests/unit/features/pytorch_allocations.csv");
  std::string line;
  std::getline(file, line);
  std::vector<Recorded> rows;
  while (std::getline(file, line)) {
    for (char& ch : line) ch = ch == ',' ? ' ' : ch;
    std::istringstream words(line);
    Recorded row;
    words >> row.net >> row.batch >> row.peak >> row.reserved;
    rows.push_back(row);
  }
  return rows;
}

class ReplayOf : public testing::TestWithParam<Recorded> {};

TEST_P(ReplayOf, AgreesWithWhatPyTorchAllocates) {
  const Recorded& recorded = GetParam();
  const auto graph = ReadOnnxFile(kSource + "/examples/models/graphs/" + recorded.net + ".onnx");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const RunSpec run{
      .optimizer = Optimizer::kMomentum, .framework = Framework::kPyTorch1, .dims = {.batch = recorded.batch}};
  const auto shaped = BindShapes(*graph, run.dims);
  ASSERT_TRUE(shaped.ok()) << shaped.status();
  const ReplayedStep step = ReplayStep(*shaped, CostOfStep(*shaped, run), run);
  const double live = step.weights + step.gradients + step.optimizer + step.inputs + step.saved + step.transient;
  EXPECT_NEAR(live / recorded.peak, 1, kLiveTolerance);
  EXPECT_NEAR(step.reserved / recorded.reserved, 1, kReservedTolerance);
}

INSTANTIATE_TEST_SUITE_P(Nets, ReplayOf, testing::ValuesIn(ReadRecorded()),
                         [](const auto& row) { return row.param.net + "_" + std::to_string(row.param.batch); });

}  // namespace
}  // namespace horus
