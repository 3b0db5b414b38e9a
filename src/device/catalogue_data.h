// SPDX-License-Identifier: Apache-2.0
// The built-in data sheets, one function a generation; only catalogue.cc calls them.
//
// Leaves:  types appended to the list, oldest first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/gpu_type.h"

namespace horus {

inline constexpr int64_t kMibPerGib = 1024;

// One direction of a PCI Express link: transfers/s x lanes x 128/130 line coding / 8 bits.
inline constexpr int64_t kPcie3x16 = 15'754;  // MB/s
inline constexpr int64_t kPcie4x8 = 15'754;
inline constexpr int64_t kPcie4x16 = 31'508;
inline constexpr int64_t kPcie5x16 = 63'015;

inline constexpr char kMigGuide[] = "NVIDIA Multi-Instance GPU User Guide r580 (2025), supported profiles";

// The groups of one entry's figures, in the units of GpuType: GFLOP/s (int8: GOP/s), MiB, MB/s. An fp64 rate that no
// data sheet states is fp32's by the white papers: 1/32 from Maxwell to Turing, 1/64 from Ampere on but for the largest
// chips. Where there are no tensor cores for int8, it is dot products of four: 4 x fp32.
struct Chip {
  int64_t compute_capability, sm_count, boost_clock_mhz, l2_kib;
};
struct Rates {
  int64_t fp64, fp32, tf32 = 0, fp16, fp8 = 0, int8 = 0;  // bf16 has the rate of fp16 where there is tf32
};
struct Board {
  int64_t mem_mib, mem_mb_s, pcie_mb_s, nvlink_mb_s = 0, tdp_w;
};
struct Sources {
  const char* spec;
  const char* chip;
  const char* mig = "";
};
void Add(std::vector<GpuType>& types, const char* name, const char* display_name, const char* architecture,
         const Chip& chip, const Rates& rates, const Board& board, const Sources& sources,
         std::vector<std::string> aliases = {}, std::vector<MigProfile> mig = {});

// "10gb" and what a process in an instance of that size sees.
struct MigSize {
  const char* name;
  int64_t mem_mib;
};
// The profiles of a chip with seven compute slices, by the sizes of 1, 2, 4 and 8 memory slices.
std::vector<MigProfile> SevenSlices(const std::array<MigSize, 4>& sizes);

// One that the list has; gone when the list grows.
const GpuType& Named(const std::vector<GpuType>& types, std::string_view name);

// Appends a board with the silicon of `of`, which the list has, under names of its own; the caller sets what differs,
// before anything else is appended.
GpuType& Like(std::vector<GpuType>& types, std::string_view of, const char* name, const char* display_name,
              const char* spec_source, std::vector<std::string> aliases = {});

void SetRates(GpuType& type, const Rates& rates);

// So many SMs at another clock: every rate is units x clock.
void Rescale(GpuType& type, int64_t sm_count, int64_t boost_clock_mhz);

void AppendKeplerToPascal(std::vector<GpuType>& types);
void AppendVoltaAndTuring(std::vector<GpuType>& types);
void AppendAmpere(std::vector<GpuType>& types);
void AppendAda(std::vector<GpuType>& types);
void AppendHopper(std::vector<GpuType>& types);
void AppendBlackwell(std::vector<GpuType>& types);

}  // namespace horus
