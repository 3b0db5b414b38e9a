// SPDX-License-Identifier: Apache-2.0
// Data sheets of Blackwell; two dies that show up as one GPU on B200 and GB200.
#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kGb202WhitePaper[] = "NVIDIA RTX Blackwell GPU architecture white paper v1.1 (2025)";
constexpr char kB200Chip[] = "NVIDIA Blackwell tuning guide (2025): 126 MB L2; SMs and clock as CUDA reports them";

void AppendGb100(std::vector<GpuType>& types) {
  Add(types, "b200", "NVIDIA B200 180 GB (HGX)", "Blackwell",
      {.compute_capability = 100, .sm_count = 148, .boost_clock_mhz = 1'965, .l2_kib = 129'024},
      {.fp64 = 37'000, .fp32 = 75'000, .tf32 = 1'125'000, .fp16 = 2'250'000, .fp8 = 4'500'000, .int8 = 4'500'000},
      {.mem_mib = 183'359, .mem_mb_s = 8'000'000, .pcie_mb_s = kPcie5x16, .nvlink_mb_s = 1'800'000, .tdp_w = 1'000},
      {.spec = "NVIDIA HGX B200 data sheet (2025), an eighth of the board, tensor rates halved to dense",
       .chip = kB200Chip,
       .mig = "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB of 1g and 2g from a published listing, "
              "larger ones estimated as multiples of 1g.45gb"},
      {"b200-180gb"}, SevenSlices({{{"23gb", 20'992}, {"45gb", 45'312}, {"90gb", 90'624}, {"180gb", 181'248}}}));
  Add(types, "gb200", "NVIDIA GB200 (one of two GPUs of a superchip)", "Blackwell",
      {.compute_capability = 100, .sm_count = 152, .boost_clock_mhz = 2'062, .l2_kib = 129'024},
      {.fp64 = 40'000, .fp32 = 80'000, .tf32 = 1'250'000, .fp16 = 2'500'000, .fp8 = 5'000'000, .int8 = 5'000'000},
      // pcie: NVLink-C2C to the Grace CPU, 450 GB/s a direction for two GPUs
      {.mem_mib = 189'471, .mem_mb_s = 8'000'000, .pcie_mb_s = 225'000, .nvlink_mb_s = 1'800'000, .tdp_w = 1'200},
      {.spec = "NVIDIA GB200 NVL72 data sheet (2025), half of a superchip, tensor rates halved to dense",
       .chip = "CUDA device properties of a GB200 (152 SMs); clock = fp32 / cores / 2; L2 as B200",
       .mig = "Published nvidia-smi mig -lgip listing (driver 570, 2025); 3g to 7g estimated as multiples of 1g.47gb"},
      {"gb200-186gb"}, SevenSlices({{{"23gb", 22'528}, {"47gb", 46'592}, {"93gb", 93'184}, {"186gb", 186'368}}}));
}

// Blackwell Ultra: more memory; fp64 and int8 are cut.
void AppendGb110(std::vector<GpuType>& types) {
  constexpr char kMigSource[] = "GPU Operator 25.10 (2025), profiles; MiB estimated in the proportions of B200";
  GpuType& b300 = Like(types, "b200", "b300", "NVIDIA B300 (HGX)",
                       "NVIDIA HGX B300 data sheet and Blackwell Ultra technical brief (2025), an eighth of the board, "
                       "dense",
                       {"b300-sxm6-ac", "b300-sxm6"});
  b300.compute_capability = 103;
  b300.fp64_gflops = 1'250;
  b300.int8_gops = 150'000;
  b300.mem_mib = 275'040;
  b300.tdp_w = 1'100;
  b300.mig = SevenSlices({{{"34gb", 31'320}, {"67gb", 67'590}, {"135gb", 135'180}, {"269gb", 270'360}}});
  b300.mig_source = kMigSource;
  b300.chip_source = "As B200: 148 SMs, clock and L2";
  GpuType& gb300 = Like(types, "gb200", "gb300", "NVIDIA GB300 (one of four GPUs of a tray)",
                        "NVIDIA GB300 NVL72 data sheet and Blackwell Ultra technical brief (2025), a 72nd of the rack, "
                        "dense");
  gb300.compute_capability = 103;
  gb300.boost_clock_mhz = 2'141;
  gb300.fp64_gflops = 1'389;
  gb300.fp32_gflops = 83'333;
  gb300.int8_gops = 166'667;
  gb300.mem_mib = 284'208;
  gb300.tdp_w = 1'400;
  gb300.mig = SevenSlices({{{"35gb", 32'360}, {"70gb", 69'840}, {"139gb", 139'680}, {"278gb", 279'360}}});
  gb300.mig_source = kMigSource;
  gb300.chip_source = "As GB200: 152 SMs and L2; clock = fp32 / cores / 2";
}

void AppendGb202(std::vector<GpuType>& types) {
  // GeForce tensor cores sum in fp32 at half rate.
  Add(types, "rtx-5090", "NVIDIA GeForce RTX 5090", "Blackwell",
      {.compute_capability = 120, .sm_count = 170, .boost_clock_mhz = 2'407, .l2_kib = 98'304},
      {.fp64 = 1'637, .fp32 = 104'800, .tf32 = 104'800, .fp16 = 209'500, .fp8 = 419'000, .int8 = 838'000},
      {.mem_mib = 32'607, .mem_mb_s = 1'792'000, .pcie_mb_s = kPcie5x16, .tdp_w = 575},
      {.spec = kGb202WhitePaper, .chip = kGb202WhitePaper}, {"5090"});
  Add(types, "rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "Blackwell",
      {.compute_capability = 120, .sm_count = 188, .boost_clock_mhz = 2'617, .l2_kib = 131'072},
      {.fp64 = 1'968, .fp32 = 126'000, .tf32 = 251'900, .fp16 = 503'800, .fp8 = 1'007'600, .int8 = 1'007'600},
      {.mem_mib = 97'887, .mem_mb_s = 1'792'000, .pcie_mb_s = kPcie5x16, .tdp_w = 600},
      {.spec = "NVIDIA RTX PRO 6000 Blackwell data sheet (2025); rates = units x boost clock, dense",
       .chip = kGb202WhitePaper,
       .mig = "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB of 1g from a published listing, "
              "larger ones estimated as its multiples"},
      {"rtx-pro-6000-blackwell-workstation-edition", "rtx-pro-6000-blackwell"},
      {
          {.name = "1g.24gb", .compute_slices = 1, .memory_slices = 1, .mem_mib = 23'680, .max_instances = 4},
          {.name = "2g.48gb", .compute_slices = 2, .memory_slices = 2, .mem_mib = 47'360, .max_instances = 2},
          {.name = "4g.96gb", .compute_slices = 4, .memory_slices = 4, .mem_mib = 94'720, .max_instances = 1},
      });
  // The same chip at a lower clock, with slower memory.
  GpuType& server =
      Like(types, "rtx-pro-6000", "rtx-pro-6000-server", "NVIDIA RTX PRO 6000 Blackwell Server Edition",
           "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet (2025); tensor rates as multiples of fp32",
           {"rtx-pro-6000-blackwell-server-edition", "rtx-pro-server-6000"});
  server.boost_clock_mhz = 2'493;
  SetRates(server, {.fp64 = 1'875,  // 1/64 of fp32
                    .fp32 = 120'000,
                    .tf32 = 240'000,
                    .fp16 = 480'000,
                    .fp8 = 960'000,
                    .int8 = 960'000});
  server.mem_bandwidth_mb_s = 1'597'000;
  server.chip_source = "The same; clock = fp32 / cores / 2; L2 as the workstation's board";
  GpuType& max_q =
      Like(types, "rtx-pro-6000", "rtx-pro-6000-max-q", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
           "NVIDIA RTX PRO 6000 Blackwell Max-Q data sheet (2025): 110 TFLOP/s; rates = units x boost clock",
           {"rtx-pro-6000-blackwell-max-q-workstation-edition"});
  Rescale(max_q, 188, 2'285);
  max_q.tdp_w = 300;
  max_q.chip_source = "The same; clock = fp32 / cores / 2; L2 as the workstation's board";
}

}  // namespace

void AppendBlackwell(std::vector<GpuType>& types) {
  AppendGb100(types);
  AppendGb110(types);
  AppendGb202(types);
}

}  // namespace horus
