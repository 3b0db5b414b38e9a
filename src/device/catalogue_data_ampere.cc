// SPDX-License-Identifier: Apache-2.0
// Data sheets of Ampere: bf16 and tf32 tensor cores everywhere, MIG on the GA100.
#include <utility>

#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kA100DataSheet[] = "NVIDIA A100 data sheet (2022); rates without sparsity";
constexpr char kGa100WhitePaper[] = "NVIDIA A100 architecture white paper (2020)";
constexpr char kGa102WhitePaper[] = "NVIDIA Ampere GA102 architecture white paper (2021)";
constexpr char kA100MigSource[] = "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB as NVML reports them";

// What the four A100 boards share.
GpuType A100() {
  return {
      .architecture = "Ampere",
      .compute_capability = 80,
      .sm_count = 108,
      .boost_clock_mhz = 1'410,
      .fp64_gflops = 9'700,
      .fp32_gflops = 19'500,
      .tf32_gflops = 156'000,
      .fp16_gflops = 312'000,
      .bf16_gflops = 312'000,
      .int8_gops = 624'000,
      .l2_kib = 40'960,
      .pcie_mb_s = kPcie4x16,
      .nvlink_mb_s = 600'000,
      .spec_source = kA100DataSheet,
      .chip_source = kGa100WhitePaper,
      .mig_source = kA100MigSource,
  };
}

