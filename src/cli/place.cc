// SPDX-License-Identifier: Apache-2.0
// horus place: where the jobs of a file should run on the cluster of another.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "base/vectors.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "cli/report.h"
#include "interference/laws.h"
#include "interference/table_model.h"
#include "io/enforcers.h"
#include "io/placement.h"
#include "metrics/metrics.h"
#include "place/appraise.h"
#include "place/job/own_bound.h"
#include "place/modes/batch.h"
#include "place/state/fit.h"

namespace horus::cli {
namespace {

// ---- Refusals for people: a few words for a table's cell, and a paragraph below it.

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

std::string ReasonWords(Reason reason) { return absl::StrReplaceAll(std::string(ReasonName(reason)), {{"_", " "}}); }

// Of a miss by an upper bound: what is expected.
std::string Expected(const NearestMiss& miss) {
  return miss.estimate > 0 ? absl::StrFormat(" (expected %s)", Amount(miss.estimate, miss.unit)) : "";
}

// As people named them, printable.
std::string NodeName(const PlacementReport& placement, NodeId node) { return Printable(placement.names.Node(node)); }
std::string JobName(const PlacementReport& placement, JobId job) { return Printable(placement.names.Job(job)); }

// With which probability its slowdown is held against a bound.
double ConfidenceOf(const JobSpec& job) {
  return job.slowdown_confidence > 0 ? static_cast<double>(job.slowdown_confidence) : kUpperProbability;
}

// The place that came nearest and how far off it was.
std::string MissText(const PlacementReport& placement, const Decision& decision) {
  const NearestMiss& miss = decision.miss;
  if (miss.reason == Reason::kNone) return "There is no node to try.";
  std::string where = NodeName(placement, miss.node);
  if (miss.device >= 0)
    absl::StrAppend(&where, " gpu ", miss.device, " (", placement.names.GpuType(miss.node, miss.device), ")");
  if (miss.reason == Reason::kGpuMilli && miss.needed == kMilliPerGpu)
    return absl::StrFormat("No GPU that it may have is free: it shares with nobody, and jobs are on %s.", where);
  if (miss.unit.empty()) return absl::StrCat("Nearest: ", where, ": ", Sentence(placement, miss.reason));
  const auto [needed, available] = AmountsOf(miss);
  const std::string upto = miss.estimate > 0 ? "up to " : "";
  if (const JobSpec* job = placement.FindJob(decision.job);
      miss.unit == kLateUnit && job != nullptr && !KeepsLatency(*job)) {
    return absl::StrFormat(
        "Nearest: %s: even alone it cannot serve its load in the promised times; `horus inspect --solve gpus` says "
        "how many GPUs do.",
        where);
  }
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
    if (miss.estimate > 0 && job != nullptr)
      most = absl::StrFormat("at most %s with %g %% confidence%s", available, 100 * ConfidenceOf(*job), Expected(miss));
    return absl::StrFormat("Nearest: %s: it would be slowed %s, bound %s.", where, most, needed);
  }
  if (miss.reason == Reason::kTenantLimit) {
    return absl::StrFormat("Nearest: %s: would hold %s jobs, may hold %s.", where, Plain(miss.needed),
                           Plain(miss.available));
  }
  return absl::StrFormat("Nearest: %s: %s: needs %s%s, has %s (%s short).", where, ReasonWords(miss.reason),
                         upto + needed, Expected(miss), available, Amount(miss.needed - miss.available, miss.unit));
}

constexpr std::pair<Reason, const char*> kRefusals[] = {
    {Reason::kCpu, "too few CPU cores"},
    {Reason::kHostMemory, "too little host memory"},
    {Reason::kStorageBandwidth, "too little storage bandwidth"},
    {Reason::kSlowdownOwn, "would be slower than its bound"},
    {Reason::kSlowdownNeighbour, "would slow others beyond their bounds"},
    {Reason::kTenantLimit, "all GPUs are taken"},
    {Reason::kGpuMilli, "all GPUs are taken"},
    {Reason::kExclusive, "all GPUs are taken"},
    {Reason::kSharingMode, "all GPUs are taken"},
    {Reason::kPolicy, "sharing gains nothing now"},
    {Reason::kSharingQuota, "the sharing quota is used up"},
    {Reason::kGang, "too few GPUs for all of it"},
    {Reason::kOwner, "GPUs are held by other tenants"},
    {Reason::kLabel, "no node has its labels, or admits it"}};

// A few words: what keeps it off the nearest place.
std::string RefusalColumn(const PlacementReport& placement, const Decision& decision) {
  const NearestMiss& miss = decision.miss;
  if (decision.reason == Reason::kPassedOver) return "others do more work there";
  const Reason reason = miss.reason != Reason::kNone ? miss.reason : decision.reason;  // the nearest place tells most
  if (reason == Reason::kGpuMemory) {
    if (miss.unit.empty()) return "too little GPU memory";
    const auto [needed, available] = AmountsOf(miss);
    return absl::StrFormat("GPU memory: %s needed, %s free", needed, available);
  }
  if (reason == Reason::kSlowdownOwn && miss.unit == kLateUnit) return "would be too slow even alone";
  if (NeverShares(placement, reason)) return "policy exclusive never shares";
  const auto known = std::ranges::find(kRefusals, reason, [](const auto& refusal) { return refusal.first; });
  return known != std::end(kRefusals) ? known->second : ReasonWords(reason);
}

// A paragraph a job that waits; empty where none does.
std::string NotPlacedText(const PlacementReport& placement) {
  std::string text;
  for (const Decision& decision : placement.plan.decisions) {
    if (decision.verdict == Verdict::kPlace) continue;
    if (text.empty()) text = "\nNot placed\n";
    absl::StrAppend(&text, "  ", JobName(placement, decision.job), "\n");
    std::string why = decision.predicted_never ? "By prediction it would not fit even the empty cluster. " : "";
    const bool passed = decision.reason == Reason::kPassedOver;
    if (passed && decision.passed_by != 0)
      absl::StrAppend(&why, JobName(placement, decision.passed_by), " has the place that suited it best. ");
    absl::StrAppend(&why, MissText(placement, decision));
    if (!passed && decision.miss.reason != decision.reason && decision.miss.reason != Reason::kNone)
      absl::StrAppend(&why, " Most others: ", Sentence(placement, decision.reason));
    text += Paragraph(why, "    ");
  }
  return text;
}

// ---- A placement for people: the table of decisions, the reasons behind each, and the cluster's totals.

constexpr size_t kShownNodes = 4;  // of a gang in the table
constexpr size_t kShownNeighbours = 4;

std::string Gpus(uint64_t count) { return absl::StrFormat("%d GPU%s", count, count == 1 ? "" : "s"); }

// "0-3,6": indices in ascending order.
std::string IndexRanges(std::span<const int32_t> indices) {
  std::string text;
  for (size_t i = 0; i < indices.size();) {
    size_t last = i;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", indices[i]);
    if (last > i) absl::StrAppend(&text, "-", indices[last]);
    i = last + 1;
  }
  return text;
}

// "gpu-a gpu 0-3 (a100-40gb)", one line a node.
std::string WhereText(const PlacementReport& placement, const Decision& decision) {
  if (decision.verdict == Verdict::kDefer) return "deferred";
  if (decision.verdict == Verdict::kReject) return "rejected";
  Slots slots = decision.slots;
  std::ranges::sort(slots, {}, ByDevice);
  std::string text;
  size_t nodes = 0;
  for (size_t i = 0; i < slots.size(); ++nodes) {
    std::vector<int32_t> indices;
    const Slot& first = slots[i];
    for (; i < slots.size() && slots[i].node == first.node; ++i) indices.push_back(slots[i].device);
    if (nodes >= kShownNodes) continue;
    if (first.device == kNoDevice) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", NodeName(placement, first.node), "\n  ",
                      indices.size() == 1 ? "no GPU" : absl::StrCat("no GPU, ", indices.size(), " tasks"));
      continue;
    }
    absl::StrAppend(&text, text.empty() ? "" : "\n", NodeName(placement, first.node), " gpu ", IndexRanges(indices),
                    "\n  ", placement.names.GpuType(first.node, first.device));
  }
  if (nodes > kShownNodes) absl::StrAppend(&text, "\nand ", nodes - kShownNodes, " more nodes");
  return text;
}

