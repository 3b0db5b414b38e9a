// SPDX-License-Identifier: Apache-2.0
// The feature row: its schema, its values, and the page of documentation that is made from it.
#include "features/feature_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "device/gpu_type.h"
#include "graph_builder.h"

namespace horus {
namespace {

float Value(const std::vector<float>& row, std::string_view name) {
  for (size_t i = 0; i < row.size(); ++i) {
    if (JobFeatureColumns()[i].name == name) return row[i];
  }
  ADD_FAILURE() << "no column " << name;
  return -1;
}

std::vector<float> Row(GraphBuilder& b, const RunSpec& run = {}) {
  const StepCost cost = CostOfStep(b.shaped(), run);
  return JobFeatures(b.shaped(), cost, MemoryOfStep(b.shaped(), cost, run), run);
}

TEST(FeatureRow, SchemaNamesAreUniqueAndDefined) {
  std::set<std::string_view> names;
  for (const auto columns : {JobFeatureColumns(), DeviceFeatureColumns()}) {
    for (const FeatureColumn& column : columns) {
      EXPECT_TRUE(names.insert(column.name).second) << column.name;
      EXPECT_FALSE(column.unit.empty()) << column.name;
      EXPECT_FALSE(column.definition.empty()) << column.name;
    }
  }
  EXPECT_EQ(names.size(), FeatureCount());
}

TEST(FeatureRow, HoldsTheSixHorusFeaturesFirst) {
  GraphBuilder b;
  BuildPerceptron(b, 8, 64, 3);
  const std::vector<float> row = Row(b);
  ASSERT_EQ(row.size(), JobFeatureColumns().size());
  EXPECT_EQ(row[0], 3 * (8.0f * 127 * 64 + 8 * 64));
  EXPECT_EQ(row[1], 3 * 64 * 64);
  EXPECT_EQ(row[2], 0);
  EXPECT_EQ(row[3], 3);
  EXPECT_EQ(row[4], 3);
  EXPECT_EQ(row[5], 0);
}

TEST(FeatureRow, ValuesAreFiniteAndQuantilesOrdered) {
  GraphBuilder b;
  BuildPerceptron(b, 8, 64, 3);
  const std::vector<float> row = Row(b);
  for (size_t i = 0; i < row.size(); ++i) EXPECT_TRUE(std::isfinite(row[i])) << JobFeatureColumns()[i].name;
  EXPECT_LE(Value(row, "op_flops_p10"), Value(row, "op_flops_p50"));
  EXPECT_LE(Value(row, "op_flops_p90"), Value(row, "op_flops_max"));
  EXPECT_EQ(Value(row, "op_flops_max"), 2.0f * 8 * 64 * 64);
  EXPECT_EQ(Value(row, "batch"), 8);
  EXPECT_EQ(Value(row, "ops_matmul"), 3);
}

TEST(FeatureRow, EmptyGraphGivesARowOfFiniteNumbers) {
  GraphBuilder b;
  for (const float value : Row(b)) EXPECT_TRUE(std::isfinite(value));
}

TEST(FeatureRow, DeviceColumnsCarryTheSpecification) {
  GpuType gpu;
  gpu.sm_count = 108;
  gpu.mem_mib = 40960;
  std::vector<float> out(DeviceFeatureColumns().size(), -1);
  DeviceFeatures({.gpu_util_pct = 42}, {.weights = 1024 * 1024}, gpu, out);
  const auto value = [&out](std::string_view name) {
    for (size_t i = 0; i < out.size(); ++i) {
      if (DeviceFeatureColumns()[i].name == name) return out[i];
    }
    return -1.0f;
  };
  EXPECT_EQ(value("gpu_sm_count"), 108);
  EXPECT_EQ(value("roofline_gpu_util_pct"), 42);
  EXPECT_EQ(value("mem_peak"), 1024 * 1024);
}

TEST(FeatureRow, DocumentationIsMadeFromTheSchema) {
  std::ifstream file(std::string(HORUS_SOURCE_DIR) + "/src/features/FEATURES.md");
  ASSERT_TRUE(file) << "src/features/FEATURES.md is missing";
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::string mark = "<!-- schema -->\n";
  const size_t at = page.find(mark);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.substr(at + mark.size()), FeatureSchemaMarkdown())
      << "src/features/FEATURES.md is stale; the page says how to make it again";
}

}  // namespace
}  // namespace horus
