// SPDX-License-Identifier: Apache-2.0
// Data sheets of Kepler, Maxwell and Pascal: no tensor cores, no MIG.
#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kKeplerWhitePaper[] = "NVIDIA Kepler GK110/210 white paper (2014)";
constexpr char kGp100WhitePaper[] = "NVIDIA Tesla P100 white paper WP-08019 (2016)";

}  // namespace

void AppendKeplerToPascal(std::vector<GpuType>& types) {
  // One of the two GK210 of the board, which is what one GPU index names: half of the data sheet's figures.
  types.push_back({
      .name = "k80",
      .display_name = "NVIDIA Tesla K80 (one of two GK210)",
      .architecture = "Kepler",
      .compute_capability = 37,
      .sm_count = 13,
      .boost_clock_mhz = 875,
      .fp64_gflops = 1'455,
      .fp32_gflops = 4'365,
      .fp16_gflops = 4'365,
      .mem_mib = 12 * kMibPerGib,
      .mem_bandwidth_mb_s = 240'000,
      .l2_kib = 1'536,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 150,
      .spec_source = "NVIDIA Tesla K80 data sheet (2014), halved: 8.73 / 2.91 TFLOP/s, 24 GB, 480 GB/s, 300 W a board",
      .chip_source = kKeplerWhitePaper,
  });
  types.push_back({
      .name = "m60",
      .display_name = "NVIDIA Tesla M60 (one of two GM204)",
      .architecture = "Maxwell",
      .compute_capability = 52,
      .sm_count = 16,
      .boost_clock_mhz = 1'178,
      .fp64_gflops = 151,  // 1/32 of fp32
      .fp32_gflops = 4'825,
      .fp16_gflops = 4'825,
      .mem_mib = 8 * kMibPerGib,
      .mem_bandwidth_mb_s = 160'000,
      .l2_kib = 2'048,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 150,
      .spec_source = "NVIDIA Tesla M60 board specification (2016), halved",
      .chip_source = "NVIDIA GeForce GTX 980 white paper (2014): GM204; clock from the board specification",
  });
  types.push_back({
      .name = "p4",
      .display_name = "NVIDIA Tesla P4",
      .architecture = "Pascal",
      .compute_capability = 61,
      .sm_count = 20,
      .boost_clock_mhz = 1'063,
      .fp64_gflops = 170,  // 1/32 of fp32
      .fp32_gflops = 5'500,
      .fp16_gflops = 5'500,
      .int8_gops = 22'000,
      .mem_mib = 8 * kMibPerGib,
      .mem_bandwidth_mb_s = 192'000,
      .l2_kib = 2'048,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 75,
      .spec_source = "NVIDIA Tesla P4 data sheet (2016)",
      .chip_source = "NVIDIA GeForce GTX 1080 white paper (2016): GP104; clock from board specification",
  });
  types.push_back({
      .name = "p40",
      .display_name = "NVIDIA Tesla P40",
      .architecture = "Pascal",
      .compute_capability = 61,
      .sm_count = 30,
      .boost_clock_mhz = 1'531,
      .fp64_gflops = 367,  // 1/32 of fp32
      .fp32_gflops = 12'000,
      .fp16_gflops = 12'000,
      .int8_gops = 47'000,
      .mem_mib = 24 * kMibPerGib,
      .mem_bandwidth_mb_s = 346'000,
      .l2_kib = 3'072,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 250,
      .spec_source = "NVIDIA Tesla P40 data sheet (2016)",
      .chip_source = "NVIDIA Tesla P40 board specification (2016): GP102",
  });
  types.push_back({
      .name = "p100-pcie-16gb",
      .display_name = "NVIDIA Tesla P100 PCIe 16 GB",
      .architecture = "Pascal",
      .compute_capability = 60,
      .sm_count = 56,
      .boost_clock_mhz = 1'303,
      .fp64_gflops = 4'700,
      .fp32_gflops = 9'300,
      .fp16_gflops = 18'700,  // packed fp16 arithmetic, fp16 sums
      .mem_mib = 16 * kMibPerGib,
      .mem_bandwidth_mb_s = 732'000,
      .l2_kib = 4'096,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 250,
      .aliases = {"p100", "p100-pcie", "p100-16gb"},
      .spec_source = "NVIDIA Tesla P100 PCIe data sheet (2016)",
      .chip_source = kGp100WhitePaper,
  });
  types.push_back({
      .name = "p100-sxm2-16gb",
      .display_name = "NVIDIA Tesla P100 SXM2 16 GB",
      .architecture = "Pascal",
      .compute_capability = 60,
      .sm_count = 56,
      .boost_clock_mhz = 1'480,
      .fp64_gflops = 5'300,
      .fp32_gflops = 10'600,
      .fp16_gflops = 21'200,  // packed fp16 arithmetic, fp16 sums
      .mem_mib = 16 * kMibPerGib,
      .mem_bandwidth_mb_s = 732'000,
      .l2_kib = 4'096,
      .pcie_mb_s = kPcie3x16,
      .nvlink_mb_s = 160'000,
      .tdp_w = 300,
      .aliases = {"p100-sxm2"},
      .spec_source = "NVIDIA Tesla P100 data sheet (2016)",
      .chip_source = kGp100WhitePaper,
  });
  types.push_back({
      .name = "gtx-1080-ti",
      .display_name = "NVIDIA GeForce GTX 1080 Ti",
      .architecture = "Pascal",
      .compute_capability = 61,
      .sm_count = 28,
      .boost_clock_mhz = 1'582,
      .fp64_gflops = 354,  // 1/32 of fp32
      .fp32_gflops = 11'340,
      .fp16_gflops = 11'340,
      .int8_gops = 45'360,  // dot product of four: 4 x fp32
      .mem_mib = 11 * kMibPerGib,
      .mem_bandwidth_mb_s = 484'000,
      .l2_kib = 2'816,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 250,
      .spec_source = "NVIDIA GeForce GTX 1080 Ti product page (2017); rates = cores x boost clock",
      .chip_source = "NVIDIA Turing architecture white paper WP-09183 (2018), appendix: GP102",
  });
  types.push_back({
      .name = "titan-xp",
      .display_name = "NVIDIA TITAN Xp",
      .architecture = "Pascal",
      .compute_capability = 61,
      .sm_count = 30,
      .boost_clock_mhz = 1'582,
      .fp64_gflops = 380,  // 1/32 of fp32
      .fp32_gflops = 12'150,
      .fp16_gflops = 12'150,
      .int8_gops = 48'600,  // dot product of four: 4 x fp32
      .mem_mib = 12 * kMibPerGib,
      .mem_bandwidth_mb_s = 547'600,
      .l2_kib = 3'072,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 250,
      .spec_source = "NVIDIA TITAN Xp product page (2017); rates = cores x boost clock",
      .chip_source = "NVIDIA TITAN Xp product page (2017): 3840 cores of GP102",
  });
}

}  // namespace horus
