// SPDX-License-Identifier: Apache-2.0
// Hostile snapshots: altered messages in a valid envelope are refused or give a sound cluster, never a crash.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "interference/registry.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "place/state/snapshot.h"
#include "place/state/snapshot_envelope.h"
#include "random_cluster.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_property::Random;
using testing_property::RandomJob;
using testing_property::RandomNode;

std::span<const uint8_t> View(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

std::string SmallSnapshot(Random& random, Placer& placer) {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 0; id < 3; ++id) EXPECT_TRUE(cluster.AddNode(RandomNode(random, id)).ok());
  std::vector<JobSpec> jobs;
  for (JobId id = 0; id < 8; ++id) jobs.push_back(RandomJob(random, id));
  const auto plan = placer.MakePlan(cluster, jobs);
  EXPECT_TRUE(plan.ok() && cluster.Apply(*plan).ok());
  return *SaveSnapshot(cluster);
}

void Alter(Random& random, std::string& message) {
  for (uint64_t edits = 1 + random.Below(3); edits > 0 && !message.empty(); --edits) {
    const size_t at = random.Below(message.size());
    switch (random.Below(4)) {
      case 0:
        message.erase(at, 1 + random.Below(4));
        break;
      case 1:
        message.insert(at, 1, static_cast<char>(random.Next()));
        break;
      case 2:
        message.insert(at, message.substr(random.Below(message.size()), random.Below(40)));
        break;
      default:
        message[at] = static_cast<char>(random.Next());
        break;
    }
  }
}

TEST(SnapshotProperty, AlteredMessagesAreRefusedOrSound) {
  constexpr int kRounds = HORUS_PROPERTY_OPS / 4;
  Random random(11);
  auto placer = *Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"));
  int restored_ok = 0;
  std::string good;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    if (round % 100 == 0) good = SmallSnapshot(random, *placer);
    std::string message = good.substr(kEnvelopeBytes);
    Alter(random, message);
    const auto restored = RestoreSnapshot(View(WrapSnapshot(message)), Catalogue::Default());
    if (!restored.ok()) {
      ASSERT_FALSE(restored.status().message().empty());
      continue;
    }
    ++restored_ok;
    const absl::Status sound = CheckInvariants(*restored);
    ASSERT_TRUE(sound.ok()) << sound;
    const std::string again = *SaveSnapshot(*restored);
    ASSERT_EQ(RestoreSnapshot(View(again), Catalogue::Default())->state_hash(), restored->state_hash());
  }
  EXPECT_GT(restored_ok, kRounds / 50);  // harmless edits exist: the second half must be reached
}

}  // namespace
}  // namespace horus
