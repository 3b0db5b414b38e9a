// SPDX-License-Identifier: Apache-2.0
// Corrections: by how much observed slowdowns say that a model is wrong, for each two jobs on a kind of device.
//
// Enters:  a model and collected observations.
// Leaves:  shifts of z for any two tenants; none for jobs that nobody observed.
// Units:   z of excess.h; devices are told apart by type, mode and share.
// Cost:    to ask, an exponential for each job that victim or other was seen with, at most 2 x kMostMet; to learn,
//          some ten to a hundred times as many multiplications for each of at most kMostPairs pairs.
// Thread class: immutable once learned, share freely.
#ifndef HORUS_INTERFERENCE_CORRECTIONS_H_
#define HORUS_INTERFERENCE_CORRECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/job_point.h"
#include "interference/model.h"
#include "interference/observed_slowdowns.h"

namespace horus {

// What observations say of a victim beside another.
struct Correction {
  double shift = 0;      // of z
  double remaining = 1;  // of the model's margin, 0-1
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

  [[nodiscard]] size_t size() const { return pairs_.size(); }  // ordered two jobs on a device that were seen
  [[nodiscard]] size_t bytes_held() const;

  static constexpr size_t kMostMet = 64;
  static constexpr size_t kMostPairs = 32'768;

 private:
  friend class CorrectionsLearner;
  struct Pair {
    uint64_t device = 0;  // fingerprint
    uint64_t victim = 0, other = 0;
    JobPoint victim_point = {}, other_point = {};
    double victim_error = 0, other_error = 0;  // of the model, of each job beside itself; standard deviations of z
    double weight = 0;                         // what it adds to others, times their covariance with it
    double scale = 1;                          // of both: ScaleOfErrors
    double noise = Correction::kNone;          // variance of what was seen of the two; infinite: never alone
    double margin = Correction::kNone, least_bound = -Correction::kNone;  // as in Correction
  };
  [[nodiscard]] static uint64_t KeyOf(const DeviceContext& device);
  [[nodiscard]] std::pair<size_t, size_t> WithVictim(uint64_t device, uint64_t victim) const;
  [[nodiscard]] std::span<const uint32_t> WithOther(uint64_t device, uint64_t other) const;
  // Calls visit(position, share, as_victim) for all whose error has a part in common with that of `asked`: the victim's
  // or the other's, and which share of kErrorOfOne of its variance. Two jobs that were seen together are visited twice.
  template <typename Visit>
  void VisitRelated(const Pair& asked, const Visit& visit) const;
  void Index();  // pairs_ are in their order

  std::vector<Pair> pairs_;         // by device, victim, other
  std::vector<uint32_t> by_other_;  // positions, by device, other, victim
};

// How alike two jobs make a third suffer, and suffer beside it: 0-1.
[[nodiscard]] double ResemblanceOf(const JobPoint& a, const JobPoint& b);

// Of the variance of the model's error of a job beside itself, what the job carries with it as victim, and again as the
// other: beside anybody; smooth in whom it meets; of these two alone. Together one half. Round choices made with the
// public pairs in sight.
inline constexpr double kErrorOfJob = 0.15, kErrorSmooth = 0.33, kErrorOfPair = 0.02;
inline constexpr double kErrorOfOne = kErrorOfJob + kErrorSmooth + kErrorOfPair;

inline constexpr double kDeviationsToBound = 1.645;  // from an estimate to a bound at 95 %

// How wrong the model may be, from a bound that it gives; standard deviations of z.
[[nodiscard]] double ErrorOf(const Slowdown& answer);
// Of two jobs it may know more or less than of each beside itself, as a table of measured pairs does: the factor on
// both errors. `alone` is its answer for the two.
[[nodiscard]] double ScaleOfErrors(double victim_error, double other_error, const Slowdown& alone);

// How wrong the model may be of a job: from its bound of the job beside itself, as beside another it may lack knowledge
// of that one.
[[nodiscard]] absl::StatusOr<double> ErrorOfJob(const InterferenceModel& model, const DeviceContext& device,
                                                const Demand& job);

template <typename Visit>
void Corrections::VisitRelated(const Pair& asked, const Visit& visit) const {
  const auto share = [](const JobPoint& seen, const JobPoint& wanted, bool same) {
    return kErrorOfJob + kErrorSmooth * ResemblanceOf(seen, wanted) + (same ? kErrorOfPair : 0);
  };
  const auto [first, last] = WithVictim(asked.device, asked.victim);
  for (size_t i = first; i < last; ++i) {
    visit(i, share(pairs_[i].other_point, asked.other_point, pairs_[i].other == asked.other), true);
  }
  for (const uint32_t i : WithOther(asked.device, asked.other)) {
    visit(i, share(pairs_[i].victim_point, asked.victim_point, pairs_[i].victim == asked.victim), false);
  }
}

}  // namespace horus

#endif  // HORUS_INTERFERENCE_CORRECTIONS_H_
