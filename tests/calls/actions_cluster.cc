// SPDX-License-Identifier: Apache-2.0
// Actions that change the cluster without a plan, and its snapshots.
#include <algorithm>
#include <string>
#include <vector>

#include "calls/arguments.h"
#include "calls/harness.h"
#include "calls/reseal_snapshot.h"
#include "capi/handles.h"
#include "support/invariants.h"

namespace horus::calls {
namespace {

void AddNode(Harness& harness) {
  const uint64_t id = 1 + harness.choices.Below(harness.options.max_nodes);
  NodeArgument node;
  MakeNode(harness.choices, id, harness.options.devices, harness.options.hostile, node);
  const horus_node& given = node.node.value;
  const bool known = harness.nodes.contains(given.id);
  const horus_status status = HORUS_TRY(harness, kChanges, horus_cluster_add_node, harness.cluster.get(), &given);
  if (status != HORUS_OK) return;
  harness.Require(!known, "a node was added twice", 0, given.id);
  harness.nodes[given.id] = given.device_count;
  CheckNode(harness, given.id);
}

void ChangeNode(Harness& harness) {
  const uint64_t id = harness.SomeNode();
  NodeArgument node;
  MakeNode(harness.choices, id, harness.options.devices, harness.options.hostile, node);
  const horus_node& given = node.node.value;
  const bool known = harness.nodes.contains(given.id);
  if (HORUS_TRY(harness, kChanges, horus_cluster_change_node, harness.cluster.get(), &given) != HORUS_OK) return;
  harness.Require(known, "a node was changed that is not there", 0, given.id);
  harness.nodes[given.id] = given.device_count;
  CheckNode(harness, given.id);
}

bool RunsOn(const MirrorJob& job, uint64_t node) {
  return std::any_of(job.slots.begin(), job.slots.end(), [&](const Slot& slot) { return slot.node == node; });
}

void RemoveNode(Harness& harness) {
  const uint64_t id = harness.SomeNode();
  const bool busy =
      std::any_of(harness.jobs.begin(), harness.jobs.end(), [&](const auto& job) { return RunsOn(job.second, id); });
  const horus_status expected = !harness.nodes.contains(id) ? HORUS_ERR_NOT_FOUND : busy ? HORUS_ERR_STATE : HORUS_OK;
  const horus_status status = HORUS_TRY(harness, kChanges, horus_cluster_remove_node, harness.cluster.get(), id);
  harness.Require(status == expected, "removing a node", static_cast<uint64_t>(expected),
                  static_cast<uint64_t>(status));
  if (status == HORUS_OK) harness.nodes.erase(id);
}

// Half of the time up, so that clusters do not fall asleep.
int32_t SomeState(Harness& harness) {
  if (harness.choices.OneIn(16)) return static_cast<int32_t>(harness.choices.HostileBits());
  return harness.choices.OneIn(2) ? static_cast<int32_t>(harness.choices.Below(3)) : HORUS_STATE_UP;
}

void SetNodeState(Harness& harness) {
  const uint64_t id = harness.SomeNode();
  const int32_t state = SomeState(harness);
  std::vector<uint64_t> there(harness.choices.Below(16));
  size_t count = 0;
  const horus_status status =
      HORUS_TRY(harness, kChanges, horus_cluster_set_state, harness.cluster.get(), id, HORUS_WHOLE_NODE, state,
                there.size(), there.empty() ? nullptr : there.data(), &count);
  if (status == HORUS_ERR_BUFFER_TOO_SMALL) harness.Require(count > there.size(), "room for ids", there.size(), count);
  if (status != HORUS_OK) return;
  harness.Require(harness.nodes.contains(id) && state >= 0 && state <= HORUS_STATE_DOWN, "a state was set");
  const auto expected = static_cast<size_t>(
      std::count_if(harness.jobs.begin(), harness.jobs.end(), [&](const auto& job) { return RunsOn(job.second, id); }));
  harness.Require(count == expected, "jobs on a node whose state was set", expected, count);
}

void SetDeviceState(Harness& harness) {
  const uint64_t id = harness.SomeNode();
  const auto device = static_cast<uint32_t>(
      harness.choices.OneIn(32) ? harness.choices.HostileBits() : harness.choices.Below(harness.DevicesOf(id) + 1));
  if (device == HORUS_WHOLE_NODE) return;
  const int32_t state = SomeState(harness);
  size_t count = 0;
  const horus_status status = HORUS_TRY(harness, kChanges, horus_cluster_set_state, harness.cluster.get(), id, device,
                                        state, size_t{0}, nullptr, &count);
  if (status == HORUS_OK) harness.Require(device < harness.DevicesOf(id), "the state of a device that is not there");
}

// Where a job that runs already might be: on devices that follow each other, mostly.
std::vector<Slot> SlotsToAdopt(Harness& harness, const horus_job& job) {
  std::vector<Slot> slots;
  const auto tasks = static_cast<uint32_t>(std::clamp(job.tasks, 1, 8));
  const auto gpus = static_cast<uint32_t>(std::clamp(job.gpus_per_task, 1, 8));
  for (uint32_t task = 0; task < tasks; ++task) {
    const uint64_t node = harness.SomeNode();
    const uint32_t devices = std::max(harness.DevicesOf(node), uint32_t{1});
    auto device = static_cast<uint32_t>(harness.choices.Below(devices));
    for (uint32_t gpu = 0; gpu < gpus; ++gpu, ++device) {
      slots.push_back({node, job.gpus_per_task == HORUS_JOB_NO_GPUS ? UINT32_MAX : device % devices, task});
    }
  }
  if (!harness.choices.OneIn(16)) return slots;
  switch (harness.choices.Below(4)) {
    case 0:
      slots.pop_back();
      break;
    case 1:
      slots.push_back(slots.front());
      break;
    case 2:
      slots.front().device = static_cast<uint32_t>(harness.choices.HostileBits());
      break;
    default:
      slots.front().task = static_cast<uint32_t>(harness.choices.HostileBits());
  }
  return slots;
}

void Adopt(Harness& harness) {
  JobArgument job;
  MakeJob(harness.choices, harness.AnyJobId(), harness.options.hostile, harness.options.variety, job);
  const horus_job& given = job.job.value;
  std::vector<Slot> slots = SlotsToAdopt(harness, given);
  const SlotRows rows(slots);
  const bool known = harness.jobs.contains(given.id);
  constexpr int32_t kUnwritten = -77;
  int32_t reason = kUnwritten;
  const horus_status status =
      HORUS_TRY(harness, kChanges, horus_cluster_adopt, harness.cluster.get(), &given, slots.size(),
                rows.node_ids.data(), rows.devices.data(), rows.tasks.data(), &reason);
  harness.Require((status == HORUS_OK) == (reason != kUnwritten), "the reason is written on success alone");
  if (status != HORUS_OK) return;
  harness.Require(!known, "a job was adopted twice", 0, given.id);
  std::sort(slots.begin(), slots.end());
  horus_job_info info = HORUS_JOB_INFO_INIT;
  HORUS_TRY(harness, kNone, horus_cluster_get_job, harness.cluster.get(), given.id, &info, size_t{0}, nullptr, nullptr);
  harness.Require((info.over_committed != 0) == (reason != HORUS_REASON_NONE), "a reason goes with over-commitment");
  harness.jobs[given.id] = {
      .slots = std::move(slots), .cpu_milli = info.cpu_milli, .mem_mib = info.mem_mib, .adopted = true};
  CheckJob(harness, given.id);
}

void Release(Harness& harness) {
  const uint64_t id = harness.SomeJob();
  const horus_status expected = harness.jobs.contains(id) ? HORUS_OK : HORUS_ERR_NOT_FOUND;
  const horus_status status = HORUS_TRY(harness, kChanges, horus_cluster_release, harness.cluster.get(), id);
  harness.Require(status == expected, "a release", static_cast<uint64_t>(expected), static_cast<uint64_t>(status));
  harness.jobs.erase(id);
}

std::string Snapshot(Harness& harness, const horus_cluster* cluster) {
  size_t size = 0;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_snapshot, cluster, size_t{0}, nullptr, &size) == HORUS_OK,
                  "the size of a snapshot");
  std::string bytes(size, '\0');
  size_t again = 0;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_snapshot, cluster, size, bytes.data(), &again) == HORUS_OK &&
                      again == size,
                  "a snapshot", size, again);
  return bytes;
}

