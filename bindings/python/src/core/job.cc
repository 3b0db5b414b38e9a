// SPDX-License-Identifier: Apache-2.0
// Jobs and their alternatives; see values.h.
#include <limits>

#include "record.h"
#include "values.h"

namespace horus_python {

const Word kKinds[] = {{HORUS_JOB_TRAINING, "training"},
                       {HORUS_JOB_INFERENCE, "inference"},
                       {HORUS_JOB_BEST_EFFORT, "best-effort"},
                       {0, nullptr}};
const Word kShares[] = {{HORUS_SHARE_SAME_TENANT, "same-tenant"}, {HORUS_SHARE_ANYONE, "anyone"}, {0, nullptr}};

namespace {

// "any" stands for every GPU type, as in jobs.yaml.
std::vector<std::pair<std::string, horus::Demand>> FaceDemands(const Demands& demands) {
  std::vector<std::pair<std::string, horus::Demand>> face;
  for (const auto& [type, demand] : demands) {
    face.emplace_back(type == "any" ? "" : type, horus::Demand());
    static_cast<horus_demand&>(face.back().second) = demand;
  }
  return face;
}

Demands DemandsFromC(size_t count, const char* const* types, const horus_demand* const* demands) {
  Demands made;
  for (size_t i = 0; i < count; ++i) made.emplace_back(types[i] == nullptr ? "any" : types[i], Demand(*demands[i]));
  return made;
}

horus::Job FaceOf(const Job& job) {
  horus::Job face;
  face.id = job.id;
  face.name = job.name;
  face.tenant = job.tenant;
  face.kind = job.kind;
  face.tasks = job.alternatives.empty() ? job.tasks : 0;
  face.gpus_per_task = job.alternatives.empty() ? job.gpus_per_task : 0;
  face.gpu_milli = job.gpu_milli;
  face.exclusive = job.exclusive;
  face.priority = job.priority;
  face.slowdown_bound = job.slowdown_bound;
  face.slowdown_confidence = job.slowdown_confidence;
  face.weight = job.weight;
  face.cpu_milli = job.cpu_milli;
  face.mem_mib = job.mem_mib;
  face.storage_mb_s = job.storage_mb_s;
  face.submit_us = job.submit_us;
  face.gpu_mem_request_mib = job.gpu_mem_request_mib;
  face.gpu_mem_limit_mib = job.gpu_mem_limit_mib;
  face.deadline_us = job.deadline_us;
  face.request_rate_hz = job.request_rate_hz;
  face.latency_bound_us = job.latency_bound_us;
  face.share = job.share;
  face.spread_tasks = job.spread_tasks;
  face.groups = job.groups;
  face.avoid_groups = job.avoid_groups;
  face.demands = FaceDemands(job.demands);
  face.selectors = job.selectors;
  for (const Alternative& way : job.alternatives) {
    face.alternatives.push_back({way.tasks, way.gpus_per_task, way.gpu_milli, way.rate, FaceDemands(way.demands)});
  }
  face.stated_cpu_milli = job.stated_cpu_milli;
  face.stated_mem_mib = job.stated_mem_mib;
  return face;
}

}  // namespace

// The columns of a job and what the C++ face does not carry: host resources of alternatives, sensitivity.
class CJob {
 public:
  explicit CJob(const Job& job)
      : face_(FaceOf(job)), columns_(face_), sensitivity_(job.sensitivity), c_(*columns_.get()) {
    if (sensitivity_) {
      csensitivity_ = ToC(*sensitivity_, "Job.sensitivity");
      c_.sensitivity = &csensitivity_;
    }
    for (size_t i = 0; i < job.alternatives.size(); ++i) {
      const Alternative& way = job.alternatives[i];
      ways_.push_back(*c_.alternatives[i]);
      ways_.back().cpu_milli = way.cpu_milli;
      ways_.back().mem_mib = way.mem_mib;
      ways_.back().storage_mb_s = way.storage_mb_s;
    }
    for (const horus_job_alternative& way : ways_) pointers_.push_back(&way);
    if (!pointers_.empty()) c_.alternatives = pointers_.data();
  }
  CJob(const CJob&) = delete;
  CJob& operator=(const CJob&) = delete;
  [[nodiscard]] const horus_job* get() const { return &c_; }

