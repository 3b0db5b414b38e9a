// SPDX-License-Identifier: Apache-2.0
// Sharing modes, demands, nodes and jobs between the C ABI and the rooms, checked on the way in.
#include "capi/convert.h"

#include <limits>
#include <new>

#include "base/text.h"

namespace horus::capi {
namespace {

// ---- Field by field between horus_demand and Demand.

static_assert(HORUS_TRAIT_COUNT == kTraitCount);
static_assert(HORUS_DEMAND_GIVEN == kDemandGiven && HORUS_DEMAND_MEASURED == kDemandMeasured &&
              HORUS_DEMAND_OUTSIDE == kDemandOutside && HORUS_DEMAND_UNCALIBRATED == kDemandUncalibrated &&
              HORUS_DEMAND_PREDICTED == kDemandPredicted && HORUS_DEMAND_TOO_LARGE == kDemandTooLarge &&
              HORUS_MEM_MIB_UNBOUNDED == kUnboundedMemMib);
constexpr uint32_t kKnownFlags = HORUS_DEMAND_GIVEN | HORUS_DEMAND_MEASURED | HORUS_DEMAND_OUTSIDE |
                                 HORUS_DEMAND_UNCALIBRATED | HORUS_DEMAND_PREDICTED | HORUS_DEMAND_TOO_LARGE;

// An upper bound that was left 0 is the estimate.
template <typename Pair, typename Number>
Pair MakePair(Number estimate, Number upper) {
  return {estimate, upper == 0 && estimate > 0 ? estimate : upper};
}

// ---- Nodes from the C ABI.

static_assert(Same(HORUS_STATE_UP, AdminState::kUp) && Same(HORUS_STATE_DRAINED, AdminState::kDrained) &&
              Same(HORUS_STATE_DOWN, AdminState::kDown));

// Element `i` of a small-number column; `absent` when the caller left the column out.
absl::StatusOr<int16_t> SmallAt(const int32_t* column, const char* name, size_t i, int16_t absent) {
  if (column == nullptr) return absent;
  if (column[i] >= absent && column[i] <= std::numeric_limits<int16_t>::max()) return static_cast<int16_t>(column[i]);
  return InvalidArgument("%s: expected %d to %d, found %d", Element(name, i), absent,
                         std::numeric_limits<int16_t>::max(), column[i]);
}

absl::StatusOr<int16_t> MigIndex(const GpuType& type, SharingMode mode, const char* given, size_t i) {
  if (mode == SharingMode::kMig && given == nullptr) {
    return InvalidArgument("%s: expected a MIG profile of %s beside sharing mode mig, found NULL",
                           Element("mig_profiles", i), type.name);
  }
  if (given == nullptr) return -1;
  HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(given, Element("mig_profiles", i).c_str()));
  if (mode != SharingMode::kMig) {
    return InvalidArgument("%s: expected NULL beside sharing mode %s, found %s", Element("mig_profiles", i),
                           std::string(SharingModeName(mode)), Quoted(name));
  }
  std::string known;
  for (size_t profile = 0; profile < type.mig.size(); ++profile) {
    if (type.mig[profile].name == name) return static_cast<int16_t>(profile);
    known += (profile == 0 ? "" : ", ") + type.mig[profile].name;
  }
  return NotFound("%s: expected a MIG profile of %s (%s), found '%s'", Element("mig_profiles", i), type.name,
                  known.empty() ? "it has none" : known, name);
}

absl::StatusOr<SharingMode> ModeAt(const horus_node& node, size_t i, bool is_mig) {
  const int32_t mode = node.sharing_modes == nullptr ? 0 : node.sharing_modes[i];
  if (mode == 0) return is_mig ? SharingMode::kMig : SharingMode::kTimeSlice;
  return At(Element("sharing_modes", i), SharingFromC(mode, HORUS_SHARING_TIME_SLICE_OR_MPS));
}

absl::StatusOr<DeviceSpec> DeviceAt(const Catalogue& catalogue, const horus_node& node, size_t i) {
  DeviceSpec device;
  HORUS_ASSIGN_OR_RETURN(const std::string type_name, ReadText(node.gpu_types[i], Element("gpu_types", i).c_str()));
  HORUS_ASSIGN_OR_RETURN(device.type, At(Element("gpu_types", i), catalogue.Find(type_name)));
  const char* mig_profile = node.mig_profiles == nullptr ? nullptr : node.mig_profiles[i];
  HORUS_ASSIGN_OR_RETURN(device.mode, ModeAt(node, i, mig_profile != nullptr));
  HORUS_ASSIGN_OR_RETURN(device.mig_profile, MigIndex(catalogue.at(device.type), device.mode, mig_profile, i));
  HORUS_ASSIGN_OR_RETURN(device.physical_gpu, SmallAt(node.physical_gpus, "physical_gpus", i, -1));
  HORUS_ASSIGN_OR_RETURN(device.island, SmallAt(node.nvlink_islands, "nvlink_islands", i, -1));
  HORUS_ASSIGN_OR_RETURN(device.pcie_switch, SmallAt(node.pcie_switches, "pcie_switches", i, 0));
  HORUS_ASSIGN_OR_RETURN(device.socket, SmallAt(node.sockets, "sockets", i, 0));
  device.max_tenants = node.max_tenants == nullptr ? 0 : node.max_tenants[i];
  device.mem_mib = node.gpu_mem_mib == nullptr ? 0 : node.gpu_mem_mib[i];
  return device;
}

absl::StatusOr<NodeSpec> Convert(const Catalogue& catalogue, const horus_node& node) {
  NodeSpec spec;
  HORUS_COPY_FIELDS(node, spec, id, cpu_milli, mem_mib, storage_mb_s, network_mb_s, rack)
  HORUS_ASSIGN_OR_RETURN(spec.name, ReadOptionalText(node.name, "name"));
  HORUS_RETURN_IF_ERROR(RequireColumn(node.gpu_types, "gpu_types", node.device_count));
  if (node.device_count > kMaxDevicesPerNode)
    return InvalidArgument("device_count: expected at most %d, found %d", kMaxDevicesPerNode, node.device_count);
  for (size_t i = 0; i < node.device_count; ++i) {
    HORUS_ASSIGN_OR_RETURN(DeviceSpec device, DeviceAt(catalogue, node, i));
    spec.devices.push_back(device);
    if (node.device_ids == nullptr) continue;
    HORUS_SET_OR_RETURN(spec.device_ids.emplace_back(),
                        ReadOptionalText(node.device_ids[i], Element("device_ids", i).c_str()));
  }
  HORUS_ASSIGN_OR_RETURN(
      spec.labels, LabelsFromC({"label", node.label_count, node.label_keys, node.label_values}, kMaxLabelsPerNode));
  return spec;
}

// ---- Jobs from the C ABI.

static_assert(Same(HORUS_JOB_TRAINING, JobKind::kTraining) && Same(HORUS_JOB_INFERENCE, JobKind::kInference) &&
              Same(HORUS_JOB_BEST_EFFORT, JobKind::kBestEffort));

static_assert(Same(HORUS_SHARE_ANYONE, ShareWith::kAnyone) && Same(HORUS_SHARE_SAME_TENANT, ShareWith::kSameTenant));

// 0 = 1; -1 = none, where that may be.
absl::StatusOr<int32_t> CountFrom(const char* field, int32_t given, int32_t least) {
  if (given >= least && given <= kMaxGpusPerJob) return given == 0 ? 1 : std::max(given, 0);
  return InvalidArgument("%s: expected %s to %d, found %d", field, least == 0 ? "0 (one)" : "-1 (none), 0 (one)",
                         kMaxGpusPerJob, given);
}

absl::StatusOr<std::vector<std::string>> NamesFromC(const char* column, size_t count, const char* const* names) {
  HORUS_RETURN_IF_ERROR(RequireColumn(names, column, count));
  if (count > kMaxGroupsPerJob)
    return InvalidArgument("%s: expected at most %d, found %d", column, kMaxGroupsPerJob, count);
  std::vector<std::string> texts(count);
  for (size_t i = 0; i < count; ++i) HORUS_SET_OR_RETURN(texts[i], ReadText(names[i], Element(column, i).c_str()));
  return texts;
}

absl::Status CheckEnums(const horus_job& job) {
  HORUS_RETURN_IF_ERROR(CheckConstant("kind", "HORUS_JOB_*", HORUS_JOB_TRAINING, HORUS_JOB_BEST_EFFORT, job.kind));
  HORUS_RETURN_IF_ERROR(CheckFlag("exclusive", job.exclusive));
  HORUS_RETURN_IF_ERROR(CheckFlag("spread_tasks", job.spread_tasks));
  if (job.sharing_mode != 0) {
    HORUS_RETURN_IF_ERROR(CheckConstant("sharing_mode", "HORUS_SHARING_TIME_SLICE or _MPS", HORUS_SHARING_TIME_SLICE,
                                        HORUS_SHARING_MPS, job.sharing_mode));
  }
  return CheckConstant("share", "HORUS_SHARE_*", 0, HORUS_SHARE_ANYONE, job.share);
}

// 0 = as the job (holds), -1 = none.
static_assert(JobAlternative::kAsTheJob == JobSpec::kAsHeld);
int64_t HostOf(int64_t given) {
  if (given == 0) return JobAlternative::kAsTheJob;
  return given == -1 ? 0 : given;
}

absl::StatusOr<JobAlternative> AlternativeFromC(const Catalogue& catalogue, const horus_job_alternative* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_job_alternative c, ReadStruct(given));
  HORUS_ASSIGN_OR_RETURN(const int32_t tasks, CountFrom("tasks", c.tasks, 0));
  HORUS_ASSIGN_OR_RETURN(const int32_t gpus, CountFrom("gpus_per_task", c.gpus_per_task, 0));
  JobAlternative way{.tasks = tasks,
                     .gpus_per_task = gpus,
                     .gpu_milli = c.gpu_milli,
                     .cpu_milli = HostOf(c.cpu_milli),
                     .mem_mib = HostOf(c.mem_mib),
                     .storage_mb_s = HostOf(c.storage_mb_s),
                     .rate = c.rate,
                     .demands = {}};
  HORUS_ASSIGN_OR_RETURN(way.demands, TypeDemandsFromC(catalogue, c.demand_count, c.gpu_types, c.demands));
  return way;
}

