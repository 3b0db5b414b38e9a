// SPDX-License-Identifier: Apache-2.0
// Saving and restoring: the envelope (magic, version, length, checksum) and the message inside it.
#include "place/state/snapshot.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/seeded_hash.h"
#include "base/text.h"
#include "base/units.h"
#include "place/state/horus_snapshot.pb.h"
#include "place/state/snapshot_envelope.h"

namespace horus {

namespace pb = snapshot::v1;

namespace {

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
  for (const std::string& id : node.device_ids) out.add_device_ids(id);
  const ClusterRows& rows = cluster.rows();
  for (size_t i = 0; i < node.devices.size(); ++i) {
    const DeviceSpec& device = node.devices[i];
    pb::Device& one = *out.add_devices();
    one.set_gpu_type(types.IndexOf(device.type));
    one.set_mode(static_cast<uint32_t>(device.mode));
    if (device.mig_profile >= 0)
      one.set_mig_profile(cluster.catalogue().at(device.type).mig[static_cast<size_t>(device.mig_profile)].name);
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
  explicit Demands(pb::Cluster& out) : out_(out) {}
  // `demand` stays where it is.
  [[nodiscard]] uint32_t Add(const Demand& demand) {
    const auto [at, fresh] = index_of_.emplace(BytesOf(demand), static_cast<uint32_t>(out_.demands_size()));
    if (fresh) Write(demand, *out_.add_demands());
    return at->second;
  }

 private:
  static void Write(const Demand& demand, pb::Demand& out) {
#define HORUS_COPY(field) out.set_##field(demand.field);
    HORUS_PLAIN_DEMAND_FIELDS(HORUS_COPY)
#undef HORUS_COPY
#define HORUS_COPY(field)                 \
  out.set_##field(demand.field.estimate); \
  out.set_##field##_upper(demand.field.upper);
    HORUS_BOUNDED_DEMAND_FIELDS(HORUS_COPY)
#undef HORUS_COPY
    if (demand.duty != 1) out.set_duty(demand.duty);
    const bool none = std::ranges::all_of(demand.traits, [](float trait) { return trait == 0; });
    if (!none) out.mutable_traits()->Add(demand.traits.begin(), demand.traits.end());
  }

  pb::Cluster& out_;
  SeededMap<std::string_view, uint32_t> index_of_;
};

// So do jobs of one sensitivity.
class Sensitivities {
 public:
  explicit Sensitivities(pb::Cluster& out) : out_(out) {}
  [[nodiscard]] uint32_t Add(const Sensitivity& matrix) {
    pb::Sensitivity message;
    message.mutable_cpu_milli()->Add(matrix.cpu_milli().begin(), matrix.cpu_milli().end());
    message.mutable_mem_mib()->Add(matrix.mem_mib().begin(), matrix.mem_mib().end());
    message.mutable_speeds()->Add(matrix.speeds().begin(), matrix.speeds().end());
    message.set_host_us(matrix.host_us());
    const auto next = static_cast<uint32_t>(out_.sensitivities_size());
    const auto [at, fresh] = index_of_.emplace(message.SerializeAsString(), next);
    if (fresh) *out_.add_sensitivities() = std::move(message);
    return at->second;
  }

