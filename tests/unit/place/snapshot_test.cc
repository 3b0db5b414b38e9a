// SPDX-License-Identifier: Apache-2.0
// Rules of snapshots: what is saved comes back, and nothing else is believed.
#include "place/state/snapshot.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "fixtures.h"
#include "place/state/snapshot_envelope.h"
#include "snapshot_bytes.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Number;
using testing_place::OneGpu;
using testing_place::Part;
using testing_place::PlaceOne;
using testing_place::Type;
using testing_place::V100Node;

std::span<const uint8_t> View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

absl::StatusOr<Cluster> Restore(const std::string& bytes) { return RestoreSnapshot(View(bytes), Catalogue::Default()); }

Cluster Rich() {
  Cluster cluster(Catalogue::Default());
  NodeSpec mig = V100Node(5, 0);
  mig.name = "mig-node";
  mig.labels = {{"zone", "a"}};
  mig.devices.assign(
      2, {.type = Type("a100-40gb"), .mode = SharingMode::kMig, .mig_profile = 1, .physical_gpu = 0, .island = 2});
  EXPECT_TRUE(cluster.AddNode(V100Node(9, 4, 3)).ok());
  EXPECT_TRUE(cluster.AddNode(mig).ok());
  EXPECT_TRUE(cluster.AddNode(V100Node(7)).ok());
  JobSpec typed = OneGpu(2, 50);
  typed.demands = {{Type("k80"), testing_place::Needs(80, 3000)},
                   {Type("v100-sxm2-16gb"), testing_place::Needs(50, 3000)}};
  typed.demands[0].demand.traits[3] = 0.5f;
  NormalizeJob(typed);
  typed.name = "typed";
  typed.tenant = "team";
  typed.priority = -3;
  typed.weight = 0.25f;
  typed.slowdown_bound = 1.25f;
  EXPECT_TRUE(cluster.Adopt(typed, std::vector<Slot>{{9, 3, 0}}).ok());
  PlaceOne(cluster, *MakePlacer(), Gang(1, 3, 1));
  EXPECT_TRUE(cluster.SetNodeState(7, AdminState::kDrained).ok());
  EXPECT_TRUE(cluster.SetDeviceState(9, 1, AdminState::kDown).ok());
  return cluster;
}

TEST(Snapshot, RestoresStateVersionsAndFlags) {
  const Cluster cluster = Rich();
  const std::string bytes = *SaveSnapshot(cluster);
  const auto restored = Restore(bytes);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state_hash(), cluster.state_hash());
  EXPECT_EQ(restored->Node(9)->version, cluster.Node(9)->version);
  EXPECT_EQ(*restored->Job(2)->spec, *cluster.Job(2)->spec);
  EXPECT_TRUE(restored->Job(2)->adopted);
  EXPECT_FALSE(restored->Job(1)->adopted);
  EXPECT_EQ(*SaveSnapshot(*restored), bytes);
  EXPECT_TRUE(CheckInvariants(*restored).ok());
}

TEST(Snapshot, KeepsOneMatrixForAllJobsOfEqualSensitivity) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(V100Node(1, 3)).ok());
  const std::vector<float> speeds(200, 1.0f);
  std::vector<int64_t> cores;
  for (int64_t c = 1; c <= 200; ++c) cores.push_back(c * 1000);
  size_t size = 0;
  for (const JobId id : {1, 2}) {
    JobSpec job = OneGpu(id);
    EXPECT_EQ(job.sensitivity, SharedSensitivity());
    job.sensitivity = SharedSensitivity(*Sensitivity::Create(cores, {1024}, speeds));
    EXPECT_NE(job.sensitivity, SharedSensitivity());
    ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{1, static_cast<int32_t>(id), 0}}).ok());
    const size_t before = size;
    size = SaveSnapshot(cluster)->size();
    if (id == 2) {
      EXPECT_LT(size - before, 200u) << "the second job has its matrix from the first";
    }
  }
  const auto restored = Restore(*SaveSnapshot(cluster));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored->Job(1)->spec, *cluster.Job(1)->spec);
  EXPECT_EQ(restored->Job(1)->spec->sensitivity.get(), restored->Job(2)->spec->sensitivity.get());
  EXPECT_EQ(restored->state_hash(), cluster.state_hash());
  Cluster without(Catalogue::Default());
  ASSERT_TRUE(without.AddNode(V100Node(1, 3)).ok());
  for (const JobId id : {1, 2}) {
    ASSERT_TRUE(without.Adopt(OneGpu(id), std::vector<Slot>{{1, static_cast<int32_t>(id), 0}}).ok());
  }
  EXPECT_NE(without.state_hash(), cluster.state_hash());
}

