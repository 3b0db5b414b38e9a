// SPDX-License-Identifier: Apache-2.0
// Corrections: by how much observed slowdowns say that a model is wrong, for each two jobs on a kind of device.
//
// Enters:  a model and collected observations.
// Leaves:  shifts of z for any two tenants; none for jobs that nobody observed.
// Units:   z of laws.h; devices are told apart by type, mode and share.
// Cost:    to ask, an exponential for each job that victim or other was seen with, at most 2 x kMostMet, and some
//          4 x kMostTold^2 multiplications; to learn, some ten to a hundred times as many multiplications for each of
//          at most kMostPairs pairs.
// Thread class: immutable once learned, share freely.
#pragma once

#include <functional>
#include <limits>
#include <optional>

#include "device/catalogue.h"
#include "interference/laws.h"
#include "interference/observed_slowdowns.h"

namespace horus {

// How wrong a model may be of two jobs, as standard deviations of z: in common with all others on such a device, and
// beyond that.
struct ModelError {
  double level = 0, own = 0;
};

// What observations say of a victim beside another.
struct Correction {
  double shift = 0;      // of z
  double remaining = 1;  // of the model's margin; above 1 only where it knew nothing of the device
  // Where the two themselves were seen often enough: the margin of that, and z below which the bound may not lie.
  double margin = kNone, least_bound = -kNone;
  static constexpr double kNone = std::numeric_limits<double>::infinity();
};

// Share of the work done, 0-1; false cancels.
using CommitProgress = std::function<bool(double done)>;

class Corrections {
 public:
  // The newest situations first: those on types that the catalogue lacks are left out, those beyond kMostPairs, and of
  // the jobs that one job was seen with all but kMostMet. Errors: those of the model; kCancelled.
  [[nodiscard]] static absl::StatusOr<Corrections> Learn(const InterferenceModel& model,
                                                         const ObservedSlowdowns& observed, const Catalogue& catalogue,
                                                         const CommitProgress& progress = nullptr);

  // As ErrorOfJob found it when the job was first seen on such a device; none for a job that was not.
  [[nodiscard]] std::optional<double> KnownError(const DeviceContext& device, uint64_t profile_id) const;

  // `alone`: the model's answer for the victim beside the other alone. The errors are those of ErrorOfJob.
  [[nodiscard]] Correction Of(const DeviceContext& device, const Tenant& victim, double victim_error,
                              const Tenant& other, double other_error, const Slowdown& alone) const;

  // Of what all jobs on such a device have in common: whether anything was seen, and the deviation of z that is left.
  [[nodiscard]] std::optional<double> LevelLeft(const DeviceContext& device) const;

  [[nodiscard]] size_t size() const { return pairs_.size(); }  // ordered two jobs on a device that were seen
  [[nodiscard]] size_t bytes_held() const;

  static constexpr size_t kMostMet = 64;
  static constexpr size_t kMostPairs = 32'768;
  static constexpr size_t kMostTold = 16;  // observations of a job that margins rest on: those with the least noise

