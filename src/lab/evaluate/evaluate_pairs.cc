// SPDX-License-Identifier: Apache-2.0
// Leaves groups out in turn, calibrates on what remains, and predicts what was left out; plays the arrival of every job
// at a site whose model has never seen its family.
#include "lab/evaluate/evaluate_pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/draws.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "interference/corrected_model.h"
#include "interference/laws.h"
#include "interference/learned_model.h"
#include "interference/observed_slowdowns.h"

namespace horus {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::quiet_NaN();
constexpr uint32_t kOuterFolds = 10;
constexpr uint32_t kInnerFolds = 5;  // of the pairs that calibrate a fold

// The constant with the least mean absolute percentage error: a median in which each value weighs its inverse.
double BestConstant(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double total = 0, below = 0;
  for (const double value : values) total += 1 / value;
  for (const double value : values) {
    below += 1 / value;
    if (2 * below >= total) return value;
  }
  return 1;
}

std::vector<double> PredictConstant(std::span<const PairRow> train, std::span<const PairRow> test) {
  std::map<uint32_t, std::vector<double>> by_device;
  std::vector<double> all;
  for (const PairRow& row : train) {
    by_device[row.device].push_back(row.slowdown);
    all.push_back(row.slowdown);
  }
  std::vector<double> predicted;
  for (const PairRow& row : test) {
    const auto at = by_device.find(row.device);
    predicted.push_back(BestConstant(at == by_device.end() ? all : at->second));
  }
  return predicted;
}

// Effects of victim and other on z, shrunk towards nothing, by sweeps over the rows of one device (all, where it has
// none).
class Factors {
 public:
  Factors(std::span<const PairRow> train, uint32_t device, size_t jobs) : victim_(jobs), other_(jobs) {
    std::vector<PairRow> rows;
    std::copy_if(train.begin(), train.end(), std::back_inserter(rows),
                 [&](const PairRow& r) { return r.device == device; });
    if (rows.empty()) rows.assign(train.begin(), train.end());
    for (const PairRow& row : rows) mean_ += ExcessOf(row.slowdown) / static_cast<double>(rows.size());
    constexpr int kSweeps = 50;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      Update(rows, &PairRow::victim, victim_);
      Update(rows, &PairRow::other, other_);
    }
  }
  [[nodiscard]] double Predict(const PairRow& row) const { return SlowdownOf(Z(row)); }

 private:
  [[nodiscard]] double Z(const PairRow& row) const { return mean_ + victim_[row.victim] + other_[row.other]; }
  void Update(const std::vector<PairRow>& rows, uint32_t PairRow::* side, std::vector<double>& effects) {
    constexpr double kShrinkage = 0.3;  // rows' worth of no effect
    std::vector<double> sum(effects.size()), count(effects.size());
    for (const PairRow& row : rows) {
      sum[row.*side] += ExcessOf(row.slowdown) - Z(row) + effects[row.*side];
      count[row.*side] += 1;
    }
    for (size_t i = 0; i < effects.size(); ++i) effects[i] = sum[i] / (count[i] + kShrinkage);
  }
  double mean_ = 0;
  std::vector<double> victim_, other_;
};

std::vector<double> PredictFactors(const PairSet& set, std::span<const PairRow> train, std::span<const PairRow> test) {
  std::map<uint32_t, Factors> by_device;
  std::vector<double> predicted;
  for (const PairRow& row : test) {
    const auto at = by_device.try_emplace(row.device, train, row.device, set.jobs.size()).first;
    predicted.push_back(at->second.Predict(row));
  }
  return predicted;
}

std::vector<double> PredictUtilisation(const PairSet& set, std::span<const PairRow> test) {
  const auto util = [&set](uint32_t job, uint32_t device) {
    const auto log = static_cast<double>(set.jobs[job].points[device][static_cast<size_t>(PointColumn::kLogUtil)]);
    return std::isnan(log) ? 1 : std::exp(log);
  };
  std::vector<double> predicted;
  for (const PairRow& row : test)
    predicted.push_back(std::max(1.0, util(row.victim, row.device) + util(row.other, row.device)));
  return predicted;
}

struct Predictions {
  std::vector<double> values, uppers, promised;
};

