// SPDX-License-Identifier: Apache-2.0
// Groups of rows that leave together, and predictions of them.
#include "interference/pair_folds.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/status.h"

namespace horus {
namespace {

// The groups that a row belongs to: one of a job, up to two of jobs and families.
std::set<std::string> GroupsOfRow(const PairSet& set, const PairRow& row, PairLeave leave, uint32_t folds,
                                  uint32_t seed) {
  const PairJob &victim = set.jobs[row.victim], &other = set.jobs[row.other];
  switch (leave) {
    case PairLeave::kPair: {
      const auto [low, high] = std::minmax(row.victim, row.other);
      const uint64_t hash = CombineHash(CombineHash(seed, low), high);
      return {"fold " + std::to_string(hash % folds)};
    }
    case PairLeave::kJob:
      return {victim.name, other.name};
    case PairLeave::kFamily:
      return {victim.family, other.family};
    case PairLeave::kGpu:
      return {set.devices[row.device].gpu};
  }
  return {};
}

}  // namespace

std::vector<LeftOut> LeaveOut(const PairSet& set, std::span<const PairRow> rows, PairLeave leave, uint32_t folds,
                              uint32_t seed) {
  std::vector<LeftOut> groups;
  std::map<std::string, size_t> position;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    for (const std::string& name : GroupsOfRow(set, rows[i], leave, folds, seed)) {
      const auto [at, added] = position.emplace(name, groups.size());
      if (added) groups.push_back({.name = name, .rows = {}});
      groups[at->second].rows.push_back(i);
    }
  }
  return groups;
}

std::vector<PairRow> RowsAt(std::span<const PairRow> rows, std::span<const uint32_t> positions) {
  std::vector<PairRow> some;
  some.reserve(positions.size());
  for (const uint32_t position : positions) some.push_back(rows[position]);
  return some;
}

std::vector<PairRow> RowsBut(std::span<const PairRow> rows, std::span<const uint32_t> positions) {
  std::vector<PairRow> others;
  auto next = positions.begin();
  for (uint32_t i = 0; i < rows.size(); ++i) {
    if (next != positions.end() && *next == i) {
      ++next;
    } else {
      others.push_back(rows[i]);
    }
  }
  return others;
}

std::vector<double> PredictRows(const PairModel& model, const PairSet& set, std::span<const PairRow> rows) {
  std::vector<double> predictions;
  predictions.reserve(rows.size());
  for (const PairRow& row : rows) {
    const PairJob &victim = set.jobs[row.victim], &other = set.jobs[row.other];
    const std::array<Tenant, 2> tenants = {Tenant{victim.profile_id, victim.points[row.device]},
                                           Tenant{other.profile_id, other.points[row.device]}};
    std::array<float, 4> slowdowns = {};
    model.Pairs(row.device, tenants, slowdowns);
    predictions.push_back(static_cast<double>(slowdowns[1]));  // of the first beside the second
  }
  return predictions;
}

absl::StatusOr<std::vector<double>> FitAndPredict(const PairModelKind& kind, const PairSet& set,
                                                  std::span<const PairRow> train, std::span<const PairRow> test,
                                                  const PairFitOptions& options) {
  if (test.empty()) return std::vector<double>();
  HORUS_ASSIGN_OR_RETURN(const BundleTarget target, kind.fit(set, train, options));
  HORUS_ASSIGN_OR_RETURN(const auto model, kind.read(HeaderOf(set), target));
  return PredictRows(*model, set, test);
}

}  // namespace horus
