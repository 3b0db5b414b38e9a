// SPDX-License-Identifier: Apache-2.0
// What waiting does to slowdowns: a tenant that waits for its input leaves the GPU to others, and loses less to them;
// one that waits for requests leaves it too, but while it serves one it loses what it loses.
//
// Enters:  a model of what jobs cost each other whose GPUs never wait; demands with host_us and duty.
// Leaves:  the same model for all jobs.
// Units:   those of model.h.
// Cost:    a pass over the tenants more than the model's.      Thread class: immutable, share freely.
#pragma once

#include "interference/model.h"

namespace horus {

// With g the step of the GPU and h that of the host, a job alone makes a step in max(g, h). Its GPU is busy with it for
// the share r = min(1, g / h) of what it would be without waiting. Beside others, where the model says that each costs
// the job's GPU the excess e of its steps, a step takes max(h, g (1 + sum of r e over the others)): the slower of its
// input and of its share of the GPU. That gives the slowdown of a pair exactly
//
//     max(1, r of the victim * (1 + r of the other * e))
//
// and of more tenants the sum of these excesses. No measurement of this exists; it follows from the two being parallel.
[[nodiscard]] inline double BusyPart(const Demand& demand) {
  const auto gpu_us = static_cast<double>(demand.step_time_us.estimate);
  return gpu_us > 0 && demand.host_us > gpu_us ? gpu_us / demand.host_us : 1;
}
[[nodiscard]] inline double SlowdownBesideHost(double excess, double victim_part, double other_part) {
  return std::max(1.0, victim_part * (1 + other_part * excess));
}

// What a tenant costs others, of what it would cost them without waiting: it is there for that share of the time. Only
// where pairs add up: a model that slows all alike cannot say what one of them costs, so to it a service is always
// busy.
[[nodiscard]] inline double PresentPart(const Demand& demand) {
  return BusyPart(demand) * static_cast<double>(demand.duty);
}

// `model` itself says the rest; a model whose tenants do not add up pair by pair sees jobs that are less busy.
[[nodiscard]] std::shared_ptr<const InterferenceModel> WithHostTime(std::shared_ptr<const InterferenceModel> model);

}  // namespace horus