absl::StatusOr<Predictions> PredictLearned(const PairModelKind& kind, const PairSet& set,
                                           std::span<const PairRow> train, std::span<const PairRow> test,
                                           PairLeave leave, const PairTrainOptions& options) {
  Predictions found;
  HORUS_ASSIGN_OR_RETURN(found.values, FitAndPredict(kind, set, train, test, options.fit));
  const CalibrationPlan plan{.promise = options.promise,
                             .folds = kInnerFolds,
                             .pairs = leave == PairLeave::kPair,
                             .families = leave == PairLeave::kJob || leave == PairLeave::kFamily,
                             .gpus = leave == PairLeave::kGpu};
  HORUS_ASSIGN_OR_RETURN(const PairBounds bounds, CalibratePairs(kind, set, train, plan, options.fit, nullptr));
  std::set<std::pair<uint32_t, uint32_t>> known;  // device, job
  for (const PairRow& row : train) known.insert({{row.device, row.victim}, {row.device, row.other}});
  for (size_t i = 0; i < test.size(); ++i) {
    const uint32_t device = leave == PairLeave::kGpu ? kUnseen : test[i].device;
    const auto seen = [&](uint32_t job) { return known.contains({test[i].device, job}) ? 1 : 0; };
    const PairMargin& margin = bounds.Of(device, seen(test[i].victim) + seen(test[i].other));
    found.uppers.push_back(UpperOf(found.values[i], MarginAt(margin, options.promise)));
    found.promised.push_back(margin.promised);
  }
  return found;
}

absl::StatusOr<Predictions> Predict(std::string_view model, const PairSet& set, std::span<const PairRow> train,
                                    std::span<const PairRow> test, PairLeave leave, const PairTrainOptions& options) {
  Predictions found;
  if (model == "constant") {
    found.values = PredictConstant(train, test);
  } else if (model == "factors") {
    found.values = PredictFactors(set, train, test);
  } else if (model == "utilisation") {
    found.values = PredictUtilisation(set, test);
  } else {
    HORUS_ASSIGN_OR_RETURN(const PairModelKind* kind, FindPairModelKind(model));
    return PredictLearned(*kind, set, train, test, leave, options);
  }
  found.uppers.assign(test.size(), kNoBound);
  found.promised.assign(test.size(), 0);
  return found;
}

absl::Status CheckModel(std::string_view model) {
  const std::vector<std::string_view> names = EvaluatedPairModels();
  if (std::find(names.begin(), names.end(), model) != names.end()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kNotFound, "model: expected one of %s, found %s", Listed(names), Quoted(model));
}

absl::Status CheckTraining(std::span<const PairRow> train, const std::string& left_out) {
  if (train.size() >= kLeastPairRows) return absl::OkStatus();
  return InvalidArgument("pairs: %s left out: expected at least %d slowdowns to remain, found %d", left_out,
                         kLeastPairRows, train.size());
}

absl::Status Report(const PairProgress& progress, size_t done, size_t all) {
  if (!progress || progress(static_cast<double>(done) / static_cast<double>(all))) return absl::OkStatus();
  return MakeError(absl::StatusCode::kCancelled, "evaluation was cancelled");
}

// One slowdown, as the model answers a placement.
absl::StatusOr<PairPrediction> Ask(const PairSet& set, const Catalogue& catalogue, const InterferenceModel& model,
                                   const PairRow& row) {
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(set.devices[row.device].gpu));
  const DeviceContext device{.type = type, .mode = set.devices[row.device].mode};
  const PairJob &victim = set.jobs[row.victim], &other = set.jobs[row.other];
  const std::array<Demand, 2> demands = {DemandOf(victim.profile_id, victim.points[row.device]),
                                         DemandOf(other.profile_id, other.points[row.device])};
  const std::array<const Demand*, 2> tenants = {&demands[0], &demands[1]};
  std::array<Slowdown, 2> slowdowns;
  HORUS_RETURN_IF_ERROR(model.Predict(device, tenants, slowdowns));
  PairPrediction said{.row = row, .left_out = "", .predicted = double{slowdowns[0].estimate}, .upper = kNoBound};
  if (const auto* learned = dynamic_cast<const LearnedModel*>(&model)) {
    said.upper = double{slowdowns[0].upper};
    said.promised = learned->MarginOf(device, victim.profile_id, other.profile_id).promised;
  }
  return said;
}