absl::Status AddAlternatives(const Catalogue& catalogue, const horus_job& job, JobSpec& spec) {
  HORUS_RETURN_IF_ERROR(RequireColumn(job.alternatives, "alternatives", job.alternative_count));
  if (job.alternative_count > kMaxAlternatives)
    return InvalidArgument("alternatives: expected at most %d, found %d", kMaxAlternatives, job.alternative_count);
  const auto read = [&](const horus_job_alternative* way) { return AlternativeFromC(catalogue, way); };
  HORUS_ASSIGN_OR_RETURN(spec.alternatives, ReadEach("alternatives", job.alternative_count, job.alternatives, read));
  return absl::OkStatus();
}

// Where nobody said what a job takes, no neighbour is sure of its own memory.
void MarkUnknownMemory(std::vector<TypeDemand>& demands) {
  for (TypeDemand& entry : demands) {
    if (entry.demand.mem_mib.upper == 0) entry.demand.mem_mib.upper = kUnboundedMemMib;
  }
}

absl::StatusOr<JobSpec> Convert(const Catalogue& catalogue, const horus_job& job) {
  HORUS_RETURN_IF_ERROR(CheckEnums(job));
  JobSpec spec;
  HORUS_COPY_FIELDS(job, spec, id, submit_us, deadline_us)
#define HORUS_COPY(field) spec.field = job.field;
  HORUS_PLAIN_JOB_FIELDS(HORUS_COPY)
#undef HORUS_COPY
  HORUS_ASSIGN_OR_RETURN(spec.name, ReadOptionalText(job.name, "name"));
  HORUS_ASSIGN_OR_RETURN(spec.tenant, ReadOptionalText(job.tenant, "tenant"));
  spec.kind = static_cast<JobKind>(job.kind);
  HORUS_ASSIGN_OR_RETURN(spec.tasks, CountFrom("tasks", job.tasks, 0));
  HORUS_ASSIGN_OR_RETURN(spec.gpus_per_task, CountFrom("gpus_per_task", job.gpus_per_task, HORUS_JOB_NO_GPUS));
  spec.exclusive = job.exclusive == 1;
  spec.mps_chosen = job.sharing_mode == HORUS_SHARING_MPS;
  spec.stated_cpu_milli = HostOf(job.stated_cpu_milli);
  spec.stated_mem_mib = HostOf(job.stated_mem_mib);
  if (job.weight != 0) spec.weight = job.weight;
  if (job.share != 0) spec.share = static_cast<ShareWith>(job.share);
  spec.spread_tasks = job.spread_tasks == 1;
  HORUS_ASSIGN_OR_RETURN(spec.groups, NamesFromC("groups", job.group_count, job.groups));
  HORUS_ASSIGN_OR_RETURN(spec.avoid_groups, NamesFromC("avoid_groups", job.avoid_count, job.avoid_groups));
  HORUS_RETURN_IF_ERROR(AddAlternatives(catalogue, job, spec));
  HORUS_ASSIGN_OR_RETURN(spec.sensitivity, SensitivityFromC(job.sensitivity));
  if ((spec.gpus_per_task > 0 && job.alternative_count == 0) || job.demand_count > 0)
    HORUS_SET_OR_RETURN(spec.demands, TypeDemandsFromC(catalogue, job.demand_count, job.gpu_types, job.demands));
  HORUS_ASSIGN_OR_RETURN(
      spec.node_selector,
      LabelsFromC({"selector", job.selector_count, job.selector_keys, job.selector_values}, kMaxSelectorsPerJob));
  if (!spec.exclusive && spec.gpu_milli == 0) {  // who states a share of a GPU has divided it
    MarkUnknownMemory(spec.demands);
    for (JobAlternative& way : spec.alternatives) MarkUnknownMemory(way.demands);
  }
  NormalizeJob(spec);
  return spec;
}

