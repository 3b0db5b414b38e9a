// SPDX-License-Identifier: Apache-2.0
// What the laboratory adds to the handles of the core: lists of jobs, placers with its policies' options, latencies of
// requests, what handles hold (horus/lab/files.h, policies.h, latency.h, memory.h).
#include "capi/planning.h"
#include "horus/lab/latency.h"
#include "horus/lab/memory.h"
#include "horus/lab/policies.h"
#include "interference/laws.h"
#include "lab/capi/handles.h"

namespace horus::capi {
namespace {

absl::StatusOr<std::shared_ptr<const LabPolicyOptions>> LabFromC(const horus_lab_policy_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_lab_policy_options c, ReadOptionalStruct(given));
  LabPolicyOptions options;
  HORUS_RETURN_IF_ERROR(CheckFlag("synergy_grow", c.synergy_grow));
  options.synergy_grow = c.synergy_grow == 1;
  SetAmount(options.synergy_tolerance, c.synergy_tolerance);
  SetUnlessZero(options.pack_threshold, c.pack_threshold);
  SetUnlessZero(options.foreground_bound, c.foreground_bound);
  if (c.profiling_label != nullptr)
    HORUS_SET_OR_RETURN(options.profiling_label, ReadText(c.profiling_label, "profiling_label"));
  return Lab(std::move(options));
}

absl::StatusOr<RequestLoad> LoadFromC(const horus_request_load* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_request_load c, ReadStruct(given));
  RequestLoad load{.requests_per_s = c.requests_per_s, .service_us = c.service_us, .service_cv = c.service_cv};
  if (c.slowdown != 0) load.slowdown = c.slowdown;
  return load;
}

// ---- horus/lab/memory.h: what handles of the library hold.

template <typename T>
uint64_t BytesOf(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

// What has room in the list itself is counted with whatever holds the list.
template <typename T, size_t kInside>
uint64_t BytesOf(const absl::InlinedVector<T, kInside>& values) {
  const size_t inside = absl::InlinedVector<T, kInside>().capacity();
  return values.capacity() > inside ? values.capacity() * sizeof(T) : 0;
}

// Without the texts, which another thread may be writing.
uint64_t BytesOf(const Plan& plan) {
  uint64_t bytes = BytesOf(plan.actions) + BytesOf(plan.decisions) + BytesOf(plan.seen);
  for (const Action& action : plan.actions)
    bytes += BytesOf(action.slots) + sizeof(JobSpec) + BytesOf(action.job->demands);
  for (const Decision& decision : plan.decisions) {
    bytes += BytesOf(decision.slots) + BytesOf(decision.effects) + BytesOf(decision.winner.terms) +
             BytesOf(decision.runner_up.terms);
  }
  for (const Move& move : plan.moves) bytes += sizeof(Move) + BytesOf(move.from) + BytesOf(move.to);
  for (const PreemptionCandidate& one : plan.candidates)
    bytes += sizeof(PreemptionCandidate) + BytesOf(one.victims) + BytesOf(one.losses) + BytesOf(one.slots);
  return bytes;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

void horus_job_list_free(horus_job_list* list) { delete list; }

size_t horus_job_list_count(const horus_job_list* list) { return list == nullptr ? 0 : list->specs.size(); }

horus_status horus_job_list_get(const horus_job_list* list, size_t index, horus_job* job, horus_error* error) {
  return Guard(error, {{list, "list"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const auto* found, RowAt(list->jobs, "jobs", index));
    return Answer(**found, job);
  });
}

horus_status horus_lab_placer_create(const horus_placer_options* options, const horus_lab_policy_options* lab,
                                     horus_placer** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(auto with, LabFromC(lab));
    return Give(MakePlacer(options, std::move(with)), out);
  });
}

horus_status horus_latency_predict(const horus_request_load* load, horus_latency* latency, horus_error* error) {
  return Guard(error, [&] {
    HORUS_RETURN_IF_ERROR(CheckOutput(latency));
    HORUS_ASSIGN_OR_RETURN(const RequestLoad given, LoadFromC(load));
    HORUS_ASSIGN_OR_RETURN(const Latency found, PredictLatency(given));
    horus_latency c = HORUS_LATENCY_INIT;
    c.utilisation = found.utilisation;
    c.mean_us = found.mean_us;
    c.p99_us = found.p99_us;
    WriteStruct(c, latency);
    return absl::OkStatus();
  });
}

horus_status horus_latency_largest_slowdown(const horus_request_load* load, double p99_bound_us, double* slowdown,
                                            horus_error* error) {
  return Guard(error, {{slowdown, "slowdown"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const RequestLoad given, LoadFromC(load));
    HORUS_ASSIGN_OR_RETURN(*slowdown, LargestSlowdown(given, p99_bound_us));
    return absl::OkStatus();
  });
}

// ---- horus/lab/memory.h

uint64_t horus_placer_bytes_held(const horus_placer* placer) {
  return placer == nullptr ? 0 : placer->value->bytes_held();
}

uint64_t horus_plan_bytes_held(const horus_plan* plan) {
  return plan == nullptr ? 0 : sizeof(horus_plan) + BytesOf(plan->value);
}

uint64_t horus_interference_bytes_held(const horus_interference* model) {
  return model == nullptr ? 0 : sizeof(*model) + model->bundle.capacity() + model->value->bytes_held();
}

uint64_t horus_observations_bytes_held(const horus_observations* observations) {
  if (observations == nullptr) return 0;
  return static_cast<uint64_t>(observations->demands.bytes_held()) + observations->slowdowns.bytes_held();
}

uint64_t horus_job_list_bytes_held(const horus_job_list* list) { return list == nullptr ? 0 : list->bytes; }

uint64_t horus_queue_bytes_held(const horus_queue* queue) { return queue == nullptr ? 0 : queue->value->bytes_held(); }
