// SPDX-License-Identifier: Apache-2.0
// Simulations: a trace on a cluster under a queue and a placer, and what became of the jobs.
#include "sim.h"

#include "columns.h"

namespace horus_python {
namespace {

const Word kWeights[] = {{HORUS_SIM_WEIGHTS_QUEUE, "queue"},
                         {HORUS_SIM_WEIGHTS_SHORTEST, "shortest"},
                         {HORUS_SIM_WEIGHTS_PRICES, "prices"},
                         {HORUS_SIM_WEIGHTS_ALIKE, "alike"},
                         {0, nullptr}};
const Word kLearns[] = {{HORUS_SIM_LEARNS_NOTHING, "nothing"},
                        {HORUS_SIM_LEARNS_FAILURES, "failures"},
                        {HORUS_SIM_LEARNS_PAIRS, "pairs"},
                        {HORUS_SIM_LEARNS_CORRECTS, "corrects"},
                        {0, nullptr}};
const Word kEvents[] = {{HORUS_SIM_ARRIVE, "arrive"},
                        {HORUS_SIM_START, "start"},
                        {HORUS_SIM_FAIL, "fail"},
                        {HORUS_SIM_FINISH, "finish"},
                        {HORUS_SIM_REJECT, "reject"},
                        {HORUS_SIM_PREEMPT, "preempt"},
                        {HORUS_SIM_OUT_OF_MEMORY, "out-of-memory"},
                        {HORUS_SIM_MIGRATE, "migrate"},
                        {HORUS_SIM_INTERRUPT, "interrupt"},
                        {HORUS_SIM_PROFILED, "profiled"},
                        {HORUS_SIM_NODE_DOWN, "node-down"},
                        {HORUS_SIM_NODE_UP, "node-up"},
                        {0, nullptr}};

struct SimOptions : horus::SimOptions {
  std::optional<horus::QueueOptions> queue_options = std::nullopt;
  std::optional<horus::RebalanceOptions> moves = std::nullopt;
  std::optional<Workload> workload_of = std::nullopt;
};

// A simulation while it runs: progress, and events to an observer.
struct Asking {
  Progress progress;
  py::object observer;

