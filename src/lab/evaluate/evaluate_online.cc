// SPDX-License-Identifier: Apache-2.0
// Plays the arrival of every job at a site whose model has never seen its family.
#include "lab/evaluate/evaluate_online.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "interference/corrected_model.h"
#include "interference/learned_model.h"
#include "interference/observed_slowdowns.h"
#include "interference/pair_bounds.h"

namespace horus {
namespace {

using ModelPtr = std::shared_ptr<const InterferenceModel>;

// Uniform in (0, 1), and standard normal (Box and Muller): functions of their argument.
double Uniform(uint64_t seed) {
  constexpr double kTwoTo53 = 9007199254740992.0;
  return (static_cast<double>(Mix64(seed) >> 11) + 0.5) / kTwoTo53;
}
double Normal(uint64_t seed) {
  constexpr double kTwoPi = 6.283185307179586;
  return std::sqrt(-2 * std::log(Uniform(CombineHash(seed, 1)))) * std::cos(kTwoPi * Uniform(CombineHash(seed, 2)));
}

constexpr double kPercent = 100;

// Sums; MakeMeans() divides.
void Add(double truth, const Slowdown& answer, OnlineScore& score) {
  const auto estimate = static_cast<double>(answer.estimate), upper = static_cast<double>(answer.upper);
  score.mape_pct += kPercent * std::abs(estimate / truth - 1);
  score.covered_pct += truth <= upper ? kPercent : 0;
  score.slack_pct += kPercent * (upper / truth - 1);
}

// One tenant of a pair, as it was and as it was predicted.
struct Asked {
  double truth = 1;
  Slowdown before, after;
};

// Sums of pairs and tenants, likewise.
void Admit(const std::vector<Asked>& pair, Slowdown Asked::* answer, OnlineScore& score) {
  for (size_t b = 0; b < kAskedBounds.size(); ++b) {
    OnlineAdmission& sums = score.admission[b];
    const double bound = kAskedBounds[b];
    bool truly = true, admitted = true;
    double kept = 0;
    for (const Asked& tenant : pair) {
      truly = truly && tenant.truth <= bound;
      admitted = admitted && static_cast<double>((tenant.*answer).upper) <= bound;
      kept += tenant.truth <= bound ? 1 : 0;
    }
    sums.truly_pct += truly ? 1 : 0;
    sums.admitted_pct += truly && admitted ? 1 : 0;
    if (!admitted) continue;
    sums.kept_pct += kept;
    sums.admitted_tenants += static_cast<double>(pair.size());
  }
}

void Add(const std::vector<Asked>& pair, OnlineScores& scores) {
  for (const Asked& asked : pair) {
    ++scores.questions;
    Add(asked.truth, asked.before, scores.before);
    Add(asked.truth, asked.after, scores.after);
  }
  ++scores.pairs;
  Admit(pair, &Asked::before, scores.before);
  Admit(pair, &Asked::after, scores.after);
}

void MakeMeans(OnlineScores& scores) {
  if (scores.questions == 0) return;
  for (OnlineScore* score : {&scores.before, &scores.after}) {
    for (OnlineAdmission& of : score->admission) {
      of.admitted_pct *= kPercent / of.truly_pct;  // NaN where nothing is truly within the bound
      of.truly_pct *= kPercent / static_cast<double>(scores.pairs);
      of.kept_pct *= kPercent / of.admitted_tenants;
    }
    for (double* sum : {&score->mape_pct, &score->covered_pct, &score->slack_pct}) {
      *sum /= static_cast<double>(scores.questions);
    }
  }
}

// The other job of a row in which `job` takes part.
uint32_t PartnerOf(const PairRow& row, uint32_t job) { return row.victim == job ? row.other : row.victim; }

// A newcomer's rows of one campaign, and the jobs of other families in them.
struct Arrival {
  uint32_t job = 0;
  std::vector<PairRow> rows;
  std::vector<uint32_t> residents;  // ascending
};

// On one GPU type, or on all.
std::vector<Arrival> ArrivalsOf(const PairSet& set, std::span<const PairRow> left_out, std::string_view family,
                                size_t least_residents, std::string_view gpu = {}) {
  std::map<std::pair<uint32_t, uint32_t>, Arrival> found;  // job, campaign
  for (const PairRow& row : left_out) {
    if (!gpu.empty() && set.devices[row.device].gpu != gpu) continue;
    for (const uint32_t job : std::set<uint32_t>{row.victim, row.other}) {
      if (set.jobs[job].family != family) continue;
      Arrival& arrival = found[{job, row.campaign}];
      arrival.job = job;
      arrival.rows.push_back(row);
      const uint32_t partner = PartnerOf(row, job);
      if (set.jobs[partner].family != family) arrival.residents.push_back(partner);
    }
  }
  std::vector<Arrival> arrivals;
  for (auto& [key, arrival] : found) {
    std::sort(arrival.residents.begin(), arrival.residents.end());
    arrival.residents.erase(std::unique(arrival.residents.begin(), arrival.residents.end()), arrival.residents.end());
    if (arrival.residents.size() >= least_residents) arrivals.push_back(std::move(arrival));
  }
  return arrivals;
}

class Player {
 public:
  Player(const PairSet& set, const Catalogue& catalogue, const OnlinePlan& plan, uint32_t seed)
      : set_(set), catalogue_(catalogue), plan_(plan), seed_(seed) {
    for (const PairJob& job : set.jobs) {
      for (const JobPoint& point : job.points) demands_.push_back(DemandOf(job.profile_id, point));
    }
  }

