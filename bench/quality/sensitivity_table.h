// SPDX-License-Identifier: Apache-2.0
// Sensitivity matrices of measured jobs, from the tables under --data, or made up where there are none.
//
// Enters:  a folder; every CSV file in it whose header has the columns below counts.
// Leaves:  per kind of server (cores per GPU) and task the models with their matrices.
// Units:   cores and GB per GPU in the files; thousandths of a core and MiB here, a GB taken as 1024 MiB on both sides.
// Cost:    reads every CSV file's header.   Thread class: one thread.
#ifndef HORUS_BENCH_QUALITY_SENSITIVITY_TABLE_H_
#define HORUS_BENCH_QUALITY_SENSITIVITY_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "place/job/sensitivity.h"

namespace horus::bench {

enum class TaskKind : uint8_t { kImage = 0, kLanguage = 1, kSpeech = 2, kOther = 3 };

struct MeasuredModel {
  std::string name;
  TaskKind task = TaskKind::kOther;
  std::map<int32_t, Sensitivity> by_gpus;  // jobs of so many GPUs; 1 is always there

  // Of jobs of `gpus` GPUs; where those were not measured, of one GPU.
  [[nodiscard]] const Sensitivity& For(int32_t gpus) const;
};

// Cores per GPU of the servers -> models by name.
using MeasuredModels = std::map<int32_t, std::vector<MeasuredModel>>;

// From tables with the columns fair_cpu_per_gpu, model, gpus, cpu_cores, dram_gb, norm_tput; a speed of 0 was not
// measured. Empty where there are none; ends the program on a damaged one.
[[nodiscard]] MeasuredModels ReadSensitivities(const std::string& folder);

// Six models of three tasks for servers of 3 cores per GPU; the laws are in the source.
[[nodiscard]] MeasuredModels MadeUpSensitivities();

}  // namespace horus::bench

#endif  // HORUS_BENCH_QUALITY_SENSITIVITY_TABLE_H_
