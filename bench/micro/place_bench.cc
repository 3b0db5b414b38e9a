// SPDX-License-Identifier: Apache-2.0
// place: time of a decision (plan + apply) and of a release in a busy cluster, beside an exhaustive scan. Parts of
// --only: sizes, unique, classes, bounded, verdicts, gangs, caps.
#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/heap.h"
#include "bench/micro/busy_cluster.h"
#include "bench/rows.h"
#include "place/placer.h"
#include "place/policies/policies.h"

namespace horus::bench {
namespace {

constexpr double kWarmP50AimUs = 8, kWarmP99AimUs = 80, kColdP50AimUs = 100, kReleaseAimUs = 5, kGrowthAim = 3;
constexpr double kIndexAimMib = 256, kStateAimBytes = 200, kUniqueAimUs = 60, kUniquePairsAimUs = 1'000,
                 kGangAimUs = 800, kMillionP50AimUs = 15;
constexpr double kVerdictsAimUs = 30, kVerdictsFirstAimUs = 400, kBoundedAimUs = 100;
constexpr double kCapsAim = 2;         // times the refusal of the same job without caps
constexpr float kServiceBound = 1.2f;  // as users get it without one
constexpr uint32_t kMaxCandidates = 64;

struct Times {
  std::vector<double> decide_us;
  std::vector<double> release_us;
  std::vector<double> both_us;
  double allocations = 0;
  int64_t placed = 0;
  uint64_t placer_bytes = 0;
};

// Churn: place a new job, then release a random resident.
Times Churn(Setting setting, const Shape& shape, int warm_up, int decisions) {
  const auto placer = MakePlacer(shape);
  Times times;
  for (int i = 0; i < decisions + warm_up; ++i) {
    const JobSpec job = MakeJob(setting.types, (JobId{1} << 40) + static_cast<JobId>(i), shape.profiles);
    if (i == warm_up) times = Times();
    ResetHeapUse();
    const double start = NowUs();
    const Plan plan = Must(placer->MakePlan(setting.cluster, {&job, 1}));
    Must(setting.cluster.Apply(plan));
    times.decide_us.push_back(NowUs() - start);
    times.allocations += static_cast<double>(CurrentHeapUse().allocations);
    if (plan.decisions.front().verdict == Verdict::kPlace) {
      ++times.placed;
      setting.residents.push_back(job.id);
    }
    const size_t victim = Draw(static_cast<uint64_t>(i) * 11 + 5, setting.residents.size());
    const double release = NowUs();
    Must(setting.cluster.Release(setting.residents[victim]));
    times.release_us.push_back(NowUs() - release);
    times.both_us.push_back(times.decide_us.back() + times.release_us.back());
    setting.residents[victim] = setting.residents.back();
    setting.residents.pop_back();
  }
  times.placer_bytes = placer->bytes_held();
  return times;
}

double Median(const std::vector<double>& values) { return Quantile(values, 0.5); }
double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(std::max<size_t>(values.size(), 1));
}

struct Bench {
  const Options& options;
  std::vector<Row>& rows;
  double p50_smallest = 0;

