// SPDX-License-Identifier: Apache-2.0
// horus/lab/sim.h: truths, how a simulation is run, simulations, what is told of results.

#include "capi/planning.h"
#include "lab/capi/handles.h"
#include "lab/metrics.h"

namespace horus::capi {
namespace {

// ---- Columns by profile.

absl::Status AddRow(const Catalogue& catalogue, const horus_profile_demands& c, size_t row, DemandsByName& demands) {
  HORUS_ASSIGN_OR_RETURN(const std::string profile, ReadText(c.profiles[row], "profiles"));
  HORUS_RETURN_IF_ERROR(ValidateTraceName("profiles", profile));
  TypeDemand one;
  if (c.gpu_types != nullptr && c.gpu_types[row] != nullptr) {
    HORUS_ASSIGN_OR_RETURN(const std::string type, ReadText(c.gpu_types[row], "gpu_types"));
    HORUS_ASSIGN_OR_RETURN(one.type, catalogue.Find(type));
  }
  HORUS_ASSIGN_OR_RETURN(one.demand, DemandFromC(c.demands[row]));
  ProfileDemands& all = demands[profile];
  const auto at = std::lower_bound(all.begin(), all.end(), one,
                                   [](const TypeDemand& a, const TypeDemand& b) { return a.type < b.type; });
  const bool any = !all.empty() && (!one.type.valid() || !all.front().type.valid());
  if (any || (at != all.end() && at->type == one.type)) {
    return InvalidArgument("gpu_types: expected each type of profile '%s' once, or any alone, found another row for %s",
                           profile, any ? "any" : "the same");
  }
  all.insert(at, one);
  return absl::OkStatus();
}

// "demands: row[3]: ..." where `name` is "demands". A profile's types ascend and are unique; any type stands alone.
absl::StatusOr<DemandsByName> ProfileDemandsFromC(const Catalogue& catalogue, const char* name,
                                                  const horus_profile_demands* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_profile_demands c, ReadStruct(given));
  absl::Status status = RequireColumn(c.profiles, "profiles", c.count);
  if (status.ok()) status = RequireColumn(c.demands, "demands", c.count);
  DemandsByName demands;
  for (size_t row = 0; status.ok() && row < c.count; ++row)
    status = At(Element("row", row), AddRow(catalogue, c, row, demands));
  if (!status.ok()) return At(name, status);
  return demands;
}

// By profile of the trace; empty where nothing is said of it. Any type becomes each of `types` where there are some.
std::vector<ProfileDemands> DemandsFor(const Trace& trace, const DemandsByName& demands,
                                       std::span<const GpuTypeId> types) {
  std::vector<ProfileDemands> all = ByProfile(trace, demands);
  for (ProfileDemands& one : all) {
    if (one.empty() || one.front().type.valid() || types.empty()) continue;
    const Demand anywhere = one.front().demand;
    one.clear();
    for (const GpuTypeId type : types) one.push_back({type, anywhere});
  }
  return all;
}

// "sensitivities: row[3]: ...".
absl::StatusOr<SensitivitiesByName> SensitivitiesFromC(const horus_profile_sensitivities* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_profile_sensitivities c, ReadStruct(given));
  HORUS_RETURN_IF_ERROR(RequireColumns(
      c.count, {{c.profiles, "sensitivities: profiles"}, {c.sensitivities, "sensitivities: sensitivities"}}));
  SensitivitiesByName all;
  for (size_t row = 0; row < c.count; ++row) {
    const std::string place = "sensitivities: " + Element("row", row);
    HORUS_ASSIGN_OR_RETURN(const std::string profile, At(place, ReadText(c.profiles[row], "profiles")));
    HORUS_ASSIGN_OR_RETURN(SharedSensitivity one, At(place, SensitivityFromC(c.sensitivities[row])));
    if (one.get() == nullptr) return InvalidArgument("%s: sensitivities: expected a matrix, found NULL", place);
    if (all.emplace(profile, std::move(one)).second) continue;
    return InvalidArgument("%s: profiles: expected each once, found '%s' again", place, profile);
  }
  return all;
}

