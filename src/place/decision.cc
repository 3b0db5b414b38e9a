// SPDX-License-Identifier: Apache-2.0
// Names and sentences of verdicts and reasons.
#include "place/decision.h"

#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "place/appraise.h"

namespace horus {
namespace {

std::string Amount(double value, std::string_view unit, int more) {
  constexpr double kMostInFull = 1e15;
  if (IsUnbounded(value, unit)) return "unbounded";
  if (value == std::trunc(value) && std::abs(value) < kMostInFull) return Formatted("%.0f", value);
  return Formatted("%.*g", (unit == "x" ? 3 : 6) + more, value);
}

// "3 of 8 devices: <text>", and without the count where all were refused for one reason or none is known.
std::string DescribeReason(const Decision& decision) {
  uint64_t all = 0;
  for (const uint32_t refused : decision.refused_devices) all += refused;
  const uint32_t these = decision.refused_devices[static_cast<size_t>(decision.reason)];
  std::string text(ReasonText(decision.reason));
  // Of a gang all refused devices matter: too few are left.
  if (these == 0 || these == all || decision.reason == Reason::kGang) return text;
  return Formatted("%d of %d %s: %s", these, all, decision.cpu_only ? "nodes" : "devices", text);
}

std::string NodeOf(const Decision& decision, NodeId id) {
  return decision.node_name.empty() ? Formatted("node %d", id) : decision.node_name;
}

std::string DescribeMiss(const Decision& decision, const Catalogue* catalogue) {
  const NearestMiss& miss = decision.miss;
  const Reason main = decision.reason == Reason::kPassedOver ? miss.reason : decision.reason;
  if (miss.reason == Reason::kNone) return "";
  std::string where = NodeOf(decision, miss.node);
  if (miss.device >= 0) AppendFormatted(&where, " device %d", miss.device);
  if (miss.reason == Reason::kGpuMilli && miss.needed == kMilliPerGpu) {
    if (miss.reason == main)
      return Formatted(" It needs a whole GPU, and others are on the nearest that it may have, %s.", where);
    return Formatted(" Nearest: %s, which failed another constraint: others are on it, and a whole GPU is needed.",
                     where);
  }
  // Most devices and the nearest one may have failed on different constraints; the reader must not mix them up.
  const char* other = miss.reason == main ? "" : ", which failed another constraint";
  std::string sentence = Formatted(" Nearest: %s%s (%s", where, other, std::string(ReasonName(miss.reason)));
  if (miss.reason == Reason::kGpuType && catalogue != nullptr && miss.type.valid()) {
    sentence += ": " + catalogue->at(miss.type).name;
  } else if (miss.unit.empty() && miss.reason != main) {  // no amounts to tell: the words instead
    const std::string_view text = ReasonText(miss.reason);
    AppendFormatted(&sentence, ": %s", std::string(text.substr(0, text.size() - 1)));
  }
  if (!miss.unit.empty()) {
    const bool slowdown = miss.reason == Reason::kSlowdownOwn || miss.reason == Reason::kSlowdownNeighbour;
    const auto [needed, available] =
        ToldApart(miss.needed, miss.available, [&](double value, int more) { return Amount(value, miss.unit, more); });
    AppendFormatted(&sentence, ": %s %s, %s %s %s", slowdown ? "bound" : "needed", needed,
                    slowdown ? "predicted" : "available", available, std::string(miss.unit));
    if (miss.estimate > 0) {
      AppendFormatted(&sentence, "; %s is an upper bound, %s is expected", slowdown ? "predicted" : "needed",
                      Amount(miss.estimate, miss.unit, 0));
    }
  }
  return sentence + ").";
}

// Who is beside the job and what it costs all of them; of many the first few.
std::string DescribeCompany(const Decision& decision) {
  constexpr size_t kMostTold = 4;
  const TenantEffects others = NeighboursOf(decision);
  if (others.empty()) return ", alone.";
  std::string jobs, costs;
  for (size_t i = 0; i < std::min(others.size(), kMostTold); ++i) {
    const char* comma = i == 0 ? "" : ", ";
    AppendFormatted(&jobs, "%sjob %d", comma, others[i].job);
    AppendFormatted(&costs, "%sjob %d from %.3g to %.3g", comma, others[i].job, others[i].before.estimate,
                    others[i].after.estimate);
  }
  if (others.size() > kMostTold) jobs += Formatted(" and %d more", others.size() - kMostTold);
  return Formatted(" beside %s; expected slowdown %.3g (at most %.3g); slows %s.", jobs, decision.own.estimate,
                   decision.own.upper, costs);
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  constexpr std::string_view kNames[] = {"place", "defer", "reject"};
  const auto at = static_cast<size_t>(verdict);
  return at < std::size(kNames) ? kNames[at] : "unknown";
}

void TellInPlan(std::span<Decision> decisions) {
  if (decisions.size() < 2) return;
  IdMap<size_t> placed;  // positions
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (!decisions[i].slots.empty() && !placed.contains(decisions[i].job)) placed.Insert(decisions[i].job, i);
  }
  for (const Decision& decision : decisions) {
    for (const TenantEffect& effect : decision.effects) {
      const size_t* at = effect.is_new ? nullptr : placed.Find(effect.job);
      if (at == nullptr) continue;
      Slowdown& known = decisions[*at].in_plan;
      known = {std::max(known.estimate, effect.after.estimate), std::max(known.upper, effect.after.upper)};
    }
  }
}

std::shared_ptr<JobSpec> AsDecided(const JobSpec& job, const Decision& decision) {
  if (job.sm_cap_pct == decision.sm_cap_pct && job.mps_chosen == decision.mps_chosen) return nullptr;
  auto run = std::make_shared<JobSpec>(job);
  run->sm_cap_chosen |= job.sm_cap_pct != decision.sm_cap_pct;
  run->sm_cap_pct = decision.sm_cap_pct;
  run->mps_chosen = decision.mps_chosen;
  return run;
}

std::string DescribeMode(const Decision& decision) {
  const char* mode = decision.mode == SharingMode::kMps ? "under MPS" : "by time slicing";
  const auto gains = [&](const char* beside) {
    return Formatted("%s: %s adds %.2f jobs' work by time slicing, %.2f under MPS", mode, beside,
                     decision.mode_gains[0], decision.mode_gains[1]);
  };
  switch (decision.mode_why) {
    case ModeReason::kGiven:
      return "";
    case ModeReason::kCap:
      return Formatted("%s: caps need it", mode);
    case ModeReason::kAlone:
      return Formatted("%s: nobody comes beside it", mode);
    case ModeReason::kWaiting:
      return gains("one of those who wait");
    case ModeReason::kCopy:
      return gains("a copy of it");
  }
  return "";
}

bool IsTrial(std::span<const Slowdown> tenants) {
  double work = 0;
  for (const Slowdown& tenant : tenants) work += 1 / static_cast<double>(tenant.upper);
  return tenants.size() > 1 && IsBeyond(1, work);
}

std::string DescribeDecision(const Decision& decision, const Catalogue* catalogue) {
  if (decision.verdict == Verdict::kPlace) {
    if (decision.slots.empty()) return "Placed.";
    const Slot& first = decision.slots.front();
    const std::string node = NodeOf(decision, first.node);
    if (decision.cpu_only) {
      if (decision.slots.size() == 1) return Formatted("Placed on %s; needs no GPU.", node);
      return Formatted("Placed %d tasks, the first on %s; needs no GPU.", decision.slots.size(), node);
    }
    const std::string more =
        decision.slots.size() == 1 ? "" : Formatted(" and %d more devices", decision.slots.size() - 1);
    const std::string way = decision.alternative < 0 ? "" : Formatted(" Alternative %d.", decision.alternative);
    const char* probe = decision.probe ? " A probe: alone until it was observed." : "";
    const char* trial = decision.trial ? " A trial: it pays by expectation, not by the upper bounds; observe it." : "";
    const std::string cap =
        decision.sm_cap_pct == 0 ? "" : Formatted(" Capped at %d %% of the SMs.", decision.sm_cap_pct);
    constexpr float kTold = 1.005f;  // what two digits show
    const std::string later = decision.in_plan.estimate < kTold * decision.own.estimate
                                  ? ""
                                  : Formatted(" Jobs placed after it in this plan slow it to %.3g (at most %.3g).",
                                              decision.in_plan.estimate, decision.in_plan.upper);
    const std::string mode =
        decision.mode_why == ModeReason::kGiven ? "" : Formatted(" Runs %s.", DescribeMode(decision));
    return Formatted("Placed on %s device %d%s%s%s%s%s%s%s%s", node, first.device, more, DescribeCompany(decision),
                     later, way, cap, mode, probe, trial);
  }
  if (decision.reason == Reason::kNone) return "Deferred: does not fit now.";
  if (decision.reason == Reason::kPassedOver) {
    if (decision.miss.reason == Reason::kNone && decision.passed_by == 0)
      return "Deferred: it would fit, but one that has waited longer than the patience goes first.";
    const std::string who = decision.passed_by == 0
                                ? "others who wait go first."
                                : Formatted("job %d goes first where it would have gone.", decision.passed_by);
    return "Deferred: " + who + " Now it does not fit." + DescribeMiss(decision, catalogue);
  }
  const std::string_view when = decision.verdict == Verdict::kReject ? "Rejected: never fits this cluster. "
                                : decision.predicted_never
                                    ? "Deferred: by prediction it would not fit even the empty cluster. "
                                    : "Deferred: does not fit now. ";
  return std::string(when) + DescribeReason(decision) + DescribeMiss(decision, catalogue);
}

namespace {

// ---- What a way to run a job is worth where it would be placed.

// A hard request counts the share that it takes.
double GpusOf(const JobAlternative& way) {
  const double gpus = static_cast<double>(way.tasks) * way.gpus_per_task;
  return way.gpu_milli > 0 ? gpus * way.gpu_milli / kMilliPerGpu : gpus;
}

}  // namespace

double WorthOf(const JobSpec& job, size_t index, const Decision& decision, double gpu_price) {
  double best_per_gpu = 0;
  for (const JobAlternative& way : job.alternatives) best_per_gpu = std::max(best_per_gpu, way.rate / GpusOf(way));
  const JobAlternative& chosen = job.alternatives[index];
  double work = chosen.rate / best_per_gpu * decision.relative_speed / static_cast<double>(decision.own.estimate);
  for (const TenantEffect& effect : decision.effects) {
    if (effect.is_new) continue;
    work += 1.0 / static_cast<double>(effect.after.estimate) - 1.0 / static_cast<double>(effect.before.estimate);
  }
  return work - gpu_price * GpusOf(chosen);
}

}  // namespace horus
