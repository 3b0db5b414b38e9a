// SPDX-License-Identifier: Apache-2.0
// The front door of the device room: what is known of one type of GPU, each group of numbers with its source.
//
// Enters:  data sheets, written down in catalogue_data.cc or in a user's file.
// Leaves:  GpuType, a plain value.
// Units:   in the names; MiB and KiB are powers of two, MB/s = 10^6 bytes/s, GFLOP/s = 10^9 operations/s
//          with a multiply-add counted as two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace horus {

// Position of a type in the Catalogue that issued it; stable when that catalogue is extended.
struct GpuTypeTag;
using GpuTypeId = DenseId<GpuTypeTag, uint16_t>;

// One kind of slice into which a GPU in MIG mode can be cut.
struct MigProfile {
  std::string name;            // as nvidia-smi prints it, e.g. "1g.5gb"
  int64_t compute_slices = 0;  // of 7 (of 4 on A30 and RTX PRO 6000)
  int64_t memory_slices = 0;   // of 8 (of 4 on A30 and RTX PRO 6000)
  int64_t mem_mib = 0;         // memory that a process in one instance sees
  int64_t max_instances = 0;   // that fit on one GPU at once

  friend bool operator==(const MigProfile&, const MigProfile&) = default;
};

// One schedulable GPU: what one index of nvidia-smi names. A board with several (K80, M60, A16) counts
// several. Peak rates are dense (no structured sparsity) at the boost clock; 0 means "not supported".
struct GpuType {
  std::string name;          // kebab-case, unique: "a100-40gb"
  std::string display_name;  // for people: "NVIDIA A100 SXM4 40 GB"
  std::string architecture;  // "Ampere"

  int64_t compute_capability = 0;  // major * 10 + minor: 80 for 8.0, 120 for 12.0
  int64_t sm_count = 0;            // streaming multiprocessors that are enabled
  int64_t boost_clock_mhz = 0;

  int64_t fp64_gflops = 0;  // plain arithmetic units, without fp64 tensor cores
  int64_t fp32_gflops = 0;  // plain arithmetic units
  int64_t tf32_gflops = 0;  // tensor cores; 0 before Ampere
  // Matrix products of fp16 inputs: tensor cores summing in fp32 where there are such; without tensor
  // cores packed fp16 arithmetic (P100); else the fp32 rate, because frameworks then compute in fp32.
  int64_t fp16_gflops = 0;
  int64_t bf16_gflops = 0;  // tensor cores; 0 before Ampere
  int64_t fp8_gflops = 0;   // tensor cores summing in fp32; 0 before Ada and Hopper
  int64_t int8_gops = 0;    // tensor cores, or 4-way dot products from Pascal 6.1 to Volta

  int64_t mem_mib = 0;             // as nvidia-smi shows it, with ECC as delivered; a process sees 1 to 3 % less
  int64_t mem_bandwidth_mb_s = 0;  // device memory
  int64_t l2_kib = 0;
  int64_t pcie_mb_s = 0;    // link to the host (PCIe; NVLink-C2C on GB200), one direction, after line coding
  int64_t nvlink_mb_s = 0;  // all links, both directions together; 0 without NVLink
  int64_t tdp_w = 0;        // share of one GPU on boards with several

  int64_t context_mib = 0;      // device memory that a bare CUDA context of one process takes
  int64_t max_mps_clients = 0;  // processes that one MPS server admits; 0 without MPS

  std::vector<MigProfile> mig;       // smallest first; empty without MIG
  std::vector<std::string> aliases;  // other spellings; case, '-', '_', ' ' and brand prefixes never matter

  std::string spec_source;     // rates, memory, links, power
  std::string chip_source;     // SMs, clock, L2, compute capability
  std::string context_source;  // starts with "estimate" or "measured"
  std::string mig_source;      // empty without MIG

  friend bool operator==(const GpuType&, const GpuType&) = default;
};

}  // namespace horus