// ---- horus/sim.h, truths: from a model and demands, or from measured speeds.

static_assert(Same(HORUS_TENANTS_ADD, ManyTenants::kAdds) && Same(HORUS_TENANTS_MULTIPLY, ManyTenants::kMultiplies));

// What ModelTruth::Create will say of them, with the profile's name.
absl::Status CheckSteps(const DemandsByName& demands) {
  for (const auto& [profile, all] : demands) {
    const auto timed =
        std::ranges::count_if(all, [](const TypeDemand& one) { return one.demand.step_time_us.estimate > 0; });
    if (timed == 0 || timed == std::ptrdiff_t(all.size())) continue;
    return InvalidArgument("demands: profile '%s': expected step times on all of %d types or none, found %d", profile,
                           all.size(), timed);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<horus_truth>> FromModel(std::shared_ptr<const Catalogue> catalogue,
                                                       const horus_interference* model,
                                                       const horus_profile_demands* demands) {
  auto truth = std::make_unique<horus_truth>();
  if (model != nullptr && !SameTypes(model->catalogue, catalogue))
    return InvalidArgument("model: expected one for the GPU types of the catalogue, found others");
  HORUS_ASSIGN_OR_RETURN(truth->model, ModelOf(model));
  HORUS_ASSIGN_OR_RETURN(truth->demands, ProfileDemandsFromC(*catalogue, "demands", demands));
  HORUS_RETURN_IF_ERROR(CheckSteps(truth->demands));
  truth->catalogue = std::move(catalogue);
  return truth;
}

absl::StatusOr<std::unique_ptr<horus_truth>> FromSpeeds(std::shared_ptr<const Catalogue> catalogue,
                                                        const horus_speeds* speeds, int32_t many) {
  HORUS_RETURN_IF_ERROR(CheckConstant("many", "HORUS_TENANTS_*", HORUS_TENANTS_ADD, HORUS_TENANTS_MULTIPLY, many));
  auto truth = std::make_unique<horus_truth>();
  truth->many = static_cast<ManyTenants>(many);
  HORUS_ASSIGN_OR_RETURN(truth->speeds, SpeedsFromC(speeds, /*with_names=*/true));
  const SpeedTable& table = truth->speeds.table;
  for (size_t gpu = 0; gpu < table.gpus.size(); ++gpu) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type,
                           At("speeds: " + Element("gpu_types", gpu), catalogue->Find(table.gpus[gpu])));
    truth->types.push_back(type);
  }
  // What is left to check: two names of one type.
  HORUS_RETURN_IF_ERROR(TableTruth::Create(table, truth->types, {}, truth->speeds.reference).status());
  truth->catalogue = std::move(catalogue);
  return truth;
}

absl::StatusOr<std::unique_ptr<Truth>> SpeedsOf(const horus_truth& truth, const Trace& trace) {
  const bool predicted = truth.model != nullptr;
  std::vector<ProfileDemands> demands;
  std::vector<uint32_t> rows;
  if (predicted) {
    demands = ByProfile(trace, truth.demands);
  } else {
    rows = RowsOfProfiles(trace, truth.speeds.table);
  }
  std::vector<bool> used(trace.profiles.size());  // by jobs with GPUs
  for (const TraceJob& job : trace.jobs) {
    if (job.gpus_per_task > 0 && job.profile != kNotStated) used[job.profile] = true;
  }
  for (size_t profile = 0; profile < used.size(); ++profile) {
    if (predicted ? !demands[profile].empty() : rows[profile] != kNotStated) continue;
    if (used[profile]) {
      return InvalidArgument("truth: expected one that knows profile '%s' of the trace, found none of it",
                             trace.profiles[profile]);
    }
    if (predicted) demands[profile] = {TypeDemand()};  // of jobs for the host alone: nobody asks
  }
  if (predicted) return ModelTruth::Create(truth.model, std::move(demands));
  return TableTruth::Create(truth.speeds.table, truth.types, std::move(rows), truth.speeds.reference, truth.many);
}

