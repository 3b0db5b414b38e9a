// SPDX-License-Identifier: Apache-2.0
// Data sheets of Ada Lovelace: fp8 tensor cores, no NVLink, no MIG.
#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kAdaWhitePaper[] = "NVIDIA Ada GPU architecture white paper v2 (2023)";

void AppendServerAda(std::vector<GpuType>& types) {
  Add(types, "l4", "NVIDIA L4", "Ada",
      {.compute_capability = 89, .sm_count = 58, .boost_clock_mhz = 2'040, .l2_kib = 49'152},
      {.fp64 = 473, .fp32 = 30'300, .tf32 = 60'000, .fp16 = 121'000, .fp8 = 242'500, .int8 = 242'500},
      {.mem_mib = 23'034, .mem_mb_s = 300'000, .pcie_mb_s = kPcie4x16, .tdp_w = 72},
      {.spec = "NVIDIA L4 data sheet (2023), halved where it states rates with sparsity",
       .chip = "NVIDIA L4 product brief (2023): AD104; L2 as CUDA device properties report it"},
      {"l4-24gb"});
  // The data sheet's tensor rates are half of what the chip's clock would give; L40S has the full rate.
  Add(types, "l40", "NVIDIA L40", "Ada",
      {.compute_capability = 89, .sm_count = 142, .boost_clock_mhz = 2'490, .l2_kib = 98'304},
      {.fp64 = 1'414, .fp32 = 90'500, .tf32 = 90'500, .fp16 = 181'050, .fp8 = 362'000, .int8 = 362'000},
      {.mem_mib = 46'068, .mem_mb_s = 864'000, .pcie_mb_s = kPcie4x16, .tdp_w = 300},
      {.spec = "NVIDIA L40 data sheet (2023); rates without sparsity", .chip = kAdaWhitePaper});
  Add(types, "l40s", "NVIDIA L40S", "Ada",
      {.compute_capability = 89, .sm_count = 142, .boost_clock_mhz = 2'520, .l2_kib = 98'304},
      {.fp64 = 1'431, .fp32 = 91'600, .tf32 = 183'000, .fp16 = 362'050, .fp8 = 733'000, .int8 = 733'000},
      {.mem_mib = 46'068, .mem_mb_s = 864'000, .pcie_mb_s = kPcie4x16, .tdp_w = 350},
      {.spec = "NVIDIA L40S data sheet (2023); rates without sparsity", .chip = kAdaWhitePaper});
  // For China: fewer SMs, and tensor cores at half rate, as L40's.
  GpuType& l20 = Like(types, "l40", "l20", "NVIDIA L20",
                      "NVIDIA L20 data sheet as OEMs publish it (2023): memory, 275 W; rates = units x boost clock");
  Rescale(l20, 92, 2'520);
  l20.tdp_w = 275;
  l20.chip_source = "Published listings of the L20: AD102 with 92 SMs, 2520 MHz, 96 MB L2";
}

void AppendDesktopAda(std::vector<GpuType>& types) {
  // GeForce tensor cores sum in fp32 at half rate.
  Add(types, "rtx-4090", "NVIDIA GeForce RTX 4090", "Ada",
      {.compute_capability = 89, .sm_count = 128, .boost_clock_mhz = 2'520, .l2_kib = 73'728},
      {.fp64 = 1'290, .fp32 = 82'600, .tf32 = 82'600, .fp16 = 165'200, .fp8 = 330'300, .int8 = 660'600},
      {.mem_mib = 24'564, .mem_mb_s = 1'008'000, .pcie_mb_s = kPcie4x16, .tdp_w = 450},
      {.spec = kAdaWhitePaper, .chip = kAdaWhitePaper}, {"4090"});
  GpuType& china = Like(types, "rtx-4090", "rtx-4090-d", "NVIDIA GeForce RTX 4090 D",
                        "NVIDIA GeForce RTX 4090 D product page (2023): 14,592 cores; rates = units x boost clock");
  Rescale(china, 114, 2'520);
  china.tdp_w = 425;
  Add(types, "rtx-6000-ada", "NVIDIA RTX 6000 Ada Generation", "Ada",
      {.compute_capability = 89, .sm_count = 142, .boost_clock_mhz = 2'505, .l2_kib = 98'304},
      {.fp64 = 1'423, .fp32 = 91'100, .tf32 = 182'100, .fp16 = 364'200, .fp8 = 728'500, .int8 = 728'500},
      {.mem_mib = 49'140, .mem_mb_s = 960'000, .pcie_mb_s = kPcie4x16, .tdp_w = 300},
      {.spec = kAdaWhitePaper, .chip = kAdaWhitePaper}, {"rtx-6000-ada-generation"});
}

}  // namespace

void AppendAda(std::vector<GpuType>& types) {
  AppendServerAda(types);
  AppendDesktopAda(types);
}

}  // namespace horus
