// SPDX-License-Identifier: Apache-2.0
// Data sheets of Volta and Turing: tensor cores for fp16, no bf16, no MIG.
#include <utility>

#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kV100DataSheet[] = "NVIDIA V100 data sheet (2020); int8 = 4 x fp32 (dot product of four)";
constexpr char kVoltaWhitePaper[] = "NVIDIA Tesla V100 architecture white paper WP-08608 (2017)";
constexpr char kTuringWhitePaper[] = "NVIDIA Turing architecture white paper WP-09183 (2018)";

// What the four V100 boards share.
GpuType V100() {
  return {
      .architecture = "Volta",
      .compute_capability = 70,
      .sm_count = 80,
      .mem_bandwidth_mb_s = 900'000,
      .l2_kib = 6'144,
      .pcie_mb_s = kPcie3x16,
      .spec_source = kV100DataSheet,
      .chip_source = kVoltaWhitePaper,
  };
}

GpuType V100Pcie() {
  GpuType type = V100();
  type.boost_clock_mhz = 1'380;
  type.fp64_gflops = 7'000;
  type.fp32_gflops = 14'000;
  type.fp16_gflops = 112'000;
  type.int8_gops = 56'000;
  type.tdp_w = 250;
  return type;
}

GpuType V100Sxm2() {
  GpuType type = V100();
  type.boost_clock_mhz = 1'530;
  type.fp64_gflops = 7'800;
  type.fp32_gflops = 15'700;
  type.fp16_gflops = 125'000;
  type.int8_gops = 62'800;
  type.nvlink_mb_s = 300'000;
  type.tdp_w = 300;
  return type;
}

GpuType Sized(GpuType type, const char* name, const char* display_name, int64_t mem_gib,
              std::vector<std::string> aliases) {
  type.name = name;
  type.display_name = display_name;
  type.mem_mib = mem_gib * kMibPerGib;
  type.aliases = std::move(aliases);
  return type;
}

void AppendVolta(std::vector<GpuType>& types) {
  types.push_back(Sized(V100Pcie(), "v100-pcie-16gb", "NVIDIA V100 PCIe 16 GB", 16, {"v100-pcie"}));
  types.push_back(Sized(V100Pcie(), "v100-pcie-32gb", "NVIDIA V100 PCIe 32 GB", 32, {}));
  // "V100M16" and "V100M32" are the names of Alibaba's openb trace, which does not tell PCIe from SXM2.
  types.push_back(
      Sized(V100Sxm2(), "v100-sxm2-16gb", "NVIDIA V100 SXM2 16 GB", 16, {"v100", "v100-16gb", "v100-sxm2", "v100m16"}));
  types.push_back(Sized(V100Sxm2(), "v100-sxm2-32gb", "NVIDIA V100 SXM2 32 GB", 32, {"v100-32gb", "v100m32"}));
  types.push_back({
      .name = "v100s-pcie-32gb",
      .display_name = "NVIDIA V100S PCIe 32 GB",
      .architecture = "Volta",
      .compute_capability = 70,
      .sm_count = 80,
      .boost_clock_mhz = 1'597,
      .fp64_gflops = 8'200,
      .fp32_gflops = 16'400,
      .fp16_gflops = 130'000,
      .int8_gops = 65'600,
      .mem_mib = 32 * kMibPerGib,
      .mem_bandwidth_mb_s = 1'134'000,
      .l2_kib = 6'144,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 250,
      .aliases = {"v100s"},
      .spec_source = kV100DataSheet,
      .chip_source = kVoltaWhitePaper,
  });
  types.push_back({
      .name = "titan-v",
      .display_name = "NVIDIA TITAN V",
      .architecture = "Volta",
      .compute_capability = 70,
      .sm_count = 80,
      .boost_clock_mhz = 1'455,
      .fp64_gflops = 7'450,
      .fp32_gflops = 14'900,
      .fp16_gflops = 110'000,
      .int8_gops = 59'600,  // dot product of four: 4 x fp32
      .mem_mib = 12 * kMibPerGib,
      .mem_bandwidth_mb_s = 652'800,
      .l2_kib = 4'608,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 250,
      .spec_source = "NVIDIA TITAN V product page (2017); fp32 and fp64 = cores x boost clock",
      .chip_source = kVoltaWhitePaper,
  });
}

}  // namespace

void AppendVoltaAndTuring(std::vector<GpuType>& types) {
  AppendVolta(types);
  types.push_back({
      .name = "t4",
      .display_name = "NVIDIA T4",
      .architecture = "Turing",
      .compute_capability = 75,
      .sm_count = 40,
      .boost_clock_mhz = 1'590,
      .fp64_gflops = 254,  // 1/32 of fp32
      .fp32_gflops = 8'100,
      .fp16_gflops = 65'000,
      .int8_gops = 130'000,
      .mem_mib = 16 * kMibPerGib,
      .mem_bandwidth_mb_s = 320'000,
      .l2_kib = 4'096,
      .pcie_mb_s = kPcie3x16,
      .tdp_w = 70,
      .spec_source = "NVIDIA T4 data sheet (2019)",
      .chip_source = kTuringWhitePaper,
  });
  // Reference board (not Founders Edition). GeForce tensor cores sum in fp32 at half rate.
  types.push_back({
      .name = "rtx-2080-ti",
      .display_name = "NVIDIA GeForce RTX 2080 Ti",
      .architecture = "Turing",
      .compute_capability = 75,
      .sm_count = 68,
      .boost_clock_mhz = 1'545,
      .fp64_gflops = 420,  // 1/32 of fp32
      .fp32_gflops = 13'400,
      .fp16_gflops = 53'800,
      .int8_gops = 215'200,
      .mem_mib = 11 * kMibPerGib,
      .mem_bandwidth_mb_s = 616'000,
      .l2_kib = 5'632,
      .pcie_mb_s = kPcie3x16,
      .nvlink_mb_s = 100'000,
      .tdp_w = 250,
      .aliases = {"2080-ti", "2080ti", "rtx-2080ti"},
      .spec_source = kTuringWhitePaper,
      .chip_source = kTuringWhitePaper,
  });
  types.push_back({
      .name = "rtx-8000",
      .display_name = "NVIDIA Quadro RTX 8000",
      .architecture = "Turing",
      .compute_capability = 75,
      .sm_count = 72,
      .boost_clock_mhz = 1'770,
      .fp64_gflops = 510,  // 1/32 of fp32
      .fp32_gflops = 16'300,
      .fp16_gflops = 130'500,
      .int8_gops = 261'000,
      .mem_mib = 48 * kMibPerGib,
      .mem_bandwidth_mb_s = 672'000,
      .l2_kib = 6'144,
      .pcie_mb_s = kPcie3x16,
      .nvlink_mb_s = 100'000,
      .tdp_w = 260,
      .spec_source = "NVIDIA Turing architecture white paper WP-09183 (2018): Quadro RTX 6000 with 48 GB",
      .chip_source = kTuringWhitePaper,
  });
}

}  // namespace horus
