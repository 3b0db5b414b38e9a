// SPDX-License-Identifier: Apache-2.0
// horus/place.h: placers, their plans and verdicts; and what calls that plan or simulate share.
#include <array>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "base/vectors.h"
#include "capi/callbacks.h"
#include "capi/convert.h"
#include "capi/planning.h"

namespace horus::capi {
namespace {

// ---- Workloads of policies.

absl::StatusOr<std::vector<TaskClass>> TasksFromC(const Catalogue& catalogue, const horus_workload& c) {
  if (c.task_count > Workload::kMaxClasses)
    return InvalidArgument("task_count: expected at most %d, found %d", Workload::kMaxClasses, c.task_count);
  HORUS_RETURN_IF_ERROR(RequireColumns(c.task_count, {{c.gpus, "gpus"}, {c.shares, "shares"}}));
  std::vector<TaskClass> tasks(c.task_count);
  for (size_t i = 0; i < tasks.size(); ++i) {
    TaskClass& task = tasks[i];
    task.cpu_milli = c.cpu_milli == nullptr ? 0 : c.cpu_milli[i];
    task.gpus = c.gpus[i];
    if (task.gpus > 0) task.gpu_milli = c.gpu_milli == nullptr ? kMilliPerGpu : c.gpu_milli[i];
    task.share = c.shares[i];
    if (c.gpu_types == nullptr || c.gpu_types[i] == nullptr) continue;
    HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(c.gpu_types[i], Element("gpu_types", i).c_str()));
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(name));
    task.types = {type};
  }
  return tasks;
}

absl::StatusOr<std::shared_ptr<const Workload>> Convert(const horus_workload& c,
                                                        std::shared_ptr<const Catalogue>& named) {
  const std::shared_ptr<const Catalogue> catalogue = CatalogueOf(c.catalogue);
  if ((c.task_count == 0) == (c.job_count == 0)) {
    return InvalidArgument("expected either task_count or job_count above 0, found %d and %d", c.task_count,
                           c.job_count);
  }
  std::vector<TaskClass> tasks;
  if (c.job_count > 0) {
    HORUS_ASSIGN_OR_RETURN(const auto jobs, JobsFromC(*catalogue, c.job_count, c.jobs, Workload::kMaxJobs));
    for (const JobSpec& job : jobs) HORUS_RETURN_IF_ERROR(ValidateRunning(job));
    tasks = TasksOf(jobs);
  } else {
    HORUS_ASSIGN_OR_RETURN(tasks, TasksFromC(*catalogue, c));
  }
  for (const TaskClass& task : tasks) {
    if (!task.types.empty()) named = catalogue;
  }
  return Workload::Create(std::move(tasks));
}

constexpr char kDefaultPolicy[] = "horus";
constexpr char kCallbackPolicy[] = "callback";

// Marks the placer for one call and locks the cluster until it was read; BUSY when a callback of such a call is
// running.
class PlacerUse {
 public:
  [[nodiscard]] static absl::StatusOr<PlacerUse> Enter(horus_placer& placer, const horus_cluster& cluster) {
    if (!SameTypes(placer.catalogue, cluster.value.shared_catalogue()))
      return InvalidArgument("cluster: expected the GPU types that the placer's callbacks were made for");
    if (placer.busy.exchange(true))
      return CError(HORUS_ERR_BUSY, "placer: in use by the call whose callback runs, or by another thread");
    PlacerUse use(placer);
    HORUS_ASSIGN_OR_RETURN(ClusterGate::PlanLock lock, cluster.gate.Plan());
    use.lock_.emplace(std::move(lock));
    return use;
  }
  PlacerUse(PlacerUse&& other) noexcept
      : placer_(std::exchange(other.placer_, nullptr)), lock_(std::move(other.lock_)) {}
  PlacerUse& operator=(PlacerUse&&) = delete;
  void DoneReading() { lock_->DoneReading(); }
  ~PlacerUse() {
    lock_.reset();
    if (placer_ != nullptr) placer_->busy.store(false);
  }

 private:
  explicit PlacerUse(horus_placer& placer) : placer_(&placer) {}
  horus_placer* placer_;
  std::optional<ClusterGate::PlanLock> lock_;
};

static_assert(Same(HORUS_HOST_GRANTS_RESIZE, HostGrants::kResize) &&
              Same(HORUS_HOST_GRANTS_STATED, HostGrants::kStated));

