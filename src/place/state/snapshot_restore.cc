// SPDX-License-Identifier: Apache-2.0
// Restoring: every field is checked as if a caller had given it, because anybody may have written the bytes.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "place/horus_snapshot.pb.h"
#include "place/state/snapshot.h"
#include "place/state/snapshot_envelope.h"
#include "place/state/snapshot_messages.h"

namespace horus {
namespace {

namespace pb = snapshot::v1;

constexpr uint32_t kNoDeviceInFile = 0xFFFFFFFFu;

constexpr size_t kMaxDemandBytes = 1024;  // three times the longest there is: each job parses those it names

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels ReadLabels(const google::protobuf::RepeatedPtrField<pb::Label>& in) {
  Labels labels;
  for (const pb::Label& label : in) labels.emplace_back(label.key(), label.value());
  return labels;
}

absl::StatusOr<std::vector<GpuTypeId>> ReadTypes(const std::vector<std::string_view>& names,
                                                 const Catalogue& catalogue) {
  std::vector<GpuTypeId> types;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i];
    if (i > 0 && name <= names[i - 1]) {
      return InvalidArgument("snapshot: GPU types: expected ascending names, found %s", Quoted(name));
    }
    const absl::StatusOr<GpuTypeId> type = catalogue.Find(name);
    if (!type.ok()) {
      return MakeError(absl::StatusCode::kNotFound, "snapshot: %s", std::string(type.status().message()));
    }
    types.push_back(*type);
  }
  return types;
}

template <typename To>
absl::StatusOr<To> Narrow(const std::string& where, const char* field, int64_t value) {
  if (value >= std::numeric_limits<To>::min() && value <= std::numeric_limits<To>::max()) return static_cast<To>(value);
  return InvalidArgument("snapshot: %s: %s: expected %d to %d, found %d", where, field, std::numeric_limits<To>::min(),
                         std::numeric_limits<To>::max(), value);
}

absl::StatusOr<GpuTypeId> TypeAt(const std::vector<GpuTypeId>& types, uint32_t index, const std::string& where) {
  if (index < types.size()) return types[index];
  return InvalidArgument("snapshot: %s: expected one of %d GPU types, found index %d", where, types.size(), index);
}

absl::StatusOr<int16_t> ReadMigProfile(const pb::Device& in, const GpuType& type, const std::string& where) {
  if (in.mig_profile().empty()) return int16_t{-1};
  for (size_t i = 0; i < type.mig.size(); ++i) {
    if (type.mig[i].name == in.mig_profile()) return static_cast<int16_t>(i);
  }
  return MakeError(absl::StatusCode::kNotFound, "snapshot: %s: %s has no MIG profile %s", where, type.name,
                   Quoted(in.mig_profile()));
}

absl::StatusOr<DeviceSpec> ReadDevice(const pb::Device& in, const std::vector<GpuTypeId>& types,
                                      const Catalogue& catalogue, const std::string& where) {
  DeviceSpec device;
  HORUS_ASSIGN_OR_RETURN(device.type, TypeAt(types, in.gpu_type(), where));
  HORUS_ASSIGN_OR_RETURN(const uint8_t mode, Narrow<uint8_t>(where, "mode", in.mode()));
  device.mode = static_cast<SharingMode>(mode);  // ResolveNode refuses unknown ones
  HORUS_ASSIGN_OR_RETURN(device.mig_profile, ReadMigProfile(in, catalogue.at(device.type), where));
  HORUS_ASSIGN_OR_RETURN(device.physical_gpu, Narrow<int16_t>(where, "physical_gpu", in.physical_gpu()));
  HORUS_ASSIGN_OR_RETURN(device.island, Narrow<int16_t>(where, "island", in.island()));
  HORUS_ASSIGN_OR_RETURN(device.pcie_switch, Narrow<int16_t>(where, "pcie_switch", in.pcie_switch()));
  HORUS_ASSIGN_OR_RETURN(device.socket, Narrow<int16_t>(where, "socket", in.socket()));
  device.max_tenants = in.max_tenants();
  device.mem_mib = in.mem_mib();
  return device;
}

absl::StatusOr<AdminState> ReadState(uint32_t value, const std::string& where) {
  if (value <= static_cast<uint32_t>(AdminState::kDown)) return static_cast<AdminState>(value);
  return InvalidArgument("snapshot: %s: state: expected 0 to 2, found %d", where, value);
}