// The trace as the truth counts time: with run times instead of steps. INVALID_ARGUMENT: as StepsToDurations.
absl::StatusOr<std::shared_ptr<const Trace>> TimedBy(const horus_truth& truth,
                                                     const std::shared_ptr<const Trace>& trace) {
  const auto by_steps = [](const TraceJob& job) { return job.steps > 0; };
  if (truth.model != nullptr || std::ranges::none_of(trace->jobs, by_steps)) return trace;
  HORUS_ASSIGN_OR_RETURN(Trace timed, StepsToDurations(*trace, truth.speeds.table, truth.speeds.reference));
  return std::make_shared<const Trace>(std::move(timed));
}

// INVALID_ARGUMENT: a profile of jobs with GPUs that it does not know.
absl::StatusOr<std::unique_ptr<Truth>> TruthFor(const horus_truth& truth, const Trace& trace) {
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Truth> speeds, SpeedsOf(truth, trace));
  if (truth.sensitivities.empty()) return speeds;
  return std::make_unique<SensitiveTruth>(std::move(speeds), ByProfile(trace, truth.sensitivities));
}

// How a simulation is run.
struct SimSetup {
  SimOptions options;  // without `measured` and `sensitivities`
  std::string discipline;
  QueueOptions queue;
  std::optional<DemandsByName> measured;
  SensitivitiesByName sensitivities;
  Learns learns = Learns::kNothing;
};

// ---- Field by field from horus_sim_options.

constexpr char kDefaultDiscipline[] = "fifo";

static_assert(Same(HORUS_SIM_WEIGHTS_QUEUE, SimWeights::kQueue) &&
              Same(HORUS_SIM_WEIGHTS_SHORTEST, SimWeights::kShortest) &&
              Same(HORUS_SIM_WEIGHTS_PRICES, SimWeights::kPrices) && Same(HORUS_SIM_WEIGHTS_ALIKE, SimWeights::kAlike));

static_assert(Same(HORUS_SIM_LEARNS_NOTHING, Learns::kNothing) && Same(HORUS_SIM_LEARNS_FAILURES, Learns::kFailures) &&
              Same(HORUS_SIM_LEARNS_PAIRS, Learns::kPairs) && Same(HORUS_SIM_LEARNS_CORRECTS, Learns::kCorrects));

absl::Status CheckFlags(const horus_sim_options& c) {
  HORUS_RETURN_IF_ERROR(CheckFlag("hide_run_times", c.hide_run_times));
  HORUS_RETURN_IF_ERROR(CheckFlag("preempt", c.preempt));
  HORUS_RETURN_IF_ERROR(CheckFlag("one_by_one", c.one_by_one));
  HORUS_RETURN_IF_ERROR(CheckFlag("profile_each_job", c.profile_each_job));
  HORUS_RETURN_IF_ERROR(
      CheckConstant("learns", "HORUS_SIM_LEARNS_*", HORUS_SIM_LEARNS_NOTHING, HORUS_SIM_LEARNS_CORRECTS, c.learns));
  return CheckConstant("weights", "HORUS_SIM_WEIGHTS_*", HORUS_SIM_WEIGHTS_QUEUE, HORUS_SIM_WEIGHTS_ALIKE, c.weights);
}

absl::StatusOr<std::vector<NodeOutage>> OutagesFromC(const horus_sim_options& c) {
  if (c.outage_count > kMostOutages)
    return ResourceExhausted("outage_count: expected at most %d, found %d", kMostOutages, c.outage_count);
  HORUS_RETURN_IF_ERROR(RequireColumns(c.outage_count, {{c.outage_nodes, "outage_nodes"},
                                                        {c.outage_from_us, "outage_from_us"},
                                                        {c.outage_until_us, "outage_until_us"}}));
  std::vector<NodeOutage> outages;
  for (size_t i = 0; i < c.outage_count; ++i)
    outages.push_back({c.outage_nodes[i], c.outage_from_us[i], c.outage_until_us[i]});
  return outages;
}

