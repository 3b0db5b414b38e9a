// SPDX-License-Identifier: Apache-2.0
// Reads a policy by tables of keys and fields.
#include "lab/io/grid_policy.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "io/jobs_file.h"
#include "io/yaml.h"

namespace horus {
namespace {

constexpr double kHugeNumber = 1e9;       // of what has no other end; chosen
constexpr double kMostTolerance = 0.999;  // below 1
constexpr int64_t kMaxLookAhead = 1'000'000;
constexpr int64_t kMaxProfilingNodes = 1'000'000;
// Bounded: a constant.
constexpr int64_t kReactiveProfilingUs = 60 * int64_t{1'000'000};  // a minute, as Horus (TPDS 2022) has it

struct TimeField {
  std::string_view key;
  int64_t SimOptions::* member;
};
constexpr auto kTimes = std::to_array<TimeField>({{"round_s", &SimOptions::round_us},
                                                  {"restart_s", &SimOptions::restart_us},
                                                  {"checkpoint_s", &SimOptions::checkpoint_us},
                                                  {"latency_s", &SimOptions::latency_us},
                                                  {"rebalance_s", &SimOptions::rebalance_us},
                                                  {"observe_s", &SimOptions::observe_us},
                                                  {"profiling_s", &SimOptions::profiling_us}});

struct FlagField {
  std::string_view key;
  bool SimOptions::* member;
};
constexpr auto kFlags = std::to_array<FlagField>({{"know_run_times", &SimOptions::know_run_times},
                                                  {"preempt", &SimOptions::preempt},
                                                  {"best_of_window", &SimOptions::best_of_window},
                                                  {"weigh_waiting", &SimOptions::weigh_waiting},
                                                  {"profile_each_job", &SimOptions::profile_each_job}});
constexpr std::array<std::string_view, 3> kWeights = {"alike", "shortest", "prices"};              // as the enum
constexpr std::array<std::string_view, 4> kLearns = {"nothing", "failures", "pairs", "corrects"};  // likewise

constexpr std::array<std::string_view, 21> kOthers = {
    "weights",        "learn",          "policy",          "queue",          "interference",
    "slowdown_bound", "look_ahead",     "max_tenants",     "mem_overcommit", "sharing_quota",
    "probe_outside",  "max_candidates", "profiling_nodes", "pack_threshold", "foreground_bound",
    "links",          "patience_s",     "las_continuous",  "synergy_grow",   "synergy_tolerance",
    "bounded_pct"};

std::vector<std::string_view> MakeKeys() {
  std::vector<std::string_view> keys(kOthers.begin(), kOthers.end());
  for (const TimeField& field : kTimes) keys.push_back(field.key);
  for (const FlagField& field : kFlags) keys.push_back(field.key);
  return keys;
}

absl::Status ReadBound(const YamlMap& map, double& bound) {
  const YamlValue* value = map.Find("slowdown_bound");
  if (value == nullptr) return absl::OkStatus();
  if (const auto text = value->Text(kMaxPathBytes); text.ok() && *text == "none") {
    bound = std::numeric_limits<double>::infinity();
    return absl::OkStatus();
  }
  return map.ReadNumber("slowdown_bound", 1, kMaxSlowdownBound, bound);
}

absl::Status ReadPlacing(const YamlMap& map, GridPolicy& policy) {
  PlacerOptions& placer = policy.placer_options;
  HORUS_RETURN_IF_ERROR(ReadBound(map, placer.slowdown_bound));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("max_tenants", 1, kMaxTenantsPerDevice, placer.max_tenants));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("mem_overcommit", 1, kMaxMemOvercommit, placer.mem_overcommit));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("sharing_quota", 0, 1, placer.sharing_quota));
  HORUS_RETURN_IF_ERROR(map.ReadBool("probe_outside", placer.probe_outside));
  HORUS_RETURN_IF_ERROR(
      map.ReadInteger("max_candidates", 0, std::numeric_limits<int32_t>::max(), placer.max_candidates));
  int64_t bounded = policy.bounded_milli;
  HORUS_RETURN_IF_ERROR(map.ReadScaled("bounded_pct", kPercentToMilli, bounded));
  policy.bounded_milli = static_cast<int32_t>(bounded);
  if (const YamlValue* value = map.Find("bounded_pct"); value != nullptr) {
    const bool bounded_at_all = placer.slowdown_bound > 0 && std::isfinite(placer.slowdown_bound);
    if (!bounded_at_all) return value->Expected("a slowdown_bound beside it");
  }
  PolicyOptions& options = policy.policy_options;
  HORUS_RETURN_IF_ERROR(map.ReadNumber("pack_threshold", 0, kHugeNumber, options.pack_threshold));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("foreground_bound", 1, kMaxSlowdownBound, options.foreground_bound));
  HORUS_RETURN_IF_ERROR(map.ReadBool("links", options.links));
  HORUS_RETURN_IF_ERROR(map.ReadBool("synergy_grow", options.synergy_grow));
  HORUS_RETURN_IF_ERROR(map.ReadNumber("synergy_tolerance", 0, kMostTolerance, options.synergy_tolerance));
  return map.ReadInteger("profiling_nodes", 0, kMaxProfilingNodes, policy.profiling_nodes);
}

