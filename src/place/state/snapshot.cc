// SPDX-License-Identifier: Apache-2.0
// Saving: the envelope (magic, version, length, checksum) and the message inside it.
#include "place/state/snapshot.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "place/horus_snapshot.pb.h"
#include "place/state/snapshot_envelope.h"

namespace horus {
namespace {

namespace pb = snapshot::v1;

// Types by name in ascending order, so that ids, which may differ elsewhere, do not show.
class Types {
 public:
  explicit Types(const Cluster& cluster) : catalogue_(cluster.catalogue()) {
    for (const uint32_t row : cluster.rows().order) {
      for (const DeviceSpec& device : cluster.rows().nodes[row].spec->devices) Note(device.type);
    }
    const RequestTable& requests = cluster.rows().requests;
    for (uint32_t request = 0; request < requests.limit(); ++request) {
      if (requests.holders(request) == 0) continue;
      for (const TypeDemand& entry : requests.at(request).spec.demands) {
        if (entry.type.valid()) Note(entry.type);
      }
    }
    uint32_t next = 0;
    for (auto& [name, index] : index_of_) index = next++;
  }
  [[nodiscard]] uint32_t IndexOf(GpuTypeId type) const { return index_of_.find(catalogue_.at(type).name)->second; }
  void Write(pb::Cluster& out) const {
    for (const auto& [name, index] : index_of_) out.add_gpu_types(name);
  }

 private:
  void Note(GpuTypeId type) { index_of_.emplace(catalogue_.at(type).name, 0); }

  const Catalogue& catalogue_;
  std::map<std::string, uint32_t> index_of_;
};

void WriteLabels(const std::vector<std::pair<std::string, std::string>>& labels,
                 google::protobuf::RepeatedPtrField<pb::Label>& out) {
  for (const auto& [key, value] : labels) {
    pb::Label& label = *out.Add();
    label.set_key(key);
    label.set_value(value);
  }
}

void WriteNode(const Cluster& cluster, const NodeRow& row, const Types& types, pb::Node& out) {
  const NodeSpec& node = *row.spec;
  out.set_id(node.id);
  out.set_name(node.name);
  out.set_cpu_milli(node.cpu_milli);
  out.set_mem_mib(node.mem_mib);
  out.set_storage_mb_s(node.storage_mb_s);
  out.set_network_mb_s(node.network_mb_s);
  out.set_rack(node.rack);
  out.set_state(static_cast<uint32_t>(row.state));
  out.set_version(row.version);
  WriteLabels(node.labels, *out.mutable_labels());
  const ClusterRows& rows = cluster.rows();
  for (size_t i = 0; i < node.devices.size(); ++i) {
    const DeviceSpec& device = node.devices[i];
    pb::Device& one = *out.add_devices();
    one.set_gpu_type(types.IndexOf(device.type));
    one.set_mode(static_cast<uint32_t>(device.mode));
    if (device.mig_profile >= 0) {
      one.set_mig_profile(cluster.catalogue().at(device.type).mig[static_cast<size_t>(device.mig_profile)].name);
    }
    one.set_physical_gpu(device.physical_gpu);
    one.set_island(device.island);
    one.set_pcie_switch(device.pcie_switch);
    one.set_socket(device.socket);
    one.set_max_tenants(device.max_tenants);
    one.set_mem_mib(device.mem_mib);
    one.set_state(static_cast<uint32_t>(rows.states.state(rows.device_state[row.first_device + i]).state));
  }
}

// Jobs of one profile share one demand in the file.
class Demands {
 public:
  [[nodiscard]] uint32_t Add(const Demand& demand, pb::Cluster& out) {
    const std::string bytes = Bytes(demand);
    const auto [at, fresh] = index_of_.emplace(bytes, static_cast<uint32_t>(out.demands_size()));
    if (fresh) Write(demand, *out.add_demands());
    return at->second;
  }

 private:
  static void Write(const Demand& demand, pb::Demand& out) {
    out.set_profile_id(demand.profile_id);
    out.set_gpu_util_pct(demand.gpu_util_pct.estimate);
    out.set_gpu_util_pct_upper(demand.gpu_util_pct.upper);
    out.set_mem_bw_util_pct(demand.mem_bw_util_pct.estimate);
    out.set_mem_bw_util_pct_upper(demand.mem_bw_util_pct.upper);
    out.set_mem_mib(demand.mem_mib.estimate);
    out.set_mem_mib_upper(demand.mem_mib.upper);
    out.set_step_time_us(demand.step_time_us.estimate);
    out.set_step_time_us_upper(demand.step_time_us.upper);
    out.set_gradient_mib(demand.gradient_mib);
    out.set_flags(demand.flags);
    out.set_power_w(demand.power_w.estimate);
    out.set_power_w_upper(demand.power_w.upper);
    out.set_distance(demand.distance);
    out.set_operator_us(demand.operator_us);
    const bool none = std::all_of(demand.traits.begin(), demand.traits.end(), [](float trait) { return trait == 0; });
    if (!none) out.mutable_traits()->Add(demand.traits.begin(), demand.traits.end());
  }
  static std::string Bytes(const Demand& demand) {
    pb::Demand message;
    Write(demand, message);
    return message.SerializeAsString();
  }

