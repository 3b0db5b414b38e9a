// SPDX-License-Identifier: Apache-2.0
// Names and sentences of reasons.
#include "place/job/reason.h"

#include <array>

namespace horus {
namespace {

struct ReasonWords {
  std::string_view name;
  std::string_view text;
};

constexpr std::array<ReasonWords, kReasonCount> kReasons = {{
    {"none", "Nothing refused it."},
    {"node_down", "The node is down."},
    {"node_drained", "The node is drained: it takes no new jobs."},
    {"device_down", "The device is down."},
    {"device_drained", "The device is drained: it takes no new jobs."},
    {"not_in_subset", "The node is not among those that the caller allows."},
    {"gpu_type", "The job states no demand on this GPU type."},
    {"label", "The node lacks a label that the job's selector asks for."},
    {"cpu", "Too few CPU cores are free on the node."},
    {"host_memory", "Too little host memory is free on the node."},
    {"storage_bandwidth", "Too little storage bandwidth is free on the node."},
    {"gpu_memory", "The job's memory bound, its neighbours' and the headroom would exceed the device."},
    {"gpu_milli", "Too little of the device is free."},
    {"tenant_limit", "The device holds as many tenants as it may."},
    {"exclusive", "The job or a resident has its device to itself."},
    {"sharing_mode", "The device's sharing mode does not suit the job."},
    {"slowdown_own", "The job itself would be slowed beyond its bound."},
    {"slowdown_neighbour", "A resident would be slowed beyond its bound."},
    {"gang", "There are too few fitting devices, or too far apart, for the whole job."},
    {"policy", "The policy holds that sharing does not pay here."},
    {"owner", "The job or a resident shares devices with its own tenant's jobs only."},
    {"anti_affinity", "The node holds a group that the job keeps away from, or one that keeps away from it."},
    {"memory_unknown",
     "How much device memory the job needs is unknown, so it runs alone. State or measure it, and it shares."},
    {"sharing_quota", "No more devices may have several tenants: the placer's sharing quota is used up, or 0."},
    {"passed_over", "Others who wait go first."},
}};

}  // namespace

std::string_view ReasonName(Reason reason) {
  const auto index = static_cast<size_t>(reason);
  return index < kReasonCount ? kReasons[index].name : "unknown";
}

std::string_view ReasonText(Reason reason) {
  const auto index = static_cast<size_t>(reason);
  return index < kReasonCount ? kReasons[index].text : "Unknown reason.";
}

int AskedAt(Reason reason) {
  // Twice the number, so that what came later finds room between: what keeps jobs off a node is asked after its host,
  // and whether the memory is known where a job wants the device for itself.
  if (reason == Reason::kAntiAffinity) return 2 * static_cast<int>(Reason::kStorageBandwidth) + 1;
  if (reason == Reason::kMemoryUnknown) return 2 * static_cast<int>(Reason::kExclusive);
  return 2 * static_cast<int>(reason);
}

}  // namespace horus
