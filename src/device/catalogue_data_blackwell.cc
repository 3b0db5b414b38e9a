// SPDX-License-Identifier: Apache-2.0
// Data sheets of Blackwell; two dies that show up as one GPU on B200 and GB200.
#include <utility>

#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kGb202WhitePaper[] = "NVIDIA RTX Blackwell GPU architecture white paper v1.1 (2025)";
constexpr char kB200Chip[] = "NVIDIA Blackwell tuning guide (2025): 126 MB L2; SMs and clock as CUDA reports them";

void AppendGb100(std::vector<GpuType>& types) {
  types.push_back({
      .name = "b200",
      .display_name = "NVIDIA B200 180 GB (HGX)",
      .architecture = "Blackwell",
      .compute_capability = 100,
      .sm_count = 148,
      .boost_clock_mhz = 1'965,
      .fp64_gflops = 37'000,
      .fp32_gflops = 75'000,
      .tf32_gflops = 1'125'000,
      .fp16_gflops = 2'250'000,
      .bf16_gflops = 2'250'000,
      .fp8_gflops = 4'500'000,
      .int8_gops = 4'500'000,
      .mem_mib = 180 * kMibPerGib,
      .mem_bandwidth_mb_s = 8'000'000,
      .l2_kib = 129'024,
      .pcie_mb_s = kPcie5x16,
      .nvlink_mb_s = 1'800'000,
      .tdp_w = 1'000,
      .mig =
          {
              {.name = "1g.23gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 20'992, .max_instances = 7},
              {.name = "1g.45gb", .compute_slices = 1, .memory_slices = 2, .mem_mib = 45'312, .max_instances = 4},
              {.name = "2g.45gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 45'312, .max_instances = 3},
              {.name = "3g.90gb", .compute_slices = 3, .memory_slices = 4, .mem_mib = 90'624, .max_instances = 2},
              {.name = "4g.90gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 90'624, .max_instances = 1},
              {.name = "7g.180gb", .compute_slices = 7, .memory_slices = 8, .mem_mib = 181'248, .max_instances = 1},
          },
      .aliases = {"b200-180gb"},
      .spec_source = "NVIDIA HGX B200 data sheet (2025), an eighth of the board, tensor rates halved to dense",
      .chip_source = kB200Chip,
      .mig_source = "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB of 1g and 2g from a published listing, "
                    "larger ones estimated as multiples of 1g.45gb",
  });
  types.push_back({
      .name = "gb200",
      .display_name = "NVIDIA GB200 (one of two GPUs of a superchip)",
      .architecture = "Blackwell",
      .compute_capability = 100,
      .sm_count = 152,
      .boost_clock_mhz = 2'062,
      .fp64_gflops = 40'000,
      .fp32_gflops = 80'000,
      .tf32_gflops = 1'250'000,
      .fp16_gflops = 2'500'000,
      .bf16_gflops = 2'500'000,
      .fp8_gflops = 5'000'000,
      .int8_gops = 5'000'000,
      .mem_mib = 186 * kMibPerGib,
      .mem_bandwidth_mb_s = 8'000'000,
      .l2_kib = 129'024,
      .pcie_mb_s = 225'000,  // NVLink-C2C to the Grace CPU, 450 GB/s a direction for two GPUs
      .nvlink_mb_s = 1'800'000,
      .tdp_w = 1'200,
      .mig =
          {
              {.name = "1g.23gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 22'528, .max_instances = 7},
              {.name = "1g.47gb", .compute_slices = 1, .memory_slices = 2, .mem_mib = 46'592, .max_instances = 4},
              {.name = "2g.47gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 46'592, .max_instances = 3},
              {.name = "3g.93gb", .compute_slices = 3, .memory_slices = 4, .mem_mib = 93'184, .max_instances = 2},
              {.name = "4g.93gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 93'184, .max_instances = 1},
              {.name = "7g.186gb", .compute_slices = 7, .memory_slices = 8, .mem_mib = 186'368, .max_instances = 1},
          },
      .aliases = {"gb200-186gb"},
      .spec_source = "NVIDIA GB200 NVL72 data sheet (2025), half of a superchip, tensor rates halved to dense",
      .chip_source = "CUDA device properties of a GB200 (152 SMs); clock = fp32 / cores / 2; L2 as B200",
      .mig_source =
          "Published nvidia-smi mig -lgip listing (driver 570, 2025); 3g to 7g estimated as multiples of 1g.47gb",
  });
}

void AppendGb202(std::vector<GpuType>& types) {
  // GeForce tensor cores sum in fp32 at half rate.
  types.push_back({
      .name = "rtx-5090",
      .display_name = "NVIDIA GeForce RTX 5090",
      .architecture = "Blackwell",
      .compute_capability = 120,
      .sm_count = 170,
      .boost_clock_mhz = 2'407,
      .fp64_gflops = 1'637,  // 1/64 of fp32
      .fp32_gflops = 104'800,
      .tf32_gflops = 104'800,
      .fp16_gflops = 209'500,
      .bf16_gflops = 209'500,
      .fp8_gflops = 419'000,
      .int8_gops = 838'000,
      .mem_mib = 32 * kMibPerGib,
      .mem_bandwidth_mb_s = 1'792'000,
      .l2_kib = 98'304,
      .pcie_mb_s = kPcie5x16,
      .tdp_w = 575,
      .aliases = {"5090"},
      .spec_source = kGb202WhitePaper,
      .chip_source = kGb202WhitePaper,
  });
  types.push_back({
      .name = "rtx-pro-6000",
      .display_name = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
      .architecture = "Blackwell",
      .compute_capability = 120,
      .sm_count = 188,
      .boost_clock_mhz = 2'617,
      .fp64_gflops = 1'968,  // 1/64 of fp32
      .fp32_gflops = 126'000,
      .tf32_gflops = 251'900,
      .fp16_gflops = 503'800,
      .bf16_gflops = 503'800,
      .fp8_gflops = 1'007'600,
      .int8_gops = 1'007'600,
      .mem_mib = 96 * kMibPerGib,
      .mem_bandwidth_mb_s = 1'792'000,
      .l2_kib = 131'072,
      .pcie_mb_s = kPcie5x16,
      .tdp_w = 600,
      .mig =
          {
              {.name = "1g.24gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 23'680, .max_instances = 4},
              {.name = "2g.48gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 47'360, .max_instances = 2},
              {.name = "4g.96gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 94'720, .max_instances = 1},
          },
      .aliases = {"rtx-pro-6000-blackwell-workstation-edition", "rtx-pro-6000-blackwell"},
      .spec_source = "NVIDIA RTX PRO 6000 Blackwell data sheet (2025); rates = units x boost clock, dense",
      .chip_source = kGb202WhitePaper,
      .mig_source = "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB of 1g from a published listing, "
                    "larger ones estimated as its multiples",
  });
  // The same chip at a lower clock, with slower memory.
  GpuType server = types.back();
  server.name = "rtx-pro-6000-server";
  server.display_name = "NVIDIA RTX PRO 6000 Blackwell Server Edition";
  server.boost_clock_mhz = 2'493;
  server.fp64_gflops = 1'875;  // 1/64 of fp32
  server.fp32_gflops = 120'000;
  server.tf32_gflops = 240'000;
  server.fp16_gflops = 480'000;
  server.bf16_gflops = 480'000;
  server.fp8_gflops = 960'000;
  server.int8_gops = 960'000;
  server.mem_bandwidth_mb_s = 1'597'000;
  server.aliases = {"rtx-pro-6000-blackwell-server-edition", "rtx-pro-server-6000"};
  server.spec_source =
      "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet (2025); tensor rates as multiples of fp32";
  server.chip_source = "The same; clock = fp32 / cores / 2; L2 as the workstation's board";
  types.push_back(std::move(server));
}

}  // namespace

void AppendBlackwell(std::vector<GpuType>& types) {
  AppendGb100(types);
  AppendGb202(types);
}

}  // namespace horus