// Whom the plan places beside a job after it, by that job.
using LaterJobs = std::map<JobId, std::vector<JobId>>;
LaterJobs LaterOf(const PlacementReport& placement) {
  LaterJobs later;
  for (const Decision& decision : placement.plan.decisions) {
    for (const TenantEffect& effect : NeighboursOf(decision)) later[effect.job].push_back(decision.job);
  }
  return later;
}

std::string BesideText(const PlacementReport& placement, const Decision& decision, const LaterJobs& later) {
  if (decision.verdict != Verdict::kPlace || decision.cpu_only) return "";
  std::vector<JobId> beside = VectorOf<JobId>(NeighboursOf(decision), &TenantEffect::job);
  if (const auto at = later.find(decision.job); at != later.end())
    beside.insert(beside.end(), at->second.begin(), at->second.end());
  if (beside.empty()) return decision.probe ? "alone (probe)" : "alone";
  std::string text;
  for (size_t i = 0; i < beside.size() && i < kShownNeighbours; ++i)
    absl::StrAppend(&text, i == 0 ? "" : "\n", JobName(placement, beside[i]));
  if (beside.size() > kShownNeighbours) absl::StrAppend(&text, "\nand ", beside.size() - kShownNeighbours, " more");
  return text;
}

// The job's own slowdown on the first line, with its bound where it states one; then its neighbours' in the order of
// BesideText.
std::string SlowdownText(const PlacementReport& placement, const Decision& decision) {
  if (decision.verdict != Verdict::kPlace || decision.cpu_only) return "";
  const JobSpec* job = placement.FindJob(decision.job);
  const Demand* demand = placement.DemandOf(decision);
  const bool promised = job != nullptr && (job->slowdown_bound > 0 || KeepsLatency(*job) ||
                                           (demand != nullptr && demand->slowdown_bound > 0));
  // As it will be, also beside those whom the plan places later.
  std::string text = decision.in_plan.estimate == 1 && NeighboursOf(decision).empty()
                         ? "none"
                         : absl::StrCat("own ", Factor(static_cast<double>(decision.in_plan.estimate)));
  if (promised && text != "none")
    absl::StrAppend(&text, " (<= ", Factor(SlowdownAt(decision.in_plan, kUpperProbability, ConfidenceOf(*job))), ")");
  const Slot& slot = decision.slots.front();
  const bool slice = placement.names.GpuType(slot.node, slot.device).find('/') != std::string::npos;  // of MIG
  if (constexpr double kShown = 0.005; slice && 1 / decision.relative_speed - 1 > kShown)
    absl::StrAppend(&text, "\nslice ", Factor(1 / decision.relative_speed), " slower");
  return text;
}

