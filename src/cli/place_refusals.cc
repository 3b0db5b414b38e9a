// SPDX-License-Identifier: Apache-2.0
// Words for what keeps jobs waiting.
#include "cli/place_refusals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/text.h"
#include "cli/numbers.h"
#include "cli/table.h"
#include "place/fit.h"

namespace horus::cli {
namespace {

std::string Amount(double value, std::string_view unit, int more = 0) {
  if (unit == "MiB") return Mib(static_cast<int64_t>(value), more);
  if (unit == "x") return Factor(value, more);
  if (IsEndless(value, unit)) return "endless";
  if (unit == kLateUnit) return Duration(value);
  return unit.empty() ? Plain(value, more) : Plain(value, more) + " " + std::string(unit);
}

// What was needed and what there was, told apart.
std::pair<std::string, std::string> AmountsOf(const NearestMiss& miss) {
  return ToldApart(miss.needed, miss.available, [&](double value, int more) { return Amount(value, miss.unit, more); });
}

// Of a miss by an upper bound: what is expected.
std::string Expected(const NearestMiss& miss) {
  return miss.estimate > 0 ? absl::StrFormat(" (expected %s)", Amount(miss.estimate, miss.unit)) : "";
}

}  // namespace

std::string NodeName(const PlacementReport& placement, NodeId node) { return Printable(placement.names.Node(node)); }
std::string JobName(const PlacementReport& placement, JobId job) { return Printable(placement.names.Job(job)); }

std::string MissText(const PlacementReport& placement, const NearestMiss& miss) {
  if (miss.reason == Reason::kNone) return "There is no node to try.";
  std::string where = NodeName(placement, miss.node);
  if (miss.device >= 0) {
    absl::StrAppend(&where, " gpu ", miss.device, " (", placement.names.GpuType(miss.node, miss.device), ")");
  }
  if (miss.unit.empty()) return absl::StrCat("Nearest: ", where, ": ", std::string(ReasonText(miss.reason)));
  const auto [needed, available] = AmountsOf(miss);
  const std::string upto = miss.estimate > 0 ? "up to " : "";
  if (miss.unit == kLateUnit) {
    return absl::StrFormat("Nearest: %s: 99 %% of its requests would take %s%s%s even alone, bound %s.", where, upto,
                           available, Expected(miss), needed);
  }
  if (miss.reason == Reason::kSlowdownOwn || miss.reason == Reason::kSlowdownNeighbour) {
    return absl::StrFormat("Nearest: %s: %s would be slowed %s%s%s, bound %s.", where,
                           miss.reason == Reason::kSlowdownOwn ? "it" : "a resident", upto, available, Expected(miss),
                           needed);
  }
  if (miss.reason == Reason::kTenantLimit) {
    return absl::StrFormat("Nearest: %s: would hold %s jobs, may hold %s.", where, Plain(miss.needed),
                           Plain(miss.available));
  }
  return absl::StrFormat("Nearest: %s: %s: needs %s%s, has %s (%s short).", where,
                         absl::StrReplaceAll(std::string(ReasonName(miss.reason)), {{"_", " "}}), upto + needed,
                         Expected(miss), available, Amount(miss.needed - miss.available, miss.unit));
}

std::string RefusalColumn(const Decision& decision) {
  const NearestMiss& miss = decision.miss;
  const Reason reason = miss.reason != Reason::kNone ? miss.reason : decision.reason;  // the nearest place tells most
  switch (reason) {
    case Reason::kGpuMemory: {
      if (miss.unit.empty()) return "too little GPU memory";
      const auto [needed, available] = AmountsOf(miss);
      return absl::StrFormat("GPU memory: %s needed, %s free", needed, available);
    }
    case Reason::kCpu:
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
      return "sharing gains nothing now";
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
    absl::StrAppend(&why, MissText(placement, decision.miss));
    if (decision.miss.reason != decision.reason && decision.miss.reason != Reason::kNone) {
      absl::StrAppend(&why, " Most others: ", std::string(ReasonText(decision.reason)));
    }
    for (const std::string& line : Wrap(why, kPageWidth - 4)) absl::StrAppend(&text, "    ", line, "\n");
  }
  return text;
}

}  // namespace horus::cli
