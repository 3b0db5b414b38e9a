// SPDX-License-Identifier: Apache-2.0
// Plans: decisions and why, moves, preemptions, columns over all decisions.
#include "plan.h"

#include <limits>

#include "columns.h"

namespace horus_python {

const Word kVerdicts[] = {
    {HORUS_VERDICT_PLACE, "place"}, {HORUS_VERDICT_DEFER, "defer"}, {HORUS_VERDICT_REJECT, "reject"}, {0, nullptr}};

namespace {

const Word kMoves[] = {
    {HORUS_MOVE_RESIZE, "resize"}, {HORUS_MOVE_MIGRATE, "migrate"}, {HORUS_MOVE_PREEMPT, "preempt"}, {0, nullptr}};
const Word kAdvices[] = {
    {HORUS_ADVICE_STAY, "stay"}, {HORUS_ADVICE_MOVE, "move"}, {HORUS_ADVICE_RUN_ALONE, "run-alone"}, {0, nullptr}};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Effect {
  static constexpr const char* kName = "Effect";
  uint64_t job = 0, node = 0;
  uint32_t device = 0;
  float slowdown_before = 1, slowdown_after = 1, slowdown_after_upper = 1;
  float calibrated_up_to = 0;
};

struct Miss {
  static constexpr const char* kName = "Miss";
  std::string reason = {};
  uint64_t node = 0;
  uint32_t device = 0;
  double needed = 0, available = 0;
  std::string unit = {};
  double estimate = 0;
};

struct Decision {
  static constexpr const char* kName = "Decision";
  uint64_t job = 0;
  int32_t verdict = HORUS_VERDICT_REJECT;
  std::string reason = {}, text = {};
  float slowdown = 0, slowdown_upper = 0;
  double cost = 0, runner_up_cost = kNone;
  std::vector<Slot> slots = {};
  std::vector<Effect> effects = {};
  std::vector<std::pair<std::string, double>> terms = {};
  std::vector<std::pair<std::string, uint64_t>> refusals = {};
  std::optional<Miss> miss = std::nullopt;
  bool probe = false, trial = false;
  int32_t alternative = -1;
  int64_t cpu_milli = 0, mem_mib = 0;
  bool predicted_never = false;
};

struct Move {
  static constexpr const char* kName = "Move";
  int32_t kind = HORUS_MOVE_MIGRATE;
  uint64_t job = 0;
  double gain = 0, cost = 0;
  std::vector<Slot> before = {}, after = {};
  int64_t cpu_milli_before = 0, cpu_milli = 0, mem_mib_before = 0, mem_mib = 0;
};

struct Preemption {
  static constexpr const char* kName = "Preemption";
  uint64_t node = 0;
  double loss = 0;
  bool exact = false;
  std::vector<uint64_t> victims = {};
  std::vector<double> losses = {};
  std::vector<Slot> slots = {};
};

struct TenantReview {
  static constexpr const char* kName = "TenantReview";
  int32_t advice = HORUS_ADVICE_STAY;
  uint64_t job = 0, node = 0;
  uint32_t device = 0;
  bool broken = false;
  float slowdown = 1, slowdown_upper = 1;
  double held = 1, bound = 0, pack_work = 0;
  bool trial = false;
};

}  // namespace

template <>
struct Arg<Effect> : ValueArg<Effect> {};
template <>
struct Arg<Miss> : ValueArg<Miss> {};
template <>
struct Arg<Decision> : ValueArg<Decision> {};
template <>
struct Arg<Move> : ValueArg<Move> {};
template <>
struct Arg<Preemption> : ValueArg<Preemption> {};
template <>
struct Arg<TenantReview> : ValueArg<TenantReview> {};

namespace {

std::string ReasonName(int32_t reason) { return reason == HORUS_REASON_NONE ? "" : horus_reason_name(reason); }

// `read` fills columns with that many slots.
template <typename Read>
std::vector<Slot> ReadSlots(size_t count, const Read& read) {
  SlotColumns columns(count);
  const horus_slots c = columns.ToC();
  Run([&](horus_error* error) { return read(&c, &count, error); });
  return columns.Rows(count);
}

std::vector<Effect> ReadEffects(const PlanHandle& plan, size_t index, size_t count) {
  std::vector<uint64_t> jobs(count), nodes(count);
  std::vector<uint32_t> devices(count);
  std::vector<float> before(count), after(count), upper(count), calibrated(count);
  const horus_effects c = {sizeof(horus_effects),
                           0,
                           count,
                           jobs.data(),
                           nodes.data(),
                           devices.data(),
                           before.data(),
                           after.data(),
                           upper.data(),
                           calibrated.data()};
  Run([&](horus_error* error) { return horus_plan_effects(plan.get(), index, &c, &count, error); });
  std::vector<Effect> effects;
  for (size_t i = 0; i < count; ++i) {
    effects.push_back({jobs[i], nodes[i], devices[i], before[i], after[i], upper[i], calibrated[i]});
  }
  return effects;
}

void ReadTerms(const PlanHandle& plan, size_t index, size_t count, Decision& decision) {
  std::vector<const char*> names(count);
  std::vector<double> costs(count);
  Run([&](horus_error* error) {
    return horus_plan_terms(plan.get(), index, count, names.data(), costs.data(), &count, error);
  });
  for (size_t i = 0; i < count; ++i) decision.terms.emplace_back(names[i], costs[i]);
}

void ReadRefusals(const PlanHandle& plan, size_t index, Decision& decision) {
  size_t count = horus::detail::CountOf([&](size_t* needed, horus_error* error) {
    return horus_plan_refusals(plan.get(), index, 0, nullptr, nullptr, needed, error);
  });
  std::vector<int32_t> reasons(count);
  std::vector<uint64_t> counts(count);
  Run([&](horus_error* error) {
    return horus_plan_refusals(plan.get(), index, count, reasons.data(), counts.data(), &count, error);
  });
  for (size_t i = 0; i < count; ++i) decision.refusals.emplace_back(ReasonName(reasons[i]), counts[i]);
}

horus_decision Get(const PlanHandle& plan, size_t index) {
  horus_decision c = HORUS_DECISION_INIT;
  Run([&](horus_error* error) { return horus_plan_get(plan.get(), index, &c, error); });
  return c;
}

Decision At(const PlanHandle& plan, size_t index) {
  const horus_decision c = Get(plan, index);
  Decision decision;
  decision.job = c.job_id;
  decision.verdict = c.verdict;
  decision.reason = ReasonName(c.reason);
  decision.text = c.text;
  decision.slowdown = c.slowdown;
  decision.slowdown_upper = c.slowdown_upper;
  decision.cost = c.cost;
  decision.runner_up_cost = c.runner_up_cost;
  decision.probe = c.probe == 1;
  decision.trial = c.trial == 1;
  decision.alternative = c.alternative;
  decision.predicted_never = c.predicted_never == 1;
  decision.cpu_milli = c.cpu_milli;
  decision.mem_mib = c.mem_mib;
  if (c.miss_reason != HORUS_REASON_NONE) {
    decision.miss = Miss{ReasonName(c.miss_reason),
                         c.miss_node,
                         c.miss_device,
                         c.miss_needed,
                         c.miss_available,
                         c.miss_unit == nullptr ? "" : c.miss_unit,
                         c.miss_estimate};
  }
  decision.slots = ReadSlots(c.slots, [&](const horus_slots* columns, size_t* count, horus_error* error) {
    return horus_plan_slots(plan.get(), index, columns, count, error);
  });
  decision.effects = ReadEffects(plan, index, c.effects);
  ReadTerms(plan, index, c.terms, decision);
  ReadRefusals(plan, index, decision);
  return decision;
}

Move MoveAt(const PlanHandle& plan, size_t index) {
  horus_move c = HORUS_MOVE_INIT;
  Run([&](horus_error* error) { return horus_plan_get_move(plan.get(), index, &c, error); });
  const auto slots = [&](int32_t to, size_t rows) {
    return ReadSlots(rows, [&](const horus_slots* columns, size_t* count, horus_error* error) {
      return horus_plan_move_slots(plan.get(), index, to, columns, count, error);
    });
  };
  return {
      c.kind,      c.job_id,         c.gain,   c.cost, slots(0, c.from_slots), slots(1, c.to_slots), c.cpu_milli_before,
      c.cpu_milli, c.mem_mib_before, c.mem_mib};
}

Preemption PreemptionAt(const PlanHandle& plan, size_t index) {
  horus_preemption c = HORUS_PREEMPTION_INIT;
  Run([&](horus_error* error) { return horus_plan_get_preemption(plan.get(), index, &c, error); });
  Preemption one = {c.node_id, c.loss, c.exact == 1, std::vector<uint64_t>(c.victims), std::vector<double>(c.victims),
                    {}};
  size_t count = 0;
  Run([&](horus_error* error) {
    return horus_plan_preemption_victims(plan.get(), index, one.victims.size(), one.victims.data(), one.losses.data(),
                                         &count, error);
  });
  one.slots = ReadSlots(c.slots, [&](const horus_slots* columns, size_t* rows, horus_error* error) {
    return horus_plan_preemption_slots(plan.get(), index, columns, rows, error);
  });
  return one;
}

// One row a decision; the node and device are those of the first slot.
py::dict Columns(const PlanHandle& plan) {
  const size_t rows = horus_plan_count(plan.get());
  std::vector<uint64_t> jobs(rows), nodes(rows);
  std::vector<int32_t> verdicts(rows), reasons(rows), alternatives(rows);
  std::vector<uint32_t> slots(rows), devices(rows, std::numeric_limits<uint32_t>::max());
  std::vector<float> slowdown(rows), upper(rows);
  std::vector<double> cost(rows), next(rows);
  Run([&](horus_error* error) {
    for (size_t i = 0; i < rows; ++i) {
      horus_decision c = HORUS_DECISION_INIT;
      horus_status status = horus_plan_get(plan.get(), i, &c, error);
      if (status != HORUS_OK) return status;
      jobs[i] = c.job_id;
      verdicts[i] = c.verdict;
      reasons[i] = c.reason;
      alternatives[i] = c.alternative;
      slots[i] = c.slots;
      slowdown[i] = c.slowdown;
      upper[i] = c.slowdown_upper;
      cost[i] = c.verdict == HORUS_VERDICT_PLACE ? c.cost : kNone;
      next[i] = c.runner_up_cost;
      if (c.slots == 0) continue;
      SlotColumns columns(c.slots);
      const horus_slots out = columns.ToC();
      size_t count = 0;
      status = horus_plan_slots(plan.get(), i, &out, &count, error);
      if (status != HORUS_OK) return status;
      nodes[i] = columns.nodes[0];
      devices[i] = columns.devices[0];
    }
    return horus_status{HORUS_OK};
  });
  py::dict out;
  out["job"] = ToArray(jobs);
  out["verdict"] = ToArray(verdicts);
  out["reason"] = ToArray(reasons);
  out["node"] = ToArray(nodes);
  out["device"] = ToArray(devices);
  out["slots"] = ToArray(slots);
  out["slowdown"] = ToArray(slowdown);
  out["slowdown_upper"] = ToArray(upper);
  out["cost"] = ToArray(cost);
  out["runner_up_cost"] = ToArray(next);
  out["alternative"] = ToArray(alternatives);
  return out;
}

TenantReview ReviewAt(const PlanHandle& plan, size_t index) {
  horus_tenant_review c = HORUS_TENANT_REVIEW_INIT;
  Run([&](horus_error* error) { return horus_plan_get_review(plan.get(), index, &c, error); });
  return {c.advice,         c.job_id, c.node_id, c.device,    c.broken == 1, c.slowdown,
          c.slowdown_upper, c.held,   c.bound,   c.pack_work, c.trial == 1};
}

py::tuple Work(const PlanHandle& plan) {
  double before = 0, after = 0;
  Run([&](horus_error* error) { return horus_plan_work(plan.get(), &before, &after, error); });
  return py::make_tuple(before, after);
}

// Into a cluster; applying waits for plans over it.
void Apply(const PlanHandle& plan, const ClusterHandle& cluster) {
  Run([&](horus_error* error) {
    return cluster.Read(error, [&](horus_error* e) { return horus_cluster_apply(cluster.get(), plan.get(), e); });
  });
}

void BindDecision(py::module_& m) {
  Record<Effect>(m, "What a decision does to one tenant of one device that it uses; the job itself included.")
      .Field("job", &Effect::job, "job id")
      .Field("node", &Effect::node, "node id")
      .Field("device", &Effect::device, "index within the node")
      .Field("slowdown_before", &Effect::slowdown_before, "1 for the job itself")
      .Field("slowdown_after", &Effect::slowdown_after, "estimate")
      .Field("slowdown_after_upper", &Effect::slowdown_after_upper, "its bound")
      .Field("calibrated_up_to", &Effect::calibrated_up_to, "probability up to which what was left out vouches for it");
  Record<Miss>(m, "The nearest miss of a refusal.")
      .Field("reason", &Miss::reason, "constraint")
      .Field("node", &Miss::node, "node id")
      .Field("device", &Miss::device, "index within the node; 2^32 - 1 = the node as a whole")
      .Field("needed", &Miss::needed, "in the unit")
      .Field("available", &Miss::available, "in the unit")
      .Field("unit", &Miss::unit, "such as MiB")
      .Field("estimate", &Miss::estimate, "expected, where the predicted amount above is an upper bound; else 0");
  Record<Decision>(
      m,
      "What was decided for one job. A refusal is a decision too: verdict defer (not now) or reject (never "
      "on this cluster), with its reason.")
      .Field("job", &Decision::job, "job id")
      .OneOf("verdict", &Decision::verdict, kVerdicts, "place, defer or reject")
      .Field("reason", &Decision::reason, "constraint that refused most devices; '' when placed")
      .Field("text", &Decision::text, "one sentence for people")
      .Field("slowdown", &Decision::slowdown, "predicted for the job, worst over its devices; 0 when not placed")
      .Field("slowdown_upper", &Decision::slowdown_upper, "its bound")
      .Field("cost", &Decision::cost, "of the place chosen, lower is better")
      .Field("runner_up_cost", &Decision::runner_up_cost, "of the next best place; NaN when there is none")
      .Field("slots", &Decision::slots, "where it goes")
      .Field("effects", &Decision::effects, "on everyone on those devices")
      .Field("terms", &Decision::terms, "parts of the cost, which sum to it")
      .Field("refusals", &Decision::refusals, "devices refused by each constraint")
      .Field("miss", &Decision::miss, "nearest miss of a refusal")
      .Field("probe", &Decision::probe, "placed alone to be observed")
      .Field("trial", &Decision::trial, "shares where that pays by expectation, not by the upper bounds")
      .Field("alternative", &Decision::alternative, "way to run that was chosen; -1 = none are stated")
      .Field("cpu_milli", &Decision::cpu_milli, "that each task holds")
      .Field("mem_mib", &Decision::mem_mib, "that each task holds")
      .Field("predicted_never", &Decision::predicted_never,
             "deferred, though by a prediction the cluster cannot take it even empty");
}

void BindMoves(py::module_& m) {
  Record<Move>(m, "What a plan does to a resident.")
      .OneOf("kind", &Move::kind, kMoves, "resize, migrate or preempt")
      .Field("job", &Move::job, "job id")
      .Field("gain", &Move::gain, "in units of useful work")
      .Field("cost", &Move::cost, "of a migration: its downtime's work")
      .Field("before", &Move::before, "where it was")
      .Field("after", &Move::after, "where it goes")
      .Field("cpu_milli_before", &Move::cpu_milli_before, "of a resize, per task")
      .Field("cpu_milli", &Move::cpu_milli, "of a resize, per task")
      .Field("mem_mib_before", &Move::mem_mib_before, "of a resize, per task")
      .Field("mem_mib", &Move::mem_mib, "of a resize, per task");
  Record<TenantReview>(m, "A job that shares, on the device where it is slowest.")
      .OneOf("advice", &TenantReview::advice, kAdvices, "stay, move (the plan does) or run-alone")
      .Field("job", &TenantReview::job, "job id")
      .Field("node", &TenantReview::node, "node id")
      .Field("device", &TenantReview::device, "index within the node")
      .Field("broken", &TenantReview::broken, "whether `held` is beyond `bound`")
      .Field("slowdown", &TenantReview::slowdown, "expected")
      .Field("slowdown_upper", &TenantReview::slowdown_upper, "its upper bound")
      .Field("held", &TenantReview::held, "the slowdown not exceeded with the job's slowdown_confidence")
      .Field("bound", &TenantReview::bound, "its own or the placer's; inf = none")
      .Field("pack_work", &TenantReview::pack_work, "of all on that device; below 1 taking turns does more")
      .Field("trial", &TenantReview::trial, "whether by the upper bounds it is below 1");
  Record<Preemption>(m, "A place where a job would fit once its victims are gone.")
      .Field("node", &Preemption::node, "of the first slot")
      .Field("loss", &Preemption::loss, "of work, of all victims")
      .Field("exact", &Preemption::exact, "no set of victims that loses less makes room on this node")
      .Field("victims", &Preemption::victims, "job ids")
      .Field("losses", &Preemption::losses, "work that each loses")
      .Field("slots", &Preemption::slots, "where the job would go");
}

}  // namespace

void BindPlan(py::module_& m) {
  BindDecision(m);
  BindMoves(m);
  Class<PlanHandle>(m, "PlanHandle")
      .def(
          "__len__", [](const PlanHandle& p) { return horus_plan_count(p.get()); }, "__len__(self) -> int")
      .def("at", &At, py::arg("index"), "at(self, index: int) -> Decision")
      .def("columns", &Columns, "columns(self) -> dict[str, numpy.typing.NDArray[typing.Any]]")
      .def(
          "move_count", [](const PlanHandle& p) { return horus_plan_move_count(p.get()); }, "move_count(self) -> int")
      .def("move", &MoveAt, py::arg("index"), "move(self, index: int) -> Move")
      .def(
          "preemption_count", [](const PlanHandle& p) { return horus_plan_preemption_count(p.get()); },
          "preemption_count(self) -> int")
      .def(
          "review_count", [](const PlanHandle& p) { return horus_plan_review_count(p.get()); },
          "review_count(self) -> int")
      .def("review", &ReviewAt, py::arg("index"), "review(self, index: int) -> TenantReview")
      .def("preemption", &PreemptionAt, py::arg("index"), "preemption(self, index: int) -> Preemption")
      .def("work", &Work, "work(self) -> tuple[float, float]")
      .def("apply", &Apply, py::arg("cluster"), "apply(self, cluster: ClusterHandle) -> None")
      .def("bytes_held", [](const PlanHandle& p) { return horus_plan_bytes_held(p.get()); }, "bytes_held(self) -> int");
  m.def("reason_name", &horus_reason_name, py::arg("reason"), "reason_name(reason: int) -> str");
  m.def("reason_text", &horus_reason_text, py::arg("reason"), "reason_text(reason: int) -> str");
}

}  // namespace horus_python