std::string NeighbourSlowdowns(const PlacementReport& placement, const Decision& decision) {
  const TenantEffects neighbours = NeighboursOf(decision);
  std::string text;
  for (size_t i = 0; i < neighbours.size() && i < kShownNeighbours; ++i) {
    absl::StrAppend(&text, "\n", JobName(placement, neighbours[i].job), " ",
                    Factor(static_cast<double>(neighbours[i].before.estimate)), " -> ",
                    Factor(static_cast<double>(neighbours[i].after.estimate)));
  }
  return text;
}

std::string WorkText(const PlacementReport& placement, const Decision& decision) {
  const auto [added, lost] = placement.WorkOf(decision);
  return absl::StrFormat("adds %.2f GPUs' work, costs others %.2f", added, lost);
}

std::string PlacedColumn(const PlacementReport& placement, const Decision& decision) {
  std::string text = decision.alternative < 0 ? "" : absl::StrFormat("alternative %d: ", decision.alternative);
  const size_t gpus = decision.slots.size();
  const std::string these = gpus == 1 ? "the GPU" : absl::StrFormat("%d GPUs", gpus);
  if (decision.cpu_only) {
    absl::StrAppend(&text, "needs no GPU");
  } else if (NeighboursOf(decision).empty()) {
    absl::StrAppend(&text, "has ", these, decision.in_plan == decision.own ? " to itself" : " to itself until then");
  } else {
    absl::StrAppend(&text, WorkText(placement, decision));
  }
  if (decision.mode_why != ModeReason::kGiven) absl::StrAppend(&text, "; ", DescribeMode(decision));
  if (decision.sm_cap_pct > 0) {
    absl::StrAppend(&text, "; start it with ",
                    MpsWords({.job = {}, .mode = SharingMode::kMps, .sm_cap_pct = decision.sm_cap_pct, .memory = {}}),
                    ", which alone makes it ", Factor(static_cast<double>(decision.sm_cap_slowdown)));
  }
  const JobSpec* job = placement.FindJob(decision.job);
  if (job != nullptr && job->alternatives.empty() &&
      (job->cpu_milli != decision.cpu_milli || job->mem_mib != decision.mem_mib)) {
    const char* each = job->tasks > 1 ? "each task" : "it";
    return absl::StrCat(text, ", ", each, " is granted ", Cores(decision.cpu_milli),
                        decision.cpu_milli == kMilliPerCore ? " core and " : " cores and ", Mib(decision.mem_mib));
  }
  if (!decision.has_runner_up) return text;
  const PricedPlace& next = decision.runner_up;
  const std::string gpu = next.device == kNoDevice ? "" : absl::StrFormat(" gpu %d", next.device);
  const std::string there = absl::StrCat(NodeName(placement, next.node), gpu);
  // A batch may give a job's better place to another.
  return next.cost < decision.winner.cost ? absl::StrCat(text, "; leaves ", there, " to others")
                                          : absl::StrCat(text, "; next best ", there);
}

std::string ReasonColumn(const PlacementReport& placement, const Decision& decision) {
  return decision.verdict == Verdict::kPlace ? PlacedColumn(placement, decision) : RefusalColumn(placement, decision);
}

// "  label      content", continued below the content where it is long.
void AppendLine(std::string_view label, const std::string& content, std::string& text) {
  constexpr size_t kIndent = 13;
  for (const std::string& line : Wrap(content, kPageWidth - kIndent)) {
    absl::StrAppendFormat(&text, "  %-10s %s\n", std::string(label), line);
    label = "";
  }
}

