// SPDX-License-Identifier: Apache-2.0
// reactive: jobs that nobody measured run alone on reserved GPUs; measured ones are placed like horus-paper elsewhere.
#include <algorithm>
#include <utility>

#include "lab/policies/rivals.h"

namespace horus {
namespace {

bool IsMeasured(const Demand& demand) { return (demand.flags & kDemandMeasured) != 0; }

class ReactivePolicy final : public Policy {
 public:
  explicit ReactivePolicy(const PolicyOptions& options)
      : label_(options.profiling_label), packing_(MakeHorusPaperPolicy(options)) {}
  std::string_view name() const override { return "reactive"; }
  bool admits_nodes() const override { return true; }

  bool AdmitsNode(const NodeAdmission& node) const override {
    const auto& labels = node.node->labels;  // ascending by key
    const auto at = std::lower_bound(labels.begin(), labels.end(), label_,
                                     [](const auto& label, const std::string& key) { return label.first < key; });
    const bool profiles = at != labels.end() && at->first == label_;
    const auto& demands = node.job->demands;
    const bool measured =
        std::any_of(demands.begin(), demands.end(), [](const TypeDemand& entry) { return IsMeasured(entry.demand); });
    return profiles != (measured || demands.empty());  // without GPUs there is nothing to profile
  }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    if (IsMeasured(candidate.newcomer())) return packing_->ScoreDevice(candidate, score);
    score = {.cost = 0, .declined = candidate.residents() > 0};
    return absl::OkStatus();
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& place,
               std::vector<CostTerm>& terms) const override {
    if (IsMeasured(candidate.newcomer())) return packing_->Explain(candidate, place, terms);
    Policy::Explain(candidate, place, terms);
  }

 private:
  std::string label_;
  std::unique_ptr<const Policy> packing_;
};

}  // namespace

std::unique_ptr<Policy> MakeReactivePolicy(const PolicyOptions& options) {
  return std::make_unique<ReactivePolicy>(options);
}

}  // namespace horus
