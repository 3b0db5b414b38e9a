// SPDX-License-Identifier: Apache-2.0
// interference_speed: time and allocations of an interference query, of the placer's memo, of taking observations and
// of learning from them.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "bench/heap.h"
#include "bench/must.h"
#include "bench/rows.h"
#include "device/catalogue.h"
#include "interference/corrected_model.h"
#include "interference/observed_slowdowns.h"
#include "interference/registry.h"
#include "place/placer.h"
#include "place/policies/policies.h"
#include "place/search/scorer.h"

namespace horus::bench {
namespace {

using ModelPtr = std::shared_ptr<const InterferenceModel>;

constexpr const char* kSeenType = "v100-sxm2-16gb";  // the built-in models have learned from it
constexpr const char* kUnseenType = "h100-sxm";      // they have not
constexpr const char* kAlternative = "utilisation";
constexpr size_t kMostTenants = 4;
constexpr size_t kJobs = 8;  // what queries draw their tenants from
constexpr double kQueryAimUs = 20, kMemoAimNs = 200, kObservationsAimS = 2;

// This thread's own seconds: what else a shared machine does is not its matter.
template <typename Body>
double Seconds(Body&& body) {
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  body();
  return now() - start;
}

double Between(uint64_t seed, double low, double high) {
  return low + (high - low) * static_cast<double>(Mix64(seed) >> 11) / 9007199254740992.0;  // 2^53
}

// A training job: busy 15-95 %, steps of 10-400 ms with 150-2,500 kernels, roofline shares that add up to 1.
Demand MakeDemand(uint64_t job) {
  const auto draw = [job](uint64_t what, double low, double high) {
    return static_cast<float>(Between(job * 64 + what, low, high));
  };
  Demand demand;
  demand.profile_id = job + 1;
  const float util = draw(1, 15, 95), bandwidth = util * draw(2, 0.1, 0.7);
  demand.gpu_util_pct = {util, std::min(100.0f, util + 8)};
  demand.mem_bw_util_pct = {bandwidth, std::min(100.0f, bandwidth * 1.3f)};
  demand.mem_mib = {2'000, 2'200};
  const auto step_us = static_cast<int64_t>(draw(3, 10'000, 400'000));
  demand.step_time_us = {step_us, step_us * 5 / 4};
  demand.operator_us = draw(4, 30, 900);
  const float compute = draw(5, 0.1f, 0.8f), launch = (1 - compute) * draw(6, 0.05f, 0.6f);
  demand.traits = {draw(7, 10, 13),      draw(8, 8, 11), draw(9, 2.2f, 3.4f),   compute,
                   1 - compute - launch, launch,         draw(10, 0.6f, 0.99f), draw(11, 0.3f, 1)};
  return demand;
}

std::vector<Demand> MakeDemands(size_t count) {
  std::vector<Demand> demands;
  for (size_t i = 0; i < count; ++i) demands.push_back(MakeDemand(i));
  return demands;
}

struct QueryCost {
  double us = 0;
  double allocations = 0;
};

// Median over rounds of as many queries as there are demands, each with tenants of its own.
QueryCost AskModel(const InterferenceModel& model, GpuTypeId type, const std::vector<Demand>& demands, size_t tenants,
                   int rounds) {
  std::vector<const Demand*> ring;
  for (size_t i = 0; i < demands.size() + kMostTenants; ++i) ring.push_back(&demands[i % demands.size()]);
  std::vector<Slowdown> out(tenants);
  const DeviceContext device{.type = type};
  const auto round = [&] {
    for (size_t i = 0; i < demands.size(); ++i) {
      Must(model.Predict(device, std::span(ring).subspan(i, tenants), out));
    }
  };
  round();
  ResetHeapUse();
  round();
  const auto queries = static_cast<double>(demands.size());
  const double allocations = static_cast<double>(CurrentHeapUse().allocations) / queries;
  std::vector<double> us;
  for (int i = 0; i < rounds; ++i) us.push_back(Seconds(round) * 1e6 / queries);
  return {Quantile(us, 0.5), allocations};
}

struct Bench {
  const Options& options;
  std::vector<Row>& rows;
  std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  GpuTypeId seen = Must(catalogue->Find(kSeenType));
  int rounds = options.smoke ? 3 : 2'000;