 private:
  pb::Cluster& out_;
  SeededMap<std::string, uint32_t> index_of_;
};

struct Interned {
  Demands demands;
  Sensitivities sensitivities;
};

void WriteRequest(const JobSpec& job, const Types& types, Interned& interned, pb::Job& out) {
#define HORUS_COPY(field) out.set_##field(job.field);
  HORUS_PLAIN_JOB_FIELDS(HORUS_COPY)
#undef HORUS_COPY
  out.set_tenant(job.tenant);
  out.set_kind(static_cast<uint32_t>(job.kind));
  out.set_tasks(job.tasks);
  out.set_gpus_per_task(job.gpus_per_task);
  out.set_exclusive(job.exclusive);
  out.set_sm_cap_chosen(job.sm_cap_chosen);
  out.set_exclusive_chosen(job.exclusive_chosen);
  out.set_mps_chosen(job.mps_chosen);
  if (job.weight != 1) out.set_weight(job.weight);
  out.set_share(static_cast<uint32_t>(job.share));
  for (const std::string& name : job.groups) out.add_groups(name);
  for (const std::string& name : job.avoid_groups) out.add_avoid_groups(name);
  out.set_spread_tasks(job.spread_tasks);
  out.set_stated_cpu_milli_plus_1(job.stated_cpu_milli + 1);  // kAsHeld becomes 0
  out.set_stated_mem_mib_plus_1(job.stated_mem_mib + 1);
  std::vector<std::pair<uint32_t, const Demand*>> by_name;  // type ids, and so their order, may differ elsewhere
  for (const TypeDemand& entry : job.demands)
    by_name.emplace_back(entry.type.valid() ? types.IndexOf(entry.type) + 1 : 0, &entry.demand);
  std::ranges::sort(by_name);
  for (const auto& [type, demand] : by_name) {
    pb::TypeDemand& one = *out.add_demands();
    one.set_gpu_type_plus_1(type);
    one.set_demand(interned.demands.Add(*demand));
  }
  if (job.sensitivity.get() != nullptr)
    out.set_sensitivity_plus_1(interned.sensitivities.Add(*job.sensitivity.get()) + 1);
  WriteLabels(job.node_selector, *out.mutable_node_selector());
}

// What is the job's own; `out` may hold that of another.
void WriteOwn(const JobRow& row, const JobTag& tag, std::span<const NodeId> node_ids, pb::Job& out) {
  out.set_id(row.id);
  out.set_submit_us(row.submit_us);
  out.set_name(tag.name);
  out.set_deadline_us(tag.deadline_us);
  out.clear_slots();
  for (const PlacedSlot& slot : row.slots) {
    pb::Slot& one = *out.add_slots();
    one.set_node(node_ids[slot.node_row]);
    one.set_device(static_cast<uint32_t>(slot.device));
    one.set_task(static_cast<uint32_t>(slot.task));
  }
  out.set_adopted(row.adopted != 0);
  out.set_over_committed(row.over_committed != 0);
}

}  // namespace

absl::StatusOr<std::string> SaveSnapshot(const Cluster& cluster, uint64_t max_bytes) {
  const ClusterRows& rows = cluster.rows();
  google::protobuf::Arena arena;  // holds what a message under way has when memory runs out
  // What comes before the jobs in the file, and what comes after them.
  pb::Cluster& head = *google::protobuf::Arena::CreateMessage<pb::Cluster>(&arena);
  pb::Cluster& tail = *google::protobuf::Arena::CreateMessage<pb::Cluster>(&arena);
  pb::Cluster& one = *google::protobuf::Arena::CreateMessage<pb::Cluster>(&arena);  // with the job at hand alone
  const Types types(cluster);
  types.Write(head);
  for (const uint32_t row : rows.order) WriteNode(cluster, rows.nodes[row], types, *head.add_nodes());
  std::vector<std::pair<JobId, uint32_t>> by_id;
  by_id.reserve(cluster.job_count());
  for (uint32_t row = 0; row < rows.jobs.size(); ++row) {
    if (rows.jobs[row].live()) by_id.emplace_back(rows.jobs[row].id, row);
  }
  std::ranges::sort(by_id);
  Interned interned{Demands(head), Sensitivities(tail)};
  std::vector<NodeId> node_ids(rows.nodes.size());  // by row; close together, as every slot asks for one
  for (const uint32_t row : rows.order) node_ids[row] = rows.nodes[row].spec->id;
  std::vector<pb::Job*> of_request(rows.requests.limit());  // written once for all jobs that ask for the same
  std::string jobs;  // bytes of messages that are joined are the bytes of the whole
  for (const auto& [id, row] : by_id) {
    const JobRow& job = rows.jobs[row];
    pb::Job*& message = of_request[job.request];
    if (message == nullptr) {
      message = google::protobuf::Arena::CreateMessage<pb::Job>(&arena);
      WriteRequest(rows.RequestOf(job), types, interned, *message);
    }
    WriteOwn(job, rows.TagOf(job), node_ids, *message);
    one.mutable_jobs()->UnsafeArenaAddAllocated(message);
    one.AppendToString(&jobs);
    one.mutable_jobs()->UnsafeArenaReleaseLast();
  }
  tail.set_changes(rows.changes);
  const uint64_t size = kEnvelopeBytes + head.ByteSizeLong() + jobs.size() + tail.ByteSizeLong();
  if (size > max_bytes) return ResourceExhausted("snapshot: expected at most %d bytes, found %d", max_bytes, size);
  std::string message;
  message.reserve(size);
  head.AppendToString(&message);
  message += jobs;
  tail.AppendToString(&message);
  return WrapSnapshot(message);
}

// Restoring: every field is checked as if a caller had given it, because anybody may have written the bytes.
namespace {

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
    if (i > 0 && name <= names[i - 1])
      return InvalidArgument("snapshot: GPU types: expected ascending names, found %s", Quoted(name));
    const absl::StatusOr<GpuTypeId> type = catalogue.Find(name);
    if (!type.ok()) return NotFound("snapshot: %s", std::string(type.status().message()));
    types.push_back(*type);
  }
  return types;
}