absl::StatusOr<Demand> ReadDemand(const pb::Demand& in, size_t index) {
  Demand demand{.profile_id = in.profile_id(),
                .gpu_util_pct = {in.gpu_util_pct(), in.gpu_util_pct_upper()},
                .mem_bw_util_pct = {in.mem_bw_util_pct(), in.mem_bw_util_pct_upper()},
                .mem_mib = {in.mem_mib(), in.mem_mib_upper()},
                .step_time_us = {in.step_time_us(), in.step_time_us_upper()},
                .power_w = {in.power_w(), in.power_w_upper()},
                .gradient_mib = in.gradient_mib(),
                .flags = in.flags(),
                .distance = in.distance(),
                .operator_us = in.operator_us()};
  if (in.traits_size() > static_cast<int>(kTraitCount)) {
    return InvalidArgument("snapshot: demands[%d]: expected at most %d traits, found %d", index, kTraitCount,
                           in.traits_size());
  }
  std::copy(in.traits().begin(), in.traits().end(), demand.traits.begin());
  if (const absl::Status status = ValidateDemand(demand); !status.ok()) {
    return InvalidArgument("snapshot: demands[%d]: %s", index, std::string(status.message()));
  }
  return demand;
}

absl::StatusOr<SharedSensitivity> ReadSensitivity(const pb::Sensitivity& in, size_t index) {
  auto matrix =
      Sensitivity::Create({in.cpu_milli().begin(), in.cpu_milli().end()}, {in.mem_mib().begin(), in.mem_mib().end()},
                          {in.speeds().data(), static_cast<size_t>(in.speeds_size())});
  if (!matrix.ok()) {
    return InvalidArgument("snapshot: sensitivities[%d]: %s", index, std::string(matrix.status().message()));
  }
  return SharedSensitivity(*std::move(matrix));
}

// What jobs refer to by position. Demands stay bytes: few of them become an empty one, which is large.
class Tables {
 public:
  absl::Status Read(const SnapshotMessages& in) {
    demands_ = in.demands;
    for (size_t i = 0; i < demands_.size(); ++i) {
      if (demands_[i].size() > kMaxDemandBytes) {
        return InvalidArgument("snapshot: demands[%d]: expected at most %d bytes, found %d", i, kMaxDemandBytes,
                               demands_[i].size());
      }
      HORUS_RETURN_IF_ERROR(DemandAt(i).status());
    }
    SnapshotPart<pb::Sensitivity> part;
    for (const std::string_view bytes : in.sensitivities) {
      const size_t index = sensitivities_.size();
      HORUS_ASSIGN_OR_RETURN(const pb::Sensitivity* const matrix, part.Parse(bytes, "sensitivities", index));
      HORUS_ASSIGN_OR_RETURN(SharedSensitivity one, ReadSensitivity(*matrix, index));
      sensitivities_.push_back(std::move(one));
    }
    return absl::OkStatus();
  }

  [[nodiscard]] size_t demands() const { return demands_.size(); }
  [[nodiscard]] absl::StatusOr<Demand> DemandAt(size_t index) const {
    HORUS_ASSIGN_OR_RETURN(const pb::Demand* const demand, part_.Parse(demands_[index], "demands", index));
    return ReadDemand(*demand, index);
  }
  [[nodiscard]] const std::vector<SharedSensitivity>& sensitivities() const { return sensitivities_; }

 private:
  std::vector<std::string_view> demands_;
  std::vector<SharedSensitivity> sensitivities_;
  mutable SnapshotPart<pb::Demand> part_;
};

