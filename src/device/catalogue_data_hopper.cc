// SPDX-License-Identifier: Apache-2.0
// Data sheets of Hopper. Tensor rates are published at a lower clock than the others (H100 SXM: 1830, not 1980 MHz).
#include "device/catalogue_data.h"

namespace horus {
namespace {

constexpr char kH100WhitePaper[] = "NVIDIA H100 Tensor Core GPU architecture white paper v1.04 (2023)";
constexpr char kH200DataSheet[] = "NVIDIA H200 data sheet (2024), tensor rates halved to dense";
constexpr char kMigAsListed[] =
    "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB from a published nvidia-smi mig -lgip listing";

constexpr Rates kSxmRates = {
    .fp64 = 33'500, .fp32 = 66'900, .tf32 = 494'700, .fp16 = 989'400, .fp8 = 1'978'900, .int8 = 1'978'900};
constexpr Rates kNvlRates = {
    .fp64 = 30'000, .fp32 = 60'000, .tf32 = 417'500, .fp16 = 835'500, .fp8 = 1'670'500, .int8 = 1'670'500};

std::vector<MigProfile> H100With80Mig() {
  return SevenSlices({{{"10gb", 9'984}, {"20gb", 20'096}, {"40gb", 40'448}, {"80gb", 81'152}}});
}

void AppendH100(std::vector<GpuType>& types) {
  Add(types, "h100-sxm", "NVIDIA H100 SXM5 80 GB", "Hopper",
      {.compute_capability = 90, .sm_count = 132, .boost_clock_mhz = 1'980, .l2_kib = 51'200}, kSxmRates,
      {.mem_mib = 81'559, .mem_mb_s = 3'352'000, .pcie_mb_s = kPcie5x16, .nvlink_mb_s = 900'000, .tdp_w = 700},
      {.spec = kH100WhitePaper, .chip = kH100WhitePaper, .mig = kMigAsListed},
      {"h100", "h100-80gb", "h100-80gb-hbm3", "h100-mega-80gb", "h100-sxm5", "h100-sxm5-80gb"}, H100With80Mig());
  Add(types, "h100-pcie", "NVIDIA H100 PCIe 80 GB", "Hopper",
      {.compute_capability = 90, .sm_count = 114, .boost_clock_mhz = 1'755, .l2_kib = 51'200},
      {.fp64 = 25'600, .fp32 = 51'200, .tf32 = 378'000, .fp16 = 756'000, .fp8 = 1'513'000, .int8 = 1'513'000},
      {.mem_mib = 81'559, .mem_mb_s = 2'039'000, .pcie_mb_s = kPcie5x16, .nvlink_mb_s = 600'000, .tdp_w = 350},
      {.spec = kH100WhitePaper, .chip = kH100WhitePaper, .mig = kMigAsListed}, {"h100-pcie-80gb", "h100-80gb-pcie"},
      H100With80Mig());
  // One of the two boards that are sold as a bridged pair.
  Add(types, "h100-nvl", "NVIDIA H100 NVL 94 GB", "Hopper",
      {.compute_capability = 90, .sm_count = 132, .boost_clock_mhz = 1'785, .l2_kib = 51'200}, kNvlRates,
      {.mem_mib = 95'830, .mem_mb_s = 3'938'000, .pcie_mb_s = kPcie5x16, .nvlink_mb_s = 600'000, .tdp_w = 400},
      {.spec = "NVIDIA H100 data sheet (2024), tensor rates halved to dense; H100 NVL product brief",
       .chip = "NVIDIA H100 NVL product brief (2024); L2 from the H100 white paper",
       .mig = kMigAsListed},
      {"h100-nvl-94gb"}, SevenSlices({{{"12gb", 11'008}, {"24gb", 22'144}, {"47gb", 47'488}, {"94gb", 95'360}}}));
}

// Other memory on the same silicon, and the same cut where export rules want it: NVLink and fp64.
void AppendHopperVariants(std::vector<GpuType>& types) {
  GpuType& grace_144 = Like(types, "gh200-96gb", "gh200-144gb", "NVIDIA GH200 144 GB (HBM3e)",
                            "NVIDIA GH200 data sheet (2024), 144 GB of HBM3e at 4.9 TB/s", {"gh200-144g-hbm3e"});
  grace_144.mem_mib = 146'831;
  grace_144.mem_bandwidth_mb_s = 4'900'000;
  grace_144.mig = SevenSlices({{{"18gb", 16'733}, {"36gb", 33'730}, {"72gb", 72'680}, {"144gb", 146'150}}});
  grace_144.mig_source = "GPU Operator 25.3 (2025), profiles of GH200 144 GB; MiB estimated in the proportions of H200";
  GpuType& h800 = Like(types, "h100-sxm", "h800", "NVIDIA H800 SXM5 80 GB",
                       "NVIDIA H800 data sheet as OEMs publish it (2023): NVLink, fp64; the rest as H100 SXM",
                       {"h800-sxm5", "h800-80gb"});
  h800.nvlink_mb_s = 400'000;
  h800.fp64_gflops = 1'000;
  GpuType& pcie = Like(types, "h100-pcie", "h800-pcie", "NVIDIA H800 PCIe 80 GB",
                       "NVIDIA H800 data sheet as OEMs publish it (2023): NVLink, fp64; the rest as H100 PCIe");
  pcie.nvlink_mb_s = 400'000;
  pcie.fp64_gflops = 800;
  const GpuType h200 = Named(types, "h200");
  GpuType& h20 =
      Like(types, "h20", "h20-3e", "NVIDIA H20 141 GB (HBM3e)", "As H20, with the memory of the H200", {"h20-141gb"});
  h20.mem_mib = h200.mem_mib;
  h20.mem_bandwidth_mb_s = h200.mem_bandwidth_mb_s;
  h20.mig = h200.mig;
  h20.mig_source = "NVIDIA Multi-Instance GPU User Guide r580 (2025); as H200";
}

}  // namespace

void AppendHopper(std::vector<GpuType>& types) {
  AppendH100(types);
  Add(types, "h200", "NVIDIA H200 SXM5 141 GB", "Hopper",
      {.compute_capability = 90, .sm_count = 132, .boost_clock_mhz = 1'980, .l2_kib = 61'440}, kSxmRates,
      {.mem_mib = 143'771, .mem_mb_s = 4'800'000, .pcie_mb_s = kPcie5x16, .nvlink_mb_s = 900'000, .tdp_w = 700},
      {.spec = kH200DataSheet,
       .chip = "NVIDIA H100 white paper v1.04 (2023): same chip; L2 as CUDA device properties report it",
       .mig = kMigAsListed},
      {"h200-sxm", "h200-sxm5", "h200-141gb", "h200-sxm5-141gb"},
      SevenSlices({{{"18gb", 16'384}, {"35gb", 33'024}, {"71gb", 71'168}, {"141gb", 143'104}}}));
  // One of two or four boards behind a bridge: the chip and rates of the H100 NVL, the memory of the H200.
  GpuType& nvl = Like(types, "h200", "h200-nvl", "NVIDIA H200 NVL 141 GB", kH200DataSheet, {"h200-nvl-141gb"});
  nvl.boost_clock_mhz = 1'785;
  SetRates(nvl, kNvlRates);
  nvl.tdp_w = 600;
  // The data sheet states 44 TFLOP/s of fp32, which 78 SMs reach at no published clock; cores x clock is used.
  Add(types, "h20", "NVIDIA H20 96 GB", "Hopper",
      {.compute_capability = 90, .sm_count = 78, .boost_clock_mhz = 1'980, .l2_kib = 61'440},
      {.fp64 = 1'000, .fp32 = 39'500, .tf32 = 74'000, .fp16 = 148'000, .fp8 = 296'000, .int8 = 296'000},
      {.mem_mib = 97'871, .mem_mb_s = 4'000'000, .pcie_mb_s = kPcie5x16, .nvlink_mb_s = 900'000, .tdp_w = 400},
      {.spec = "NVIDIA HGX H20 data sheet as reported by the press (2023); fp32 = cores x boost clock",
       .chip = "CUDA device properties of an H20 (78 SMs, 60 MB L2)",
       .mig = "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB as listed for the H100 96 GB of GH200"},
      {}, SevenSlices({{{"12gb", 11'264}, {"24gb", 23'552}, {"48gb", 47'616}, {"96gb", 95'232}}}));
  // Its name counts the memory of the CPU. 700 W of the module's 1,000 are the GPU's: a chosen share.
  GpuType& grace =
      Like(types, "h20", "gh200-96gb", "NVIDIA GH200 480 GB (GPU with 96 GB)",
           "NVIDIA GH200 data sheet (2024), 96 GB of HBM3, tensor rates halved to dense", {"gh200", "gh200-480gb"});
  grace.sm_count = 132;
  SetRates(grace, kSxmRates);
  grace.pcie_mb_s = 450'000;  // NVLink-C2C
  grace.tdp_w = 700;
  grace.chip_source = "NVIDIA H100 white paper v1.04 (2023): same chip; L2 as CUDA device properties report it";
  AppendHopperVariants(types);
}

}  // namespace horus
