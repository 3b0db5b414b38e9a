// SPDX-License-Identifier: Apache-2.0
// What holds of every round by sensitivity, on random servers, residents and jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "lab/synergy/round.h"
#include "lab/synergy/rules.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::Random;

constexpr int kInstances = HORUS_PROPERTY_OPS / 20;
constexpr SynergyRule kRules[] = {SynergyRule::kGreedy, SynergyRule::kFair, SynergyRule::kTune
#ifdef HORUS_TEST_LP
                                  ,
                                  SynergyRule::kOpt
#endif
};

int32_t Between(Random& random, int32_t least, int32_t most) {
  return least + static_cast<int32_t>(random.Below(static_cast<uint64_t>(most - least + 1)));
}

// Noisy, with holes, over 1-8 points a side.
Sensitivity RandomMatrix(Random& random) {
  std::vector<int64_t> cpu, mem;
  for (int32_t i = Between(random, 1, 8), at = 0; i > 0; --i) cpu.push_back(at += Between(random, 500, 3000));
  for (int32_t i = Between(random, 1, 8), at = 0; i > 0; --i) mem.push_back(at += Between(random, 10, 80));
  std::vector<float> speeds;
  for (size_t i = 0; i < cpu.size() * mem.size(); ++i) {
    speeds.push_back(Between(random, 0, 9) == 0 ? 0.0f : 0.01f * static_cast<float>(Between(random, 1, 300)));
  }
  speeds.back() = 1;
  return *Sensitivity::Create(cpu, mem, speeds);
}

struct Instance {
  std::vector<Sensitivity> matrices;
  std::vector<SynergyServer> servers;
  std::vector<SynergyResident> residents;
  std::vector<SynergyJob> jobs;
  std::vector<uint32_t> evens;  // an allowed list

  [[nodiscard]] SynergyInput input() const { return {servers, residents, jobs}; }
  [[nodiscard]] HostShare Fair(uint32_t server) const {
    return FairShare(servers[server].cpu_milli, servers[server].mem_mib, servers[server].gpus);
  }
};

const Sensitivity* AnyMatrix(Random& random, const Instance& instance) {
  const auto index = static_cast<size_t>(Between(random, 0, static_cast<int32_t>(instance.matrices.size())));
  return index == instance.matrices.size() ? nullptr : &instance.matrices[index];
}

// Residents hold their floor, some twice as much where that fits.
void AddResidents(Random& random, Instance& instance, uint32_t server) {
  SynergyServer& target = instance.servers[server];
  while (target.gpus_free > 0 && Between(random, 0, 1) == 1) {
    const int32_t gpus = Between(random, 1, target.gpus_free);
    const Sensitivity* matrix = AnyMatrix(random, instance);
    const HostShare floor = SynergyFloor({.sensitivity = matrix}, instance.Fair(server));
    SynergyResident resident = {.slices = {{server, gpus}}, .held = floor, .floor = floor, .sensitivity = matrix};
    const auto fits = [&](int64_t times) {
      return times * gpus * floor.cpu_milli <= target.cpu_free_milli &&
             times * gpus * floor.mem_mib <= target.mem_free_mib;
    };
    if (!fits(1)) return;
    if (fits(2) && Between(random, 0, 1) == 1) resident.held = {2 * floor.cpu_milli, 2 * floor.mem_mib};
    target.gpus_free -= gpus;
    target.cpu_free_milli -= gpus * resident.held.cpu_milli;
    target.mem_free_mib -= gpus * resident.held.mem_mib;
    instance.residents.push_back(resident);
  }
}

