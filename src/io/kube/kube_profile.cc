// SPDX-License-Identifier: Apache-2.0
// Reads as bindings/kubernetes/internal/objects does, so that both see the same jobs.
#include "io/kube/kube_profile.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/text.h"
#include "interference/laws.h"
#include "io/yaml.h"

namespace horus {
namespace {

constexpr char kProfile[] = "libhorus.org/profile";
constexpr char kShare[] = "libhorus.org/share";
constexpr char kBound[] = "libhorus.org/slowdown-bound";
constexpr char kConfidence[] = "libhorus.org/slowdown-confidence";
constexpr double kMostBound = 1000;
constexpr size_t kMostDemands = 64;  // the CRD's
constexpr std::array<std::string_view, 3> kKindNames = {"training", "inference", "best-effort"};

// 0 = no bound is given: the estimate is it.
absl::Status ReadReal(const KubeView& figures, const char* key, const char* upper, Bounded& out) {
  HORUS_ASSIGN_OR_RETURN(const double estimate, figures[key].Number());
  HORUS_ASSIGN_OR_RETURN(const double most, figures[upper].Number());
  out = {static_cast<float>(estimate), static_cast<float>(most == 0 ? estimate : most)};
  return absl::OkStatus();
}

absl::Status ReadInteger(const KubeView& figures, const char* key, const char* upper, BoundedInt& out) {
  HORUS_ASSIGN_OR_RETURN(out.estimate, figures[key].Integer(0));
  HORUS_ASSIGN_OR_RETURN(out.upper, figures[upper].Integer(0));
  if (out.upper == 0) out.upper = out.estimate;
  return absl::OkStatus();
}

absl::StatusOr<Demand> ReadFigures(const KubeView& figures) {
  Demand demand;
  demand.flags = kDemandGiven;
  HORUS_RETURN_IF_ERROR(ReadReal(figures, "gpuUtilPct", "gpuUtilPctUpper", demand.gpu_util_pct));
  HORUS_RETURN_IF_ERROR(ReadReal(figures, "memBwUtilPct", "memBwUtilPctUpper", demand.mem_bw_util_pct));
  HORUS_RETURN_IF_ERROR(ReadInteger(figures, "memMiB", "memMiBUpper", demand.mem_mib));
  HORUS_RETURN_IF_ERROR(ReadInteger(figures, "stepTimeUs", "stepTimeUsUpper", demand.step_time_us));
  HORUS_ASSIGN_OR_RETURN(demand.gradient_mib, figures["gradientMiB"].Integer(0));
  HORUS_ASSIGN_OR_RETURN(const double operator_us, figures["operatorUs"].Number());
  demand.operator_us = static_cast<float>(operator_us);
  HORUS_ASSIGN_OR_RETURN(demand.host_us, figures["hostUs"].Number());
  HORUS_ASSIGN_OR_RETURN(const double duty, figures["duty"].Number());
  HORUS_ASSIGN_OR_RETURN(const double bound, figures["slowdownBound"].Number());
  if (duty != 0) demand.duty = static_cast<float>(duty);
  demand.slowdown_bound = static_cast<float>(bound);
  // Of what a prediction rests on, jobs.yaml can say these, which interference models read.
  HORUS_ASSIGN_OR_RETURN(const auto traits, figures["prediction"]["traits"].List());
  for (const auto trait : {static_cast<size_t>(Trait::kLogKernels), static_cast<size_t>(Trait::kLogDeviceShare)}) {
    if (traits.size() <= trait) continue;
    HORUS_ASSIGN_OR_RETURN(const double value, traits[trait].Number());
    demand.traits[trait] = static_cast<float>(value);
  }
  return demand;
}

// What jobs.yaml takes beside what every demand has to be.
absl::Status CheckFigures(const Demand& demand) {
  constexpr int64_t kMostMib = int64_t{1'000'000} << 10;
  constexpr int64_t kMostUs = int64_t{10'000'000'000} * 1000;
  constexpr float kMostOperatorUs = 1e9F;
  static_assert(kMostMib <= static_cast<int64_t>(kGibToMib.max) * 1024 && kGibToMib.per_unit == 1024);
  static_assert(kMostUs <= static_cast<int64_t>(kMillisecondsToUs.max) * 1000 && kMillisecondsToUs.per_unit == 1000);
  constexpr float kMostLogKernels = 9, kLeastLogShare = -5, kMostLogShare = -5e-6F;
  HORUS_RETURN_IF_ERROR(ValidateDemand(demand));
  if (const float kernels = demand.traits[static_cast<size_t>(Trait::kLogKernels)];
      !(kernels >= 0 && kernels <= kMostLogKernels)) {
    return InvalidArgument("prediction.traits[2]: expected 0 to %g (log10 of a step's kernels), found %g",
                           kMostLogKernels, kernels);
  }
  if (const float share = demand.traits[static_cast<size_t>(Trait::kLogDeviceShare)];
      share != 0 && !(share >= kLeastLogShare && share <= kMostLogShare)) {
    return InvalidArgument("prediction.traits[6]: expected 0, or %g to %g (log10 of the device's share), found %g",
                           kLeastLogShare, kMostLogShare, share);
  }
  if (demand.mem_mib.upper > kMostMib || demand.step_time_us.upper > kMostUs || demand.operator_us > kMostOperatorUs) {
    return InvalidArgument("expected at most %d MiB, steps of %d us and operators of %g us, found %d, %d and %g",
                           kMostMib, kMostUs, kMostOperatorUs, demand.mem_mib.upper, demand.step_time_us.upper,
                           demand.operator_us);
  }
  return absl::OkStatus();
}

absl::Status ReadNumber(const char* annotation, const std::string& text, double least, double most, double& out) {
  const absl::string_view given = absl::StripAsciiWhitespace(text);
  if (given.empty()) return absl::OkStatus();
  float value = 0;
  if (!absl::SimpleAtof(given, &value) ||
      !(static_cast<double>(value) >= least && static_cast<double>(value) <= most)) {
    return InvalidArgument("annotation %s: expected a number from %g to %g, found %s", annotation, least, most,
                           Quoted(text));
  }
  out = static_cast<double>(value);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KubeProfile> ReadKubeProfile(const KubeView& object) {
  KubeProfile profile;
  const KubeView meta = object["metadata"], spec = object["spec"];
  HORUS_ASSIGN_OR_RETURN(profile.name, ReadKubeName(meta["name"]));
  HORUS_ASSIGN_OR_RETURN(profile.name_space, ReadKubeName(meta["namespace"]));
  HORUS_ASSIGN_OR_RETURN(profile.kind, spec["kind"].Text());
  HORUS_ASSIGN_OR_RETURN(const auto demands, spec["demands"].List());
  if (demands.size() > kMostDemands) return spec["demands"].Expected("at most 64 GPU types");
  for (const KubeView& figures : demands) {
    HORUS_ASSIGN_OR_RETURN(std::string type, figures["gpuType"].Text());
    HORUS_ASSIGN_OR_RETURN(Demand demand, ReadFigures(figures));
    profile.demands.emplace_back(std::move(type), demand);
  }
  return profile;
}

absl::StatusOr<KubeTermsOfPod> ReadKubeTermsOfPod(const KubeView& annotations) {
  KubeTermsOfPod terms;
  HORUS_ASSIGN_OR_RETURN(terms.profile, annotations[kProfile].Text());
  HORUS_ASSIGN_OR_RETURN(terms.share, annotations[kShare].Text());
  HORUS_ASSIGN_OR_RETURN(terms.slowdown_bound, annotations[kBound].Text());
  HORUS_ASSIGN_OR_RETURN(terms.slowdown_confidence, annotations[kConfidence].Text());
  return terms;
}

absl::StatusOr<std::vector<TypeDemand>> DemandsOf(const KubeProfile& profile, const Catalogue& catalogue) {
  if (!profile.kind.empty() && std::ranges::find(kKindNames, profile.kind) == kKindNames.end()) {
    return InvalidArgument("spec.kind: expected training, inference or best-effort, found %s", Quoted(profile.kind));
  }
  if (profile.demands.empty()) return InvalidArgument("spec.demands: expected one for each GPU type, found none");
  std::vector<TypeDemand> demands;
  for (const auto& [name, demand] : profile.demands) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(name));
    if (std::ranges::any_of(demands, [&](const TypeDemand& other) { return other.type == type; })) {
      return InvalidArgument("spec.demands: expected each GPU type once, found %s again", Quoted(name));
    }
    HORUS_RETURN_IF_ERROR(CheckFigures(demand));
    demands.push_back({type, demand});
  }
  return demands;
}

absl::Status AddTerms(const KubeTermsOfPod& terms, const KubeAsk& ask, KubeShape& shape) {
  shape.exclusive = true;
  shape.anyone = false;
  shape.gpu_milli = 0;  // a hard request is placed by other rules
  HORUS_RETURN_IF_ERROR(ReadNumber(kBound, terms.slowdown_bound, 1, kMostBound, shape.slowdown_bound));
  HORUS_RETURN_IF_ERROR(ReadNumber(kConfidence, terms.slowdown_confidence, kLeastProbability, kMostProbability,
                                   shape.slowdown_confidence));
  if (terms.share.empty()) return absl::OkStatus();
  if (terms.share != "same-tenant" && terms.share != "anyone") {
    return InvalidArgument("annotation %s: expected same-tenant or anyone, found %s", kShare, Quoted(terms.share));
  }
  if (!ask.resource.empty()) {
    return InvalidArgument("annotation %s: whole GPUs (%s) are never shared", kShare, ask.resource);
  }
  shape.exclusive = false;
  shape.anyone = terms.share == "anyone";
  return absl::OkStatus();
}

}  // namespace horus
