// SPDX-License-Identifier: Apache-2.0
// horus/sim.h, truths: from a model and demands, or from measured speeds.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/sim_convert.h"
#include "capi/sim_handles.h"
#include "interference/registry.h"

namespace horus::capi {
namespace {

static_assert(HORUS_TENANTS_ADD == static_cast<int>(ManyTenants::kAdds) &&
              HORUS_TENANTS_MULTIPLY == static_cast<int>(ManyTenants::kMultiplies));

// What ModelTruth::Create will say of them, with the profile's name.
absl::Status CheckSteps(const DemandsByProfile& demands) {
  for (const auto& [profile, all] : demands) {
    const auto timed = std::count_if(all.begin(), all.end(),
                                     [](const TypeDemand& one) { return one.demand.step_time_us.estimate > 0; });
    if (timed == 0 || timed == std::ptrdiff_t(all.size())) continue;
    return InvalidArgument("demands: profile '%s': expected step times on all of %d types or none, found %d", profile,
                           all.size(), timed);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<horus_truth>> FromModel(std::shared_ptr<const Catalogue> catalogue,
                                                       const horus_interference* model,
                                                       const horus_profile_demands* demands) {
  auto truth = std::make_unique<horus_truth>();
  if (model == nullptr) {
    HORUS_ASSIGN_OR_RETURN(truth->model, MakeInterferenceModel(kDefaultInterferenceModel));
  } else if (!SameTypes(model->catalogue, catalogue)) {
    return InvalidArgument("model: expected one for the GPU types of the catalogue, found others");
  } else {
    truth->model = model->value;
  }
  HORUS_ASSIGN_OR_RETURN(truth->demands, ProfileDemandsFromC(*catalogue, "demands", demands));
  HORUS_RETURN_IF_ERROR(CheckSteps(truth->demands));
  truth->catalogue = std::move(catalogue);
  return truth;
}

absl::StatusOr<std::unique_ptr<horus_truth>> FromSpeeds(std::shared_ptr<const Catalogue> catalogue,
                                                        const horus_speeds* speeds, int32_t many) {
  if (many != HORUS_TENANTS_ADD && many != HORUS_TENANTS_MULTIPLY) {
    return InvalidArgument("many: expected HORUS_TENANTS_* (0 or 1), found %d", many);
  }
  auto truth = std::make_unique<horus_truth>();
  truth->many = static_cast<ManyTenants>(many);
  HORUS_ASSIGN_OR_RETURN(truth->speeds, SpeedsFromC(speeds, /*with_names=*/true));
  const SpeedTable& table = truth->speeds.table;
  for (size_t gpu = 0; gpu < table.gpus.size(); ++gpu) {
    const absl::StatusOr<GpuTypeId> type = catalogue->Find(table.gpus[gpu]);
    if (!type.ok()) return At("speeds: " + Element("gpu_types", gpu), type.status());
    truth->types.push_back(*type);
  }
  // What is left to check: two names of one type.
  HORUS_RETURN_IF_ERROR(TableTruth::Create(table, truth->types, {}, truth->speeds.reference).status());
  truth->catalogue = std::move(catalogue);
  return truth;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Trace>> TimedBy(const horus_truth& truth,
                                                     const std::shared_ptr<const Trace>& trace) {
  const auto by_steps = [](const TraceJob& job) { return job.steps > 0; };
  if (truth.model != nullptr || std::none_of(trace->jobs.begin(), trace->jobs.end(), by_steps)) return trace;
  HORUS_ASSIGN_OR_RETURN(Trace timed, StepsToDurations(*trace, truth.speeds.table, truth.speeds.reference));
  return std::make_shared<const Trace>(std::move(timed));
}

namespace {

absl::StatusOr<std::unique_ptr<Truth>> SpeedsOf(const horus_truth& truth, const Trace& trace) {
  const bool foretold = truth.model != nullptr;
  std::vector<ProfileDemands> demands;
  std::vector<uint32_t> rows;
  if (foretold) {
    demands = DemandsFor(trace, truth.demands, {});
  } else {
    rows = RowsOfProfiles(trace, truth.speeds.table);
  }
  const std::vector<bool> used = ProfilesOnGpus(trace);
  for (size_t profile = 0; profile < used.size(); ++profile) {
    if (foretold ? !demands[profile].empty() : rows[profile] != kNotStated) continue;
    if (used[profile]) {
      return InvalidArgument("truth: expected one that knows profile '%s' of the trace, found none of it",
                             trace.profiles[profile]);
    }
    if (foretold) demands[profile] = {TypeDemand()};  // of jobs for the host alone: nobody asks
  }
  if (foretold) return ModelTruth::Create(truth.model, std::move(demands));
  return TableTruth::Create(truth.speeds.table, truth.types, std::move(rows), truth.speeds.reference, truth.many);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Truth>> TruthFor(const horus_truth& truth, const Trace& trace) {
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Truth> speeds, SpeedsOf(truth, trace));
  if (truth.sensitivities.empty()) return speeds;
  return std::make_unique<SensitiveTruth>(std::move(speeds), SensitivitiesOf(truth.sensitivities, trace));
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_truth_from_model(const horus_catalogue* catalogue, const horus_interference* model,
                                    const horus_profile_demands* demands, horus_truth** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(auto truth, FromModel(CatalogueOf(catalogue), model, demands));
    *out = truth.release();
    return absl::OkStatus();
  });
}

horus_status horus_truth_from_speeds(const horus_catalogue* catalogue, const horus_speeds* speeds, int32_t many,
                                     horus_truth** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(auto truth, FromSpeeds(CatalogueOf(catalogue), speeds, many));
    *out = truth.release();
    return absl::OkStatus();
  });
}

horus_status horus_truth_with_sensitivities(const horus_truth* truth, const horus_profile_sensitivities* sensitivities,
                                            horus_truth** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{truth, "truth"}, {out, "out"}}));
    auto sensitive = std::make_unique<horus_truth>(*truth);
    HORUS_ASSIGN_OR_RETURN(sensitive->sensitivities, SensitivitiesFromC(sensitivities));
    *out = sensitive.release();
    return absl::OkStatus();
  });
}

void horus_truth_free(horus_truth* truth) { delete truth; }

uint64_t horus_truth_bytes_held(const horus_truth* truth) {
  if (truth == nullptr) return 0;
  const horus::SpeedTable& table = truth->speeds.table;
  uint64_t bytes = sizeof *truth + table.alone.capacity() * sizeof(double);
  bytes += table.pairs.capacity() * sizeof(horus::PairSpeed) + truth->types.capacity() * sizeof(horus::GpuTypeId);
  for (const auto& [profile, all] : truth->demands) {
    bytes += profile.capacity() + sizeof all + all.capacity() * sizeof(horus::TypeDemand);
  }
  for (const auto& [profile, matrix] : truth->sensitivities) {
    bytes += profile.capacity() + sizeof matrix + sizeof(horus::Sensitivity);
    bytes += matrix.get()->speeds().size_bytes() + matrix.get()->cpu_milli().size_bytes();
    bytes += matrix.get()->mem_mib().size_bytes();
  }
  for (const auto* names : {&table.profiles, &table.gpus}) {
    for (const std::string& name : *names) bytes += sizeof name + name.capacity();
  }
  return bytes;
}
