// SPDX-License-Identifier: Apache-2.0
// Datasets of measured runs: every column, every default, and how a wrong cell is named.
#include "lab/io/dataset_file.h"

#include <gtest/gtest.h>

#include <cmath>

namespace horus {
namespace {

constexpr MeasuredColumn kMeasured[] = {{"gpu_util_pct", "per cent", 100, true}, {"mem_mib", "MiB", 1e6, false}};
constexpr std::string_view kFeatures[] = {"one", "two"};

absl::StatusOr<std::vector<DatasetRow>> Parse(const std::string& text) {
  return ParseDataset("folder/t.csv", text, *Catalogue::Default(), kMeasured, kFeatures);
}

TEST(Dataset, ReadsEveryColumn) {
  const auto rows = Parse(
      "graph,net,family,batch,dims,mode,precision,optimizer,framework,checkpoint_segments,replicas,gpu,sharing_mode,"
      "gpu_util_pct,mem_mib,campaign,note\n"
      "nets/a.onnx,alpha,f,32,seq=128; tgt=4 ,inference,amp,adamw,tensorflow,4,2,Tesla "
      "V100-SXM2-16GB,exclusive,41.5,,x,y\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  const DatasetRow& row = rows->front();
  EXPECT_EQ(row.model.path, "folder/nets/a.onnx");  // as seen from the file
  EXPECT_EQ(row.net, "alpha");
  EXPECT_EQ(row.family, "f");
  EXPECT_EQ(row.gpu_name, "v100-sxm2-16gb");
  EXPECT_TRUE(row.gpu.has_value());
  const RunSpec& run = row.model.run;
  EXPECT_EQ(run.dims.batch, 32);
  EXPECT_EQ(run.dims.dims, (std::vector<std::pair<std::string, int64_t>>{{"seq", 128}, {"tgt", 4}}));
  EXPECT_EQ(run.mode, RunMode::kInference);
  EXPECT_EQ(run.precision, Precision::kAmpFp16);
  EXPECT_EQ(run.optimizer, Optimizer::kAdamW);
  EXPECT_EQ(run.framework, Framework::kTensorFlow);
  EXPECT_EQ(run.checkpoint_segments, 4);
  EXPECT_EQ(run.data_parallel, 2);
  EXPECT_EQ(row.measured[0], 41.5);
  EXPECT_TRUE(std::isnan(row.measured[1]));
  EXPECT_EQ(row.where, "folder/t.csv: row 1");
}

TEST(Dataset, BlankAndAbsentColumnsAreDefaults) {
  const auto rows = Parse("gpu,family,graph,gpu_util_pct,batch\nt4,f,x/deep.net.onnx,0,\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->front().net, "deep.net");
  EXPECT_EQ(rows->front().model.run, RunSpec());
  EXPECT_EQ(rows->front().measured[0], 0);
}

TEST(Dataset, AnUndescribedGpuIsOpaque) {
  const auto rows = Parse("graph,family,gpu,mem_mib\na.onnx,f,opaque:card-1,5000\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_FALSE(rows->front().gpu.has_value());
  EXPECT_EQ(rows->front().gpu_name, "opaque:card-1");
}

TEST(Dataset, ARowMayBringItsFeatures) {
  const auto rows = Parse("net,family,gpu,mem_mib,feature.one,feature.two\nn,f,t4,5000,1.5,\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(rows->front().model.path.empty());
  ASSERT_EQ(rows->front().features.size(), 2u);
  EXPECT_EQ(rows->front().features[0], 1.5f);
  EXPECT_TRUE(std::isnan(rows->front().features[1]));
}

TEST(Dataset, ErrorsNameRowColumnUnitExpectedAndFound) {
  const std::string header = "graph,family,gpu,batch,gpu_util_pct,mem_mib,dims,precision,sharing_mode\n";
  const std::string good = "a.onnx,f,t4,8,50,1000,,,\n";
  const auto refused = [&](const std::string& row, std::initializer_list<std::string_view> words) {
    const absl::Status status = Parse(header + good + row).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row;
    EXPECT_NE(status.message().find("t.csv: row 2"), std::string::npos) << status;
    for (const std::string_view word : words)
      EXPECT_NE(std::string(status.message()).find(word), std::string::npos) << status;
  };
  refused("a.onnx,f,t4,0,50,,,,\n", {"batch", "whole number from 1", "'0'"});
  refused("a.onnx,f,t4,8.5,50,,,,\n", {"batch", "'8.5'"});
  refused("a.onnx,f,t4,8,101,,,,\n", {"gpu_util_pct", "100 per cent", "'101'"});
  refused("a.onnx,f,t4,8,nan,,,,\n", {"gpu_util_pct", "'nan'"});
  refused("a.onnx,f,t4,8,-1,,,,\n", {"gpu_util_pct", "'-1'"});
  refused("a.onnx,f,t4,8,50,0,,,\n", {"mem_mib", "above 0", "MiB"});
  refused("a.onnx,f,t4,8,50 %,,,,\n", {"gpu_util_pct", "'50 %'"});
  refused("a.onnx,f,t4,8,,,,,\n", {"at least one of gpu_util_pct, mem_mib"});
  refused("a.onnx,,t4,8,50,,,,\n", {"family"});
  refused("a.onnx,f,abacus,8,50,,,,\n", {"gpu", "abacus", "opaque:NAME"});
  refused("a.onnx,f,,8,50,,,,\n", {"gpu"});
  refused(",f,t4,8,50,,,,\n", {"graph", "ONNX"});
  refused("a.onnx,f,t4,8,50,,seq,,\n", {"dims", "NAME=SIZE", "'seq'"});
  refused("a.onnx,f,t4,8,50,,seq=0,,\n", {"dims", "'seq=0'"});
  refused("a.onnx,f,t4,8,50,,,fp12,\n", {"precision", "fp32", "'fp12'"});
  refused("a.onnx,f,t4,8,50,,,,mps\n", {"sharing_mode", "exclusive", "'mps'"});
}

TEST(Dataset, ErrorsOfTheHeaderNameTheColumn) {
  EXPECT_NE(Parse("graph,family\n").status().message().find("column gpu"), std::string::npos);
  EXPECT_NE(Parse("graph,gpu\n").status().message().find("column family"), std::string::npos);
  const absl::Status unknown = Parse("graph,family,gpu,gpu_utl_pct\n").status();
  EXPECT_NE(unknown.message().find("'gpu_utl_pct'"), std::string::npos);
  EXPECT_NE(unknown.message().find("gpu_util_pct"), std::string::npos);
  EXPECT_FALSE(Parse("graph,family,gpu,feature.three\n").ok());
}

}  // namespace
}  // namespace horus