 private:
  friend class CorrectionsLearner;
  // Of the two jobs of a pair: the one of whose slowdown it tells, and the one beside it. Arrays of two are by role.
  enum Role : uint8_t { kVictim = 0, kOther = 1 };
  static constexpr std::array kRoles = {kVictim, kOther};
  [[nodiscard]] static constexpr Role Facing(Role role) { return role == kVictim ? kOther : kVictim; }
  struct Pair {
    uint64_t device = 0;  // fingerprint
    std::array<uint64_t, 2> jobs = {};
    std::array<JobPoint, 2> points = {};
    std::array<double, 2> errors = {};  // of the model, of each job beside itself; standard deviations of z
    double weight = 0;                  // what it adds to others, times their covariance with it
    double scale = 1;                   // of both: ScaleOfErrors
    double level = 0;                   // LevelError, as far as it has it in common with all of the device
    double noise = Correction::kNone;   // variance of what was seen of the two; infinite: never alone
    double margin = Correction::kNone, least_bound = -Correction::kNone;  // as in Correction
    [[nodiscard]] double Error(Role role) const { return scale * errors[role]; }
  };
  // What a pair's error has in common with those of all others on its device: a level and straight lines over the
  // columns of victim and other, each in units of its standard deviation before anything was seen.
  static constexpr size_t kCommon = 1 + 2 * kPointColumns;
  using Common = std::array<double, kCommon>;
  // A device of whose type and mode the model knew nothing.
  struct Level {
    uint64_t device = 0;
    double error = 0;                       // the model's LevelError
    Common shift = {};                      // of those
    std::array<Common, kCommon> left = {};  // their covariance
    double scale = 1;  // of all errors there: what was missed, by what the model said that it may miss
  };
  [[nodiscard]] static Common CommonOf(const Pair& pair);
  [[nodiscard]] static double Product(const Common& a, const Common& b);
  [[nodiscard]] static double LeftOf(const Level& level, const Common& common);  // a variance
  // A job in a role: the observations of it that say most, and the inverse of their covariances.
  struct Block {
    uint32_t first = 0, count = 0;  // of told_; the inverse is as many rows from `inverse` on
    size_t inverse = 0;
  };
  // What they leave of a part of the model's error, and of that together with the level.
  struct Left {
    double part = 0, with_level = 0;  // variances
  };
  // Positions of the pairs in which the job has that role, in the order of whom it faces.
  using Kin = std::span<const uint32_t>;
  [[nodiscard]] Kin With(Role role, uint64_t device, uint64_t job) const;
  [[nodiscard]] static uint64_t KeyOf(const DeviceContext& device);
  [[nodiscard]] const Level* LevelOf(uint64_t device) const;
  // `covariances`: of the asked one's part of the error with those of its kin.
  [[nodiscard]] Left LeftOf(const Pair& asked, const Common& common, Role role, Kin kin,
                            std::span<const double> covariances) const;
  // Of a job's part of the error, what two of its pairs have in common: a share of kErrorOfOne of its variance.
  [[nodiscard]] static double ShareOf(const Pair& a, const Pair& b, Role role);
  void Index();       // what follows from pairs_
  void MakeBlocks();  // the pairs' noises are known
  void MakeBlock(Kin kin, Role role);

  std::vector<Pair> pairs_;
  std::array<std::vector<uint32_t>, 2> order_;                     // positions, by device, job in that role, the other
  std::vector<Level> levels_;                                      // by device
  std::array<std::vector<std::pair<uint32_t, Block>>, 2> blocks_;  // by first position in order_
  std::vector<uint32_t> told_;                                     // which of their kin
  std::vector<float> inverses_;                                    // row by row
};

// How alike two jobs make a third suffer, and suffer beside it: 0-1.
[[nodiscard]] double ResemblanceOf(const JobPoint& a, const JobPoint& b);

// Of the variance of the model's error of a job beside itself, what the job carries with it as victim, and again as the
// other: beside anybody; smooth in whom it meets; of these two alone. Together one half. Round choices made with the
// public pairs in sight.
inline constexpr double kErrorOfJob = 0.15, kErrorSmooth = 0.33, kErrorOfPair = 0.02;
inline constexpr double kErrorOfOne = kErrorOfJob + kErrorSmooth + kErrorOfPair;

// How wrong the model may be, from a bound that it gives; `level`: its LevelError.
[[nodiscard]] ModelError ErrorOf(const Slowdown& answer, double level);
// Of two jobs it may know more or less than of each beside itself, as a table of measured pairs does: the factor on
// both errors, after which they explain its error of the two alone.
[[nodiscard]] double ScaleOfErrors(double victim_error, double other_error, const ModelError& alone);

// How wrong the model may be of a job beyond the level: from its bound of the job beside itself, as beside another it
// may lack knowledge of that one.
[[nodiscard]] absl::StatusOr<double> ErrorOfJob(const InterferenceModel& model, const DeviceContext& device,
                                                const Demand& job);

}  // namespace horus
