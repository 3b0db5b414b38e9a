// SPDX-License-Identifier: Apache-2.0
// Placers: plans one by one and together, rebalancing, preemption, what-ifs, verdicts per node.
#include "placer.h"

#include <limits>
#include <memory>

#include "columns.h"

namespace horus_python {
namespace {

struct PlacerOptions : horus::PlacerOptions, horus::LabPolicyOptions {
  std::optional<Workload> workload_of = std::nullopt;
};

std::unique_ptr<PlacerHandle> Create(const PlacerOptions& given, const InterferenceHandle* interference,
                                     const py::object& callable, const CatalogueHandle* catalogue) {
  horus_placer_options options = horus::detail::ToC(static_cast<const horus::PlacerOptions&>(given));
  const horus_lab_policy_options lab = horus::detail::ToC(static_cast<const horus::LabPolicyOptions&>(given));
  std::optional<CWorkload> workload;
  if (given.workload_of) options.workload = workload.emplace(*given.workload_of, Of(catalogue)).get();
  std::vector<py::object> keeps;
  if (interference != nullptr) keeps = interference->keeps();
  options.interference = interference == nullptr ? nullptr : interference->get();
  if (!callable.is_none()) {
    options.policy_callback_name = std::exchange(options.policy, nullptr);
    options.policy_callback = &PricePython;
    options.policy_user = callable.ptr();
    options.policy_catalogue = Of(catalogue);
    keeps.push_back(callable);
  }
  return Make<PlacerHandle, horus_placer>(
      [&](horus_placer** out, horus_error* error) { return horus_lab_placer_create(&options, &lab, out, error); },
      std::move(keeps));
}

using Plan = std::unique_ptr<PlanHandle>;

template <typename Function>
Plan MakePlan(const PlacerHandle& placer, const ClusterHandle& cluster, const Function& function) {
  return Make<PlanHandle, horus_plan>([&](horus_plan** out, horus_error* error) {
    return ReadBoth(placer, cluster, error, [&](horus_error* e) { return function(out, e); });
  });
}

Plan Place(const PlacerHandle& placer, const ClusterHandle& cluster, const py::tuple& jobs, const py::object& nodes,
           const py::object& progress) {
  const std::vector<const horus_job*> pointers = JobPointers(jobs, "jobs");
  const IdColumn only(nodes);
  Progress tell(progress);
  return MakePlan(placer, cluster, [&](horus_plan** out, horus_error* error) {
    return horus_placer_plan(placer.get(), cluster.get(), pointers.size(), pointers.data(), only.size, only.data,
                             &Progress::Tell, &tell, out, error);
  });
}

// One job: what a scheduler asks most often.
Plan PlaceOne(const PlacerHandle& placer, const ClusterHandle& cluster, const Job& job, const py::object& nodes) {
  const horus_job* c = job.get();
  const IdColumn only(nodes);
  Progress tell{py::none()};
  return MakePlan(placer, cluster, [&](horus_plan** out, horus_error* error) {
    return horus_placer_plan(placer.get(), cluster.get(), 1, &c, only.size, only.data, &Progress::Tell, &tell, out,
                             error);
  });
}

Plan PlaceBatch(const PlacerHandle& placer, const ClusterHandle& cluster, const py::tuple& jobs,
                const py::object& nodes, uint32_t window, int64_t now_us, int64_t patience_us, bool prices,
                uint32_t max_rounds, uint32_t restarts, uint64_t max_evaluations, const py::object& progress) {
  const std::vector<const horus_job*> pointers = JobPointers(jobs, "jobs");
  const IdColumn only(nodes);
  const horus_batch_options options = {sizeof(horus_batch_options),
                                       max_rounds,
                                       restarts,
                                       window,
                                       max_evaluations,
                                       now_us,
                                       patience_us,
                                       prices ? 0 : -1,
                                       0};
  Progress tell(progress);
  return MakePlan(placer, cluster, [&](horus_plan** out, horus_error* error) {
    return horus_placer_plan_batch(placer.get(), cluster.get(), pointers.size(), pointers.data(), only.size, only.data,
                                   &options, &Progress::Tell, &tell, out, error);
  });
}

Plan Rebalance(const PlacerHandle& placer, const ClusterHandle& cluster, const py::object& jobs,
               uint32_t max_migrations, double downtime_s, double horizon_s, double min_gain, uint64_t max_searches,
               const py::object& progress) {
  const IdColumn only(jobs);
  Progress tell(progress);
  const horus_rebalance_options options = {sizeof(horus_rebalance_options),
                                           max_migrations,
                                           downtime_s,
                                           horizon_s,
                                           min_gain,
                                           max_searches,
                                           only.size,
                                           only.data,
                                           &Progress::Tell,
                                           &tell};
  return MakePlan(placer, cluster, [&](horus_plan** out, horus_error* error) {
    return horus_placer_rebalance(placer.get(), cluster.get(), &options, out, error);
  });
}

Plan Evacuate(const PlacerHandle& placer, const ClusterHandle& cluster, const py::object& nodes,
              const py::object& progress) {
  const IdColumn left(nodes);
  Progress tell(progress);
  return MakePlan(placer, cluster, [&](horus_plan** out, horus_error* error) {
    return horus_placer_evacuate(placer.get(), cluster.get(), left.size, left.data, &Progress::Tell, &tell, out, error);
  });
}

Plan Review(const PlacerHandle& placer, const ClusterHandle& cluster, uint32_t max_migrations, double downtime_s,
            double horizon_s, double min_gain, uint64_t max_searches) {
  horus_rebalance_options options = HORUS_REBALANCE_OPTIONS_INIT;
  options.max_migrations = max_migrations;
  options.downtime_s = downtime_s;
  options.horizon_s = horizon_s;
  options.min_gain = min_gain;
  options.max_searches = max_searches;
  return MakePlan(placer, cluster, [&](horus_plan** out, horus_error* error) {
    return horus_placer_review(placer.get(), cluster.get(), &options, out, error);
  });
}

py::dict Appraise(const PlacerHandle& placer, const ClusterHandle& cluster, const Job& job, const py::sequence& slots) {
  const horus::detail::CSlots c(Arg<std::vector<Slot>>::From(slots, "slots"));
  const horus_job* cjob = job.get();
  horus_appraisal found = HORUS_APPRAISAL_INIT;
  Run([&](horus_error* error) {
    return cluster.Read(error, [&](horus_error* e) {
      return horus_placer_appraise(placer.get(), cluster.get(), cjob, c.nodes.size(), c.nodes.data(), c.devices.data(),
                                   c.tasks.data(), &found, e);
    });
  });
  py::dict out;
  out["reason"] = found.reason == HORUS_REASON_NONE ? "" : horus_reason_name(found.reason);
  out["work"] = found.work;
  out["slowdown"] = found.slowdown;
  out["slowdown_upper"] = found.slowdown_upper;
  out["tenants"] = found.tenants;
  out["shared"] = found.shared;
  out["beyond_bound"] = found.beyond_bound;
  return out;
}

Plan Preempt(const PlacerHandle& placer, const ClusterHandle& cluster, const Job& job, const py::object& nodes,
             uint32_t max_candidates, uint64_t max_checks) {
  const horus_job* c = job.get();
  const IdColumn only(nodes);
  Progress tell{py::none()};
  const horus_preempt_options options = {sizeof(horus_preempt_options), max_candidates, max_checks, &Progress::Tell,
                                         &tell};
  return MakePlan(placer, cluster, [&](horus_plan** out, horus_error* error) {
    return horus_placer_preempt(placer.get(), cluster.get(), c, only.size, only.data, &options, out, error);
  });
}

const Word kHostGrants[] = {{HORUS_HOST_GRANTS_RESIZE, "resize"},
                            {HORUS_HOST_GRANTS_PLACEMENT, "placement"},
                            {HORUS_HOST_GRANTS_STATED, "stated"},
                            {0, nullptr}};
const Word kChanges[] = {{HORUS_CHANGE_RELEASE, "release"},           {HORUS_CHANGE_NODE_STATE, "node-state"},
                         {HORUS_CHANGE_DEVICE_STATE, "device-state"}, {HORUS_CHANGE_PLACE, "place"},
                         {HORUS_CHANGE_MIGRATE, "migrate"},           {0, nullptr}};

struct Change : horus::Change {
  std::optional<Job> planned = std::nullopt;  // in the place of spec
};

Plan WhatIf(const PlacerHandle& placer, const ClusterHandle& cluster, const py::tuple& changes, const py::tuple& jobs,
            const py::object& progress) {
  std::vector<std::unique_ptr<horus::detail::CChange>> owned;
  std::vector<horus_change> supposed;
  for (const Change* change : PointersOf<Change>(changes, "changes")) {
    owned.push_back(std::make_unique<horus::detail::CChange>(*change));
    supposed.push_back(*owned.back()->get());
    if (change->planned) supposed.back().job = change->planned->get();
  }
  std::vector<const horus_change*> changed;
  for (const horus_change& change : supposed) changed.push_back(&change);
  const std::vector<const horus_job*> pointers = JobPointers(jobs, "jobs");
  Progress tell(progress);
  return MakePlan(placer, cluster, [&](horus_plan** out, horus_error* error) {
    return horus_placer_what_if(placer.get(), cluster.get(), changed.size(), changed.data(), pointers.size(),
                                pointers.data(), &Progress::Tell, &tell, out, error);
  });
}

// Verdict, cost and reason of each node.
py::dict Verdicts(const PlacerHandle& placer, const ClusterHandle& cluster, const Job& job, const py::object& nodes) {
  const horus_job* c = job.get();
  const auto ids = Column<uint64_t>(nodes, "nodes");
  const auto count = static_cast<size_t>(ids.size());
  const uint64_t* data = ids.data();
  std::vector<int32_t> verdicts(count), reasons(count);
  std::vector<double> costs(count);
  Run([&](horus_error* error) {
    return ReadBoth(placer, cluster, error, [&](horus_error* e) {
      return horus_placer_verdicts(placer.get(), cluster.get(), c, count, data, verdicts.data(), costs.data(),
                                   reasons.data(), e);
    });
  });
  py::dict out;
  out["node"] = ids;
  out["verdict"] = ToArray(verdicts);
  out["cost"] = ToArray(costs);
  out["reason"] = ToArray(reasons);
  return out;
}

void BindOptions(py::module_& m) {
  Record<Workload>(m, "Workload",
                   "What a cluster typically has to run: columns of tasks with their shares, or jobs that were seen.")
      .Field("cpu_milli", &Workload::cpu_milli, "of each task; empty = 0")
      .Field("gpus", &Workload::gpus, "of each task; 0 = none")
      .Field("gpu_milli", &Workload::gpu_milli, "per GPU, 1 to 1,000; empty = whole GPUs")
      .Field("gpu_types", &Workload::gpu_types, "the type that it must have; '' = any; empty = any for all")
      .Field("shares", &Workload::shares, "of all tasks; they sum to 1")
      .Field("jobs", &Workload::jobs, "that were seen, instead of tasks");
  Record<PlacerOptions>(m, "PlacerOptions", "Options of a placer; see horus.Placer.")
      .Field("policy", &PlacerOptions::policy, "name of the policy")
      .Field("max_tenants", &PlacerOptions::max_tenants,
             "per device that states none, light jobs counting less; 0 = 3, 1 = none shares")
      .Field("seed", &PlacerOptions::seed, "of random policies")
      .Field("slowdown_bound", &PlacerOptions::slowdown_bound, "for jobs without their own; 0 = the policy's default")
      .Field("probe_outside", &PlacerOptions::probe_outside, "jobs unlike the training data run alone first")
      .Field("mem_headroom_mib", &PlacerOptions::mem_headroom_mib, "device memory to keep free; 0 = 500, -1 = none")
      .Field("max_jobs", &PlacerOptions::max_jobs, "of one plan; 0 = 1,048,576")
      .Field("cache_bytes", &PlacerOptions::cache_bytes, "of what was scored before, at most; 0 = 256 MiB")
      .Field("rack_oversubscription", &PlacerOptions::rack_oversubscription, "of links between racks; 0 = 1")
      .Field("mem_overcommit", &PlacerOptions::mem_overcommit, "of memory limits; 0 = 1: none")
      .Field("gpu_price", &PlacerOptions::gpu_price, "of jobs with alternatives; 0 = 0.5, -1 = none")
      .Field("pack_threshold", &PlacerOptions::pack_threshold, "of gavel-threshold; 0 = 1.5")
      .Field("foreground_bound", &PlacerOptions::foreground_bound, "of foreground; 0 = 1.1")
      .Field("profiling_label", &PlacerOptions::profiling_label, "of reactive; '' = horus-profiling")
      .Field("workload", &PlacerOptions::workload_of, "of fgd and horus; None = every task wants one whole GPU")
      .Field("synergy_tolerance", &PlacerOptions::synergy_tolerance, "of synergy-*; 0 = 0.03, -1 = none")
      .Field("synergy_grow", &PlacerOptions::synergy_grow, "of synergy-tune: hand out what is left")
      .Field("max_candidates", &PlacerOptions::max_candidates, "price at most so many devices; 0 = all")
      .Field("sharing_quota", &PlacerOptions::sharing_quota,
             "share of the GPUs that may have several tenants; 0 = 1: all, -1 = none")
      .OneOf("host_grants", &PlacerOptions::host_grants, kHostGrants,
             "cores and host memory of jobs with a sensitivity, by horus and oracle")
      .Field("sm_caps", &PlacerOptions::sm_caps, "whoever starts a job sets the sm_cap_pct of its decision")
      .Field("terse", &PlacerOptions::terse, "decisions that defer do not tell why");
  Record<Change>(m, "Change", "Something that is only supposed; fields that the kind does not name are not read.")
      .OneOf("kind", &Change::kind, kChanges, "what changes")
      .Field("job", &Change::job, "release, migrate: job id")
      .Field("node", &Change::node, "node-state, device-state: node id")
      .Field("device", &Change::device, "device-state: index within the node")
      .OneOf("state", &Change::state, kStates, "node-state, device-state")
      .Field("spec", &Change::planned, "place: the job")
      .Field("slots", &Change::slots, "place, migrate: where");
}

}  // namespace

CWorkload::CWorkload(const Workload& workload, const horus_catalogue* catalogue) {
  const size_t count = workload.shares.size();
  const auto check = [&](const char* what, size_t rows) {
    if (rows != 0 && rows != count)
      Refuse(what, std::to_string(count) + " rows, as shares, or none", std::to_string(rows));
  };
  check("Workload.cpu_milli", workload.cpu_milli.size());
  check("Workload.gpu_milli", workload.gpu_milli.size());
  check("Workload.gpu_types", workload.gpu_types.size());
  if (workload.gpus.size() != count) {
    Refuse("Workload.gpus", std::to_string(count) + " rows, as shares", std::to_string(workload.gpus.size()));
  }
  types_ = horus::detail::Texts(workload.gpu_types);
  for (const Job& job : workload.jobs) jobs_.push_back(job.get());
  c_.task_count = count;
  c_.cpu_milli = horus::detail::Column(workload.cpu_milli);
  c_.gpus = horus::detail::Column(workload.gpus);
  c_.gpu_milli = horus::detail::Column(workload.gpu_milli);
  c_.gpu_types = horus::detail::Column(types_);
  c_.shares = horus::detail::Column(workload.shares);
  c_.job_count = jobs_.size();
  c_.jobs = horus::detail::Column(jobs_);
  c_.catalogue = catalogue;
}

namespace {

void BindPlanning(py::class_<PlacerHandle>& placer) {
  placer
      .def("place", &Place, py::arg("cluster"), py::arg("jobs"), py::arg("nodes"), py::arg("progress"),
           "place(self, cluster: ClusterHandle, jobs: tuple[Job, ...], nodes: "
           "numpy.typing.NDArray[numpy.uint64] | None, progress: collections.abc.Callable[[float], object] | None) -> "
           "PlanHandle")
      .def("place_one", &PlaceOne, py::arg("cluster"), py::arg("job"), py::arg("nodes"),
           "place_one(self, cluster: ClusterHandle, job: Job, nodes: numpy.typing.NDArray[numpy.uint64] | None) -> "
           "PlanHandle")
      .def("place_batch", &PlaceBatch, py::arg("cluster"), py::arg("jobs"), py::arg("nodes"), py::arg("window"),
           py::arg("now_us"), py::arg("patience_us"), py::arg("prices"), py::arg("max_rounds"), py::arg("restarts"),
           py::arg("max_evaluations"), py::arg("progress"),
           "place_batch(self, cluster: ClusterHandle, jobs: tuple[Job, ...], nodes: "
           "numpy.typing.NDArray[numpy.uint64] | None, window: int, now_us: int, patience_us: int, prices: bool, "
           "max_rounds: int, restarts: int, max_evaluations: int, progress: "
           "collections.abc.Callable[[float], object] | None) -> PlanHandle")
      .def("rebalance", &Rebalance, py::arg("cluster"), py::arg("jobs"), py::arg("max_migrations"),
           py::arg("downtime_s"), py::arg("horizon_s"), py::arg("min_gain"), py::arg("max_searches"),
           py::arg("progress"),
           "rebalance(self, cluster: ClusterHandle, jobs: numpy.typing.NDArray[numpy.uint64] | None, max_migrations: "
           "int, downtime_s: float, horizon_s: float, min_gain: float, max_searches: int, progress: "
           "collections.abc.Callable[[float], object] | None) -> PlanHandle")
      .def("evacuate", &Evacuate, py::arg("cluster"), py::arg("nodes"), py::arg("progress"),
           "evacuate(self, cluster: ClusterHandle, nodes: numpy.typing.NDArray[numpy.uint64], progress: "
           "collections.abc.Callable[[float], object] | None) -> PlanHandle")
      .def("review", &Review, py::arg("cluster"), py::arg("max_migrations"), py::arg("downtime_s"),
           py::arg("horizon_s"), py::arg("min_gain"), py::arg("max_searches"),
           "review(self, cluster: ClusterHandle, max_migrations: int, downtime_s: float, horizon_s: float, min_gain: "
           "float, max_searches: int) -> PlanHandle")
      .def("appraise", &Appraise, py::arg("cluster"), py::arg("job"), py::arg("slots"),
           "appraise(self, cluster: ClusterHandle, job: Job, slots: collections.abc.Sequence[Slot]) -> dict[str, "
           "typing.Any]")
      .def("preempt", &Preempt, py::arg("cluster"), py::arg("job"), py::arg("nodes"), py::arg("max_candidates"),
           py::arg("max_checks"),
           "preempt(self, cluster: ClusterHandle, job: Job, nodes: numpy.typing.NDArray[numpy.uint64] | None, "
           "max_candidates: int, max_checks: int) -> PlanHandle")
      .def("what_if", &WhatIf, py::arg("cluster"), py::arg("changes"), py::arg("jobs"), py::arg("progress"),
           "what_if(self, cluster: ClusterHandle, changes: tuple[Change, ...], jobs: "
           "tuple[Job, ...], progress: collections.abc.Callable[[float], object] | None) -> PlanHandle")
      .def("verdicts", &Verdicts, py::arg("cluster"), py::arg("job"), py::arg("nodes"),
           "verdicts(self, cluster: ClusterHandle, job: Job, nodes: numpy.typing.NDArray[numpy.uint64]) -> dict[str, "
           "numpy.typing.NDArray[typing.Any]]");
}

}  // namespace

void BindPlacer(py::module_& m) {
  BindOptions(m);
  BindCandidate(m);
  py::class_<PlacerHandle> placer = Class<PlacerHandle>(m, "PlacerHandle");
  placer
      .def(py::init(&Create), py::arg("options"), py::arg("interference").none(true), py::arg("policy"),
           py::arg("catalogue").none(true),
           "__init__(self, options: PlacerOptions, interference: InterferenceHandle | None, policy: "
           "collections.abc.Callable[[Candidate], float | None] | None, catalogue: CatalogueHandle | None) -> None")
      .def(
          "bytes_held", [](const PlacerHandle& p) { return horus_placer_bytes_held(p.get()); },
          "bytes_held(self) -> int");
  BindPlanning(placer);
  m.def(
      "policy_names", [] { return horus::detail::List(horus::GetLibraryInfo().policies); },
      "policy_names() -> list[str]");
}

}  // namespace horus_python
