// SPDX-License-Identifier: Apache-2.0
// Interference models in C++, over interference.h and learn_pairs.h. Included by horus.hpp.
#ifndef HORUS_INTERFERENCE_HPP_
#define HORUS_INTERFERENCE_HPP_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "horus/catalogue.hpp"
#include "horus/horus.h"
#include "horus/observations.hpp"
#include "horus/pair_values.hpp"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// An interference model. Immutable: share freely (a callback model: as its callback allows).
class Interference {
 public:
  // The built-in model of that name; empty = "horus".
  explicit Interference(const std::string& name = {}) {
    horus_interference* out = nullptr;
    detail::Call(horus_interference_create, detail::TextOrNull(name), &out);
    handle_.reset(out);
  }
  // The model of that name in a trained bundle.
  [[nodiscard]] static Interference FromBytes(std::span<const std::byte> bundle, const std::string& name = {},
                                              const Catalogue* catalogue = nullptr) {
    horus_interference* out = nullptr;
    detail::Call(horus_interference_from_bytes, detail::HandleOf(catalogue), bundle.data(), bundle.size(),
                 detail::TextOrNull(name), &out);
    return Interference(out);
  }
  // Answers with measured pairs, and with `fallback` (null = the built-in "horus") where nothing was measured.
  [[nodiscard]] static Interference FromTable(const PairTable& table, const Interference* fallback = nullptr,
                                              const Catalogue* catalogue = nullptr) {
    horus_interference* out = nullptr;
    detail::Call(horus_interference_from_table, detail::HandleOf(catalogue), detail::CPairTable(table).get(),
                 fallback == nullptr ? nullptr : fallback->get(), &out);
    return Interference(out);
  }
  // `user` must outlive the model and every placer made with it. The callback must not throw. Slowdowns stay within its
  // upper bounds with `upper_probability`, 0.5 to 0.999.
  [[nodiscard]] static Interference FromCallback(horus_interference_callback callback, void* user, uint64_t epoch,
                                                 const Catalogue* catalogue = nullptr, double upper_probability = 0.9) {
    horus_interference* out = nullptr;
    detail::Call(horus_interference_from_callback, detail::HandleOf(catalogue), callback, user, epoch,
                 upper_probability, &out);
    return Interference(out);
  }
  // A new model, of a new epoch: this one corrected by the observations.
  [[nodiscard]] Interference Commit(const Observations& observations, const Catalogue* catalogue = nullptr) const {
    horus_interference* out = nullptr;
    detail::Call(horus_interference_commit, get(), detail::HandleOf(catalogue), observations.get(), nullptr, nullptr,
                 &out);
    return Interference(out);
  }
  // Jobs for which the commit that made this model may have changed answers; empty if no commit made it.
  [[nodiscard]] std::vector<ChangedJob> Changes() const {
    size_t count = detail::CountOf([&](size_t* needed, horus_error* error) {
      return horus_interference_get_changes(get(), 0, nullptr, nullptr, nullptr, needed, error);
    });
    std::vector<const char*> types(count);
    std::vector<int32_t> modes(count);
    std::vector<uint64_t> profiles(count);
    detail::Call(horus_interference_get_changes, get(), count, types.data(), modes.data(), profiles.data(), &count);
    std::vector<ChangedJob> changes;
    for (size_t i = 0; i < count; ++i) changes.push_back({types[i], modes[i], profiles[i]});
    return changes;
  }
  // One slowdown per tenant of the device, in their order.
  [[nodiscard]] std::vector<Slowdown> Slowdowns(const SharedDevice& device, std::span<const Demand> tenants,
                                                const Catalogue* catalogue = nullptr) const {
    const std::vector<const horus_demand*> demands = detail::Pointers(tenants);
    const horus_device c = detail::ToC(device);
    std::vector<float> estimates(demands.size()), uppers(demands.size());
    horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
    columns.slowdown = estimates.data();
    columns.slowdown_upper = uppers.data();
    detail::Call(horus_interference_slowdown, get(), detail::HandleOf(catalogue), &c, demands.size(),
                 detail::Column(demands), 0.0, &columns);
    std::vector<Slowdown> slowdowns;
    for (size_t i = 0; i < demands.size(); ++i) slowdowns.push_back({estimates[i], uppers[i]});
    return slowdowns;
  }
  struct Quantiles {
    std::vector<float> slowdowns;     // not exceeded with the probability; one per tenant
    std::vector<uint8_t> calibrated;  // 1 = left-out data support the probability, 0 = extrapolated
  };
  // `probability`: 0.5 to 0.999; of a callback model only its own, else UNSUPPORTED.
  [[nodiscard]] Quantiles SlowdownsAt(double probability, const SharedDevice& device, std::span<const Demand> tenants,
                                      const Catalogue* catalogue = nullptr) const {
    const std::vector<const horus_demand*> demands = detail::Pointers(tenants);
    const horus_device c = detail::ToC(device);
    Quantiles out{std::vector<float>(demands.size()), std::vector<uint8_t>(demands.size())};
    horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
    columns.slowdown_upper = out.slowdowns.data();
    columns.calibrated = out.calibrated.data();
    detail::Call(horus_interference_slowdown, get(), detail::HandleOf(catalogue), &c, demands.size(),
                 detail::Column(demands), probability, &columns);
    return out;
  }
  // At i * tenants.size() + j: 1 = the slowdown of tenant i beside tenant j was measured (FromTable).
  [[nodiscard]] std::vector<uint8_t> Measured(const SharedDevice& device, std::span<const Demand> tenants,
                                              const Catalogue* catalogue = nullptr) const {
    const std::vector<const horus_demand*> demands = detail::Pointers(tenants);
    const horus_device c = detail::ToC(device);
    std::vector<uint8_t> measured(demands.size() * demands.size());
    horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
    columns.measured = measured.data();
    detail::Call(horus_interference_slowdown, get(), detail::HandleOf(catalogue), &c, demands.size(),
                 detail::Column(demands), 0.0, &columns);
    return measured;
  }
  // For FromBytes. UNSUPPORTED unless the model was trained or read from a bundle.
  [[nodiscard]] std::vector<std::byte> Bundle() const {
    return detail::Collect<std::byte>([&](size_t capacity, std::byte* bytes, size_t* count, horus_error* error) {
      return horus_interference_to_bytes(get(), capacity, bytes, count, error);
    });
  }
  [[nodiscard]] std::string name() const { return info().name; }
  [[nodiscard]] uint64_t epoch() const { return info().epoch; }
  [[nodiscard]] horus_interference_info info() const {
    horus_interference_info info = HORUS_INTERFERENCE_INFO_INIT;
    detail::Call(horus_interference_get_info, get(), &info);
    return info;
  }
  [[nodiscard]] const horus_interference* get() const noexcept { return handle_.get(); }

  // Takes ownership of the handle.
  explicit Interference(horus_interference* owned) noexcept : handle_(owned) {}

 private:
  detail::Owned<horus_interference, horus_interference_free> handle_;
};

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_INTERFERENCE_HPP_