absl::StatusOr<JobSpec> ReadJob(const pb::Job& in, const std::vector<GpuTypeId>& types, const Tables& tables) {
  const std::string where = Formatted("job %d", in.id());
  JobSpec job;
  job.id = in.id();
  job.name = in.name();
  job.tenant = in.tenant();
  HORUS_ASSIGN_OR_RETURN(const uint8_t kind, Narrow<uint8_t>(where, "kind", in.kind()));
  job.kind = static_cast<JobKind>(kind);  // ValidateJob refuses unknown ones
  job.tasks = in.tasks();
  job.gpus_per_task = in.gpus_per_task();
  job.gpu_milli = in.gpu_milli();
  job.exclusive = in.exclusive();
  job.cpu_milli = in.cpu_milli();
  job.mem_mib = in.mem_mib();
  job.storage_mb_s = in.storage_mb_s();
  job.slowdown_bound = in.slowdown_bound();
  job.slowdown_confidence = in.slowdown_confidence();
  job.priority = in.priority();
  if (in.weight() != 0) job.weight = in.weight();
  job.submit_us = in.submit_us();
  job.deadline_us = in.deadline_us();
  job.request_rate_hz = in.request_rate_hz();
  job.latency_bound_us = in.latency_bound_us();
  job.gpu_mem_request_mib = in.gpu_mem_request_mib();
  job.gpu_mem_limit_mib = in.gpu_mem_limit_mib();
  HORUS_ASSIGN_OR_RETURN(const uint8_t share, Narrow<uint8_t>(where, "share", in.share()));
  // 0 is how anyone was written before the default was the own tenant. ValidateJob refuses unknown ones.
  job.share = share == 0 ? ShareWith::kAnyone : static_cast<ShareWith>(share);
  job.groups.assign(in.groups().begin(), in.groups().end());
  job.avoid_groups.assign(in.avoid_groups().begin(), in.avoid_groups().end());
  job.spread_tasks = in.spread_tasks();
  for (const int64_t stated : {in.stated_cpu_milli_plus_1(), in.stated_mem_mib_plus_1()}) {
    if (stated < 0) return InvalidArgument("snapshot: %s: stated request: expected 0 or more, found %d", where, stated);
  }
  job.stated_cpu_milli = in.stated_cpu_milli_plus_1() - 1;
  job.stated_mem_mib = in.stated_mem_mib_plus_1() - 1;
  if (static_cast<size_t>(in.demands_size()) > std::max(types.size(), size_t{1})) {  // before they are copied
    return InvalidArgument("snapshot: %s: expected at most one demand for each of %d GPU types, found %d", where,
                           types.size(), in.demands_size());
  }
  for (const pb::TypeDemand& entry : in.demands()) {
    GpuTypeId type;
    if (entry.gpu_type_plus_1() > 0) {
      HORUS_ASSIGN_OR_RETURN(type, TypeAt(types, entry.gpu_type_plus_1() - 1, where));
    }
    if (entry.demand() >= tables.demands()) {
      return InvalidArgument("snapshot: %s: expected one of %d demands, found index %d", where, tables.demands(),
                             entry.demand());
    }
    HORUS_ASSIGN_OR_RETURN(const Demand demand, tables.DemandAt(entry.demand()));
    job.demands.push_back({type, demand});
  }
  const std::vector<SharedSensitivity>& sensitivities = tables.sensitivities();
  if (in.sensitivity_plus_1() > sensitivities.size()) {
    return InvalidArgument("snapshot: %s: expected one of %d sensitivities, found index %d", where,
                           sensitivities.size(), in.sensitivity_plus_1() - 1);
  }
  if (in.sensitivity_plus_1() > 0) job.sensitivity = sensitivities[in.sensitivity_plus_1() - 1];
  job.node_selector = ReadLabels(in.node_selector());
  NormalizeJob(job);  // type ids, and so their order, may differ from those of the writer
  return job;
}

}  // namespace

// Rebuilds a cluster through its own operations, then sets what they cannot: versions and flags.
class ClusterRestorer {
 public:
  ClusterRestorer(std::shared_ptr<const Catalogue> catalogue, std::vector<GpuTypeId> types)
      : cluster_(std::move(catalogue)), types_(std::move(types)) {}

  absl::Status AddNode(const pb::Node& in) {
    const std::string where = Formatted("node %d", in.id());
    if (!versions_.empty() && in.id() <= versions_.back().first) {
      return InvalidArgument("snapshot: %s: expected ascending ids, found it after node %d", where,
                             versions_.back().first);
    }
    NodeSpec node{.id = in.id(),
                  .name = in.name(),
                  .cpu_milli = in.cpu_milli(),
                  .mem_mib = in.mem_mib(),
                  .storage_mb_s = in.storage_mb_s(),
                  .network_mb_s = in.network_mb_s(),
                  .rack = in.rack(),
                  .labels = ReadLabels(in.labels())};
    if (static_cast<size_t>(in.devices_size()) > kMaxDevicesPerNode) {
      return InvalidArgument("snapshot: %s: expected at most %d devices, found %d", where, kMaxDevicesPerNode,
                             in.devices_size());
    }
    for (const pb::Device& device : in.devices()) {
      HORUS_ASSIGN_OR_RETURN(const DeviceSpec spec, ReadDevice(device, types_, cluster_.catalogue(), where));
      node.devices.push_back(spec);
    }
    HORUS_RETURN_IF_ERROR(cluster_.AddNode(std::move(node)));
    HORUS_ASSIGN_OR_RETURN(const AdminState state, ReadState(in.state(), where));
    HORUS_RETURN_IF_ERROR(cluster_.SetNodeState(in.id(), state).status());
    for (int i = 0; i < in.devices_size(); ++i) {
      HORUS_ASSIGN_OR_RETURN(const AdminState device_state, ReadState(in.devices(i).state(), where));
      HORUS_RETURN_IF_ERROR(cluster_.SetDeviceState(in.id(), i, device_state).status());
    }
    versions_.emplace_back(in.id(), in.version());
    return absl::OkStatus();
  }