void AppendPlace(const PlacementReport& placement, std::string_view label, const PricedPlace& place,
                 std::string& text) {
  const std::string gpu =
      place.device == kNoDevice
          ? ""
          : absl::StrFormat(" gpu %d (%s)", place.device, placement.names.GpuType(place.node, place.device));
  std::string line = absl::StrFormat("%s%s, cost %.6g", NodeName(placement, place.node), gpu, place.cost);
  for (size_t i = 0; i < place.terms.size(); ++i) {
    const double value = place.terms[i].value == 0 ? 0 : place.terms[i].value;  // never "-0"
    absl::StrAppendFormat(&line, "%s%s %.4g", i == 0 ? " = " : " + ", std::string(place.terms[i].name), value);
  }
  AppendLine(label, line, text);
}

void AppendDemand(const Demand& demand, std::string& text) {
  const auto percent = [](float pct) { return Percent(static_cast<double>(pct)); };
  const auto step = static_cast<double>(demand.step_time_us.estimate);
  AppendLine(
      "demand",
      absl::StrFormat("utilisation %s (<= %s), bandwidth %s, memory %s (<= %s), step %s%s",
                      percent(demand.gpu_util_pct.estimate), percent(demand.gpu_util_pct.upper),
                      percent(demand.mem_bw_util_pct.estimate), Mib(demand.mem_mib.estimate), Mib(demand.mem_mib.upper),
                      step == 0 ? "unknown" : Duration(step), (demand.flags & kDemandGiven) != 0 ? ", as given" : ""),
      text);
}

void AppendEffects(const PlacementReport& placement, const Decision& decision, std::string& text) {
  for (const TenantEffect& effect : NeighboursOf(decision)) {
    AppendLine("touches",
               absl::StrFormat(
                   "%s on %s gpu %d: %s -> %s (<= %s)", JobName(placement, effect.job),
                   NodeName(placement, effect.node), effect.device, Factor(static_cast<double>(effect.before.estimate)),
                   Factor(static_cast<double>(effect.after.estimate)), Factor(static_cast<double>(effect.after.upper))),
               text);
  }
}

void AppendRefusals(const Decision& decision, std::string& text) {
  std::string counts;
  for (size_t i = 0; i < decision.refused_devices.size(); ++i) {
    if (decision.refused_devices[i] == 0) continue;
    absl::StrAppend(&counts, counts.empty() ? "" : ", ", decision.refused_devices[i], " by ",
                    std::string(ReasonName(static_cast<Reason>(i))));
  }
  if (!counts.empty()) AppendLine("refused", (decision.cpu_only ? "nodes: " : "devices: ") + counts, text);
}

// "3 GiB of 12 GiB (25 %)", without the share where there is nothing.
std::string Of(const std::string& part, const std::string& whole, std::optional<double> share) {
  return part + " of " + whole + (share ? " (" + Percent(100 * *share) + ")" : "");
}

std::optional<double> Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? std::optional(static_cast<double>(part) / static_cast<double>(whole)) : std::nullopt;
}

// A row that names the jobs of some decisions below a line on them; none where there are none.
void AddJobsRow(std::string_view title, std::string_view line, const PlacementReport& placement,
                const std::function<bool(const Decision&)>& is, Table& table) {
  constexpr size_t kShown = 8;
  std::vector<std::string> names;
  for (const Decision& decision : placement.plan.decisions) {
    if (is(decision)) names.push_back(JobName(placement, decision.job));
  }
  if (names.empty()) return;
  std::string text = absl::StrFormat("%d of %d jobs %s:", names.size(), placement.plan.decisions.size(), line);
  const std::span<const std::string> shown = std::span(names).first(std::min(names.size(), kShown));
  std::string list = absl::StrJoin(shown, ", ");
  if (names.size() > kShown) absl::StrAppend(&list, " and ", names.size() - kShown, " more");
  constexpr size_t kIndent = 24;
  for (const std::string& part : Wrap(list, kPageWidth - kIndent)) absl::StrAppend(&text, "\n", part);
  table.AddRow({std::string(title), text});
}

std::string DecisionsText(const PlacementReport& placement) {
  Table table("~JOB|~WHERE|~BESIDE|~EXPECTED SLOWDOWN|~WHY");
  const LaterJobs later = LaterOf(placement);
  for (const Decision& decision : placement.plan.decisions) {
    table.AddRow({JobName(placement, decision.job), WhereText(placement, decision),
                  BesideText(placement, decision, later),
                  SlowdownText(placement, decision) + NeighbourSlowdowns(placement, decision),
                  ReasonColumn(placement, decision)});
  }
  return table.empty() ? "No jobs to place.\n" : table.Render() + NotPlacedText(placement);
}