// The restored cluster takes the place of the one that was saved: nothing may tell them apart.
void SaveAndRestore(Harness& harness) {
  const std::string bytes = Snapshot(harness, harness.cluster.get());
  horus_cluster* out = nullptr;
  const horus_catalogue* const built_in = nullptr;
  harness.Require(
      HORUS_TRY(harness, kNone, horus_cluster_restore, built_in, bytes.data(), bytes.size(), &out) == HORUS_OK,
      "a snapshot of our own is refused");
  ClusterHandle restored(out);
  harness.Require(restored->value.state_hash() == harness.cluster->value.state_hash(), "a restored state differs");
  harness.Require(Snapshot(harness, restored.get()) == bytes, "a restored snapshot has other bytes");
  harness.cluster = std::move(restored);
}

void RestoreDamaged(Harness& harness) {
  std::string bytes = Snapshot(harness, harness.cluster.get());
  for (uint64_t left = 1 + harness.choices.Below(8); left > 0; --left) {
    bytes[harness.choices.Below(bytes.size())] ^= static_cast<char>(1 + harness.choices.Below(255));
  }
  if (harness.choices.OneIn(4)) bytes.resize(harness.choices.Below(bytes.size()));
  const bool sealed = harness.choices.OneIn(2) && ResealSnapshot(bytes);
  horus_cluster* out = nullptr;
  const horus_catalogue* const built_in = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_cluster_restore, built_in, bytes.data(), bytes.size(), &out);
  const ClusterHandle restored(out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a cluster comes with success alone");
  if (out == nullptr) return;
  const absl::Status inside = CheckInvariants(out->value);
  harness.Require(inside.ok(), std::string(inside.message()).c_str());
  harness.Require(sealed || out->value.state_hash() == harness.cluster->value.state_hash(), "damage went unseen");
}

}  // namespace

std::vector<Action> ClusterActions() {
  return {{AddNode, 24}, {ChangeNode, 24}, {RemoveNode, 12},    {SetNodeState, 16}, {SetDeviceState, 32},
          {Adopt, 64},   {Release, 400},   {SaveAndRestore, 1}, {RestoreDamaged, 1}};
}

}  // namespace horus::calls