// Rows without either family, and without that GPU type; empty = of all.
std::vector<PairRow> RowsWithout(const PairSet& set, std::span<const PairRow> rows, const std::string& one,
                                 const std::string& two, const std::string& gpu) {
  std::vector<PairRow> others;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(others), [&](const PairRow& row) {
    const std::string &victim = set.jobs[row.victim].family, &other = set.jobs[row.other].family;
    return victim != one && victim != two && other != one && other != two && set.devices[row.device].gpu != gpu;
  });
  return others;
}

// Every job of one family beside every one of the other, both ways, on every device of that GPU type; empty = of all.
std::vector<PairRow> RowsBetween(const PairSet& set, const std::string& one, const std::string& two,
                                 const std::string& gpu) {
  std::vector<PairRow> rows;
  for (uint32_t device = 0; device < set.devices.size(); ++device) {
    if (!gpu.empty() && set.devices[device].gpu != gpu) continue;
    for (uint32_t a = 0; a < set.jobs.size(); ++a) {
      for (uint32_t b = 0; b < set.jobs.size(); ++b) {
        const std::string &victim = set.jobs[a].family, &other = set.jobs[b].family;
        const bool between = (victim == one && other == two) || (victim == two && other == one);
        if (between) rows.push_back({.device = device, .victim = a, .other = b});
      }
    }
  }
  return rows;
}

// ---- Once a few co-locations were observed.

using ModelPtr = std::shared_ptr<const InterferenceModel>;

// Standard normal, a function of its argument.
double Normal(uint64_t seed) { return NormalOf(Mix64(CombineHash(seed, 1)), Mix64(CombineHash(seed, 2))); }

// Sums; MakeMeans() divides.
void Add(double truth, const Slowdown& answer, OnlineScore& score) {
  const auto estimate = static_cast<double>(answer.estimate), upper = static_cast<double>(answer.upper);
  score.mape_pct += kPct * std::abs(estimate / truth - 1);
  score.covered_pct += truth <= upper ? kPct : 0;
  score.slack_pct += kPct * (upper / truth - 1);
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
      of.admitted_pct *= kPct / of.truly_pct;  // NaN where nothing is truly within the bound
      of.truly_pct *= kPct / static_cast<double>(scores.pairs);
      of.kept_pct *= kPct / of.admitted_tenants;
    }
    for (double* sum : {&score->mape_pct, &score->covered_pct, &score->slack_pct})
      *sum /= static_cast<double>(scores.questions);
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
  if (plan.observed.empty() || plan.draws == 0)
    return InvalidArgument("plan: expected numbers of observed co-locations and draws, found none");
  for (const uint32_t count : plan.observed) {
    if (count > kMostObserved)
      return InvalidArgument("plan: observed co-locations: expected 0 to %d, found %d", kMostObserved, count);
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

std::vector<std::string_view> EvaluatedPairModels() {
  std::vector<std::string_view> names;
  for (const PairModelKind& kind : PairModelKinds()) names.push_back(kind.name);
  names.insert(names.end(), {"utilisation", "constant", "factors"});
  return names;
}

absl::StatusOr<std::vector<PairPrediction>> EvaluatePairs(const PairSet& set, std::string_view model, PairLeave leave,
                                                          const PairTrainOptions& options,
                                                          const PairProgress& progress) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  HORUS_RETURN_IF_ERROR(CheckModel(model));
  const std::vector<PairRow> rows = RowsOf(set);
  const std::vector<LeftOut> groups = LeaveOut(set, rows, leave, kOuterFolds, options.fit.seed);
  if (groups.size() < 2)
    return InvalidArgument("pairs: expected at least two groups to leave out in turn, found %d", groups.size());
  std::vector<PairPrediction> predictions;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<PairRow> train = RowsBut(rows, groups[g].rows), test = RowsAt(rows, groups[g].rows);
    HORUS_RETURN_IF_ERROR(CheckTraining(train, groups[g].name));
    HORUS_ASSIGN_OR_RETURN(const Predictions found, Predict(model, set, train, test, leave, options));
    for (size_t i = 0; i < test.size(); ++i)
      predictions.push_back({test[i], groups[g].name, found.values[i], found.uppers[i], found.promised[i]});
    HORUS_RETURN_IF_ERROR(Report(progress, g + 1, groups.size()));
  }
  return predictions;
}

