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
  Add(types, "k80", "NVIDIA Tesla K80 (one of two GK210)", "Kepler",
      {.compute_capability = 37, .sm_count = 13, .boost_clock_mhz = 875, .l2_kib = 1'536},
      {.fp64 = 1'455, .fp32 = 4'365, .fp16 = 4'365},
      {.mem_mib = 11'441, .mem_mb_s = 240'000, .pcie_mb_s = kPcie3x16, .tdp_w = 150},
      {.spec = "NVIDIA Tesla K80 data sheet (2014), halved: 8.73 / 2.91 TFLOP/s, 24 GB, 480 GB/s, 300 W a board",
       .chip = kKeplerWhitePaper});
  Add(types, "m60", "NVIDIA Tesla M60 (one of two GM204)", "Maxwell",
      {.compute_capability = 52, .sm_count = 16, .boost_clock_mhz = 1'178, .l2_kib = 2'048},
      {.fp64 = 151, .fp32 = 4'825, .fp16 = 4'825},
      {.mem_mib = 7'680, .mem_mb_s = 160'000, .pcie_mb_s = kPcie3x16, .tdp_w = 150},
      {.spec = "NVIDIA Tesla M60 board specification (2016), halved",
       .chip = "NVIDIA GeForce GTX 980 white paper (2014): GM204; clock from the board specification"});
  Add(types, "p4", "NVIDIA Tesla P4", "Pascal",
      {.compute_capability = 61, .sm_count = 20, .boost_clock_mhz = 1'063, .l2_kib = 2'048},
      {.fp64 = 170, .fp32 = 5'500, .fp16 = 5'500, .int8 = 22'000},
      {.mem_mib = 7'680, .mem_mb_s = 192'000, .pcie_mb_s = kPcie3x16, .tdp_w = 75},
      {.spec = "NVIDIA Tesla P4 data sheet (2016)",
       .chip = "NVIDIA GeForce GTX 1080 white paper (2016): GP104; clock from board specification"});
  Add(types, "p40", "NVIDIA Tesla P40", "Pascal",
      {.compute_capability = 61, .sm_count = 30, .boost_clock_mhz = 1'531, .l2_kib = 3'072},
      {.fp64 = 367, .fp32 = 12'000, .fp16 = 12'000, .int8 = 47'000},
      {.mem_mib = 23'040, .mem_mb_s = 346'000, .pcie_mb_s = kPcie3x16, .tdp_w = 250},
      {.spec = "NVIDIA Tesla P40 data sheet (2016)", .chip = "NVIDIA Tesla P40 board specification (2016): GP102"});
  Add(types, "p100-pcie-16gb", "NVIDIA Tesla P100 PCIe 16 GB", "Pascal",
      {.compute_capability = 60, .sm_count = 56, .boost_clock_mhz = 1'303, .l2_kib = 4'096},
      // fp16: packed fp16 arithmetic, fp16 sums
      {.fp64 = 4'700, .fp32 = 9'300, .fp16 = 18'700},
      {.mem_mib = 16 * kMibPerGib, .mem_mb_s = 732'000, .pcie_mb_s = kPcie3x16, .tdp_w = 250},
      {.spec = "NVIDIA Tesla P100 PCIe data sheet (2016)", .chip = kGp100WhitePaper},
      {"p100", "p100-pcie", "p100-16gb"});
  GpuType& with_12 = Like(types, "p100-pcie-16gb", "p100-pcie-12gb", "NVIDIA Tesla P100 PCIe 12 GB",
                          "NVIDIA Tesla P100 PCIe data sheet (2016), 12 GB");
  with_12.mem_mib = 12 * kMibPerGib;
  with_12.mem_bandwidth_mb_s = 549'000;
  Add(types, "p100-sxm2-16gb", "NVIDIA Tesla P100 SXM2 16 GB", "Pascal",
      {.compute_capability = 60, .sm_count = 56, .boost_clock_mhz = 1'480, .l2_kib = 4'096},
      // fp16: packed fp16 arithmetic, fp16 sums
      {.fp64 = 5'300, .fp32 = 10'600, .fp16 = 21'200},
      {.mem_mib = 16 * kMibPerGib, .mem_mb_s = 732'000, .pcie_mb_s = kPcie3x16, .nvlink_mb_s = 160'000, .tdp_w = 300},
      {.spec = "NVIDIA Tesla P100 data sheet (2016)", .chip = kGp100WhitePaper}, {"p100-sxm2"});
  Add(types, "gtx-1080-ti", "NVIDIA GeForce GTX 1080 Ti", "Pascal",
      {.compute_capability = 61, .sm_count = 28, .boost_clock_mhz = 1'582, .l2_kib = 2'816},
      {.fp64 = 354, .fp32 = 11'340, .fp16 = 11'340, .int8 = 45'360},
      {.mem_mib = 11 * kMibPerGib, .mem_mb_s = 484'000, .pcie_mb_s = kPcie3x16, .tdp_w = 250},
      {.spec = "NVIDIA GeForce GTX 1080 Ti product page (2017); rates = cores x boost clock",
       .chip = "NVIDIA Turing architecture white paper WP-09183 (2018), appendix: GP102"});
  Add(types, "titan-xp", "NVIDIA TITAN Xp", "Pascal",
      {.compute_capability = 61, .sm_count = 30, .boost_clock_mhz = 1'582, .l2_kib = 3'072},
      {.fp64 = 380, .fp32 = 12'150, .fp16 = 12'150, .int8 = 48'600},
      {.mem_mib = 12 * kMibPerGib, .mem_mb_s = 547'600, .pcie_mb_s = kPcie3x16, .tdp_w = 250},
      {.spec = "NVIDIA TITAN Xp product page (2017); rates = cores x boost clock",
       .chip = "NVIDIA TITAN Xp product page (2017): 3840 cores of GP102"});
}

}  // namespace horus
