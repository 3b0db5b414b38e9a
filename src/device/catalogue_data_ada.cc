// SPDX-License-Identifier: Apache-2.0
// Data sheets of Ada Lovelace: fp8 tensor cores, no NVLink, no MIG.
#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kAdaWhitePaper[] = "NVIDIA Ada GPU architecture white paper v2 (2023)";

void AppendServerAda(std::vector<GpuType>& types) {
  types.push_back({
      .name = "l4",
      .display_name = "NVIDIA L4",
      .architecture = "Ada",
      .compute_capability = 89,
      .sm_count = 58,
      .boost_clock_mhz = 2'040,
      .fp64_gflops = 473,  // 1/64 of fp32
      .fp32_gflops = 30'300,
      .tf32_gflops = 60'000,
      .fp16_gflops = 121'000,
      .bf16_gflops = 121'000,
      .fp8_gflops = 242'500,
      .int8_gops = 242'500,
      .mem_mib = 24 * kMibPerGib,
      .mem_bandwidth_mb_s = 300'000,
      .l2_kib = 49'152,
      .pcie_mb_s = kPcie4x16,
      .tdp_w = 72,
      .spec_source = "NVIDIA L4 data sheet (2023), halved where it states rates with sparsity",
      .chip_source = "NVIDIA L4 product brief (2023): AD104; L2 as CUDA device properties report it",
  });
  // The data sheet's tensor rates are half of what the chip's clock would give; L40S has the full rate.
  types.push_back({
      .name = "l40",
      .display_name = "NVIDIA L40",
      .architecture = "Ada",
      .compute_capability = 89,
      .sm_count = 142,
      .boost_clock_mhz = 2'490,
      .fp64_gflops = 1'414,  // 1/64 of fp32
      .fp32_gflops = 90'500,
      .tf32_gflops = 90'500,
      .fp16_gflops = 181'050,
      .bf16_gflops = 181'050,
      .fp8_gflops = 362'000,
      .int8_gops = 362'000,
      .mem_mib = 48 * kMibPerGib,
      .mem_bandwidth_mb_s = 864'000,
      .l2_kib = 98'304,
      .pcie_mb_s = kPcie4x16,
      .tdp_w = 300,
      .spec_source = "NVIDIA L40 data sheet (2023); rates without sparsity",
      .chip_source = kAdaWhitePaper,
  });
  types.push_back({
      .name = "l40s",
      .display_name = "NVIDIA L40S",
      .architecture = "Ada",
      .compute_capability = 89,
      .sm_count = 142,
      .boost_clock_mhz = 2'520,
      .fp64_gflops = 1'431,  // 1/64 of fp32
      .fp32_gflops = 91'600,
      .tf32_gflops = 183'000,
      .fp16_gflops = 362'050,
      .bf16_gflops = 362'050,
      .fp8_gflops = 733'000,
      .int8_gops = 733'000,
      .mem_mib = 48 * kMibPerGib,
      .mem_bandwidth_mb_s = 864'000,
      .l2_kib = 98'304,
      .pcie_mb_s = kPcie4x16,
      .tdp_w = 350,
      .spec_source = "NVIDIA L40S data sheet (2023); rates without sparsity",
      .chip_source = kAdaWhitePaper,
  });
}

void AppendDesktopAda(std::vector<GpuType>& types) {
  // GeForce tensor cores sum in fp32 at half rate.
  types.push_back({
      .name = "rtx-4090",
      .display_name = "NVIDIA GeForce RTX 4090",
      .architecture = "Ada",
      .compute_capability = 89,
      .sm_count = 128,
      .boost_clock_mhz = 2'520,
      .fp64_gflops = 1'290,  // 1/64 of fp32
      .fp32_gflops = 82'600,
      .tf32_gflops = 82'600,
      .fp16_gflops = 165'200,
      .bf16_gflops = 165'200,
      .fp8_gflops = 330'300,
      .int8_gops = 660'600,
      .mem_mib = 24 * kMibPerGib,
      .mem_bandwidth_mb_s = 1'008'000,
      .l2_kib = 73'728,
      .pcie_mb_s = kPcie4x16,
      .tdp_w = 450,
      .aliases = {"4090"},
      .spec_source = kAdaWhitePaper,
      .chip_source = kAdaWhitePaper,
  });
  types.push_back({
      .name = "rtx-6000-ada",
      .display_name = "NVIDIA RTX 6000 Ada Generation",
      .architecture = "Ada",
      .compute_capability = 89,
      .sm_count = 142,
      .boost_clock_mhz = 2'505,
      .fp64_gflops = 1'423,  // 1/64 of fp32
      .fp32_gflops = 91'100,
      .tf32_gflops = 182'100,
      .fp16_gflops = 364'200,
      .bf16_gflops = 364'200,
      .fp8_gflops = 728'500,
      .int8_gops = 728'500,
      .mem_mib = 48 * kMibPerGib,
      .mem_bandwidth_mb_s = 960'000,
      .l2_kib = 98'304,
      .pcie_mb_s = kPcie4x16,
      .tdp_w = 300,
      .aliases = {"rtx-6000-ada-generation"},
      .spec_source = kAdaWhitePaper,
      .chip_source = kAdaWhitePaper,
  });
}

}  // namespace

void AppendAda(std::vector<GpuType>& types) {
  AppendServerAda(types);
  AppendDesktopAda(types);
}

}  // namespace horus
