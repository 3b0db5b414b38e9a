// SPDX-License-Identifier: Apache-2.0
// Truth: how fast jobs really run, alone and beside others. The simulator lets time pass by it; no policy sees it.
//
// Enters:  profiles (positions in Trace::profiles) on a device.
// Leaves:  speeds.
// Units:   1 = alone on the hardware that the trace's run times were measured on; a share of 1 = undisturbed.
#pragma once

#include <utility>

#include "base/vectors.h"
#include "device/gpu_type.h"
#include "lab/trace/trace.h"
#include "lab/truth/speed_table.h"

namespace horus {

class Truth {
 public:
  virtual ~Truth() = default;

  // Progress per unit of time alone there; 0 = it does not run there.
  [[nodiscard]] virtual double SpeedAlone(uint32_t profile, const DeviceContext& device) const = 0;

  // Fills `shares`, of the size of `profiles`: how much of its speed alone each keeps beside the others, at most 1;
  // 0 for all of them where they cannot run together.
  [[nodiscard]] virtual absl::Status Shares(const DeviceContext& device, std::span<const uint32_t> profiles,
                                            std::span<double> shares) const = 0;

  // Device memory that a job of the profile really takes per GPU of that type; 0 = not measured: it always fits.
  [[nodiscard]] virtual int64_t MemMib(uint32_t /*profile*/, GpuTypeId /*type*/) const { return 0; }

  // The same of jobs whose hosts may be the slower: `hosts` are their HostSpeed, and `shares` of the speed with that.
  // A job alone runs at `host`, which is at most its BestHostSpeed `best`, the GPU's own; so the GPU is busy with it
  // for the part r = host / best. Beside others each costs it the excess e = 1 / (share beside it) - 1 of its steps,
  // for the part r of the time that the other keeps the GPU busy: it runs at min(host, best / (1 + sum of r e)), the
  // slower of its input and of its share of the GPU. With r = 1 for all that is Shares, measured; the rest nobody
  // measured.
  [[nodiscard]] absl::Status SharesOfHosts(const DeviceContext& device, std::span<const uint32_t> profiles,
                                           std::span<const double> hosts, std::span<double> shares) const;

  // Whether HostSpeed is ever other than 1.
  [[nodiscard]] virtual bool HostMatters() const { return false; }
  // Factor of the speed with so many cores and so much host memory per GPU; 1 = as at the fair share. Above 0.
  [[nodiscard]] virtual double HostSpeed(uint32_t /*profile*/, const HostShare& /*per_gpu*/) const { return 1; }
  // The largest HostSpeed, at which the GPU is the slower.
  [[nodiscard]] virtual double BestHostSpeed(uint32_t /*profile*/) const { return 1; }
};

// Another truth, and how sensitive profiles are to cores and host memory.
class SensitiveTruth final : public Truth {
 public:
  // `sensitivities`: by profile; those that lack one do not care. With less than was measured a job runs at the least
  // speed that was.
  SensitiveTruth(std::shared_ptr<const Truth> beneath, std::vector<SharedSensitivity> sensitivities)
      : beneath_(std::move(beneath)), sensitivities_(std::move(sensitivities)) {}
  [[nodiscard]] double SpeedAlone(uint32_t profile, const DeviceContext& device) const override {
    return beneath_->SpeedAlone(profile, device);
  }
  [[nodiscard]] absl::Status Shares(const DeviceContext& device, std::span<const uint32_t> profiles,
                                    std::span<double> shares) const override {
    return beneath_->Shares(device, profiles, shares);
  }
  [[nodiscard]] int64_t MemMib(uint32_t profile, GpuTypeId type) const override {
    return beneath_->MemMib(profile, type);
  }
  [[nodiscard]] bool HostMatters() const override { return true; }
  [[nodiscard]] double HostSpeed(uint32_t profile, const HostShare& per_gpu) const override;
  [[nodiscard]] double BestHostSpeed(uint32_t profile) const override {
    const Sensitivity* const matrix = profile < sensitivities_.size() ? sensitivities_[profile].get() : nullptr;
    return matrix == nullptr ? 1 : static_cast<double>(matrix->speeds().back());  // monotone
  }

