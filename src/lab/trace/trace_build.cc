// SPDX-License-Identifier: Apache-2.0
// Interns what jobs refer to, and renumbers it by first use.
#include "lab/trace/trace_build.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace horus {
namespace {

// Moves the entries of `table` that `member` of the jobs refers to into the order of first use.
template <typename Entry>
void Renumber(uint32_t TraceJob::* member, std::vector<TraceJob>& jobs, std::vector<Entry>& table) {
  std::vector<uint32_t> now(table.size(), kNotStated);
  std::vector<Entry> used;
  for (TraceJob& job : jobs) {
    uint32_t& position = job.*member;
    if (position == kNotStated) continue;
    if (now[position] == kNotStated) {
      now[position] = static_cast<uint32_t>(used.size());
      used.push_back(std::move(table[position]));
    }
    position = now[position];
  }
  table = std::move(used);
}

}  // namespace

uint32_t TraceBuilder::Intern(std::string_view name, std::vector<std::string>& names, Positions& positions) {
  if (name.empty()) return kNotStated;
  const auto at = positions.find(name);
  if (at != positions.end()) return at->second;
  const auto position = static_cast<uint32_t>(names.size());
  names.emplace_back(name);
  positions.emplace(names.back(), position);
  return position;
}

uint32_t TraceBuilder::GpuTypes(GpuTypeNames names) {
  if (names.empty()) return kNotStated;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const auto [at, fresh] = types_.emplace(std::move(names), static_cast<uint32_t>(trace_.type_lists.size()));
  if (fresh) trace_.type_lists.push_back(at->first);
  return at->second;
}

uint32_t TraceBuilder::StepTimes(const TraceStepTimes& times) {
  const auto [at, fresh] = step_times_.emplace(times, static_cast<uint32_t>(trace_.step_times.size()));
  if (fresh) trace_.step_times.push_back(times);
  return at->second;
}

absl::StatusOr<Trace> TraceBuilder::Finish() {
  Trace trace = std::exchange(trace_, {});
  *this = TraceBuilder();
  CanonicaliseTrace(trace);
  HORUS_RETURN_IF_ERROR(ValidateTrace(trace));
  return trace;
}

void CanonicaliseTrace(Trace& trace) {
  std::sort(trace.jobs.begin(), trace.jobs.end(), [](const TraceJob& a, const TraceJob& b) {
    return a.submit_us != b.submit_us ? a.submit_us < b.submit_us : a.id < b.id;
  });
  Renumber(&TraceJob::profile, trace.jobs, trace.profiles);
  Renumber(&TraceJob::owner, trace.jobs, trace.owners);
  Renumber(&TraceJob::gpu_types, trace.jobs, trace.type_lists);
  Renumber(&TraceJob::step_times, trace.jobs, trace.step_times);
}

}  // namespace horus
