// SPDX-License-Identifier: Apache-2.0
// Owning values for trace.h, and their conversion to and from its columns. Included by sim_values.hpp.
#ifndef HORUS_LAB_TRACE_VALUES_HPP_
#define HORUS_LAB_TRACE_VALUES_HPP_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "horus/lab/trace.h"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

struct TraceJob {
  uint64_t id = 0;
  int64_t submit_us = 0;
  int64_t duration_us = 0;  // state this or steps, unless the job is endless
  int64_t steps = 0;
  bool endless = false;
  int64_t deadline_us = 0;
  int32_t tasks = 1, gpus_per_task = 1, gpu_milli = 0;
  int64_t cpu_milli = 0, mem_mib = 0;
  int32_t kind = HORUS_JOB_TRAINING;
  int32_t priority = 0;
  std::string profile = {}, owner = {};     // empty = not stated
  std::vector<std::string> gpu_types = {};  // empty = any
  int64_t step_us = 0;                      // one step alone; 0 = not stated: the next three are not read
  int64_t host_us = 0, gpu_us = 0, network_us = 0;
};

struct SyntheticSize {
  int32_t gpus = 1;  // tasks of one GPU each
  uint32_t weight = 1;
};

// A point of the cumulative distribution of durations, which is linear between points.
struct SyntheticDuration {
  int32_t share_milli = 0;  // of jobs that take at most duration_us
  int64_t duration_us = 0;
};

struct SyntheticProfile {
  std::string name = {};
  uint32_t weight = 1;
  int64_t cpu_milli = 0, mem_mib = 0;  // per task
};

// Fields that are 0 or empty keep the preset's values.
struct SyntheticOptions {
  std::string preset = {};  // "philly" or "horus2020"; empty = "philly"
  uint64_t seed = 1;
  int64_t jobs = 0;
  int32_t arrivals = HORUS_ARRIVALS_PRESET;
  int64_t mean_gap_us = 0;
  int64_t capacity_gpu_milli = 0;
  int32_t load_milli = 0, gap_scv_milli = 0;
  std::vector<SyntheticSize> sizes = {};
  std::vector<SyntheticDuration> durations = {};
  std::vector<SyntheticProfile> profiles = {};
  int32_t owners = 0;
};

namespace detail {

// Jobs as columns; each name is kept once.
class CTrace {
 public:
  explicit CTrace(std::span<const TraceJob> jobs) {
    for (const TraceJob& job : jobs) Add(job);
    profile_texts_ = Texts(profiles_.names);
    owner_texts_ = Texts(owners_.names);
    list_texts_ = Texts(lists_.names);
    c_.count = ids_.size();
    c_.ids = Column(ids_);
    c_.submit_us = Column(submit_us_);
    c_.duration_us = Column(duration_us_);
    c_.steps = Column(steps_);
    c_.endless = Column(endless_);
    c_.deadline_us = Column(deadline_us_);
    c_.tasks = Column(tasks_);
    c_.gpus_per_task = Column(gpus_per_task_);
    c_.gpu_milli = Column(gpu_milli_);
    c_.cpu_milli = Column(cpu_milli_);
    c_.mem_mib = Column(mem_mib_);
    c_.kinds = Column(kinds_);
    c_.priorities = Column(priorities_);
    c_.profile_count = profile_texts_.size();
    c_.profile_names = Column(profile_texts_);
    c_.profiles = Column(profiles_.rows);
    c_.owner_count = owner_texts_.size();
    c_.owner_names = Column(owner_texts_);
    c_.owners = Column(owners_.rows);
    c_.type_list_count = list_texts_.size();
    c_.type_lists = Column(list_texts_);
    c_.gpu_types = Column(lists_.rows);
    c_.step_us = Column(step_us_);
    c_.host_us = Column(host_us_);
    c_.gpu_us = Column(gpu_us_);
    c_.network_us = Column(network_us_);
  }
  CTrace(const CTrace&) = delete;
  CTrace& operator=(const CTrace&) = delete;
  [[nodiscard]] const horus_trace_columns* get() const { return &c_; }

 private:
  struct Table {
    std::vector<std::string> names;
    std::vector<uint32_t> rows;
    std::map<std::string, uint32_t> positions;
    void Add(const std::string& name) {
      if (name.empty()) return rows.push_back(HORUS_NOT_STATED);
      const auto [at, fresh] = positions.emplace(name, static_cast<uint32_t>(names.size()));
      if (fresh) names.push_back(name);
      rows.push_back(at->second);
    }
  };
  void Add(const TraceJob& job) {
    ids_.push_back(job.id);
    submit_us_.push_back(job.submit_us);
    duration_us_.push_back(job.duration_us);
    steps_.push_back(job.steps);
    endless_.push_back(job.endless ? 1 : 0);
    deadline_us_.push_back(job.deadline_us);
    tasks_.push_back(job.tasks);
    gpus_per_task_.push_back(job.gpus_per_task);
    gpu_milli_.push_back(job.gpu_milli);
    cpu_milli_.push_back(job.cpu_milli);
    mem_mib_.push_back(job.mem_mib);
    kinds_.push_back(job.kind);
    priorities_.push_back(job.priority);
    step_us_.push_back(job.step_us);
    host_us_.push_back(job.host_us);
    gpu_us_.push_back(job.gpu_us);
    network_us_.push_back(job.network_us);
    profiles_.Add(job.profile);
    owners_.Add(job.owner);
    std::string list;
    for (const std::string& type : job.gpu_types) list += (list.empty() ? "" : "|") + type;
    lists_.Add(list);
  }

