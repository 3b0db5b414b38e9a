// SPDX-License-Identifier: Apache-2.0
// horus/cluster.h, what changes a cluster: nodes, states, adopt, apply, release. The queries: cluster_query.cc.
#include "horus/cluster.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/columns.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/job_convert.h"
#include "capi/node_convert.h"
#include "horus/place.h"

namespace horus::capi {
namespace {

absl::Status SetNodeState(Cluster& cluster, NodeId node, int32_t given, const IdBuffer& buffer) {
  HORUS_ASSIGN_OR_RETURN(const AdminState state, StateFromC(given));
  HORUS_ASSIGN_OR_RETURN(const NodeInfo info, cluster.Node(node));
  HORUS_RETURN_IF_ERROR(CheckRoom(info.jobs.size(), buffer));
  HORUS_ASSIGN_OR_RETURN(const std::vector<JobId> jobs, cluster.SetNodeState(node, state));
  WriteIds(jobs, buffer);
  return absl::OkStatus();
}

absl::Status SetDeviceState(Cluster& cluster, NodeId node, uint32_t given_device, int32_t given_state,
                            const IdBuffer& buffer) {
  HORUS_ASSIGN_OR_RETURN(const AdminState state, StateFromC(given_state));
  HORUS_ASSIGN_OR_RETURN(const int32_t device, DeviceIndex(given_device));
  HORUS_ASSIGN_OR_RETURN(const DeviceInfo info, cluster.Device(node, device));
  HORUS_RETURN_IF_ERROR(CheckRoom(info.residents.size(), buffer));
  HORUS_ASSIGN_OR_RETURN(const std::vector<JobId> jobs, cluster.SetDeviceState(node, device, state));
  WriteIds(jobs, buffer);
  return absl::OkStatus();
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_cluster_create(const horus_catalogue* catalogue, horus_cluster** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    *out = new horus_cluster(horus::Cluster(CatalogueOf(catalogue)));
    return absl::OkStatus();
  });
}

void horus_cluster_free(horus_cluster* cluster) { delete cluster; }

horus_status horus_cluster_add_node(horus_cluster* cluster, const horus_node* node, horus_error* error) {
  return GuardWatched(cluster, horus::Call::kAddNode, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}}));
    HORUS_ASSIGN_OR_RETURN(horus::NodeSpec spec, NodeFromC(cluster->value.catalogue(), node));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return cluster->value.AddNode(std::move(spec));
  });
}

horus_status horus_cluster_change_node(horus_cluster* cluster, const horus_node* node, horus_error* error) {
  return GuardWatched(cluster, horus::Call::kChangeNode, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}}));
    HORUS_ASSIGN_OR_RETURN(horus::NodeSpec spec, NodeFromC(cluster->value.catalogue(), node));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return cluster->value.ChangeNode(std::move(spec));
  });
}

horus_status horus_cluster_remove_node(horus_cluster* cluster, uint64_t node_id, horus_error* error) {
  return GuardWatched(cluster, horus::Call::kRemoveNode, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}}));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return cluster->value.RemoveNode(node_id);
  });
}

horus_status horus_cluster_set_node_state(horus_cluster* cluster, uint64_t node_id, int32_t state, size_t capacity,
                                          uint64_t* job_ids, size_t* count, horus_error* error) {
  return GuardWatched(cluster, horus::Call::kSetNodeState, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}}));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return SetNodeState(cluster->value, node_id, state, {capacity, job_ids, count});
  });
}

horus_status horus_cluster_set_device_state(horus_cluster* cluster, uint64_t node_id, uint32_t device, int32_t state,
                                            size_t capacity, uint64_t* job_ids, size_t* count, horus_error* error) {
  return GuardWatched(cluster, horus::Call::kSetDeviceState, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}}));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return SetDeviceState(cluster->value, node_id, device, state, {capacity, job_ids, count});
  });
}

horus_status horus_cluster_adopt(horus_cluster* cluster, const horus_job* job, size_t slot_count,
                                 const uint64_t* node_ids, const uint32_t* devices, const uint32_t* tasks,
                                 int32_t* reason, horus_error* error) {
  return GuardWatched(cluster, horus::Call::kAdopt, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}}));
    HORUS_ASSIGN_OR_RETURN(const horus::JobSpec spec, JobFromC(cluster->value.catalogue(), job));
    HORUS_ASSIGN_OR_RETURN(const auto slots, SlotsFromC({slot_count, node_ids, devices, tasks}));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    HORUS_ASSIGN_OR_RETURN(const horus::AdoptResult result, cluster->value.Adopt(spec, slots));
    Put(reason, 0, result.reason);
    return absl::OkStatus();
  });
}

horus_status horus_cluster_apply(horus_cluster* cluster, const horus_plan* plan, horus_error* error) {
  return GuardWatched(cluster, horus::Call::kApply, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}, {plan, "plan"}}));
    if (!SameTypes(plan->catalogue, cluster->value.shared_catalogue())) {
      return horus::InvalidArgument("plan: expected one for the GPU types of this cluster, found one for others");
    }
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return cluster->value.Apply(plan->value);
  });
}

horus_status horus_cluster_release(horus_cluster* cluster, uint64_t job_id, horus_error* error) {
  return GuardWatched(cluster, horus::Call::kRelease, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}}));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return cluster->value.Release(job_id);
  });
}
