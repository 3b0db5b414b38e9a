// SPDX-License-Identifier: Apache-2.0
// horus/lab/memory.h: what handles of the library hold.
#include "horus/lab/memory.h"

#include <vector>

#include "capi/handles.h"
#include "lab/capi/job_list.h"

namespace horus::capi {
namespace {

template <typename T>
uint64_t BytesOf(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
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

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

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

uint64_t horus_job_list_bytes_held(const horus_job_list* list) {
  if (list == nullptr) return 0;
  uint64_t bytes = sizeof *list;
  for (const auto& job : list->jobs) bytes += job->bytes_held() + sizeof(horus::JobSpec);
  return bytes;
}

uint64_t horus_queue_bytes_held(const horus_queue* queue) { return queue == nullptr ? 0 : queue->value->bytes_held(); }
