// SPDX-License-Identifier: Apache-2.0
// Clusters: nodes, residents, states, snapshots, and what can be asked of them.
#include "cluster.h"

#include <algorithm>
#include <cstring>

#include "columns.h"
#include "values.h"

namespace horus_python {

namespace {

using Cluster = std::unique_ptr<ClusterHandle>;

Cluster Create(const CatalogueHandle* catalogue) {
  return Make<ClusterHandle, horus_cluster>(
      [&](horus_cluster** out, horus_error* error) { return horus_cluster_create(Of(catalogue), out, error); });
}

Cluster Restore(const CatalogueHandle* catalogue, const py::buffer& source) {
  const Bytes bytes(source, "snapshot");
  return Make<ClusterHandle, horus_cluster>([&](horus_cluster** out, horus_error* error) {
    return horus_cluster_restore(Of(catalogue), bytes.data(), bytes.size(), out, error);
  });
}

template <typename Function>
void Write(const ClusterHandle& cluster, const Function& function) {
  Run([&](horus_error* error) { return cluster.Write(error, function); });
}
template <typename Function>
void Read(const ClusterHandle& cluster, const Function& function) {
  Run([&](horus_error* error) { return cluster.Read(error, function); });
}

void AddNode(const ClusterHandle& cluster, const Node& node) {
  const horus::detail::CNode c(node);
  Write(cluster, [&](horus_error* error) { return horus_cluster_add_node(cluster.get(), c.get(), error); });
}
void ChangeNode(const ClusterHandle& cluster, const Node& node) {
  const horus::detail::CNode c(node);
  Write(cluster, [&](horus_error* error) { return horus_cluster_change_node(cluster.get(), c.get(), error); });
}
void RemoveNode(const ClusterHandle& cluster, uint64_t node) {
  Write(cluster, [&](horus_error* error) { return horus_cluster_remove_node(cluster.get(), node, error); });
}

// Jobs of a node or device; at most as many as the cluster has.
std::vector<uint64_t> SetState(const ClusterHandle& cluster, uint64_t node, std::optional<uint32_t> device,
                               const py::object& state) {
  const int32_t number = NumberOf(kStates, state, "state");
  return Collect<uint64_t>([&](size_t capacity, uint64_t* ids, size_t* count, horus_error* error) {
    return cluster.Write(error, [&](horus_error* e) {
      return horus_cluster_set_state(cluster.get(), node, device.value_or(HORUS_WHOLE_NODE), number, capacity, ids,
                                     count, e);
    });
  });
}

std::string Adopt(const ClusterHandle& cluster, const Job& job, const py::sequence& slots) {
  const horus::detail::CSlots c(Arg<std::vector<Slot>>::From(slots, "slots"));
  const horus_job* cjob = job.get();
  int32_t reason = HORUS_REASON_NONE;
  Write(cluster, [&](horus_error* error) {
    return horus_cluster_adopt(cluster.get(), cjob, c.nodes.size(), c.nodes.data(), c.devices.data(), c.tasks.data(),
                               &reason, error);
  });
  return reason == HORUS_REASON_NONE ? "" : horus_reason_name(reason);
}

void Release(const ClusterHandle& cluster, uint64_t job) {
  Read(cluster, [&](horus_error* error) { return horus_cluster_release(cluster.get(), job, error); });
}

py::dict Info(const ClusterHandle& cluster) {
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  Read(cluster, [&](horus_error* error) { return horus_cluster_get_info(cluster.get(), &info, error); });
  py::dict out;
  out["nodes"] = info.nodes;
  out["devices"] = info.devices;
  out["devices_used"] = info.devices_used;
  out["jobs"] = info.jobs;
  out["slots"] = info.slots;
  out["gpu_util_pct"] = info.gpu_util_pct;
  out["gpu_mem_mib"] = info.gpu_mem_mib;
  out["gpu_mem_reserved_mib"] = info.gpu_mem_reserved_mib;
  out["cpu_milli"] = info.cpu_milli;
  out["cpu_used_milli"] = info.cpu_used_milli;
  out["mem_mib"] = info.mem_mib;
  out["mem_used_mib"] = info.mem_used_mib;
  out["state_hash"] = info.state_hash;
  out["bytes_held"] = info.bytes_held;
  return out;
}

using Ids = py::array_t<uint64_t>;

Ids Nodes(const ClusterHandle& cluster) {
  return ToArray(Collect<uint64_t>([&](size_t capacity, uint64_t* ids, size_t* count, horus_error* error) {
    return cluster.Read(error,
                        [&](horus_error* e) { return horus_cluster_nodes(cluster.get(), capacity, ids, count, e); });
  }));
}

Ids Jobs(const ClusterHandle& cluster) {
  return ToArray(Collect<uint64_t>([&](size_t capacity, uint64_t* ids, size_t* count, horus_error* error) {
    return cluster.Read(error,
                        [&](horus_error* e) { return horus_cluster_jobs(cluster.get(), capacity, ids, count, e); });
  }));
}

py::dict NodeInfo(const ClusterHandle& cluster, uint64_t node) {
  horus_node_info info = HORUS_NODE_INFO_INIT;
  const auto jobs = Collect<uint64_t>([&](size_t capacity, uint64_t* ids, size_t* count, horus_error* error) {
    return cluster.Read(error, [&](horus_error* e) {
      return horus_cluster_get_node(cluster.get(), node, &info, capacity, ids, count, e);
    });
  });
  py::dict out;
  out["node"] = node;
  out["state"] = WordOf(kStates, info.state);
  out["version"] = info.version;
  out["devices"] = info.devices;
  out["cpu_milli"] = info.cpu_milli;
  out["cpu_free_milli"] = info.cpu_free_milli;
  out["mem_mib"] = info.mem_mib;
  out["mem_free_mib"] = info.mem_free_mib;
  out["storage_mb_s"] = info.storage_mb_s;
  out["storage_free_mb_s"] = info.storage_free_mb_s;
  out["rack"] = info.rack;
  out["network_mb_s"] = info.network_mb_s;
  out["jobs"] = jobs;
  return out;
}

py::dict DeviceInfo(const ClusterHandle& cluster, uint64_t node, uint32_t device) {
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  const auto jobs = Collect<uint64_t>([&](size_t capacity, uint64_t* ids, size_t* count, horus_error* error) {
    return cluster.Read(error, [&](horus_error* e) {
      return horus_cluster_get_device(cluster.get(), node, device, &info, capacity, ids, count, e);
    });
  });
  py::dict out;
  out["node"] = node;
  out["device"] = device;
  out["id"] = info.device_id == nullptr ? "" : info.device_id;
  out["gpu_type"] = info.gpu_type;
  out["sharing_mode"] = WordOf(kSharingModes, info.sharing_mode);
  out["mig_profile"] = info.mig_profile == nullptr ? "" : info.mig_profile;
  out["node_state"] = WordOf(kStates, info.node_state);
  out["device_state"] = WordOf(kStates, info.device_state);
  out["mem_mib"] = info.mem_mib;
  out["mem_reserved_mib"] = info.mem_reserved_mib;
  out["mem_used_mib"] = info.mem_used_mib;
  out["mem_limit_mib"] = info.mem_limit_mib;
  out["gpu_util_pct"] = info.gpu_util_pct;
  out["gpu_milli_used"] = info.gpu_milli_used;
  out["jobs"] = jobs;
  return out;
}

// All that a resident stated; to be called under the handle's lock.
horus_status Stated(const ClusterHandle& cluster, uint64_t id, std::vector<horus::Job>& jobs, horus_error* error) {
  horus_job_info info = HORUS_JOB_INFO_INIT;
  std::vector<char> bytes;
  for (;;) {
    size_t count = 0;
    const horus_status status =
        horus_cluster_get_job(cluster.get(), id, &info, bytes.size(), bytes.data(), &count, error);
    if (status != HORUS_OK && status != HORUS_ERR_BUFFER_TOO_SMALL) return status;
    if (status == HORUS_OK && info.job != nullptr) {
      jobs.push_back(horus::JobFrom(*info.job));
      return HORUS_OK;
    }
    bytes.resize(count);
  }
}

py::tuple Specs(const ClusterHandle& cluster, const py::object& given) {
  const IdColumn only(given);
  std::vector<uint64_t> ids(only.data, only.data + only.size);
  if (only.data == nullptr) {
    ids = Collect<uint64_t>([&](size_t capacity, uint64_t* out, size_t* count, horus_error* error) {
      return cluster.Read(error,
                          [&](horus_error* e) { return horus_cluster_jobs(cluster.get(), capacity, out, count, e); });
    });
  }
  std::vector<horus::Job> jobs;
  Read(cluster, [&](horus_error* error) {
    for (const uint64_t id : ids) {
      const horus_status status = Stated(cluster, id, jobs, error);
      const bool left = only.data == nullptr && status == HORUS_ERR_NOT_FOUND;  // released since it was listed
      if (status != HORUS_OK && !left) return status;
    }
    return horus_status{HORUS_OK};
  });
  return JobsOf(std::move(jobs));
}

py::dict JobInfo(const ClusterHandle& cluster, uint64_t job) {
  horus_job_info info = HORUS_JOB_INFO_INIT;
  Read(cluster, [&](horus_error* error) {
    return horus_cluster_get_job(cluster.get(), job, &info, 0, nullptr, nullptr, error);
  });
  py::dict out;
  out["job"] = job;
  out["kind"] = WordOf(kKinds, info.kind);
  out["tasks"] = info.tasks;
  out["gpus_per_task"] = info.gpus_per_task;
  out["priority"] = info.priority;
  out["adopted"] = info.adopted == 1;
  out["over_committed"] = info.over_committed == 1;
  out["submit_us"] = info.submit_us;
  out["cpu_milli"] = info.cpu_milli;
  out["mem_mib"] = info.mem_mib;
  out["stated_cpu_milli"] = info.stated_cpu_milli;
  out["stated_mem_mib"] = info.stated_mem_mib;
  out["sm_cap_pct"] = info.sm_cap_pct;
  out["probe"] = info.probe == 1;
  return out;
}

std::vector<Slot> JobSlots(const ClusterHandle& cluster, uint64_t job) {
  horus::detail::CSlots columns(0);
  size_t count = 0;
  for (;;) {
    horus_slots c = columns.get();
    horus_status status = HORUS_OK;
    Run([&](horus_error* error) {
      status = cluster.Read(error,
                            [&](horus_error* e) { return horus_cluster_job_slots(cluster.get(), job, &c, &count, e); });
      return status == HORUS_ERR_BUFFER_TOO_SMALL ? HORUS_OK : status;
    });
    if (status == HORUS_OK && count <= columns.nodes.size()) return columns.Rows(count);
    columns = horus::detail::CSlots(count);
  }
}

py::bytes Snapshot(const ClusterHandle& cluster) {
  return ToBytes(Collect<char>([&](size_t capacity, char* data, size_t* count, horus_error* error) {
    return cluster.Read(
        error, [&](horus_error* e) { return horus_cluster_snapshot(cluster.get(), capacity, data, count, e); });
  }));
}

}  // namespace

void BindCluster(py::module_& m) {
  Record<Slot>(m, "Slot", "A place of a job: a device of a node, and the task of the gang that has it.", 3)
      .Field("node", &Slot::node, "node id")
      .Field("device", &Slot::device, "index within the node; 2^32 - 1 for a task without GPUs")
      .Field("task", &Slot::task, "of the gang, from 0");
  Class<ClusterHandle>(m, "ClusterHandle")
      .def(py::init(&Create), py::arg("catalogue").none(true),
           "__init__(self, catalogue: CatalogueHandle | None) -> None")
      .def_static("restore", &Restore, py::arg("catalogue").none(true), py::arg("snapshot"),
                  "restore(catalogue: CatalogueHandle | None, snapshot: collections.abc.Buffer) -> ClusterHandle")
      .def("snapshot", &Snapshot, "snapshot(self) -> bytes")
      .def("add_node", &AddNode, py::arg("node"), "add_node(self, node: Node) -> None")
      .def("change_node", &ChangeNode, py::arg("node"), "change_node(self, node: Node) -> None")
      .def("remove_node", &RemoveNode, py::arg("node"), "remove_node(self, node: int) -> None")
      .def("set_state", &SetState, py::arg("node"), py::arg("device"), py::arg("state"),
           "set_state(self, node: int, device: int | None, state: str) -> list[int]")
      .def("adopt", &Adopt, py::arg("job"), py::arg("slots"),
           "adopt(self, job: Job, slots: collections.abc.Sequence[Slot]) -> str")
      .def("release", &Release, py::arg("job"), "release(self, job: int) -> None")
      .def("info", &Info, "info(self) -> dict[str, typing.Any]")
      .def("nodes", &Nodes, "nodes(self) -> numpy.typing.NDArray[numpy.uint64]")
      .def("jobs", &Jobs, "jobs(self) -> numpy.typing.NDArray[numpy.uint64]")
      .def("node", &NodeInfo, py::arg("node"), "node(self, node: int) -> dict[str, typing.Any]")
      .def("device", &DeviceInfo, py::arg("node"), py::arg("device"),
           "device(self, node: int, device: int) -> dict[str, typing.Any]")
      .def("specs", &Specs, py::arg("jobs"),
           "specs(self, jobs: numpy.typing.NDArray[numpy.uint64] | None) -> tuple[Job, ...]")
      .def("job", &JobInfo, py::arg("job"), "job(self, job: int) -> dict[str, typing.Any]")
      .def(
          "job_slots",
          [](const ClusterHandle& c, uint64_t job) { return Arg<std::vector<Slot>>::To(JobSlots(c, job)); },
          py::arg("job"), "job_slots(self, job: int) -> tuple[Slot, ...]");
}

}  // namespace horus_python
