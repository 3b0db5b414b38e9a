// SPDX-License-Identifier: Apache-2.0
// Actions that change the cluster without a plan, and its snapshots.
#include <algorithm>
#include <string>
#include <vector>

#include "calls/arguments.h"
#include "calls/reseal_snapshot.h"
#include "calls/world.h"
#include "capi/handles.h"

namespace horus::calls {
namespace {

void AddNode(World& world) {
  const uint64_t id = 1 + world.choices.Below(world.options.max_nodes);
  NodeArgument node;
  MakeNode(world.choices, id, world.options.devices, world.options.hostile, node);
  const horus_node& given = node.node.value;
  const bool known = world.nodes.contains(given.id);
  const horus_status status = HORUS_TRY(world, kChanges, horus_cluster_add_node, world.cluster.get(), &given);
  if (status != HORUS_OK) return;
  world.Require(!known, "a node was added twice", 0, given.id);
  world.nodes[given.id] = given.device_count;
  CheckNode(world, given.id);
}

void ChangeNode(World& world) {
  const uint64_t id = world.SomeNode();
  NodeArgument node;
  MakeNode(world.choices, id, world.options.devices, world.options.hostile, node);
  const horus_node& given = node.node.value;
  const bool known = world.nodes.contains(given.id);
  if (HORUS_TRY(world, kChanges, horus_cluster_change_node, world.cluster.get(), &given) != HORUS_OK) return;
  world.Require(known, "a node was changed that is not there", 0, given.id);
  world.nodes[given.id] = given.device_count;
  CheckNode(world, given.id);
}

bool RunsOn(const MirrorJob& job, uint64_t node) {
  return std::any_of(job.slots.begin(), job.slots.end(), [&](const Slot& slot) { return slot.node == node; });
}

void RemoveNode(World& world) {
  const uint64_t id = world.SomeNode();
  const bool busy =
      std::any_of(world.jobs.begin(), world.jobs.end(), [&](const auto& job) { return RunsOn(job.second, id); });
  const horus_status expected = !world.nodes.contains(id) ? HORUS_ERR_NOT_FOUND : busy ? HORUS_ERR_STATE : HORUS_OK;
  const horus_status status = HORUS_TRY(world, kChanges, horus_cluster_remove_node, world.cluster.get(), id);
  world.Require(status == expected, "removing a node", static_cast<uint64_t>(expected), static_cast<uint64_t>(status));
  if (status == HORUS_OK) world.nodes.erase(id);
}

// Half of the time up, so that clusters do not fall asleep.
int32_t SomeState(World& world) {
  if (world.choices.OneIn(16)) return static_cast<int32_t>(world.choices.HostileBits());
  return world.choices.OneIn(2) ? static_cast<int32_t>(world.choices.Below(3)) : HORUS_STATE_UP;
}

void SetNodeState(World& world) {
  const uint64_t id = world.SomeNode();
  const int32_t state = SomeState(world);
  std::vector<uint64_t> there(world.choices.Below(16));
  size_t count = 0;
  const horus_status status = HORUS_TRY(world, kChanges, horus_cluster_set_node_state, world.cluster.get(), id, state,
                                        there.size(), there.empty() ? nullptr : there.data(), &count);
  if (status == HORUS_ERR_BUFFER_TOO_SMALL) world.Require(count > there.size(), "room for ids", there.size(), count);
  if (status != HORUS_OK) return;
  world.Require(world.nodes.contains(id) && state >= 0 && state <= HORUS_STATE_DOWN, "a state was set");
  const auto expected = static_cast<size_t>(
      std::count_if(world.jobs.begin(), world.jobs.end(), [&](const auto& job) { return RunsOn(job.second, id); }));
  world.Require(count == expected, "jobs on a node whose state was set", expected, count);
}

void SetDeviceState(World& world) {
  const uint64_t id = world.SomeNode();
  const auto device = static_cast<uint32_t>(world.choices.OneIn(32) ? world.choices.HostileBits()
                                                                    : world.choices.Below(world.DevicesOf(id) + 1));
  const int32_t state = SomeState(world);
  size_t count = 0;
  const horus_status status = HORUS_TRY(world, kChanges, horus_cluster_set_device_state, world.cluster.get(), id,
                                        device, state, size_t{0}, nullptr, &count);
  if (status == HORUS_OK) world.Require(device < world.DevicesOf(id), "the state of a device that is not there");
}

// Where a job that runs already might be: on devices that follow each other, mostly.
std::vector<Slot> SlotsToAdopt(World& world, const horus_job& job) {
  std::vector<Slot> slots;
  const auto tasks = static_cast<uint32_t>(std::clamp(job.tasks, 1, 8));
  const auto gpus = static_cast<uint32_t>(std::clamp(job.gpus_per_task, 1, 8));
  for (uint32_t task = 0; task < tasks; ++task) {
    const uint64_t node = world.SomeNode();
    const uint32_t devices = std::max(world.DevicesOf(node), uint32_t{1});
    auto device = static_cast<uint32_t>(world.choices.Below(devices));
    for (uint32_t gpu = 0; gpu < gpus; ++gpu, ++device) {
      slots.push_back({node, job.gpus_per_task == HORUS_JOB_NO_GPUS ? UINT32_MAX : device % devices, task});
    }
  }
  if (!world.choices.OneIn(16)) return slots;
  switch (world.choices.Below(4)) {
    case 0:
      slots.pop_back();
      break;
    case 1:
      slots.push_back(slots.front());
      break;
    case 2:
      slots.front().device = static_cast<uint32_t>(world.choices.HostileBits());
      break;
    default:
      slots.front().task = static_cast<uint32_t>(world.choices.HostileBits());
  }
  return slots;
}

void Adopt(World& world) {
  JobArgument job;
  MakeJob(world.choices, world.AnyJobId(), world.options.hostile, world.options.variety, job);
  const horus_job& given = job.job.value;
  std::vector<Slot> slots = SlotsToAdopt(world, given);
  const SlotRows rows(slots);
  const bool known = world.jobs.contains(given.id);
  constexpr int32_t kUnwritten = -77;
  int32_t reason = kUnwritten;
  const horus_status status = HORUS_TRY(world, kChanges, horus_cluster_adopt, world.cluster.get(), &given, slots.size(),
                                        rows.node_ids.data(), rows.devices.data(), rows.tasks.data(), &reason);
  world.Require((status == HORUS_OK) == (reason != kUnwritten), "the reason is written on success alone");
  if (status != HORUS_OK) return;
  world.Require(!known, "a job was adopted twice", 0, given.id);
  std::sort(slots.begin(), slots.end());
  horus_job_info info = HORUS_JOB_INFO_INIT;
  HORUS_TRY(world, kNone, horus_cluster_get_job, world.cluster.get(), given.id, &info);
  world.Require((info.over_committed != 0) == (reason != HORUS_REASON_NONE), "a reason goes with over-commitment");
  world.jobs[given.id] = {
      .slots = std::move(slots), .cpu_milli = info.cpu_milli, .mem_mib = info.mem_mib, .adopted = true};
  CheckJob(world, given.id);
}

void Release(World& world) {
  const uint64_t id = world.SomeJob();
  const horus_status expected = world.jobs.contains(id) ? HORUS_OK : HORUS_ERR_NOT_FOUND;
  const horus_status status = HORUS_TRY(world, kChanges, horus_cluster_release, world.cluster.get(), id);
  world.Require(status == expected, "a release", static_cast<uint64_t>(expected), static_cast<uint64_t>(status));
  world.jobs.erase(id);
}

std::string Snapshot(World& world, const horus_cluster* cluster) {
  size_t size = 0;
  world.Require(
      HORUS_TRY(world, kNone, horus_cluster_snapshot, cluster, size_t{0}, nullptr, &size) == HORUS_ERR_BUFFER_TOO_SMALL,
      "the size of a snapshot");
  std::string bytes(size, '\0');
  size_t again = 0;
  world.Require(
      HORUS_TRY(world, kNone, horus_cluster_snapshot, cluster, size, bytes.data(), &again) == HORUS_OK && again == size,
      "a snapshot", size, again);
  return bytes;
}

// The restored cluster takes the place of the one that was saved: nothing may tell them apart.
void SaveAndRestore(World& world) {
  const std::string bytes = Snapshot(world, world.cluster.get());
  horus_cluster* out = nullptr;
  const horus_catalogue* const built_in = nullptr;
  world.Require(HORUS_TRY(world, kNone, horus_cluster_restore, built_in, bytes.data(), bytes.size(), &out) == HORUS_OK,
                "a snapshot of our own is refused");
  ClusterHandle restored(out);
  world.Require(restored->value.state_hash() == world.cluster->value.state_hash(), "a restored state differs");
  world.Require(Snapshot(world, restored.get()) == bytes, "a restored snapshot has other bytes");
  world.cluster = std::move(restored);
}

void RestoreDamaged(World& world) {
  std::string bytes = Snapshot(world, world.cluster.get());
  for (uint64_t left = 1 + world.choices.Below(8); left > 0; --left) {
    bytes[world.choices.Below(bytes.size())] ^= static_cast<char>(1 + world.choices.Below(255));
  }
  if (world.choices.OneIn(4)) bytes.resize(world.choices.Below(bytes.size()));
  const bool sealed = world.choices.OneIn(2) && ResealSnapshot(bytes);
  horus_cluster* out = nullptr;
  const horus_catalogue* const built_in = nullptr;
  const horus_status status =
      HORUS_TRY(world, kNone, horus_cluster_restore, built_in, bytes.data(), bytes.size(), &out);
  const ClusterHandle restored(out);
  world.Require((status == HORUS_OK) == (out != nullptr), "a cluster comes with success alone");
  if (out == nullptr) return;
  const absl::Status inside = out->value.CheckInvariants();
  world.Require(inside.ok(), std::string(inside.message()).c_str());
  world.Require(sealed || out->value.state_hash() == world.cluster->value.state_hash(), "damage went unseen");
}

}  // namespace

std::vector<Action> ClusterActions() {
  return {{AddNode, 24}, {ChangeNode, 24}, {RemoveNode, 12},    {SetNodeState, 16}, {SetDeviceState, 32},
          {Adopt, 64},   {Release, 400},   {SaveAndRestore, 1}, {RestoreDamaged, 1}};
}

}  // namespace horus::calls