// Residents that the plan gives other CPU and host memory; empty where there are none.
std::string ResizesText(const PlacementReport& placement) {
  Table table("~RESIDENT|CORES A TASK|MEMORY A TASK|SPEED");
  for (const Move& move : placement.plan.moves) {
    if (move.kind != ActionKind::kResize) continue;
    table.AddRow({JobName(placement, move.job),
                  absl::StrCat(Cores(move.host_from.cpu_milli), " -> ", Cores(move.host_to.cpu_milli)),
                  absl::StrCat(Mib(move.host_from.mem_mib), " -> ", Mib(move.host_to.mem_mib)),
                  absl::StrFormat("%+.3g", move.gain)});
  }
  return table.empty() ? "" : "\nResidents that are resized\n" + table.Render("  ");
}

// Who is beside whom in the end; empty where nobody shares.
std::string SharedText(const PlacementReport& placement) {
  struct Pack {
    std::string jobs;
    double work = 0;
  };
  std::map<std::pair<NodeId, int32_t>, Pack> packs;
  for (const TenantOutcome& tenant : placement.tenants) {
    if (tenant.others == 0) continue;
    Pack& pack = packs[{tenant.node, tenant.device}];
    absl::StrAppend(&pack.jobs, pack.jobs.empty() ? "" : ", ", JobName(placement, tenant.job), " ",
                    Factor(static_cast<double>(tenant.slowdown.estimate)));
    pack.work += tenant.WorkAt(tenant.slowdown.estimate);
  }
  Table table("GPU|~JOBS, EXPECTED SLOWDOWN|>WORK");
  for (const auto& [gpu, pack] : packs) {
    table.AddRow({absl::StrFormat("%s gpu %d", NodeName(placement, gpu.first), gpu.second), pack.jobs,
                  absl::StrFormat("%.2f", pack.work)});
  }
  return table.empty() ? ""
                       : "\nShared GPUs after the plan (work: 1 = a busy job alone on its fastest GPU type)\n" +
                             table.Render("  ");
}

// What the users of placed services get beside whom they are.
std::string ServicesText(const PlacementReport& placement) {
  Table table("SERVICE|>SLOWED|>FIRST TOKEN|>EACH FURTHER");
  const auto text = [](const ServiceTime& time) {
    if (time.upper_us == 0) return std::string("-");
    return absl::StrCat(Duration(time.estimate_us),
                        std::isinf(time.upper_us) ? ", no bound" : " <= " + Duration(time.upper_us));
  };
  for (const auto& [job, times] : placement.service_times)
    table.AddRow({JobName(placement, job), Factor(times.slowdown), text(times.first_token), text(times.token)});
  return table.empty() ? ""
                       : "\nServices where they are (mean <= nine in ten requests, or the share promised, at the "
                         "slowdown's bound)\n" +
                             table.Render("  ");
}

// What each placed service is to tell its engine, so that it takes what it was given and no more.
std::string EnginesText(const PlacementReport& placement) {
  std::string text;
  for (const auto& [job, arguments] : placement.engine_arguments)
    absl::StrAppend(&text, text.empty() ? "\nTold to their engines\n" : "", "  ", JobName(placement, job), "  ",
                    arguments, "\n");
  return text;
}

// What each placed job was granted of its GPUs, in the words of that enforcer, or of all.
std::string GrantsText(const PlacementReport& placement, const std::string& enforcer) {
  std::string text;
  for (const Enforcer& one : Enforcers()) {
    if (enforcer != "all" && enforcer != one.name) continue;
    std::string part;
    for (const Decision& decision : placement.plan.decisions) {
      const JobSpec* job = placement.FindJob(decision.job);
      if (decision.verdict != Verdict::kPlace || decision.cpu_only || job == nullptr) continue;
      const auto tasks = static_cast<int32_t>(decision.slots.back().task + 1);
      const std::string words = one.words({.job = JobName(placement, decision.job),
                                           .gpus = static_cast<int32_t>(decision.slots.size()) / tasks,
                                           .mode = decision.mode,
                                           .sm_cap_pct = decision.sm_cap_pct,
                                           .memory = decision.gpu_memory});
      const bool dropped = decision.sm_cap_pct > 0 && (words.empty() || !one.caps);
      if (words.empty() && !dropped) continue;
      absl::StrAppend(&part, "  ", JobName(placement, decision.job), "\n");
      if (!words.empty()) absl::StrAppend(&part, "    ", absl::StrReplaceAll(words, {{"\n", "\n    "}}), "\n");
      if (dropped)
        absl::StrAppendFormat(&part, "    no word for its cap of %d %%: its neighbours' bounds would not hold\n",
                              decision.sm_cap_pct);
    }
    if (!part.empty())
      absl::StrAppend(&text, "\nTold to ", std::string(one.name), ": ", std::string(one.when), "\n", part);
  }
  return text;
}

