// SPDX-License-Identifier: Apache-2.0
// Observed demands and slowdowns of running jobs in C++, over learn.h and learn_pairs.h. Included by horus.hpp.
#ifndef HORUS_OBSERVATIONS_HPP_
#define HORUS_OBSERVATIONS_HPP_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "horus/catalogue.hpp"
#include "horus/horus.h"
#include "horus/pair_values.hpp"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// Predictor::Commit makes observed demands visible, Interference::Commit slowdowns. One thread at a time.
class Observations {
 public:
  explicit Observations(size_t capacity = 0) {
    horus_observations* out = nullptr;
    detail::Call(horus_observations_create, capacity, &out);
    handle_.reset(out);
  }
  explicit Observations(std::span<const std::byte> snapshot) {
    horus_observations* out = nullptr;
    detail::Call(horus_observations_restore, snapshot.data(), snapshot.size(), &out);
    handle_.reset(out);
  }
  void Add(const horus_demand_observation& observation, const Catalogue* catalogue = nullptr) {
    detail::Call(horus_observations_add_demand, handle_.get(), detail::HandleOf(catalogue), &observation);
  }
  void AddSlowdown(const SlowdownObservation& observation, const Catalogue* catalogue = nullptr) {
    const std::vector<const horus_demand*> co_tenants = detail::Pointers(observation.co_tenants);
    const horus_device device = detail::ToC(observation.device);
    horus_slowdown_observation c = HORUS_SLOWDOWN_OBSERVATION_INIT;
    c.sharing_mode = device.sharing_mode;
    c.gpu_type = device.gpu_type;
    c.compute_share = device.compute_share;
    c.job = &observation.job;
    c.co_tenant_count = co_tenants.size();
    c.co_tenants = detail::Column(co_tenants);
    c.slowdown = observation.slowdown;
    c.predicted = observation.predicted;
    c.predicted_upper = observation.predicted_upper;
    c.device_id = observation.device_id;
    detail::Call(horus_observations_add_slowdown, handle_.get(), detail::HandleOf(catalogue), &c);
  }
  // Of a resident beside all others on its device; `seen` has the cluster and the place (horus_slowdown_observation).
  void AddResident(const horus_slowdown_observation& seen) {
    detail::Call(horus_observations_add_slowdown, handle_.get(), nullptr, &seen);
  }
  // How accurate the predictions were, over the observed slowdowns that state one.
  [[nodiscard]] horus_calibration calibration() const {
    horus_calibration calibration = HORUS_CALIBRATION_INIT;
    detail::Call(horus_observations_get_calibration, get(), &calibration);
    return calibration;
  }
  // The last predicted and observed slowdown of each tenant on each device with an id, least recent first.
  [[nodiscard]] std::vector<ObservedTenant> Devices() const {
    size_t count = detail::CountOf([&](size_t* needed, horus_error* error) {
      return horus_observations_get_devices(get(), 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, needed,
                                            error);
    });
    std::vector<uint64_t> devices(count), profiles(count), times(count);
    std::vector<double> observed(count), predicted(count), upper(count);
    detail::Call(horus_observations_get_devices, get(), count, devices.data(), profiles.data(), observed.data(),
                 predicted.data(), upper.data(), times.data(), &count);
    std::vector<ObservedTenant> tenants;
    for (size_t i = 0; i < count; ++i) {
      tenants.push_back({devices[i], profiles[i], observed[i], predicted[i], upper[i], times[i]});
    }
    return tenants;
  }
  [[nodiscard]] std::vector<std::byte> Snapshot() const {
    return detail::Collect<std::byte>([&](size_t capacity, std::byte* bytes, size_t* count, horus_error* error) {
      return horus_observations_snapshot(get(), capacity, bytes, count, error);
    });
  }
  [[nodiscard]] const horus_observations* get() const noexcept { return handle_.get(); }

 private:
  detail::Owned<horus_observations, horus_observations_free> handle_;
};

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_OBSERVATIONS_HPP_
