// SPDX-License-Identifier: Apache-2.0
// The openb lists, and the allocation experiment on them: golden runs exact to the hash of every placement.
#include "bench/quality/openb.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "bench/quality/allocation_run.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNodes = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,0,\n";
constexpr const char* kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
    "p1,4000,1024,1,460,T4||P100,LS\n"
    "p0,8000,2048,0,0,,BE\n"
    "p2,6000,4096,2,1000,,LS\n";

TEST(OpenbFile, ReadsNodesAndPods) {
  const auto nodes = ParseOpenbNodes(kNodes, "nodes.csv");
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_EQ((*nodes)[0].gpus, 2);
  EXPECT_EQ((*nodes)[0].model, "P100");
  EXPECT_EQ((*nodes)[1].gpus, 0);
  const auto pods = ParseOpenbPods(kPods, "pods.csv");
  ASSERT_TRUE(pods.ok()) << pods.status();
  EXPECT_THAT((*pods)[0].models, ElementsAre("T4", "P100"));  // empty parts dropped
  EXPECT_EQ((*pods)[0].gpu_milli, 460);
  EXPECT_EQ((*pods)[1].gpus, 0);
  EXPECT_TRUE((*pods)[2].models.empty());
}

TEST(OpenbFile, TheModelConstraintMayBeAbsent) {
  const auto pods = ParseOpenbPods("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,1,1000\n", "pods.csv");
  ASSERT_TRUE(pods.ok()) << pods.status();
  EXPECT_TRUE(pods->front().models.empty());
}

TEST(OpenbFile, NamesFileRowAndFieldOfWhatIsWrong) {
  const auto error = [](const std::string& row) {
    return std::string(
        ParseOpenbPods("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,1,1000\n" + row + "\n", "pods.csv")
            .status()
            .message());
  };
  EXPECT_THAT(error("p,-1,2,1,1000"), HasSubstr("pods.csv: row 2: cpu_milli: expected a whole number from 0 to"));
  EXPECT_THAT(error("p,1,x,1,1000"), HasSubstr("row 2: memory_mib"));
  EXPECT_THAT(error("p,1,2,1.5,1000"), HasSubstr("row 2: num_gpu"));
  EXPECT_THAT(error("p,1,2,1,1001"), HasSubstr("row 2: gpu_milli"));
  EXPECT_THAT(error("p,1,2,1,0"), HasSubstr("gpu_milli: expected 1 to 1000"));
  EXPECT_THAT(error("p,1,2,2,500"), HasSubstr("gpu_milli: expected 1000 with several GPUs"));
  EXPECT_THAT(error("p,1,2,1"), HasSubstr("row 2: expected 5 fields"));
  EXPECT_THAT(std::string(ParseOpenbPods("name,num_gpu\n", "pods.csv").status().message()), HasSubstr("cpu_milli"));
  EXPECT_THAT(std::string(ParseOpenbNodes("sn,cpu_milli,memory_mib,gpu,model\nn,1,2,4,\n", "n.csv").status().message()),
              HasSubstr("n.csv: row 1: model"));
}

TEST(OpenbTrace, TieRanksAreNodeIdsAndModelsGpuTypes) {
  const auto nodes = *ParseOpenbNodes(kNodes, "nodes.csv");
  const auto pods = *ParseOpenbPods(kPods, "pods.csv");
  const auto catalogue = *OpenbCatalogue(nodes, pods);
  EXPECT_EQ(catalogue->size(), 2u);
  const Cluster cluster = *OpenbCluster(nodes, std::vector<uint32_t>{1, 0}, catalogue);
  EXPECT_EQ(cluster.Node(0)->spec.name, "n1");
  EXPECT_EQ(cluster.Node(1)->spec.devices.size(), 2u);
  const JobSpec share = *OpenbJob(pods[0], *catalogue);
  EXPECT_EQ(share.demands.size(), 2u);
  EXPECT_TRUE(ValidateJob(share).ok());
  EXPECT_TRUE(IsCpuOnly(*OpenbJob(pods[1], *catalogue)));
  EXPECT_EQ(OpenbCapacity(nodes), 2000);
}

TEST(OpenbTrace, ArrivalsGoOnFromTheFirstNameUntilTheTarget) {
  const auto pods = *ParseOpenbPods(kPods, "pods.csv");  // 2,460 milli in all
  EXPECT_THAT(OpenbArrivals(pods, 4000, std::nullopt),
              ElementsAre(1, 0, 2, 1, 0, 2, 1));                     // 4,920 of 5,200; 460 too many
  const std::vector<uint32_t> fewer = OpenbArrivals(pods, 1600, 7);  // of 2,080: one must go
  EXPECT_LT(fewer.size(), 3u);
  EXPECT_EQ(OpenbArrivals(pods, 100'000, 7), OpenbArrivals(pods, 100'000, 7));
  EXPECT_NE(OpenbArrivals(pods, 100'000, 7), OpenbArrivals(pods, 100'000, 8));
  const std::vector<OpenbPod> no_gpus(3, pods[1]);
  EXPECT_EQ(OpenbArrivals(no_gpus, 4000, 7).size(), 3u);
}

TEST(OpenbTrace, EveryNodeHasOneRank) {
  std::vector<uint32_t> order = OpenbNodeOrder(100, 3);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  std::vector<uint32_t> all(100);
  std::iota(all.begin(), all.end(), 0u);
  EXPECT_EQ(order, all);
}

TEST(OpenbTrace, TypicalTasksAreTheMostFrequentAndSumToOne) {
  std::vector<OpenbPod> pods(40, {.name = "a", .cpu_milli = 4, .mem_mib = 1, .gpus = 1, .gpu_milli = 500});
  pods[0].cpu_milli = 9;  // 1 of 40: below the 5 % that may be left out
  const auto classes = OpenbTypicalTasks(pods, Catalogue());
  ASSERT_TRUE(classes.ok());
  ASSERT_EQ(classes->size(), 1u);
  EXPECT_EQ(classes->front().cpu_milli, 4);
  EXPECT_EQ(classes->front().share, 1);
}

// The published lists, where they are at hand.
class AllocationGolden : public testing::TestWithParam<bench::GoldenRun> {};

TEST_P(AllocationGolden, EveryPlacementIsThatOfTwoOtherPrograms) {
  const bench::GoldenRun& golden = GetParam();
  const std::string folder = HORUS_SHARED_DATA "/traces/openb/";
  const std::string pods = folder + "openb_pod_list_" + std::string(golden.workload) + ".csv";
  if (!std::filesystem::exists(pods)) {
    GTEST_SKIP() << "SKIPPED: no " << pods << " (CMake: -DHORUS_SHARED_DATA=DIR), nothing was compared";
  }
  const auto experiment = bench::LoadExperiment(folder + "openb_node_list_gpu_node.csv", pods);
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  const auto found = bench::RunPolicy(*experiment, golden.policy, std::nullopt);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->offers, golden.offers);
  EXPECT_EQ(found->arrived, golden.arrived);
  EXPECT_EQ(found->used, golden.used);
  EXPECT_EQ(found->dropped, golden.dropped);
  EXPECT_EQ(found->hash, golden.hash);
}

INSTANTIATE_TEST_SUITE_P(Openb, AllocationGolden,
                         testing::ValuesIn(bench::GoldenRuns().begin(), bench::GoldenRuns().end()),
                         [](const auto& run) {
                           std::string name = std::string(run.param.workload) + "_" + std::string(run.param.policy);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace horus
