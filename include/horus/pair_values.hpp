// SPDX-License-Identifier: Apache-2.0
// Owning values for interference.h and learn_pairs.h, and their conversion to C structs. Included by horus.hpp.
#ifndef HORUS_PAIR_VALUES_HPP_
#define HORUS_PAIR_VALUES_HPP_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "horus/horus.h"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// A device as an interference model sees it.
struct SharedDevice {
  std::string gpu_type = {};  // name or alias of the catalogue
  int32_t sharing_mode = 0;   // HORUS_SHARING_*; 0 = TIME_SLICE
  double compute_share = 0;   // share of the GPU's compute that a MIG instance has, up to 1; 0 = 1
};

// Step time shared / step time alone.
struct Slowdown {
  float estimate = 1;
  float upper = 1;
  friend bool operator==(const Slowdown&, const Slowdown&) = default;
};

// The observed slowdown of one tenant of a shared device.
struct SlowdownObservation {
  SharedDevice device = {};
  Demand job = {};                      // on that type; profile_id not 0
  std::vector<Demand> co_tenants = {};  // 1 to 15, as `job`
  double slowdown = 0;                  // 0.5 to 1,000
  double predicted = 0;                 // by the decision; 0 = unknown
  double predicted_upper = 0;
  uint64_t device_id = 0;  // the caller's, for Observations::Devices; 0 = none
};

// The last predicted and observed slowdown of a tenant on a device.
struct ObservedTenant {
  uint64_t device_id = 0;
  uint64_t profile_id = 0;
  double observed = 0;
  double predicted = 0;
  double predicted_upper = 0;
  uint64_t times = 0;
};

// A job for which a commit may have changed answers, its own or its co-tenants'.
struct ChangedJob {
  std::string gpu_type;
  int32_t sharing_mode = 0;
  uint64_t profile_id = 0;
  friend bool operator==(const ChangedJob&, const ChangedJob&) = default;
};

// A measured pair. Profiles are the profile_id of the jobs' demands.
struct TablePair {
  std::string gpu_type = {};
  int32_t sharing_mode = 0;  // HORUS_SHARING_*; 0 = TIME_SLICE
  uint64_t profile_a = 0;
  uint64_t profile_b = 0;            // may equal a: two copies of a job
  double slowdown_a = kNotMeasured;  // of a beside b, 0.5 to 1,000
  double slowdown_b = kNotMeasured;
};

struct PairTable {
  std::vector<TablePair> pairs = {};
  double noise = 0;  // a bound is the measured slowdown plus this share of it; 0 = 0.05
};

namespace detail {

// Borrows the demands.
inline std::vector<const horus_demand*> Pointers(std::span<const Demand> demands) {
  std::vector<const horus_demand*> pointers;
  for (const Demand& demand : demands) pointers.push_back(&demand);
  return pointers;
}

// Borrows the device.
inline horus_device ToC(const SharedDevice& device) {
  return {sizeof(horus_device), device.sharing_mode, TextOrNull(device.gpu_type), device.compute_share};
}

// Borrows the PairTable.
class CPairTable {
 public:
  explicit CPairTable(const PairTable& table) {
    for (const TablePair& pair : table.pairs) {
      types_.push_back(TextOrNull(pair.gpu_type));
      modes_.push_back(pair.sharing_mode);
      profiles_a_.push_back(pair.profile_a);
      profiles_b_.push_back(pair.profile_b);
      slowdown_a_.push_back(pair.slowdown_a);
      slowdown_b_.push_back(pair.slowdown_b);
    }
    c_.count = table.pairs.size();
    c_.gpu_types = Column(types_);
    c_.sharing_modes = Column(modes_);
    c_.profiles_a = Column(profiles_a_);
    c_.profiles_b = Column(profiles_b_);
    c_.slowdown_a = Column(slowdown_a_);
    c_.slowdown_b = Column(slowdown_b_);
    c_.noise = table.noise;
  }
  CPairTable(const CPairTable&) = delete;
  CPairTable& operator=(const CPairTable&) = delete;
  [[nodiscard]] const horus_pair_table* get() const { return &c_; }

 private:
  std::vector<const char*> types_;
  std::vector<int32_t> modes_;
  std::vector<uint64_t> profiles_a_, profiles_b_;
  std::vector<double> slowdown_a_, slowdown_b_;
  horus_pair_table c_ = HORUS_PAIR_TABLE_INIT;
};

}  // namespace detail

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_PAIR_VALUES_HPP_