  void Cold(const std::vector<Demand>& demands);
  void Corrected();
  void Memo(const std::vector<Demand>& demands);
  void Take(size_t distinct, const char* metric, double aim);
  void Commit(size_t situations);
};

void Bench::Cold(const std::vector<Demand>& demands) {
  const ModelPtr plain = Must(MakeInterferenceModel(kAlternative));
  for (const char* gpu : {kSeenType, kUnseenType}) {
    const GpuTypeId type = Must(catalogue->Find(gpu));
    for (size_t tenants = 2; tenants <= kMostTenants; ++tenants) {
      const QueryCost beside = AskModel(*plain, type, demands, tenants, rounds);
      for (const std::string_view name : InterferenceModelNames()) {
        const QueryCost cost = AskModel(*Must(MakeInterferenceModel(name)), type, demands, tenants, rounds);
        const bool headline = tenants == 3 && name == kDefaultInterferenceModel && gpu == kSeenType;
        const std::string suffix = headline ? "" : absl::StrFormat("/%s/%s", name, gpu);
        const std::string protocol = absl::StrFormat(
            "model %s on %s, %d tenants of %d jobs it has not seen, processor caches warm, own time of the thread, "
            "median of %d rounds",
            std::string(name), gpu, tenants, kJobs, rounds);
        rows.push_back({absl::StrFormat("interference_cold_%d_us%s", tenants, suffix), cost.us, "us",
                        headline ? kQueryAimUs : 0, true, absl::StrFormat("%s %.3g us", kAlternative, beside.us),
                        protocol});
        rows.push_back({absl::StrFormat("interference_allocations_%d%s", tenants, suffix), cost.allocations, "1", 0,
                        true, absl::StrFormat("%s %.3g", kAlternative, beside.allocations), protocol});
      }
    }
  }
}

// The first `count` ordered two of as few jobs as have so many, a job beside itself among them.
struct Pairs {
  std::vector<Demand> demands;
  size_t count;
  explicit Pairs(size_t pairs)
      : demands(MakeDemands(static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(pairs)))))), count(pairs) {}
  void Observe(uint64_t at, ObservedSlowdowns& observed) const {
    const size_t pair = at % count;
    const Demand* const other = &demands[pair % demands.size()];
    Must(observed.Add({.gpu = kSeenType,
                       .victim = &demands[pair / demands.size()],
                       .others = {&other, 1},
                       .slowdown = Between(at, 1, 2.5)}));
  }
};

void Bench::Corrected() {
  constexpr size_t kObservations = 1'000;
  const Pairs pairs(kObservations);
  ObservedSlowdowns observed;
  for (uint64_t i = 0; i < kObservations; ++i) pairs.Observe(i, observed);
  const ModelPtr plain = Must(MakeInterferenceModel(kDefaultInterferenceModel));
  const ModelPtr corrected = Must(CorrectedModel::Commit(plain, observed, *catalogue));
  const int fewer = std::max(3, rounds / 10);
  for (const size_t tenants : {size_t{2}, size_t{3}, size_t{4}}) {
    const QueryCost before = AskModel(*plain, seen, pairs.demands, tenants, fewer);
    const QueryCost after = AskModel(*corrected, seen, pairs.demands, tenants, fewer);
    const std::string protocol = absl::StrFormat(
        "model %s after %d observations of two among %d jobs on %s, %d of them as tenants, median of %d rounds",
        std::string(plain->name()), kObservations, pairs.demands.size(), kSeenType, tenants, fewer);
    rows.push_back({absl::StrFormat("interference_corrected_%d_us", tenants), after.us, "us",
                    tenants == 3 ? kQueryAimUs : 0, true, absl::StrFormat("uncorrected %.3g us", before.us), protocol});
    rows.push_back({absl::StrFormat("interference_corrected_allocations_%d", tenants), after.allocations, "1", 0, true,
                    absl::StrFormat("uncorrected %.3g", before.allocations), protocol});
  }
}

