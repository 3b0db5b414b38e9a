// SPDX-License-Identifier: Apache-2.0
// The placer's front: options are checked here, plans are made by the engine.
#include "place/placer.h"

#include <type_traits>

#include "base/format.h"
#include "place/engine.h"

namespace horus {

namespace {

std::string NumberText(auto number) {
  if constexpr (std::is_integral_v<decltype(number)>) return Formatted("%d", number);
  return Formatted("%g", number);
}

// "0 (the policy's) or at least 1", "0 to 1099511627776 MiB".
template <typename T>
std::string LimitsText(const OptionFacts& facts) {
  const auto text = [](double limit) { return NumberText(static_cast<T>(limit)); };
  const std::string zero = facts.zero_is.empty() ? "" : Formatted("0 (%s) or ", facts.zero_is);
  if (facts.most >= std::numeric_limits<double>::max()) return Formatted("%sat least %s", zero, text(facts.least));
  return Formatted("%s%s%s to %s%s", zero, text(facts.least), facts.least_is, text(facts.most), facts.most_is);
}

absl::Status CheckOptions(const PlacerOptions& options) {
  return VisitPlacerOptions([&]<typename T>(const PlacerOption<T>& option) {
    if constexpr (std::is_arithmetic_v<T>) {
      const T found = options.*option.field;
      const auto number = static_cast<double>(found);
      const OptionFacts& facts = option.facts;
      const bool within = number >= facts.least && number <= facts.most;
      if (!within && !(number == 0 && !facts.zero_is.empty())) {
        return InvalidArgument("placer: %s: expected %s, found %s", option.name, LimitsText<T>(facts),
                               NumberText(found));
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

Placer::Placer(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Placer::~Placer() = default;

absl::StatusOr<std::unique_ptr<Placer>> Placer::Create(std::shared_ptr<const InterferenceModel> model,
                                                       std::shared_ptr<const Policy> policy,
                                                       const PlacerOptions& options) {
  if (model == nullptr) return InvalidArgument("placer: expected an interference model, found none");
  if (policy == nullptr) return InvalidArgument("placer: expected a policy, found none");
  HORUS_RETURN_IF_ERROR(CheckOptions(options));
  return std::unique_ptr<Placer>(new Placer(std::make_unique<Engine>(std::move(model), std::move(policy), options)));
}

absl::StatusOr<Plan> Placer::MakePlan(const Cluster& cluster, std::span<const JobSpec> jobs,
                                      std::optional<std::span<const NodeId>> subset, const ProgressFn& progress,
                                      const ReadFn& read) {
  return engine_->MakePlan(cluster, jobs, subset, progress, read);
}

absl::StatusOr<NodeVerdicts> Placer::Verdicts(const Cluster& cluster, const JobSpec& job, std::span<const NodeId> nodes,
                                              const ReadFn& read) {
  return engine_->Verdicts(cluster, job, nodes, read);
}

void Placer::SetGoOn(GoOnFn go_on) { engine_->SetGoOn(std::move(go_on)); }

const InterferenceModel& Placer::model() const { return engine_->scorer().model(); }
const Policy& Placer::policy() const { return engine_->scorer().policy(); }
std::shared_ptr<const InterferenceModel> Placer::shared_model() const { return engine_->model(); }
std::shared_ptr<const Policy> Placer::shared_policy() const { return engine_->scorer().shared_policy(); }
const PlacerOptions& Placer::options() const { return engine_->options(); }
double Placer::slowdown_bound() const { return engine_->scorer().limits().slowdown_bound; }

Placer::Judgements Placer::judgements() const {
  const Scorer& scorer = engine_->scorer();
  return {scorer.judged() - scorer.weighed(), scorer.weighed()};
}

uint64_t Placer::bytes_held() const { return sizeof(*this) + engine_->bytes_held(); }

Appraiser Placer::appraiser() const {
  return {engine_->scorer().shared_model(), engine_->scorer().limits(), engine_->options().rack_oversubscription};
}

absl::StatusOr<Appraisal> Placer::Appraise(const Cluster& cluster, const JobSpec& job,
                                           std::span<const Slot> slots) const {
  if (cluster.HasJob(job.id)) return AlreadyExists("job %s: runs in this cluster already", IdAndName(job.id, job.name));
  HORUS_RETURN_IF_ERROR(CheckConfidence(job, engine_->scorer().model()));
  return appraiser().Of(cluster, job, slots);
}

}  // namespace horus