  absl::Status AddJob(const pb::Job& in, const Tables& tables) {
    HORUS_ASSIGN_OR_RETURN(const JobSpec job, ReadJob(in, types_, tables));
    std::vector<Slot> slots;
    for (const pb::Slot& slot : in.slots()) {
      const std::string where = Formatted("job %d: slot", in.id());
      int32_t device = kNoDevice;
      if (slot.device() != kNoDeviceInFile) {
        HORUS_ASSIGN_OR_RETURN(device, Narrow<int32_t>(where, "device", slot.device()));
      }
      HORUS_ASSIGN_OR_RETURN(const int32_t task, Narrow<int32_t>(where, "task", slot.task()));
      slots.push_back({slot.node(), device, task});
    }
    if (const absl::Status status = cluster_.Adopt(job, slots).status(); !status.ok()) {
      return InvalidArgument("snapshot: %s", std::string(status.message()));
    }
    JobRow& row = cluster_.rows_.jobs[cluster_.rows_.RowOfJob(job.id)];
    row.adopted = in.adopted();
    row.over_committed = in.over_committed();
    if (row.over_committed && !row.adopted) {
      return InvalidArgument("snapshot: job %d: expected over-commitment of adopted jobs alone", in.id());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Cluster> Finish(uint64_t changes) {
    HORUS_RETURN_IF_ERROR(CheckPromises());
    for (const auto& [node, version] : versions_) {
      const uint32_t row = cluster_.rows_.node_of.at(node);
      cluster_.rows_.nodes[row].version = version;
      cluster_.rows_.log.Add(row, version);
    }
    cluster_.rows_.changes = changes;
    return std::move(cluster_);
  }

 private:
  // Only a job that was adopted beyond the rules leaves a node that promises more than it has.
  absl::Status CheckPromises() const {
    const ClusterRows& rows = cluster_.rows_;
    std::vector<bool> excused(rows.nodes.size(), false);
    for (const JobRow& job : rows.jobs) {
      for (const PlacedSlot& slot : job.slots) {
        if (job.over_committed) excused[slot.node_row] = true;
      }
    }
    for (const uint32_t row : rows.order) {
      const NodeRow& node = rows.nodes[row];
      bool kept = std::min({node.free.cpu_milli, node.free.mem_mib, node.free.storage_mb_s}) >= 0;
      for (size_t i = 0; i < node.spec->devices.size(); ++i) {
        const DeviceRow device = rows.DeviceAt(node.first_device + static_cast<uint32_t>(i));
        const bool alone = device.exclusive_held || device.mode == SharingMode::kExclusive;
        kept = kept && device.mem_used_upper_mib <= device.mem_mib && device.milli_used <= kMilliPerGpu &&
               (device.tenants.size() <= 1 || !alone);
      }
      if (kept || excused[row]) continue;
      return InvalidArgument("snapshot: node %d: expected a job that over-commits it, as it promises more than it has",
                             node.spec->id);
    }
    return absl::OkStatus();
  }

  Cluster cluster_;
  std::vector<GpuTypeId> types_;
  std::vector<std::pair<NodeId, uint64_t>> versions_;
};

absl::StatusOr<Cluster> RestoreSnapshot(std::span<const uint8_t> bytes, std::shared_ptr<const Catalogue> catalogue) {
  if (catalogue == nullptr) catalogue = std::make_shared<const Catalogue>();
  HORUS_ASSIGN_OR_RETURN(const std::string_view message, UnwrapSnapshot(bytes));
  HORUS_ASSIGN_OR_RETURN(const SnapshotMessages in, FindSnapshotMessages(message));
  HORUS_ASSIGN_OR_RETURN(std::vector<GpuTypeId> types, ReadTypes(in.gpu_types, *catalogue));
  Tables tables;
  HORUS_RETURN_IF_ERROR(tables.Read(in));
  ClusterRestorer restorer(std::move(catalogue), std::move(types));
  SnapshotPart<pb::Node> node_part;
  for (size_t i = 0; i < in.nodes.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(const pb::Node* const node, node_part.Parse(in.nodes[i], "nodes", i));
    HORUS_RETURN_IF_ERROR(restorer.AddNode(*node));
  }
  SnapshotPart<pb::Job> job_part;
  for (size_t i = 0; i < in.jobs.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(const pb::Job* const job, job_part.Parse(in.jobs[i], "jobs", i));
    HORUS_RETURN_IF_ERROR(restorer.AddJob(*job, tables));
  }
  return restorer.Finish(in.changes);
}

}  // namespace horus