Instance RandomInstance(Random& random, bool alike) {
  Instance instance;
  for (int32_t i = Between(random, 1, 4); i > 0; --i) instance.matrices.push_back(RandomMatrix(random));
  const int32_t servers = Between(random, 1, 6);
  const int32_t gpus = Between(random, 1, 8);
  for (int32_t s = 0; s < servers; ++s) {
    const int32_t size = alike ? gpus : Between(random, 1, 8);
    const int64_t cpu = size * (alike ? 3000 : Between(random, 1000, 5000));
    const int64_t mem = size * (alike ? 60 : Between(random, 20, 90));
    instance.servers.push_back({.gpus = size,
                                .gpus_free = size,
                                .cpu_milli = cpu,
                                .mem_mib = mem,
                                .cpu_free_milli = cpu,
                                .mem_free_mib = mem,
                                .kind = alike ? 0u : static_cast<uint32_t>(Between(random, 0, 1))});
    if (s % 2 == 0) instance.evens.push_back(static_cast<uint32_t>(s));
  }
  for (uint32_t s = 0; s < instance.servers.size(); ++s) AddResidents(random, instance, s);
  for (int32_t j = Between(random, 0, 20); j > 0; --j) {
    SynergyJob job = {.gpus = Between(random, 1, 6), .sensitivity = AnyMatrix(random, instance)};
    job.unit = Between(random, 0, 1) == 0 ? 1 : job.gpus;
    if (!alike && Between(random, 0, 4) == 0) job.allowed = instance.evens;
    if (!alike && Between(random, 0, 4) == 0) job.need = {Between(random, 0, 6000), Between(random, 0, 100)};
    instance.jobs.push_back(job);
  }
  return instance;
}

size_t Running(const SynergyRound& round) {
  return static_cast<size_t>(std::count_if(round.grants.begin(), round.grants.end(),
                                           [](const SynergyGrant& grant) { return !grant.slices.empty(); }));
}

// Never below what the fair share of its servers gives; with no matrix never less than that share.
void CheckAtLeastFair(const Instance& instance, const Sensitivity* sensitivity, const HostShare& share,
                      std::span<const SynergySlice> slices) {
  for (const SynergySlice& slice : slices) {
    const HostShare fair = instance.Fair(slice.server);
    if (sensitivity == nullptr) {
      EXPECT_TRUE(IsWithin(fair, share));
    } else {
      EXPECT_GE(sensitivity->Speed(share), sensitivity->Speed(fair));
    }
  }
}

void CheckCapacity(const Instance& instance, const SynergyRound& round) {
  std::vector<SynergyServer> servers = instance.servers;
  const auto take = [&](std::span<const SynergySlice> slices, const HostShare& share, int64_t sign, int32_t gpu_sign) {
    for (const SynergySlice& slice : slices) {
      servers[slice.server].gpus_free -= gpu_sign * slice.gpus;
      servers[slice.server].cpu_free_milli -= sign * slice.gpus * share.cpu_milli;
      servers[slice.server].mem_free_mib -= sign * slice.gpus * share.mem_mib;
    }
  };
  for (const SynergyResize& resize : round.resizes) {
    const SynergyResident& resident = instance.residents[resize.resident];
    take(resident.slices, resident.held, -1, 0);
    take(resident.slices, resize.share, 1, 0);
  }
  for (const SynergyGrant& grant : round.grants) take(grant.slices, grant.share, 1, 1);
  for (const SynergyServer& server : servers) {
    EXPECT_GE(server.gpus_free, 0);
    EXPECT_GE(server.cpu_free_milli, 0);
    EXPECT_GE(server.mem_free_mib, 0);
  }
}

void CheckGrants(const Instance& instance, const SynergyRound& round) {
  ASSERT_EQ(round.grants.size(), instance.jobs.size());
  for (size_t j = 0; j < round.grants.size(); ++j) {
    const SynergyGrant& grant = round.grants[j];
    const SynergyJob& job = instance.jobs[j];
    if (grant.slices.empty()) continue;
    int32_t gpus = 0;
    for (size_t i = 0; i < grant.slices.size(); ++i) {
      const SynergySlice& slice = grant.slices[i];
      gpus += slice.gpus;
      EXPECT_EQ(slice.gpus % job.unit, 0);
      EXPECT_EQ(instance.servers[slice.server].kind, instance.servers[grant.slices[0].server].kind);
      EXPECT_TRUE(i == 0 || grant.slices[i - 1].server < slice.server);
      EXPECT_TRUE(job.allowed.empty() || slice.server % 2 == 0);
    }
    EXPECT_EQ(gpus, job.gpus);
    EXPECT_TRUE(IsWithin(job.need, grant.share));
    EXPECT_EQ(grant.speed, job.sensitivity == nullptr ? 1 : job.sensitivity->Speed(grant.share));
    CheckAtLeastFair(instance, job.sensitivity, grant.share, grant.slices);
  }
  for (const SynergyResize& resize : round.resizes) {
    const SynergyResident& resident = instance.residents[resize.resident];
    EXPECT_TRUE(IsWithin(resident.floor, resize.share));
    CheckAtLeastFair(instance, resident.sensitivity, resize.share, resident.slices);
  }
}

