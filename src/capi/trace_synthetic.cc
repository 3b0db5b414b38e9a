// SPDX-License-Identifier: Apache-2.0
// horus/trace.h, synthetic traces: presets and what the caller changes of them.
#include <string>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/guard.h"
#include "capi/sim_handles.h"
#include "capi/structs.h"
#include "horus/trace.h"
#include "sim/trace/synthetic.h"

namespace horus::capi {
namespace {

static_assert(HORUS_ARRIVALS_BACKLOG == static_cast<int>(Arrivals::kBacklog) + 1 &&
              HORUS_ARRIVALS_POISSON == static_cast<int>(Arrivals::kPoisson) + 1 &&
              HORUS_ARRIVALS_BURSTY == static_cast<int>(Arrivals::kBursty) + 1);

constexpr char kDefaultPreset[] = "philly";

absl::StatusOr<std::vector<SyntheticSize>> SizesFromC(const horus_synthetic_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.size_gpus, "size_gpus", c.size_count));
  std::vector<SyntheticSize> sizes;
  for (size_t i = 0; i < c.size_count; ++i) {
    sizes.push_back({c.size_gpus[i], c.size_weights == nullptr ? 1 : c.size_weights[i]});
  }
  return sizes;
}

absl::StatusOr<std::vector<SyntheticDuration>> DurationsFromC(const horus_synthetic_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.duration_shares_milli, "duration_shares_milli", c.duration_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.duration_us, "duration_us", c.duration_count));
  std::vector<SyntheticDuration> durations;
  for (size_t i = 0; i < c.duration_count; ++i) durations.push_back({c.duration_shares_milli[i], c.duration_us[i]});
  return durations;
}

absl::StatusOr<std::vector<SyntheticProfile>> ProfilesFromC(const horus_synthetic_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.profile_names, "profile_names", c.profile_count));
  std::vector<SyntheticProfile> profiles;
  for (size_t i = 0; i < c.profile_count; ++i) {
    SyntheticProfile profile;
    HORUS_ASSIGN_OR_RETURN(profile.name, ReadText(c.profile_names[i], Element("profile_names", i).c_str()));
    if (c.profile_weights != nullptr) profile.weight = c.profile_weights[i];
    if (c.profile_cpu_milli != nullptr) profile.cpu_milli = c.profile_cpu_milli[i];
    if (c.profile_mem_mib != nullptr) profile.mem_mib = c.profile_mem_mib[i];
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

absl::Status CheckCounts(const horus_synthetic_options& c) {
  for (const auto& [name, count] :
       {std::pair("size_count", c.size_count), std::pair("duration_count", c.duration_count),
        std::pair("profile_count", c.profile_count)}) {
    if (count <= kMaxTraceJobs) continue;
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: expected at most %d, found %d", name, kMaxTraceJobs,
                     count);
  }
  if (c.arrivals >= HORUS_ARRIVALS_PRESET && c.arrivals <= HORUS_ARRIVALS_BURSTY) return absl::OkStatus();
  return InvalidArgument("arrivals: expected HORUS_ARRIVALS_* (%d to %d), found %d", HORUS_ARRIVALS_PRESET,
                         HORUS_ARRIVALS_BURSTY, c.arrivals);
}

absl::StatusOr<SyntheticOptions> OptionsFromC(const horus_synthetic_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_synthetic_options c, ReadOptionalStruct(given));
  HORUS_RETURN_IF_ERROR(CheckCounts(c));
  HORUS_ASSIGN_OR_RETURN(const std::string preset, ReadOptionalText(c.preset, "preset"));
  HORUS_ASSIGN_OR_RETURN(SyntheticOptions options, SyntheticPreset(preset.empty() ? kDefaultPreset : preset));
  options.seed = c.seed;
  SetUnlessZero(options.jobs, c.jobs);
  if (c.arrivals != HORUS_ARRIVALS_PRESET) options.arrivals = static_cast<Arrivals>(c.arrivals - 1);
  SetUnlessZero(options.mean_gap_us, c.mean_gap_us);
  SetUnlessZero(options.capacity_gpu_milli, c.capacity_gpu_milli);
  SetUnlessZero(options.load_milli, c.load_milli);
  SetUnlessZero(options.gap_scv_milli, c.gap_scv_milli);
  if (options.gap_scv_milli == 0) options.gap_scv_milli = kPhillyGapScvMilli;
  SetUnlessZero(options.owners, c.owners);
  if (c.size_count > 0) {
    HORUS_ASSIGN_OR_RETURN(options.sizes, SizesFromC(c));
  }
  if (c.duration_count > 0) {
    HORUS_ASSIGN_OR_RETURN(options.durations, DurationsFromC(c));
  }
  if (c.profile_count > 0) {
    HORUS_ASSIGN_OR_RETURN(options.profiles, ProfilesFromC(c));
  }
  return options;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_trace_create_synthetic(const horus_synthetic_options* options, horus_trace** out,
                                          horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(const horus::SyntheticOptions asked, OptionsFromC(options));
    HORUS_ASSIGN_OR_RETURN(horus::Trace trace, horus::MakeSynthetic(asked));
    auto made = std::make_unique<horus_trace>();
    made->value = std::make_shared<const horus::Trace>(std::move(trace));
    *out = made.release();
    return absl::OkStatus();
  });
}