// Per job: demand, cost terms of winner and runner-up, effects, refusal counts.
std::string ExplainText(const PlacementReport& placement) {
  std::string text;
  for (const Decision& decision : placement.plan.decisions) {
    absl::StrAppendFormat(&text, "\n%s (job %d): %s\n", JobName(placement, decision.job), decision.job,
                          std::string(VerdictName(decision.verdict)));
    if (const Demand* demand = placement.DemandOf(decision)) AppendDemand(*demand, text);
    if (decision.verdict == Verdict::kPlace) AppendPlace(placement, "chosen", decision.winner, text);
    if (decision.has_runner_up) AppendPlace(placement, "runner-up", decision.runner_up, text);
    AppendEffects(placement, decision, text);
    AppendRefusals(decision, text);
    if (decision.verdict != Verdict::kPlace) AppendLine("miss", MissText(placement, decision), text);
  }
  return text;
}

std::string TotalsText(const PlacementReport& placement) {
  const ClusterTotals& before = placement.before;
  const ClusterTotals& after = placement.after;
  const auto devices = static_cast<int64_t>(after.devices);
  Table table("|");
  table.AddRow({"jobs", absl::StrFormat("%d placed, %d deferred, %d rejected", placement.Count(Verdict::kPlace),
                                        placement.Count(Verdict::kDefer), placement.Count(Verdict::kReject))});
  const PlacementReport::Basis basis = placement.SlowdownBasis();
  if (basis.sharing > 0) {
    table.AddRow({"sharing",
                  absl::StrFormat("%d jobs on %s, expected to do the work of %.1f busy GPUs;\n"
                                  "alone on %s they would do that of %.1f",
                                  basis.jobs, Gpus(basis.gpus), basis.work, Gpus(basis.alone_gpus), basis.alone_work)});
    std::string text = absl::StrFormat("predicted, not measured, for %d of %d of them: to check, docs/modes.md",
                                       basis.sharing - basis.measured, basis.sharing);
    if (basis.measured == basis.sharing)
      text = absl::StrFormat("of all %d tenants beside others measured", basis.sharing);
    if (basis.beside_several > 0) {
      absl::StrAppendFormat(&text, "\n%d of them beside two and more: what each costs is added up",
                            basis.beside_several);
    }
    table.AddRow({"slowdowns", text});
  }
  const auto usable = static_cast<size_t>(
      std::ranges::count_if(placement.all_gpus, [](const GpuOutcome& gpu) { return gpu.state == AdminState::kUp; }));
  AddJobsRow(
      "trials", "share where it pays by expectation, not by the bounds", placement,
      [](const Decision& decision) { return decision.trial; }, table);
  AddJobsRow(
      "demands", "lie outside what the prediction was made for", placement,
      [&](const Decision& decision) { return placement.IsOutside(decision); }, table);
  AddJobsRow(
      "requests", "get requests faster than steps serve them, one each: their queues grow without end", placement,
      [&](const Decision& decision) {
        const JobSpec* job = placement.FindJob(decision.job);
        const Demand* demand = placement.DemandOf(decision);
        return job != nullptr && demand != nullptr && IsOverrun(*job, *demand);
      },
      table);
  table.AddRow({"GPUs in use", Of(std::to_string(after.devices_used), std::to_string(after.devices),
                                  Ratio(static_cast<int64_t>(after.devices_used), devices)) +
                                   absl::StrFormat(", before %d", before.devices_used) +
                                   (usable == after.devices ? "" : absl::StrFormat("; %d usable", usable))});
  table.AddRow({"predicted utilisation",
                Percent(after.gpu_util_pct) + ", mean over all GPUs, before " + Percent(before.gpu_util_pct)});
  table.AddRow({"GPU memory reserved", Of(Mib(after.gpu_mem_used_mib), Mib(after.gpu_mem_mib),
                                          Ratio(after.gpu_mem_used_mib, after.gpu_mem_mib))});
  table.AddRow({"CPU cores",
                Of(Cores(after.cpu_used_milli), Cores(after.cpu_milli), Ratio(after.cpu_used_milli, after.cpu_milli))});
  table.AddRow(
      {"host memory", Of(Mib(after.mem_used_mib), Mib(after.mem_mib), Ratio(after.mem_used_mib, after.mem_mib))});
  table.AddRow(
      {"above slowdown bound", absl::StrFormat("%d of %d tenants (default bound %s)", placement.TenantsAboveBound(),
                                               placement.TenantJobs(), Factor(placement.settings.slowdown_bound))});
  return absl::StrFormat("\nCluster after the plan (%d nodes, policy %s, interference %s)\n", after.nodes,
                         placement.settings.policy, placement.settings.interference) +
         table.Render("  ");
}

constexpr char kPlaceFooter[] = R"(
Examples:
  horus place --cluster cluster.yaml --jobs jobs.yaml
  horus place --cluster cluster.yaml --jobs jobs.yaml --policy first-fit --explain
  horus place --cluster cluster.yaml --jobs jobs.yaml --slowdown-bound 1.2 --out placement.json --strict

