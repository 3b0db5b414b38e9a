// SPDX-License-Identifier: Apache-2.0
// Data sheets of Volta and Turing: tensor cores for fp16, no bf16, no MIG.
#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kV100DataSheet[] = "NVIDIA V100 data sheet (2020); int8 = 4 x fp32 (dot product of four)";
constexpr char kVoltaWhitePaper[] = "NVIDIA Tesla V100 architecture white paper WP-08608 (2017)";
constexpr char kTuringWhitePaper[] = "NVIDIA Turing architecture white paper WP-09183 (2018)";

void AppendVolta(std::vector<GpuType>& types) {
  Add(types, "v100-pcie-16gb", "NVIDIA V100 PCIe 16 GB", "Volta",
      {.compute_capability = 70, .sm_count = 80, .boost_clock_mhz = 1'380, .l2_kib = 6'144},
      {.fp64 = 7'000, .fp32 = 14'000, .fp16 = 112'000, .int8 = 56'000},
      {.mem_mib = 16 * kMibPerGib, .mem_mb_s = 900'000, .pcie_mb_s = kPcie3x16, .tdp_w = 250},
      {.spec = kV100DataSheet, .chip = kVoltaWhitePaper}, {"v100-pcie"});
  Like(types, "v100-pcie-16gb", "v100-pcie-32gb", "NVIDIA V100 PCIe 32 GB", kV100DataSheet).mem_mib = 32 * kMibPerGib;
  // "V100M16" and "V100M32" are the names of Alibaba's openb trace, which does not tell PCIe from SXM2.
  Add(types, "v100-sxm2-16gb", "NVIDIA V100 SXM2 16 GB", "Volta",
      {.compute_capability = 70, .sm_count = 80, .boost_clock_mhz = 1'530, .l2_kib = 6'144},
      {.fp64 = 7'800, .fp32 = 15'700, .fp16 = 125'000, .int8 = 62'800},
      {.mem_mib = 16 * kMibPerGib, .mem_mb_s = 900'000, .pcie_mb_s = kPcie3x16, .nvlink_mb_s = 300'000, .tdp_w = 300},
      {.spec = kV100DataSheet, .chip = kVoltaWhitePaper}, {"v100", "v100-16gb", "v100-sxm2", "v100m16"});
  // DGX-2's SXM3 boards are sold with the same rates and 900 GB/s (DGX-2 data sheet, 2018: 2 PFLOP/s, 14.4 TB/s of 16).
  Like(types, "v100-sxm2-16gb", "v100-sxm2-32gb", "NVIDIA V100 SXM2 32 GB", kV100DataSheet,
       {"v100-32gb", "v100m32", "v100-sxm3-32gb", "v100-sxm3-32gb-h"})
      .mem_mib = 32 * kMibPerGib;
  Add(types, "v100s-pcie-32gb", "NVIDIA V100S PCIe 32 GB", "Volta",
      {.compute_capability = 70, .sm_count = 80, .boost_clock_mhz = 1'597, .l2_kib = 6'144},
      {.fp64 = 8'200, .fp32 = 16'400, .fp16 = 130'000, .int8 = 65'600},
      {.mem_mib = 32 * kMibPerGib, .mem_mb_s = 1'134'000, .pcie_mb_s = kPcie3x16, .tdp_w = 250},
      {.spec = kV100DataSheet, .chip = kVoltaWhitePaper}, {"v100s"});
  Add(types, "titan-v", "NVIDIA TITAN V", "Volta",
      {.compute_capability = 70, .sm_count = 80, .boost_clock_mhz = 1'455, .l2_kib = 4'608},
      {.fp64 = 7'450, .fp32 = 14'900, .fp16 = 110'000, .int8 = 59'600},
      {.mem_mib = 12 * kMibPerGib, .mem_mb_s = 652'800, .pcie_mb_s = kPcie3x16, .tdp_w = 250},
      {.spec = "NVIDIA TITAN V product page (2017); fp32 and fp64 = cores x boost clock", .chip = kVoltaWhitePaper});
}

}  // namespace

void AppendVoltaAndTuring(std::vector<GpuType>& types) {
  AppendVolta(types);
  Add(types, "t4", "NVIDIA T4", "Turing",
      {.compute_capability = 75, .sm_count = 40, .boost_clock_mhz = 1'590, .l2_kib = 4'096},
      {.fp64 = 254, .fp32 = 8'100, .fp16 = 65'000, .int8 = 130'000},
      {.mem_mib = 15'360, .mem_mb_s = 320'000, .pcie_mb_s = kPcie3x16, .tdp_w = 70},
      {.spec = "NVIDIA T4 data sheet (2019)", .chip = kTuringWhitePaper}, {"t4g"});
  // Reference board (not Founders Edition). GeForce tensor cores sum in fp32 at half rate.
  Add(types, "rtx-2080-ti", "NVIDIA GeForce RTX 2080 Ti", "Turing",
      {.compute_capability = 75, .sm_count = 68, .boost_clock_mhz = 1'545, .l2_kib = 5'632},
      {.fp64 = 420, .fp32 = 13'400, .fp16 = 53'800, .int8 = 215'200},
      {.mem_mib = 11 * kMibPerGib, .mem_mb_s = 616'000, .pcie_mb_s = kPcie3x16, .nvlink_mb_s = 100'000, .tdp_w = 250},
      {.spec = kTuringWhitePaper, .chip = kTuringWhitePaper}, {"2080-ti", "2080ti", "rtx-2080ti"});
  Add(types, "rtx-8000", "NVIDIA Quadro RTX 8000", "Turing",
      {.compute_capability = 75, .sm_count = 72, .boost_clock_mhz = 1'770, .l2_kib = 6'144},
      {.fp64 = 510, .fp32 = 16'300, .fp16 = 130'500, .int8 = 261'000},
      {.mem_mib = 48 * kMibPerGib, .mem_mb_s = 672'000, .pcie_mb_s = kPcie3x16, .nvlink_mb_s = 100'000, .tdp_w = 260},
      {.spec = "NVIDIA Turing architecture white paper WP-09183 (2018): Quadro RTX 6000 with 48 GB",
       .chip = kTuringWhitePaper});
  Like(types, "rtx-8000", "rtx-6000", "NVIDIA Quadro RTX 6000", kTuringWhitePaper).mem_mib = 24 * kMibPerGib;
  Like(types, "rtx-6000", "titan-rtx", "NVIDIA TITAN RTX",
       "NVIDIA TITAN RTX product page (2018): 72 SMs at 1770 MHz, 280 W; rates as Quadro RTX 6000")
      .tdp_w = 280;
}

}  // namespace horus
