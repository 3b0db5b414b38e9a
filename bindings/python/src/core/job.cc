// SPDX-License-Identifier: Apache-2.0
// Jobs and their alternatives; see values.h.
#include "record.h"
#include "values.h"

namespace horus_python {

const Word kKinds[] = {{HORUS_JOB_TRAINING, "training"},
                       {HORUS_JOB_INFERENCE, "inference"},
                       {HORUS_JOB_BEST_EFFORT, "best-effort"},
                       {0, nullptr}};
const Word kShares[] = {{HORUS_SHARE_SAME_TENANT, "same-tenant"}, {HORUS_SHARE_ANYONE, "anyone"}, {0, nullptr}};

namespace {

// "any" stands for every GPU type, as in jobs.yaml; the C++ face leaves it empty.
void Rename(horus::Job& job, const std::string& from, const std::string& to) {
  const auto rename = [&](horus::Demands& demands) {
    for (auto& [type, demand] : demands) {
      if (type == from) type = to;
    }
  };
  rename(job.demands);
  for (Alternative& way : job.alternatives) rename(way.demands);
}

}  // namespace

class CJob {
 public:
  explicit CJob(horus::Job job) : job_(std::move(job)), columns_(job_) {}
  [[nodiscard]] const horus_job* get() const { return columns_.get(); }

 private:
  horus::Job job_;
  horus::detail::CJob columns_;
};

const horus_job* Job::get() const {
  if (c_) return c_->get();
  horus::Job job = *this;
  Rename(job, "any", "");
  if (!job.alternatives.empty()) job.tasks = job.gpus_per_task = 0;  // as those say
  c_ = std::make_shared<const CJob>(std::move(job));
  return c_->get();
}

py::tuple JobsOf(std::vector<horus::Job> jobs) {
  py::tuple out(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    Rename(jobs[i], "", "any");
    out[i] = py::cast(Job(std::move(jobs[i])));
  }
  return out;
}

py::tuple JobsOf(const JobList& list) {
  std::vector<horus::Job> jobs(horus_job_list_count(list.get()));
  for (size_t i = 0; i < jobs.size(); ++i) {
    horus_job c = HORUS_JOB_INIT;
    Run([&](horus_error* error) { return horus_job_list_get(list.get(), i, &c, error); });
    jobs[i] = horus::JobFrom(c);
  }
  return JobsOf(std::move(jobs));
}

std::vector<const horus_job*> JobPointers(const py::tuple& jobs, const char* what) {
  std::vector<const horus_job*> pointers;
  for (const Job* job : PointersOf<Job>(jobs, what)) pointers.push_back(job->get());
  return pointers;
}

void BindJob(py::module_& m) {
  Record<Sensitivity>(m, "Sensitivity",
                      "How fast a job runs with so many cores and so much host memory per GPU, for synergy policies.")
      .Field("cpu_milli", &Sensitivity::cpu_milli, "axis: thousandths of a core per GPU, ascending")
      .Field("mem_mib", &Sensitivity::mem_mib, "axis: host memory per GPU in MiB, ascending")
      .Field("speeds", &Sensitivity::speeds, "row-major [cpu x mem]; 0 or NaN = not measured")
      .Field("host_us", &Sensitivity::host_us,
             "above 0: speeds of the input pipeline alone, which makes a step's input in this time at speed 1");
  Record<Alternative>(m, "Alternative", "One way of running a job, of which the placer picks the one worth most.")
      .Field("tasks", &Alternative::tasks, "processes placed together")
      .Field("gpus_per_task", &Alternative::gpus_per_task, "on one node")
      .Field("gpu_milli", &Alternative::gpu_milli, "as that of Job")
      .Field("rate", &Alternative::rate, "progress per second alone, in any unit that all ways share")
      .Field("demands", &Alternative::demands, "demand per GPU by GPU type")
      .Field("cpu_milli", &Alternative::cpu_milli, "per task; 0 = what the job states, -1 = none")
      .Field("mem_mib", &Alternative::mem_mib, "per task; likewise")
      .Field("storage_mb_s", &Alternative::storage_mb_s, "per task; likewise");
  Record<Job>(m, "Job",
              "One job: tasks placed together, all or nothing, each on GPUs of one node. Host resources are per task.")
      .Field("id", &Job::id, "the caller's; unique among placed jobs")
      .Field("name", &Job::name, "for people")
      .Field("tenant", &Job::tenant, "its owner")
      .OneOf("kind", &Job::kind, kKinds, "of job")
      .Field("tasks", &Job::tasks, "processes placed together (a gang)")
      .Within(0, kNoMost)
      .Field("gpus_per_task", &Job::gpus_per_task, "on one node; -1 = the host alone")
      .Within(-1, kNoMost)
      .Field("gpu_milli", &Job::gpu_milli, "per GPU: 0 = shares as its demand allows; else a hard request of 1-1000")
      .Within(0, 1000)
      .Field("exclusive", &Job::exclusive, "alone on its devices")
      .Field("priority", &Job::priority, "higher first")
      .Field("slowdown_bound", &Job::slowdown_bound, "what its slowdown is promised to stay within; 0 = the placer's")
      .Within(0, kNoMost)
      .Field("slowdown_confidence", &Job::slowdown_confidence,
             "probability with which that, or its latency, is to hold, 0.5 to 0.999; 0 = the model's: 0.9")
      .Within(0, 0.999)
      .Field("weight", &Job::weight, "what its useful work counts beside that of others")
      .Within(0, kNoMost)
      .Field("cpu_milli", &Job::cpu_milli, "thousandths of a core")
      .Within(0, kNoMost)
      .Field("mem_mib", &Job::mem_mib, "host memory in MiB")
      .Within(0, kNoMost)
      .Field("storage_mb_s", &Job::storage_mb_s, "storage bandwidth")
      .Within(0, kNoMost)
      .Field("submit_us", &Job::submit_us, "on the caller's clock, in microseconds")
      .Field("deadline_us", &Job::deadline_us, "0 = none")
      .Within(0, kNoMost)
      .Field("request_rate_hz", &Job::request_rate_hz, "of inference: requests that come")
      .Within(0, kNoMost)
      .Field("latency_bound_us", &Job::latency_bound_us,
             "of inference: most that 99 % of the requests may take; 0 = none")
      .Within(0, kNoMost)
      .Field("gpu_mem_request_mib", &Job::gpu_mem_request_mib,
             "device memory that is guaranteed; 0 = the demand's bound")
      .Within(0, kNoMost)
      .Field("gpu_mem_limit_mib", &Job::gpu_mem_limit_mib, "most that it may ever hold; 0 = what it requests")
      .Within(0, kNoMost)
      .Field("sm_cap_pct", &Job::sm_cap_pct, "most of a GPU's SMs that it may use under MPS, 1-99; 0 = no cap")
      .Within(0, 99)
      .OneOf("sharing_mode", &Job::sharing_mode, kSharingModes,
             "adopted on time-slice-or-mps: in which it runs; default = mps with a cap, else time-slice")
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