// 0 = as the job (holds), -1 = none.
int64_t HostToC(int64_t value) {
  if (value == JobSpec::kAsHeld) return 0;
  return value == 0 ? -1 : value;
}

// Lays values out one behind the other; without memory it only counts.
class Packing {
 public:
  static constexpr size_t kAlign = alignof(std::max_align_t);
  explicit Packing(void* bytes) {
    if (bytes == nullptr) return;
    const size_t past = reinterpret_cast<uintptr_t>(bytes) % kAlign;
    at_ = static_cast<char*>(bytes) + (past == 0 ? 0 : kAlign - past);
  }
  // With what the start may be moved by.
  [[nodiscard]] size_t bytes() const { return used_ + kAlign - 1; }

  template <typename T>
  T* Rows(size_t count) {
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);  // Bounded: at most alignof(T) - 1 more.
    T* rows = at_ == nullptr ? nullptr : reinterpret_cast<T*>(at_ + used_);
    used_ += count * sizeof(T);  // Bounded: a copy of values that are in memory.
    return rows;
  }
  template <typename T>
  const T* Row(const T& value) {
    T* row = Rows<T>(1);
    return row == nullptr ? nullptr : new (row) T(value);
  }
  // Of what `make` makes of each.
  auto Column(const auto& from, const auto& make) {
    using T = decltype(make(from[0]));
    T* rows = Rows<T>(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      const T value = make(from[i]);  // may lay out more
      if (rows != nullptr) new (rows + i) T(value);
    }
    return from.empty() ? static_cast<T*>(nullptr) : rows;
  }
  const char* Text(const std::string& text) {
    char* copy = Rows<char>(text.size() + 1);
    if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
  }
  const char* TextOrNull(const std::string& text) { return text.empty() ? nullptr : Text(text); }
  const char* const* Texts(const std::vector<std::string>& texts) {
    return Column(texts, [&](const std::string& text) { return Text(text); });
  }

 private:
  char* at_ = nullptr;
  size_t used_ = 0;
};

