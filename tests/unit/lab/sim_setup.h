// SPDX-License-Identifier: Apache-2.0
// A setup small enough to compute by hand: one node of V100s, first come first served, speeds by table.
#ifndef HORUS_TESTS_UNIT_LAB_SIM_SETUP_H_
#define HORUS_TESTS_UNIT_LAB_SIM_SETUP_H_

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "interference/registry.h"
#include "lab/simulator.h"
#include "place/policies/policies.h"

namespace horus::testing_sim {

inline GpuTypeId Type(std::string_view name) { return *Catalogue::Default()->Find(name); }

// Speeds by table: alone by (profile, type), beside one other by both profiles.
class FixedTruth final : public Truth {
 public:
  std::map<std::pair<uint32_t, uint16_t>, double> alone;  // else 1
  std::map<std::pair<uint32_t, uint32_t>, double> share;  // of the first beside the second; else 1
  [[nodiscard]] double SpeedAlone(uint32_t profile, const DeviceContext& device) const override {
    const auto at = alone.find({profile, static_cast<uint16_t>(device.type.value())});
    return at == alone.end() ? 1 : at->second;
  }
  [[nodiscard]] absl::Status Shares(const DeviceContext& /*device*/, std::span<const uint32_t> profiles,
                                    std::span<double> shares) const override {
    for (size_t i = 0; i < profiles.size(); ++i) {
      shares[i] = 1;
      for (size_t j = 0; j < profiles.size(); ++j) {
        const auto at = share.find({profiles[i], profiles[j]});
        if (i != j && at != share.end()) shares[i] *= at->second;
      }
    }
    return absl::OkStatus();
  }
  std::map<uint32_t, int64_t> mem_mib;  // by profile; else not measured
  [[nodiscard]] int64_t MemMib(uint32_t profile, GpuTypeId /*type*/) const override {
    const auto at = mem_mib.find(profile);
    return at == mem_mib.end() ? 0 : at->second;
  }
};

inline Demand Needs(float util, int64_t mem_mib) {
  return {.gpu_util_pct = {util, util}, .mem_mib = {mem_mib, mem_mib}, .flags = kDemandGiven};
}

struct SimSetup {
  Trace trace;
  std::vector<ProfileDemands> beliefs;
  FixedTruth truth;
  Cluster cluster{Catalogue::Default()};
  std::unique_ptr<Queue> queue = *MakeQueue("fifo");
  std::unique_ptr<Placer> placer;
  SimOptions options;
  std::vector<std::tuple<SimEventKind, int64_t, uint32_t>> events;

  explicit SimSetup(std::string_view policy = "first-fit", size_t gpus = 1, int32_t tenants = 2) {
    placer = *Placer::Create(*MakeInterferenceModel("utilisation"), *MakePolicy(policy),
                             {.slowdown_bound = std::numeric_limits<double>::infinity(), .max_tenants = tenants});
    NodeSpec node{.id = 1, .cpu_milli = 64'000, .mem_mib = 1 << 20};
    std::vector<DeviceSpec> devices(gpus, DeviceSpec{.type = Type("v100-sxm2-16gb")});
    node.devices = devices;
    EXPECT_TRUE(cluster.AddNode(node).ok());
  }
  void AddProfile(float util, int64_t mem_mib) {
    trace.profiles.push_back(std::string("p") + std::to_string(trace.profiles.size()));
    beliefs.push_back({{GpuTypeId(), Needs(util, mem_mib)}});
  }
  void AddJob(int64_t submit_us, int64_t duration_us, uint32_t profile = 0, int32_t gpus = 1) {
    trace.jobs.push_back({.id = trace.jobs.size(),
                          .submit_us = submit_us,
                          .duration_us = duration_us,
                          .profile = profile,
                          .gpus_per_task = gpus});
  }
  absl::StatusOr<SimResult> Go() {
    return Simulate(trace, beliefs, truth, cluster, *queue, *placer, options, [this](const SimEvent& event) {
      events.emplace_back(event.kind, event.time_us, event.job);
      return true;
    });
  }
};

}  // namespace horus::testing_sim

#endif  // HORUS_TESTS_UNIT_LAB_SIM_SETUP_H_