TEST(Snapshot, RefusesEveryTruncationAndEveryAlteredByte) {
  const std::string bytes = *SaveSnapshot(Rich());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(Restore(bytes.substr(0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 0x41);
    ASSERT_FALSE(Restore(altered).ok()) << at;
  }
}

TEST(Snapshot, NamesThePartThatNoClusterHas) {
  const auto refused = [](const std::string& message) {
    const absl::Status status = Restore(WrapSnapshot(message)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  std::string devices;
  for (size_t i = 0; i <= kMaxDevicesPerNode; ++i) devices += Part(8, "");
  EXPECT_THAT(refused(Part(2, Number(1, 1) + devices)), HasSubstr("node 1: expected at most 1024 devices, found 1025"));
  EXPECT_THAT(refused(Part(3, Part(12, std::string(4 * (kTraitCount + 1), '\0')))),
              HasSubstr("demands[0]: expected at most"));
  EXPECT_THAT(refused(Part(6, "")), HasSubstr("sensitivities[0]: "));
  EXPECT_THAT(refused(Part(4, Number(1, 7) + Number(23, 6))),
              HasSubstr("job 7: expected one of 0 sensitivities, found index 5"));
}

TEST(Snapshot, RefusesSealedBytesThatAreNoMessage) {
  const std::string half_a_node = Part(2, "\x08");
  for (const auto& [message, said] : std::vector<std::pair<std::string, std::string>>{
           {"\x12", "byte 1 of the message of 1 bytes: expected a field"},
           {std::string(1, '\0'), "expected a field"},
           {"\x28\xFF", "expected a field"},
           {"\x12\x05"
            "abc",
            "expected a field"},
           {"\x3B", "expected a field"},  // a group of an unknown field, without end
           {half_a_node, "nodes[0] of 1 bytes cannot be parsed"},
           {Part(2, "\x08\x07") + Part(4, "\x08"), "jobs[0] of 1 bytes cannot be parsed"},
           {Part(3, "") + Part(3, "\x08"), "demands[1] of 1 bytes cannot be parsed"},
           {Part(6, "\x08"), "sensitivities[0] of 1 bytes cannot be parsed"},
           {Part(4, std::string(kMaxSnapshotPartBytes + 1, '\0')), "expected a part of at most 8388608 bytes"}}) {
    const auto restored = Restore(WrapSnapshot(message));
    EXPECT_EQ(restored.status().code(), absl::StatusCode::kDataLoss) << said;
    EXPECT_THAT(restored.status().message(), HasSubstr(said));
  }
}

TEST(Snapshot, PassesOverFieldsItDoesNotKnowInAnyOrder) {
  const Cluster cluster = Rich();
  const std::string saved = *SaveSnapshot(cluster);
  const std::string message = saved.substr(kEnvelopeBytes);
  // Field 12 as a number, as bytes and as a group; and a number where nodes are expected.
  const auto restored = Restore(WrapSnapshot(Part(12, "later") + "\x60\x01" + message + "\x63\x64" + "\x10\x05"));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*SaveSnapshot(*restored), saved);
}

TEST(Snapshot, NamesBothVersionsOfANewerOne) {
  std::string bytes = *SaveSnapshot(Rich());
  bytes[8] = 7;
  const absl::Status status = Restore(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 7 is newer than 2"));
}

TEST(Snapshot, ReadsWhatVersionOneWrote) {
  const Cluster cluster = Rich();  // nothing in it needs version 2, whose message is then that of version 1
  const std::string bytes = *SaveSnapshot(cluster);
  const auto restored = Restore(WrapSnapshot(bytes.substr(kEnvelopeBytes), /*version=*/1));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state_hash(), cluster.state_hash());
  EXPECT_EQ(*SaveSnapshot(*restored), bytes);
}

TEST(Snapshot, MatchesTypesByNameAcrossCatalogues) {
  const Cluster cluster = Rich();
  const std::string bytes = *SaveSnapshot(cluster);
  const auto missing = RestoreSnapshot(View(bytes), std::make_shared<const Catalogue>());
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  std::vector<GpuType> reversed(cluster.catalogue().types().rbegin(), cluster.catalogue().types().rend());
  auto other = Catalogue::Extend(Catalogue(), reversed);
  ASSERT_TRUE(other.ok()) << other.status();
  const auto restored = RestoreSnapshot(View(bytes), std::make_shared<const Catalogue>(*other));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_NE(restored->Device(5, 0)->spec.type, cluster.Device(5, 0)->spec.type);
  EXPECT_EQ(*SaveSnapshot(*restored), bytes);
}

TEST(Snapshot, IsRefusedAboveItsMostBytes) {
  const Cluster cluster = Rich();
  const std::string bytes = *SaveSnapshot(cluster);
  EXPECT_EQ(*SaveSnapshot(cluster, bytes.size()), bytes);
  const absl::Status saved = SaveSnapshot(cluster, bytes.size() - 1).status();
  EXPECT_EQ(saved.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(saved.message(),
              HasSubstr(std::to_string(bytes.size() - 1) + " bytes, found " + std::to_string(bytes.size())));

  // Whose bytes nobody may read.
  void* const much =
      mmap(nullptr, kMaxSnapshotBytes + 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(much, MAP_FAILED);
  const absl::Status read =
      RestoreSnapshot({static_cast<const uint8_t*>(much), kMaxSnapshotBytes + 1}, Catalogue::Default()).status();
  EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(read.message(), HasSubstr("expected at most 1073741824 bytes, found 1073741825"));
  munmap(much, kMaxSnapshotBytes + 1);
}

}  // namespace
}  // namespace horus
