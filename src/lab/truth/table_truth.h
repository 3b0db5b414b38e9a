// SPDX-License-Identifier: Apache-2.0
// TableTruth: measured speeds, alone and in pairs, as the truth of a simulation.
//
// Enters:  a speed table; which of its rows a trace's profiles and a catalogue's GPU types are.
// Leaves:  a Truth; a trace whose jobs state run times instead of steps.
// Units:   as truth.h: speed 1 is that of the profile's unit type (UnitType of speed_table.h).
// Cost:    16 bytes an ordered pair of the trace's profiles that runs together, 16 a GPU type and row of the table; a
//          binary search among a profile's partners a pair.
// Thread class: immutable, share freely; the functions are pure.
#ifndef HORUS_LAB_TRUTH_TABLE_TRUTH_H_
#define HORUS_LAB_TRUTH_TABLE_TRUTH_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lab/trace/trace.h"
#include "lab/truth/speed_table.h"
#include "lab/truth/truth.h"

namespace horus {

// What a tenant keeps beside several others, of whom only the pairs were measured. With s the slowdown beside each:
enum class ManyTenants : uint8_t {
  kAdds = 0,        // 1 / (1 + sum of (s - 1)), as every model of pairs here has it (interference/combine.h)
  kMultiplies = 1,  // 1 / product of s
};

// By profile of the trace its row in the table, known by name; kNotStated where the table lacks it.
[[nodiscard]] std::vector<uint32_t> RowsOfProfiles(const Trace& trace, const SpeedTable& table);

// Jobs on several whole GPUs run another profile: GangName of speed_table.h.
[[nodiscard]] Trace NameGangs(Trace trace);

// The time that each job's steps take alone on its profile's unit type, rounded up to the microsecond; a job that
// states a run time keeps it. INVALID_ARGUMENT: steps of a profile without a speed, or that take more than
// kMaxTraceTimeUs.
[[nodiscard]] absl::StatusOr<Trace> StepsToDurations(Trace trace, const SpeedTable& table, uint32_t reference);

class TableTruth final : public Truth {
 public:
  // `types`: by GPU of the table the catalogue's type. `rows`: as RowsOfProfiles. Pairs that the table lacks cannot run
  // together; nothing runs on a slice of a GPU. INVALID_ARGUMENT: sizes, positions, an invalid type or one given twice.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Truth>> Create(const SpeedTable& table,
                                                                     std::span<const GpuTypeId> types,
                                                                     std::vector<uint32_t> rows, uint32_t reference,
                                                                     ManyTenants many = ManyTenants::kAdds);
  [[nodiscard]] double SpeedAlone(uint32_t profile, const DeviceContext& device) const override;
  [[nodiscard]] absl::Status Shares(const DeviceContext& device, std::span<const uint32_t> profiles,
                                    std::span<double> shares) const override;

 private:
  static constexpr int32_t kNoGpu = -1;
  struct Partner {
    uint32_t row = 0;
    double share = 0;  // that is kept beside it
  };
  TableTruth(std::vector<uint32_t> rows, size_t table_rows, ManyTenants many)
      : rows_(std::move(rows)), table_rows_(table_rows), many_(many) {}
  [[nodiscard]] int32_t GpuOf(const DeviceContext& device) const;
  void LayOut(const SpeedTable& table);
  [[nodiscard]] double ShareBeside(size_t gpu_row, uint32_t other_row) const;

  std::vector<uint32_t> rows_;  // by profile
  size_t table_rows_;           // of each GPU
  ManyTenants many_;
  std::vector<int32_t> gpu_of_;    // by type
  std::vector<double> alone_;      // [gpu][row] speed relative to the unit type
  std::vector<size_t> first_;      // [gpu][row] of its partners, and the end of the last one's
  std::vector<Partner> partners_;  // by gpu and row, each one's ascending; who is missing does not run together
};

}  // namespace horus

#endif  // HORUS_LAB_TRUTH_TABLE_TRUTH_H_
