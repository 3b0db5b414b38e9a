// SPDX-License-Identifier: Apache-2.0
// Lists of jobs, and what handles hold.
#include "lab/capi/job_list.h"

#include "absl/container/inlined_vector.h"
#include "capi/args.h"
#include "capi/error.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "horus/lab/memory.h"

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

void horus_job_list_free(horus_job_list* list) { delete list; }

size_t horus_job_list_count(const horus_job_list* list) { return list == nullptr ? 0 : list->specs.size(); }

horus_status horus_job_list_get(const horus_job_list* list, size_t index, horus_job* job, horus_error* error) {
  return Guard(error, {{list, "list"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const auto* found, RowAt(list->jobs, "jobs", index));
    return Answer(**found, job);
  });
}

namespace horus::capi {
namespace {

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
  for (const Action& action : plan.actions) {
    bytes += BytesOf(action.slots) + sizeof(JobSpec) + BytesOf(action.job->demands);
  }
  for (const Decision& decision : plan.decisions) {
    bytes += BytesOf(decision.slots) + BytesOf(decision.effects) + BytesOf(decision.winner.terms) +
             BytesOf(decision.runner_up.terms);
  }
  for (const Move& move : plan.moves) bytes += sizeof(Move) + BytesOf(move.from) + BytesOf(move.to);
  for (const PreemptionCandidate& one : plan.candidates) {
    bytes += sizeof(PreemptionCandidate) + BytesOf(one.victims) + BytesOf(one.losses) + BytesOf(one.slots);
  }
  return bytes;
}

}  // namespace

}  // namespace horus::capi

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
