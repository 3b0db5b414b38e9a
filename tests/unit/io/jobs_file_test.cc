// SPDX-License-Identifier: Apache-2.0
// jobs.yaml: what each key becomes, and what is refused.
#include "io/jobs_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::vector<JobRequest>> Parse(const std::string& jobs) {
  return ParseJobsFile("dir/jobs.yaml", "version: 1\njobs:\n" + jobs, *Catalogue::Default());
}

std::string ErrorOf(const std::string& jobs) { return std::string(Parse(jobs).status().message()); }

GpuTypeId Type(std::string_view name) { return *Catalogue::Default()->Find(name); }

TEST(JobsFile, ReadsJobsWithoutGpus) {
  const auto jobs = Parse("  - {name: host, gpus: 0, tasks: 2, cpu_cores: 4}\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_TRUE(IsCpuOnly(jobs->front().spec));
  EXPECT_THAT(ErrorOf("  - {gpus: 0, model: a.onnx}\n"), HasSubstr("expected none with 'gpus: 0'"));
}

constexpr char kJob[] = "  - {name: j, demand: {any: {gpu_util_pct: 9, gpu_memory_gib: 1}}, sensitivity: ";

TEST(JobsFile, ReadsSensitivitiesAsCells) {
  const auto jobs = Parse(std::string(kJob) +
                          "[{cpu_cores: 6, memory_gib: 10, speed: 2}, {cpu_cores: 3, memory_gib: 10, speed: 1}]}\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  const Sensitivity* matrix = jobs->front().spec.sensitivity.get();
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->Speed({6'000, 10 << 10}), 2);
  EXPECT_EQ(matrix->Speed({5'999, 10 << 10}), 1);
  EXPECT_FALSE(jobs->front().sensitivity_file);
}

TEST(JobsFile, KnowsWhichFileHasSensitivities) {
  const auto named = Parse(std::string(kJob) + "{file: s.csv}}\n"),
             other = Parse(std::string(kJob) + "{file: /s.csv, profile: p}}\n");
  ASSERT_TRUE(named.ok() && other.ok()) << named.status() << other.status();
  EXPECT_EQ(named->front().sensitivity_file,
            (SensitivityFile{"dir/s.csv", "j", "dir/jobs.yaml:3: jobs[0].sensitivity"}));
  EXPECT_EQ(other->front().sensitivity_file->path, "/s.csv");
  EXPECT_EQ(other->front().sensitivity_file->profile, "p");
}

TEST(JobsFile, NamesWhatIsWrongWithSensitivities) {
  const auto refusal = [](const std::string& value) { return ErrorOf(kJob + value + "}\n"); };
  EXPECT_THAT(refusal("s.csv"),
              HasSubstr("dir/jobs.yaml:3: jobs[0].sensitivity: expected a list of cells, {host_us, cells}, or {file"));
  EXPECT_THAT(refusal("[]"), HasSubstr("sensitivity: expected at least one cell"));
  EXPECT_THAT(refusal("[{cpu_cores: 1, memory_gib: 1}]"), HasSubstr("sensitivity[0]: expected key 'speed'"));
  EXPECT_THAT(refusal("[{cpu_cores: 0, memory_gib: 1, speed: 1}]"),
              HasSubstr("sensitivity[0].cpu_cores: expected more than 0, found '0'"));
  EXPECT_THAT(refusal("[{cpu_cores: 1, memory_gib: 1, speed: -1}]"), HasSubstr("sensitivity[0].speed: expected"));
  EXPECT_THAT(refusal("[{cpu_cores: 1, memory_gib: 1, speed: 1, cell: 2}]"), HasSubstr("cell"));
  EXPECT_THAT(refusal("[{cpu_cores: 1, memory_gib: 1, speed: 1}, {cpu_cores: 1.0, memory_gib: 1, speed: 2}]"),
              HasSubstr("sensitivity[1]: expected cores and memory that no cell before states"));
  EXPECT_THAT(refusal("[{cpu_cores: 1, memory_gib: 1, speed: 0}]"), HasSubstr("jobs[0].sensitivity: sensitivity"));
  EXPECT_THAT(refusal("{profile: p}"), HasSubstr("expected key 'file'"));
  EXPECT_THAT(ErrorOf("  - {gpus: 0, sensitivity: {file: s.csv}}\n"), HasSubstr("expected none with 'gpus: 0'"));
  EXPECT_THAT(ErrorOf("  - {demand: {any: {gpu_util_pct: 9, gpu_memory_gib: 1}}, sensitivity: {file: s.csv}}\n"),
              HasSubstr("expected 'profile', or a job with a name"));
}

TEST(JobsFile, ReadsAlternatives) {
  const auto jobs = Parse(R"(
  - name: given
    cpu_cores: 4
    alternatives:
      - {gpus: 1, rate: 1, demand: {any: {gpu_util_pct: 90, gpu_memory_gib: 4}}}
      - {gpus: 2, rate: 1.8, cpu_cores: 8, demand: {any: {gpu_util_pct: 90, gpu_memory_gib: 4}}}
  - name: predicted
    model: a.onnx
    batch: 32
    alternatives: [{gpus: 1}, {tasks: 2, gpus: 4, batch: 16}, {gpus: 8, rate: 7}]
)");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  const JobRequest& given = jobs->at(0);
  EXPECT_TRUE(given.ways.empty());
  EXPECT_EQ(given.spec.alternatives[1].gpus_per_task, 2);
  EXPECT_EQ(given.spec.alternatives[1].rate, 1.8);
  EXPECT_EQ(given.spec.alternatives[1].cpu_milli, 8000);
  EXPECT_EQ(given.spec.alternatives[0].cpu_milli, JobAlternative::kAsTheJob);
  const JobRequest& predicted = jobs->at(1);
  ASSERT_EQ(predicted.ways.size(), 3u);
  EXPECT_EQ(predicted.ways[0].batch, 32);
  EXPECT_EQ(predicted.ways[1].batch, 16);
  EXPECT_EQ(predicted.ways[1].data_parallel, 8);
  EXPECT_EQ(predicted.spec.alternatives[2].rate, 7);
  EXPECT_THAT(ErrorOf("  - {gpus: 2, alternatives: [{gpus: 1}], model: a.onnx}\n"),
              HasSubstr("gpus: expected in each"));
  EXPECT_THAT(ErrorOf("  - {model: a.onnx, alternatives: [{gpus: 1}]}\n"),
              HasSubstr("alternatives[0]: expected 'batch'"));
  EXPECT_THAT(ErrorOf("  - {alternatives: [{rate: 1}]}\n"), HasSubstr("demand"));
}

TEST(JobsFile, ReadsEveryKey) {
  const auto jobs = Parse(R"(
  - name: full
    id: 77
    kind: inference
    tenant: team-a
    model: nets/bert.onnx
    batch: 8
    dims: {seq: 128, heads: 12}
    mode: inference
    precision: amp
    optimizer: adamw
    checkpoint_segments: 4
    frozen: [embeddings., encoder.layer.0.]
    gpus: 2
    tasks: 3
    exclusive: true
    gpu_types: [v100-16gb, a100-40gb, V100-16GB]
    cpu_cores: 2.5
    memory_gib: 1.5
    storage_mb_s: 300
    priority: -4
    weight: 0.5
    submit_s: 1.5
    deadline_s: 3600
    request_rate_hz: 12.5
    latency_bound_ms: 40
    slowdown_bound: 1.25
    gpu_memory_request_gib: 2
    gpu_memory_limit_gib: 3
    share: same-tenant
    groups: [web, db]
    avoid_groups: [batch]
    spread_tasks: true
    sm_cap_pct: 40
    node_selector: {zone: b, disk: nvme}
)");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  const JobRequest& job = jobs->front();
  EXPECT_EQ(job.where, "dir/jobs.yaml:4: jobs[0]");
  EXPECT_EQ(job.spec.id, 77u);
  EXPECT_EQ(job.spec.name, "full");
  EXPECT_EQ(job.spec.tenant, "team-a");
  EXPECT_EQ(job.spec.kind, JobKind::kInference);
  EXPECT_EQ(job.spec.gpus_per_task, 2);
  EXPECT_EQ(job.spec.gpu_mem_request_mib, 2048);
  EXPECT_EQ(job.spec.gpu_mem_limit_mib, 3072);
  EXPECT_EQ(job.spec.share, ShareWith::kSameTenant);
  EXPECT_EQ(job.spec.groups, (std::vector<std::string>{"db", "web"}));
  EXPECT_EQ(job.spec.avoid_groups, (std::vector<std::string>{"batch"}));
  EXPECT_TRUE(job.spec.spread_tasks);
  EXPECT_EQ(job.spec.sm_cap_pct, 40);
  EXPECT_EQ(job.spec.tasks, 3);
  EXPECT_TRUE(job.spec.exclusive);
  EXPECT_EQ(job.spec.cpu_milli, 2500);
  EXPECT_EQ(job.spec.mem_mib, 1536);
  EXPECT_EQ(job.spec.storage_mb_s, 300);
  EXPECT_EQ(job.spec.priority, -4);
  EXPECT_EQ(job.spec.weight, 0.5f);
  EXPECT_EQ(job.spec.submit_us, 1'500'000);
  EXPECT_EQ(job.spec.deadline_us, 3'600'000'000);
  EXPECT_DOUBLE_EQ(job.spec.request_rate_hz, 12.5);
  EXPECT_EQ(job.spec.latency_bound_us, 40'000);
  EXPECT_FLOAT_EQ(job.spec.slowdown_bound, 1.25f);
  ASSERT_EQ(job.spec.node_selector.size(), 2u);
  EXPECT_EQ(job.spec.node_selector[0].first, "disk");
  ASSERT_TRUE(job.model.has_value());
  EXPECT_EQ(job.model->path, "dir/nets/bert.onnx");
  EXPECT_EQ(job.model->run.dims.batch, 8);
  EXPECT_EQ(job.model->run.mode, RunMode::kInference);
  EXPECT_EQ(job.model->run.precision, Precision::kAmpFp16);
  EXPECT_EQ(job.model->run.optimizer, Optimizer::kAdamW);
  EXPECT_EQ(job.model->run.checkpoint_segments, 4);
  EXPECT_EQ(job.model->run.frozen, (std::vector<std::string>{"embeddings.", "encoder.layer.0."}));
  EXPECT_EQ(job.model->run.data_parallel, 6);  // the gang
  ASSERT_EQ(job.model->run.dims.dims.size(), 2u);
  EXPECT_EQ(job.model->run.dims.dims[0].first, "heads");
  EXPECT_EQ(job.gpu_types.size(), 2u);
}

TEST(JobsFile, CopiesOfAServiceShareItsLoad) {
  const std::string load = "tokens_in: 100, tokens_out: 10}}\n",
                    service = "kind: inference, model: llama-3.1-8b, service: {";
  const auto jobs = Parse("  - {name: chat, " + service + "requests_per_s: 6, copies: 3, " + load +
                          "  - {name: other, " + service + "users: 2, " + load);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*jobs)[i].spec.name, "chat-" + std::to_string(i + 1));
    EXPECT_EQ((*jobs)[i].spec.id, i + 1);
    EXPECT_EQ((*jobs)[i].model->service->requests_per_s, 2);
  }
  EXPECT_EQ((*jobs)[3].spec.id, 4u);
  EXPECT_EQ((*jobs)[3].model->service->concurrency, 2);
  EXPECT_THAT(ErrorOf("  - {id: 7, " + service + "users: 2, copies: 2, " + load),
              testing::HasSubstr("expected none beside 'copies'"));
}

TEST(JobsFile, DefaultsArePositionTrainingAndOneGpu) {
  const auto jobs = Parse("  - model: a.onnx\n  - {model: /abs/b.onnx, kind: inference}\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ((*jobs)[0].spec.id, 1u);
  EXPECT_EQ((*jobs)[1].spec.id, 2u);
  EXPECT_EQ((*jobs)[0].spec.gpus_per_task, 1);
  EXPECT_EQ((*jobs)[0].model->run.mode, RunMode::kTraining);
  EXPECT_EQ((*jobs)[1].model->run.mode, RunMode::kInference);
  EXPECT_EQ((*jobs)[1].model->path, "/abs/b.onnx");
}

TEST(JobsFile, GivenDemandsHaveEstimateAndUpperBound) {
  const auto jobs = Parse(R"(
  - demand:
      v100-16gb: {gpu_util_pct: [40, 55], mem_bw_util_pct: 20, gpu_memory_gib: [2, 2.5], step_time_ms: 0.5, gradient_mib: 90,
                  operator_us: 120, kernels: 1000}
      a100-40gb: {gpu_util_pct: 30, gpu_memory_gib: 2}
)");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  const Demand* v100 = FindDemand(jobs->front().spec, Type("v100-16gb"));
  ASSERT_NE(v100, nullptr);
  EXPECT_FLOAT_EQ(v100->gpu_util_pct.estimate, 40);
  EXPECT_FLOAT_EQ(v100->gpu_util_pct.upper, 55);
  EXPECT_FLOAT_EQ(v100->mem_bw_util_pct.upper, 20);
  EXPECT_EQ(v100->mem_mib.estimate, 2048);
  EXPECT_EQ(v100->mem_mib.upper, 2560);
  EXPECT_EQ(v100->step_time_us.upper, 500);
  EXPECT_EQ(v100->gradient_mib, 90);
  EXPECT_EQ(v100->operator_us, 120);
  EXPECT_NEAR(static_cast<double>(v100->traits[static_cast<size_t>(Trait::kLogKernels)]), 3, 1e-6);
  EXPECT_EQ(v100->flags, kDemandGiven);
  EXPECT_NE(FindDemand(jobs->front().spec, Type("a100-40gb")), nullptr);
  EXPECT_EQ(FindDemand(jobs->front().spec, Type("t4")), nullptr);
}

TEST(JobsFile, DemandForAnyTypeFollowsGpuTypes) {
  const auto jobs = Parse(R"(
  - demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}
  - demand: {any: {gpu_util_pct: 30, gpu_memory_gib: 2}}
    gpu_types: [t4]
)");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_NE(FindDemand((*jobs)[0].spec, Type("a100-40gb")), nullptr);
  EXPECT_NE(FindDemand((*jobs)[1].spec, Type("t4")), nullptr);
  EXPECT_EQ(FindDemand((*jobs)[1].spec, Type("a100-40gb")), nullptr);
}

TEST(JobsFile, EitherModelOrDemand) {
  EXPECT_EQ(
      ErrorOf("  - name: a\n"),
      "dir/jobs.yaml:3: jobs[0]: expected either 'model' (an ONNX file) or 'demand' (given figures), found neither");
  EXPECT_THAT(ErrorOf("  - model: a\n    demand: {any: {gpu_util_pct: 3, gpu_memory_gib: 1}}\n"),
              HasSubstr("found both"));
  EXPECT_EQ(ErrorOf("  - demand: {any: {gpu_util_pct: 3, gpu_memory_gib: 1}}\n    batch: 3\n"),
            "dir/jobs.yaml:4: jobs[0].batch: expected with 'model' only, found beside 'demand'");
}

TEST(JobsFile, WrongValuesNameKeyExpectedAndFound) {
  EXPECT_EQ(ErrorOf("  - {model: a, batch: 0}\n"),
            "dir/jobs.yaml:3: jobs[0].batch: expected an integer from 1 to 2147483647, found '0'");
  EXPECT_EQ(ErrorOf("  - {model: a, precision: fp12}\n"),
            "dir/jobs.yaml:3: jobs[0].precision: expected one of fp32, tf32, amp, amp-bf16, fp16, bf16, fp32-ieee, "
            "found 'fp12'; did you mean 'fp32'?");
  EXPECT_THAT(ErrorOf("  - {model: a, latency_bound_ms: 500}\n"),
              HasSubstr("jobs[0].latency_bound_ms: expected no such key beside kind 'training'"));
  EXPECT_THAT(ErrorOf("  - {model: a, kind: inference, mode: training, latency_bound_ms: 500}\n"),
              HasSubstr("jobs[0].latency_bound_ms: expected no such key beside a training run"));
  EXPECT_EQ(ErrorOf("  - {model: a, kind: batch}\n"),
            "dir/jobs.yaml:3: jobs[0].kind: expected one of training, inference, best-effort, found 'batch'");
  EXPECT_EQ(ErrorOf("  - {model: a, slowdown_bound: 0.9}\n"),
            "dir/jobs.yaml:3: jobs[0].slowdown_bound: expected a number from 1 to 1000000, found '0.9'");
  EXPECT_EQ(
      ErrorOf("  - {model: a, slowdown_confidence: 0.95}\n"),
      "dir/jobs.yaml:3: jobs[0].slowdown_confidence: expected slowdown_bound or latency_bound_ms beside it, found "
      "neither");
  EXPECT_EQ(ErrorOf("  - {model: a, dims: {seq: -1}}\n"),
            "dir/jobs.yaml:3: jobs[0].dims['seq']: expected an integer from 1 to 2147483647, found '-1'");
  EXPECT_EQ(ErrorOf("  - {model: a, gpus: 2, gpu_milli: 500}\n"),
            "dir/jobs.yaml:3: jobs[0].gpu_milli: expected 1000 or no such key with 2 GPUs per task, found '500'");
  EXPECT_EQ(ErrorOf("  - {model: a, gpus: 65536, tasks: 2}\n"),
            "dir/jobs.yaml:3: jobs[0]: expected at most 65536 GPUs (tasks x gpus), found 2 x 65536");
  EXPECT_EQ(ErrorOf("  - {model: a, gpu_types: []}\n"),
            "dir/jobs.yaml:3: jobs[0].gpu_types: expected at least one GPU type, found a list of 0");
  EXPECT_THAT(ErrorOf("  - {model: a, gpu_types: [a100-41gb]}\n"),
              AllOf(HasSubstr("dir/jobs.yaml:3: jobs[0].gpu_types[0]: GPU type: expected one of the "),
                    HasSubstr("found 'a100-41gb'"), HasSubstr("a100-40gb")));
}

TEST(JobsFile, WrongDemandsNameKeyExpectedAndFound) {
  const auto with = [](const std::string& figures) { return ErrorOf("  - demand:\n      t4: " + figures + "\n"); };
  EXPECT_EQ(with("{gpu_util_pct: 101, gpu_memory_gib: 1}"),
            "dir/jobs.yaml:4: jobs[0].demand['t4'].gpu_util_pct: expected a number from 0 to 100, found '101'");
  EXPECT_EQ(with("{gpu_util_pct: [50, 40], gpu_memory_gib: 1}"),
            "dir/jobs.yaml:4: jobs[0].demand['t4'].gpu_util_pct[1]: expected an upper bound not below the estimate, "
            "found '40'");
  EXPECT_EQ(with("{gpu_util_pct: [50], gpu_memory_gib: 1}"),
            "dir/jobs.yaml:4: jobs[0].demand['t4'].gpu_util_pct: expected a number, or [estimate, upper bound], found "
            "a list of 1");
  EXPECT_EQ(with("{gpu_util_pct: 50}"),
            "dir/jobs.yaml:4: jobs[0].demand['t4']: expected key 'gpu_memory_gib' (device memory, CUDA context "
            "included), found none");
  EXPECT_EQ(ErrorOf("  - demand: {}\n"),
            "dir/jobs.yaml:3: jobs[0].demand: expected figures for at least one GPU type, or for 'any', found an empty "
            "mapping");
  EXPECT_THAT(
      ErrorOf("  - demand: {t4: {gpu_util_pct: 5, gpu_memory_gib: 1}, T4: {gpu_util_pct: 5, gpu_memory_gib: 1}}\n"),
      HasSubstr("expected each GPU type once"));
}

TEST(JobsFile, IdsAndNamesAreUnique) {
  EXPECT_EQ(ErrorOf("  - {model: a, id: 2}\n  - {model: b}\n"),
            "dir/jobs.yaml:4: jobs[1].id: expected an id of its own, found 2 as in dir/jobs.yaml:3: jobs[0]");
  EXPECT_EQ(ErrorOf("  - {model: a, name: x}\n  - {model: b, name: x}\n"),
            "dir/jobs.yaml:4: jobs[1].name: expected a name of its own, found 'x' as in dir/jobs.yaml:3: jobs[0]");
}

TEST(JobsFile, DemandsOfAllJobsAreBounded) {
  JobSpec job;
  job.demands.resize(1);
  job.alternatives.resize(2);
  job.alternatives[1].demands.resize(2);
  size_t so_far = kMaxFileDemands - 6;
  EXPECT_TRUE(CountDemands(job, "j.yaml:1: jobs[0]", so_far).ok());
  EXPECT_TRUE(CountDemands(job, "j.yaml:2: jobs[1]", so_far).ok());
  const absl::Status refused = CountDemands(job, "j.yaml:3: jobs[2]", so_far);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("j.yaml:3: jobs[2]: expected at most 4000000 demands"));
}

TEST(JobsFile, JobsIsAList) {
  EXPECT_EQ(std::string(ParseJobsFile("f", "version: 1\n", *Catalogue::Default()).status().message()),
            "f:1: expected key 'jobs' (a list of jobs), found none");
  EXPECT_EQ(std::string(ParseJobsFile("f", "version: 1\njobs: 3\n", *Catalogue::Default()).status().message()),
            "f:2: jobs: expected a list, found '3'");
}

}  // namespace
}  // namespace horus