// demand_count, gpu_types and demands of a job or of one way to run it.
void PutDemands(const Catalogue& catalogue, const std::vector<TypeDemand>& demands, Packing& layout, auto& c) {
  c.demand_count = demands.size();
  c.gpu_types = layout.Column(demands, [&](const TypeDemand& one) {
    return one.type.valid() ? layout.Text(catalogue.at(one.type).name) : nullptr;
  });
  c.demands = layout.Column(demands, [&](const TypeDemand& one) { return layout.Row(DemandToC(one.demand)); });
}

const horus_job_alternative* PutWay(const Catalogue& catalogue, const JobAlternative& way, Packing& layout) {
  horus_job_alternative c = HORUS_JOB_ALTERNATIVE_INIT;
  HORUS_COPY_FIELDS(way, c, tasks, gpus_per_task, gpu_milli, rate)
  c.cpu_milli = HostToC(way.cpu_milli);
  c.mem_mib = HostToC(way.mem_mib);
  c.storage_mb_s = HostToC(way.storage_mb_s);
  PutDemands(catalogue, way.demands, layout, c);
  return layout.Row(c);
}

const horus_sensitivity* PutSensitivity(const Sensitivity* matrix, Packing& layout) {
  if (matrix == nullptr) return nullptr;
  const auto same = [](auto value) { return value; };
  horus_sensitivity c = HORUS_SENSITIVITY_INIT;
  c.cpu_count = matrix->cpu_milli().size();
  c.cpu_milli = layout.Column(matrix->cpu_milli(), same);
  c.mem_count = matrix->mem_mib().size();
  c.mem_mib = layout.Column(matrix->mem_mib(), same);
  c.speeds = layout.Column(matrix->speeds(), same);
  c.host_us = matrix->host_us();
  return layout.Row(c);
}

