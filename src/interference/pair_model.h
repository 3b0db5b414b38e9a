// SPDX-License-Identifier: Apache-2.0
// What every learned interference model is behind the seam: a function of two tenants, fitted to measured pairs.
//
// Enters:  to fit: rows of a PairSet. To answer: the tenants of one device and which device of the training set it is.
// Leaves:  to fit: a BundleTarget. To answer: for each ordered two tenants the slowdown of the first beside the second.
// Units:   slowdown = step time shared / step time alone.
// Cost:    stated by each kind.           Thread class: a PairModel is immutable, share freely.
#ifndef HORUS_INTERFERENCE_PAIR_MODEL_H_
#define HORUS_INTERFERENCE_PAIR_MODEL_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "interference/job_point.h"
#include "interference/pair_set.h"
#include "trees/bundle.h"

namespace horus {

// Who and where a bundle was trained on: positions in these lists are what models know devices and jobs by.
struct PairHeader {
  std::vector<PairDevice> devices;
  std::vector<uint64_t> profiles;  // of PairSet::jobs; 0 = none

  // The position, or kUnseen.
  [[nodiscard]] uint32_t DeviceOf(const PairDevice& device) const;
  friend bool operator==(const PairHeader&, const PairHeader&) = default;
};
inline constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();
[[nodiscard]] PairHeader HeaderOf(const PairSet& set);

class PairModel {
 public:
  virtual ~PairModel() = default;

  // out[i * n + j] becomes the slowdown of tenant i beside tenant j, for n = tenants.size() and i != j; what lies on
  // the diagonal is left alone. Finite and at least 1. `device` is a position in the header's list or kUnseen. Pure.
  virtual void Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const = 0;

  [[nodiscard]] virtual size_t bytes_held() const = 0;
};

struct PairFitOptions {
  uint32_t seed = 0;
  std::string library_path;  // of libhorus_train.so; empty: found as trees/trainer.h says
};

// One kind of learned model. `fit` reads jobs and devices of the set and those of its rows that it is given (at least
// one); equal input gives equal targets. `read` refuses (kDataLoss) what `fit` cannot have written.
struct PairModelKind {
  std::string_view name;  // of the target in a bundle too
  absl::StatusOr<BundleTarget> (*fit)(const PairSet& set, std::span<const PairRow> rows, const PairFitOptions& options);
  absl::StatusOr<std::unique_ptr<const PairModel>> (*read)(const PairHeader& header, const BundleTarget& target);
};

}  // namespace horus

#endif  // HORUS_INTERFERENCE_PAIR_MODEL_H_
