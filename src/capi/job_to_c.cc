// SPDX-License-Identifier: Apache-2.0
// Field by field, as job_convert.cc reads them; see job_to_c.h.
#include "capi/job_to_c.h"

#include "capi/demand_convert.h"

namespace horus::capi {
namespace {

// 0 = as the job (holds), -1 = none.
int64_t HostToC(int64_t value) {
  if (value == JobSpec::kAsHeld) return 0;
  return value == 0 ? -1 : value;
}

const char* TextOrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

JobToC::Demands JobToC::DemandsOf(const Catalogue& catalogue, const std::vector<TypeDemand>& given) {
  Demands made;
  for (const TypeDemand& one : given) {
    made.values.push_back(DemandToC(one.demand));
    made.types.push_back(one.type.valid() ? catalogue.types()[one.type.value()].name.c_str() : nullptr);
  }
  for (const horus_demand& value : made.values) made.pointers.push_back(&value);
  return made;
}

JobToC::Names JobToC::NamesOf(const std::vector<std::string>& given) {
  Names made;
  for (const std::string& name : given) made.pointers.push_back(name.c_str());
  return made;
}

void JobToC::SetFields(const JobSpec& job) {
  c_.kind = static_cast<int32_t>(job.kind);
  c_.id = job.id;
  c_.name = TextOrNull(job.name);
  c_.tasks = job.tasks;
  c_.gpus_per_task = IsCpuOnly(job) ? HORUS_JOB_NO_GPUS : job.gpus_per_task;
  c_.gpu_milli = job.gpu_milli;
  c_.exclusive = job.exclusive ? 1 : 0;
  c_.priority = job.priority;
  c_.slowdown_bound = job.slowdown_bound;
  c_.slowdown_confidence = job.slowdown_confidence;
  c_.cpu_milli = job.cpu_milli;
  c_.mem_mib = job.mem_mib;
  c_.storage_mb_s = job.storage_mb_s;
  c_.submit_us = job.submit_us;
  c_.deadline_us = job.deadline_us;
  c_.request_rate_hz = job.request_rate_hz;
  c_.latency_bound_us = job.latency_bound_us;
  c_.tenant = TextOrNull(job.tenant);
  c_.gpu_mem_request_mib = job.gpu_mem_request_mib;
  c_.gpu_mem_limit_mib = job.gpu_mem_limit_mib;
  c_.share = static_cast<int32_t>(job.share);
  c_.spread_tasks = job.spread_tasks ? 1 : 0;
  c_.stated_cpu_milli = HostToC(job.stated_cpu_milli);
  c_.stated_mem_mib = HostToC(job.stated_mem_mib);
  c_.weight = job.weight;
}

void JobToC::SetWays(const Catalogue& catalogue, const JobSpec& job) {
  for (const JobAlternative& way : job.alternatives) way_demands_.push_back(DemandsOf(catalogue, way.demands));
  for (size_t i = 0; i < job.alternatives.size(); ++i) {
    const JobAlternative& way = job.alternatives[i];
    horus_job_alternative c = HORUS_JOB_ALTERNATIVE_INIT;
    c.tasks = way.tasks;
    c.gpus_per_task = way.gpus_per_task;
    c.gpu_milli = way.gpu_milli;
    c.demand_count = way_demands_[i].values.size();
    c.gpu_types = way_demands_[i].types.data();
    c.demands = way_demands_[i].pointers.data();
    c.rate = way.rate;
    c.cpu_milli = HostToC(way.cpu_milli);
    c.mem_mib = HostToC(way.mem_mib);
    c.storage_mb_s = HostToC(way.storage_mb_s);
    ways_.push_back(c);
  }
  for (const horus_job_alternative& way : ways_) way_pointers_.push_back(&way);
  c_.alternative_count = ways_.size();
  c_.alternatives = way_pointers_.data();
}

JobToC::JobToC(const Catalogue& catalogue, const JobSpec& job)
    : demands_(DemandsOf(catalogue, job.demands)),
      groups_(NamesOf(job.groups)),
      avoid_groups_(NamesOf(job.avoid_groups)) {
  SetFields(job);
  for (const auto& [key, value] : job.node_selector) {
    selector_keys_.pointers.push_back(key.c_str());
    selector_values_.pointers.push_back(value.c_str());
  }
  c_.demand_count = demands_.values.size();
  c_.gpu_types = demands_.types.data();
  c_.demands = demands_.pointers.data();
  c_.selector_count = selector_keys_.pointers.size();
  c_.selector_keys = selector_keys_.pointers.data();
  c_.selector_values = selector_values_.pointers.data();
  c_.group_count = groups_.pointers.size();
  c_.groups = groups_.pointers.data();
  c_.avoid_count = avoid_groups_.pointers.size();
  c_.avoid_groups = avoid_groups_.pointers.data();
  SetWays(catalogue, job);
  const Sensitivity* matrix = job.sensitivity.get();
  if (matrix == nullptr) return;
  sensitivity_.cpu_count = matrix->cpu_milli().size();
  sensitivity_.cpu_milli = matrix->cpu_milli().data();
  sensitivity_.mem_count = matrix->mem_mib().size();
  sensitivity_.mem_mib = matrix->mem_mib().data();
  sensitivity_.speeds = matrix->speeds().data();
  c_.sensitivity = &sensitivity_;
}

uint64_t JobToC::bytes_held() const {
  constexpr uint64_t kPerDemand = sizeof(horus_demand) + sizeof(void*) + sizeof(char*);
  uint64_t demands = demands_.values.size();
  for (const Demands& way : way_demands_) demands += way.values.size();
  // Bounded: demands are in memory, which is smaller than what is told of each.
  return sizeof *this + demands * kPerDemand + ways_.size() * (sizeof(horus_job_alternative) + sizeof(Demands));
}

}  // namespace horus::capi