void Bench::Memo(const std::vector<Demand>& demands) {
  StateTable states;
  std::vector<JobSpec> jobs(3);
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].id = i;
    jobs[i].demands = {{seen, demands[i]}};
  }
  DeviceRow device{.type = seen, .mem_mib = 16'384};
  for (size_t i = 1; i < jobs.size(); ++i)
    device.tenants.push_back(states.InternTenant(MakeTenantClass(jobs[i], demands[i])));
  const uint32_t state = states.InternState(device);
  states.Ref(state);
  constexpr FitLimits kLimits{.slowdown_bound = 1e9};  // so that both predictions and the policy are behind a verdict
  const PlacerOptions placer;
  const auto judge = [&](const JobView& view, bool exhaustive, int times) {
    Scorer scorer(Must(MakeInterferenceModel(kDefaultInterferenceModel)), Must(MakePolicy("horus")), kLimits,
                  placer.cache_bytes, exhaustive);
    DeviceVerdict verdict;
    std::vector<double> ns;
    for (int i = 0; i < rounds + 1; ++i) {
      const double seconds = Seconds([&] {
        for (int k = 0; k < times; ++k) {
          scorer.SetJob(view);
          Must(scorer.Judge(states, state, verdict));
        }
      });
      if (i > 0) ns.push_back(seconds * 1e9 / times);
    }
    if (verdict.reason != Reason::kNone) Must(absl::InternalError("the third tenant was refused"));
    return Quantile(ns, 0.5);
  };
  const JobView view = ViewJob(jobs[0]);
  const double anew = judge(view, true, 1);
  rows.push_back(
      {"interference_warm_3_ns", judge(view, false, 1'000), "ns", kMemoAimNs, true,
       absl::StrFormat("judged anew %.3g ns", anew),
       "the memo of the placer: a job of a known class meets a known state of two tenants again; the verdict and "
       "its cost come back, the slowdowns behind them are not kept"});
}

void Bench::Take(size_t distinct, const char* metric, double aim) {
  const uint64_t count = options.smoke ? 1'000 : 1'000'000;
  const Pairs pairs(distinct);
  ObservedSlowdowns observed;
  // Jobs come by in an order that is not that of memory; the step shares no factor with powers of ten.
  constexpr uint64_t kStep = 7'919;
  const double seconds = Seconds([&] {
    for (uint64_t i = 0; i < count; ++i) pairs.Observe(i * kStep, observed);
  });
  struct Mean {
    double weight = 0, mean = 0;
  };
  std::unordered_map<uint64_t, Mean> table;
  const double plain = Seconds([&] {
    for (uint64_t i = 0; i < count; ++i) {
      Mean& mean = table[Mix64(i * kStep % distinct)];
      mean.mean += (std::log(Between(i, 1, 2.5)) - mean.mean) / ++mean.weight;
    }
  });
  rows.push_back(
      {metric, seconds, "s", options.smoke ? 0 : aim, true,
       absl::StrFormat("a mean for each key in an unordered_map %.3g s", plain),
       absl::StrFormat("%d observations of %d distinct situations of two tenants, capacity %d, %.1f MB held after",
                       count, distinct, observed.capacity(), static_cast<double>(observed.bytes_held()) * 1e-6)});
}

void Bench::Commit(size_t situations) {
  const Pairs pairs(situations);
  ObservedSlowdowns observed;
  for (uint64_t i = 0; i < situations; ++i) pairs.Observe(i, observed);
  const ModelPtr plain = Must(MakeInterferenceModel(kDefaultInterferenceModel));
  std::vector<double> ms;
  for (int i = 0; i < (options.smoke ? 1 : 5); ++i) {
    ms.push_back(1e3 * Seconds([&] { Must(CorrectedModel::Commit(plain, observed, *catalogue)); }));
  }
  rows.push_back({absl::StrFormat("commit_%d_ms", situations), Quantile(ms, 0.5), "ms", 0, true, "",
                  absl::StrFormat("%d situations of two among %d jobs on %s, median of %d", situations,
                                  pairs.demands.size(), kSeenType, ms.size())});
}

void Measure(const Options& options, std::vector<Row>* rows) {
  Bench bench{.options = options, .rows = *rows};
  const std::vector<Demand> demands = MakeDemands(kJobs);
  bench.Cold(demands);
  bench.Corrected();
  bench.Memo(demands);
  bench.Take(10'000, "observations_1m_s", kObservationsAimS);
  bench.Take(100'000, "observations_1m_100k_situations_s", 0);
  bench.Commit(1'000);
  if (!options.smoke) bench.Commit(ObservedSlowdowns::kMostCapacity);
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