  // `settled`: rows among the residents, some of whose runs were observed before.
  [[nodiscard]] absl::Status Play(const Arrival& arrival, const ModelPtr& model, std::span<const PairRow> settled) {
    for (uint32_t draw = 0; draw < plan_.draws; ++draw) {
      const uint64_t seed = CombineHash(CombineHash(seed_, arrival.job), CombineHash(arrival.rows[0].campaign, draw));
      std::vector<uint32_t> order = arrival.residents;
      std::sort(order.begin(), order.end(),
                [seed](uint32_t a, uint32_t b) { return Mix64(CombineHash(seed, a)) < Mix64(CombineHash(seed, b)); });
      for (const uint32_t count : plan_.observed) {
        ObservedSlowdowns observed;
        HORUS_RETURN_IF_ERROR(Settle(settled, arrival.rows[0].campaign, seed, observed));
        HORUS_RETURN_IF_ERROR(
            Observe(arrival, model, seed, {order.begin(), order.begin() + count}, std::move(observed)));
      }
    }
    return absl::OkStatus();
  }

  [[nodiscard]] std::vector<OnlineErrors> Errors() && {
    std::vector<OnlineErrors> all;
    for (auto& [key, errors] : errors_) {
      MakeMeans(errors.all);
      MakeMeans(errors.residents);
      all.push_back(errors);
    }
    return all;
  }

 private:
  const Demand& DemandAt(uint32_t job, uint32_t device) const { return demands_[job * set_.devices.size() + device]; }

  absl::Status See(const PairRow& row, uint64_t seed, ObservedSlowdowns& observed) const {
    const PairDevice& device = set_.devices[row.device];
    const double noise = 1 + plan_.noise * Normal(CombineHash(seed, uint64_t{row.victim} << 32 | row.other));
    const Demand* other = &DemandAt(row.other, row.device);
    return observed.Add({.gpu = device.gpu,
                         .mode = device.mode,
                         .victim = &DemandAt(row.victim, row.device),
                         .others = {&other, 1},
                         .slowdown = std::clamp(row.slowdown * noise, kLeastMeasuredSlowdown, kMostMeasuredSlowdown)});
  }

