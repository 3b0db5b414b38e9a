// SPDX-License-Identifier: Apache-2.0
// Who says what jobs run: JobProfiles, which pods name by annotations as the scheduler of bindings/kubernetes knows
// them; and for many pods at once patterns (--profiles) and what Prometheus saw (--measured).
//
// Enters:  JobProfiles as JSON, pods' annotations, paths; the catalogue that GPU types are looked up in.
// Leaves:  demands by GPU type and how a pod is to be placed; patterns in the order of the file, figures by pod; errors
//          with place, expected and found.
// Units:   per cent, MiB, microseconds.
// Cost:    linear in the files; a pod is held against each pattern.
#pragma once

#include "io/jobs_file.h"
#include "io/kube/kube_ask.h"

namespace horus {

// ---- JobProfiles.

[[nodiscard]] absl::StatusOr<KubeProfile> ReadKubeProfile(const KubeView& object);
[[nodiscard]] absl::StatusOr<KubeTermsOfPod> ReadKubeTermsOfPod(const KubeView& annotations);

// INVALID_ARGUMENT for what jobs.yaml cannot say: the message is the reason.
[[nodiscard]] absl::StatusOr<std::vector<TypeDemand>> DemandsOf(const KubeProfile& profile, const Catalogue& catalogue);

// A job of a known profile: consent decides with whom it shares, and not that it asks for a part. INVALID_ARGUMENT for
// annotations that the scheduler refuses; the job then is one that shares with nobody.
[[nodiscard]] absl::Status AddTerms(const KubeTermsOfPod& terms, const KubeAsk& ask, KubeShape& shape);

// ---- Patterns, and measured figures.

// Pods that match, and what each of them is in the words of jobs.yaml.
struct KubePattern {
  std::string name_space, name, image;  // patterns of a shell; empty: any
  KubeTexts labels;                     // likewise, of values
  std::shared_ptr<const YamlTree> tree;
  uint32_t position = 0;  // of its mapping in `tree`: `pods`, and keys of jobs.yaml
  bool says_share = false, says_kind = false;
  bool is_load = false;  // `service` and terms alone: what is served, and how, says the engine of the pod
  JobRequest job;        // what they say; with neither model nor demands: terms alone

  [[nodiscard]] bool says_demand() const { return job.model.has_value() || !job.spec.demands.empty(); }
  [[nodiscard]] bool for_any_type() const { return job.model || !job.spec.demands.front().type.valid(); }
  // A language model alone: how it runs says the engine of the pod.
  [[nodiscard]] bool is_architecture() const;
  // Whether a job of so many GPUs can be what it says; `type`: where it runs, invalid if it waits.
  [[nodiscard]] bool Fits(int64_t gpus, GpuTypeId type) const;
};

// Of jobs, not of what they run: said beside figures that were measured, too.
[[nodiscard]] bool IsTerm(std::string_view key);

// The first pattern that the pod matches; null: none.
[[nodiscard]] const KubePattern* FindPattern(const std::vector<KubePattern>& patterns, const KubePod& pod);

using KubeMeasured = std::map<std::pair<std::string, std::string>, Demand>;  // by namespace and name of pods

[[nodiscard]] absl::StatusOr<std::vector<KubePattern>> ReadKubePatterns(const std::string& path,
                                                                        const Catalogue& catalogue);
// The answer of Prometheus to the query of docs/shadow.md. Pods without all figures are left out.
[[nodiscard]] absl::StatusOr<KubeMeasured> ReadKubeMeasured(const std::string& path);

}  // namespace horus
