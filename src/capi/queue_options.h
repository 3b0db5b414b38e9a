// SPDX-License-Identifier: Apache-2.0
// Options of a queue's discipline from the C ABI.
//
// Enters:  horus_queue_options, or null.  Leaves: QueueOptions; ranges are checked by MakeQueue.
// Units:   as in horus/queue.h.
// Cost:    a copy.                        Thread class: pure function.
#ifndef HORUS_CAPI_QUEUE_OPTIONS_H_
#define HORUS_CAPI_QUEUE_OPTIONS_H_

#include "base/status.h"
#include "horus/queue.h"
#include "queue/queue.h"

namespace horus::capi {

[[nodiscard]] absl::StatusOr<QueueOptions> QueueOptionsFromC(const horus_queue_options* given);

}  // namespace horus::capi

#endif  // HORUS_CAPI_QUEUE_OPTIONS_H_