const horus_job* PutJob(const Catalogue& catalogue, const JobSpec& job, Packing& layout) {
  horus_job c = HORUS_JOB_INIT;
  HORUS_COPY_FIELDS(job, c, kind, id, tasks, exclusive, submit_us, deadline_us, share, spread_tasks, weight)
#define HORUS_COPY(field) c.field = job.field;
  HORUS_PLAIN_JOB_FIELDS(HORUS_COPY)
#undef HORUS_COPY
  c.name = layout.TextOrNull(job.name);
  c.gpus_per_task = IsCpuOnly(job) ? HORUS_JOB_NO_GPUS : job.gpus_per_task;
  c.sharing_mode = job.mps_chosen ? HORUS_SHARING_MPS : 0;
  c.tenant = layout.TextOrNull(job.tenant);
  c.stated_cpu_milli = HostToC(job.stated_cpu_milli);
  c.stated_mem_mib = HostToC(job.stated_mem_mib);
  PutDemands(catalogue, job.demands, layout, c);
  c.selector_count = job.node_selector.size();
  c.selector_keys = layout.Column(job.node_selector, [&](const auto& label) { return layout.Text(label.first); });
  c.selector_values = layout.Column(job.node_selector, [&](const auto& label) { return layout.Text(label.second); });
  c.group_count = job.groups.size();
  c.groups = layout.Texts(job.groups);
  c.avoid_count = job.avoid_groups.size();
  c.avoid_groups = layout.Texts(job.avoid_groups);
  c.alternative_count = job.alternatives.size();
  c.alternatives =
      layout.Column(job.alternatives, [&](const JobAlternative& way) { return PutWay(catalogue, way, layout); });
  c.sensitivity = PutSensitivity(job.sensitivity.get(), layout);
  return layout.Row(c);
}

}  // namespace

absl::StatusOr<Demand> DemandFromC(const horus_demand* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_demand c, ReadStruct(given));
  if ((c.flags & ~kKnownFlags) != 0)
    return InvalidArgument("demand.flags: expected a sum of HORUS_DEMAND_*, found %#x", c.flags);
  Demand demand;
#define HORUS_COPY(field) demand.field = c.field;
  HORUS_PLAIN_DEMAND_FIELDS(HORUS_COPY)
#undef HORUS_COPY
#define HORUS_COPY(field) demand.field = MakePair<decltype(demand.field)>(c.field, c.field##_upper);
  HORUS_BOUNDED_DEMAND_FIELDS(HORUS_COPY)
#undef HORUS_COPY
  demand.duty = c.duty == 0 ? 1 : c.duty;
  std::copy(std::begin(c.traits), std::end(c.traits), demand.traits.begin());
  HORUS_RETURN_IF_ERROR(ValidateDemand(demand));
  return demand;
}

horus_demand DemandToC(const Demand& demand) {
  horus_demand c = HORUS_DEMAND_INIT;
#define HORUS_COPY(field) c.field = demand.field;
  HORUS_PLAIN_DEMAND_FIELDS(HORUS_COPY)
#undef HORUS_COPY
#define HORUS_COPY(field)          \
  c.field = demand.field.estimate; \
  c.field##_upper = demand.field.upper;
  HORUS_BOUNDED_DEMAND_FIELDS(HORUS_COPY)
#undef HORUS_COPY
  c.duty = demand.duty == 1 ? 0 : demand.duty;
  std::copy(demand.traits.begin(), demand.traits.end(), c.traits);
  return c;
}

absl::StatusOr<std::vector<Demand>> DemandsFromC(size_t count, const horus_demand* const* demands) {
  HORUS_RETURN_IF_ERROR(RequireColumn(demands, "demands", count));
  return ReadEach("demands", count, demands, DemandFromC);
}