  std::map<std::string, uint32_t> index_of_;
};

// So do jobs of one sensitivity.
class Sensitivities {
 public:
  [[nodiscard]] uint32_t Add(const Sensitivity& matrix, pb::Cluster& out) {
    pb::Sensitivity message;
    message.mutable_cpu_milli()->Add(matrix.cpu_milli().begin(), matrix.cpu_milli().end());
    message.mutable_mem_mib()->Add(matrix.mem_mib().begin(), matrix.mem_mib().end());
    message.mutable_speeds()->Add(matrix.speeds().begin(), matrix.speeds().end());
    const auto next = static_cast<uint32_t>(out.sensitivities_size());
    const auto [at, fresh] = index_of_.emplace(message.SerializeAsString(), next);
    if (fresh) *out.add_sensitivities() = std::move(message);
    return at->second;
  }

 private:
  std::map<std::string, uint32_t> index_of_;
};

struct Interned {
  Demands demands;
  Sensitivities sensitivities;
};

void WriteJob(const ClusterRows& rows, const JobRow& row, const Types& types, Interned& interned,
              pb::Cluster& cluster) {
  const JobSpec& job = rows.RequestOf(row);
  pb::Job& out = *cluster.add_jobs();
  out.set_id(row.id);
  out.set_submit_us(row.submit_us);
  if (const JobTag* tag = row.tag.get(); tag != nullptr) {
    out.set_name(tag->name);
    out.set_deadline_us(tag->deadline_us);
  }
  out.set_tenant(job.tenant);
  out.set_kind(static_cast<uint32_t>(job.kind));
  out.set_tasks(job.tasks);
  out.set_gpus_per_task(job.gpus_per_task);
  out.set_gpu_milli(job.gpu_milli);
  out.set_exclusive(job.exclusive);
  out.set_cpu_milli(job.cpu_milli);
  out.set_mem_mib(job.mem_mib);
  out.set_storage_mb_s(job.storage_mb_s);
  out.set_slowdown_bound(job.slowdown_bound);
  out.set_slowdown_confidence(job.slowdown_confidence);
  out.set_priority(job.priority);
  if (job.weight != 1) out.set_weight(job.weight);
  out.set_request_rate_hz(job.request_rate_hz);
  out.set_latency_bound_us(job.latency_bound_us);
  out.set_gpu_mem_request_mib(job.gpu_mem_request_mib);
  out.set_gpu_mem_limit_mib(job.gpu_mem_limit_mib);
  out.set_share(static_cast<uint32_t>(job.share));
  for (const std::string& name : job.groups) out.add_groups(name);
  for (const std::string& name : job.avoid_groups) out.add_avoid_groups(name);
  out.set_spread_tasks(job.spread_tasks);
  out.set_stated_cpu_milli_plus_1(job.stated_cpu_milli + 1);  // kAsHeld becomes 0
  out.set_stated_mem_mib_plus_1(job.stated_mem_mib + 1);
  std::vector<std::pair<uint32_t, const Demand*>> by_name;  // type ids, and so their order, may differ elsewhere
  for (const TypeDemand& entry : job.demands) {
    by_name.emplace_back(entry.type.valid() ? types.IndexOf(entry.type) + 1 : 0, &entry.demand);
  }
  std::sort(by_name.begin(), by_name.end());
  for (const auto& [type, demand] : by_name) {
    pb::TypeDemand& one = *out.add_demands();
    one.set_gpu_type_plus_1(type);
    one.set_demand(interned.demands.Add(*demand, cluster));
  }
  if (job.sensitivity.get() != nullptr) {
    out.set_sensitivity_plus_1(interned.sensitivities.Add(*job.sensitivity.get(), cluster) + 1);
  }
  WriteLabels(job.node_selector, *out.mutable_node_selector());
  for (const PlacedSlot& slot : row.slots) {
    pb::Slot& one = *out.add_slots();
    one.set_node(rows.nodes[slot.node_row].spec->id);
    one.set_device(static_cast<uint32_t>(slot.device));
    one.set_task(static_cast<uint32_t>(slot.task));
  }
  out.set_adopted(row.adopted);
  out.set_over_committed(row.over_committed);
}

}  // namespace

absl::StatusOr<std::string> SaveSnapshot(const Cluster& cluster, uint64_t max_bytes) {
  const ClusterRows& rows = cluster.rows();
  google::protobuf::Arena arena;  // holds what a message under way has when memory runs out
  pb::Cluster& message = *google::protobuf::Arena::CreateMessage<pb::Cluster>(&arena);
  const Types types(cluster);
  types.Write(message);
  for (const uint32_t row : rows.order) WriteNode(cluster, rows.nodes[row], types, *message.add_nodes());
  std::vector<std::pair<JobId, uint32_t>> jobs;
  for (uint32_t row = 0; row < rows.jobs.size(); ++row) {
    if (rows.jobs[row].live()) jobs.emplace_back(rows.jobs[row].id, row);
  }
  std::sort(jobs.begin(), jobs.end());
  Interned interned;
  for (const auto& [id, row] : jobs) WriteJob(rows, rows.jobs[row], types, interned, message);
  message.set_changes(rows.changes);
  const uint64_t size = message.ByteSizeLong() + kEnvelopeBytes;
  if (size > max_bytes) {
    return MakeError(absl::StatusCode::kResourceExhausted, "snapshot: expected at most %d bytes, found %d", max_bytes,
                     size);
  }
  return WrapSnapshot(message.SerializeAsString());
}

}  // namespace horus