// Written out only where something is wrong: there are very many.
struct Where {
  const char* what = "";
  uint64_t id = 0;
  const char* part = "";
  [[nodiscard]] std::string text() const { return absl::StrCat(what, " ", id, part); }
};

template <typename To>
absl::StatusOr<To> Narrow(const Where& where, const char* field, int64_t value) {
  if (value >= std::numeric_limits<To>::min() && value <= std::numeric_limits<To>::max()) return static_cast<To>(value);
  return InvalidArgument("snapshot: %s: %s: expected %d to %d, found %d", where.text(), field,
                         std::numeric_limits<To>::min(), std::numeric_limits<To>::max(), value);
}

absl::StatusOr<GpuTypeId> TypeAt(const std::vector<GpuTypeId>& types, uint32_t index, const Where& where) {
  if (index < types.size()) return types[index];
  return InvalidArgument("snapshot: %s: expected one of %d GPU types, found index %d", where.text(), types.size(),
                         index);
}

absl::StatusOr<int16_t> ReadMigProfile(const pb::Device& in, const GpuType& type, const Where& where) {
  if (in.mig_profile().empty()) return int16_t{-1};
  for (size_t i = 0; i < type.mig.size(); ++i) {
    if (type.mig[i].name == in.mig_profile()) return static_cast<int16_t>(i);
  }
  return NotFound("snapshot: %s: %s has no MIG profile %s", where.text(), type.name, Quoted(in.mig_profile()));
}

absl::StatusOr<DeviceSpec> ReadDevice(const pb::Device& in, const std::vector<GpuTypeId>& types,
                                      const Catalogue& catalogue, const Where& where) {
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

absl::StatusOr<AdminState> ReadState(uint32_t value, const Where& where) {
  if (value <= static_cast<uint32_t>(AdminState::kDown)) return static_cast<AdminState>(value);
  return InvalidArgument("snapshot: %s: state: expected 0 to 2, found %d", where.text(), value);
}

absl::StatusOr<Demand> ReadDemand(const pb::Demand& in, size_t index) {
  Demand demand;
#define HORUS_COPY(field) demand.field = in.field();
  HORUS_PLAIN_DEMAND_FIELDS(HORUS_COPY)
#undef HORUS_COPY
#define HORUS_COPY(field) demand.field = {in.field(), in.field##_upper()};
  HORUS_BOUNDED_DEMAND_FIELDS(HORUS_COPY)
#undef HORUS_COPY
  if (in.duty() != 0) demand.duty = in.duty();
  if (in.traits_size() > static_cast<int>(kTraitCount)) {
    return InvalidArgument("snapshot: demands[%d]: expected at most %d traits, found %d", index, kTraitCount,
                           in.traits_size());
  }
  std::copy(in.traits().begin(), in.traits().end(), demand.traits.begin());
  if (const absl::Status status = ValidateDemand(demand); !status.ok())
    return InvalidArgument("snapshot: demands[%d]: %s", index, std::string(status.message()));
  return demand;
}

absl::StatusOr<SharedSensitivity> ReadSensitivity(const pb::Sensitivity& in, size_t index) {
  auto matrix =
      Sensitivity::Create({in.cpu_milli().begin(), in.cpu_milli().end()}, {in.mem_mib().begin(), in.mem_mib().end()},
                          {in.speeds().data(), static_cast<size_t>(in.speeds_size())}, in.host_us());
  if (!matrix.ok())
    return InvalidArgument("snapshot: sensitivities[%d]: %s", index, std::string(matrix.status().message()));
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
      HORUS_ASSIGN_OR_RETURN(const Demand demand, DemandAt(i));
      if (i < kMostKept) kept_.push_back(demand);
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
    if (index < kept_.size()) return kept_[index];
    HORUS_ASSIGN_OR_RETURN(const pb::Demand* const demand, part_.Parse(demands_[index], "demands", index));
    return ReadDemand(*demand, index);
  }
  [[nodiscard]] const std::vector<SharedSensitivity>& sensitivities() const { return sensitivities_; }

 private:
  static constexpr size_t kMostKept = 4096;  // a megabyte; the rest is read whenever a job names it
  std::vector<std::string_view> demands_;
  std::vector<Demand> kept_;
  std::vector<SharedSensitivity> sensitivities_;
  mutable SnapshotPart<pb::Demand> part_;
};