  static int32_t Observe(void* user, const horus_sim_event* event) {
    auto* self = static_cast<Asking*>(user);
    return Callback([&] {
      py::list slots;
      for (size_t i = 0; i < event->slot_count; ++i) {
        slots.append(Arg<Slot>::To({event->node_ids[i], event->devices[i], event->tasks[i]}));
      }
      py::object answer =
          CallPython(self->observer, WordOf(kEvents, event->kind), event->time_us, event->job_id, py::tuple(slots));
      const bool go_on = answer.ptr() != Py_False;
      Forget(answer);
      return go_on ? 0 : 1;
    });
  }
  static int32_t Tell(void* user, double done) { return Progress::Tell(&static_cast<Asking*>(user)->progress, done); }
};

std::unique_ptr<SimResultHandle> RunSimulation(const TraceHandle& trace, const py::tuple& beliefs,
                                               const TruthHandle& truth, const ClusterHandle& cluster,
                                               const PlacerHandle& placer, const SimOptions& options,
                                               const py::object& observer, const py::object& progress) {
  const std::vector<ProfileDemand> rows = FaceOf(beliefs, "beliefs");
  const horus::detail::CProfileDemands believed(rows);
  horus::SimOptions face = options;
  if (options.queue_options) face.queue = *options.queue_options;
  if (options.moves) face.rebalance = *options.moves;
  face.measured = FaceOf(options.measured);
  std::optional<CWorkload> workload;
  if (options.workload_of) face.workload = workload.emplace(*options.workload_of, nullptr).get();
  const horus::detail::CSimOptions c(face);
  Asking asking{Progress(progress), observer};
  return Make<SimResultHandle, horus_sim_result>(
      [&](horus_sim_result** out, horus_error* error) {
        return ReadBoth(placer, cluster, error, [&](horus_error* e) {
          return horus_sim_run(trace.get(), believed.get(), truth.get(), cluster.get(), placer.get(), c.get(),
                               observer.is_none() ? nullptr : &Asking::Observe, &Asking::Tell, &asking, out, e);
        });
      },
      placer.keeps());  // a learned model stands on the placer's
}

py::object Told(const double (&spread)[HORUS_SPREAD_COUNT]) {
  py::dict out;
  out["mean"] = spread[HORUS_SPREAD_MEAN];
  out["p50"] = spread[HORUS_SPREAD_P50];
  out["p95"] = spread[HORUS_SPREAD_P95];
  out["p99"] = spread[HORUS_SPREAD_P99];
  return out;
}
template <typename Number>
py::object Told(Number value) {
  return py::cast(value);
}

py::dict Metrics(const SimResultHandle& result, int64_t from_us, int64_t to_us, double slowdown_bound) {
  const horus_sim_window window = {sizeof(horus_sim_window), 0, from_us, to_us, slowdown_bound};
  horus_sim_metrics m = HORUS_SIM_METRICS_INIT;
  Run([&](horus_error* error) { return horus_sim_result_get_metrics(result.get(), &window, &m, error); });
  py::dict out;
#define HORUS_TELL(field) out[#field] = Told(m.field);
  HORUS_SIM_METRICS_FIELDS(HORUS_TELL)
#undef HORUS_TELL
  return out;
}

py::dict Jobs(const SimResultHandle& result) {
  horus_sim_jobs c = HORUS_SIM_JOBS_INIT;
  const size_t rows = horus::detail::CountOf(
      [&](size_t* needed, horus_error* error) { return horus_sim_result_jobs(result.get(), &c, needed, error); });
  py::dict out;
  c.capacity = rows;
  const auto column = [&](const char* name, auto** data) {
    using T = std::remove_pointer_t<std::remove_pointer_t<decltype(data)>>;
    py::array_t<T> values(static_cast<py::ssize_t>(rows));
    *data = values.mutable_data();
    out[name] = values;
  };
  column("job", &c.job_ids);
  column("end", &c.ends);
  column("start_us", &c.start_us);
  column("end_us", &c.end_us);
  column("ran_us", &c.ran_us);
  column("work_us", &c.work_us);
  column("undisturbed_us", &c.undisturbed_us);
  column("backlog_us", &c.backlog_us);
  column("lost_us", &c.lost_us);
  column("failures", &c.failures);
  column("out_of_memory", &c.out_of_memory);
  column("preemptions", &c.preemptions);
  column("migrations", &c.migrations);
  column("interruptions", &c.interruptions);
  column("restarts", &c.restarts);
  size_t count = 0;
  Run([&](horus_error* error) { return horus_sim_result_jobs(result.get(), &c, &count, error); });
  return out;
}

py::array_t<double> BacklogWork(const SimResultHandle& result) {
  return ToArray(Collect<double>([&](size_t capacity, double* gpu_s, size_t* count, horus_error* error) {
    return horus_sim_result_backlog_work(result.get(), capacity, gpu_s, count, error);
  }));
}

py::array_t<float> DecisionTimes(const SimResultHandle& result) {
  return ToArray(Collect<float>([&](size_t capacity, float* took_us, size_t* count, horus_error* error) {
    float none = 0;
    return horus_sim_result_decision_times(result.get(), capacity, took_us == nullptr ? &none : took_us, count, nullptr,
                                           error);
  }));
}

// What the placer believed at the end.
std::unique_ptr<InterferenceHandle> Model(const SimResultHandle& result) {
  return Make<InterferenceHandle, horus_interference>(
      [&](horus_interference** out, horus_error* error) {
        return horus_sim_result_get_model(result.get(), out, error);
      },
      result.keeps());
}

void BindOptions(py::module_& m) {
  Record<horus::RebalanceOptions>(m, "Rebalance", "How residents move at the multiples of SimOptions.rebalance_us.")
      .Field("max_migrations", &horus::RebalanceOptions::max_migrations, "at once; 0 = 16")
      .Field("downtime_s", &horus::RebalanceOptions::downtime_s, "that a migration costs the job; 0 = 30, -1 = none")
      .Field("horizon_s", &horus::RebalanceOptions::horizon_s, "over which the gain counts; 0 = 3,600")
      .Field("min_gain", &horus::RebalanceOptions::min_gain, "beyond the cost, in units of work")
      .Field("max_searches", &horus::RebalanceOptions::max_searches, "bounds the time; 0 = 10,000");
  Record<horus::SimOutage>(m, "Outage", "A node fails for a while.", 3)
      .Field("node", &horus::SimOutage::node, "node id")
      .Field("from_us", &horus::SimOutage::from_us, "on the trace's clock")
      .Field("until_us", &horus::SimOutage::until_us, "up again");
  Record<SimOptions>(m, "SimOptions", "Options of a simulation; see horus.simulate. Times in microseconds.")
      .Field("queue", &SimOptions::discipline, "discipline: fifo, srtf, las, horus-plus, ...")
      .Field("know_run_times", &SimOptions::know_run_times, "the queue is told how long jobs run alone")
      .Field("queue_options", &SimOptions::queue_options, "of the discipline; None = its defaults")
      .Field("horizon_us", &SimOptions::horizon_us, "nothing happens at or after it; 0 = until all is done")
      .Field("look_ahead", &SimOptions::look_ahead,
             "waiting jobs that are tried or compared; 0 = as the discipline says, or 50 where who goes is chosen; in "
             "horus.compare 50")
      .Field("round_us", &SimOptions::round_us, "decisions at its multiples alone; 0 = at each event")
      .Field("preempt", &SimOptions::preempt, "jobs that wait take the places of such as rank behind them")
      .Field("one_by_one", &SimOptions::one_by_one,
             "the first that fits goes; False: who goes is chosen, or may wait (docs/simulate.md)")
      .OneOf("weights", &SimOptions::weights, kWeights, "what a job's work counts")
      .Field("restart_us", &SimOptions::restart_us, "that a job which worked before holds its places before it works")
      .Field("checkpoint_us", &SimOptions::checkpoint_us, "between two checkpoints; 0 = failures lose nothing")
      .Field("latency_us", &SimOptions::latency_us, "from a decision until the job works")
      .Field("outages", &SimOptions::outages, "nodes that fail")
      .Field("rebalance_us", &SimOptions::rebalance_us, "at its multiples jobs may move; 0 = never")
      .Field("rebalance", &SimOptions::moves, "how they move then; None = the defaults")
      .Field("observe_us", &SimOptions::observe_us, "tenants who shared so long are seen; 0 = never")
      .Field("profiling_us", &SimOptions::profiling_us, "of a new profile on a profiling node; 0 = none")
      .Field("profiling_label", &SimOptions::profiling_label, "of such nodes; '' = horus-profiling")
      .Field("profile_each_job", &SimOptions::profile_each_job, "no job speaks for others of its profile")
      .Field("measured", &SimOptions::measured, "what profiling finds; empty = what was believed")
      .OneOf("learns", &SimOptions::learns, kLearns, "what is learned of devices that two jobs share while jobs run")
      .Field("sensitivities", &SimOptions::sensitivities,
             "to cores and host memory by profile, that synergy policies are told")
      .Field("workload", &SimOptions::workload_of, "what fragments are measured against; None = the trace's own tasks");
}

}  // namespace

void BindSim(py::module_& m) {
  BindOptions(m);
  Class<SimResultHandle>(m, "SimResultHandle")
      .def("metrics", &Metrics, py::arg("from_us"), py::arg("to_us"), py::arg("slowdown_bound"),
           "metrics(self, from_us: int, to_us: int, slowdown_bound: float) -> dict[str, typing.Any]")
      .def("jobs", &Jobs, "jobs(self) -> dict[str, numpy.typing.NDArray[typing.Any]]")
      .def("model", &Model, "model(self) -> InterferenceHandle")
      .def("backlog_work", &BacklogWork, "backlog_work(self) -> numpy.typing.NDArray[numpy.float64]")
      .def("decision_times", &DecisionTimes, "decision_times(self) -> numpy.typing.NDArray[numpy.float32]")
      .def(
          "bytes_held", [](const SimResultHandle& r) { return horus_sim_result_bytes_held(r.get()); },
          "bytes_held(self) -> int");
  m.def("simulate", &RunSimulation, py::arg("trace"), py::arg("beliefs"), py::arg("truth"), py::arg("cluster"),
        py::arg("placer"), py::arg("options"), py::arg("observer"), py::arg("progress"),
        "simulate(trace: TraceHandle, beliefs: tuple[ProfileDemand, ...], truth: TruthHandle, cluster: "
        "ClusterHandle, placer: PlacerHandle, options: SimOptions, observer: collections.abc.Callable[[str, int, int, "
        "tuple[Slot, ...]], object] | None, progress: collections.abc.Callable[[float], object] | None) -> "
        "SimResultHandle");
}

}  // namespace horus_python
