// SPDX-License-Identifier: Apache-2.0
// What several generations' data sheets are written with.
#include "device/catalogue_data.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace horus {

void Add(std::vector<GpuType>& types, const char* name, const char* display_name, const char* architecture,
         const Chip& chip, const Rates& rates, const Board& board, const Sources& sources,
         std::vector<std::string> aliases, std::vector<MigProfile> mig) {
  types.push_back({.name = name,
                   .display_name = display_name,
                   .architecture = architecture,
                   .compute_capability = chip.compute_capability,
                   .sm_count = chip.sm_count,
                   .boost_clock_mhz = chip.boost_clock_mhz,
                   .mem_mib = board.mem_mib,
                   .mem_bandwidth_mb_s = board.mem_mb_s,
                   .l2_kib = chip.l2_kib,
                   .pcie_mb_s = board.pcie_mb_s,
                   .nvlink_mb_s = board.nvlink_mb_s,
                   .tdp_w = board.tdp_w,
                   .mig = std::move(mig),
                   .aliases = std::move(aliases),
                   .spec_source = sources.spec,
                   .chip_source = sources.chip,
                   .mig_source = sources.mig});
  SetRates(types.back(), rates);
}

void SetRates(GpuType& type, const Rates& rates) {
  type.fp64_gflops = rates.fp64;
  type.fp32_gflops = rates.fp32;
  type.tf32_gflops = rates.tf32;
  type.fp16_gflops = rates.fp16;
  type.bf16_gflops = rates.tf32 > 0 ? rates.fp16 : 0;
  type.fp8_gflops = rates.fp8;
  type.int8_gops = rates.int8;
}

std::vector<MigProfile> SevenSlices(const std::array<MigSize, 4>& sizes) {
  struct Shape {
    int64_t compute, size, instances;
  };
  constexpr Shape kShapes[] = {{1, 0, 7}, {1, 1, 4}, {2, 1, 3}, {3, 2, 2}, {4, 2, 1}, {7, 3, 1}};
  std::vector<MigProfile> profiles;
  for (const Shape& shape : kShapes) {
    const MigSize& size = sizes[static_cast<size_t>(shape.size)];
    profiles.push_back({.name = Formatted("%dg.%s", shape.compute, size.name),
                        .compute_slices = shape.compute,
                        .memory_slices = int64_t{1} << shape.size,
                        .mem_mib = size.mem_mib,
                        .max_instances = shape.instances});
  }
  return profiles;
}

const GpuType& Named(const std::vector<GpuType>& types, std::string_view name) {
  return *std::ranges::find(types, name, &GpuType::name);
}

GpuType& Like(std::vector<GpuType>& types, std::string_view of, const char* name, const char* display_name,
              const char* spec_source, std::vector<std::string> aliases) {
  types.push_back(GpuType(Named(types, of)));
  GpuType& type = types.back();
  type.name = name;
  type.display_name = display_name;
  type.spec_source = spec_source;
  type.aliases = std::move(aliases);
  return type;
}

void Rescale(GpuType& type, int64_t sm_count, int64_t boost_clock_mhz) {
  const double factor = static_cast<double>(sm_count * boost_clock_mhz) /  // Bounded: figures of data sheets
                        static_cast<double>(type.sm_count * type.boost_clock_mhz);
  for (int64_t* const rate : {&type.fp64_gflops, &type.fp32_gflops, &type.tf32_gflops, &type.fp16_gflops,
                              &type.bf16_gflops, &type.fp8_gflops, &type.int8_gops}) {
    *rate = static_cast<int64_t>(static_cast<double>(*rate) * factor);
  }
  type.sm_count = sm_count;
  type.boost_clock_mhz = boost_clock_mhz;
}

}  // namespace horus