absl::StatusOr<std::vector<TypeDemand>> TypeDemandsFromC(const Catalogue& catalogue, size_t count,
                                                         const char* const* gpu_types,
                                                         const horus_demand* const* demands) {
  if (count == 0 || count > kMaxDemandsPerJob)
    return InvalidArgument("demands: expected 1 to %d, found %d", kMaxDemandsPerJob, count);
  HORUS_ASSIGN_OR_RETURN(const std::vector<Demand> values, DemandsFromC(count, demands));
  std::vector<TypeDemand> result(count);
  for (size_t i = 0; i < count; ++i) {
    result[i].demand = values[i];
    if (gpu_types == nullptr || gpu_types[i] == nullptr) continue;
    const absl::StatusOr<GpuTypeId> type = catalogue.Find(gpu_types[i]);
    if (!type.ok()) return At(Element("gpu_types", i), type.status());
    result[i].type = *type;
    for (size_t before = 0; before < i; ++before) {
      if (result[before].type != *type) continue;
      return InvalidArgument("%s: expected each GPU type once, found %s (%s) again", Element("gpu_types", i),
                             Quoted(gpu_types[i]), catalogue.at(*type).name);
    }
  }
  return result;
}

absl::StatusOr<NodeSpec> NodeFromC(const Catalogue& catalogue, const horus_node* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_node node, ReadStruct(given));
  return At(Formatted("node %d", node.id), Convert(catalogue, node));
}

absl::StatusOr<AdminState> StateFromC(int32_t state) {
  HORUS_RETURN_IF_ERROR(CheckConstant("state", "HORUS_STATE_*", HORUS_STATE_UP, HORUS_STATE_DOWN, state));
  return static_cast<AdminState>(state);
}

absl::StatusOr<SharedSensitivity> SensitivityFromC(const horus_sensitivity* given) {
  if (given == nullptr) return SharedSensitivity();
  HORUS_ASSIGN_OR_RETURN(const horus_sensitivity c, ReadStruct(given));
  for (const auto& [name, count] : {std::pair("cpu_count", c.cpu_count), std::pair("mem_count", c.mem_count)}) {
    if (count < 1 || count > kMaxSensitivityPoints)
      return InvalidArgument("sensitivity: %s: expected 1 to %d, found %d", name, kMaxSensitivityPoints, count);
  }
  HORUS_RETURN_IF_ERROR(RequireColumn(c.cpu_milli, "sensitivity: cpu_milli", c.cpu_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.mem_mib, "sensitivity: mem_mib", c.mem_count));
  // Bounded: both are at most kMaxSensitivityPoints, checked above.
  HORUS_RETURN_IF_ERROR(RequireColumn(c.speeds, "sensitivity: speeds", c.cpu_count * c.mem_count));
  // Bounded: both are at most kMaxSensitivityPoints, checked above.
  HORUS_ASSIGN_OR_RETURN(Sensitivity matrix, Sensitivity::Create({c.cpu_milli, c.cpu_milli + c.cpu_count},
                                                                 {c.mem_mib, c.mem_mib + c.mem_count},
                                                                 {c.speeds, c.cpu_count * c.mem_count}, c.host_us));
  return SharedSensitivity(std::move(matrix));
}

absl::StatusOr<JobSpec> JobFromC(const Catalogue& catalogue, const horus_job* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_job job, ReadStruct(given));
  absl::StatusOr<JobSpec> spec = Convert(catalogue, job);
  if (!spec.ok()) return At(Formatted("job %d", job.id), spec.status());
  return spec;
}

absl::StatusOr<std::vector<JobSpec>> JobsFromC(const Catalogue& catalogue, size_t count, const horus_job* const* jobs,
                                               uint64_t max_jobs) {
  HORUS_RETURN_IF_ERROR(RequireColumn(jobs, "jobs", count));
  if (count > max_jobs)
    return ResourceExhausted("job_count: expected at most %d (max_jobs), found %d", max_jobs, count);
  return ReadEach("jobs", count, jobs, [&](const horus_job* job) { return JobFromC(catalogue, job); });
}

size_t JobBytes(const Catalogue& catalogue, const JobSpec& job) {
  Packing layout(nullptr);
  PutJob(catalogue, job, layout);
  return layout.bytes();
}

const horus_job* PutJob(const Catalogue& catalogue, const JobSpec& job, void* bytes) {
  Packing layout(bytes);
  return PutJob(catalogue, job, layout);
}

}  // namespace horus::capi