absl::StatusOr<RebalanceOptions> RebalanceOf(const horus_rebalance_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_rebalance_options c, ReadOptionalStruct(given));
  if (c.job_ids != nullptr || c.job_count != 0)
    return InvalidArgument("rebalance: job_ids: expected NULL, found %d ids", c.job_count);
  return RebalanceFromC(c);
}

// What is made of other structs.
absl::Status AddParts(const std::shared_ptr<const Catalogue>& catalogue, const horus_sim_options& c, SimSetup& setup) {
  SimOptions& options = setup.options;
  HORUS_ASSIGN_OR_RETURN(setup.discipline, ReadOptionalText(c.discipline, "discipline"));
  if (setup.discipline.empty()) setup.discipline = kDefaultDiscipline;
  HORUS_ASSIGN_OR_RETURN(setup.queue, QueueOptionsFromC(c.queue));
  HORUS_ASSIGN_OR_RETURN(options.outages, OutagesFromC(c));
  HORUS_ASSIGN_OR_RETURN(options.rebalance, RebalanceOf(c.rebalance));
  if (c.profiling_label != nullptr)
    HORUS_SET_OR_RETURN(options.profiling_label, ReadText(c.profiling_label, "profiling_label"));
  if (c.measured != nullptr)
    HORUS_SET_OR_RETURN(setup.measured, ProfileDemandsFromC(*catalogue, "measured", c.measured));
  if (c.sensitivities != nullptr) HORUS_SET_OR_RETURN(setup.sensitivities, SensitivitiesFromC(c.sensitivities));
  if (c.workload == nullptr) return absl::OkStatus();
  std::shared_ptr<const Catalogue> named;
  HORUS_ASSIGN_OR_RETURN(options.workload, WorkloadFromC(c.workload, named));
  if (SameTypes(named, catalogue)) return absl::OkStatus();
  return InvalidArgument("workload: expected one for the GPU types of the cluster, found one for others");
}

absl::StatusOr<SimSetup> SimSetupFromC(const std::shared_ptr<const Catalogue>& catalogue,
                                       const horus_sim_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_sim_options c, ReadOptionalStruct(given));
  HORUS_RETURN_IF_ERROR(CheckFlags(c));
  SimSetup setup;
  SimOptions& options = setup.options;
  HORUS_COPY_FIELDS(c, options, horizon_us, look_ahead, round_us, restart_us, checkpoint_us, latency_us, rebalance_us,
                    observe_us, profiling_us)
  options.know_run_times = c.hide_run_times == 0;
  options.preempt = c.preempt == 1;
  options.one_by_one = c.one_by_one == 1;
  options.weights = static_cast<SimWeights>(c.weights);
  setup.learns = static_cast<Learns>(c.learns);
  if (setup.learns >= Learns::kPairs && options.observe_us == 0) options.observe_us = kLearnFromUs;
  options.profile_each_job = c.profile_each_job == 1;
  HORUS_RETURN_IF_ERROR(AddParts(catalogue, c, setup));
  return setup;
}

// The queue of the setup; where that states no capacity, it is the cluster's.
absl::StatusOr<std::unique_ptr<Queue>> QueueFor(const SimSetup& setup, const Cluster& cluster) {
  QueueOptions options = setup.queue;
  QueueResources& capacity = options.capacity;
  if (capacity.gpu_milli == 0 && capacity.cpu_milli == 0 && capacity.mem_mib == 0) {
    const ClusterTotals totals = cluster.Totals();
    // Bounded: a cluster has at most kMaxDevices.
    capacity = {static_cast<int64_t>(totals.devices) * kMilliPerGpu, totals.cpu_milli, totals.mem_mib};
  }
  return MakeQueue(setup.discipline, options);
}