  std::vector<uint64_t> ids_;
  std::vector<int64_t> submit_us_, duration_us_, steps_, deadline_us_, cpu_milli_, mem_mib_;
  std::vector<int64_t> step_us_, host_us_, gpu_us_, network_us_;
  std::vector<uint8_t> endless_;
  std::vector<int32_t> tasks_, gpus_per_task_, gpu_milli_, kinds_, priorities_;
  Table profiles_, owners_, lists_;
  std::vector<const char*> profile_texts_, owner_texts_, list_texts_;
  horus_trace_columns c_ = HORUS_TRACE_COLUMNS_INIT;
};

// Borrows the options.
class CSynthetic {
 public:
  explicit CSynthetic(const SyntheticOptions& options) {
    for (const SyntheticSize& size : options.sizes) {
      gpus_.push_back(size.gpus);
      size_weights_.push_back(size.weight);
    }
    for (const SyntheticDuration& point : options.durations) {
      shares_.push_back(point.share_milli);
      durations_.push_back(point.duration_us);
    }
    for (const SyntheticProfile& profile : options.profiles) {
      names_.push_back(profile.name.c_str());
      profile_weights_.push_back(profile.weight);
      cpu_.push_back(profile.cpu_milli);
      mem_.push_back(profile.mem_mib);
    }
    c_ = {sizeof c_,
          options.arrivals,
          TextOrNull(options.preset),
          options.seed,
          options.jobs,
          options.mean_gap_us,
          options.capacity_gpu_milli,
          options.load_milli,
          options.gap_scv_milli,
          gpus_.size(),
          Column(gpus_),
          Column(size_weights_),
          shares_.size(),
          Column(shares_),
          Column(durations_),
          names_.size(),
          Column(names_),
          Column(profile_weights_),
          Column(cpu_),
          Column(mem_),
          options.owners,
          0};
  }
  CSynthetic(const CSynthetic&) = delete;
  CSynthetic& operator=(const CSynthetic&) = delete;
  [[nodiscard]] const horus_synthetic_options* get() const { return &c_; }

 private:
  std::vector<int32_t> gpus_, shares_;
  std::vector<uint32_t> size_weights_, profile_weights_;
  std::vector<int64_t> durations_, cpu_, mem_;
  std::vector<const char*> names_;
  horus_synthetic_options c_ = HORUS_SYNTHETIC_OPTIONS_INIT;
};

inline std::vector<TraceJob> ReadTraceJobs(const horus_trace* trace) {
  const size_t rows = horus_trace_count(trace);
  std::vector<uint64_t> ids(rows);
  std::vector<uint8_t> endless(rows);
  std::vector<int64_t> submit(rows), duration(rows), steps(rows), deadline(rows), cpu(rows), mem(rows);
  std::vector<int64_t> step(rows), host(rows), gpu(rows), network(rows);
  std::vector<int32_t> tasks(rows), gpus(rows), milli(rows), kinds(rows), priorities(rows);
  std::vector<uint32_t> profiles(rows), owners(rows), lists(rows);
  const horus_trace_jobs c = {sizeof c,
                              0,
                              rows,
                              ids.data(),
                              submit.data(),
                              duration.data(),
                              steps.data(),
                              endless.data(),
                              deadline.data(),
                              tasks.data(),
                              gpus.data(),
                              milli.data(),
                              cpu.data(),
                              mem.data(),
                              kinds.data(),
                              priorities.data(),
                              profiles.data(),
                              owners.data(),
                              lists.data(),
                              step.data(),
                              host.data(),
                              gpu.data(),
                              network.data()};
  size_t count = 0;
  Call(horus_trace_get_jobs, trace, &c, &count);
  std::vector<TraceJob> jobs;
  for (size_t i = 0; i < count; ++i) {
    TraceJob job = {ids[i],  submit[i], duration[i], steps[i], endless[i] == 1, deadline[i],  tasks[i],
                    gpus[i], milli[i],  cpu[i],      mem[i],   kinds[i],        priorities[i]};
    if (profiles[i] != HORUS_NOT_STATED) job.profile = horus_trace_profile_name(trace, profiles[i]);
    if (owners[i] != HORUS_NOT_STATED) job.owner = horus_trace_owner_name(trace, owners[i]);
    for (size_t k = 0; lists[i] != HORUS_NOT_STATED; ++k) {
      const char* type = horus_trace_type_name(trace, lists[i], k);
      if (type == nullptr) break;
      job.gpu_types.emplace_back(type);
    }
    job.step_us = step[i];
    job.host_us = host[i];
    job.gpu_us = gpu[i];
    job.network_us = network[i];
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace detail

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_LAB_TRACE_VALUES_HPP_