 private:
  horus::Job face_;
  horus::detail::CJob columns_;
  std::optional<Sensitivity> sensitivity_;
  horus_sensitivity csensitivity_ = HORUS_SENSITIVITY_INIT;
  std::vector<horus_job_alternative> ways_;
  std::vector<const horus_job_alternative*> pointers_;
  horus_job c_;
};

const horus_job* Job::get() const {
  if (!c_) c_ = std::make_shared<const CJob>(*this);
  return c_->get();
}

horus_sensitivity ToC(const Sensitivity& sensitivity, const std::string& what) {
  const size_t cells = sensitivity.cpu_milli.size() * sensitivity.mem_mib.size();
  if (sensitivity.speeds.size() != cells) {
    Refuse(what + ".speeds", std::to_string(cells) + " values (cores x memory)",
           std::to_string(sensitivity.speeds.size()));
  }
  return {sizeof(horus_sensitivity),    0,
          sensitivity.cpu_milli.size(), sensitivity.cpu_milli.data(),
          sensitivity.mem_mib.size(),   sensitivity.mem_mib.data(),
          sensitivity.speeds.data()};
}

Job JobFromC(const horus_job& c) {
  const auto text = [](const char* given) { return std::string(given == nullptr ? "" : given); };
  Job job;
  job.id = c.id;
  job.name = text(c.name);
  job.tenant = text(c.tenant);
  job.kind = c.kind;
  job.tasks = c.tasks;
  job.gpus_per_task = c.gpus_per_task;
  job.gpu_milli = c.gpu_milli;
  job.exclusive = c.exclusive == 1;
  job.priority = c.priority;
  job.slowdown_bound = c.slowdown_bound;
  job.slowdown_confidence = c.slowdown_confidence;
  job.weight = c.weight;
  job.cpu_milli = c.cpu_milli;
  job.mem_mib = c.mem_mib;
  job.storage_mb_s = c.storage_mb_s;
  job.submit_us = c.submit_us;
  job.deadline_us = c.deadline_us;
  job.request_rate_hz = c.request_rate_hz;
  job.latency_bound_us = c.latency_bound_us;
  job.gpu_mem_request_mib = c.gpu_mem_request_mib;
  job.gpu_mem_limit_mib = c.gpu_mem_limit_mib;
  job.share = c.share;
  job.spread_tasks = c.spread_tasks == 1;
  job.groups.assign(c.groups, c.groups + c.group_count);
  job.avoid_groups.assign(c.avoid_groups, c.avoid_groups + c.avoid_count);
  job.demands = DemandsFromC(c.demand_count, c.gpu_types, c.demands);
  for (size_t i = 0; i < c.selector_count; ++i) job.selectors.emplace_back(c.selector_keys[i], c.selector_values[i]);
  for (size_t i = 0; i < c.alternative_count; ++i) {
    const horus_job_alternative& way = *c.alternatives[i];
    job.alternatives.push_back({way.tasks, way.gpus_per_task, way.gpu_milli, way.rate,
                                DemandsFromC(way.demand_count, way.gpu_types, way.demands), way.cpu_milli, way.mem_mib,
                                way.storage_mb_s});
  }
  if (const horus_sensitivity* s = c.sensitivity) {
    job.sensitivity = Sensitivity{{s->cpu_milli, s->cpu_milli + s->cpu_count},
                                  {s->mem_mib, s->mem_mib + s->mem_count},
                                  {s->speeds, s->speeds + s->cpu_count * s->mem_count}};
  }
  job.stated_cpu_milli = c.stated_cpu_milli;
  job.stated_mem_mib = c.stated_mem_mib;
  return job;
}

py::tuple JobsOf(const JobList& list) {
  py::tuple jobs(horus_job_list_count(list.get()));
  for (size_t i = 0; i < jobs.size(); ++i) {
    horus_job c = HORUS_JOB_INIT;
    Run([&](horus_error* error) { return horus_job_list_get(list.get(), i, &c, error); });
    jobs[i] = py::cast(JobFromC(c));
  }
  return jobs;
}

std::vector<const horus_job*> JobPointers(const py::tuple& jobs, const char* what) {
  std::vector<const horus_job*> pointers;
  for (const Job* job : PointersOf<Job>(jobs, what)) pointers.push_back(job->get());
  return pointers;
}

void BindJob(py::module_& m) {
  Record<Sensitivity>(m,
                      "How fast a job runs with so many cores and so much host memory per GPU, for synergy policies.")
      .Field("cpu_milli", &Sensitivity::cpu_milli, "axis: thousandths of a core per GPU, ascending")
      .Field("mem_mib", &Sensitivity::mem_mib, "axis: host memory per GPU in MiB, ascending")
      .Field("speeds", &Sensitivity::speeds, "row-major [cpu x mem]; 0 or NaN = not measured");
  Record<Alternative>(m, "One way of running a job, of which the placer picks the one worth most.")
      .Field("tasks", &Alternative::tasks, "processes placed together")
      .Field("gpus_per_task", &Alternative::gpus_per_task, "on one node")
      .Field("gpu_milli", &Alternative::gpu_milli, "as that of Job")
      .Field("rate", &Alternative::rate, "progress per second alone, in any unit that all ways share")
      .Field("demands", &Alternative::demands, "demand per GPU by GPU type")
      .Field("cpu_milli", &Alternative::cpu_milli, "per task; 0 = what the job states, -1 = none")
      .Field("mem_mib", &Alternative::mem_mib, "per task; likewise")
      .Field("storage_mb_s", &Alternative::storage_mb_s, "per task; likewise");
  Record<Job>(m,
              "One job: tasks placed together, all or nothing, each on GPUs of one node. Host resources are per task.")
      .Field("id", &Job::id, "the caller's; unique among placed jobs")
      .Field("name", &Job::name, "for people")
      .Field("tenant", &Job::tenant, "its owner")
      .OneOf("kind", &Job::kind, kKinds, "of job")
      .Field("tasks", &Job::tasks, "processes placed together (a gang)")
      .Field("gpus_per_task", &Job::gpus_per_task, "on one node; -1 = the host alone")
      .Field("gpu_milli", &Job::gpu_milli, "per GPU: 0 = shares as its demand allows; else a hard request of 1-1000")
      .Field("exclusive", &Job::exclusive, "alone on its devices")
      .Field("priority", &Job::priority, "higher first")
      .Field("slowdown_bound", &Job::slowdown_bound, "what its slowdown is promised to stay within; 0 = the placer's")
      .Field("slowdown_confidence", &Job::slowdown_confidence,
             "probability with which that, or its latency, is to hold, 0.5 to 0.999; 0 = the model's: 0.9")
      .Field("weight", &Job::weight, "what its useful work counts beside that of others")
      .Field("cpu_milli", &Job::cpu_milli, "thousandths of a core")
      .Field("mem_mib", &Job::mem_mib, "host memory in MiB")
      .Field("storage_mb_s", &Job::storage_mb_s, "storage bandwidth")
      .Field("submit_us", &Job::submit_us, "on the caller's clock, in microseconds")
      .Field("deadline_us", &Job::deadline_us, "0 = none")
      .Field("request_rate_hz", &Job::request_rate_hz, "of inference: requests that come")
      .Field("latency_bound_us", &Job::latency_bound_us,
             "of inference: most that 99 % of the requests may take; 0 = none")
      .Field("gpu_mem_request_mib", &Job::gpu_mem_request_mib,
             "device memory that is guaranteed; 0 = the demand's bound")
      .Field("gpu_mem_limit_mib", &Job::gpu_mem_limit_mib, "most that it may ever hold; 0 = what it requests")
      .OneOf("share", &Job::share, kShares, "with whose jobs it shares devices")
      .Field("spread_tasks", &Job::spread_tasks, "at most one of its tasks a node")
      .Field("groups", &Job::groups, "that it belongs to")
      .Field("avoid_groups", &Job::avoid_groups, "that it shares no node with")
      .Field("demands", &Job::demands, "demand per GPU by GPU type; 'any' = every type")
      .Field("selectors", &Job::selectors, "node labels that must be present")
      .Field("alternatives", &Job::alternatives, "ways to run it; then no tasks, GPUs and demands of its own")
      .Field("sensitivity", &Job::sensitivity, "to cores and host memory")
      .Field("stated_cpu_milli", &Job::stated_cpu_milli, "what it asked for where it holds more; -1 = nothing")
      .Field("stated_mem_mib", &Job::stated_mem_mib, "likewise");
}

}  // namespace horus_python