// ---- Simulations.

static_assert(Same(HORUS_SIM_ARRIVE, SimEventKind::kArrive) && Same(HORUS_SIM_START, SimEventKind::kStart) &&
              Same(HORUS_SIM_FAIL, SimEventKind::kFail) && Same(HORUS_SIM_FINISH, SimEventKind::kFinish) &&
              Same(HORUS_SIM_REJECT, SimEventKind::kReject) && Same(HORUS_SIM_PREEMPT, SimEventKind::kPreempt) &&
              Same(HORUS_SIM_OUT_OF_MEMORY, SimEventKind::kOutOfMemory) &&
              Same(HORUS_SIM_MIGRATE, SimEventKind::kMigrate) && Same(HORUS_SIM_INTERRUPT, SimEventKind::kInterrupt) &&
              Same(HORUS_SIM_PROFILED, SimEventKind::kProfiled) && Same(HORUS_SIM_NODE_DOWN, SimEventKind::kNodeDown) &&
              Same(HORUS_SIM_NODE_UP, SimEventKind::kNodeUp));

constexpr uint64_t kProgressSteps = 1000;  // progress is told at most so often; chosen

// Hands events over, and counts how many jobs came and went.
class Teller {
 public:
  Teller(const Trace& trace, horus_sim_observer observer, void* user, CallerProgress& progress)
      : trace_(trace), observer_(observer), user_(user), progress_(progress) {}

  [[nodiscard]] bool Tell(const SimEvent& event) {
    if (observer_ != nullptr && !TellObserver(event)) return false;
    const bool counts = event.kind == SimEventKind::kArrive || event.kind == SimEventKind::kFinish ||
                        event.kind == SimEventKind::kReject;
    if (!progress_ || !counts) return true;
    const uint64_t all = 2 * trace_.jobs.size();
    const uint64_t before = counted_++ * kProgressSteps / all;
    // Bounded: two events a job, of at most kMaxTraceJobs.
    if (counted_ * kProgressSteps / all == before) return true;
    return progress_.Tell(static_cast<double>(counted_) / static_cast<double>(all));
  }

 private:
  [[nodiscard]] bool TellObserver(const SimEvent& event) {
    nodes_.clear();
    devices_.clear();
    tasks_.clear();
    for (const Slot& slot : event.slots) {
      nodes_.push_back(slot.node);
      devices_.push_back(static_cast<uint32_t>(slot.device));  // kNoDevice becomes UINT32_MAX
      tasks_.push_back(static_cast<uint32_t>(slot.task));
    }
    const horus_sim_event c = {.struct_size = sizeof(horus_sim_event),
                               .kind = static_cast<int32_t>(event.kind),
                               .time_us = event.time_us,
                               .job_id = event.job == kNotStated ? 0 : trace_.jobs[event.job].id,
                               .slot_count = nodes_.size(),
                               .node_ids = nodes_.data(),
                               .devices = devices_.data(),
                               .tasks = tasks_.data()};
    return observer_(user_, &c) == 0;
  }

  const Trace& trace_;
  horus_sim_observer observer_;
  void* user_;
  CallerProgress& progress_;
  uint64_t counted_ = 0;
  std::vector<uint64_t> nodes_;
  std::vector<uint32_t> devices_, tasks_;
};
static_assert(kNoDevice == -1);

struct Request {
  const horus_trace& trace;
  const horus_profile_demands* beliefs;
  const horus_truth& truth;
  const horus_sim_options* options;
  horus_sim_observer observer;
  horus_progress progress;
  void* user;  // of both
};