  void Add(const std::string& metric, double value, const char* unit, double aim, const std::string& baseline,
           const std::string& protocol, bool lower = true) {
    rows.push_back({metric, value, unit, aim, lower, baseline, protocol});
  }
  void Size(int32_t gpus, bool last);
  void Unique(int32_t gpus);
  void Classes(int32_t gpus);
  void Bounded(int32_t gpus);
  void Gangs(int32_t gpus);
  void Caps(int32_t gpus);
  void Verdicts(int32_t nodes);
};

std::string NameOf(int32_t gpus) {
  return gpus >= 1000 ? absl::StrFormat("%dk", gpus / 1000) : absl::StrFormat("%d", gpus);
}

std::string Protocol(const Shape& shape, int warm_up, size_t decisions) {
  return absl::StrFormat(
      "%d GPUs, 8 a node, 5 types, 80 %% of 3 slots a GPU taken, %s, one-GPU jobs, slowdown bound %g, policy horus, "
      "model %s, plan + apply, then a release; %d decisions after %d",
      shape.gpus, shape.profiles == 0 ? "every job its own profile" : absl::StrFormat("%d profiles", shape.profiles),
      kBound, shape.model, decisions, warm_up);
}

void Bench::Size(int32_t gpus, bool last) {
  const std::string size = NameOf(gpus);
  Shape shape{.gpus = gpus};
  const Setting setting = MakeSetting(shape);
  const int decisions = options.smoke ? 50 : 100'000;
  const Times cold = Churn(setting, shape, 0, decisions);
  const int warm_up = options.smoke ? 50 : 20'000;
  const Times warm = Churn(setting, shape, warm_up, decisions);
  shape.terse = true;
  const Times terse = Churn(setting, shape, warm_up, decisions);
  shape.terse = false;
  shape.exhaustive = true;
  const Times scan = Churn(setting, shape, 0, options.smoke ? 5 : std::max(5, 400'000 / gpus));
  const std::string protocol = Protocol(shape, warm_up, warm.decide_us.size());
  const double p50 = Median(warm.decide_us);
  if (p50_smallest == 0) p50_smallest = p50;
  const double p50_aim = gpus >= 1'000'000 ? kMillionP50AimUs : last ? kWarmP50AimUs : 0;
  Add("place_p50_us_" + size, p50, "us", p50_aim, absl::StrFormat("exhaustive scan %.4g us", Median(scan.decide_us)),
      protocol);
  Add("place_p99_us_" + size, Quantile(warm.decide_us, 0.99), "us", last ? kWarmP99AimUs : 0,
      absl::StrFormat("exhaustive scan %.4g us", Quantile(scan.decide_us, 0.99)), protocol);
  Add("place_terse_p99_us_" + size, Quantile(terse.decide_us, 0.99), "us", 0,
      absl::StrFormat("p50 %.4g us", Median(terse.decide_us)), protocol + "; jobs that wait are not told why");
  Add("place_speedup_over_scan_" + size, Median(scan.decide_us) / p50, "ratio", 0, "", protocol, false);
  Add("place_cold_p50_us_" + size, Median(cold.decide_us), "us", last ? kColdP50AimUs : 0, "",
      Protocol(shape, 0, cold.decide_us.size()));
  Add("place_cold_p99_us_" + size, Quantile(cold.decide_us, 0.99), "us", 0, "",
      Protocol(shape, 0, cold.decide_us.size()));
  Add("release_p50_us_" + size, Median(warm.release_us), "us", last ? kReleaseAimUs : 0, "", protocol);
  Add("place_and_release_p50_us_" + size, Median(warm.both_us), "us", 0, "", protocol);
  Add("place_allocations_per_decision_" + size, warm.allocations / static_cast<double>(warm.decide_us.size()), "1", 0,
      "", protocol);
  Add("placed_share_" + size, static_cast<double>(warm.placed) / static_cast<double>(warm.decide_us.size()), "ratio", 0,
      "", protocol, false);
  Add("place_index_mib_" + size, static_cast<double>(warm.placer_bytes) / (1 << 20), "MiB", last ? kIndexAimMib : 0, "",
      protocol);
  Add("state_bytes_per_gpu_" + size, static_cast<double>(setting.cluster.bytes_held()) / gpus, "B", kStateAimBytes, "",
      protocol);
  if (last) Add("place_growth_1k_100k", p50 / p50_smallest, "ratio", kGrowthAim, "", protocol);
}

// The hard case: no two jobs alike, so nothing that was learned of one serves another.
void Bench::Unique(int32_t gpus) {
  Shape shape{.gpus = gpus, .profiles = 0};
  const Setting setting = MakeSetting(shape);
  for (const std::string model : {"utilisation", "horus", "boosted", "iapp"}) {
    shape.model = model;
    shape.exhaustive = false;
    const bool loads = model == "utilisation";  // the others ask about pairs
    const int decisions = options.smoke ? 5 : loads ? 2'000 : 300;
    const Times times = Churn(setting, shape, 1, decisions);
    shape.exhaustive = true;
    const Times scan = Churn(setting, shape, 0, options.smoke ? 2 : 5);
    Add(absl::StrFormat("place_unique_%sp50_us_%s", loads ? "" : model + "_", NameOf(gpus)), Median(times.decide_us),
        "us", loads ? kUniqueAimUs : kUniquePairsAimUs,
        absl::StrFormat("exhaustive scan %.4g us", Median(scan.decide_us)), Protocol(shape, 1, times.decide_us.size()));
  }
}

// Between unlike jobs and well-known ones: so many classes that much has changed when one comes again.
void Bench::Classes(int32_t gpus) {
  for (const uint64_t profiles : {uint64_t{1000}, uint64_t{5000}}) {
    const Shape shape{.gpus = gpus, .profiles = profiles};
    const int decisions = options.smoke ? 5 : 5'000;
    const Times times = Churn(MakeSetting(shape), shape, decisions, decisions);
    Add(absl::StrFormat("place_%d_profiles_mean_us_%s", profiles, NameOf(gpus)), Mean(times.decide_us), "us", 0,
        absl::StrFormat("p50 %.4g, p99 %.4g us", Median(times.decide_us), Quantile(times.decide_us, 0.99)),
        Protocol(shape, decisions, times.decide_us.size()));
  }
}

// The bounded search on the same cluster: its time, and what its choices cost more than the exact ones.
void Bench::Bounded(int32_t gpus) {
  Shape shape{.gpus = gpus, .profiles = 0};
  const Setting setting = MakeSetting(shape);
  const auto exact = MakePlacer(shape);
  shape.max_candidates = kMaxCandidates;
  const Times times = Churn(setting, shape, 1, options.smoke ? 5 : 2'000);
  const auto bounded = MakePlacer(shape);
  std::vector<double> regret, exact_us;
  for (int i = 0; i < (options.smoke ? 5 : 100); ++i) {
    const JobSpec job = MakeJob(setting.types, (JobId{1} << 41) + static_cast<JobId>(i), shape.profiles);
    const double start = NowUs();
    const Plan best = Must(exact->MakePlan(setting.cluster, {&job, 1}));
    exact_us.push_back(NowUs() - start);
    if (best.decisions[0].verdict != Verdict::kPlace) continue;
    const Plan found = Must(bounded->MakePlan(setting.cluster, {&job, 1}));
    regret.push_back(found.decisions[0].winner.cost - best.decisions[0].winner.cost);
  }
  const std::string protocol = Protocol(shape, 1, times.decide_us.size());
  const std::string candidates = absl::StrFormat("; %d candidates", kMaxCandidates);
  Add("place_bounded_p50_us_" + NameOf(gpus), Median(times.decide_us), "us", kBoundedAimUs,
      absl::StrFormat("exact %.4g us, plan alone", Median(exact_us)), protocol + candidates);
  Add("place_bounded_p99_us_" + NameOf(gpus), Quantile(times.decide_us, 0.99), "us", 0, "", protocol + candidates);
  Add("place_bounded_regret_" + NameOf(gpus), Mean(regret), "jobs", 0,
      absl::StrFormat("p95 %.3g, worst %.3g", Quantile(regret, 0.95), Quantile(regret, 1)),
      absl::StrFormat("what a decision costs more than the exact one, in work; %d jobs, each alone in that cluster",
                      regret.size()) +
          candidates);
}

// A gang of 64 GPUs that sends gradients: placed, then released, with a one-GPU job coming and going between two.
struct GangShape {
  const char* name;
  int32_t tasks;
  int32_t gpus_per_task;
};
constexpr GangShape kGangs[] = {{"gang64", 8, 8}, {"gang64_by_1", 64, 1}};

JobSpec MakeGang(const std::vector<GpuTypeId>& types, JobId id, const GangShape& gang) {
  JobSpec job = MakeJob(types, id, kProfiles);
  job.cpu_milli = 2000 * gang.gpus_per_task;
  job.mem_mib = 8192 * gang.gpus_per_task;
  job.tasks = gang.tasks;
  job.gpus_per_task = gang.gpus_per_task;
  const auto gradient_mib = static_cast<int64_t>(100 + Draw(job.demands[0].demand.profile_id, 900));
  for (TypeDemand& on : job.demands) on.demand.gradient_mib = gradient_mib;
  return job;
}

Times ChurnGangs(Setting setting, const Shape& shape, const GangShape& gang, int decisions) {
  const auto placer = MakePlacer(shape);
  Times times;
  for (int i = 0; i < decisions; ++i) {
    const JobSpec one = MakeJob(setting.types, (JobId{1} << 40) + static_cast<JobId>(i), shape.profiles);
    const Plan small = Must(placer->MakePlan(setting.cluster, {&one, 1}));
    Must(setting.cluster.Apply(small));
    if (!small.actions.empty()) Must(setting.cluster.Release(one.id));
    const JobSpec job = MakeGang(setting.types, (JobId{1} << 41) + static_cast<JobId>(i), gang);
    const double start = NowUs();
    const Plan plan = Must(placer->MakePlan(setting.cluster, {&job, 1}));
    Must(setting.cluster.Apply(plan));
    times.decide_us.push_back(NowUs() - start);
    if (plan.actions.empty()) continue;
    ++times.placed;
    Must(setting.cluster.Release(job.id));
  }
  return times;
}

void Bench::Gangs(int32_t gpus) {
  Shape shape{.gpus = gpus, .idle_every = kIdleEvery};
  const Setting setting = MakeSetting(shape);
  for (const GangShape& gang : kGangs) {
    shape.exhaustive = false;
    const Times times = ChurnGangs(setting, shape, gang, options.smoke ? 3 : 1000);
    shape.exhaustive = true;
    const Times scan = ChurnGangs(setting, shape, gang, options.smoke ? 1 : 3);
    const std::string protocol = absl::StrFormat(
        "%d GPUs, 8 a node, 5 types, 80 %% of 3 slots a GPU taken but every 50th node idle, 200 profiles, gangs of %d "
        "tasks x %d GPUs with gradients, slowdown bound %g, policy horus, model %s, plan + apply, a one-GPU job "
        "between "
        "two; %d decisions",
        gpus, gang.tasks, gang.gpus_per_task, kBound, shape.model, times.decide_us.size());
    Add(absl::StrFormat("place_%s_us_%s", gang.name, NameOf(gpus)), Median(times.decide_us), "us", kGangAimUs,
        absl::StrFormat("exhaustive scan %.4g us", Median(scan.decide_us)), protocol);
    Add(absl::StrFormat("place_%s_p99_us_%s", gang.name, NameOf(gpus)), Quantile(times.decide_us, 0.99), "us", 0, "",
        protocol);
    Add(absl::StrFormat("place_%s_placed_share_%s", gang.name, NameOf(gpus)),
        static_cast<double>(times.placed) / static_cast<double>(times.decide_us.size()), "ratio", 0, "", protocol,
        false);
  }
}

// A service on each GPU under MPS; trainers come, each released before the next.
void Bench::Caps(int32_t gpus) {
  Setting setting;
  setting.types = {Must(setting.catalogue->Find("a100-40gb"))};
  JobId id = 0;
  for (NodeId n = 0; n < static_cast<NodeId>(gpus / kGpusPerNode); ++n) {
    NodeSpec node{.id = n, .cpu_milli = 96'000, .mem_mib = 768 * 1024};
    node.devices.assign(kGpusPerNode, DeviceSpec{.type = setting.types[0], .mode = SharingMode::kMps});
    Must(setting.cluster.AddNode(node));
    for (int32_t device = 0; device < kGpusPerNode; ++device) {
      JobSpec service = MakeJob(setting.types, ++id, kProfiles);
      service.kind = JobKind::kInference;
      service.slowdown_bound = kServiceBound;
      service.slowdown_confidence = 0.5f;  // caps have no narrow bounds: nobody measured them
      const Slot slot{.node = n, .device = device};
      Must(setting.cluster.Adopt(service, {&slot, 1}).status());
    }
  }
  std::vector<double> without_us, with_us, refused_us;
  size_t admitted = 0, fitting = 0;
  const int jobs = options.smoke ? 20 : 2000;
  for (const bool sm_caps : {false, true}) {
    const auto placer = Must(Placer::Create(Must(MakeInterferenceModel(kDefaultInterferenceModel)),
                                            Must(MakePolicy("horus")), {.sm_caps = sm_caps}));
    for (int i = -jobs / 4; i < jobs; ++i) {
      const JobSpec job = MakeJob(setting.types, ++id, kProfiles);
      const double start = NowUs();
      const Plan plan = Must(placer->MakePlan(setting.cluster, {&job, 1}));
      const double us = NowUs() - start;
      if (!plan.actions.empty()) {
        Must(setting.cluster.Apply(plan));
        Must(setting.cluster.Release(job.id));
      }
      if (i < 0) continue;
      const bool capped = plan.decisions[0].sm_cap_pct > 0;
      if (!sm_caps) (plan.actions.empty() ? refused_us : without_us).push_back(us);
      if (sm_caps && capped) with_us.push_back(us);
      (sm_caps ? admitted : fitting) += plan.actions.empty() ? 0 : 1;
    }
  }
  const std::string protocol = absl::StrFormat(
      "%d a100-40gb under MPS, on each a service with a bound of %g at the estimates; trainers of %d profiles, plan "
      "alone; %d decisions",
      gpus, kServiceBound, kProfiles, jobs);
  Add("place_capped_times_refused", Median(with_us) / std::max(1e-9, Median(refused_us)), "ratio", kCapsAim,
      absl::StrFormat("refused %.4g us, of those that need no cap %.4g us", Median(refused_us), Median(without_us)),
      protocol);
  Add("place_caps_admitted_share", static_cast<double>(admitted) / jobs, "ratio", 0,
      absl::StrFormat("without caps %.3g", static_cast<double>(fitting) / jobs), protocol, /*lower=*/false);
}

// The filter and score steps of a scheduler: one job against many nodes, a placement between two.
void Bench::Verdicts(int32_t nodes) {
  const Shape shape{.gpus = nodes * kGpusPerNode};
  Setting setting = MakeSetting(shape);
  const auto placer = MakePlacer(shape);
  std::vector<NodeId> ids;
  for (int32_t n = 0; n < nodes; ++n) ids.push_back(static_cast<NodeId>(n));
  const auto ask = [&](const JobSpec& job) {
    const Plan plan = Must(placer->MakePlan(setting.cluster, {&job, 1}));
    Must(setting.cluster.Apply(plan));
    const double start = NowUs();
    (void)Must(placer->Verdicts(setting.cluster, job, ids));
    return NowUs() - start;
  };
  // The obvious alternative: a plan for each node.
  const auto one_by_one = [&](const JobSpec& job) {
    const double start = NowUs();
    for (const NodeId& node : ids) (void)Must(placer->MakePlan(setting.cluster, {&job, 1}, std::span(&node, 1)));
    return NowUs() - start;
  };
  std::vector<double> first, again, any, plans;
  const uint64_t rounds = options.smoke ? 3 : 3 * kProfiles;
  JobId id = JobId{1} << 40;
  for (uint64_t i = 0; i < rounds; ++i) {
    const double us = ask(MakeJob(setting.types, ++id, kProfiles));
    (i < kProfiles / 4 ? first : any).push_back(us);  // most profiles come first then
    JobSpec same = MakeJob(setting.types, 1, kProfiles);
    same.id = ++id;
    again.push_back(ask(same));
    same.id = ++id;
    if (plans.size() < 3) plans.push_back(one_by_one(same));
  }
  const std::string protocol = absl::StrFormat(
      "one-GPU job against %d nodes of 8 GPUs, 5 types, 80 %% of 3 slots a GPU taken, policy horus, model %s, a "
      "placement between two; median",
      nodes, shape.model);
  const std::string baseline = absl::StrFormat("a plan for each node %.4g us", Median(plans));
  const auto add = [&](const char* which, const std::vector<double>& us, double aim, const std::string& jobs) {
    if (us.empty()) return;
    Add(absl::StrFormat("verdicts%s_us_%d_nodes", which, nodes), Median(us), "us", aim, baseline, protocol + jobs);
  };
  add("", again, kVerdictsAimUs, ", always the same profile");
  add("_any_profile", any, 0, absl::StrFormat(", %d profiles", kProfiles));
  add("_first", first, kVerdictsFirstAimUs, ", most profiles for the first time");
}

void Measure(const Options& options, std::vector<Row>* rows) {
  Bench bench{options, *rows};
  const int32_t large = options.smoke ? 128 : 100'000;  // most aims are for this size
  const std::vector<int32_t> sizes =
      options.smoke ? std::vector<int32_t>{large} : std::vector<int32_t>{1'000, 10'000, large, 1'000'000};
  const auto wanted = [&](std::string_view part) { return options.only.empty() || options.only == part; };
  for (const int32_t gpus : sizes) {
    if (wanted("sizes")) bench.Size(gpus, gpus == large);
  }
  if (wanted("unique")) bench.Unique(large);
  if (wanted("classes")) bench.Classes(large);
  if (wanted("bounded")) bench.Bounded(large);
  if (wanted("verdicts")) bench.Verdicts(options.smoke ? 16 : 5'000);
  if (wanted("gangs")) bench.Gangs(large);
  if (wanted("caps")) bench.Caps(large);
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
