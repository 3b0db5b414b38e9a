// SPDX-License-Identifier: Apache-2.0
// Data sheets of Hopper. Tensor rates are published at a lower clock than the others (H100 SXM: 1830, not 1980 MHz).
#include <utility>

#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kH100WhitePaper[] = "NVIDIA H100 Tensor Core GPU architecture white paper v1.04 (2023)";
constexpr char kMigAsListed[] =
    "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB from a published nvidia-smi mig -lgip listing";

std::vector<MigProfile> H100With80Mig() {
  return {
      {.name = "1g.10gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 9'984, .max_instances = 7},
      {.name = "1g.20gb", .compute_slices = 1, .memory_slices = 2, .mem_mib = 20'096, .max_instances = 4},
      {.name = "2g.20gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 20'096, .max_instances = 3},
      {.name = "3g.40gb", .compute_slices = 3, .memory_slices = 4, .mem_mib = 40'448, .max_instances = 2},
      {.name = "4g.40gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 40'448, .max_instances = 1},
      {.name = "7g.80gb", .compute_slices = 7, .memory_slices = 8, .mem_mib = 81'152, .max_instances = 1},
  };
}

void AppendH100(std::vector<GpuType>& types) {
  types.push_back({
      .name = "h100-sxm",
      .display_name = "NVIDIA H100 SXM5 80 GB",
      .architecture = "Hopper",
      .compute_capability = 90,
      .sm_count = 132,
      .boost_clock_mhz = 1'980,
      .fp64_gflops = 33'500,
      .fp32_gflops = 66'900,
      .tf32_gflops = 494'700,
      .fp16_gflops = 989'400,
      .bf16_gflops = 989'400,
      .fp8_gflops = 1'978'900,
      .int8_gops = 1'978'900,
      .mem_mib = 80 * kMibPerGib,
      .mem_bandwidth_mb_s = 3'352'000,
      .l2_kib = 51'200,
      .pcie_mb_s = kPcie5x16,
      .nvlink_mb_s = 900'000,
      .tdp_w = 700,
      .mig = H100With80Mig(),
      .aliases = {"h100", "h100-80gb", "h100-80gb-hbm3", "h100-mega-80gb", "h100-sxm5", "h100-sxm5-80gb"},
      .spec_source = kH100WhitePaper,
      .chip_source = kH100WhitePaper,
      .mig_source = kMigAsListed,
  });
  types.push_back({
      .name = "h100-pcie",
      .display_name = "NVIDIA H100 PCIe 80 GB",
      .architecture = "Hopper",
      .compute_capability = 90,
      .sm_count = 114,
      .boost_clock_mhz = 1'755,
      .fp64_gflops = 25'600,
      .fp32_gflops = 51'200,
      .tf32_gflops = 378'000,
      .fp16_gflops = 756'000,
      .bf16_gflops = 756'000,
      .fp8_gflops = 1'513'000,
      .int8_gops = 1'513'000,
      .mem_mib = 80 * kMibPerGib,
      .mem_bandwidth_mb_s = 2'039'000,
      .l2_kib = 51'200,
      .pcie_mb_s = kPcie5x16,
      .nvlink_mb_s = 600'000,
      .tdp_w = 350,
      .mig = H100With80Mig(),
      .aliases = {"h100-pcie-80gb", "h100-80gb-pcie"},
      .spec_source = kH100WhitePaper,
      .chip_source = kH100WhitePaper,
      .mig_source = kMigAsListed,
  });
  // One of the two boards that are sold as a bridged pair.
  types.push_back({
      .name = "h100-nvl",
      .display_name = "NVIDIA H100 NVL 94 GB",
      .architecture = "Hopper",
      .compute_capability = 90,
      .sm_count = 132,
      .boost_clock_mhz = 1'785,
      .fp64_gflops = 30'000,
      .fp32_gflops = 60'000,
      .tf32_gflops = 417'500,
      .fp16_gflops = 835'500,
      .bf16_gflops = 835'500,
      .fp8_gflops = 1'670'500,
      .int8_gops = 1'670'500,
      .mem_mib = 94 * kMibPerGib,
      .mem_bandwidth_mb_s = 3'938'000,
      .l2_kib = 51'200,
      .pcie_mb_s = kPcie5x16,
      .nvlink_mb_s = 600'000,
      .tdp_w = 400,
      .mig =
          {
              {.name = "1g.12gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 11'008, .max_instances = 7},
              {.name = "1g.24gb", .compute_slices = 1, .memory_slices = 2, .mem_mib = 22'144, .max_instances = 4},
              {.name = "2g.24gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 22'144, .max_instances = 3},
              {.name = "3g.47gb", .compute_slices = 3, .memory_slices = 4, .mem_mib = 47'488, .max_instances = 2},
              {.name = "4g.47gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 47'488, .max_instances = 1},
              {.name = "7g.94gb", .compute_slices = 7, .memory_slices = 8, .mem_mib = 95'360, .max_instances = 1},
          },
      .aliases = {"h100-nvl-94gb"},
      .spec_source = "NVIDIA H100 data sheet (2024), tensor rates halved to dense; H100 NVL product brief",
      .chip_source = "NVIDIA H100 NVL product brief (2024); L2 from the H100 white paper",
      .mig_source = kMigAsListed,
  });
}

}  // namespace

void AppendHopper(std::vector<GpuType>& types) {
  AppendH100(types);
  types.push_back({
      .name = "h200",
      .display_name = "NVIDIA H200 SXM5 141 GB",
      .architecture = "Hopper",
      .compute_capability = 90,
      .sm_count = 132,
      .boost_clock_mhz = 1'980,
      .fp64_gflops = 33'500,
      .fp32_gflops = 66'900,
      .tf32_gflops = 494'700,
      .fp16_gflops = 989'400,
      .bf16_gflops = 989'400,
      .fp8_gflops = 1'978'900,
      .int8_gops = 1'978'900,
      .mem_mib = 143'771,  // as the driver reports it: 141 GB is neither decimal nor binary
      .mem_bandwidth_mb_s = 4'800'000,
      .l2_kib = 61'440,
      .pcie_mb_s = kPcie5x16,
      .nvlink_mb_s = 900'000,
      .tdp_w = 700,
      .mig =
          {
              {.name = "1g.18gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 16'384, .max_instances = 7},
              {.name = "1g.35gb", .compute_slices = 1, .memory_slices = 2, .mem_mib = 33'024, .max_instances = 4},
              {.name = "2g.35gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 33'024, .max_instances = 3},
              {.name = "3g.71gb", .compute_slices = 3, .memory_slices = 4, .mem_mib = 71'168, .max_instances = 2},
              {.name = "4g.71gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 71'168, .max_instances = 1},
              {.name = "7g.141gb", .compute_slices = 7, .memory_slices = 8, .mem_mib = 143'104, .max_instances = 1},
          },
      .aliases = {"h200-sxm", "h200-sxm5", "h200-141gb", "h200-sxm5-141gb"},
      .spec_source = "NVIDIA H200 data sheet (2024), tensor rates halved to dense; memory as NVML reports it",
      .chip_source = "NVIDIA H100 white paper v1.04 (2023): same chip; L2 as CUDA device properties report it",
      .mig_source = kMigAsListed,
  });
  // One of two or four boards behind a bridge: the chip and rates of the H100 NVL, the memory of the H200.
  GpuType nvl = types.back();
  nvl.name = "h200-nvl";
  nvl.display_name = "NVIDIA H200 NVL 141 GB";
  nvl.boost_clock_mhz = 1'785;
  nvl.fp64_gflops = 30'000;
  nvl.fp32_gflops = 60'000;
  nvl.tf32_gflops = 417'500;
  nvl.fp16_gflops = 835'500;
  nvl.bf16_gflops = 835'500;
  nvl.fp8_gflops = 1'670'500;
  nvl.int8_gops = 1'670'500;
  nvl.tdp_w = 600;
  nvl.aliases = {"h200-nvl-141gb"};
  types.push_back(std::move(nvl));
  // The data sheet states 44 TFLOP/s of fp32, which 78 SMs reach at no published clock; cores x clock is used.
  types.push_back({
      .name = "h20",
      .display_name = "NVIDIA H20 96 GB",
      .architecture = "Hopper",
      .compute_capability = 90,
      .sm_count = 78,
      .boost_clock_mhz = 1'980,
      .fp64_gflops = 1'000,
      .fp32_gflops = 39'500,
      .tf32_gflops = 74'000,
      .fp16_gflops = 148'000,
      .bf16_gflops = 148'000,
      .fp8_gflops = 296'000,
      .int8_gops = 296'000,
      .mem_mib = 96 * kMibPerGib,
      .mem_bandwidth_mb_s = 4'000'000,
      .l2_kib = 61'440,
      .pcie_mb_s = kPcie5x16,
      .nvlink_mb_s = 900'000,
      .tdp_w = 400,
      .mig =
          {
              {.name = "1g.12gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 11'264, .max_instances = 7},
              {.name = "1g.24gb", .compute_slices = 1, .memory_slices = 2, .mem_mib = 23'552, .max_instances = 4},
              {.name = "2g.24gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 23'552, .max_instances = 3},
              {.name = "3g.48gb", .compute_slices = 3, .memory_slices = 4, .mem_mib = 47'616, .max_instances = 2},
              {.name = "4g.48gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 47'616, .max_instances = 1},
              {.name = "7g.96gb", .compute_slices = 7, .memory_slices = 8, .mem_mib = 95'232, .max_instances = 1},
          },
      .spec_source = "NVIDIA HGX H20 data sheet as reported by the press (2023); fp32 = cores x boost clock",
      .chip_source = "CUDA device properties of an H20 (78 SMs, 60 MB L2)",
      .mig_source = "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB as listed for the H100 96 GB of GH200",
  });
  // Its name counts the memory of the CPU. 700 W of the module's 1,000 are the GPU's: a chosen share.
  GpuType grace = types.back();
  grace.name = "gh200-96gb";
  grace.display_name = "NVIDIA GH200 480 GB (GPU with 96 GB)";
  grace.sm_count = 132;
  grace.fp64_gflops = 33'500;
  grace.fp32_gflops = 66'900;
  grace.tf32_gflops = 494'700;
  grace.fp16_gflops = 989'400;
  grace.bf16_gflops = 989'400;
  grace.fp8_gflops = 1'978'900;
  grace.int8_gops = 1'978'900;
  grace.pcie_mb_s = 450'000;  // NVLink-C2C
  grace.tdp_w = 700;
  grace.aliases = {"gh200", "gh200-480gb"};
  grace.spec_source = "NVIDIA GH200 data sheet (2024), 96 GB of HBM3, tensor rates halved to dense";
  grace.chip_source = "NVIDIA H100 white paper v1.04 (2023): same chip; L2 as CUDA device properties report it";
  types.push_back(std::move(grace));
}

}  // namespace horus
