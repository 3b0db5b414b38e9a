// SPDX-License-Identifier: Apache-2.0
// Job tables: a name, a family and a run in every row; what was measured of the jobs.
#include <gmock/gmock.h>

#include <string>

#include "lab/io/dataset_file.h"

namespace horus {
namespace {

TEST(JobTable, ReadsEveryColumn) {
  const auto jobs = ParseJobTable("folder/j.csv",
                                  "job,graph,family,batch,dims,mode,precision,optimizer,framework,checkpoint_segments,"
                                  "replicas,note\nLM (batch size 5),nets/a.onnx,lstm,5,seq=35,inference,amp,adam,"
                                  "pytorch-1,2,3,x\nplain,/b.onnx,f,,,,,,,,,\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  const TableJob& job = jobs->front();
  EXPECT_EQ(job.name, "LM (batch size 5)");
  EXPECT_EQ(job.family, "lstm");
  EXPECT_EQ(job.model.path, "folder/nets/a.onnx");
  EXPECT_EQ(job.model.run.dims.batch, 5);
  EXPECT_EQ(job.model.run.mode, RunMode::kInference);
  EXPECT_EQ(job.model.run.framework, Framework::kPyTorch1);
  EXPECT_EQ(job.model.run.data_parallel, 3);
  EXPECT_EQ(job.where, "folder/j.csv: row 1");
  EXPECT_EQ(jobs->back().model.path, "/b.onnx");
  EXPECT_EQ(jobs->back().model.run, RunSpec());
}

TEST(JobTable, ErrorsNameRowColumnExpectedAndFound) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string_view> words) {
    const absl::Status status = ParseJobTable("j.csv", text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    for (const std::string_view word : words) {
      EXPECT_NE(std::string(status.message()).find(word), std::string::npos) << status;
    }
  };
  const std::string header = "job,graph,family,batch\n";
  refused(header + "a,x.onnx,f,1\na,y.onnx,f,1\n", {"j.csv: row 2: job", "row 1", "'a'"});
  refused(header + ",x.onnx,f,1\n", {"j.csv: row 1: job"});
  refused(header + "a,x.onnx,,1\n", {"family"});
  refused(header + "a,x.onnx,f,0\n", {"batch", "'0'"});
  refused("job,graph\n", {"header", "column family"});
  refused("graph,family\n", {"header", "column job"});
  refused("job,graph,family,gpu\n", {"header", "'gpu'"});
}

TEST(TableDemands, ReplaceWhatWasMeasuredAndLeaveTheRest) {
  auto jobs = ParseJobTable("j.csv", "job,family\na,f\nb,f\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  const absl::Status read = ParseTableDemands("d.csv",
                                              "job,gpu,gpu_util_pct,step_time_us,operator_us,kernels,note\n"
                                              "b,T4,12.5,,,100,x\nb,v100-16gb,,2000,7,,\n",
                                              *Catalogue::Default(), *jobs);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_TRUE(jobs->front().measured.empty());
  const std::vector<TableDemand>& measured = jobs->back().measured;
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_EQ(measured[0].gpu, Catalogue::Default()->Find("t4").value());
  const Demand predicted{.profile_id = 7, .gpu_util_pct = {80, 90}, .step_time_us = {500, 600}, .operator_us = 3};
  Demand expected = predicted, replaced = predicted;
  expected.gpu_util_pct = {12.5F, 12.5F};
  expected.traits[static_cast<size_t>(Trait::kLogKernels)] = 2;
  measured[0].Replace(replaced);
  EXPECT_EQ(replaced, expected);
  expected = replaced = predicted;
  expected.step_time_us = {2000, 2000};
  expected.operator_us = 7;
  measured[1].Replace(replaced);
  EXPECT_EQ(replaced, expected);
}

TEST(TableDemands, ErrorsNameRowColumnExpectedAndFound) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string_view> words) {
    auto jobs = ParseJobTable("j.csv", "job,family\na,f\n").value();
    const absl::Status status = ParseTableDemands("d.csv", text, *Catalogue::Default(), jobs);
    EXPECT_FALSE(status.ok()) << text;
    for (const std::string_view word : words) {
      EXPECT_NE(std::string(status.message()).find(word), std::string::npos) << status;
    }
  };
  const std::string header = "job,gpu,gpu_util_pct,step_time_us\n";
  refused(header + "b,t4,1,1\n", {"d.csv: row 1: job: expected a name of the table of jobs, found 'b'"});
  refused(header + "a,t9,1,1\n", {"d.csv: row 1: gpu", "'t9'"});
  refused(header + "a,t4,1,1\na,Tesla T4,1,1\n", {"d.csv: row 2: gpu: expected each GPU type of a job once"});
  refused(header + "a,t4,101,1\n", {"row 1: gpu_util_pct: expected 0 to 100 per cent, or blank, found '101'"});
  refused(header + "a,t4,1,0\n", {"row 1: step_time_us: expected 1 to", "found '0'"});
  refused(header + "a,t4,x,1\n", {"row 1: gpu_util_pct", "'x'"});
  refused("job,gpu,mem_mib\n", {"header", "'mem_mib'"});
  refused("job,gpu_util_pct\n", {"header", "column gpu"});
}

}  // namespace
}  // namespace horus