  // Runs of the campaign, drawn.
  absl::Status Settle(std::span<const PairRow> rows, uint32_t campaign, uint64_t seed,
                      ObservedSlowdowns& observed) const {
    std::map<uint64_t, std::vector<PairRow>> runs;  // by a hash that deals them anew in every draw
    if (plan_.settled == 0) return absl::OkStatus();
    for (const PairRow& row : rows) {
      if (row.campaign == campaign) runs[Mix64(CombineHash(seed, ~uint64_t{row.run}))].push_back(row);
    }
    uint32_t left = plan_.settled;
    for (const auto& [hash, run] : runs) {
      if (left-- == 0) break;
      for (const PairRow& row : run) HORUS_RETURN_IF_ERROR(See(row, seed, observed));
    }
    return absl::OkStatus();
  }

  // Beside each of `met` once, then every question that is left.
  absl::Status Observe(const Arrival& arrival, const ModelPtr& model, uint64_t seed, const std::set<uint32_t>& met,
                       ObservedSlowdowns observed) {
    const uint32_t at = arrival.rows[0].device;
    const PairDevice& device = set_.devices[at];
    for (const PairRow& row : arrival.rows) {
      if (met.contains(PartnerOf(row, arrival.job))) HORUS_RETURN_IF_ERROR(See(row, seed, observed));
    }
    HORUS_ASSIGN_OR_RETURN(const ModelPtr corrected, CorrectedModel::Commit(model, observed, catalogue_));
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue_.Find(device.gpu));
    const DeviceContext context{.type = type, .mode = device.mode};
    OnlineErrors& errors = errors_[{at, met.size()}];
    errors.device = at;
    errors.observed = static_cast<uint32_t>(met.size());
    std::map<uint32_t, std::vector<Asked>> pairs;  // by run
    std::map<uint32_t, bool> beside_resident;
    for (const PairRow& row : arrival.rows) {
      const uint32_t partner = PartnerOf(row, arrival.job);
      if (met.contains(partner)) continue;
      const std::array<const Demand*, 2> two = {&DemandAt(row.victim, at), &DemandAt(row.other, at)};
      std::array<Slowdown, 2> before, after;
      HORUS_RETURN_IF_ERROR(model->Predict(context, two, before));
      HORUS_RETURN_IF_ERROR(corrected->Predict(context, two, after));
      pairs[row.run].push_back({row.slowdown, before[0], after[0]});
      beside_resident[row.run] = std::binary_search(arrival.residents.begin(), arrival.residents.end(), partner);
    }
    for (const auto& [run, pair] : pairs) {
      Add(pair, errors.all);
      if (beside_resident[run]) Add(pair, errors.residents);
    }
    return absl::OkStatus();
  }

  const PairSet& set_;
  const Catalogue& catalogue_;
  const OnlinePlan& plan_;
  uint32_t seed_;
  std::vector<Demand> demands_;                                 // job major
  std::map<std::pair<uint32_t, size_t>, OnlineErrors> errors_;  // device, number observed
};

absl::Status CheckPlan(const PairSet& set, const OnlinePlan& plan) {
  if (plan.observed.empty() || plan.draws == 0) {
    return InvalidArgument("plan: expected numbers of observed co-locations and draws, found none");
  }
  for (const uint32_t count : plan.observed) {
    if (count > kMostObserved) {
      return InvalidArgument("plan: observed co-locations: expected 0 to %d, found %d", kMostObserved, count);
    }
  }
  if (plan.settled > kMostObserved || (plan.settled > 0 && !plan.leave_gpu)) {
    return InvalidArgument("plan: settled co-locations: expected 0 to %d, and a GPU type left out, found %d",
                           kMostObserved, plan.settled);
  }
  for (const PairJob& job : set.jobs) {
    if (job.profile_id == 0) return InvalidArgument("job %s: expected a profile, found none", job.name);
  }
  return absl::OkStatus();
}

// The set without the runs that a left-out row comes from, and without a GPU type (none if empty).
PairSet Without(const PairSet& set, std::span<const PairRow> left_out, std::string_view gpu) {
  std::set<uint32_t> runs;
  for (const PairRow& row : left_out) runs.insert(row.run);
  PairSet rest{.devices = {}, .jobs = set.jobs, .runs = {}};
  for (PairJob& job : rest.jobs) job.points.clear();
  std::vector<uint32_t> place;  // of a device among those that remain
  for (uint32_t d = 0; d < set.devices.size(); ++d) {
    place.push_back(static_cast<uint32_t>(rest.devices.size()));
    if (!gpu.empty() && set.devices[d].gpu == gpu) continue;
    rest.devices.push_back(set.devices[d]);
    for (size_t j = 0; j < set.jobs.size(); ++j) rest.jobs[j].points.push_back(set.jobs[j].points[d]);
  }
  for (uint32_t run = 0; run < set.runs.size(); ++run) {
    const uint32_t device = set.runs[run].device;
    if (runs.contains(run) || (!gpu.empty() && set.devices[device].gpu == gpu)) continue;
    rest.runs.push_back(set.runs[run]);
    rest.runs.back().device = place[device];
  }
  return rest;
}

// What is left out of a training beside a family: nothing, or each GPU type in turn.
std::vector<std::string> GpusToLeave(const PairSet& set, const OnlinePlan& plan) {
  if (!plan.leave_gpu) return {""};
  std::set<std::string> gpus;
  for (const PairRun& run : set.runs) gpus.insert(set.devices[run.device].gpu);
  return {gpus.begin(), gpus.end()};
}

}  // namespace