 private:
  std::shared_ptr<const Truth> beneath_;
  std::vector<SharedSensitivity> sensitivities_;
};

// What jobs of a profile demand, by GPU type; ascending type, unique.
using ProfileDemands = std::vector<TypeDemand>;
using DemandsByName = std::map<std::string, ProfileDemands, std::less<>>;  // by profile
// Of that type, or of any; null = neither is there.
[[nodiscard]] const Demand* FindDemand(const ProfileDemands& demands, GpuTypeId type);

// By profile of the trace what is said of it by name; an empty value where nothing is.
template <typename Value>
[[nodiscard]] std::vector<Value> ByProfile(const Trace& trace, const std::map<std::string, Value, std::less<>>& named) {
  std::vector<Value> all;
  for (const std::string& profile : trace.profiles) {
    const auto at = named.find(profile);
    all.push_back(at == named.end() ? Value() : at->second);
  }
  return all;
}

// An interference model and demands taken for the truth: speeds are those of the steps, relative to the type on which
// the profile is fastest; shares are 1 / estimated slowdown; memory is the estimate. Nothing is unable to run together.
class ModelTruth final : public Truth {
 public:
  // INVALID_ARGUMENT: a profile without demands, or one that states steps on some types alone.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Truth>> Create(std::shared_ptr<const InterferenceModel> model,
                                                                     std::vector<ProfileDemands> profiles);
  [[nodiscard]] double SpeedAlone(uint32_t profile, const DeviceContext& device) const override;
  [[nodiscard]] absl::Status Shares(const DeviceContext& device, std::span<const uint32_t> profiles,
                                    std::span<double> shares) const override;
  [[nodiscard]] int64_t MemMib(uint32_t profile, GpuTypeId type) const override {
    const Demand* demand = FindDemand(profiles_[profile], type);
    return demand == nullptr ? 0 : demand->mem_mib.estimate;
  }

 private:
  ModelTruth(std::shared_ptr<const InterferenceModel> model, std::vector<ProfileDemands> profiles)
      : model_(std::move(model)), profiles_(std::move(profiles)) {}

  std::shared_ptr<const InterferenceModel> model_;
  std::vector<ProfileDemands> profiles_;
};

// ---- TableTruth: measured speeds, alone and in pairs, as the truth of a simulation.
// Cost: 16 bytes an ordered pair of the trace's profiles that runs together, 16 a GPU type and row of the table; a
// binary search among a profile's partners a pair.

// What a tenant keeps beside several others, of whom only the pairs were measured. With s the slowdown beside each:
enum class ManyTenants : uint8_t {
  kAdds = 0,        // 1 / (1 + sum of (s - 1)), as every model of pairs here has it (interference/laws.h)
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
  [[nodiscard]] double SpeedAlone(uint32_t profile, const DeviceContext& device) const override {
    const int32_t gpu = GpuOf(device);
    if (gpu == kNoGpu || profile >= rows_.size() || rows_[profile] == kNotStated) return 0;
    return alone_[static_cast<size_t>(gpu) * table_rows_ + rows_[profile]];
  }
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
  [[nodiscard]] int32_t GpuOf(const DeviceContext& device) const {
    const size_t type = device.type.value();
    return type < gpu_of_.size() && device.compute_share == 1 ? gpu_of_[type] : kNoGpu;
  }
  void LayOut(const SpeedTable& table);
  // 0 = not together.
  [[nodiscard]] double ShareBeside(size_t gpu_row, uint32_t other_row) const {
    const auto there = std::span(partners_).subspan(first_[gpu_row], first_[gpu_row + 1] - first_[gpu_row]);
    const Partner* partner = FindSorted(there, other_row, &Partner::row);
    return partner == nullptr ? 0 : partner->share;
  }

  std::vector<uint32_t> rows_;  // by profile
  size_t table_rows_;           // of each GPU
  ManyTenants many_;
  std::vector<int32_t> gpu_of_;    // by type
  std::vector<double> alone_;      // [gpu][row] speed relative to the unit type
  std::vector<size_t> first_;      // [gpu][row] of its partners, and the end of the last one's
  std::vector<Partner> partners_;  // by gpu and row, each one's ascending; who is missing does not run together
};

}  // namespace horus
