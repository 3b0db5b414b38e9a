// SPDX-License-Identifier: Apache-2.0
// The kind "horus": a Gaussian process over victim, other and device, on top of what theory says of time slicing.
//
// Enters:  to fit: rows of a PairSet. To answer: tenants and their device.
// Leaves:  slowdowns; README.md has the formula and where its constants come from.
// Units:   slowdown = step time shared / step time alone; inside, z of laws.h.
// Cost:    to answer n tenants: n exponentials and n x jobs multiplications for each job and device trained on. Of many
//          tenants beside one newcomer each takes an exponential and four multiplications for each of these
//          (scripts/bench place --only unique). To fit: some hundred products of matrices of that size.
// Thread class: a KernelModel is immutable, share freely.
#pragma once

#include "interference/pair_model.h"

namespace horus {

// Standard deviations of z that each part of the prior may explain, and its lengths: round choices, not fits
// (README.md says with what in sight).
struct KernelSettings {
  double level = 1;          // of all rows, and again of a device's
  double slope = 0.2;        // of a straight line, a standard deviation of a column
  double curve = 0.3;        // of a smooth function of a tenant's columns
  double job = 0.15;         // of a job, beyond its columns
  double interaction = 0.2;  // of a smooth function of both tenants' columns
  double pair = 0.1;         // of two jobs, beyond their columns
  double campaign = 0.1;     // of a campaign, and of a job in it; part of the fit, not of the answers
  double noise = 0.08;       // of a single measurement
  double length = 1.5;       // of the smooth functions, in standard deviations of a column
  double across = 0.6;       // correlation of one part on two devices, 0-1
};

// What a device's rows taught: one entry a job with rows there, and a weight for each two of them.
struct KernelBlock {
  using Point = std::array<double, kPointColumns>;  // standardised; unknown = 0

  std::vector<uint32_t> jobs;   // positions in the header, ascending
  std::vector<Point> points;    // parallel to jobs
  std::vector<double> weights;  // jobs x jobs, victim major

  // Made of the above by Complete().
  std::vector<double> victim_weights, other_weights;  // sums of rows and columns
  Point victim_slope = {}, other_slope = {};
  double sum = 0;
  void Complete();
  [[nodiscard]] size_t size() const { return jobs.size(); }
};

struct KernelState {
  KernelSettings settings;
  std::array<double, kPointColumns> centre = {}, scale = {};  // of the columns; scale > 0
  double mean = 0;                                            // of z beyond theory
  std::vector<KernelBlock> blocks;                            // parallel to the header's devices; empty = no rows

  [[nodiscard]] KernelBlock::Point Standardise(const JobPoint& point) const;
};

class KernelModel final : public PairModel {
 public:
  KernelModel(const PairHeader& header, KernelState state);  // blocks are completed here

  void Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const override;
  void Beside(uint32_t device, const Tenant& newcomer, std::span<const Tenant> others, std::span<float> mine,
              std::span<float> theirs) const override;
  // What both tenants' columns say together is bounded by its norm.
  [[nodiscard]] Parts LeastOf(uint32_t device, const Tenant& newcomer) const override;
  [[nodiscard]] Parts PartOf(uint32_t device, const Tenant& resident) const override;
  [[nodiscard]] size_t bytes_held() const override;

 private:
  using Entries = std::vector<double>;  // one for each entry of all blocks
  struct OnDevice {                     // what the blocks say there
    uint32_t device = kUnseen;
    double across = 0;                  // share of what other devices taught
    double level = 0, to_law = 0;       // of z, for all pairs; what is missing to the law, where nothing was measured
    Entries victim_curve, other_curve;  // a unit of Encoded::near
    KernelBlock::Point victim_slope = {}, other_slope = {};
    [[nodiscard]] double ShareOf(size_t block) const { return block == device ? 1 : across; }
  };
  struct Encoded;
  struct Reach;
  [[nodiscard]] uint32_t JobOf(uint64_t profile) const;  // kUnseen
  [[nodiscard]] OnDevice MakeOn(uint32_t device) const;
  [[nodiscard]] const OnDevice& On(uint32_t device) const { return on_[std::min<size_t>(device, on_.size() - 1)]; }
  void Encode(const OnDevice& on, const Tenant& tenant, Encoded& out) const;
  void ReachOf(const Encoded& tenant, Reach& as_victim, Reach& as_other) const;
  // What the smooth function of both tenants' columns says.
  [[nodiscard]] double Interaction(const OnDevice& on, const Reach& reach, const Encoded& other) const;
  // No Interaction with that reach is larger, either way.
  [[nodiscard]] double MostInteraction(const OnDevice& on, const Reach& reach) const;
  // What is remembered of two jobs by name, on this device and on the others.
  [[nodiscard]] double Remembered(const OnDevice& on, uint32_t victim, uint32_t other) const;
  [[nodiscard]] float SlowdownIn(const OnDevice& on, const Encoded& victim, const Encoded& other,
                                 double interaction) const;

  KernelState state_;
  std::vector<std::pair<uint64_t, uint32_t>> profiles_;    // sorted: profile, position in the header
  std::vector<std::vector<int32_t>> slots_;                // [device][job]: position in the block, -1 = no rows
  std::array<std::vector<float>, kPointColumns> columns_;  // the points of all entries
  std::vector<double> weights_;                            // of all blocks; whole numbers
  std::vector<double> kernels_;                            // of each two entries
  double interaction_unit_ = 0;                            // of z
  std::vector<OnDevice> on_;                               // by device; then any other
};

inline constexpr size_t kMostKernelEntries = 512;   // jobs with rows, summed over devices
inline constexpr size_t kMostKernelPairs = 65'536;  // ordered two of them with rows

[[nodiscard]] BundleTarget ToTarget(const KernelState& state);
[[nodiscard]] absl::StatusOr<KernelState> KernelFromTarget(const PairHeader& header, const BundleTarget& target);

inline constexpr std::string_view kKernelName = "horus";
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadKernelModel(const PairHeader& header,
                                                                               const BundleTarget& target);

}  // namespace horus