absl::StatusOr<std::vector<OnlineErrors>> EvaluateOnline(const PairSet& set, std::string_view model,
                                                         const Catalogue& catalogue, const OnlinePlan& plan,
                                                         const PairTrainOptions& options,
                                                         const PairProgress& progress) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  HORUS_RETURN_IF_ERROR(CheckPlan(set, plan));
  const std::vector<PairRow> rows = RowsOf(set);
  const std::vector<LeftOut> families = LeaveOut(set, rows, PairLeave::kFamily, 0, options.fit.seed);
  if (families.size() < 2) {
    return InvalidArgument("pairs: expected at least two families to leave out in turn, found %d", families.size());
  }
  const size_t least_residents = 1 + *plan.observed.rbegin();
  size_t most_residents = 0;
  for (const LeftOut& family : families) {
    for (const Arrival& arrival : ArrivalsOf(set, RowsAt(rows, family.rows), family.name, 0)) {
      most_residents = std::max(most_residents, arrival.residents.size());
    }
  }
  if (most_residents < least_residents) {
    return InvalidArgument(
        "plan: observed co-locations: expected fewer than the %d jobs of other families that a job was measured with "
        "in "
        "a campaign, found %d",
        most_residents, least_residents - 1);
  }
  const std::vector<std::string> gpus = GpusToLeave(set, plan);
  if (plan.leave_gpu && gpus.size() < 2) {
    return InvalidArgument("pairs: expected at least two GPU types to leave out in turn, found %d", gpus.size());
  }
  Player player(set, catalogue, plan, options.fit.seed);
  PairTrainOptions train = options;
  train.kinds = {std::string(model)};
  double done = 0;
  const double part = 1 / static_cast<double>(families.size() * gpus.size());
  const auto tell = [&](double of_training) { return !progress || progress(done + part * of_training); };
  for (const LeftOut& family : families) {
    const std::vector<PairRow> left_out = RowsAt(rows, family.rows), residents = RowsBut(rows, family.rows);
    for (const std::string& gpu : gpus) {
      HORUS_ASSIGN_OR_RETURN(const Bundle bundle, TrainInterference(Without(set, left_out, gpu), train, tell));
      HORUS_ASSIGN_OR_RETURN(const ModelPtr trained, LearnedModel::Create(bundle, model, catalogue));
      for (const Arrival& arrival : ArrivalsOf(set, left_out, family.name, least_residents, gpu)) {
        HORUS_RETURN_IF_ERROR(player.Play(arrival, trained, residents));
      }
      done += part;
    }
  }
  return std::move(player).Errors();
}

}  // namespace horus
