// SPDX-License-Identifier: Apache-2.0
// Requests: what jobs ask for, held once for all jobs that ask for the same.
//
// Enters:  jobs.
// Leaves:  a job's request under a small id: its JobSpec without what is each job's own, which is id, name, submit_us
//          and deadline_us (0 and empty there).
// Cost:    a look-up reads the whole job once, about 0.3 us; a distinct request takes about 80 bytes more than its
//          JobSpec.
// Thread class: value with one writer; readers share freely while nobody writes.
#pragma once

#include "base/shared.h"
#include "place/job/job.h"

namespace horus {

struct Request {
  JobSpec spec;        // without what is a job's own
  uint64_t owner = 0;  // OwnerMark
};
using RequestTable = SharedTable<Request>;

// The job's request, with one holder more.
[[nodiscard]] uint32_t HoldRequest(const JobSpec& job, RequestTable& table);
[[nodiscard]] uint64_t BytesHeld(const RequestTable& table);

// Whether two jobs differ at most in what is their own.
[[nodiscard]] bool SameRequest(const JobSpec& a, const JobSpec& b);

// A demand as it lies in memory: equal bytes of equal fields, but for -0 and 0.
[[nodiscard]] std::string_view BytesOf(const Demand& demand);

// Of a demand and its type; of one seed equal on every run and machine of one byte order.
[[nodiscard]] uint64_t HashOfDemand(const TypeDemand& entry, uint64_t seed = 0);

}  // namespace horus
