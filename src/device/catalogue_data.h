// SPDX-License-Identifier: Apache-2.0
// The built-in data sheets, one function a generation; only catalogue.cc calls them.
//
// Enters:  nothing.                       Leaves: types appended to the list, oldest first.
// Units:   see gpu_type.h.
// Cost:    builds a few dozen values.     Thread class: pure functions.
#ifndef HORUS_DEVICE_CATALOGUE_DATA_H_
#define HORUS_DEVICE_CATALOGUE_DATA_H_

#include <cstdint>
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

void AppendKeplerToPascal(std::vector<GpuType>& types);
void AppendVoltaAndTuring(std::vector<GpuType>& types);
void AppendAmpere(std::vector<GpuType>& types);
void AppendAda(std::vector<GpuType>& types);
void AppendHopper(std::vector<GpuType>& types);
void AppendBlackwell(std::vector<GpuType>& types);

}  // namespace horus

#endif  // HORUS_DEVICE_CATALOGUE_DATA_H_
