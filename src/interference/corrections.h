// SPDX-License-Identifier: Apache-2.0
// Corrections: by how much observed slowdowns say that a model is wrong, for each two jobs on a kind of device.
//
// Enters:  a model and collected observations.
// Leaves:  shifts of z for any two tenants; none for jobs that nobody observed.
// Units:   z of excess.h; devices are told apart by type, mode and share.
// Cost:    to learn, some ten sums over all situations times jobs met, after one question to the model a situation; to
// ask,
//          an exponential for each job that victim or other was seen with, at most 128.
// Thread class: immutable once learned, share freely.
#ifndef HORUS_INTERFERENCE_CORRECTIONS_H_
#define HORUS_INTERFERENCE_CORRECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/job_point.h"
#include "interference/model.h"
#include "interference/observed_slowdowns.h"

namespace horus {

// What a shift of two tenants rests on.
struct Correction {
  double shift = 0;  // of z
  double margin =
      -1;  // of z: how far the truth may lie above, where the two themselves were seen often enough; else < 0
};

class Corrections {
 public:
  // Situations on types that the catalogue lacks are left out, and of the jobs that one job was seen with all but the
  // latest kMostMet. Errors: those of the model.
  [[nodiscard]] static absl::StatusOr<Corrections> Learn(const InterferenceModel& model,
                                                         const ObservedSlowdowns& observed, const Catalogue& catalogue);

  // `estimate` is the model's own answer for the victim beside the other alone.
  [[nodiscard]] Correction Of(const DeviceContext& device, const Tenant& victim, const Tenant& other,
                              const Slowdown& estimate) const;

  [[nodiscard]] size_t size() const { return pairs_.size(); }  // ordered two jobs on a device that were seen
  [[nodiscard]] size_t bytes_held() const;

  static constexpr size_t kMostMet = 64;

 private:
  struct Pair {
    uint64_t device = 0;  // fingerprint
    uint64_t victim = 0, other = 0;
    JobPoint victim_point = {}, other_point = {};
    double amplitude = 0;  // standard deviation of the model's error in z, before any observation
    double weight = 0;     // what it adds to others
    double margin = -1;    // as in Correction
  };
  struct Equations;
  [[nodiscard]] std::pair<size_t, size_t> WithVictim(uint64_t device, uint64_t victim) const;
  [[nodiscard]] std::span<const uint32_t> WithOther(uint64_t device, uint64_t other) const;
  [[nodiscard]] double Covered(const Pair& pair) const;  // sum of the weights times the covariance with this pair
  void Index();

  std::vector<Pair> pairs_;         // by device, victim, other
  std::vector<uint32_t> by_other_;  // positions, by device, other, victim
};

}  // namespace horus

#endif  // HORUS_INTERFERENCE_CORRECTIONS_H_