absl::StatusOr<std::unique_ptr<horus_sim_result>> Play(const Request& request, const horus_cluster& cluster,
                                                       horus_placer& placer) {
  const std::shared_ptr<const Catalogue>& catalogue = cluster.value.shared_catalogue();
  if (!SameTypes(request.truth.catalogue, catalogue))
    return InvalidArgument("truth: expected one for the GPU types of this cluster, found one for others");
  HORUS_ASSIGN_OR_RETURN(SimSetup setup, SimSetupFromC(catalogue, request.options));
  HORUS_ASSIGN_OR_RETURN(const DemandsByName believed, ProfileDemandsFromC(*catalogue, "beliefs", request.beliefs));
  auto result = std::make_unique<horus_sim_result>();
  HORUS_ASSIGN_OR_RETURN(result->trace, TimedBy(request.truth, request.trace.value));
  const Trace& trace = *result->trace;
  HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Truth> truth, TruthFor(request.truth, trace));
  CallerProgress progress(request.progress, request.user);
  const PlacerWork work = [&](Placer& with, const Cluster& on, const ReadFn& read) -> absl::Status {
    Cluster box = on;
    read();
    const std::vector<GpuTypeId> types = TypesOf(box);
    const std::vector<ProfileDemands> beliefs = DemandsFor(trace, believed, types);
    std::vector<ProfileDemands> measured;
    if (setup.measured) {
      measured = DemandsFor(trace, *setup.measured, types);
      setup.options.measured = &measured;
    }
    const std::vector<SharedSensitivity> sensitivities = ByProfile(trace, setup.sensitivities);
    if (!setup.sensitivities.empty()) setup.options.sensitivities = &sensitivities;
    HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Queue> queue, QueueFor(setup, box));
    std::optional<PairLearner> learner;
    std::unique_ptr<Placer> learning;  // asks what is being learned, in the place of the caller's
    if (setup.learns != Learns::kNothing) {
      setup.options.learner = &learner.emplace(with.shared_model(), catalogue, setup.learns);
      HORUS_ASSIGN_OR_RETURN(learning, Placer::Create(learner->model(), with.shared_policy(), with.options()));
    }
    Placer& asked = learning == nullptr ? with : *learning;
    if (progress) asked.SetGoOn([&progress] { return progress.Ask(); });
    Teller teller(trace, request.observer, request.user, progress);
    SimObserver observer;
    if (request.observer != nullptr || progress)
      observer = [&teller](const SimEvent& event) { return teller.Tell(event); };
    HORUS_ASSIGN_OR_RETURN(result->value,
                           Simulate(trace, beliefs, *truth, box, *queue, asked, setup.options, observer));
    if (learner) result->learned = learner->known();
    result->catalogue = catalogue;
    return absl::OkStatus();
  };
  HORUS_RETURN_IF_ERROR(UsePlacer(placer, cluster, progress, work));
  return result;
}

// ---- horus/sim.h, what is told of results: metrics, jobs, work of the backlog, times of decisions.

static_assert(Same(HORUS_SIM_END_WAITING, SimEnd::kWaiting) && Same(HORUS_SIM_END_RUNNING, SimEnd::kRunning) &&
              Same(HORUS_SIM_END_FINISHED, SimEnd::kFinished) && Same(HORUS_SIM_END_REJECTED, SimEnd::kRejected));

absl::StatusOr<MetricsOptions> WindowFromC(const horus_sim_window* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_sim_window c, ReadOptionalStruct(given));
  if (!(c.slowdown_bound == 0 || c.slowdown_bound >= 1))
    return InvalidArgument("slowdown_bound: expected at least 1, or 0 (none), found %g", c.slowdown_bound);
  MetricsOptions options;
  options.from_us = c.from_us;
  SetUnlessZero(options.to_us, c.to_us);
  SetUnlessZero(options.slowdown_bound, c.slowdown_bound);
  return options;
}

#define HORUS_SIZE(field) +sizeof(horus_sim_metrics::field)
static_assert(offsetof(horus_sim_metrics, jobs) HORUS_SIM_METRICS_FIELDS(HORUS_SIZE) == sizeof(horus_sim_metrics),
              "HORUS_SIM_METRICS_FIELDS names each field");
