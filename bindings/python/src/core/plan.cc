// SPDX-License-Identifier: Apache-2.0
// Plans: decisions and why, moves, preemptions, columns over all decisions.
#include "plan.h"

#include <limits>

#include "columns.h"

namespace horus_python {

namespace {

const Word kVerdicts[] = {
    {HORUS_VERDICT_PLACE, "place"}, {HORUS_VERDICT_DEFER, "defer"}, {HORUS_VERDICT_REJECT, "reject"}, {0, nullptr}};
const Word kMoves[] = {
    {HORUS_MOVE_RESIZE, "resize"}, {HORUS_MOVE_MIGRATE, "migrate"}, {HORUS_MOVE_PREEMPT, "preempt"}, {0, nullptr}};
const Word kAdvices[] = {
    {HORUS_ADVICE_STAY, "stay"}, {HORUS_ADVICE_MOVE, "move"}, {HORUS_ADVICE_RUN_ALONE, "run-alone"}, {0, nullptr}};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Miss : horus::Miss {
  std::string reason_name = {};
};

struct Decision : horus::Decision {
  std::string reason_name = {};
  std::optional<Miss> nearest = std::nullopt;
  std::vector<std::pair<std::string, uint64_t>> refused = {};
};

std::string ReasonName(int32_t reason) { return reason == HORUS_REASON_NONE ? "" : horus_reason_name(reason); }

constexpr auto kCall = [](const auto& function) { Run(function); };

Decision At(const PlanHandle& plan, size_t index) {
  Decision decision = {horus::detail::ReadDecision(kCall, plan.get(), index)};
  decision.reason_name = ReasonName(decision.reason);
  if (decision.miss) decision.nearest = Miss{*decision.miss, ReasonName(decision.miss->reason)};
  for (const auto& [reason, count] : decision.refusals) decision.refused.emplace_back(ReasonName(reason), count);
  return decision;
}

horus_plan_info InfoOf(const PlanHandle& plan) {
  horus_plan_info info = HORUS_PLAN_INFO_INIT;
  Run([&](horus_error* error) { return horus_plan_get_info(plan.get(), &info, error); });
  return info;
}

// One row a decision; the node and device are those of the first slot.
py::dict Columns(const PlanHandle& plan) {
  const size_t rows = InfoOf(plan).decisions;
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
      horus::detail::CSlots columns(c.slots);
      const horus_slots out = columns.get();
      size_t count = 0;
      status = horus_plan_slots(plan.get(), HORUS_SLOTS_DECISION, i, &out, &count, error);
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

py::tuple Work(const PlanHandle& plan) {
  const horus_plan_info info = InfoOf(plan);
  return py::make_tuple(info.work_before, info.work_after);
}

// Into a cluster; applying waits for plans over it.
void Apply(const PlanHandle& plan, const ClusterHandle& cluster) {
  Run([&](horus_error* error) {
    return cluster.Read(error, [&](horus_error* e) { return horus_cluster_apply(cluster.get(), plan.get(), e); });
  });
}

void BindDecision(py::module_& m) {
  Record<horus::Effect>(m, "Effect",
                        "What a decision does to one tenant of one device that it uses; the job itself included.")
      .Field("job", &horus::Effect::job, "job id")
      .Field("node", &horus::Effect::node, "node id")
      .Field("device", &horus::Effect::device, "index within the node")
      .Field("slowdown_before", &horus::Effect::slowdown_before, "1 for the job itself")
      .Field("slowdown_after", &horus::Effect::slowdown_after, "estimate")
      .Field("slowdown_after_upper", &horus::Effect::slowdown_after_upper, "its bound")
      .Field("calibrated_up_to", &horus::Effect::calibrated_up_to,
             "probability up to which what was left out vouches for it");
  Record<Miss>(m, "Miss", "The nearest miss of a refusal.")
      .Field("reason", &Miss::reason_name, "constraint")
      .Field("node", &Miss::node, "node id")
      .Field("device", &Miss::device, "index within the node; 2^32 - 1 = the node as a whole")
      .Field("needed", &Miss::needed, "in the unit")
      .Field("available", &Miss::available, "in the unit")
      .Field("unit", &Miss::unit, "such as MiB")
      .Field("estimate", &Miss::estimate, "expected, where the predicted amount above is an upper bound; else 0");
  Record<Decision>(
      m, "Decision",
      "What was decided for one job. A refusal is a decision too: verdict defer (not now) or reject (never "
      "on this cluster), with its reason.")
      .Field("job", &Decision::job, "job id")
      .OneOf("verdict", &Decision::verdict, kVerdicts, "place, defer or reject")
      .Field("reason", &Decision::reason_name, "constraint that refused most devices; '' when placed")
      .Field("text", &Decision::text, "one sentence for people")
      .Field("slowdown", &Decision::slowdown, "predicted for the job, worst over its devices; 0 when not placed")
      .Field("slowdown_upper", &Decision::slowdown_upper, "its bound")
      .Field("slowdown_in_plan", &Decision::slowdown_in_plan,
             "once the whole plan is applied: later jobs may come beside it")
      .Field("slowdown_in_plan_upper", &Decision::slowdown_in_plan_upper, "its bound")
      .Field("passed_by", &Decision::passed_by, "of passed_over: job that took its place; 0 = nobody who can be named")
      .Field("cost", &Decision::cost, "of the place chosen, lower is better")
      .Field("runner_up_cost", &Decision::runner_up_cost, "of the next best place; NaN when there is none")
      .Field("slots", &Decision::slots, "where it goes")
      .Field("effects", &Decision::effects, "on everyone on those devices")
      .Field("terms", &Decision::terms, "parts of the cost, which sum to it")
      .Field("refusals", &Decision::refused, "devices refused by each constraint")
      .Field("miss", &Decision::nearest, "nearest miss of a refusal")
      .Field("probe", &Decision::probe, "placed alone to be observed")
      .Field("trial", &Decision::trial, "shares where that pays by expectation, not by the upper bounds")
      .Field("alternative", &Decision::alternative, "way to run that was chosen; -1 = none are stated")
      .Field("cpu_milli", &Decision::cpu_milli, "that each task holds")
      .Field("mem_mib", &Decision::mem_mib, "that each task holds")
      .Field("gpu_mem_request_mib", &Decision::gpu_mem_request_mib, "device memory per GPU that it is granted there")
      .Field("gpu_mem_limit_mib", &Decision::gpu_mem_limit_mib,
             "that it may ever hold there; 2**32 = no limit is known")
      .OneOf("sharing_mode", &Decision::sharing_mode, kSharingModes, "of its devices; default = not placed, or no GPU")
      .Field("sm_cap_slowdown", &Decision::sm_cap_slowdown, "by that cap alone, which slowdown does not count")
      .Field("sm_cap_pct", &Decision::sm_cap_pct, "most of a GPU's SMs that the job may use there; 0 = no cap")
      .Field("predicted_never", &Decision::predicted_never,
             "deferred, though by a prediction the cluster cannot take it even empty");
}

void BindMoves(py::module_& m) {
  Record<horus::Move>(m, "Move", "What a plan does to a resident.")
      .OneOf("kind", &horus::Move::kind, kMoves, "resize, migrate or preempt")
      .Field("job", &horus::Move::job, "job id")
      .Field("gain", &horus::Move::gain, "in units of useful work")
      .Field("cost", &horus::Move::cost, "of a migration: its downtime's work")
      .Field("before", &horus::Move::from, "where it was")
      .Field("after", &horus::Move::to, "where it goes")
      .Field("cpu_milli_before", &horus::Move::cpu_milli_before, "of a resize, per task")
      .Field("cpu_milli", &horus::Move::cpu_milli, "of a resize, per task")
      .Field("mem_mib_before", &horus::Move::mem_mib_before, "of a resize, per task")
      .Field("mem_mib", &horus::Move::mem_mib, "of a resize, per task");
  Record<horus::TenantReview>(m, "TenantReview", "A job that shares, on the device where it is slowest.")
      .OneOf("advice", &horus::TenantReview::advice, kAdvices, "stay, move (the plan does) or run-alone")
      .Field("job", &horus::TenantReview::job, "job id")
      .Field("node", &horus::TenantReview::node, "node id")
      .Field("device", &horus::TenantReview::device, "index within the node")
      .Field("broken", &horus::TenantReview::broken, "whether `held` is beyond `bound`")
      .Field("slowdown", &horus::TenantReview::slowdown, "expected")
      .Field("slowdown_upper", &horus::TenantReview::slowdown_upper, "its upper bound")
      .Field("held", &horus::TenantReview::held, "the slowdown not exceeded with the job's slowdown_confidence")
      .Field("bound", &horus::TenantReview::bound, "its own or the placer's; inf = none")
      .Field("pack_work", &horus::TenantReview::pack_work, "of all on that device; below 1 taking turns does more")
      .Field("trial", &horus::TenantReview::trial, "whether by the upper bounds it is below 1");
  Record<horus::Preemption>(m, "Preemption", "A place where a job would fit once its victims are gone.")
      .Field("node", &horus::Preemption::node, "of the first slot")
      .Field("loss", &horus::Preemption::loss, "of work, of all victims")
      .Field("exact", &horus::Preemption::exact, "no set of victims that loses less makes room on this node")
      .Field("victims", &horus::Preemption::victims, "job ids")
      .Field("losses", &horus::Preemption::losses, "work that each loses")
      .Field("slots", &horus::Preemption::slots, "where the job would go");
}

}  // namespace

void BindPlan(py::module_& m) {
  BindDecision(m);
  BindMoves(m);
  Class<PlanHandle>(m, "PlanHandle")
      .def(
          "__len__", [](const PlanHandle& p) { return InfoOf(p).decisions; }, "__len__(self) -> int")
      .def("at", &At, py::arg("index"), "at(self, index: int) -> Decision")
      .def("columns", &Columns, "columns(self) -> dict[str, numpy.typing.NDArray[typing.Any]]")
      .def(
          "move_count", [](const PlanHandle& p) { return InfoOf(p).moves; }, "move_count(self) -> int")
      .def(
          "move", [](const PlanHandle& p, size_t index) { return horus::detail::ReadMove(kCall, p.get(), index); },
          py::arg("index"), "move(self, index: int) -> Move")
      .def(
          "preemption_count", [](const PlanHandle& p) { return InfoOf(p).preemptions; },
          "preemption_count(self) -> int")
      .def(
          "review_count", [](const PlanHandle& p) { return InfoOf(p).reviews; }, "review_count(self) -> int")
      .def(
          "review", [](const PlanHandle& p, size_t index) { return horus::detail::ReadReview(kCall, p.get(), index); },
          py::arg("index"), "review(self, index: int) -> TenantReview")
      .def(
          "preemption",
          [](const PlanHandle& p, size_t index) { return horus::detail::ReadPreemption(kCall, p.get(), index); },
          py::arg("index"), "preemption(self, index: int) -> Preemption")
      .def("work", &Work, "work(self) -> tuple[float, float]")
      .def("apply", &Apply, py::arg("cluster"), "apply(self, cluster: ClusterHandle) -> None")
      .def("bytes_held", [](const PlanHandle& p) { return horus_plan_bytes_held(p.get()); }, "bytes_held(self) -> int");
  m.def("reason_name", &horus_reason_name, py::arg("reason"), "reason_name(reason: int) -> str");
  m.def("reason_text", &horus_reason_text, py::arg("reason"), "reason_text(reason: int) -> str");
}

}  // namespace horus_python