// 0 is the default; -1 is 0 where the option has no negative numbers.
template <typename T>
absl::Status SetOption(const PlacerOption<T>& option, auto given, PlacerOptions& options) {
  T& value = options.*option.field;
  const std::string name(option.name);
  if constexpr (std::is_same_v<T, bool>) {
    HORUS_RETURN_IF_ERROR(CheckFlag(name.c_str(), given));
    value = given == 1;
  } else if constexpr (std::is_enum_v<T>) {
    const auto last = static_cast<int32_t>(option.facts.words.size()) - 1;
    const std::string constants = absl::StrCat("HORUS_", absl::AsciiStrToUpper(name), "_*");
    HORUS_RETURN_IF_ERROR(CheckConstant(name.c_str(), constants.c_str(), 0, last, given));
    value = static_cast<T>(given);
  } else {
    SetUnlessZero(value, given);
    const bool none = std::is_signed_v<T> && option.facts.least == 0 && given == static_cast<decltype(given)>(-1);
    if (none) value = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<PlacerOptions> OptionsFromC(const horus_placer_options& given) {
  PlacerOptions options;
#define HORUS_OPTION(type, name, initial, ...) \
  HORUS_RETURN_IF_ERROR(SetOption(PlacerOption<type>{#name, &PlacerOptions::name, {__VA_ARGS__}}, given.name, options));
#include "place/placer_options.h"
  return options;
}

// Sets the placer's catalogue too where the workload names types.
absl::StatusOr<std::unique_ptr<Policy>> PolicyByName(const horus_placer_options& options,
                                                     std::shared_ptr<const LabPolicyOptions> lab,
                                                     horus_placer& placer) {
  if (options.policy_user != nullptr || options.policy_callback_name != nullptr ||
      options.policy_catalogue != nullptr) {
    return InvalidArgument("policy_callback: expected a function for the other policy_* fields, found NULL");
  }
  HORUS_ASSIGN_OR_RETURN(const std::string name, ReadOptionalText(options.policy, "policy"));
  PolicyOptions settings{.seed = options.seed, .workload = nullptr, .lab = std::move(lab)};
  std::shared_ptr<const Catalogue> named;
  if (options.workload != nullptr) HORUS_SET_OR_RETURN(settings.workload, WorkloadFromC(options.workload, named));
  if (!SameTypes(placer.catalogue, named))
    return InvalidArgument("workload: expected the GPU types that the callback model was made for");
  if (placer.catalogue == nullptr) placer.catalogue = std::move(named);
  return MakePolicy(name.empty() ? kDefaultPolicy : name, settings);
}

// Sets the placer's catalogue too: type ids mean something to the callback.
absl::StatusOr<std::unique_ptr<Policy>> PolicyByCallback(const horus_placer_options& options, horus_placer& placer) {
  if (options.policy != nullptr) return InvalidArgument("policy: expected NULL beside policy_callback, found a name");
  HORUS_ASSIGN_OR_RETURN(std::string name, ReadOptionalText(options.policy_callback_name, "policy_callback_name"));
  if (name.size() > kMaxNameBytes)
    return InvalidArgument("policy_callback_name: expected at most %d bytes, found %d", kMaxNameBytes, name.size());
  if (options.policy_catalogue != nullptr && !SameTypes(placer.catalogue, options.policy_catalogue->value))
    return InvalidArgument("policy_catalogue: expected the GPU types that the callback model was made for");
  if (placer.catalogue == nullptr) placer.catalogue = CatalogueOf(options.policy_catalogue);
  if (name.empty()) name = kCallbackPolicy;
  return std::make_unique<CallbackPolicy>(placer.catalogue, options.policy_callback, options.policy_user,
                                          std::move(name));
}

// What the placer did since it was last asked.
void TellJudgements(horus_placer& placer) {
  if (placer.telemetry.get() == nullptr) return;
  const Placer::Judgements now = placer.value->judgements();
  placer.telemetry.get()->metrics().Looked(Cache::kJudgements, now.known - placer.judged.known,
                                           now.anew - placer.judged.anew);
  placer.judged = now;
  placer.bytes_held = placer.value->bytes_held();
}

// ---- horus/place.h, plans: the decisions and what explains them.

static_assert(Same(HORUS_VERDICT_PLACE, Verdict::kPlace) && Same(HORUS_VERDICT_DEFER, Verdict::kDefer) &&
              Same(HORUS_VERDICT_REJECT, Verdict::kReject));
static_assert(Same(HORUS_REASON_POLICY, Reason::kPolicy) && Same(HORUS_REASON_OWNER, Reason::kOwner) &&
              Same(HORUS_REASON_MEMORY_UNKNOWN, Reason::kMemoryUnknown) &&
              Same(HORUS_REASON_PASSED_OVER, Reason::kPassedOver) && HORUS_REASON_PASSED_OVER + 1 == kReasonCount);

absl::StatusOr<const Decision*> DecisionAt(const horus_plan* plan, size_t index) {
  HORUS_RETURN_IF_ERROR(Require({{plan, "plan"}}));
  return RowAt(plan->value.decisions, "decisions", index);
}

// The places of a row of the plan: HORUS_SLOTS_*.
absl::StatusOr<const Slots*> SlotsAt(const horus_plan* plan, int32_t of, size_t index) {
  if (of == HORUS_SLOTS_DECISION) {
    HORUS_ASSIGN_OR_RETURN(const Decision* decision, DecisionAt(plan, index));
    return &decision->slots;
  }
  HORUS_RETURN_IF_ERROR(Require({{plan, "plan"}}));
  if (of == HORUS_SLOTS_PREEMPTION) {
    HORUS_ASSIGN_OR_RETURN(const PreemptionCandidate* one, RowAt(plan->value.candidates, "preemptions", index));
    return &one->slots;
  }
  HORUS_RETURN_IF_ERROR(CheckConstant("of", "HORUS_SLOTS_*", HORUS_SLOTS_DECISION, HORUS_SLOTS_PREEMPTION, of));
  HORUS_ASSIGN_OR_RETURN(const Move* move, RowAt(plan->value.moves, "moves", index));
  return of == HORUS_SLOTS_MOVE_FROM ? &move->from : &move->to;
}

const char* TextOf(const horus_plan& plan, size_t index) {
  std::call_once(plan.texts_once, [&plan] {
    plan.texts = VectorOf<std::string>(plan.value.decisions, [&plan](const Decision& decision) {
      return DescribeDecision(decision, plan.catalogue.get());
    });
  });
  return plan.texts[index].c_str();
}

void MissToC(const NearestMiss& miss, horus_decision& c) {
  c.miss_reason = static_cast<int32_t>(miss.reason);
  c.miss_node = miss.node;
  c.miss_device = static_cast<uint32_t>(miss.device);  // -1 becomes UINT32_MAX
  c.miss_needed = miss.needed;
  c.miss_available = miss.available;
  c.miss_estimate = miss.estimate;
  c.miss_unit = miss.unit.data() == nullptr ? "" : miss.unit.data();  // literals: ended by NUL
}

horus_decision DecisionToC(const Decision& decision) {
  horus_decision c = HORUS_DECISION_INIT;
  c.job_id = decision.job;
  c.slots = static_cast<uint32_t>(decision.slots.size());
  c.effects = static_cast<uint32_t>(decision.effects.size());
  c.slowdown = decision.own.estimate;
  c.slowdown_upper = decision.own.upper;
  c.slowdown_in_plan = decision.in_plan.estimate;
  c.slowdown_in_plan_upper = decision.in_plan.upper;
  HORUS_COPY_FIELDS(decision, c, verdict, reason, passed_by, sm_cap_pct, sm_cap_slowdown, alternative, cpu_milli,
                    mem_mib, probe, trial, predicted_never)
  c.terms = static_cast<uint32_t>(decision.winner.terms.size());
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  c.cost = decision.verdict == Verdict::kPlace ? decision.winner.cost : kNone;
  c.runner_up_cost = decision.has_runner_up ? decision.runner_up.cost : kNone;
  if (decision.verdict == Verdict::kPlace && !decision.cpu_only) c.sharing_mode = SharingToC(decision.mode);
  c.gpu_mem_request_mib = decision.gpu_memory.request_mib;
  c.gpu_mem_limit_mib = decision.gpu_memory.limit_mib;
  c.miss_unit = "";
  if (decision.verdict != Verdict::kPlace) MissToC(decision.miss, c);
  return c;
}

absl::Status WriteEffects(std::span<const TenantEffect> effects, const horus_effects* out, size_t* count) {
  HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
  HORUS_ASSIGN_OR_RETURN(const horus_effects columns, ReadStruct(out));
  return WriteRows(effects.size(), columns.capacity, count, [&](size_t i) {
    Put(columns.job_ids, i, effects[i].job);
    Put(columns.node_ids, i, effects[i].node);
    Put(columns.devices, i, effects[i].device);
    Put(columns.slowdown_before, i, effects[i].before.estimate);
    Put(columns.slowdown_after, i, effects[i].after.estimate);
    Put(columns.slowdown_after_upper, i, effects[i].after.upper);
    Put(columns.calibrated_up_to, i, effects[i].calibrated);
  });
}

absl::Status WriteRefusals(const std::array<uint32_t, kReasonCount>& refused, size_t capacity, int32_t* reasons,
                           uint64_t* counts, size_t* count) {
  std::vector<int32_t> rows;
  for (size_t reason = 0; reason < refused.size(); ++reason) {
    if (refused[reason] != 0) rows.push_back(static_cast<int32_t>(reason));
  }
  return WriteRows(rows.size(), capacity, count, [&](size_t i) {
    Put(reasons, i, rows[i]);
    Put(counts, i, refused[static_cast<size_t>(rows[i])]);
  });
}

}  // namespace

// ---- Reading and writing of columns.

absl::StatusOr<int32_t> DeviceIndex(uint32_t device) {
  if (device <= static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) return static_cast<int32_t>(device);
  return NotFound("device: expected an index within the node, found %d", device);
}

absl::StatusOr<Slots> SlotsFromC(const SlotColumns& columns) {
  HORUS_RETURN_IF_ERROR(RequireColumns(columns.count, {{columns.node_ids, "node_ids"}, {columns.devices, "devices"}}));
  if (columns.count > static_cast<size_t>(kMaxGpusPerJob))
    return InvalidArgument("slot_count: expected at most %d, found %d", kMaxGpusPerJob, columns.count);
  Slots slots(columns.count);
  for (size_t i = 0; i < columns.count; ++i) {
    slots[i].node = columns.node_ids[i];
    slots[i].device = kNoDevice;
    if (columns.devices[i] != UINT32_MAX)
      HORUS_SET_OR_RETURN(slots[i].device, At(Element("devices", i), DeviceIndex(columns.devices[i])));
    const uint32_t task = columns.tasks == nullptr ? 0 : columns.tasks[i];
    if (task >= static_cast<uint32_t>(kMaxGpusPerJob))
      return InvalidArgument("%s: expected less than %d, found %d", Element("tasks", i), kMaxGpusPerJob, task);
    slots[i].task = static_cast<int32_t>(task);
  }
  return slots;
}

absl::Status CheckRoom(size_t needed, const IdBuffer& buffer) {
  if (buffer.ids == nullptr) return absl::OkStatus();
  return RowsToWrite(needed, buffer.capacity, buffer.count).status();
}

void WriteIds(std::span<const uint64_t> ids, const IdBuffer& buffer) {
  if (buffer.ids != nullptr && buffer.capacity > 0) std::copy(ids.begin(), ids.end(), buffer.ids);
  if (buffer.count != nullptr) *buffer.count = ids.size();
}

absl::Status WriteSlots(std::span<const Slot> slots, const horus_slots* out, size_t* count) {
  HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
  HORUS_ASSIGN_OR_RETURN(const horus_slots columns, ReadStruct(out));
  return WriteRows(slots.size(), columns.capacity, count, [&](size_t i) {
    Put(columns.node_ids, i, slots[i].node);
    Put(columns.devices, i, slots[i].device);
    Put(columns.tasks, i, slots[i].task);
  });
}

absl::StatusOr<SeenResident> SeenResidentOf(const horus_cluster& cluster, JobId job, NodeId node, uint32_t device,
                                            bool with_others) {
  HORUS_ASSIGN_OR_RETURN(const auto lock, cluster.gate.Read());
  HORUS_ASSIGN_OR_RETURN(const int32_t index, DeviceIndex(device));
  HORUS_ASSIGN_OR_RETURN(const DeviceInfo info, cluster.value.Device(node, index));
  SeenResident seen{.gpu_type = cluster.value.catalogue().at(info.spec.type).name,
                    .device = {info.spec.type, info.spec.mode, info.spec.compute_share},
                    .job = {},
                    .others = {}};
  bool found = false;
  for (const Resident& resident : info.residents) {
    if (resident.job != job && !with_others) continue;
    HORUS_ASSIGN_OR_RETURN(const JobInfo there, cluster.value.Job(resident.job));
    const Demand demand = AsRun(*there.spec, DemandOn(*there.spec, info.spec.type));
    if (demand.profile_id == 0) {
      return InvalidArgument("job %s: expected a profile_id in its demand on %s, by which it is learned, found 0",
                             IdAndName(resident.job, there.spec->name), seen.gpu_type);
    }
    if (resident.job != job) {
      seen.others.push_back(demand);
      continue;
    }
    seen.job = demand;
    found = true;
  }
  if (found) return seen;
  return NotFound("job_id: expected a job on device %d of node %d, found %d", device, node, job);
}

absl::StatusOr<std::shared_ptr<const Workload>> WorkloadFromC(const horus_workload* given,
                                                              std::shared_ptr<const Catalogue>& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const horus_workload workload, ReadStruct(given));
  return At("workload", Convert(workload, catalogue));
}

absl::StatusOr<std::unique_ptr<horus_placer>> MakePlacer(const horus_placer_options* given,
                                                         std::shared_ptr<const LabPolicyOptions> lab) {
  HORUS_ASSIGN_OR_RETURN(const horus_placer_options options, ReadOptionalStruct(given));
  auto placer = std::make_unique<horus_placer>();
  HORUS_ASSIGN_OR_RETURN(auto model, ModelOf(options.interference));
  if (options.interference != nullptr) placer->catalogue = options.interference->catalogue;
  HORUS_ASSIGN_OR_RETURN(auto policy, options.policy_callback != nullptr
                                          ? PolicyByCallback(options, *placer)
                                          : PolicyByName(options, std::move(lab), *placer));
  HORUS_ASSIGN_OR_RETURN(const PlacerOptions limits, OptionsFromC(options));
  auto made = Placer::Create(std::move(model), std::move(policy), limits);
  if (absl::IsInvalidArgument(made.status())) {  // whose ranges are those of a placer, not of the struct
    return InvalidArgument("%s; 0 is the default, -1 none where the field has it",
                           std::string(made.status().message()));
  }
  HORUS_ASSIGN_OR_RETURN(placer->value, std::move(made));
  return placer;
}

absl::StatusOr<std::optional<std::span<const NodeId>>> SubsetFromC(size_t count, const uint64_t* node_ids) {
  HORUS_RETURN_IF_ERROR(RequireColumn(node_ids, "node_ids", count));
  if (node_ids == nullptr) return std::optional<std::span<const NodeId>>();
  return std::optional(std::span<const NodeId>(node_ids, count));
}

absl::StatusOr<std::unique_ptr<horus_plan>> PlanWith(horus_placer& placer, const horus_cluster& cluster,
                                                     CallerProgress& progress, const Planning& planning) {
  auto plan = std::make_unique<horus_plan>();
  plan->catalogue = cluster.value.shared_catalogue();
  const PlacerWork work = [&](Placer& with, const Cluster& on, const ReadFn& read) -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(plan->value, planning(with, on, read));
    return absl::OkStatus();
  };
  HORUS_RETURN_IF_ERROR(UsePlacer(placer, cluster, progress, work));
  // A copy: its log may take it off the placer.
  if (const std::shared_ptr<Telemetry> telemetry = placer.telemetry.get(); telemetry != nullptr)
    TellDecisions(*telemetry, plan->value);
  return plan;
}

absl::Status UsePlacer(horus_placer& placer, const horus_cluster& cluster, CallerProgress& progress,
                       const PlacerWork& work) {
  HORUS_ASSIGN_OR_RETURN(PlacerUse use, PlacerUse::Enter(placer, cluster));
  if (progress) placer.value->SetGoOn([&progress] { return progress.Ask(); });
  const absl::Cleanup unasked = [&placer] {
    placer.value->SetGoOn(nullptr);
    TellJudgements(placer);
  };
  return work(*placer.value, cluster.value, [&use] { use.DoneReading(); });
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_placer_create(const horus_placer_options* options, horus_placer** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] { return Give(MakePlacer(options), out); });
}

void horus_placer_free(horus_placer* placer) { delete placer; }

horus_status horus_placer_plan(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                               const horus_job* const* jobs, size_t node_count, const uint64_t* node_ids,
                               horus_progress progress, void* user, horus_plan** out, horus_error* error) {
  return GuardMetered(placer, Call::kPlan, error, {{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const auto subset, SubsetFromC(node_count, node_ids));
    CallerProgress told(progress, user);
    HORUS_ASSIGN_OR_RETURN(
        auto plan, PlanWith(*placer, *cluster, told, [&](auto& with, auto& on, auto& read) -> absl::StatusOr<Plan> {
          HORUS_ASSIGN_OR_RETURN(const auto specs, JobsFromC(on.catalogue(), job_count, jobs, with.options().max_jobs));
          return with.MakePlan(on, specs, subset, told.Shares(), read);
        }));
    return Give(plan.release(), out);
  });
}

horus_status horus_placer_verdicts(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                   size_t node_count, const uint64_t* node_ids, int32_t* verdicts, double* costs,
                                   int32_t* reasons, horus_error* error) {
  return GuardMetered(placer, Call::kVerdicts, error, {{placer, "placer"}, {cluster, "cluster"}}, [&] {
    HORUS_RETURN_IF_ERROR(RequireColumn(node_ids, "node_ids", node_count));
    CallerProgress untold(nullptr, nullptr);
    return UsePlacer(*placer, *cluster, untold, [&](auto& with, auto& on, auto& read) -> absl::Status {
      HORUS_ASSIGN_OR_RETURN(const JobSpec spec, JobFromC(on.catalogue(), job));
      HORUS_ASSIGN_OR_RETURN(const NodeVerdicts answer, with.Verdicts(on, spec, std::span(node_ids, node_count), read));
      for (size_t i = 0; i < node_count; ++i) {
        Put(verdicts, i, answer.verdict[i]);
        Put(costs, i, answer.cost[i]);
        Put(reasons, i, answer.reason[i]);
      }
      return absl::OkStatus();
    });
  });
}

void horus_plan_free(horus_plan* plan) { delete plan; }

horus_status horus_plan_get(const horus_plan* plan, size_t index, horus_decision* decision, horus_error* error) {
  return Guard(error, [&] {
    HORUS_ASSIGN_OR_RETURN(const Decision* found, DecisionAt(plan, index));
    HORUS_RETURN_IF_ERROR(CheckOutput(decision));
    horus_decision value = DecisionToC(*found);
    value.text = TextOf(*plan, index);
    WriteStruct(value, decision);
    return absl::OkStatus();
  });
}

horus_status horus_plan_slots(const horus_plan* plan, int32_t of, size_t index, const horus_slots* slots, size_t* count,
                              horus_error* error) {
  return Guard(error, [&] {
    HORUS_ASSIGN_OR_RETURN(const Slots* found, SlotsAt(plan, of, index));
    return WriteSlots(*found, slots, count);
  });
}

horus_status horus_plan_effects(const horus_plan* plan, size_t index, const horus_effects* effects, size_t* count,
                                horus_error* error) {
  return Guard(error, [&] {
    HORUS_ASSIGN_OR_RETURN(const Decision* decision, DecisionAt(plan, index));
    return WriteEffects(decision->effects, effects, count);
  });
}

horus_status horus_plan_terms(const horus_plan* plan, size_t index, size_t capacity, const char** names, double* costs,
                              size_t* count, horus_error* error) {
  return Guard(error, [&] {
    HORUS_ASSIGN_OR_RETURN(const Decision* decision, DecisionAt(plan, index));
    HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
    const CostTerms& terms = decision->winner.terms;
    return WriteRows(terms.size(), capacity, count, [&](size_t i) {
      Put(names, i, terms[i].name.data());  // literals: ended by NUL
      Put(costs, i, terms[i].value);
    });
  });
}

horus_status horus_plan_refusals(const horus_plan* plan, size_t index, size_t capacity, int32_t* reasons,
                                 uint64_t* counts, size_t* count, horus_error* error) {
  return Guard(error, [&] {
    HORUS_ASSIGN_OR_RETURN(const Decision* decision, DecisionAt(plan, index));
    HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
    return WriteRefusals(decision->refused_devices, capacity, reasons, counts, count);
  });
}

// The texts are literals, so data() is ended by NUL.
const char* horus_reason_name(int32_t reason) { return ReasonName(static_cast<Reason>(reason)).data(); }

const char* horus_reason_text(int32_t reason) { return ReasonText(static_cast<Reason>(reason)).data(); }