#undef HORUS_SIZE

void PutMetric(const Spread& spread, double* values) {
  values[HORUS_SPREAD_MEAN] = spread.mean;
  values[HORUS_SPREAD_P50] = spread.p50;
  values[HORUS_SPREAD_P95] = spread.p95;
  values[HORUS_SPREAD_P99] = spread.p99;
}
template <typename Number>
void PutMetric(Number value, Number& out) {
  out = value;
}

horus_sim_metrics ToC(const SimMetrics& metrics) {
  horus_sim_metrics c = HORUS_SIM_METRICS_INIT;
#define HORUS_PUT(field) PutMetric(metrics.field, c.field);
  HORUS_SIM_METRICS_FIELDS(HORUS_PUT)
#undef HORUS_PUT
  return c;
}

double MicrosecondsOf(Work work) { return static_cast<double>(work) / static_cast<double>(kFullRate); }

void PutJob(const TraceJob& asked, const SimJob& job, size_t row, const horus_sim_jobs& columns) {
  Put(columns.job_ids, row, asked.id);
  Put(columns.ends, row, job.end);
#define HORUS_PUT(from, to, field) Put(to.field, row, from.field);
  HORUS_EACH_FIELD(HORUS_PUT, job, columns, start_us, end_us, ran_us, failures, out_of_memory, preemptions, migrations,
                   interruptions, restarts)
#undef HORUS_PUT
  Put(columns.work_us, row, MicrosecondsOf(job.sums.done));
  Put(columns.undisturbed_us, row, MicrosecondsOf(job.sums.undisturbed));
  Put(columns.backlog_us, row, MicrosecondsOf(job.sums.backlogged));
  Put(columns.lost_us, row, MicrosecondsOf(job.lost));
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_sim_run(const horus_trace* trace, const horus_profile_demands* beliefs, const horus_truth* truth,
                           const horus_cluster* cluster, horus_placer* placer, const horus_sim_options* options,
                           horus_sim_observer observer, horus_progress progress, void* user, horus_sim_result** out,
                           horus_error* error) {
  return Guard(error, [&] {
    HORUS_RETURN_IF_ERROR(
        Require({{trace, "trace"}, {truth, "truth"}, {cluster, "cluster"}, {placer, "placer"}, {out, "out"}}));
    return Give(Play({*trace, beliefs, *truth, options, observer, progress, user}, *cluster, *placer), out);
  });
}

void horus_sim_result_free(horus_sim_result* result) { delete result; }

uint64_t horus_sim_result_bytes_held(const horus_sim_result* result) {
  if (result == nullptr) return 0;
  const SimResult& value = result->value;
  return sizeof *result + BytesOf(*result->trace) + value.jobs.capacity() * sizeof(SimJob) +
         value.took_us.capacity() * sizeof(float);
}

horus_status horus_sim_result_get_metrics(const horus_sim_result* result, const horus_sim_window* window,
                                          horus_sim_metrics* metrics, horus_error* error) {
  return Guard(error, {{result, "result"}}, [&] {
    HORUS_RETURN_IF_ERROR(CheckOutput(metrics));
    HORUS_ASSIGN_OR_RETURN(const MetricsOptions options, WindowFromC(window));
    WriteStruct(ToC(MetricsOf(*result->trace, result->value, options)), metrics);
    return absl::OkStatus();
  });
}

horus_status horus_sim_result_get_model(const horus_sim_result* result, horus_interference** out, horus_error* error) {
  return Guard(error, {{result, "result"}, {out, "out"}}, [&] {
    if (result->learned == nullptr)
      return InvalidArgument("result: expected one of a simulation that learned, found learns of 0");
    return Give(new horus_interference{result->learned, result->catalogue, {}}, out);
  });
}

horus_status horus_sim_result_jobs(const horus_sim_result* result, const horus_sim_jobs* jobs, size_t* count,
                                   horus_error* error) {
  return Guard(error, {{result, "result"}, {count, "count"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const horus_sim_jobs columns, ReadStruct(jobs));
    const std::vector<SimJob>& all = result->value.jobs;
    return WriteRows(all.size(), columns.capacity, count,
                     [&](size_t i) { PutJob(result->trace->jobs[i], all[i], i, columns); });
  });
}

horus_status horus_sim_result_backlog_work(const horus_sim_result* result, size_t capacity, double* gpu_s,
                                           size_t* count, horus_error* error) {
  return Guard(error, {{result, "result"}, {count, "count"}}, [&] {
    HORUS_RETURN_IF_ERROR(RequireColumn(gpu_s, "gpu_s", capacity));
    const std::vector<double> work = BacklogWork(*result->trace, result->value);
    HORUS_ASSIGN_OR_RETURN(const size_t rows, RowsToWrite(work.size(), capacity, count));
    std::copy_n(work.begin(), rows, gpu_s);
    *count = work.size();
    return absl::OkStatus();
  });
}

horus_status horus_sim_result_decision_times(const horus_sim_result* result, size_t capacity, float* took_us,
                                             size_t* count, double* spread, horus_error* error) {
  return Guard(error, {{result, "result"}, {count, "count"}}, [&] {
    const std::vector<float>& all = result->value.took_us;
    HORUS_ASSIGN_OR_RETURN(const size_t rows, RowsToWrite(all.size(), took_us == nullptr ? 0 : capacity, count));
    const Spread times = DecisionTimes(result->value);
    std::copy_n(all.begin(), rows, took_us);
    if (spread != nullptr) PutMetric(times, spread);
    *count = all.size();
    return absl::OkStatus();
  });
}

horus_status horus_truth_from_model(const horus_catalogue* catalogue, const horus_interference* model,
                                    const horus_profile_demands* demands, horus_truth** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] { return Give(FromModel(CatalogueOf(catalogue), model, demands), out); });
}

