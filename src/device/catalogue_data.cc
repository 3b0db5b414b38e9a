// SPDX-License-Identifier: Apache-2.0
// The built-in data sheets, oldest first: in the order of ids.
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_split.h"
#include "device/catalogue.h"

namespace horus {
namespace {

constexpr int64_t kMibPerGib = 1024;
constexpr int64_t kNone = -1;  // of what a board lacks and the one that it is like has

// One direction of a PCI Express link in MB/s: transfers/s x lanes x 128/130 line coding / 8 bits.
constexpr int64_t kPcie3x16 = 15'754, kPcie4x8 = 15'754, kPcie4x16 = 31'508, kPcie5x16 = 63'015;

// The groups of one entry's figures, in the units of GpuType: GFLOP/s (int8: GOP/s), MiB, MB/s. An fp64 rate that no
// data sheet states is fp32's by the white papers: 1/32 from Maxwell to Turing, 1/64 from Ampere on but for the largest
// chips. Where there are no tensor cores for int8, it is dot products of four: 4 x fp32. bf16 has the rate of fp16
// where there is tf32.
struct Chip {
  int64_t compute_capability = 0, sm_count = 0, boost_clock_mhz = 0, l2_kib = 0;
};
struct Rates {
  int64_t fp64 = 0, fp32 = 0, tf32 = 0, fp16 = 0, fp8 = 0, int8 = 0;
};
struct Board {
  int64_t mem_mib = 0, mem_mb_s = 0, pcie_mb_s = 0, nvlink_mb_s = 0, tdp_w = 0;
};
struct Sources {
  const char* spec;
  const char* chip = nullptr;
  const char* mig = nullptr;
};
// "10gb" and what a process in an instance of that size sees: sizes of 1, 2, 4 and, of a chip with seven compute
// slices, 8 memory slices.
struct MigSize {
  const char* name = nullptr;
  int64_t mem_mib = 0;
};
using Mig = std::array<MigSize, 4>;

std::vector<MigProfile> ProfilesOf(const Mig& sizes) {
  struct Shape {
    int64_t compute, size, instances;
  };
  constexpr Shape kSeven[] = {{1, 0, 7}, {1, 1, 4}, {2, 1, 3}, {3, 2, 2}, {4, 2, 1}, {7, 3, 1}};
  constexpr Shape kFour[] = {{1, 0, 4}, {2, 1, 2}, {4, 2, 1}};
  std::vector<MigProfile> profiles;
  for (const Shape& shape : sizes[3].name != nullptr ? std::span<const Shape>(kSeven) : kFour) {
    const MigSize& size = sizes[static_cast<size_t>(shape.size)];
    profiles.push_back({.name = Formatted("%dg.%s", shape.compute, size.name),
                        .compute_slices = shape.compute,
                        .memory_slices = int64_t{1} << shape.size,
                        .mem_mib = size.mem_mib,
                        .max_instances = shape.instances});
  }
  return profiles;
}

constexpr std::pair<int64_t GpuType::*, int64_t Chip::*> kChipFields[] = {
    {&GpuType::compute_capability, &Chip::compute_capability},
    {&GpuType::sm_count, &Chip::sm_count},
    {&GpuType::boost_clock_mhz, &Chip::boost_clock_mhz},
    {&GpuType::l2_kib, &Chip::l2_kib}};
constexpr std::pair<int64_t GpuType::*, int64_t Rates::*> kRateFields[] = {
    {&GpuType::fp64_gflops, &Rates::fp64}, {&GpuType::fp32_gflops, &Rates::fp32}, {&GpuType::tf32_gflops, &Rates::tf32},
    {&GpuType::fp16_gflops, &Rates::fp16}, {&GpuType::fp8_gflops, &Rates::fp8},   {&GpuType::int8_gops, &Rates::int8}};
constexpr std::pair<int64_t GpuType::*, int64_t Board::*> kBoardFields[] = {
    {&GpuType::mem_mib, &Board::mem_mib},
    {&GpuType::mem_bandwidth_mb_s, &Board::mem_mb_s},
    {&GpuType::pcie_mb_s, &Board::pcie_mb_s},
    {&GpuType::nvlink_mb_s, &Board::nvlink_mb_s},
    {&GpuType::tdp_w, &Board::tdp_w}};

// Sets what the group gives; whether it gives anything.
bool Set(GpuType& type, const auto& group, const auto& fields) {
  bool any = false;
  for (const auto& [to, from] : fields) {
    if (group.*from != 0) type.*to = group.*from == kNone ? 0 : group.*from;
    any = any || group.*from != 0;
  }
  return any;
}

// Appends a type. `architecture`: or the name of a board above that it is like; then 0 and what is left out is as
// there. Without rates of its own but with other SMs or another clock, every rate is units x clock. Aliases have blanks
// between.
void Add(std::vector<GpuType>& types, const char* name, const char* display_name, const char* architecture,
         const Chip& chip, const Rates& rates, const Board& board, const Sources& sources, const char* aliases = "",
         const Mig& mig = {}) {
  const auto like = std::ranges::find(types, architecture, &GpuType::name);
  GpuType type = like != types.end() ? *like : GpuType{.architecture = architecture};
  const auto units = [&type] { return static_cast<double>(type.sm_count * type.boost_clock_mhz); };
  const double before = units();
  Set(type, chip, kChipFields);
  if (!Set(type, rates, kRateFields) && units() != before) {
    const double factor = units() / before;
    for (const auto& [rate, unused] : kRateFields)
      type.*rate = static_cast<int64_t>(static_cast<double>(type.*rate) * factor);
  }
  type.bf16_gflops = type.tf32_gflops > 0 ? type.fp16_gflops : 0;
  Set(type, board, kBoardFields);
  type.name = name;
  type.display_name = display_name;
  type.aliases = absl::StrSplit(aliases, ' ', absl::SkipWhitespace());
  type.spec_source = Formatted("%s; memory by nvidia-smi, or as its README says", sources.spec);
  if (sources.chip != nullptr) type.chip_source = sources.chip;
  if (sources.mig != nullptr) type.mig_source = sources.mig;
  if (mig[0].name != nullptr) type.mig = ProfilesOf(mig);
  types.push_back(std::move(type));
}

// ---- The sheets: name, for people, architecture; {compute capability, SMs, boost clock in MHz, L2 in KiB}, {fp64,
// fp32, tf32, fp16, fp8, int8}, {MiB, MB/s, PCIe, NVLink, W}; sources of rates, chip and MIG; aliases; MIG.

constexpr char kGp100WhitePaper[] = "NVIDIA Tesla P100 white paper WP-08019 (2016)";
constexpr char kV100DataSheet[] = "NVIDIA V100 data sheet (2020); int8 = 4 x fp32 (dot product of four)";
constexpr char kVoltaWhitePaper[] = "NVIDIA Tesla V100 architecture white paper WP-08608 (2017)";
constexpr char kTuringWhitePaper[] = "NVIDIA Turing architecture white paper WP-09183 (2018)";
constexpr char kA100DataSheet[] = "NVIDIA A100 data sheet (2022); rates without sparsity";
constexpr char kA800[] = "NVIDIA A800 data sheet (2022): NVLink; the rest as A100";
constexpr char kGa102WhitePaper[] = "NVIDIA Ampere GA102 architecture white paper (2021)";
constexpr char kAdaWhitePaper[] = "NVIDIA Ada GPU architecture white paper v2 (2023)";
constexpr char kH100WhitePaper[] = "NVIDIA H100 Tensor Core GPU architecture white paper v1.04 (2023)";
constexpr char kH200DataSheet[] = "NVIDIA H200 data sheet (2024), tensor rates halved to dense";
constexpr char kH200Chip[] = "NVIDIA H100 white paper v1.04 (2023): same chip; L2 as CUDA device properties report it";
constexpr char kB200Chip[] = "NVIDIA Blackwell tuning guide (2025): 126 MB L2; SMs and clock as CUDA reports them";
constexpr char kGb202WhitePaper[] = "NVIDIA RTX Blackwell GPU architecture white paper v1.1 (2025)";
constexpr char kGb202Slower[] = "The same; clock = fp32 / cores / 2; L2 as the workstation's board";
constexpr char kMigGuide[] = "NVIDIA Multi-Instance GPU User Guide r580 (2025), supported profiles";
constexpr char kMigAsListed[] =
    "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB from a published nvidia-smi mig -lgip listing";
constexpr char kMigOfUltra[] = "GPU Operator 25.10 (2025), profiles; MiB estimated in the proportions of B200";

// Hopper's tensor rates are published at a lower clock than the others (H100 SXM: 1830, not 1980 MHz).
constexpr Rates kSxmRates = {33'500, 66'900, 494'700, 989'400, 1'978'900, 1'978'900};
constexpr Rates kNvlRates = {30'000, 60'000, 417'500, 835'500, 1'670'500, 1'670'500};
constexpr Mig kH100Mig = {{{"10gb", 9'984}, {"20gb", 20'096}, {"40gb", 40'448}, {"80gb", 81'152}}};
constexpr Mig kH200Mig = {{{"18gb", 16'384}, {"35gb", 33'024}, {"71gb", 71'168}, {"141gb", 143'104}}};

// Kepler, Maxwell and Pascal: no tensor cores, no MIG.
void AddKeplerToPascal(std::vector<GpuType>& types) {
  // One of the two GK210 of the board, which is what one GPU index names: half of the data sheet's figures.
  Add(types, "k80", "NVIDIA Tesla K80 (one of two GK210)", "Kepler", {37, 13, 875, 1'536}, {1'455, 4'365, 0, 4'365},
      {11'441, 240'000, kPcie3x16, 0, 150},
      {"NVIDIA Tesla K80 data sheet (2014), halved: 8.73 / 2.91 TFLOP/s, 24 GB, 480 GB/s, 300 W a board",
       "NVIDIA Kepler GK110/210 white paper (2014)"});
  Add(types, "m60", "NVIDIA Tesla M60 (one of two GM204)", "Maxwell", {52, 16, 1'178, 2'048}, {151, 4'825, 0, 4'825},
      {7'680, 160'000, kPcie3x16, 0, 150},
      {"NVIDIA Tesla M60 board specification (2016), halved",
       "NVIDIA GeForce GTX 980 white paper (2014): GM204; clock from the board specification"});
  Add(types, "p4", "NVIDIA Tesla P4", "Pascal", {61, 20, 1'063, 2'048}, {170, 5'500, 0, 5'500, 0, 22'000},
      {7'680, 192'000, kPcie3x16, 0, 75},
      {"NVIDIA Tesla P4 data sheet (2016)",
       "NVIDIA GeForce GTX 1080 white paper (2016): GP104; clock from board specification"});
  Add(types, "p40", "NVIDIA Tesla P40", "Pascal", {61, 30, 1'531, 3'072}, {367, 12'000, 0, 12'000, 0, 47'000},
      {23'040, 346'000, kPcie3x16, 0, 250},
      {"NVIDIA Tesla P40 data sheet (2016)", "NVIDIA Tesla P40 board specification (2016): GP102"});
  // P100's fp16 is packed arithmetic, with fp16 sums.
  Add(types, "p100-pcie-16gb", "NVIDIA Tesla P100 PCIe 16 GB", "Pascal", {60, 56, 1'303, 4'096},
      {4'700, 9'300, 0, 18'700}, {16 * kMibPerGib, 732'000, kPcie3x16, 0, 250},
      {"NVIDIA Tesla P100 PCIe data sheet (2016)", kGp100WhitePaper}, "p100 p100-pcie p100-16gb");
  Add(types, "p100-pcie-12gb", "NVIDIA Tesla P100 PCIe 12 GB", "p100-pcie-16gb", {}, {},
      {.mem_mib = 12 * kMibPerGib, .mem_mb_s = 549'000}, {"NVIDIA Tesla P100 PCIe data sheet (2016), 12 GB"});
  Add(types, "p100-sxm2-16gb", "NVIDIA Tesla P100 SXM2 16 GB", "Pascal", {60, 56, 1'480, 4'096},
      {5'300, 10'600, 0, 21'200}, {16 * kMibPerGib, 732'000, kPcie3x16, 160'000, 300},
      {"NVIDIA Tesla P100 data sheet (2016)", kGp100WhitePaper}, "p100-sxm2");
  Add(types, "gtx-1080-ti", "NVIDIA GeForce GTX 1080 Ti", "Pascal", {61, 28, 1'582, 2'816},
      {354, 11'340, 0, 11'340, 0, 45'360}, {11 * kMibPerGib, 484'000, kPcie3x16, 0, 250},
      {"NVIDIA GeForce GTX 1080 Ti product page (2017); rates = cores x boost clock",
       "NVIDIA Turing architecture white paper WP-09183 (2018), appendix: GP102"});
  Add(types, "titan-xp", "NVIDIA TITAN Xp", "Pascal", {61, 30, 1'582, 3'072}, {380, 12'150, 0, 12'150, 0, 48'600},
      {12 * kMibPerGib, 547'600, kPcie3x16, 0, 250},
      {"NVIDIA TITAN Xp product page (2017); rates = cores x boost clock",
       "NVIDIA TITAN Xp product page (2017): 3840 cores of GP102"});
}

// Volta and Turing: tensor cores for fp16, no bf16, no MIG.
void AddVoltaAndTuring(std::vector<GpuType>& types) {
  Add(types, "v100-pcie-16gb", "NVIDIA V100 PCIe 16 GB", "Volta", {70, 80, 1'380, 6'144},
      {7'000, 14'000, 0, 112'000, 0, 56'000}, {16 * kMibPerGib, 900'000, kPcie3x16, 0, 250},
      {kV100DataSheet, kVoltaWhitePaper}, "v100-pcie");
  Add(types, "v100-pcie-32gb", "NVIDIA V100 PCIe 32 GB", "v100-pcie-16gb", {}, {}, {.mem_mib = 32 * kMibPerGib},
      {kV100DataSheet});
  // "V100M16" and "V100M32" are the names of Alibaba's openb trace, which does not tell PCIe from SXM2.
  Add(types, "v100-sxm2-16gb", "NVIDIA V100 SXM2 16 GB", "Volta", {70, 80, 1'530, 6'144},
      {7'800, 15'700, 0, 125'000, 0, 62'800}, {16 * kMibPerGib, 900'000, kPcie3x16, 300'000, 300},
      {kV100DataSheet, kVoltaWhitePaper}, "v100 v100-16gb v100-sxm2 v100m16");
  // DGX-2's SXM3 boards are sold with the same rates and 900 GB/s (DGX-2 data sheet, 2018: 2 PFLOP/s, 14.4 of 16 TB/s).
  Add(types, "v100-sxm2-32gb", "NVIDIA V100 SXM2 32 GB", "v100-sxm2-16gb", {}, {}, {.mem_mib = 32 * kMibPerGib},
      {kV100DataSheet}, "v100-32gb v100m32 v100-sxm3-32gb v100-sxm3-32gb-h");
  Add(types, "v100s-pcie-32gb", "NVIDIA V100S PCIe 32 GB", "Volta", {70, 80, 1'597, 6'144},
      {8'200, 16'400, 0, 130'000, 0, 65'600}, {32 * kMibPerGib, 1'134'000, kPcie3x16, 0, 250},
      {kV100DataSheet, kVoltaWhitePaper}, "v100s");
  Add(types, "titan-v", "NVIDIA TITAN V", "Volta", {70, 80, 1'455, 4'608}, {7'450, 14'900, 0, 110'000, 0, 59'600},
      {12 * kMibPerGib, 652'800, kPcie3x16, 0, 250},
      {"NVIDIA TITAN V product page (2017); fp32 and fp64 = cores x boost clock", kVoltaWhitePaper});
  Add(types, "t4", "NVIDIA T4", "Turing", {75, 40, 1'590, 4'096}, {254, 8'100, 0, 65'000, 0, 130'000},
      {15'360, 320'000, kPcie3x16, 0, 70}, {"NVIDIA T4 data sheet (2019)", kTuringWhitePaper}, "t4g");
  // Reference board (not Founders Edition). GeForce tensor cores, here and below, sum in fp32 at half rate.
  Add(types, "rtx-2080-ti", "NVIDIA GeForce RTX 2080 Ti", "Turing", {75, 68, 1'545, 5'632},
      {420, 13'400, 0, 53'800, 0, 215'200}, {11 * kMibPerGib, 616'000, kPcie3x16, 100'000, 250},
      {kTuringWhitePaper, kTuringWhitePaper}, "2080-ti 2080ti rtx-2080ti");
  Add(types, "rtx-8000", "NVIDIA Quadro RTX 8000", "Turing", {75, 72, 1'770, 6'144},
      {510, 16'300, 0, 130'500, 0, 261'000}, {48 * kMibPerGib, 672'000, kPcie3x16, 100'000, 260},
      {"NVIDIA Turing architecture white paper WP-09183 (2018): Quadro RTX 6000 with 48 GB", kTuringWhitePaper});
  Add(types, "rtx-6000", "NVIDIA Quadro RTX 6000", "rtx-8000", {}, {}, {.mem_mib = 24 * kMibPerGib},
      {kTuringWhitePaper});
  Add(types, "titan-rtx", "NVIDIA TITAN RTX", "rtx-6000", {}, {}, {.tdp_w = 280},
      {"NVIDIA TITAN RTX product page (2018): 72 SMs at 1770 MHz, 280 W; rates as Quadro RTX 6000"});
}

// Ampere: bf16 and tf32 tensor cores everywhere, MIG on the GA100.
void AddAmpere(std::vector<GpuType>& types) {
  Add(types, "a100-40gb", "NVIDIA A100 SXM4 40 GB", "Ampere", {80, 108, 1'410, 40'960},
      {9'700, 19'500, 156'000, 312'000, 0, 624'000}, {40 * kMibPerGib, 1'555'000, kPcie4x16, 600'000, 400},
      {kA100DataSheet, "NVIDIA A100 architecture white paper (2020)",
       "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB as NVML reports them"},
      "a100 a100-sxm4-40gb a100-sxm4", {{{"5gb", 4'864}, {"10gb", 9'856}, {"20gb", 19'968}, {"40gb", 40'192}}});
  Add(types, "a100-80gb", "NVIDIA A100 SXM4 80 GB", "a100-40gb", {}, {},
      {.mem_mib = 80 * kMibPerGib, .mem_mb_s = 2'039'000}, {kA100DataSheet}, "a100-sxm4-80gb",
      {{{"10gb", 9'856}, {"20gb", 19'968}, {"40gb", 40'192}, {"80gb", 80'384}}});
  Add(types, "a100-pcie-40gb", "NVIDIA A100 PCIe 40 GB", "a100-40gb", {}, {}, {.tdp_w = 250}, {kA100DataSheet},
      "a100-pcie");
  Add(types, "a100-pcie-80gb", "NVIDIA A100 PCIe 80 GB", "a100-80gb", {}, {}, {.mem_mb_s = 1'935'000, .tdp_w = 300},
      {kA100DataSheet}, "a100-80gb-pcie");
  // For China: slower NVLink, else the same.
  Add(types, "a800-80gb", "NVIDIA A800 SXM4 80 GB", "a100-80gb", {}, {}, {.nvlink_mb_s = 400'000}, {kA800},
      "a800 a800-sxm4-80gb");
  Add(types, "a800-pcie-80gb", "NVIDIA A800 PCIe 80 GB", "a100-pcie-80gb", {}, {}, {.nvlink_mb_s = 400'000}, {kA800},
      "a800-80gb-pcie");
  Add(types, "a30", "NVIDIA A30", "Ampere", {80, 56, 1'440, 24'576}, {5'200, 10'300, 82'000, 165'000, 0, 330'000},
      {24 * kMibPerGib, 933'000, kPcie4x16, 200'000, 165},
      {"NVIDIA A30 data sheet (2021); rates without sparsity", "NVIDIA A30 product brief (2021): GA100", kMigGuide}, "",
      {{{"6gb", 5'952}, {"12gb", 11'968}, {"24gb", 24'000}}});
  Add(types, "a40", "NVIDIA A40", "Ampere", {86, 84, 1'740, 6'144}, {585, 37'400, 74'800, 149'700, 0, 299'300},
      {46'068, 696'000, kPcie4x16, 112'500, 300},
      {"NVIDIA A40 data sheet (2021); rates without sparsity", kGa102WhitePaper});
  Add(types, "a10", "NVIDIA A10", "Ampere", {86, 72, 1'695, 6'144}, {488, 31'200, 62'500, 125'000, 0, 250'000},
      {23'028, 600'000, kPcie4x16, 0, 150},
      {"NVIDIA A10 data sheet (2021); rates without sparsity", "NVIDIA A10 product brief (2021): GA102"});
  // Amazon's variant: more SMs than A10, tensor cores that sum in fp32 at half rate.
  Add(types, "a10g", "NVIDIA A10G", "Ampere", {86, 80, 1'710, 6'144}, {547, 35'000, 35'000, 70'000, 0, 140'000},
      {23'028, 600'000, kPcie4x16, 0, 300},
      {"NVIDIA A10G data sheet as published by AWS for G5 (2021); rates without sparsity",
       "CUDA device properties of an A10G (80 SMs, 6 MB L2); power limit as the driver reports it"});
  // One of the four GA107 of the board, which is what one GPU index names. 250 W / 4.
  Add(types, "a16", "NVIDIA A16 (one of four GA107)", "Ampere", {86, 10, 1'755, 2'048},
      {70, 4'500, 9'000, 17'900, 0, 35'900}, {15'356, 200'000, kPcie4x16, 0, 62},
      {"NVIDIA A16 data sheet (2021), a quarter of the board; rates without sparsity",
       "NVIDIA A16 data sheet (2021): 4 x 1280 cores; clock = fp32 / cores / 2"});
  Add(types, "a2", "NVIDIA A2", "Ampere", {86, 10, 1'770, 2'048}, {71, 4'500, 9'000, 18'000, 0, 36'000},
      {15'356, 200'000, kPcie4x8, 0, 60},
      {"NVIDIA A2 data sheet (2021); rates without sparsity", "NVIDIA A2 product brief (2021): GA107"});
  Add(types, "rtx-a6000", "NVIDIA RTX A6000", "Ampere", {86, 84, 1'800, 6'144},
      {605, 38'700, 77'400, 154'800, 0, 309'700}, {49'140, 768'000, kPcie4x16, 112'500, 300},
      {kGa102WhitePaper, kGa102WhitePaper}, "a6000");
  Add(types, "rtx-3090", "NVIDIA GeForce RTX 3090", "Ampere", {86, 82, 1'695, 6'144},
      {556, 35'600, 35'600, 71'000, 0, 284'000}, {24 * kMibPerGib, 936'000, kPcie4x16, 112'500, 350},
      {kGa102WhitePaper, kGa102WhitePaper}, "3090");
  Add(types, "rtx-3090-ti", "NVIDIA GeForce RTX 3090 Ti", "rtx-3090", {.sm_count = 84, .boost_clock_mhz = 1'860}, {},
      {.mem_mib = 24'564, .mem_mb_s = 1'008'000, .tdp_w = 450},
      {"NVIDIA GeForce RTX 3090 Ti product page (2022): 10,752 cores, 24 GB; rates = units x boost clock"});
  Add(types, "rtx-a5000", "NVIDIA RTX A5000", "rtx-a6000", {.sm_count = 64, .boost_clock_mhz = 1'695}, {},
      {.mem_mib = 24'564, .tdp_w = 230},
      {"NVIDIA RTX A5000 data sheet (2021): 8,192 cores, 27.8 TFLOP/s; rates = units x boost clock"});
  Add(types, "rtx-a4000", "NVIDIA RTX A4000", "rtx-a6000", {.sm_count = 48, .boost_clock_mhz = 1'560, .l2_kib = 4'096},
      {}, {.mem_mib = 16'376, .mem_mb_s = 448'000, .nvlink_mb_s = kNone, .tdp_w = 140},
      {"NVIDIA RTX A4000 data sheet (2021): 6,144 cores, 19.2 TFLOP/s; rates = units x boost clock"});
}

// Ada Lovelace: fp8 tensor cores, no NVLink, no MIG.
void AddAda(std::vector<GpuType>& types) {
  Add(types, "l4", "NVIDIA L4", "Ada", {89, 58, 2'040, 49'152}, {473, 30'300, 60'000, 121'000, 242'500, 242'500},
      {23'034, 300'000, kPcie4x16, 0, 72},
      {"NVIDIA L4 data sheet (2023), halved where it states rates with sparsity",
       "NVIDIA L4 product brief (2023): AD104; L2 as CUDA device properties report it"},
      "l4-24gb");
  // The data sheet's tensor rates are half of what the chip's clock would give; L40S has the full rate.
  Add(types, "l40", "NVIDIA L40", "Ada", {89, 142, 2'490, 98'304}, {1'414, 90'500, 90'500, 181'050, 362'000, 362'000},
      {46'068, 864'000, kPcie4x16, 0, 300}, {"NVIDIA L40 data sheet (2023); rates without sparsity", kAdaWhitePaper});
  Add(types, "l40s", "NVIDIA L40S", "Ada", {89, 142, 2'520, 98'304},
      {1'431, 91'600, 183'000, 362'050, 733'000, 733'000}, {46'068, 864'000, kPcie4x16, 0, 350},
      {"NVIDIA L40S data sheet (2023); rates without sparsity", kAdaWhitePaper});
  // For China: fewer SMs, and tensor cores at half rate, as L40's.
  Add(types, "l20", "NVIDIA L20", "l40", {.sm_count = 92, .boost_clock_mhz = 2'520}, {}, {.tdp_w = 275},
      {"NVIDIA L20 data sheet as OEMs publish it (2023): memory, 275 W; rates = units x boost clock",
       "Published listings of the L20: AD102 with 92 SMs, 2520 MHz, 96 MB L2"});
  Add(types, "rtx-4090", "NVIDIA GeForce RTX 4090", "Ada", {89, 128, 2'520, 73'728},
      {1'290, 82'600, 82'600, 165'200, 330'300, 660'600}, {24'564, 1'008'000, kPcie4x16, 0, 450},
      {kAdaWhitePaper, kAdaWhitePaper}, "4090");
  Add(types, "rtx-4090-d", "NVIDIA GeForce RTX 4090 D", "rtx-4090", {.sm_count = 114}, {}, {.tdp_w = 425},
      {"NVIDIA GeForce RTX 4090 D product page (2023): 14,592 cores; rates = units x boost clock"});
  Add(types, "rtx-6000-ada", "NVIDIA RTX 6000 Ada Generation", "Ada", {89, 142, 2'505, 98'304},
      {1'423, 91'100, 182'100, 364'200, 728'500, 728'500}, {49'140, 960'000, kPcie4x16, 0, 300},
      {kAdaWhitePaper, kAdaWhitePaper}, "rtx-6000-ada-generation");
}

// Hopper.
void AddHopper(std::vector<GpuType>& types) {
  Add(types, "h100-sxm", "NVIDIA H100 SXM5 80 GB", "Hopper", {90, 132, 1'980, 51'200}, kSxmRates,
      {81'559, 3'352'000, kPcie5x16, 900'000, 700}, {kH100WhitePaper, kH100WhitePaper, kMigAsListed},
      "h100 h100-80gb h100-80gb-hbm3 h100-mega-80gb h100-sxm5 h100-sxm5-80gb", kH100Mig);
  Add(types, "h100-pcie", "NVIDIA H100 PCIe 80 GB", "Hopper", {90, 114, 1'755, 51'200},
      {25'600, 51'200, 378'000, 756'000, 1'513'000, 1'513'000}, {81'559, 2'039'000, kPcie5x16, 600'000, 350},
      {kH100WhitePaper, kH100WhitePaper, kMigAsListed}, "h100-pcie-80gb h100-80gb-pcie", kH100Mig);
  // One of the two boards that are sold as a bridged pair.
  Add(types, "h100-nvl", "NVIDIA H100 NVL 94 GB", "Hopper", {90, 132, 1'785, 51'200}, kNvlRates,
      {95'830, 3'938'000, kPcie5x16, 600'000, 400},
      {"NVIDIA H100 data sheet (2024), tensor rates halved to dense; H100 NVL product brief",
       "NVIDIA H100 NVL product brief (2024); L2 from the H100 white paper", kMigAsListed},
      "h100-nvl-94gb", {{{"12gb", 11'008}, {"24gb", 22'144}, {"47gb", 47'488}, {"94gb", 95'360}}});
  Add(types, "h200", "NVIDIA H200 SXM5 141 GB", "Hopper", {90, 132, 1'980, 61'440}, kSxmRates,
      {143'771, 4'800'000, kPcie5x16, 900'000, 700}, {kH200DataSheet, kH200Chip, kMigAsListed},
      "h200-sxm h200-sxm5 h200-141gb h200-sxm5-141gb", kH200Mig);
  // One of two or four boards behind a bridge: the chip and rates of the H100 NVL, the memory of the H200.
  Add(types, "h200-nvl", "NVIDIA H200 NVL 141 GB", "h200", {.boost_clock_mhz = 1'785}, kNvlRates, {.tdp_w = 600},
      {kH200DataSheet}, "h200-nvl-141gb");
  // The data sheet states 44 TFLOP/s of fp32, which 78 SMs reach at no published clock; cores x clock is used.
  Add(types, "h20", "NVIDIA H20 96 GB", "Hopper", {90, 78, 1'980, 61'440},
      {1'000, 39'500, 74'000, 148'000, 296'000, 296'000}, {97'871, 4'000'000, kPcie5x16, 900'000, 400},
      {"NVIDIA HGX H20 data sheet as reported by the press (2023); fp32 = cores x boost clock",
       "CUDA device properties of an H20 (78 SMs, 60 MB L2)",
       "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB as listed for the H100 96 GB of GH200"},
      "", {{{"12gb", 11'264}, {"24gb", 23'552}, {"48gb", 47'616}, {"96gb", 95'232}}});
  // Its name counts the memory of the CPU, to which NVLink-C2C leads. 700 W of the module's 1,000 are the GPU's: a
  // chosen share.
  Add(types, "gh200-96gb", "NVIDIA GH200 480 GB (GPU with 96 GB)", "h20", {.sm_count = 132}, kSxmRates,
      {.pcie_mb_s = 450'000, .tdp_w = 700},
      {"NVIDIA GH200 data sheet (2024), 96 GB of HBM3, tensor rates halved to dense", kH200Chip}, "gh200 gh200-480gb");
  // Other memory on the same silicon, and the same cut where export rules want it: NVLink and fp64.
  Add(types, "gh200-144gb", "NVIDIA GH200 144 GB (HBM3e)", "gh200-96gb", {}, {},
      {.mem_mib = 146'831, .mem_mb_s = 4'900'000},
      {"NVIDIA GH200 data sheet (2024), 144 GB of HBM3e at 4.9 TB/s", nullptr,
       "GPU Operator 25.3 (2025), profiles of GH200 144 GB; MiB estimated in the proportions of H200"},
      "gh200-144g-hbm3e", {{{"18gb", 16'733}, {"36gb", 33'730}, {"72gb", 72'680}, {"144gb", 146'150}}});
  Add(types, "h800", "NVIDIA H800 SXM5 80 GB", "h100-sxm", {}, {.fp64 = 1'000}, {.nvlink_mb_s = 400'000},
      {"NVIDIA H800 data sheet as OEMs publish it (2023): NVLink, fp64; the rest as H100 SXM"}, "h800-sxm5 h800-80gb");
  Add(types, "h800-pcie", "NVIDIA H800 PCIe 80 GB", "h100-pcie", {}, {.fp64 = 800}, {.nvlink_mb_s = 400'000},
      {"NVIDIA H800 data sheet as OEMs publish it (2023): NVLink, fp64; the rest as H100 PCIe"});
  Add(types, "h20-3e", "NVIDIA H20 141 GB (HBM3e)", "h20", {}, {}, {.mem_mib = 143'771, .mem_mb_s = 4'800'000},
      {"As H20, with the memory of the H200", nullptr, "NVIDIA Multi-Instance GPU User Guide r580 (2025); as H200"},
      "h20-141gb", kH200Mig);
}

// Blackwell; two dies that show up as one GPU on B200 and GB200.
void AddBlackwell(std::vector<GpuType>& types) {
  Add(types, "b200", "NVIDIA B200 180 GB (HGX)", "Blackwell", {100, 148, 1'965, 129'024},
      {37'000, 75'000, 1'125'000, 2'250'000, 4'500'000, 4'500'000}, {183'359, 8'000'000, kPcie5x16, 1'800'000, 1'000},
      {"NVIDIA HGX B200 data sheet (2025), an eighth of the board, tensor rates halved to dense", kB200Chip,
       "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB of 1g and 2g from a published listing, larger ones "
       "estimated "
       "as multiples of 1g.45gb"},
      "b200-180gb", {{{"23gb", 20'992}, {"45gb", 45'312}, {"90gb", 90'624}, {"180gb", 181'248}}});
  // NVLink-C2C to the Grace CPU, 450 GB/s a direction for two GPUs.
  Add(types, "gb200", "NVIDIA GB200 (one of two GPUs of a superchip)", "Blackwell", {100, 152, 2'062, 129'024},
      {40'000, 80'000, 1'250'000, 2'500'000, 5'000'000, 5'000'000}, {189'471, 8'000'000, 225'000, 1'800'000, 1'200},
      {"NVIDIA GB200 NVL72 data sheet (2025), half of a superchip, tensor rates halved to dense",
       "CUDA device properties of a GB200 (152 SMs); clock = fp32 / cores / 2; L2 as B200",
       "Published nvidia-smi mig -lgip listing (driver 570, 2025); 3g to 7g estimated as multiples of 1g.47gb"},
      "gb200-186gb", {{{"23gb", 22'528}, {"47gb", 46'592}, {"93gb", 93'184}, {"186gb", 186'368}}});
  // Blackwell Ultra: more memory; fp64 and int8 are cut.
  Add(types, "b300", "NVIDIA B300 (HGX)", "b200", {.compute_capability = 103}, {.fp64 = 1'250, .int8 = 150'000},
      {.mem_mib = 275'040, .tdp_w = 1'100},
      {"NVIDIA HGX B300 data sheet and Blackwell Ultra technical brief (2025), an eighth of the board, dense",
       "As B200: 148 SMs, clock and L2", kMigOfUltra},
      "b300-sxm6-ac b300-sxm6", {{{"34gb", 31'320}, {"67gb", 67'590}, {"135gb", 135'180}, {"269gb", 270'360}}});
  Add(types, "gb300", "NVIDIA GB300 (one of four GPUs of a tray)", "gb200",
      {.compute_capability = 103, .boost_clock_mhz = 2'141}, {.fp64 = 1'389, .fp32 = 83'333, .int8 = 166'667},
      {.mem_mib = 284'208, .tdp_w = 1'400},
      {"NVIDIA GB300 NVL72 data sheet and Blackwell Ultra technical brief (2025), a 72nd of the rack, dense",
       "As GB200: 152 SMs and L2; clock = fp32 / cores / 2", kMigOfUltra},
      "", {{{"35gb", 32'360}, {"70gb", 69'840}, {"139gb", 139'680}, {"278gb", 279'360}}});
  Add(types, "rtx-5090", "NVIDIA GeForce RTX 5090", "Blackwell", {120, 170, 2'407, 98'304},
      {1'637, 104'800, 104'800, 209'500, 419'000, 838'000}, {32'607, 1'792'000, kPcie5x16, 0, 575},
      {kGb202WhitePaper, kGb202WhitePaper}, "5090");
  Add(types, "rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "Blackwell",
      {120, 188, 2'617, 131'072}, {1'968, 126'000, 251'900, 503'800, 1'007'600, 1'007'600},
      {97'887, 1'792'000, kPcie5x16, 0, 600},
      {"NVIDIA RTX PRO 6000 Blackwell data sheet (2025); rates = units x boost clock, dense", kGb202WhitePaper,
       "NVIDIA Multi-Instance GPU User Guide r580 (2025); MiB of 1g from a published listing, larger ones estimated as "
       "its "
       "multiples"},
      "rtx-pro-6000-blackwell-workstation-edition rtx-pro-6000-blackwell",
      {{{"24gb", 23'680}, {"48gb", 47'360}, {"96gb", 94'720}}});
  // The same chip at a lower clock, with slower memory.
  Add(types, "rtx-pro-6000-server", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000",
      {.boost_clock_mhz = 2'493}, {1'875, 120'000, 240'000, 480'000, 960'000, 960'000}, {.mem_mb_s = 1'597'000},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet (2025); tensor rates as multiples of fp32",
       kGb202Slower},
      "rtx-pro-6000-blackwell-server-edition rtx-pro-server-6000");
  Add(types, "rtx-pro-6000-max-q", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000",
      {.boost_clock_mhz = 2'285}, {}, {.tdp_w = 300},
      {"NVIDIA RTX PRO 6000 Blackwell Max-Q data sheet (2025): 110 TFLOP/s; rates = units x boost clock", kGb202Slower},
      "rtx-pro-6000-blackwell-max-q-workstation-edition");
}

}  // namespace

std::vector<GpuType> BuiltInTypes() {
  std::vector<GpuType> types;
  for (const auto add : {AddKeplerToPascal, AddVoltaAndTuring, AddAmpere, AddAda, AddHopper, AddBlackwell}) add(types);
  return types;
}

}  // namespace horus