Where not all jobs find room, those are placed that do most work together; a higher priority goes first. With
--one-by-one they are decided by priority, then submission time, then id, each seeing those before it. A job that
finds no place is an answer, not an error: the table says which constraint refused it and how far off it was;
--strict makes it exit code 3. A synergy policy decides all in one round and may resize residents, which are listed.
docs/files.md describes both files.)";

struct PlaceFlags {
  PlacingOptions placing;
  std::string out;
  std::string prometheus;
  std::string enforcer;
  PageOptions page;
  bool explain = false;
  bool strict = false;
  bool json = false;
};

// What the one call of the placer did, and what is held.
std::string MetricsOf(const Placer& placer, const Cluster& cluster, Call call, const Plan& plan,
                      std::chrono::nanoseconds took) {
  Metrics metrics;
  metrics.Called(call, kStatusOk, static_cast<uint64_t>(took.count()));
  metrics.Decided(plan);
  const Placer::Judgements judged = placer.judgements();
  metrics.Looked(Cache::kJudgements, judged.known, judged.anew);
  std::vector<MetricRow> rows = metrics.Rows();
  const auto add_held = [&](const char* labels, uint64_t bytes) {
    rows.push_back({&kBytesHeld, kBytesHeld.name, labels, static_cast<double>(bytes)});
  };
  add_held("handle=\"cluster\"", cluster.bytes_held());
  add_held("handle=\"placer\"", placer.bytes_held());
  return MetricsText(rows);
}

void AddEngineArguments(const JobRequest& request, const Cluster& cluster, const DemandShelf& shelf,
                        PlacementReport& report) {
  if (!request.model || !request.model->service) return;
  for (const Decision& decision : report.plan.decisions) {
    if (decision.job != request.spec.id || decision.verdict != Verdict::kPlace) continue;
    const Slot& slot = decision.slots.front();
    const absl::StatusOr<NodeInfo> node = cluster.Node(slot.node);
    if (!node.ok()) continue;  // cannot be: it was just placed there
    const DeviceSpec& device = node->spec.devices[static_cast<size_t>(slot.device)];
    const Service* service = shelf.FindService(decision.job, device.type);
    if (service == nullptr) continue;
    const GpuType& gpu = report.catalogue->at(device.type);
    const int64_t mem_mib =
        device.mode == SharingMode::kMig ? gpu.mig[static_cast<size_t>(device.mig_profile)].mem_mib : gpu.mem_mib;
    const double slice =
        device.mode == SharingMode::kMig ? SliceSpeed(service->demand, static_cast<double>(device.compute_share)) : 1;
    const auto at = [&](float slowdown) { return service->At(static_cast<double>(slowdown) / slice); };
    if (auto times = at(decision.in_plan.estimate)) {
      constexpr double kNone = std::numeric_limits<double>::infinity();  // more come than it then serves
      const auto slowest = at(decision.in_plan.upper);
      times->first_token.upper_us = slowest ? slowest->first_token.upper_us : kNone;
      times->token.upper_us = slowest ? slowest->token.upper_us : kNone;
      report.service_times[decision.job] = *times;
    }
    report.engine_arguments[decision.job] = EngineArguments(request.model->run.framework, *service, gpu, mem_mib);
  }
}

// Pairs that were measured of other runs answer nothing: a precision or a batch that differs is a sentence.
void WarnOfUnknownPairs(const PlacingOptions& options, const InterferenceModel& model, std::span<const JobSpec> jobs) {
  const auto* table = dynamic_cast<const TableModel*>(&model);
  if (options.interference.pairs.empty() || table == nullptr) return;
  const auto known = [&](const JobSpec& job) {
    return !job.alternatives.empty() || IsCpuOnly(job) ||
           std::ranges::any_of(job.demands, [&](const TypeDemand& one) { return table->Knows(one.demand.profile_id); });
  };
  const auto unknown = std::ranges::find_if_not(jobs, known);
  if (unknown == jobs.end()) return;
  std::fprintf(
      stderr,
      "horus: --pairs: %td of %zu jobs run as none of %s does (graph, batch, precision, optimizer), the first is %s\n",
      std::ranges::count_if(jobs, std::not_fn(known)), jobs.size(), Printable(options.interference.pair_jobs).c_str(),
      Printable(unknown->name).c_str());
}

// Whether cores and host memory are divided between those who share, which a plan one by one alone does.
bool DividesHost(std::span<const JobSpec> jobs, const ClusterFile& file) {
  const auto divides = [](const JobSpec& job) { return job.sensitivity.get() != nullptr; };
  return std::ranges::any_of(jobs, divides) ||
         std::ranges::any_of(file.residents, [&](const FileResident& one) { return divides(one.job.spec); });
}