absl::StatusOr<std::vector<PairPrediction>> EvaluateAsIs(const PairSet& set, const Catalogue& catalogue,
                                                         const InterferenceModel& model, PairLeave leave,
                                                         uint32_t seed) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  const std::vector<PairRow> rows = RowsOf(set);
  std::vector<PairPrediction> said;
  for (const PairRow& row : rows) {
    HORUS_ASSIGN_OR_RETURN(PairPrediction one, Ask(set, catalogue, model, row));
    said.push_back(std::move(one));
  }
  std::vector<PairPrediction> predictions;
  for (const LeftOut& group : LeaveOut(set, rows, leave, kOuterFolds, seed)) {
    for (const uint32_t row : group.rows) {
      predictions.push_back(said[row]);
      predictions.back().left_out = group.name;
    }
  }
  return predictions;
}

absl::StatusOr<std::vector<UnseenPrediction>> PredictUnseen(const PairSet& set, std::string_view model, bool leave_gpu,
                                                            const PairTrainOptions& options,
                                                            const PairProgress& progress) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  HORUS_RETURN_IF_ERROR(CheckModel(model));
  const std::vector<PairRow> rows = RowsOf(set);
  std::set<std::string> names;
  for (const PairJob& job : set.jobs) names.insert(job.family);
  const std::vector<std::string> families(names.begin(), names.end());
  std::set<std::string> gpus = {""};  // that are left out in turn
  if (leave_gpu) gpus.clear();
  for (const PairDevice& device : set.devices) {
    if (leave_gpu) gpus.insert(device.gpu);
  }
  const size_t all = gpus.size() * families.size() * (families.size() + 1) / 2;
  std::vector<UnseenPrediction> predictions;
  size_t done = 0;
  const auto predict = [&](const std::string& one, const std::string& two, const std::string& gpu) -> absl::Status {
    const std::vector<PairRow> train = RowsWithout(set, rows, one, two, gpu), test = RowsBetween(set, one, two, gpu);
    HORUS_RETURN_IF_ERROR(CheckTraining(train, absl::StrCat(one, " and ", two, gpu.empty() ? "" : " and ", gpu)));
    HORUS_ASSIGN_OR_RETURN(const Predictions found, Predict(model, set, train, test, PairLeave::kFamily, options));
    for (size_t k = 0; k < test.size(); ++k)
      predictions.push_back({test[k].device, test[k].victim, test[k].other, found.values[k], found.uppers[k]});
    return Report(progress, ++done, all);
  };
  for (size_t i = 0; i < families.size(); ++i) {
    for (size_t j = i; j < families.size(); ++j) {
      for (const std::string& gpu : gpus) HORUS_RETURN_IF_ERROR(predict(families[i], families[j], gpu));
    }
  }
  std::ranges::sort(predictions, {},
                    [](const UnseenPrediction& one) { return std::tie(one.device, one.victim, one.other); });
  return predictions;
}

absl::StatusOr<std::vector<OnlineErrors>> EvaluateOnline(const PairSet& set, std::string_view model,
                                                         const Catalogue& catalogue, const OnlinePlan& plan,
                                                         const PairTrainOptions& options,
                                                         const PairProgress& progress) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  HORUS_RETURN_IF_ERROR(CheckPlan(set, plan));
  const std::vector<PairRow> rows = RowsOf(set);
  const std::vector<LeftOut> families = LeaveOut(set, rows, PairLeave::kFamily, 0, options.fit.seed);
  if (families.size() < 2)
    return InvalidArgument("pairs: expected at least two families to leave out in turn, found %d", families.size());
  const size_t least_residents = 1 + *plan.observed.rbegin();
  size_t most_residents = 0;
  for (const LeftOut& family : families) {
    for (const Arrival& arrival : ArrivalsOf(set, RowsAt(rows, family.rows), family.name, 0))
      most_residents = std::max(most_residents, arrival.residents.size());
  }
  if (most_residents < least_residents) {
    return InvalidArgument(
        "plan: observed co-locations: expected fewer than the %d jobs of other families that a job was measured with "
        "in a campaign, found %d",
        most_residents, least_residents - 1);
  }
  const std::vector<std::string> gpus = GpusToLeave(set, plan);
  if (plan.leave_gpu && gpus.size() < 2)
    return InvalidArgument("pairs: expected at least two GPU types to leave out in turn, found %d", gpus.size());
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
      for (const Arrival& arrival : ArrivalsOf(set, left_out, family.name, least_residents, gpu))
        HORUS_RETURN_IF_ERROR(player.Play(arrival, trained, residents));
      done += part;
    }
  }
  return std::move(player).Errors();
}

}  // namespace horus
