// SPDX-License-Identifier: Apache-2.0
// place: time of a decision (plan + apply) and of a release in a busy cluster, beside an exhaustive scan.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "bench/heap.h"
#include "bench/rows.h"
#include "device/catalogue.h"
#include "interference/registry.h"
#include "place/cluster.h"
#include "place/placer.h"

namespace horus::bench {
namespace {

// The shape of the workload: GPUs per node, GPU types, tenants per GPU, share of the slots taken, job profiles.
constexpr int32_t kGpusPerNode = 8;
constexpr const char* kGpuTypes[] = {"k80", "p100-sxm2-16gb", "v100-sxm2-32gb", "a100-40gb", "h100-sxm"};
constexpr int32_t kTenants = 3;
constexpr double kFill = 0.8;
constexpr uint64_t kProfiles = 200;

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "place: %s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}
void Must(const absl::Status& status) {
  if (!status.ok()) Must(absl::StatusOr<int>(status));
}

uint64_t Draw(uint64_t seed, uint64_t range) { return Mix64(seed) % range; }

// One-GPU jobs of 200 profiles: utilisation 5-94 %, memory 0.5-3.4 GiB, so that three fit the smallest GPU.
JobSpec MakeJob(const std::vector<GpuTypeId>& types, JobId id) {
  JobSpec job;
  job.id = id;
  const uint64_t profile = Draw(id, kProfiles);
  for (const GpuTypeId type : types) {
    Demand demand;
    demand.profile_id = profile + 1;
    demand.flags = kDemandGiven;
    const auto util = static_cast<float>(5 + Draw(profile * 31 + 7, 90));
    demand.gpu_util_pct = {util, std::min(100.0f, util + 5)};
    demand.mem_bw_util_pct = {util / 2, util / 2};
    const auto mem = static_cast<int64_t>(512 + Draw(profile * 17 + 3, 3000));
    demand.mem_mib = {mem, mem + mem / 10};
    demand.step_time_us = {100'000, 120'000};
    job.demands.push_back({type, demand});
  }
  return job;
}

Cluster MakeCluster(const std::shared_ptr<const Catalogue>& catalogue, const std::vector<GpuTypeId>& types,
                    int32_t gpus, std::vector<JobId>* residents) {
  Cluster cluster(catalogue);
  const int32_t nodes = gpus / kGpusPerNode;
  for (int32_t n = 0; n < nodes; ++n) {
    NodeSpec node;
    node.id = static_cast<NodeId>(n);
    node.cpu_milli = 96'000;
    node.mem_mib = 768 * 1024;
    node.rack = static_cast<uint64_t>(n / 16);
    const GpuTypeId type = types[Draw(static_cast<uint64_t>(n), types.size())];
    node.devices.assign(kGpusPerNode, DeviceSpec{.type = type});
    Must(cluster.AddNode(node));
  }
  const auto wanted = static_cast<size_t>(kFill * kTenants * gpus);
  std::map<std::pair<NodeId, int32_t>, int> taken;
  for (JobId id = 1; residents->size() < wanted; ++id) {
    const Slot slot{.node = Draw(id * 3, static_cast<uint64_t>(nodes)),
                    .device = static_cast<int32_t>(Draw(id * 5, kGpusPerNode))};
    int& tenants = taken[{slot.node, slot.device}];
    if (tenants == kTenants) continue;
    ++tenants;
    Must(cluster.Adopt(MakeJob(types, id), {&slot, 1}).status());
    residents->push_back(id);
  }
  return cluster;
}

struct Times {
  std::vector<double> decide_us;
  std::vector<double> release_us;
  double allocations = 0;
  int64_t placed = 0;
  double seconds = 0;
};

double MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

// Churn: place a new job, then release a random resident.
Times Churn(Cluster cluster, const std::vector<GpuTypeId>& types, std::vector<JobId> residents, bool exhaustive,
            int decisions) {
  PlacerOptions options;
  options.exhaustive = exhaustive;
  auto placer = Must(Placer::Create(Must(MakeInterferenceModel("utilisation")), Must(MakePolicy("horus")), options));
  Times times;
  const int warm_up = decisions / 10;
  for (int i = 0; i < decisions + warm_up; ++i) {
    const JobSpec job = MakeJob(types, (JobId{1} << 40) + static_cast<JobId>(i));
    if (i == warm_up) times = Times();
    ResetHeapUse();
    const auto start = std::chrono::steady_clock::now();
    const Plan plan = Must(placer->MakePlan(cluster, {&job, 1}));
    Must(cluster.Apply(plan));
    times.decide_us.push_back(MicrosecondsSince(start));
    times.allocations += static_cast<double>(CurrentHeapUse().allocations);
    if (plan.decisions.front().verdict == Verdict::kPlace) {
      ++times.placed;
      residents.push_back(job.id);
    }
    const size_t victim = Draw(static_cast<uint64_t>(i) * 11 + 5, residents.size());
    const auto release = std::chrono::steady_clock::now();
    Must(cluster.Release(residents[victim]));
    times.release_us.push_back(MicrosecondsSince(release));
    residents[victim] = residents.back();
    residents.pop_back();
  }
  for (const double us : times.decide_us) times.seconds += us * 1e-6;
  return times;
}

void Measure(const Options& options, std::vector<Row>* rows) {
  const std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  std::vector<GpuTypeId> types;
  for (const char* name : kGpuTypes) types.push_back(Must(catalogue->Find(name)));
  std::sort(types.begin(), types.end());
  const std::vector<int32_t> sizes = options.smoke ? std::vector<int32_t>{128} : std::vector<int32_t>{1'000, 10'000};
  for (const int32_t gpus : sizes) {
    std::vector<JobId> residents;
    const Cluster cluster = MakeCluster(catalogue, types, gpus, &residents);
    const int decisions = options.smoke ? 50 : 20'000;
    const int scans = options.smoke ? 5 : 4'000'000 / gpus;
    const Times scan = Churn(cluster, types, residents, true, scans);
    const Times ours = Churn(cluster, types, residents, false, decisions);
    const std::string size = gpus >= 1000 ? absl::StrFormat("%dk", gpus / 1000) : absl::StrFormat("%d", gpus);
    const std::string protocol = absl::StrFormat(
        "%d GPUs, 8 a node, 5 types, 80 %% of 3 slots a GPU taken, 200 profiles, one-GPU jobs, policy horus, model "
        "utilisation, plan + apply, churn of %d decisions",
        gpus, decisions);
    const double scan_p50 = Quantile(scan.decide_us, 0.5);
    const double p50 = Quantile(ours.decide_us, 0.5);
    const std::string beside = absl::StrFormat("exhaustive scan %.4g us", scan_p50);
    const auto add = [&](const char* metric, double value, const char* unit, bool lower, const std::string& baseline) {
      rows->push_back({metric + ("_" + size), value, unit, 0, lower, baseline, protocol});
    };
    add("place_p50_us", p50, "us", true, beside);
    add("place_p99_us", Quantile(ours.decide_us, 0.99), "us", true,
        absl::StrFormat("exhaustive scan %.4g us", Quantile(scan.decide_us, 0.99)));
    add("place_decisions_per_s", static_cast<double>(ours.decide_us.size()) / ours.seconds, "1/s", false,
        absl::StrFormat("exhaustive scan %.4g 1/s", static_cast<double>(scan.decide_us.size()) / scan.seconds));
    add("place_speedup_over_scan", scan_p50 / p50, "ratio", false, "");
    add("place_allocations_per_decision", ours.allocations / static_cast<double>(ours.decide_us.size()), "1", true, "");
    add("release_p50_us", Quantile(ours.release_us, 0.5), "us", true, "");
    add("placed_share", static_cast<double>(ours.placed) / static_cast<double>(ours.decide_us.size()), "ratio", false,
        "");
    add("state_bytes_per_gpu", static_cast<double>(cluster.bytes_held()) / gpus, "B", true, "");
  }
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
