// SPDX-License-Identifier: Apache-2.0
// Placements: the state after a plan, and the JSON document of it.
#include "io/placement.h"

#include <filesystem>
#include <limits>
#include <string>

#include "base/file.h"
#include "gtest/gtest.h"
#include "interference/registry.h"
#include "interference/table_model.h"
#include "nlohmann/json.hpp"
#include "place/placer.h"
#include "place/policies/policies.h"

namespace horus {
namespace {

using Json = nlohmann::json;

JobSpec Job(JobId id, float util_pct, int64_t mem_mib) {
  JobSpec job;
  job.id = id;
  job.name = "job-" + std::to_string(id);
  Demand demand;
  demand.gpu_util_pct = {util_pct, util_pct};
  demand.mem_mib = {mem_mib, mem_mib};
  demand.step_time_us = {1000, 1000};
  demand.flags = kDemandGiven;
  job.demands = {{GpuTypeId::Invalid(), demand}};
  return job;
}

Cluster OneT4() {
  const auto catalogue = Catalogue::Default();
  Cluster cluster(catalogue);
  NodeSpec node;
  node.id = 5;
  node.name = "n";
  node.devices.resize(1);
  node.devices[0].type = *catalogue->Find("t4");
  EXPECT_TRUE(cluster.AddNode(node).ok());
  return cluster;
}

PlacementReport Place(const Cluster& cluster, std::vector<JobSpec> jobs, double bound) {
  const auto model = *MakeInterferenceModel("utilisation");
  auto placer = Placer::Create(model, *MakePolicy("first-fit"), {.slowdown_bound = bound});
  EXPECT_TRUE(placer.ok()) << placer.status();
  auto plan = (*placer)->MakePlan(cluster, jobs);
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto placement = MakePlacementReport(cluster, std::move(jobs), *std::move(plan), *model,
                                       {"first-fit", "utilisation", (*placer)->slowdown_bound(), 3});
  EXPECT_TRUE(placement.ok()) << placement.status();
  return *std::move(placement);
}

TEST(PlacementReport, CountsVerdictsAndTenantsAboveTheirBound) {
  Cluster cluster = OneT4();
  // Both run already and exceed what the default allows.
  ASSERT_TRUE(cluster.Adopt(Job(1, 90, 1000), std::vector<Slot>{{5, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(Job(2, 90, 1000), std::vector<Slot>{{5, 0, 0}}).ok());
  const PlacementReport placement = Place(cluster, {Job(3, 5, 99'999)}, 1.5);
  EXPECT_EQ(placement.Count(Verdict::kPlace), 0u);
  EXPECT_EQ(placement.Count(Verdict::kReject), 1u);
  EXPECT_EQ(placement.TenantJobs(), 2u);
  EXPECT_EQ(placement.TenantsAboveBound(), 2u);
  ASSERT_EQ(placement.tenants.size(), 2u);
  EXPECT_NEAR(placement.tenants[0].slowdown.estimate, 1.8, 1e-5);
}

TEST(PlacementReport, SaysWhichSlowdownsRestOnMeasurements) {
  Cluster cluster = OneT4();
  const auto job = [](JobId id) {
    JobSpec spec = Job(id, 20, 1000);
    spec.demands[0].demand.profile_id = id;
    return spec;
  };
  const GpuTypeId t4 = *Catalogue::Default()->Find("t4");
  const std::vector<TableEntry> entries = {{.type = t4, .victim = 1, .other = 2, .slowdown = 2},
                                           {.type = t4, .victim = 2, .other = 1, .slowdown = 3}};
  const auto table = *TableModel::Create(entries, *MakeInterferenceModel("utilisation"));
  const auto basis = [&](const InterferenceModel& model) {
    return MakePlacementReport(cluster, {}, {}, model, {})->SlowdownBasis();
  };
  ASSERT_TRUE(cluster.Adopt(job(1), std::vector<Slot>{{5, 0, 0}}).ok());
  EXPECT_EQ(basis(*table).sharing, 0u);
  ASSERT_TRUE(cluster.Adopt(job(2), std::vector<Slot>{{5, 0, 0}}).ok());
  EXPECT_EQ(basis(*table).measured, 2u);
  EXPECT_EQ(basis(table->fallback()).measured, 0u);
  EXPECT_EQ(basis(*table).beside_several, 0u);
  ASSERT_TRUE(cluster.Adopt(job(3), std::vector<Slot>{{5, 0, 0}}).ok());
  EXPECT_EQ(basis(*table).sharing, 3u);
  EXPECT_EQ(basis(*table).measured, 0u);  // beside the third nobody was
  EXPECT_EQ(basis(*table).beside_several, 3u);
}

TEST(PlacementReport, AJobsOwnBoundReplacesTheDefault) {
  Cluster cluster = OneT4();
  JobSpec patient = Job(1, 90, 1000);
  patient.slowdown_bound = 2;
  ASSERT_TRUE(cluster.Adopt(patient, std::vector<Slot>{{5, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(Job(2, 90, 1000), std::vector<Slot>{{5, 0, 0}}).ok());
  EXPECT_EQ(Place(cluster, {}, 1.5).TenantsAboveBound(), 1u);
}

TEST(PlacementReport, ReportsTenantsOfAMigInstanceAsThePlacerSeesThem) {
  const auto catalogue = Catalogue::Default();
  Cluster cluster(catalogue);
  NodeSpec node;
  node.id = 5;
  node.devices.resize(1);
  node.devices[0].type = *catalogue->Find("a100-40gb");
  node.devices[0].mode = SharingMode::kMig;
  node.devices[0].mig_profile = 0;  // 1 of 7 slices: either job alone fills it
  ASSERT_TRUE(cluster.AddNode(node).ok());
  const PlacementReport placement = Place(cluster, {Job(1, 30, 1000), Job(2, 30, 1000)}, 3);
  ASSERT_EQ(placement.Count(Verdict::kPlace), 2u);
  const Decision& second = placement.plan.decisions[1];
  EXPECT_FLOAT_EQ(second.own.estimate, 2);  // on the whole GPU they would not disturb each other
  ASSERT_EQ(placement.tenants.size(), 2u);
  for (const TenantOutcome& tenant : placement.tenants) {
    EXPECT_EQ(tenant.slowdown, second.own);
    EXPECT_FALSE(tenant.above_bound());
  }
}

TEST(PlacementReport, ATypeWithoutADemandCountsTheJobsFirstOneAsTheClusterDoes) {
  const auto catalogue = Catalogue::Default();
  Cluster cluster = OneT4();
  JobSpec job = Job(1, 90, 1000);
  job.demands[0].type = *catalogue->Find("a100-40gb");
  ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{5, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(Job(2, 90, 1000), std::vector<Slot>{{5, 0, 0}}).ok());
  const PlacementReport placement = Place(cluster, {}, 1.5);
  ASSERT_EQ(placement.tenants.size(), 2u);
  EXPECT_FLOAT_EQ(placement.tenants[0].slowdown.estimate, 1.8f);
  EXPECT_TRUE(placement.tenants[0].above_bound());
}

TEST(PlacementJson, SaysWhereBesideWhomAndWhyNot) {
  const PlacementReport placement = Place(OneT4(), {Job(1, 30, 1000), Job(2, 40, 1000), Job(3, 10, 99'999)}, 1.5);
  const Json json = Json::parse(PlacementJson(placement));
  EXPECT_EQ(json["schema"], "horus-placement");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["seed"], 3);
  ASSERT_EQ(json["decisions"].size(), 3u);
  const Json& second = json["decisions"][1];
  EXPECT_EQ(second["verdict"], "place");
  EXPECT_EQ(second["slots"][0]["node"], "n");
  EXPECT_EQ(second["slots"][0]["gpu_type"], "t4");
  ASSERT_EQ(second["effects"].size(), 2u);
  EXPECT_EQ(second["demand"]["memory_mib"], 1000);
  const Json& third = json["decisions"][2];
  EXPECT_EQ(third["verdict"], "reject");
  EXPECT_EQ(third["reason"], "gpu_memory");
  EXPECT_EQ(third["nearest_miss"]["needed"], 99'999);
  EXPECT_EQ(third["nearest_miss"]["unit"], "MiB");
  EXPECT_TRUE(third["slowdown"].is_null());
  EXPECT_EQ(json["totals"]["placed"], 2);
  EXPECT_EQ(json["tenants"].size(), 2u);
}

TEST(PlacementJson, HasNoInfinityAndReplacesBytesThatAreNoText) {
  JobSpec job = Job(1, 30, 1000);
  job.name = "bad\xff";
  const PlacementReport placement = Place(OneT4(), {job}, std::numeric_limits<double>::infinity());
  const Json json = Json::parse(PlacementJson(placement));
  EXPECT_TRUE(json["slowdown_bound"].is_null());
  EXPECT_EQ(json["decisions"][0]["job"], "bad\xEF\xBF\xBD");
}

TEST(PlacementJson, FloatsAreShort) {
  EXPECT_EQ(ShortDouble(1.1f), 1.1);
  EXPECT_EQ(ShortDouble(0.0f), 0.0);
}

TEST(File, WritesWholeOrNotAtAll) {
  const std::string path = ::testing::TempDir() + "/horus_file_test.json";
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "two").ok());
  EXPECT_EQ(*ReadFile(path, 100), "two");
  EXPECT_EQ(ReadFile(path, 2).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(WriteFileAtomically("/nonexistent/x.json", "one").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(WriteFileAtomically("/dev/null", "one").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(WriteFileOrDevice("/dev/null", "one").ok());  // written to, not replaced
  EXPECT_EQ(*ReadFile("/dev/null", 100), "");
}

TEST(File, TellsTheSizeOfAFileThatIsTooLarge) {
  const std::string path = ::testing::TempDir() + "/horus_file_test.yaml";
  ASSERT_TRUE(WriteFileAtomically(path, std::string(200'000, 'x')).ok());
  EXPECT_EQ(ReadFile(path, 1000).status().message(), path + ": expected at most 1000 bytes, found 200000");
}

TEST(File, PathsAreSeenFromTheFolderOfTheFile) {
  EXPECT_EQ(PathBeside("a/b.yaml", "c/d.onnx"), "a/c/d.onnx");
  EXPECT_EQ(PathBeside("b.yaml", "../d.onnx"), "../d.onnx");
  EXPECT_EQ(PathBeside("a/b.yaml", "/d.onnx"), "/d.onnx");
}

TEST(Paths, AFileHasOneHoweverItIsWritten) {
  const std::string folder = testing::TempDir() + "one_path";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(WriteFileAtomically(folder + "/f", "x").ok());
  const std::string one = OnePathOf(folder + "/f");
  EXPECT_EQ(OnePathOf(folder + "/./../one_path//f"), one);
  EXPECT_EQ(OnePathOf("/proc/self/root" + folder + "/f"), one);
  EXPECT_EQ(OnePathOf(folder + "/none"), folder + "/none");
}

}  // namespace
}  // namespace horus