horus_status horus_truth_from_speeds(const horus_catalogue* catalogue, const horus_speeds* speeds, int32_t many,
                                     horus_truth** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] { return Give(FromSpeeds(CatalogueOf(catalogue), speeds, many), out); });
}

horus_status horus_truth_with_sensitivities(const horus_truth* truth, const horus_profile_sensitivities* sensitivities,
                                            horus_truth** out, horus_error* error) {
  return Guard(error, {{truth, "truth"}, {out, "out"}}, [&] {
    auto sensitive = std::make_unique<horus_truth>(*truth);
    HORUS_ASSIGN_OR_RETURN(sensitive->sensitivities, SensitivitiesFromC(sensitivities));
    return Give(sensitive.release(), out);
  });
}

void horus_truth_free(horus_truth* truth) { delete truth; }

uint64_t horus_truth_bytes_held(const horus_truth* truth) {
  if (truth == nullptr) return 0;
  const SpeedTable& table = truth->speeds.table;
  uint64_t bytes = sizeof *truth + table.alone.capacity() * sizeof(double);
  bytes += table.pairs.capacity() * sizeof(PairSpeed) + truth->types.capacity() * sizeof(GpuTypeId);
  for (const auto& [profile, all] : truth->demands)
    bytes += profile.capacity() + sizeof all + all.capacity() * sizeof(TypeDemand);
  for (const auto& [profile, matrix] : truth->sensitivities) {
    bytes += profile.capacity() + sizeof matrix + sizeof(Sensitivity);
    bytes += matrix.get()->speeds().size_bytes() + matrix.get()->cpu_milli().size_bytes();
    bytes += matrix.get()->mem_mib().size_bytes();
  }
  for (const auto* names : {&table.profiles, &table.gpus}) {
    for (const std::string& name : *names) bytes += sizeof name + name.capacity();
  }
  return bytes;
}
