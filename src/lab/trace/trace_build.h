// SPDX-License-Identifier: Apache-2.0
// TraceBuilder: jobs in any order become a trace, each name held once.
//
// Enters:  jobs whose positions in tables come from this builder.
// Leaves:  a trace that ValidateTrace accepts; or its error.
// Units:   as trace.h.
// Cost:    a sort at the end; a search by name for each that is stated.   Thread class: one thread at a time.
#ifndef HORUS_LAB_TRACE_TRACE_BUILD_H_
#define HORUS_LAB_TRACE_TRACE_BUILD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lab/trace/trace.h"

namespace horus {

class TraceBuilder {
 public:
  // The position of a name; kNotStated for an empty one.
  [[nodiscard]] uint32_t Profile(std::string_view name) { return Intern(name, trace_.profiles, profiles_); }
  [[nodiscard]] uint32_t Owner(std::string_view name) { return Intern(name, trace_.owners, owners_); }
  // In any order and repeated; kNotStated for none.
  [[nodiscard]] uint32_t GpuTypes(GpuTypeNames names);
  [[nodiscard]] uint32_t StepTimes(const TraceStepTimes& times);

  void Add(const TraceJob& job) { trace_.jobs.push_back(job); }
  [[nodiscard]] size_t size() const { return trace_.jobs.size(); }

  // The builder is empty afterwards.
  [[nodiscard]] absl::StatusOr<Trace> Finish();

 private:
  using Positions = std::map<std::string, uint32_t, std::less<>>;
  [[nodiscard]] static uint32_t Intern(std::string_view name, std::vector<std::string>& names, Positions& positions);

  Trace trace_;
  Positions profiles_, owners_;
  std::map<GpuTypeNames, uint32_t> types_;
  std::map<TraceStepTimes, uint32_t> step_times_;
};

// Sorts the jobs and puts the tables into the order of first use, without what no job refers to.
void CanonicaliseTrace(Trace& trace);

}  // namespace horus

#endif  // HORUS_LAB_TRACE_TRACE_BUILD_H_