absl::Status ReadDeciding(const YamlMap& map, GridPolicy& policy) {
  HORUS_RETURN_IF_ERROR(map.ReadInteger("look_ahead", 0, kMaxLookAhead, policy.sim_options.look_ahead));
  for (const TimeField& field : kTimes) {
    HORUS_RETURN_IF_ERROR(map.ReadScaled(field.key, kSecondsToUs, policy.sim_options.*field.member));
  }
  for (const FlagField& field : kFlags) {
    HORUS_RETURN_IF_ERROR(map.ReadBool(field.key, policy.sim_options.*field.member));
  }
  if (const YamlValue* weights = map.Find("weights")) {
    HORUS_ASSIGN_OR_RETURN(const size_t choice, weights->Choice(kWeights));
    policy.sim_options.weights = static_cast<SimWeights>(choice);
  }
  if (const YamlValue* learn = map.Find("learn")) {
    HORUS_ASSIGN_OR_RETURN(const size_t choice, learn->Choice(kLearns));
    policy.learns = static_cast<Learns>(choice);
  }
  HORUS_RETURN_IF_ERROR(map.ReadScaled("patience_s", kSecondsToUs, policy.queue_options.patience_us));
  return map.ReadBool("las_continuous", policy.queue_options.las_continuous);
}

// At the key that names it, where there is one.
absl::Status At(const YamlMap& map, std::string_view key, const absl::Status& status) {
  const YamlValue* value = map.Find(key);
  return value == nullptr ? map.value().Wrap(status) : value->Wrap(status);
}

}  // namespace

std::span<const std::string_view> GridPolicyKeys() {
  static const std::vector<std::string_view> keys = MakeKeys();
  return keys;
}

absl::Status ReadGridPolicy(const YamlMap& map, GridFilePolicy& entry) {
  GridPolicy& policy = entry.policy;
  HORUS_RETURN_IF_ERROR(map.ReadText("policy", kMaxNameBytes, policy.policy));
  HORUS_RETURN_IF_ERROR(map.ReadText("queue", kMaxNameBytes, policy.queue));
  HORUS_RETURN_IF_ERROR(map.ReadText("interference", kMaxNameBytes, entry.interference));
  if (policy.policy == "reactive" && policy.sim_options.profiling_us == 0) {
    policy.sim_options.profiling_us = kReactiveProfilingUs;
  }
  if (policy.policy == "oracle" && entry.interference.empty()) entry.interference = kOracle;
  HORUS_RETURN_IF_ERROR(ReadPlacing(map, policy));
  HORUS_RETURN_IF_ERROR(ReadDeciding(map, policy));
  HORUS_RETURN_IF_ERROR(At(map, "policy", MakePolicy(policy.policy, policy.policy_options).status()));
  QueueOptions queue = policy.queue_options;
  queue.capacity = {.gpu_milli = kMilliPerGpu, .cpu_milli = kMilliPerCore, .mem_mib = 1};  // the cluster's later
  return At(map, "queue", MakeQueue(policy.queue, queue).status());
}

}  // namespace horus