// Without what is the job's own but its id.
absl::StatusOr<JobSpec> ReadJob(const pb::Job& in, const std::vector<GpuTypeId>& types, const Tables& tables) {
  const Where where{"job", in.id()};
  JobSpec job;
  job.id = in.id();
#define HORUS_COPY(field) job.field = in.field();
  HORUS_PLAIN_JOB_FIELDS(HORUS_COPY)
#undef HORUS_COPY
  job.tenant = in.tenant();
  HORUS_ASSIGN_OR_RETURN(const uint8_t kind, Narrow<uint8_t>(where, "kind", in.kind()));
  job.kind = static_cast<JobKind>(kind);  // ValidateJob refuses unknown ones
  job.tasks = in.tasks();
  job.gpus_per_task = in.gpus_per_task();
  job.exclusive = in.exclusive();
  job.sm_cap_chosen = in.sm_cap_chosen() && in.sm_cap_pct() > 0;
  job.exclusive_chosen = in.exclusive_chosen() && in.exclusive();
  job.mps_chosen = in.mps_chosen();
  if (in.weight() != 0) job.weight = in.weight();
  HORUS_ASSIGN_OR_RETURN(const uint8_t share, Narrow<uint8_t>(where, "share", in.share()));
  // 0 is how anyone was written before the default was the own tenant. ValidateJob refuses unknown ones.
  job.share = share == 0 ? ShareWith::kAnyone : static_cast<ShareWith>(share);
  job.groups.assign(in.groups().begin(), in.groups().end());
  job.avoid_groups.assign(in.avoid_groups().begin(), in.avoid_groups().end());
  job.spread_tasks = in.spread_tasks();
  for (const int64_t stated : {in.stated_cpu_milli_plus_1(), in.stated_mem_mib_plus_1()}) {
    if (stated < 0)
      return InvalidArgument("snapshot: %s: stated request: expected 0 or more, found %d", where.text(), stated);
  }
  job.stated_cpu_milli = in.stated_cpu_milli_plus_1() - 1;
  job.stated_mem_mib = in.stated_mem_mib_plus_1() - 1;
  if (static_cast<size_t>(in.demands_size()) > std::max(types.size(), size_t{1})) {  // before they are copied
    return InvalidArgument("snapshot: %s: expected at most one demand for each of %d GPU types, found %d", where.text(),
                           types.size(), in.demands_size());
  }
  for (const pb::TypeDemand& entry : in.demands()) {
    GpuTypeId type;
    if (entry.gpu_type_plus_1() > 0) HORUS_SET_OR_RETURN(type, TypeAt(types, entry.gpu_type_plus_1() - 1, where));
    if (entry.demand() >= tables.demands()) {
      return InvalidArgument("snapshot: %s: expected one of %d demands, found index %d", where.text(), tables.demands(),
                             entry.demand());
    }
    HORUS_ASSIGN_OR_RETURN(const Demand demand, tables.DemandAt(entry.demand()));
    job.demands.push_back({type, demand});
  }
  const std::vector<SharedSensitivity>& sensitivities = tables.sensitivities();
  if (in.sensitivity_plus_1() > sensitivities.size()) {
    return InvalidArgument("snapshot: %s: expected one of %d sensitivities, found index %d", where.text(),
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

  // Growing by and by costs time, and leaves room that nobody needs.
  void ReserveJobs(size_t jobs) { cluster_.rows_.jobs.reserve(jobs); }

  absl::Status AddNode(const pb::Node& in) {
    const Where where{"node", in.id()};
    if (!versions_.empty() && in.id() <= versions_.back().first) {
      return InvalidArgument("snapshot: %s: expected ascending ids, found it after node %d", where.text(),
                             versions_.back().first);
    }
    NodeSpec node{.id = in.id(),
                  .name = in.name(),
                  .cpu_milli = in.cpu_milli(),
                  .mem_mib = in.mem_mib(),
                  .storage_mb_s = in.storage_mb_s(),
                  .network_mb_s = in.network_mb_s(),
                  .rack = in.rack(),
                  .labels = ReadLabels(in.labels()),
                  .device_ids = {in.device_ids().begin(), in.device_ids().end()}};
    if (static_cast<size_t>(in.devices_size()) > kMaxDevicesPerNode) {
      return InvalidArgument("snapshot: %s: expected at most %d devices, found %d", where.text(), kMaxDevicesPerNode,
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
      if (device_state == AdminState::kUp) continue;  // as it was made
      HORUS_RETURN_IF_ERROR(cluster_.SetDeviceState(in.id(), i, device_state).status());
    }
    versions_.emplace_back(in.id(), in.version());
    return absl::OkStatus();
  }

  absl::Status AddJob(std::string_view bytes, size_t index, const Tables& tables) {
    const bool split = SplitJob(bytes, own_, shared_);
    if (const auto known = split ? known_.find(shared_) : known_.end(); known != known_.end()) {
      const absl::StatusOr<const pb::Job*> own = job_part_.Parse(own_, "jobs", index);
      if (own.ok()) return Insert(**own, known->second);
    }
    HORUS_ASSIGN_OR_RETURN(const pb::Job* const in, job_part_.Parse(bytes, "jobs", index));
    Known fresh;
    HORUS_ASSIGN_OR_RETURN(fresh.job, ReadJob(*in, types_, tables));
    HORUS_RETURN_IF_ERROR(Insert(*in, fresh));
    if (split && known_.size() < kMostKnown && shared_.size() <= kMostKnownBytes &&
        fresh.job.demands.size() <= kMostKnownDemands) {
      known_.emplace(shared_, std::move(fresh));
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
  // What a job asks for, and under which id the cluster holds it.
  struct Known {
    JobSpec job;
    uint32_t request = RequestTable::kNone;
  };

  // `known.job` may have the own fields of another.
  absl::Status Insert(const pb::Job& in, Known& known) {
    JobSpec& job = known.job;
    job.id = in.id();
    job.name = in.name();
    job.submit_us = in.submit_us();
    job.deadline_us = in.deadline_us();
    Slots slots;
    for (const pb::Slot& slot : in.slots()) {
      const Where where{"job", in.id(), ": slot"};
      int32_t device = kNoDevice;
      if (slot.device() != kNoDeviceInFile)
        HORUS_SET_OR_RETURN(device, Narrow<int32_t>(where, "device", slot.device()));
      HORUS_ASSIGN_OR_RETURN(const int32_t task, Narrow<int32_t>(where, "task", slot.task()));
      slots.push_back({slot.node(), device, task});
    }
    const auto placed = Resolve(known, slots);
    if (!placed.ok()) return InvalidArgument("snapshot: %s", std::string(placed.status().message()));
    if (in.over_committed() && !in.adopted())
      return InvalidArgument("snapshot: job %d: expected over-commitment of adopted jobs alone", in.id());
    cluster_.InsertJob(job, *placed, in.adopted(), in.over_committed(), known.request);
    return absl::OkStatus();
  }

  // As Cluster::Adopt, but that the file says whether the job breaks a rule.
  absl::StatusOr<PlacedSlots> Resolve(const Known& known, std::span<const Slot> slots) const {
    if (known.request != RequestTable::kNone) {  // one like it is there
      HORUS_RETURN_IF_ERROR(ValidateOwn(known.job));
    } else {
      HORUS_RETURN_IF_ERROR(ValidateRunning(known.job));
      HORUS_RETURN_IF_ERROR(CheckTypes(known.job, cluster_.catalogue().size()));
    }
    return cluster_.ResolveAdopted(known.job, slots);
  }

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
  // By those bytes of a job that are not its own, so that each request is read and checked once. Within limits, as
  // anybody may have written the bytes: jobs beyond them are read as a whole.
  static constexpr size_t kMostKnown = 4096;
  static constexpr size_t kMostKnownBytes = 1024;
  static constexpr size_t kMostKnownDemands = 16;  // each is far larger than its bytes
  SeededMap<std::string, Known> known_;
  SnapshotPart<pb::Job> job_part_;
  std::string own_, shared_;  // of the job at hand
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
  restorer.ReserveJobs(std::min(in.jobs.size(), bytes.size() / sizeof(JobRow)));  // no more than the bytes take
  for (size_t i = 0; i < in.jobs.size(); ++i) HORUS_RETURN_IF_ERROR(restorer.AddJob(in.jobs[i], i, tables));
  return restorer.Finish(in.changes);
}

}  // namespace horus
