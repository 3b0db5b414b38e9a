// SPDX-License-Identifier: Apache-2.0
// Rules of what a job may state beyond its demand: device memory, with whom it shares, what it keeps away from.
#include <gmock/gmock.h>

#include "fixtures.h"
#include "place/snapshot.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Decide;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;

// Of 16,384 MiB, 500 of them headroom.
JobSpec Memory(JobId id, int64_t request_mib, int64_t limit_mib) {
  JobSpec job = OneGpu(id, 10, 2000);
  job.gpu_mem_request_mib = request_mib;
  job.gpu_mem_limit_mib = limit_mib;
  return job;
}

TEST(GpuMemoryOfAJob, IsTheDemandsBoundUnlessStated) {
  Demand demand = testing_place::Needs(10, 2000);
  demand.mem_mib.upper = 3000;
  const auto of = [&](int64_t request, int64_t limit) { return GpuMemoryOf(Memory(1, request, limit), demand); };
  EXPECT_EQ(of(0, 0), (GpuMemory{3000, 3000}));
  EXPECT_EQ(of(2500, 0), (GpuMemory{2500, 2500}));
  EXPECT_EQ(of(0, 8000), (GpuMemory{3000, 8000}));
  EXPECT_EQ(of(0, 2800), (GpuMemory{2800, 2800}));  // it is never given more than its limit
  EXPECT_EQ(of(1000, 8000), (GpuMemory{1000, 8000}));
}

TEST(GpuMemoryOfAJob, IsCheckedByField) {
  EXPECT_TRUE(ValidateJob(Memory(1, 4000, 4000)).ok());
  EXPECT_THAT(ValidateJob(Memory(1, 4000, 3999)).message(), HasSubstr("gpu_mem_limit_mib: expected 0 or at least"));
  EXPECT_THAT(ValidateJob(Memory(1, -1, 0)).message(), HasSubstr("gpu_mem_request_mib"));
  JobSpec host = testing_place::CpuOnly(1);
  host.gpu_mem_limit_mib = 1;
  EXPECT_THAT(ValidateJob(host).message(), HasSubstr("without GPUs"));
  EXPECT_THAT(Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"), {.mem_overcommit = 0.9})
                  .status()
                  .message(),
              HasSubstr("mem_overcommit"));
}

TEST(Fit, CountsMemoryRequestsNotDemands) {
  Cluster cluster = Nodes(1, 1);
  PlaceOne(cluster, *MakePlacer(), Memory(1, 10'000, 0));
  EXPECT_EQ(cluster.Device(1, 0)->mem_used_upper_mib, 10'000);
  const Decision refused = Decide(cluster, Memory(2, 5885, 0));  // 10,000 + 5,885 + 500 = 16,385
  EXPECT_EQ(refused.reason, Reason::kGpuMemory);
  EXPECT_EQ(refused.miss.needed, 5885);
  EXPECT_EQ(refused.miss.available, 5884);
  EXPECT_EQ(Decide(cluster, Memory(2, 5884, 0)).verdict, Verdict::kPlace);
  EXPECT_EQ(Decide(cluster, Memory(2, 0, 0)).verdict, Verdict::kPlace);  // its demand of 2,000
}

TEST(Fit, LendsLimitsTwiceOnlyWhereOverCommitIsStated) {
  Cluster cluster = Nodes(1, 1);
  PlaceOne(cluster, *MakePlacer(), Memory(1, 2000, 10'000));
  EXPECT_EQ(cluster.Device(1, 0)->mem_limit_mib, 10'000);
  EXPECT_EQ(Decide(cluster, Memory(2, 2000, 5884)).verdict, Verdict::kPlace);
  const Decision refused = Decide(cluster, Memory(2, 2000, 5885));
  EXPECT_EQ(refused.reason, Reason::kGpuMemory);
  EXPECT_EQ(refused.miss.unit, "MiB of limits");
  // 16,384 x 1.5 = 24,576: 10,000 + 14,076 + 500.
  EXPECT_EQ(Decide(cluster, Memory(2, 2000, 14'076), "horus", {.mem_overcommit = 1.5}).verdict, Verdict::kPlace);
  EXPECT_EQ(Decide(cluster, Memory(2, 2000, 14'077), "horus", {.mem_overcommit = 1.5}).reason, Reason::kGpuMemory);
  // Requests are never lent twice.
  EXPECT_EQ(Decide(cluster, Memory(2, 13'885, 0), "horus", {.mem_overcommit = 1000}).reason, Reason::kGpuMemory);
}

TEST(Fit, AppliesPlansThatOverCommitLimits) {
  Cluster cluster = Nodes(1, 1);
  const auto placer = MakePlacer("horus", {.mem_overcommit = 2});
  for (JobId id = 1; id <= 3; ++id) {
    EXPECT_EQ(PlaceOne(cluster, *placer, Memory(id, 1000, 10'000)).verdict, Verdict::kPlace) << id;
  }
  EXPECT_TRUE(cluster.CheckInvariants().ok());
}

TEST(Snapshot, KeepsMemoryRequestsAndLimits) {
  Cluster cluster = Nodes(1, 1);
  PlaceOne(cluster, *MakePlacer(), Memory(1, 1000, 9000));
  const std::string bytes = *SaveSnapshot(cluster);
  const auto restored =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, Catalogue::Default());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored->Job(1)->spec, *cluster.Job(1)->spec);
  EXPECT_EQ(restored->state_hash(), cluster.state_hash());
}

}  // namespace
}  // namespace horus
