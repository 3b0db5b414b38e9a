// SPDX-License-Identifier: Apache-2.0
// Job tables: a name, a family and a run in every row.
#include "io/job_table.h"

#include <gmock/gmock.h>

#include <string>

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
  refused(header + "a,,f,1\n", {"graph", "ONNX"});
  refused(header + "a,x.onnx,,1\n", {"family"});
  refused(header + "a,x.onnx,f,0\n", {"batch", "'0'"});
  refused("job,graph\n", {"header", "column family"});
  refused("job,graph,family,gpu\n", {"header", "'gpu'"});
}

}  // namespace
}  // namespace horus
