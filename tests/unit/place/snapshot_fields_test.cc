// SPDX-License-Identifier: Apache-2.0
// A sealed snapshot whose fields say what no cluster has is refused by the field's name.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "fixtures.h"
#include "place/state/snapshot.h"
#include "place/state/snapshot_envelope.h"
#include "snapshot_bytes.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Number;
using testing_place::Part;

constexpr uint64_t kZigzagBelow = 2 * 32'769 - 1;  // -32769 and 32768, as sint32 has them: one beyond 16 bits
constexpr uint64_t kZigzagAbove = 2 * 32'768;
constexpr uint64_t kMinusOne = ~uint64_t{0};

absl::StatusOr<Cluster> Restore(const std::string& message) {
  const std::string sealed = WrapSnapshot(message);
  return RestoreSnapshot({reinterpret_cast<const uint8_t*>(sealed.data()), sealed.size()}, Catalogue::Default());
}

// One type; node 7 with one device, `device` and `node` added to it; one demand; job 3 there, `job` and `slot` added.
// Of fields that come twice the last counts.
struct Fields {
  std::string device, node, job, slot;
};
std::string Message(const Fields& more) {
  const std::string device = Number(1, 0) + Number(9, 16'000) + more.device;
  const std::string node = Number(1, 7) + Number(3, 8000) + Part(8, device) + more.node;
  const std::string demand = Number(6, 100) + Number(7, 100);
  const std::string job = Number(1, 3) + Number(5, 1) + Number(6, 1) + Part(18, Number(2, 0)) +
                          Part(20, Number(1, 7) + more.slot) + more.job;
  return Part(1, "v100-sxm2-16gb") + Part(2, node) + Part(3, demand) + Part(4, job);
}

TEST(SnapshotFields, AreRefusedByNameWhenOutOfRange) {
  const auto sound = Restore(Message({}));
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_TRUE(CheckInvariants(*sound).ok());
  EXPECT_EQ(sound->Job(3)->slots, (Slots{{7, 0, 0}}));
  const std::vector<std::pair<Fields, const char*>> cases = {
      {{.device = Number(1, 1)}, "node 7: expected one of 1 GPU types, found index 1"},
      {{.device = Number(2, 256)}, "node 7: mode: expected 0 to 255, found 256"},
      {{.device = Number(2, 9)}, "mode: expected a sharing mode (0 to 4), found 9"},
      {{.device = Number(4, kZigzagAbove)}, "node 7: physical_gpu: expected -32768 to 32767, found 32768"},
      {{.device = Number(4, kZigzagBelow)}, "node 7: physical_gpu: expected -32768 to 32767, found -32769"},
      {{.device = Number(5, kZigzagAbove)}, "node 7: island: expected"},
      {{.device = Number(6, kZigzagBelow)}, "node 7: pcie_switch: expected"},
      {{.device = Number(7, kZigzagAbove)}, "node 7: socket: expected"},
      {{.device = Number(10, 3)}, "node 7: state: expected 0 to 2, found 3"},
      {{.node = Number(9, 3)}, "node 7: state: expected 0 to 2, found 3"},
      {{.node = Number(3, kMinusOne)}, "cpu_milli: expected 0"},
      {{.job = Number(4, 256)}, "job 3: kind: expected 0 to 255, found 256"},
      {{.job = Number(4, 9)}, "kind: expected 0 to 2, found 9"},
      {{.job = Number(26, 256)}, "job 3: share: expected 0 to 255, found 256"},
      {{.job = Number(30, kMinusOne)}, "job 3: stated request: expected 0 or more, found -1"},
      {{.job = Number(31, kMinusOne)}, "job 3: stated request: expected 0 or more, found -1"},
      {{.job = Part(18, Number(2, 0))}, "job 3: expected at most one demand for each of 1 GPU types, found 2"},
      {{.slot = Number(2, 0x8000'0000)}, "job 3: slot: device: expected"},
      {{.slot = Number(3, 0x8000'0000)}, "job 3: slot: task: expected"},
      {{.slot = Number(2, 1)}, "device"},
      {{.slot = Number(3, 1)}, "slots: expected"},
  };
  for (const auto& [fields, said] : cases) {
    const absl::Status status = Restore(Message(fields)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << said;
    EXPECT_THAT(std::string(status.message()), HasSubstr(said));
  }
}

// What jobs have in common is read once; what is their own is believed no more for that.
TEST(SnapshotFields, OfJobsThatAskForTheSameAreRefusedAsThoseOfTheFirst) {
  const auto with = [](uint64_t id, const std::string& own) {
    const std::string job = Number(5, 1) + Number(6, 1) + Part(18, Number(2, 0)) + Part(20, Number(1, 7));
    return Restore(Message({.device = Number(2, 1)}) + Part(4, Number(1, 4) + job) +
                   Part(4, Number(1, id) + job + own));
  };
  const auto restored = with(5, Part(2, "five") + Number(14, 50) + Number(15, 60) + Number(21, 1));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_TRUE(CheckInvariants(*restored).ok());
  EXPECT_EQ(restored->Job(4)->spec->name + restored->Job(5)->spec->name, "five");
  EXPECT_EQ(restored->Job(4)->spec->submit_us, 0);
  EXPECT_EQ(restored->Job(5)->spec->submit_us, 50);
  EXPECT_EQ(restored->Job(5)->spec->deadline_us, 60);
  EXPECT_FALSE(restored->Job(4)->adopted);
  EXPECT_TRUE(restored->Job(5)->adopted);
  const std::vector<std::pair<std::string, const char*>> cases = {
      {Part(2, std::string(1025, 'x')), "job 5: name: expected at most 1024 bytes, found 1025"},
      {Number(14, kMinusOne), "submit_us: expected 0"},
      {Number(15, kMinusOne), "deadline_us: expected 0"},
      {Part(20, Number(1, 7)), "slots: expected 1"},
      {Number(22, 1), "job 5: expected over-commitment of adopted jobs alone"},
      {Part(20, "\x08"), "jobs[2] of 20 bytes cannot be parsed"},
  };
  for (const auto& [own, said] : cases) EXPECT_THAT(with(5, own).status().message(), HasSubstr(said));
  EXPECT_THAT(with(4, "").status().message(), HasSubstr("job 4: is in this cluster already"));
}

TEST(SnapshotFields, OfDemandsAreOnesThatTheSnapshotHas) {
  const auto refused = [](const std::string& demand) {
    const std::string job = Number(1, 3) + Number(5, 1) + Number(6, 1) + Part(18, demand);
    return Restore(Part(1, "v100-sxm2-16gb") + Part(3, Number(7, 5)) + Part(4, job)).status();
  };
  EXPECT_THAT(refused(Number(2, 1)).message(), HasSubstr("job 3: expected one of 1 demands, found index 1"));
  EXPECT_THAT(refused(Number(1, 2)).message(), HasSubstr("job 3: expected one of 1 GPU types, found index 1"));
}

TEST(SnapshotFields, OfADemandAreFew) {
  std::string repeated;  // one field again and again, parsed anew for each job
  while (repeated.size() <= 1024) repeated += Number(12, 1);
  EXPECT_THAT(Restore(Part(3, repeated)).status().message(),
              HasSubstr("demands[0]: expected at most 1024 bytes, found"));
}

TEST(SnapshotFields, ComeInTheOrderInWhichTheyAreSaved) {
  const auto refused = [](const std::string& message) { return std::string(Restore(message).status().message()); };
  EXPECT_THAT(refused(Part(2, Number(1, 8)) + Part(2, Number(1, 7))),
              HasSubstr("snapshot: node 7: expected ascending ids, found it after node 8"));
  EXPECT_THAT(refused(Part(2, Number(1, 7)) + Part(2, Number(1, 7))), HasSubstr("expected ascending ids"));
  EXPECT_THAT(refused(Part(1, "v100-sxm2-16gb") + Part(1, "k80")),
              HasSubstr("snapshot: GPU types: expected ascending names, found 'k80'"));
  EXPECT_THAT(refused(Part(1, "k80") + Part(1, "k80")), HasSubstr("expected ascending names"));
}

TEST(SnapshotFields, SayWhoTookMoreThanThereIs) {
  const std::string adopted = Number(21, 1), beyond = Number(22, 1);
  const std::string no_one = "expected over-commitment of adopted jobs alone";
  EXPECT_THAT(std::string(Restore(Message({.job = beyond})).status().message()), HasSubstr(no_one));
  for (const std::string& too_much : {Number(9, 8001), Number(10, 1), Number(11, 1), Number(24, 16'001)}) {
    const absl::Status unsaid = Restore(Message({.job = too_much})).status();
    EXPECT_EQ(unsaid.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(unsaid.message()), HasSubstr("node 7: expected a job that over-commits it"));
    const auto said = Restore(Message({.job = too_much + adopted + beyond}));
    ASSERT_TRUE(said.ok()) << said.status();
    EXPECT_TRUE(said->Job(3)->over_committed);
  }
  const auto two = [](const std::string& flags) {  // on one device; job 3 is exclusive
    const std::string other =
        Number(1, 4) + Number(5, 1) + Number(6, 1) + Part(18, Number(2, 0)) + Part(20, Number(1, 7));
    return Restore(Message({.job = Number(8, 1)}) + Part(4, other + flags));
  };
  EXPECT_FALSE(two("").ok());
  EXPECT_TRUE(two(adopted + beyond).ok());
}

TEST(SnapshotFields, WithoutTypesNeedNoCatalogue) {
  const std::string sealed = *SaveSnapshot(Cluster(nullptr));
  const auto restored =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(sealed.data()), sealed.size()}, /*catalogue=*/nullptr);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->catalogue().size(), 0u);
}

TEST(SnapshotFields, OfTheEnvelopeStartAtVersionOne) {
  const std::string sealed = WrapSnapshot(Message({}), /*version=*/0);
  const absl::Status status =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(sealed.data()), sealed.size()}, Catalogue::Default()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

}  // namespace
}  // namespace horus
