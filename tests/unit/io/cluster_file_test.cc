// SPDX-License-Identifier: Apache-2.0
// cluster.yaml: nodes, GPUs, residents, and what is refused.
#include "io/cluster_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace horus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<ClusterFile> Parse(const std::string& rest) {
  return ParseClusterFile("c.yaml", "version: 1\n" + rest, Catalogue::Default());
}

// A file of nodes; the first one starts on line 3.
absl::StatusOr<ClusterFile> Nodes(const std::string& nodes) { return Parse("nodes:\n" + nodes); }

std::string ErrorOf(const std::string& nodes) { return std::string(Nodes(nodes).status().message()); }

constexpr char kHost[] = "cpu_cores: 8, memory_gib: 32";

std::string Node(const std::string& name, const std::string& more = "") {
  return "  - {name: " + name + ", " + kHost + (more.empty() ? "" : ", " + more) + "}\n";
}

TEST(ClusterFile, ReadsEveryKeyOfANode) {
  const auto file = Nodes(R"(
  - name: big
    id: 40
    cpu_cores: 63.5
    memory_gib: 256
    storage_mb_s: 900
    rack: r7
    labels: {zone: b, a: "1"}
    state: drained
    gpus:
      - {type: A100-40GB, count: 2, sharing: mps, max_tenants: 5, nvlink_island: 1, pcie_switch: 2, socket: 1}
      - {type: t4}
)");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->nodes.size(), 1u);
  const NodeSpec& node = file->nodes[0].spec;
  EXPECT_EQ(file->nodes[0].state, AdminState::kDrained);
  EXPECT_EQ(node.id, 40u);
  EXPECT_EQ(node.cpu_milli, 63'500);
  EXPECT_EQ(node.mem_mib, 256 * 1024);
  EXPECT_EQ(node.storage_mb_s, 900);
  EXPECT_EQ(node.rack, 1u);
  EXPECT_EQ(node.labels.front(), (std::pair<std::string, std::string>("a", "1")));
  ASSERT_EQ(node.devices.size(), 3u);
  EXPECT_EQ(node.devices[1].mode, SharingMode::kMps);
  EXPECT_EQ(node.devices[1].max_tenants, 5);
  EXPECT_EQ(node.devices[1].island, 1);
  EXPECT_EQ(node.devices[1].pcie_switch, 2);
  EXPECT_EQ(node.devices[1].socket, 1);
  EXPECT_EQ(node.devices[1].physical_gpu, 1);
  EXPECT_EQ(node.devices[2].mode, SharingMode::kTimeSlice);
  EXPECT_EQ(node.devices[2].island, -1);
  EXPECT_EQ(node.devices[2].physical_gpu, 2);
}

TEST(ClusterFile, CountReplicatesWithNumberedNamesAndIds) {
  const auto file = Nodes(Node("n", "count: 3, rack: a") + Node("m", "rack: b") + Node("o", "rack: a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->nodes.size(), 5u);
  EXPECT_EQ(file->nodes[0].spec.name, "n-000");
  EXPECT_EQ(file->nodes[2].spec.name, "n-002");
  EXPECT_EQ(file->nodes[2].spec.id, 3u);
  EXPECT_EQ(file->nodes[3].spec.name, "m");
  EXPECT_EQ(file->nodes[3].spec.id, 4u);
  EXPECT_EQ(file->nodes[0].spec.rack, file->nodes[4].spec.rack);
  EXPECT_NE(file->nodes[0].spec.rack, file->nodes[3].spec.rack);
}

TEST(ClusterFile, EachMigInstanceIsADeviceOfItsCard) {
  const auto file = Nodes(Node("n", "gpus: [{type: t4}, {type: a100-40gb, count: 2, mig: [3g.20gb, 2g.10gb]}]"));
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<DeviceSpec>& devices = file->nodes[0].spec.devices;
  ASSERT_EQ(devices.size(), 5u);
  EXPECT_EQ(devices[1].mode, SharingMode::kMig);
  EXPECT_EQ(devices[1].physical_gpu, 1);
  EXPECT_EQ(devices[2].physical_gpu, 1);
  EXPECT_EQ(devices[3].physical_gpu, 2);
  EXPECT_GT(devices[1].mem_mib, devices[2].mem_mib);
}

TEST(ClusterFile, WrongGpusNameKeyExpectedAndFound) {
  const auto with = [](const std::string& gpu) { return ErrorOf(Node("n", "gpus: [" + gpu + "]")); };
  const std::string at = "c.yaml:3: nodes[0].gpus[0]";
  EXPECT_EQ(with("{count: 2}"), at + ": expected key 'type' (a GPU type such as a100-40gb), found none");
  EXPECT_THAT(with("{type: b100}"),
              AllOf(HasSubstr(at + ".type: GPU type: expected one of the "), HasSubstr("found 'b100'")));
  EXPECT_EQ(with("{type: t4, count: 0}"), at + ".count: expected an integer from 1 to 1024, found '0'");
  EXPECT_EQ(with("{type: t4, sharing: both}"),
            at + ".sharing: expected one of exclusive, time-slice, mps, mig, time-slice-or-mps, found 'both'");
  EXPECT_EQ(with("{type: t4, sharing: mig}"),
            at + ": expected key 'mig' (a list of instances such as 3g.20gb), found none");
  EXPECT_EQ(with("{type: t4, mig: [1g.5gb]}"), at + ".mig: expected a GPU type that has MIG, found 't4'");
  EXPECT_EQ(with("{type: a100-40gb, sharing: mps, mig: [1g.5gb]}"),
            at + ".sharing: expected mig, because the key 'mig' lists instances, found 'mps'");
  EXPECT_THAT(
      with("{type: a100-40gb, mig: [9g.5gb]}"),
      AllOf(HasSubstr(at + ".mig[0]: expected a MIG profile of a100-40gb (1g.5gb"), HasSubstr("found '9g.5gb'")));
  EXPECT_EQ(with("{type: a100-40gb, mig: [7g.40gb, 7g.40gb]}"),
            at + ".mig[1]: expected at most 1 instances of 7g.40gb on one a100-40gb, found more");
  EXPECT_THAT(with("{type: a100-40gb, mig: [3g.20gb, 3g.20gb, 2g.10gb]}"),
              HasSubstr("c.yaml:3: nodes[0]: node 0 ('n'): "));
  EXPECT_EQ(with("{type: t4, count: 1000}, {type: t4, count: 1000}"),
            "c.yaml:3: nodes[0].gpus[1]: expected at most 1024 devices on a node, found more");
}

TEST(ClusterFile, WrongNodesNameKeyExpectedAndFound) {
  EXPECT_EQ(ErrorOf("  - {name: a, memory_gib: 3}\n"),
            "c.yaml:3: nodes[0]: expected key 'cpu_cores' (cores that jobs may use), found none");
  EXPECT_EQ(ErrorOf("  - {name: a, cpu_cores: -1, memory_gib: 3}\n"),
            "c.yaml:3: nodes[0].cpu_cores: expected a number from 0 to 1000000, found '-1'");
  EXPECT_EQ(ErrorOf("  - {name: a, cpu_core: 1, memory_gib: 3}\n"),
            "c.yaml:3: nodes[0]: expected a known key (did you mean 'cpu_cores'?), found 'cpu_core'");
  EXPECT_EQ(ErrorOf(Node("a", "state: broken")),
            "c.yaml:3: nodes[0].state: expected one of up, drained, down, found 'broken'");
  EXPECT_EQ(ErrorOf(Node("a", "labels: [x]")),
            "c.yaml:3: nodes[0].labels: expected a mapping (key: value), found a list of 1");
  EXPECT_EQ(std::string(Parse("nodes: []\n").status().message()),
            "c.yaml:2: nodes: expected at least one node, found a list of 0");
}

TEST(ClusterFile, NodesAreUnique) {
  EXPECT_EQ(ErrorOf(Node("a") + Node("a")),
            "c.yaml:4: nodes[1]: name: expected a name of its own, found 'a' as on line 3");
  EXPECT_EQ(ErrorOf(Node("n-001") + Node("n", "count: 2")),
            "c.yaml:4: nodes[1]: name: expected a name of its own, found 'n-001' as on line 3");
  EXPECT_EQ(ErrorOf(Node("a", "id: 2") + Node("b")),
            "c.yaml:4: nodes[1]: id: expected an id of its own, found 2 as on line 3");
  EXPECT_EQ(ErrorOf(Node("a", "id: 18446744073709551615, count: 2")),
            "c.yaml:3: nodes[0]: expected ids of all replicas to fit in 64 bits, found them beyond");
}

TEST(ClusterFile, ReplicationIsBounded) {
  EXPECT_EQ(ErrorOf(Node("a", "count: 1000001")),
            "c.yaml:3: nodes[0].count: expected an integer from 1 to 1000000, found '1000001'");
  EXPECT_EQ(ErrorOf(Node("a", "count: 10000, gpus: [{type: t4, count: 1000}]")),
            "c.yaml:3: nodes[0]: expected at most 4000000 devices in all, found 10000000");
  EXPECT_THAT(ErrorOf(Node("a", "count: 1000000, labels: {k: " + std::string(1000, 'x') + "}")),
              HasSubstr("bytes of labels in all"));
}

std::string Resident(const std::string& more) {
  return "nodes:\n" + Node("a", "gpus: [{type: t4, count: 4}]") + Node("cpu") +
         "residents:\n  - {name: r, demand: {any: {gpu_util_pct: 10, gpu_memory_gib: 1}}" + more + "}\n";
}

TEST(ClusterFile, ResidentsSayWhereTheyRun) {
  const auto file =
      Parse(Resident(", id: 9, gpus: 2, tasks: 2, on: [{node: a, gpu: 3}, {node: a, gpu: 1}, "
                     "{node: a, gpu: 0}, {node: a, gpu: 2}]"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->residents.size(), 1u);
  const Slots expected = {{1, 1, 0}, {1, 3, 0}, {1, 0, 1}, {1, 2, 1}};
  EXPECT_EQ(file->residents[0].slots, expected);
  absl::StatusOr<Cluster> cluster = MakeCluster(*file);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_TRUE(cluster->Adopt(file->residents[0].job.spec, file->residents[0].slots).ok());
}

TEST(ClusterFile, WrongResidentsNameKeyExpectedAndFound) {
  const auto with = [](const std::string& more) { return std::string(Parse(Resident(more)).status().message()); };
  const std::string at = "c.yaml:6: residents[0]";
  EXPECT_EQ(with(", on: [{node: a, gpu: 0}]"), at + ": expected key 'id' (an unsigned number), found none");
  EXPECT_EQ(with(", id: 9"), at + ": expected key 'on' (a list of {node, gpu}), found none");
  EXPECT_EQ(with(", id: 9, on: []"),
            at + ".on: expected one {node, gpu} for each of its 1 GPUs (tasks x gpus), found a list of 0");
  EXPECT_EQ(with(", id: 9, on: [{node: b, gpu: 0}]"),
            at + ".on[0].node: expected the name of a node of this file, found 'b'; did you mean 'a'?");
  EXPECT_EQ(with(", id: 9, on: [{node: a, gpu: 4}]"), at + ".on[0].gpu: expected an integer from 0 to 3, found '4'");
  EXPECT_EQ(with(", id: 9, on: [{node: cpu, gpu: 0}]"), at + ".on[0].node: expected a node that has GPUs, found 'cpu'");
}

TEST(ClusterFile, ClusterHasNodesTypesAndStates) {
  const auto file = Nodes(Node("a", "state: down, gpus: [{type: v100-16gb}]") + Node("b", "gpus: [{type: t4}]"));
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<Cluster> cluster = MakeCluster(*file);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->node_count(), 2u);
  EXPECT_EQ(cluster->Node(1)->state, AdminState::kDown);
  EXPECT_EQ(cluster->Node(2)->state, AdminState::kUp);
  EXPECT_EQ(TypesPresent(*file).size(), 2u);
}

TEST(ClusterFile, MissingGpuFileIsNamedWhereItIsAskedFor) {
  EXPECT_THAT(std::string(Parse("gpu_types_files: [none.yaml]\nnodes: []\n").status().message()),
              HasSubstr("c.yaml:2: gpu_types_files[0]: none.yaml: cannot open: "));
  EXPECT_THAT(std::string(Parse("gpu_types_files: [/dev/null]\nnodes: []\n").status().message()),
              HasSubstr("c.yaml:2: gpu_types_files[0]: /dev/null: expected a regular file, found another kind"));
}

}  // namespace
}  // namespace horus