absl::StatusOr<std::string> Place(const PlaceFlags& options, bool& all) {
  HORUS_ASSIGN_OR_RETURN(const PlacementReport placement, PlaceFiles(options.placing, options.prometheus));
  all = placement.Count(Verdict::kPlace) == placement.plan.decisions.size();
  if (!options.out.empty()) HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.out, PlacementJson(placement)));
  if (!options.page.path.empty()) HORUS_RETURN_IF_ERROR(WritePage(options.page, PlacementJson(placement)));
  if (options.json) return PlacementJson(placement);
  return DecisionsText(placement) + SharedText(placement) + ResizesText(placement) + ServicesText(placement) +
         EnginesText(placement) + GrantsText(placement, options.enforcer) +
         (options.explain ? ExplainText(placement) : "") + TotalsText(placement) +
         (options.out.empty() ? "" : "  written to            " + options.out + "\n");
}

int RunPlace(const PlaceFlags& options) {
  bool all = true;
  const int code = Print(Place(options, all));
  return code == kExitDecided && options.strict && !all ? kExitRefused : code;
}

}  // namespace

absl::StatusOr<PlacementReport> PlaceFiles(const PlacingOptions& options, const std::string& prometheus) {
  HORUS_ASSIGN_OR_RETURN(PlacingInputs inputs, LoadPlacing(options));
  const Cluster& cluster = inputs.cluster;
  Placer& placer = *inputs.placer;
  Progress progress;
  HORUS_ASSIGN_OR_RETURN(std::vector<JobSpec> jobs, CompleteJobs(inputs.requests, cluster, inputs.present,
                                                                 *inputs.shelf, [&](size_t done, size_t total) {
                                                                   progress.Update("analysing jobs:", done, total);
                                                                 }));
  WarnOfUnknownPairs(options, *inputs.model, jobs);
  const auto begin = std::chrono::steady_clock::now();
  const bool choose = !options.one_by_one && placer.policy().maximises_work() &&
                      (options.placer.host_grants == HostGrants::kStated || !DividesHost(jobs, inputs.file));
  const ProgressFn tell = [&](uint64_t done, uint64_t total) {
    progress.Update(choose ? "choosing:" : "placing jobs:", done, total);
    return true;
  };
  // Without prices: they value a future that one call does not have.
  HORUS_ASSIGN_OR_RETURN(
      Plan plan, choose ? PlanBatch(placer, cluster, jobs, {.window = kSmallBatch, .prices = false}, std::nullopt, tell)
                        : placer.MakePlan(cluster, jobs, std::nullopt, tell));
  if (!prometheus.empty()) {
    const auto took = std::chrono::steady_clock::now() - begin;
    HORUS_RETURN_IF_ERROR(
        WriteFileOrDevice(prometheus, MetricsOf(placer, cluster, choose ? Call::kPlanBatch : Call::kPlan, plan, took)));
  }
  HORUS_ASSIGN_OR_RETURN(PlacementReport report,
                         MakePlacementReport(cluster, std::move(jobs), std::move(plan), placer.model(),
                                             {.policy = options.policy,
                                              .interference = NameOf(options.interference),
                                              .slowdown_bound = placer.slowdown_bound(),
                                              .seed = options.placer.seed}));
  for (const JobRequest& request : inputs.requests) AddEngineArguments(request, cluster, *inputs.shelf, report);
  return report;
}

Command AddPlace(CLI::App& parser) {
  auto options = std::make_shared<PlaceFlags>();
  CLI::App* app = parser.add_subcommand("place", "On which GPUs jobs should run, beside whom, and how slowed");
  AddPlacingOptions(*app, "the jobs to place", options->placing);
  AddOption(*app, "--out", options->out, "Also write the placement as JSON", "FILE");
  AddOption(*app, "--prometheus", options->prometheus, "Also write what was done as Prometheus text (docs/embed.md)",
            "FILE");
  AddPageOptions(*app, options->page);
  app->add_flag("--one-by-one", options->placing.one_by_one,
                "Decide jobs in their order instead of choosing among them");
  CLI::Option* json = app->add_flag("--json", options->json, "Print JSON");
  std::vector<std::string_view> enforcers = {"all"};
  for (const Enforcer& one : Enforcers()) enforcers.push_back(one.name);
  app->add_option("--enforcer", options->enforcer,
                  "Also print what holds the jobs to their parts of GPUs, in its words: " + Listed(enforcers))
      ->check(CLI::IsMember(std::vector<std::string>(enforcers.begin(), enforcers.end())))
      ->excludes(json)
      ->type_name("NAME");
  app->add_flag("--explain", options->explain, "Print costs, effects and refusals of every decision");
  app->add_flag("--strict", options->strict, "Exit with 3 when a job finds no place");
  app->footer(kPlaceFooter);
  return {app, [options] { return RunPlace(*options); }};
}

}  // namespace horus::cli
