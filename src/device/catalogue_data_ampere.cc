// SPDX-License-Identifier: Apache-2.0
// Data sheets of Ampere: bf16 and tf32 tensor cores everywhere, MIG on the GA100.
#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kA100DataSheet[] = "NVIDIA A100 data sheet (2022); rates without sparsity";
constexpr char kGa100WhitePaper[] = "NVIDIA A100 architecture white paper (2020)";
constexpr char kGa102WhitePaper[] = "NVIDIA Ampere GA102 architecture white paper (2021)";
constexpr char kA100MigSource[] = "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB as NVML reports them";

void AppendGa100(std::vector<GpuType>& types) {
  Add(types, "a100-40gb", "NVIDIA A100 SXM4 40 GB", "Ampere",
      {.compute_capability = 80, .sm_count = 108, .boost_clock_mhz = 1'410, .l2_kib = 40'960},
      {.fp64 = 9'700, .fp32 = 19'500, .tf32 = 156'000, .fp16 = 312'000, .int8 = 624'000},
      {.mem_mib = 40 * kMibPerGib, .mem_mb_s = 1'555'000, .pcie_mb_s = kPcie4x16, .nvlink_mb_s = 600'000, .tdp_w = 400},
      {.spec = kA100DataSheet, .chip = kGa100WhitePaper, .mig = kA100MigSource},
      {"a100", "a100-sxm4-40gb", "a100-sxm4"},
      SevenSlices({{{"5gb", 4'864}, {"10gb", 9'856}, {"20gb", 19'968}, {"40gb", 40'192}}}));
  GpuType& sxm_80 = Like(types, "a100-40gb", "a100-80gb", "NVIDIA A100 SXM4 80 GB", kA100DataSheet, {"a100-sxm4-80gb"});
  sxm_80.mem_mib = 80 * kMibPerGib;
  sxm_80.mem_bandwidth_mb_s = 2'039'000;
  sxm_80.mig = SevenSlices({{{"10gb", 9'856}, {"20gb", 19'968}, {"40gb", 40'192}, {"80gb", 80'384}}});
  Like(types, "a100-40gb", "a100-pcie-40gb", "NVIDIA A100 PCIe 40 GB", kA100DataSheet, {"a100-pcie"}).tdp_w = 250;
  GpuType& pcie_80 =
      Like(types, "a100-80gb", "a100-pcie-80gb", "NVIDIA A100 PCIe 80 GB", kA100DataSheet, {"a100-80gb-pcie"});
  pcie_80.mem_bandwidth_mb_s = 1'935'000;
  pcie_80.tdp_w = 300;
  // For China: slower NVLink, else the same.
  constexpr char kA800[] = "NVIDIA A800 data sheet (2022): NVLink; the rest as A100";
  Like(types, "a100-80gb", "a800-80gb", "NVIDIA A800 SXM4 80 GB", kA800, {"a800", "a800-sxm4-80gb"}).nvlink_mb_s =
      400'000;
  Like(types, "a100-pcie-80gb", "a800-pcie-80gb", "NVIDIA A800 PCIe 80 GB", kA800, {"a800-80gb-pcie"}).nvlink_mb_s =
      400'000;
  Add(types, "a30", "NVIDIA A30", "Ampere",
      {.compute_capability = 80, .sm_count = 56, .boost_clock_mhz = 1'440, .l2_kib = 24'576},
      {.fp64 = 5'200, .fp32 = 10'300, .tf32 = 82'000, .fp16 = 165'000, .int8 = 330'000},
      {.mem_mib = 24 * kMibPerGib, .mem_mb_s = 933'000, .pcie_mb_s = kPcie4x16, .nvlink_mb_s = 200'000, .tdp_w = 165},
      {.spec = "NVIDIA A30 data sheet (2021); rates without sparsity",
       .chip = "NVIDIA A30 product brief (2021): GA100",
       .mig = kMigGuide},
      {},
      {
          {.name = "1g.6gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 5'952, .max_instances = 4},
          {.name = "2g.12gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 11'968, .max_instances = 2},
          {.name = "4g.24gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 24'000, .max_instances = 1},
      });
}

void AppendServerGa10x(std::vector<GpuType>& types) {
  Add(types, "a40", "NVIDIA A40", "Ampere",
      {.compute_capability = 86, .sm_count = 84, .boost_clock_mhz = 1'740, .l2_kib = 6'144},
      {.fp64 = 585, .fp32 = 37'400, .tf32 = 74'800, .fp16 = 149'700, .int8 = 299'300},
      {.mem_mib = 46'068, .mem_mb_s = 696'000, .pcie_mb_s = kPcie4x16, .nvlink_mb_s = 112'500, .tdp_w = 300},
      {.spec = "NVIDIA A40 data sheet (2021); rates without sparsity", .chip = kGa102WhitePaper});
  Add(types, "a10", "NVIDIA A10", "Ampere",
      {.compute_capability = 86, .sm_count = 72, .boost_clock_mhz = 1'695, .l2_kib = 6'144},
      {.fp64 = 488, .fp32 = 31'200, .tf32 = 62'500, .fp16 = 125'000, .int8 = 250'000},
      {.mem_mib = 23'028, .mem_mb_s = 600'000, .pcie_mb_s = kPcie4x16, .tdp_w = 150},
      {.spec = "NVIDIA A10 data sheet (2021); rates without sparsity",
       .chip = "NVIDIA A10 product brief (2021): GA102"});
  // Amazon's variant: more SMs than A10, tensor cores that sum in fp32 at half rate.
  Add(types, "a10g", "NVIDIA A10G", "Ampere",
      {.compute_capability = 86, .sm_count = 80, .boost_clock_mhz = 1'710, .l2_kib = 6'144},
      {.fp64 = 547, .fp32 = 35'000, .tf32 = 35'000, .fp16 = 70'000, .int8 = 140'000},
      {.mem_mib = 23'028, .mem_mb_s = 600'000, .pcie_mb_s = kPcie4x16, .tdp_w = 300},
      {.spec = "NVIDIA A10G data sheet as published by AWS for G5 (2021); rates without sparsity",
       .chip = "CUDA device properties of an A10G (80 SMs, 6 MB L2); power limit as the driver reports it"});
  // One of the four GA107 of the board, which is what one GPU index names.
  Add(types, "a16", "NVIDIA A16 (one of four GA107)", "Ampere",
      {.compute_capability = 86, .sm_count = 10, .boost_clock_mhz = 1'755, .l2_kib = 2'048},
      {.fp64 = 70, .fp32 = 4'500, .tf32 = 9'000, .fp16 = 17'900, .int8 = 35'900},
      // tdp: 250 W / 4
      {.mem_mib = 15'356, .mem_mb_s = 200'000, .pcie_mb_s = kPcie4x16, .tdp_w = 62},
      {.spec = "NVIDIA A16 data sheet (2021), a quarter of the board; rates without sparsity",
       .chip = "NVIDIA A16 data sheet (2021): 4 x 1280 cores; clock = fp32 / cores / 2"});
  Add(types, "a2", "NVIDIA A2", "Ampere",
      {.compute_capability = 86, .sm_count = 10, .boost_clock_mhz = 1'770, .l2_kib = 2'048},
      {.fp64 = 71, .fp32 = 4'500, .tf32 = 9'000, .fp16 = 18'000, .int8 = 36'000},
      {.mem_mib = 15'356, .mem_mb_s = 200'000, .pcie_mb_s = kPcie4x8, .tdp_w = 60},
      {.spec = "NVIDIA A2 data sheet (2021); rates without sparsity", .chip = "NVIDIA A2 product brief (2021): GA107"});
}

void AppendDesktopGa10x(std::vector<GpuType>& types) {
  Add(types, "rtx-a6000", "NVIDIA RTX A6000", "Ampere",
      {.compute_capability = 86, .sm_count = 84, .boost_clock_mhz = 1'800, .l2_kib = 6'144},
      {.fp64 = 605, .fp32 = 38'700, .tf32 = 77'400, .fp16 = 154'800, .int8 = 309'700},
      {.mem_mib = 49'140, .mem_mb_s = 768'000, .pcie_mb_s = kPcie4x16, .nvlink_mb_s = 112'500, .tdp_w = 300},
      {.spec = kGa102WhitePaper, .chip = kGa102WhitePaper}, {"a6000"});
  // GeForce tensor cores sum in fp32 at half rate.
  Add(types, "rtx-3090", "NVIDIA GeForce RTX 3090", "Ampere",
      {.compute_capability = 86, .sm_count = 82, .boost_clock_mhz = 1'695, .l2_kib = 6'144},
      {.fp64 = 556, .fp32 = 35'600, .tf32 = 35'600, .fp16 = 71'000, .int8 = 284'000},
      {.mem_mib = 24 * kMibPerGib, .mem_mb_s = 936'000, .pcie_mb_s = kPcie4x16, .nvlink_mb_s = 112'500, .tdp_w = 350},
      {.spec = kGa102WhitePaper, .chip = kGa102WhitePaper}, {"3090"});
  GpuType& ti =
      Like(types, "rtx-3090", "rtx-3090-ti", "NVIDIA GeForce RTX 3090 Ti",
           "NVIDIA GeForce RTX 3090 Ti product page (2022): 10,752 cores, 24 GB; rates = units x boost clock");
  Rescale(ti, 84, 1'860);
  ti.mem_bandwidth_mb_s = 1'008'000;
  ti.mem_mib = 24'564;
  ti.tdp_w = 450;
  GpuType& a5000 = Like(types, "rtx-a6000", "rtx-a5000", "NVIDIA RTX A5000",
                        "NVIDIA RTX A5000 data sheet (2021): 8,192 cores, 27.8 TFLOP/s; rates = units x boost clock");
  Rescale(a5000, 64, 1'695);
  a5000.mem_mib = 24'564;
  a5000.tdp_w = 230;
  GpuType& a4000 = Like(types, "rtx-a6000", "rtx-a4000", "NVIDIA RTX A4000",
                        "NVIDIA RTX A4000 data sheet (2021): 6,144 cores, 19.2 TFLOP/s; rates = units x boost clock");
  Rescale(a4000, 48, 1'560);
  a4000.mem_mib = 16'376;
  a4000.mem_bandwidth_mb_s = 448'000;
  a4000.l2_kib = 4'096;
  a4000.nvlink_mb_s = 0;
  a4000.tdp_w = 140;
}

}  // namespace

void AppendAmpere(std::vector<GpuType>& types) {
  AppendGa100(types);
  AppendServerGa10x(types);
  AppendDesktopGa10x(types);
}

}  // namespace horus
