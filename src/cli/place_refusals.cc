// SPDX-License-Identifier: Apache-2.0
// Words for what keeps jobs waiting.
#include "cli/place_refusals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/numbers.h"
#include "cli/table.h"
#include "place/fit.h"

namespace horus::cli {
namespace {

std::string Amount(double value, std::string_view unit, int more = 0) {
  if (unit == "MiB") return Mib(static_cast<int64_t>(value), more);
  if (unit == "x") return Factor(value, more);
  if (unit == "milli-cores") return Plain(value / kMilliPerCore, more) + " cores";
  if (IsUnbounded(value, unit)) return "unbounded";
  if (unit == kLateUnit) return Duration(value);
  return unit.empty() ? Plain(value, more) : Plain(value, more) + " " + std::string(unit);
}

// What was needed and what there was, told apart.
std::pair<std::string, std::string> AmountsOf(const NearestMiss& miss) {
  return ToldApart(miss.needed, miss.available, [&](double value, int more) { return Amount(value, miss.unit, more); });
}

bool NeverShares(const PlacementReport& placement, Reason reason) {
  return reason == Reason::kPolicy && placement.settings.policy == "exclusive";
}

std::string Sentence(const PlacementReport& placement, Reason reason) {
  return NeverShares(placement, reason) ? "Policy exclusive never shares a GPU." : std::string(ReasonText(reason));
}

// Of a miss by an upper bound: what is expected.
std::string Expected(const NearestMiss& miss) {
  return miss.estimate > 0 ? absl::StrFormat(" (expected %s)", Amount(miss.estimate, miss.unit)) : "";
}

}  // namespace

std::string NodeName(const PlacementReport& placement, NodeId node) { return Printable(placement.names.Node(node)); }
std::string JobName(const PlacementReport& placement, JobId job) { return Printable(placement.names.Job(job)); }

double ConfidenceOf(const JobSpec& job) {
  return job.slowdown_confidence > 0 ? static_cast<double>(job.slowdown_confidence) : kUpperProbability;
}

std::string MissText(const PlacementReport& placement, const Decision& decision) {
  const NearestMiss& miss = decision.miss;
  if (miss.reason == Reason::kNone) return "There is no node to try.";
  std::string where = NodeName(placement, miss.node);
  if (miss.device >= 0) {
    absl::StrAppend(&where, " gpu ", miss.device, " (", placement.names.GpuType(miss.node, miss.device), ")");
  }
  if (miss.unit.empty()) return absl::StrCat("Nearest: ", where, ": ", Sentence(placement, miss.reason));
  const auto [needed, available] = AmountsOf(miss);
  const std::string upto = miss.estimate > 0 ? "up to " : "";
  if (miss.unit == kLateUnit) {
    return absl::StrFormat("Nearest: %s: 99 %% of its requests would take %s%s%s even alone, bound %s.", where, upto,
                           available, Expected(miss), needed);
  }
  if (miss.reason == Reason::kSlowdownNeighbour) {
    return absl::StrFormat("Nearest: %s: a resident would be slowed %s%s%s, bound %s.", where, upto, available,
                           Expected(miss), needed);
  }
  if (miss.reason == Reason::kSlowdownOwn) {
    const JobSpec* job = placement.FindJob(decision.job);
    std::string most = available;
    if (miss.estimate > 0 && job != nullptr) {
      most = absl::StrFormat("at most %s with %g %% confidence%s", available, 100 * ConfidenceOf(*job), Expected(miss));
    }
    return absl::StrFormat("Nearest: %s: it would be slowed %s, bound %s.", where, most, needed);
  }
  if (miss.reason == Reason::kTenantLimit) {
    return absl::StrFormat("Nearest: %s: would hold %s jobs, may hold %s.", where, Plain(miss.needed),
                           Plain(miss.available));
  }
  return absl::StrFormat("Nearest: %s: %s: needs %s%s, has %s (%s short).", where,
                         absl::StrReplaceAll(std::string(ReasonName(miss.reason)), {{"_", " "}}), upto + needed,
                         Expected(miss), available, Amount(miss.needed - miss.available, miss.unit));
}

std::string RefusalColumn(const PlacementReport& placement, const Decision& decision) {
  const NearestMiss& miss = decision.miss;
  const Reason reason = miss.reason != Reason::kNone ? miss.reason : decision.reason;  // the nearest place tells most
  switch (reason) {
    case Reason::kGpuMemory: {
      if (miss.unit.empty()) return "too little GPU memory";
      const auto [needed, available] = AmountsOf(miss);
      return absl::StrFormat("GPU memory: %s needed, %s free", needed, available);
    }
    case Reason::kCpu:
      return "too few CPU cores";
    case Reason::kHostMemory:
    case Reason::kStorageBandwidth:
      return absl::StrCat("too little ", absl::StrReplaceAll(std::string(ReasonName(reason)), {{"_", " "}}));
    case Reason::kSlowdownOwn:
      return miss.unit == kLateUnit ? "would answer too late even alone" : "would be slower than its bound";
    case Reason::kSlowdownNeighbour:
      return "would slow others beyond their bounds";
    case Reason::kTenantLimit:
    case Reason::kGpuMilli:
    case Reason::kExclusive:
    case Reason::kSharingMode:
      return "all GPUs are taken";
    case Reason::kPolicy:
      return NeverShares(placement, reason) ? "policy exclusive never shares" : "sharing gains nothing now";
    case Reason::kSharingQuota:
      return "the sharing quota is used up";
    case Reason::kGang:
      return "too few GPUs for all of it";
    case Reason::kOwner:
      return "GPUs are held by other tenants";
    case Reason::kLabel:
      return "no node has its labels";
    default:
      return absl::StrReplaceAll(std::string(ReasonName(reason)), {{"_", " "}});
  }
}

std::string NotPlacedText(const PlacementReport& placement) {
  std::string text;
  for (const Decision& decision : placement.plan.decisions) {
    if (decision.verdict == Verdict::kPlace) continue;
    if (text.empty()) text = "\nNot placed\n";
    absl::StrAppend(&text, "  ", JobName(placement, decision.job), "\n");
    std::string why = decision.predicted_never ? "By prediction it would not fit even the empty cluster. " : "";
    absl::StrAppend(&why, MissText(placement, decision));
    if (decision.miss.reason != decision.reason && decision.miss.reason != Reason::kNone) {
      absl::StrAppend(&why, " Most others: ", Sentence(placement, decision.reason));
    }
    for (const std::string& line : Wrap(why, kPageWidth - 4)) absl::StrAppend(&text, "    ", line, "\n");
  }
  return text;
}

}  // namespace horus::cli
