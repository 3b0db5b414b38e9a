// SPDX-License-Identifier: Apache-2.0
// Applies corrections to a model's answers.
#include "interference/corrected_model.h"

#include <bit>

#include "base/hash.h"
#include "base/status.h"
#include "interference/pair_bounds.h"

namespace horus {
namespace {

double MarginOf(const Slowdown& s) {
  return ExcessOf(static_cast<double>(s.upper)) - ExcessOf(static_cast<double>(s.estimate));
}

Slowdown Shifted(const Slowdown& s, double shift, double margin) {
  const double estimate = SlowdownOf(ExcessOf(static_cast<double>(s.estimate)) + shift);
  return {static_cast<float>(estimate), static_cast<float>(UpperOf(estimate, margin))};
}

Slowdown Corrected(const Slowdown& s, const Correction& c) {
  const double own = MarginOf(s);  // 0: the model gives no bound
  const double margin = own > 0 ? std::min(c.margin, c.remaining * own) : std::isfinite(c.margin) ? c.margin : 0;
  const double z = ExcessOf(static_cast<double>(s.estimate)) + c.shift;
  return Shifted(s, c.shift, std::max(margin, c.least_bound - z));
}

}  // namespace

CorrectedModel::SeenDevices CorrectedModel::SeenIn(const ObservedSlowdowns& observed) {
  SeenDevices devices;
  for (const auto& [age, s] : observed.situations()) {
    Seen& seen = devices[{s.gpu, s.mode}];
    uint64_t hash = CombineHash(s.seen, std::bit_cast<uint32_t>(s.compute_share));
    for (const double value : {s.weight, s.mean, s.variance}) hash = CombineHash(hash, std::bit_cast<uint64_t>(value));
    for (const Demand& tenant : s.tenants) {
      hash = CombineHash(hash, ProfileAsRun(tenant));
      seen.jobs.insert(ProfileAsRun(tenant));
    }
    seen.fingerprint += hash;
  }
  return devices;
}

void CorrectedModel::AddLevels(const Catalogue& catalogue) {
  for (auto& [device, seen] : seen_) {
    const std::optional<GpuTypeId> type = catalogue.FindKnown(device.first);
    if (!type.has_value()) continue;
    if (beneath_->LevelError({.type = *type, .mode = device.second}) > 0) seen.jobs.insert(0);
  }
}

// One situation more, another or forgotten moves all answers on its kind of device a little.
std::vector<ChangedJob> CorrectedModel::Changes(const SeenDevices& before, const SeenDevices& after) {
  std::set<ChangedJob> changed;
  const auto add = [&changed](const SeenDevices& these, const SeenDevices& those) {
    for (const auto& [device, seen] : these) {
      const auto at = those.find(device);
      if (at != those.end() && at->second.fingerprint == seen.fingerprint) continue;
      for (const uint64_t job : seen.jobs) changed.insert({device.first, device.second, job});
    }
  };
  add(before, after);
  add(after, before);
  return {changed.begin(), changed.end()};
}

absl::StatusOr<std::shared_ptr<const CorrectedModel>> CorrectedModel::Commit(
    std::shared_ptr<const InterferenceModel> model, const ObservedSlowdowns& observed, const Catalogue& catalogue,
    const CommitProgress& progress) {
  SeenDevices before;
  if (const auto* corrected = dynamic_cast<const CorrectedModel*>(model.get()); corrected != nullptr) {
    before = corrected->seen_;
    model = corrected->beneath_;
  }
  const std::shared_ptr<CorrectedModel> result(new CorrectedModel());
  HORUS_ASSIGN_OR_RETURN(result->corrections_, Corrections::Learn(*model, observed, catalogue, progress));
  result->epoch_ = CombineHash(model->epoch(), Hash64(observed.Save()));
  result->observations_ = observed.epoch();
  result->seen_ = SeenIn(observed);
  result->beneath_ = std::move(model);
  result->AddLevels(catalogue);
  result->changed_ = Changes(before, result->seen_);
  return std::shared_ptr<const CorrectedModel>(result);
}

absl::Status CorrectedModel::Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const {
  HORUS_RETURN_IF_ERROR(beneath_->Predict(device, tenants, out));
  const size_t n = tenants.size();
  if (n < 2 || corrections_.size() == 0) return absl::OkStatus();
  std::vector<Tenant> points;
  std::vector<std::optional<double>> known;
  for (const Demand* tenant : tenants) {
    points.push_back(TenantOf(*tenant, device));
    known.push_back(corrections_.KnownError(device, ProfileAsRun(*tenant)));
  }
  if (!corrections_.LevelLeft(device).has_value() &&
      std::none_of(known.begin(), known.end(), [](const auto& error) { return error.has_value(); })) {
    return absl::OkStatus();
  }
  std::vector<double> errors;
  for (size_t i = 0; i < n; ++i) {
    if (!known[i].has_value()) HORUS_SET_OR_RETURN(known[i], ErrorOfJob(*beneath_, device, *tenants[i]));
    errors.push_back(*known[i]);
  }
  const auto correct = [&](size_t victim, size_t other, const Slowdown& alone) {
    return corrections_.Of(device, points[victim], errors[victim], points[other], errors[other], alone);
  };
  if (n == 2) {
    for (const size_t i : {size_t{0}, size_t{1}}) out[i] = Corrected(out[i], correct(i, 1 - i, out[i]));
    return absl::OkStatus();
  }
  // Of what each other costs the victim, its share of the correction; in an order that is not the caller's.
  struct Part {
    double excess, shift, remaining;
    auto operator<=>(const Part&) const = default;
  };
  std::vector<std::vector<Part>> parts(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      const std::array<const Demand*, 2> two = {tenants[i], tenants[j]};
      std::array<Slowdown, 2> alone;
      HORUS_RETURN_IF_ERROR(beneath_->Predict(device, two, alone));
      const auto add = [&](size_t victim, size_t other, const Slowdown& s) {
        const Correction c = correct(victim, other, s);
        parts[victim].push_back({static_cast<double>(s.estimate) - kSlowdownShift, c.shift, c.remaining});
      };
      add(i, j, alone[0]);
      add(j, i, alone[1]);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    std::sort(parts[i].begin(), parts[i].end());
    double excess = 0, shift = 0, remaining = 0;
    for (const Part& part : parts[i]) {
      excess += part.excess;
      shift += part.excess * part.shift;
      remaining += part.excess * part.remaining;
    }
    out[i] = Shifted(out[i], shift / excess, remaining / excess * MarginOf(out[i]));
  }
  return absl::OkStatus();
}

double CorrectedModel::LevelError(const DeviceContext& device) const {
  return corrections_.LevelLeft(device).value_or(beneath_->LevelError(device));
}

size_t CorrectedModel::bytes_held() const {
  size_t bytes = sizeof(*this) + corrections_.bytes_held();
  for (const ChangedJob& job : changed_) bytes += sizeof(job) + job.gpu.capacity();
  for (const auto& [device, seen] : seen_) {
    bytes += sizeof(seen) + sizeof(device) + device.first.capacity() +
             seen.jobs.size() * 5 * sizeof(uint64_t);  // tree nodes
  }
  return bytes;
}

}  // namespace horus