double SummedSpeed(const Instance& instance, const SynergyRound& round) {
  std::vector<HostShare> held;
  for (const SynergyResident& resident : instance.residents) held.push_back(resident.held);
  for (const SynergyResize& resize : round.resizes) held[resize.resident] = resize.share;
  double sum = 0;
  for (size_t i = 0; i < held.size(); ++i) {
    const Sensitivity* matrix = instance.residents[i].sensitivity;
    sum += matrix == nullptr ? 1 : matrix->Speed(held[i]);
  }
  for (const SynergyGrant& grant : round.grants) sum += grant.speed;
  return sum;
}

TEST(SynergyProperty, NobodyFallsBelowFairAndNoServerOverflows) {
  Random random(11);
  [[maybe_unused]] int bounded = 0;
  for (int i = 0; i < kInstances && !testing::Test::HasFailure(); ++i) {
    const Instance instance = RandomInstance(random, i % 2 == 0);
    SCOPED_TRACE(i);
    size_t fair_running = 0;
    for (const SynergyRule rule : kRules) {
      for (const bool grow : {false, true}) {
        SCOPED_TRACE(SynergyNames()[static_cast<size_t>(rule)]);
        const auto round = AllocateRound(rule, instance.input(), {.grow = grow});
        ASSERT_TRUE(round.ok()) << round.status();
        CheckGrants(instance, *round);
        CheckCapacity(instance, *round);
        if (rule == SynergyRule::kFair) fair_running = Running(*round);
        EXPECT_TRUE(rule != SynergyRule::kTune || Running(*round) >= fair_running);
        // Fewer jobs may be faster together than all of them.
        if (rule == SynergyRule::kOpt && Running(*round) == instance.jobs.size()) {
          EXPECT_LE(SummedSpeed(instance, *round), round->bound * (1 + 1e-6));
          ++bounded;
        }
        EXPECT_EQ(*round, *AllocateRound(rule, instance.input(), {.grow = grow})) << "twice asked, twice the same";
      }
    }
  }
#ifdef HORUS_TEST_LP
  EXPECT_GT(bounded, kInstances / 20) << "the bound was hardly ever tested";
#endif
}

// The first in (free GPUs, index) with the GPUs and the room, by looking at all of them.
std::optional<uint32_t> Scan(const SynergyState& state, size_t servers, int32_t gpus, const HostShare& least) {
  std::optional<uint32_t> best;
  for (uint32_t s = 0; s < servers; ++s) {
    const int32_t free = state.server(s).gpus_free;
    if (free < gpus || !IsWithin(least, state.Free(s))) continue;
    if (!best.has_value() || free < state.server(*best).gpus_free) best = s;
  }
  return best;
}

TEST(SynergyProperty, BestFitIsThatOfAScanWhateverHappened) {
  Random random(5);
  constexpr int32_t kServers = 300;  // several blocks
  std::vector<SynergyServer> servers;
  for (int32_t s = 0; s < kServers; ++s) {
    const int64_t cpu = Between(random, -10, 100);
    servers.push_back({.gpus = 8,
                       .gpus_free = Between(random, 0, 8),
                       .cpu_milli = 100,
                       .mem_mib = 100,
                       .cpu_free_milli = cpu,
                       .mem_free_mib = Between(random, 0, 100)});
  }
  const std::vector<SynergyJob> jobs(400);
  SynergyState state({.servers = servers, .residents = {}, .jobs = jobs});
  size_t placed = 0;
  for (int i = 0; i < HORUS_PROPERTY_OPS; ++i) {
    const int32_t gpus = Between(random, 1, 8);
    const HostShare least = {Between(random, 0, 100), Between(random, 0, 100)};
    const auto found = state.BestFit(gpus, least, [&](uint32_t s) { return IsWithin(least, state.Free(s)); });
    ASSERT_EQ(found, Scan(state, kServers, gpus, least)) << i;
    if (found.has_value() && i % 20 == 0 && placed < jobs.size()) {
      state.Place(placed++, {{*found, gpus}}, {least.cpu_milli / gpus, least.mem_mib / gpus}, {});
    } else if (placed > 0) {
      const size_t holder = random.Below(placed);
      const HostShare share = {Between(random, 0, 20), Between(random, 0, 20)};
      if (state.CanResize(holder, share)) state.Resize(holder, share);
    }
  }
  EXPECT_GT(placed, 100u);
}

}  // namespace
}  // namespace horus