GpuType A100With40(const char* name, const char* display_name, int64_t tdp_w, std::vector<std::string> aliases) {
  GpuType type = A100();
  type.name = name;
  type.display_name = display_name;
  type.mem_mib = 40 * kMibPerGib;
  type.mem_bandwidth_mb_s = 1'555'000;
  type.tdp_w = tdp_w;
  type.aliases = std::move(aliases);
  type.mig = {
      {.name = "1g.5gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 4'864, .max_instances = 7},
      {.name = "1g.10gb", .compute_slices = 1, .memory_slices = 2, .mem_mib = 9'856, .max_instances = 4},
      {.name = "2g.10gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 9'856, .max_instances = 3},
      {.name = "3g.20gb", .compute_slices = 3, .memory_slices = 4, .mem_mib = 19'968, .max_instances = 2},
      {.name = "4g.20gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 19'968, .max_instances = 1},
      {.name = "7g.40gb", .compute_slices = 7, .memory_slices = 8, .mem_mib = 40'192, .max_instances = 1},
  };
  return type;
}

GpuType A100With80(const char* name, const char* display_name, int64_t bandwidth_mb_s, int64_t tdp_w,
                   std::vector<std::string> aliases) {
  GpuType type = A100();
  type.name = name;
  type.display_name = display_name;
  type.mem_mib = 80 * kMibPerGib;
  type.mem_bandwidth_mb_s = bandwidth_mb_s;
  type.tdp_w = tdp_w;
  type.aliases = std::move(aliases);
  type.mig = {
      {.name = "1g.10gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 9'856, .max_instances = 7},
      {.name = "1g.20gb", .compute_slices = 1, .memory_slices = 2, .mem_mib = 19'968, .max_instances = 4},
      {.name = "2g.20gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 19'968, .max_instances = 3},
      {.name = "3g.40gb", .compute_slices = 3, .memory_slices = 4, .mem_mib = 40'192, .max_instances = 2},
      {.name = "4g.40gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 40'192, .max_instances = 1},
      {.name = "7g.80gb", .compute_slices = 7, .memory_slices = 8, .mem_mib = 80'384, .max_instances = 1},
  };
  return type;
}

void AppendGa100(std::vector<GpuType>& types) {
  types.push_back(A100With40("a100-40gb", "NVIDIA A100 SXM4 40 GB", 400, {"a100", "a100-sxm4-40gb", "a100-sxm4"}));
  types.push_back(A100With80("a100-80gb", "NVIDIA A100 SXM4 80 GB", 2'039'000, 400, {"a100-sxm4-80gb"}));
  types.push_back(A100With40("a100-pcie-40gb", "NVIDIA A100 PCIe 40 GB", 250, {"a100-pcie"}));
  types.push_back(A100With80("a100-pcie-80gb", "NVIDIA A100 PCIe 80 GB", 1'935'000, 300, {"a100-80gb-pcie"}));
  // For China: slower NVLink, else the same.
  for (const bool sxm : {true, false}) {
    GpuType a800 = types[types.size() - (sxm ? 3 : 2)];
    a800.name = sxm ? "a800-80gb" : "a800-pcie-80gb";
    a800.display_name = sxm ? "NVIDIA A800 SXM4 80 GB" : "NVIDIA A800 PCIe 80 GB";
    a800.nvlink_mb_s = 400'000;
    a800.aliases =
        sxm ? std::vector<std::string>{"a800", "a800-sxm4-80gb"} : std::vector<std::string>{"a800-80gb-pcie"};
    a800.spec_source = "NVIDIA A800 data sheet (2022): NVLink; the rest as A100";
    types.push_back(std::move(a800));
  }
  types.push_back({
      .name = "a30",
      .display_name = "NVIDIA A30",
      .architecture = "Ampere",
      .compute_capability = 80,
      .sm_count = 56,
      .boost_clock_mhz = 1'440,
      .fp64_gflops = 5'200,
      .fp32_gflops = 10'300,
      .tf32_gflops = 82'000,
      .fp16_gflops = 165'000,
      .bf16_gflops = 165'000,
      .int8_gops = 330'000,
      .mem_mib = 24 * kMibPerGib,
      .mem_bandwidth_mb_s = 933'000,
      .l2_kib = 24'576,
      .pcie_mb_s = kPcie4x16,
      .nvlink_mb_s = 200'000,
      .tdp_w = 165,
      .mig =
          {
              {.name = "1g.6gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 5'952, .max_instances = 4},
              {.name = "2g.12gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 11'968, .max_instances = 2},
              {.name = "4g.24gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 24'000, .max_instances = 1},
          },
      .spec_source = "NVIDIA A30 data sheet (2021); rates without sparsity",
      .chip_source = "NVIDIA A30 product brief (2021): GA100",
      .mig_source = kMigGuide,
  });
}

void AppendServerGa10x(std::vector<GpuType>& types) {
  types.push_back({
      .name = "a40",
      .display_name = "NVIDIA A40",
      .architecture = "Ampere",
      .compute_capability = 86,
      .sm_count = 84,
      .boost_clock_mhz = 1'740,
      .fp64_gflops = 585,  // 1/64 of fp32
      .fp32_gflops = 37'400,
      .tf32_gflops = 74'800,
      .fp16_gflops = 149'700,
      .bf16_gflops = 149'700,
      .int8_gops = 299'300,
      .mem_mib = 48 * kMibPerGib,
      .mem_bandwidth_mb_s = 696'000,
      .l2_kib = 6'144,
      .pcie_mb_s = kPcie4x16,
      .nvlink_mb_s = 112'500,
      .tdp_w = 300,
      .spec_source = "NVIDIA A40 data sheet (2021); rates without sparsity",
      .chip_source = kGa102WhitePaper,
  });
  types.push_back({
      .name = "a10",
      .display_name = "NVIDIA A10",
      .architecture = "Ampere",
      .compute_capability = 86,
      .sm_count = 72,
      .boost_clock_mhz = 1'695,
      .fp64_gflops = 488,  // 1/64 of fp32
      .fp32_gflops = 31'200,
      .tf32_gflops = 62'500,
      .fp16_gflops = 125'000,
      .bf16_gflops = 125'000,
      .int8_gops = 250'000,
      .mem_mib = 24 * kMibPerGib,
      .mem_bandwidth_mb_s = 600'000,
      .l2_kib = 6'144,
      .pcie_mb_s = kPcie4x16,
      .tdp_w = 150,
      .spec_source = "NVIDIA A10 data sheet (2021); rates without sparsity",
      .chip_source = "NVIDIA A10 product brief (2021): GA102",
  });
  // Amazon's variant: more SMs than A10, tensor cores that sum in fp32 at half rate.
  types.push_back({
      .name = "a10g",
      .display_name = "NVIDIA A10G",
      .architecture = "Ampere",
      .compute_capability = 86,
      .sm_count = 80,
      .boost_clock_mhz = 1'710,
      .fp64_gflops = 547,  // 1/64 of fp32
      .fp32_gflops = 35'000,
      .tf32_gflops = 35'000,
      .fp16_gflops = 70'000,
      .bf16_gflops = 70'000,
      .int8_gops = 140'000,
      .mem_mib = 24 * kMibPerGib,
      .mem_bandwidth_mb_s = 600'000,
      .l2_kib = 6'144,
      .pcie_mb_s = kPcie4x16,
      .tdp_w = 300,
      .spec_source = "NVIDIA A10G data sheet as published by AWS for G5 (2021); rates without sparsity",
      .chip_source = "CUDA device properties of an A10G (80 SMs, 6 MB L2); power limit as the driver reports it",
  });
  // One of the four GA107 of the board, which is what one GPU index names.
  types.push_back({
      .name = "a16",
      .display_name = "NVIDIA A16 (one of four GA107)",
      .architecture = "Ampere",
      .compute_capability = 86,
      .sm_count = 10,
      .boost_clock_mhz = 1'755,
      .fp64_gflops = 70,  // 1/64 of fp32
      .fp32_gflops = 4'500,
      .tf32_gflops = 9'000,
      .fp16_gflops = 17'900,
      .bf16_gflops = 17'900,
      .int8_gops = 35'900,
      .mem_mib = 16 * kMibPerGib,
      .mem_bandwidth_mb_s = 200'000,
      .l2_kib = 2'048,
      .pcie_mb_s = kPcie4x16,
      .tdp_w = 62,  // 250 W / 4
      .spec_source = "NVIDIA A16 data sheet (2021), a quarter of the board; rates without sparsity",
      .chip_source = "NVIDIA A16 data sheet (2021): 4 x 1280 cores; clock = fp32 / cores / 2",
  });
  types.push_back({
      .name = "a2",
      .display_name = "NVIDIA A2",
      .architecture = "Ampere",
      .compute_capability = 86,
      .sm_count = 10,
      .boost_clock_mhz = 1'770,
      .fp64_gflops = 71,  // 1/64 of fp32
      .fp32_gflops = 4'500,
      .tf32_gflops = 9'000,
      .fp16_gflops = 18'000,
      .bf16_gflops = 18'000,
      .int8_gops = 36'000,
      .mem_mib = 16 * kMibPerGib,
      .mem_bandwidth_mb_s = 200'000,
      .l2_kib = 2'048,
      .pcie_mb_s = kPcie4x8,
      .tdp_w = 60,
      .spec_source = "NVIDIA A2 data sheet (2021); rates without sparsity",
      .chip_source = "NVIDIA A2 product brief (2021): GA107",
  });
}

void AppendDesktopGa10x(std::vector<GpuType>& types) {
  types.push_back({
      .name = "rtx-a6000",
      .display_name = "NVIDIA RTX A6000",
      .architecture = "Ampere",
      .compute_capability = 86,
      .sm_count = 84,
      .boost_clock_mhz = 1'800,
      .fp64_gflops = 605,  // 1/64 of fp32
      .fp32_gflops = 38'700,
      .tf32_gflops = 77'400,
      .fp16_gflops = 154'800,
      .bf16_gflops = 154'800,
      .int8_gops = 309'700,
      .mem_mib = 48 * kMibPerGib,
      .mem_bandwidth_mb_s = 768'000,
      .l2_kib = 6'144,
      .pcie_mb_s = kPcie4x16,
      .nvlink_mb_s = 112'500,
      .tdp_w = 300,
      .aliases = {"a6000"},
      .spec_source = kGa102WhitePaper,
      .chip_source = kGa102WhitePaper,
  });
  // GeForce tensor cores sum in fp32 at half rate.
  types.push_back({
      .name = "rtx-3090",
      .display_name = "NVIDIA GeForce RTX 3090",
      .architecture = "Ampere",
      .compute_capability = 86,
      .sm_count = 82,
      .boost_clock_mhz = 1'695,
      .fp64_gflops = 556,  // 1/64 of fp32
      .fp32_gflops = 35'600,
      .tf32_gflops = 35'600,
      .fp16_gflops = 71'000,
      .bf16_gflops = 71'000,
      .int8_gops = 284'000,
      .mem_mib = 24 * kMibPerGib,
      .mem_bandwidth_mb_s = 936'000,
      .l2_kib = 6'144,
      .pcie_mb_s = kPcie4x16,
      .nvlink_mb_s = 112'500,
      .tdp_w = 350,
      .aliases = {"3090"},
      .spec_source = kGa102WhitePaper,
      .chip_source = kGa102WhitePaper,
  });
}

}  // namespace

void AppendAmpere(std::vector<GpuType>& types) {
  AppendGa100(types);
  AppendServerGa10x(types);
  AppendDesktopGa10x(types);
}

}  // namespace horus
