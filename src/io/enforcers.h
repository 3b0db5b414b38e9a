// SPDX-License-Identifier: Apache-2.0
// Enforcers: what a decision grants of a GPU, in the words of whatever holds the job to it.
//
// Enters:  a grant.   Leaves: text as the enforcer's documentation has it, or "" where it has no word for any of it.
// Cost:    a few lines of text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "device/sharing_mode.h"
#include "place/job/job.h"

namespace horus {

struct GpuGrant {
  std::string job;   // its name
  int32_t gpus = 1;  // of a task
  SharingMode mode = SharingMode::kTimeSlice;
  int32_t sm_cap_pct = 0;  // 0 = none
  GpuMemory memory;        // of each GPU; a limit of 0 or kUnboundedMemMib is none
};

struct Enforcer {
  std::string_view name;
  std::string_view when;  // until when its words can be written
  bool caps = true;       // it has a word for a cap
  std::string (*words)(const GpuGrant& grant);
};

// "mps", "mps-3", "dra", "kai" (and Run:ai), "hami", "slurm"; the sources of their words are in the table's file.
[[nodiscard]] std::span<const Enforcer> Enforcers();
[[nodiscard]] std::string MpsWords(const GpuGrant& grant);  // of "mps"

}  // namespace horus
