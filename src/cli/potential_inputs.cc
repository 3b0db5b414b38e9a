// SPDX-License-Identifier: Apache-2.0
// Reads measured speeds, or has them predicted.
#include "cli/potential_inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/print.h"
#include "interference/host_model.h"
#include "io/sensitivity_file.h"
#include "io/yaml.h"
#include "lab/io/speeds_file.h"
#include "place/appraise.h"
#include "place/state/requests.h"

namespace horus::cli {
namespace {

constexpr int64_t kMostGpusOfType = 1'000'000'000;  // as the bound's problem takes; chosen

// The GPUs of a table by its own names, and by every name that the catalogue has for their types.
struct GpuNames {
  std::span<const std::string> names;
  std::vector<std::optional<GpuTypeId>> types;  // none: the catalogue does not know the table's name
  std::shared_ptr<const Catalogue> catalogue;
};

absl::StatusOr<uint32_t> FindType(const char* option, const std::string& name, const GpuNames& known) {
  const auto at = std::ranges::find(known.names, name);
  if (at != known.names.end()) return static_cast<uint32_t>(at - known.names.begin());
  const std::vector<std::string_view> names(known.names.begin(), known.names.end());
  const std::optional<GpuTypeId> type = known.catalogue->FindKnown(name);
  if (!type) return InvalidArgument("%s: %s", option, ExpectedOneOf(names, name));
  const auto first = std::ranges::find(known.types, type);
  if (std::count(first, known.types.end(), type) == 1) return static_cast<uint32_t>(first - known.types.begin());
  return InvalidArgument("%s: expected one of %s, found %s, %s", option, Listed(names), Quoted(name),
                         first == known.types.end() ? "which is none of them" : "which is several of them");
}

// One GPU of each type where nothing is said.
absl::StatusOr<std::vector<double>> CountGpus(const std::vector<std::string>& options, const GpuNames& known) {
  if (options.empty()) return std::vector<double>(known.names.size(), 1);
  std::vector<double> gpus(known.names.size(), 0);
  for (const std::string& option : options) {
    const size_t equals = option.rfind('=');
    const int64_t count = equals == std::string::npos ? 1 : ParseNumber<int64_t>(option.substr(equals + 1)).value_or(0);
    if (count < 1 || count > kMostGpusOfType) {
      return InvalidArgument("--gpus: expected TYPE=N with N from 1 to %d, or TYPE for one, found %s", kMostGpusOfType,
                             Quoted(option));
    }
    HORUS_ASSIGN_OR_RETURN(const uint32_t gpu, FindType("--gpus", option.substr(0, equals), known));
    if (gpus[gpu] > 0) return InvalidArgument("--gpus: expected each type once, found %s again", Quoted(option));
    gpus[gpu] = static_cast<double>(count);
  }
  return gpus;
}

// The named type, or the first of which there are GPUs.
absl::StatusOr<uint32_t> ChooseReference(const std::string& name, const GpuNames& known,
                                         const PotentialInputs& inputs) {
  if (!name.empty()) return FindType("--reference", name, known);
  for (uint32_t gpu = 0; gpu < inputs.gpus.size(); ++gpu) {
    if (inputs.gpus[gpu] > 0) return gpu;
  }
  return 0;
}

absl::Status AddMix(const std::vector<std::string>& paths, PotentialInputs& inputs) {
  std::vector<MixFile> files;
  for (const std::string& path : paths) {
    HORUS_ASSIGN_OR_RETURN(MixFile file, ReadMixFile(path));
    inputs.has_trace = inputs.has_trace || file.is_trace;
    files.push_back(std::move(file));
  }
  HORUS_ASSIGN_OR_RETURN(Mix mix, JoinMix(files, inputs.table, inputs.reference));
  inputs.jobs = std::move(mix.jobs);
  size_t unknown = 0;
  for (const auto& [name, jobs] : mix.unknown) unknown += jobs;
  if (unknown > 0) {
    inputs.notes.push_back(
        absl::StrFormat("Left out: %d jobs of %d types without measured speeds.", unknown, mix.unknown.size()));
  }
  if (mix.several > 0) inputs.notes.push_back(absl::StrFormat("Left out: %d jobs on more than one GPU.", mix.several));
  return absl::OkStatus();
}

void NoteOtherUnits(PotentialInputs& inputs) {
  inputs.other_units = ProfilesOfOtherUnits(inputs.table);
  if (inputs.other_units.empty()) return;
  std::vector<std::string> names;
  for (const uint32_t profile : inputs.other_units) names.push_back(inputs.table.profiles[profile]);
  inputs.notes.push_back(absl::StrFormat(
      "Counted in different units on different GPU types, as it seems (their speeds differ %g times more "
      "or less than those of the others), and left out where types come together; of each type by "
      "itself check that the trace counts as its speeds do: %s.",
      kMostUnitsApart, absl::StrJoin(names, ", ")));
}

// ---- Cores and host memory.

// INVALID_ARGUMENT where speeds are those of the input pipeline alone: how fast the job is then depends on a time of
// the GPU's step that a table of speeds does not have.
absl::StatusOr<SensitivitiesByName> LoadSensitivities(const std::string& path) {
  if (path.empty()) return SensitivitiesByName();
  HORUS_ASSIGN_OR_RETURN(SensitivitiesByName named, ReadSensitivities(path));
  for (const auto& [name, matrix] : named) {
    if (matrix.get()->host_us() == 0) continue;
    return InvalidArgument("%s: profile %s: expected speeds of whole jobs, found those of input pipelines (host_us)",
                           path, Quoted(name));
  }
  return named;
}

// Sets the hosts, by profile of the table.
absl::Status AddHosts(const std::string& path, const SensitivitiesByName& named, std::vector<HostsOfType> types,
                      PotentialInputs& inputs) {
  std::vector<SharedSensitivity> sensitivities;
  int sensitive = 0;
  for (const std::string& profile : inputs.table.profiles) {
    const auto at = named.find(profile);
    sensitivities.push_back(at == named.end() ? SharedSensitivity() : at->second);
    sensitive += at == named.end() ? 0 : 1;
  }
  if (sensitive == 0) {
    return InvalidArgument("%s: expected a profile of the %d whose speeds are known, found none", path,
                           sensitivities.size());
  }
  inputs.hosts = MakeHostResources(std::move(types), sensitivities);
  inputs.notes.push_back(absl::StrFormat("Sensitive to cores and host memory: %d of %d profiles; the others hold none.",
                                         sensitive, sensitivities.size()));
  return absl::OkStatus();
}

// Nodes of any size, with so much for each GPU.
absl::Status AddHostsPerGpu(const PotentialSources& sources, PotentialInputs& inputs) {
  if (sources.sensitivities.empty()) {
    if (!sources.cores_per_gpu && !sources.memory_gib_per_gpu) return absl::OkStatus();
    return InvalidArgument("--cores-per-gpu, --memory-gib-per-gpu: expected with --sensitivities, found none");
  }
  if (!sources.cores_per_gpu || !sources.memory_gib_per_gpu) {
    return InvalidArgument(
        "--sensitivities: with --speeds expected --cores-per-gpu and --memory-gib-per-gpu, found not both");
  }
  HORUS_ASSIGN_OR_RETURN(const SensitivitiesByName named, LoadSensitivities(sources.sensitivities));
  const HostShare fair = {std::llround(*sources.cores_per_gpu * kMilliPerCore),
                          std::llround(*sources.memory_gib_per_gpu * kGibToMib.per_unit)};
  std::vector<HostsOfType> types;
  for (const double gpus : inputs.gpus) {
    const auto whole = static_cast<int64_t>(gpus);
    types.push_back({.cpu_milli = gpus * static_cast<double>(fair.cpu_milli),
                     .mem_mib = gpus * static_cast<double>(fair.mem_mib),
                     .fair = fair,
                     .most = {fair.cpu_milli * whole, fair.mem_mib * whole}});
  }
  return AddHosts(sources.sensitivities, named, std::move(types), inputs);
}

absl::StatusOr<PotentialInputs> LoadMeasured(const PotentialSources& sources) {
  SpeedsReader reader;
  for (const std::string& path : sources.speeds) HORUS_RETURN_IF_ERROR(reader.Read(path));
  PotentialInputs inputs{.table = reader.Table(), .source = "measured"};
  if (inputs.table.profiles.empty()) return InvalidArgument("--speeds: expected speeds of jobs alone, found none");
  GpuNames known{.names = inputs.table.gpus, .types = {}, .catalogue = nullptr};
  HORUS_ASSIGN_OR_RETURN(known.catalogue, LoadCatalogue(sources.gpus_files));
  for (const std::string& gpu : known.names) known.types.push_back(known.catalogue->FindKnown(gpu));
  HORUS_ASSIGN_OR_RETURN(inputs.gpus, CountGpus(sources.gpus, known));
  HORUS_ASSIGN_OR_RETURN(inputs.reference, ChooseReference(sources.reference, known, inputs));
  if (reader.skipped().no_alone > 0) {
    inputs.notes.push_back(
        absl::StrFormat("Left out: %d pairs of jobs without a speed alone.", reader.skipped().no_alone));
  }
  NoteOtherUnits(inputs);
  HORUS_RETURN_IF_ERROR(AddMix(sources.mix, inputs));
  HORUS_RETURN_IF_ERROR(AddHostsPerGpu(sources, inputs));
  return inputs;
}

// How many devices of a kind there are, and what their nodes have. A node with several kinds counts for each, as any
// device of it may have all cores: the bound is the looser for it.
struct KindCount {
  double devices = 0;
  HostsOfType hosts;
  NodeSpec largest;  // has all that one of them has

  void Add(const NodeSpec& node) {
    const HostShare part = FairShare(node.cpu_milli, node.mem_mib, static_cast<int32_t>(node.devices.size()));
    ++devices;
    fair_cpu_milli_ += static_cast<double>(part.cpu_milli);
    fair_mem_mib_ += static_cast<double>(part.mem_mib);
    if (std::exchange(last_, &node) == &node) return;
    hosts.cpu_milli += static_cast<double>(node.cpu_milli);
    hosts.mem_mib += static_cast<double>(node.mem_mib);
    largest.cpu_milli = std::max(largest.cpu_milli, node.cpu_milli);
    largest.mem_mib = std::max(largest.mem_mib, node.mem_mib);
    largest.storage_mb_s = std::max(largest.storage_mb_s, node.storage_mb_s);
    hosts.most = {largest.cpu_milli, largest.mem_mib};
  }

  // The fair share is the mean of the devices'.
  [[nodiscard]] HostsOfType Hosts() const {
    HostsOfType all = hosts;
    all.fair = {static_cast<int64_t>(fair_cpu_milli_ / devices), static_cast<int64_t>(fair_mem_mib_ / devices)};
    return all;
  }

 private:
  double fair_cpu_milli_ = 0, fair_mem_mib_ = 0;
  const NodeSpec* last_ = nullptr;  // that was counted
};

// What a job is paired by, and how many of the file are so.
struct Predicted {
  std::vector<JobSpec> jobs;                             // those that ask for the same are one
  std::vector<uint32_t> profile;                         // of each job of the file that counts
  std::map<JobId, uint32_t> profile_of;                  // by job
  std::set<std::pair<std::string, std::string>> labels;  // that some job selects nodes by
  std::vector<JobSpec> left_out;                         // jobs on several GPUs, or with alternatives
};

// Devices that no rule and no model tells apart for these jobs; each with how many there are, and all that one of their
// nodes has.
using KindKey = std::tuple<GpuTypeId, SharingMode, bool, int64_t, std::vector<std::pair<std::string, std::string>>>;

KindKey KeyOf(const ClusterFile& file, const NodeSpec& node, const DeviceSpec& device, const Predicted& predicted) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const auto& label : node.labels) {
    if (predicted.labels.contains(label)) labels.push_back(label);
  }
  const int64_t mem_mib = device.mem_mib > 0 ? device.mem_mib : file.catalogue->at(device.type).mem_mib;
  const bool shares = device.mode != SharingMode::kExclusive && device.max_tenants != 1;
  return {device.type, device.mode, shares, mem_mib, std::move(labels)};
}

std::map<KindKey, KindCount> KindsOf(const ClusterFile& file, const Predicted& predicted, size_t& slices) {
  std::map<KindKey, KindCount> kinds;
  for (const FileNode& node : file.nodes) {
    if (node.state != AdminState::kUp) continue;
    for (const DeviceSpec& device : node.spec.devices) {
      if (device.mode == SharingMode::kMig) {
        ++slices;
      } else {
        kinds[KeyOf(file, node.spec, device, predicted)].Add(node.spec);
      }
    }
  }
  return kinds;
}

// "offers-hami,zone=east": labels as a person tells nodes apart.
std::string LabelsText(const std::vector<std::pair<std::string, std::string>>& labels) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : labels) {
    const std::string bare = key.substr(key.rfind('/') + 1);  // npos + 1 = 0
    texts.push_back(value == "yes" ? bare : bare + "=" + value);
  }
  return texts.empty() ? "other nodes" : absl::StrJoin(texts, ",");
}

// `of_kind`: the position of each.
std::vector<DeviceKind> DevicesOf(const ClusterFile& file, Predicted& predicted, PotentialInputs& inputs,
                                  std::vector<HostsOfType>& hosts, std::map<KindKey, size_t>& of_kind) {
  size_t slices = 0;
  std::map<KindKey, KindCount> kinds = KindsOf(file, predicted, slices);
  if (kinds.size() > kMostWorkTypes) {
    inputs.notes.push_back(absl::StrFormat("Labels of nodes do not count: they make %d kinds of GPUs, more than %d.",
                                           kinds.size(), kMostWorkTypes));
    predicted.labels.clear();
    for (JobSpec& job : predicted.jobs) job.node_selector.clear();
    kinds = KindsOf(file, predicted, slices = 0);
  }
  std::vector<DeviceKind> devices;
  std::map<std::string, std::vector<size_t>> named;
  for (const auto& [kind, count] : kinds) {
    const auto& [type, mode, shares, mem_mib, labels] = kind;
    std::string name = file.catalogue->at(type).name;
    if (!shares) {
      name += " exclusive";
    } else if (mode == SharingMode::kMps) {
      name += " mps";
    }
    named[name].push_back(devices.size());
    of_kind.emplace(kind, devices.size());
    DeviceKind& device = devices.emplace_back(DeviceKind{.name = std::move(name), .node = count.largest});
    device.node.labels = labels;
    device.node.devices = DeviceList({{.type = type, .mode = mode, .max_tenants = shares ? 0 : 1, .mem_mib = mem_mib}});
    inputs.gpus.push_back(count.devices);
    hosts.push_back(count.Hosts());
  }
  for (const auto& [name, alike] : named) {
    for (const size_t i : alike) {
      if (alike.size() == 1) continue;
      if (!predicted.labels.empty()) devices[i].name += " " + LabelsText(devices[i].node.labels);
      const int64_t mem_mib = devices[i].node.devices[0].mem_mib;
      if (mem_mib != devices[alike.front()].node.devices[0].mem_mib)
        devices[i].name += absl::StrFormat(" %d MiB", mem_mib);
    }
  }
  if (slices > 0) inputs.notes.push_back(absl::StrFormat("Left out: %d MIG instances.", slices));
  return devices;
}

// Of the GPUs of all kinds on which such a job may run it holds an equal part.
void LeaveOutGpus(const Predicted& predicted, const std::vector<DeviceKind>& devices, PotentialInputs& inputs,
                  std::vector<HostsOfType>& hosts) {
  const double all = std::accumulate(inputs.gpus.begin(), inputs.gpus.end(), 0.0);
  std::vector<double> left = inputs.gpus;
  auto asked = static_cast<double>(predicted.profile.size());
  for (const JobSpec& job : predicted.left_out) asked += SlotCount(job);
  const double at_once = std::min(1.0, all / asked);  // where jobs ask for more than there is, they come in turn
  for (const JobSpec& job : predicted.left_out) {
    const auto may_run = [&](const NodeSpec& node) {
      return FindDemand(job, node.devices[0].type) != nullptr &&
             std::ranges::all_of(job.node_selector, [&](const auto& label) {
               return predicted.labels.empty() || std::ranges::find(node.labels, label) != node.labels.end();
             });
    };
    double there = 0;
    for (size_t i = 0; i < devices.size(); ++i) there += may_run(devices[i].node) ? left[i] : 0;
    if (there == 0) continue;
    const double stays = std::max(0.0, 1 - at_once * SlotCount(job) / there);
    for (size_t i = 0; i < devices.size(); ++i) left[i] *= may_run(devices[i].node) ? stays : 1;
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    hosts[i].cpu_milli *= left[i] / inputs.gpus[i];
    hosts[i].mem_mib *= left[i] / inputs.gpus[i];
  }
  inputs.gpus = std::move(left);
  if (predicted.left_out.empty()) return;
  inputs.notes.push_back(
      absl::StrFormat("Left out: %d %s not on exactly one GPU, or with alternatives, and %.3g GPUs for that.",
                      predicted.left_out.size(), predicted.left_out.size() == 1 ? "job" : "jobs",
                      all - std::accumulate(inputs.gpus.begin(), inputs.gpus.end(), 0.0)));
}

bool NeverShares(const JobSpec& job) { return job.exclusive || job.gpu_milli == kMilliPerGpu; }

// Profiles of jobs: those that ask for the same are one.
class Profiles {
 public:
  // `itself`: whatever the others ask for.
  uint32_t Add(JobSpec job, bool itself) {
    const auto next = static_cast<uint32_t>(jobs.size());
    if (!itself) {
      const auto [at, is_new] = known_.emplace(HoldRequest(job, table_), next);
      if (!is_new) return at->second;
    }
    jobs.push_back(std::move(job));
    return next;
  }
  std::vector<JobSpec> jobs;

 private:
  RequestTable table_;
  std::map<uint32_t, uint32_t> known_;  // by request
};

// What decides of no pair would only tell profiles apart.
void Forget(bool owners_matter, JobSpec& job) {
  job.weight = 1;
  const bool alone = NeverShares(job) || IsRequestAlone(job);
  if (alone) job.cpu_milli = job.mem_mib = job.storage_mb_s = job.priority = 0;
  if (owners_matter && !alone) return;
  job.tenant.clear();
  job.share = ShareWith::kAnyone;
}

absl::StatusOr<Predicted> CompletePredicted(const PotentialSources& sources, const ClusterFile& file,
                                            const SensitivitiesByName& sensitivities, DemandShelf& shelf) {
  HORUS_ASSIGN_OR_RETURN(std::vector<JobRequest> requests, ReadJobsFile(sources.jobs, *file.catalogue));
  for (const FileResident& resident : file.residents) requests.push_back(resident.job);
  HORUS_RETURN_IF_ERROR(CheckJobsDiffer(requests));
  const bool owners_matter = std::ranges::any_of(requests, [](const JobRequest& request) {
    return request.spec.share == ShareWith::kSameTenant && !NeverShares(request.spec);
  });
  const std::vector<GpuTypeId> present = TypesPresent(file);
  Predicted predicted;
  Profiles profiles;
  Progress progress;
  size_t done = 0;
  for (const JobRequest& request : requests) {
    progress.Update("analysing jobs:", done++, requests.size());
    HORUS_ASSIGN_OR_RETURN(JobSpec job, shelf.Complete(request, present));
    if (!job.alternatives.empty() || job.tasks != 1 || job.gpus_per_task != 1) {
      predicted.labels.insert(job.node_selector.begin(), job.node_selector.end());
      predicted.left_out.push_back(std::move(job));
      continue;
    }
    Forget(owners_matter, job);
    predicted.labels.insert(job.node_selector.begin(), job.node_selector.end());
    // A mix names jobs, so that each of them stays itself; and so does a table of sensitivities.
    const bool sensitive = sensitivities.contains(job.name);
    // The program gives such a job its cores and memory: what it waits for is no part of its pairs.
    if (sensitive) {
      job.cpu_milli = job.mem_mib = 0;
      for (TypeDemand& demand : job.demands) demand.demand.host_us = 0;
    }
    const JobId id = job.id;
    predicted.profile.push_back(profiles.Add(std::move(job), sensitive || !sources.mix.empty()));
    predicted.profile_of[id] = predicted.profile.back();
  }
  predicted.jobs = std::move(profiles.jobs);
  if (predicted.jobs.empty()) return InvalidArgument("%s: expected jobs on one GPU, found none", sources.jobs);
  return predicted;
}

// Of jobs that state requests alone nobody knows how they run beside others; and no job runs beside itself, unless jobs
// of its kind come (`is_mix`). Such pairs are left out.
void LeaveOutPairs(const Predicted& predicted, bool is_mix, PotentialInputs& inputs) {
  inputs.unknown.assign(predicted.jobs.size(), false);
  std::transform(predicted.jobs.begin(), predicted.jobs.end(), inputs.unknown.begin(), IsRequestAlone);
  std::vector<size_t> jobs_of(predicted.jobs.size());
  for (const uint32_t profile : predicted.profile) ++jobs_of[profile];
  std::erase_if(inputs.table.pairs, [&](const PairSpeed& pair) {
    return inputs.unknown[pair.a] || inputs.unknown[pair.b] || (!is_mix && pair.a == pair.b && jobs_of[pair.a] == 1);
  });
  const auto jobs = std::ranges::count_if(predicted.profile, [&](uint32_t profile) { return inputs.unknown[profile]; });
  if (jobs == 0) return;
  inputs.notes.push_back(absl::StrFormat(
      "Of %d of %d jobs only requests are known: no pair with them counts. Say what pods run by `horus import "
      "--profiles` or `--measured`; in jobs.yaml state a model, or a demand with step_time_ms, and delete gpu_milli.",
      jobs, predicted.profile.size()));
}

// What jobs that share a GPU now do there beyond one of them, by their predicted speeds. A GPU of whose jobs one is not
// known, or has several GPUs, counts as with one job.
absl::Status AddToday(const ClusterFile& file, const Predicted& predicted, const std::map<KindKey, size_t>& of_kind,
                      const Appraiser& appraiser, DemandShelf& shelf, PotentialInputs& inputs) {
  if (file.residents.empty()) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(Cluster cluster, MakeCluster(file));
  HORUS_RETURN_IF_ERROR(AdoptResidents(file, TypesPresent(file), shelf, cluster));
  inputs.shared_today.assign(inputs.gpus.size(), 0);
  size_t used = 0, all = 0;
  double work = 0;  // GPUs'
  std::set<JobId> jobs_there;
  for (const FileNode& node : file.nodes) {
    for (size_t i = 0; i < node.spec.devices.size() && node.state == AdminState::kUp; ++i) {
      const auto kind = of_kind.find(KeyOf(file, node.spec, node.spec.devices[i], predicted));
      if (kind == of_kind.end()) continue;
      HORUS_ASSIGN_OR_RETURN(const DeviceSlowdowns now, appraiser.Now(cluster, node.spec.id, static_cast<int32_t>(i)));
      ++all;
      used += now.jobs.empty() ? 0 : 1;
      work += now.jobs.empty() ? 0 : 1;
      jobs_there.insert(now.jobs.begin(), now.jobs.end());
      const auto known = [&](JobId job) {
        const auto at = predicted.profile_of.find(job);
        return at != predicted.profile_of.end() && !inputs.unknown[at->second];
      };
      if (now.jobs.size() < 2 || !std::ranges::all_of(now.jobs, known)) continue;
      const auto gpu = static_cast<uint32_t>(kind->second);
      const auto jobs = static_cast<double>(now.jobs.size());
      for (size_t k = 0; k < now.jobs.size(); ++k) {
        const uint32_t profile = predicted.profile_of.at(now.jobs[k]);
        const double more = 1 / static_cast<double>(now.slowdowns[k].estimate) - 1 / jobs;
        const double in_reference = inputs.table.Alone(UnitType(inputs.table, profile, inputs.reference), profile);
        inputs.shared_today[gpu] += more;
        work += more;
        inputs.all_shared_today += in_reference > 0 ? more * inputs.table.Alone(gpu, profile) / in_reference : 0;
      }
    }
  }
  inputs.notes.insert(inputs.notes.begin(),
                      absl::StrFormat("Today %d jobs hold %d of %d GPUs and do what %.4g GPUs with one job each would.",
                                      jobs_there.size(), used, all, work));
  return absl::OkStatus();
}

// Without a mix every job of the file brings the same work, a light one less (place/job/job.h).
absl::Status AddPredictedMix(const PotentialSources& sources, const Predicted& predicted, PotentialInputs& inputs) {
  if (!sources.mix.empty()) return AddMix(sources.mix, inputs);
  for (const uint32_t profile : predicted.profile) {
    const uint32_t unit = UnitType(inputs.table, profile, inputs.reference);
    inputs.jobs.push_back({profile, inputs.table.Alone(unit, profile) * WorkAlone(predicted.jobs[profile])});
  }
  return absl::OkStatus();
}

absl::StatusOr<PotentialInputs> LoadPredicted(const PotentialSources& sources) {
  HORUS_RETURN_IF_ERROR(CheckChoice(sources.interference));
  HORUS_ASSIGN_OR_RETURN(const auto predictor, LoadPredictor(sources.bundle));
  HORUS_ASSIGN_OR_RETURN(auto catalogue, LoadCatalogue(sources.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const ClusterFile file, ReadClusterFile(sources.cluster, std::move(catalogue)));
  PotentialInputs inputs{.source = NameOf(sources.interference)};
  inputs.notes.push_back("Predicted speeds: the figures are what the model believes, no bound on what happens.");
  HORUS_ASSIGN_OR_RETURN(auto model, LoadInterference(sources.interference, file.catalogue, predictor));
  DemandShelf shelf(file.catalogue, predictor);
  HORUS_ASSIGN_OR_RETURN(const SensitivitiesByName sensitivities, LoadSensitivities(sources.sensitivities));
  HORUS_ASSIGN_OR_RETURN(Predicted predicted, CompletePredicted(sources, file, sensitivities, shelf));
  std::vector<HostsOfType> hosts;
  std::map<KindKey, size_t> of_kind;
  const std::vector<DeviceKind> devices = DevicesOf(file, predicted, inputs, hosts, of_kind);
  if (devices.empty())
    return InvalidArgument("%s: expected whole GPUs on nodes that are up, found none", sources.cluster);

  const FitLimits limits{.max_tenants = sources.limits.max_tenants,
                         .mem_headroom_mib = sources.limits.mem_headroom_mib,
                         .mem_overcommit = sources.limits.mem_overcommit};
  model = WithHostTime(model);
  HORUS_ASSIGN_OR_RETURN(inputs.table, PredictSpeeds(predicted.jobs, devices, file.catalogue, *model, limits));
  LeaveOutPairs(predicted, !sources.mix.empty(), inputs);
  LeaveOutGpus(predicted, devices, inputs, hosts);
  if (sources.mix.empty()) {
    const double gpus = std::accumulate(inputs.gpus.begin(), inputs.gpus.end(), 0.0);
    inputs.gpus_free = std::max(0.0, gpus - static_cast<double>(predicted.profile.size()));
  }
  if (inputs.gpus_free > 0) {
    inputs.notes.push_back(absl::StrFormat(
        "%.0f GPUs are free with every job alone: what sharing gains here is of endless work of this mix.",
        *inputs.gpus_free));
  }
  GpuNames known{.names = inputs.table.gpus, .types = {}, .catalogue = file.catalogue};
  for (const DeviceKind& device : devices) known.types.emplace_back(device.node.devices[0].type);
  HORUS_ASSIGN_OR_RETURN(inputs.reference, ChooseReference(sources.reference, known, inputs));
  HORUS_RETURN_IF_ERROR(AddPredictedMix(sources, predicted, inputs));
  HORUS_RETURN_IF_ERROR(AddToday(file, predicted, of_kind,
                                 Appraiser(model, limits, PlacerOptions{}.rack_oversubscription), shelf, inputs));
  if (!sources.sensitivities.empty())
    HORUS_RETURN_IF_ERROR(AddHosts(sources.sensitivities, sensitivities, std::move(hosts), inputs));
  return inputs;
}

}  // namespace

absl::StatusOr<PotentialInputs> LoadPotential(const PotentialSources& sources) {
  const bool measured = !sources.speeds.empty();
  if (measured == !sources.jobs.empty() || measured == !sources.cluster.empty()) {
    return InvalidArgument(
        "expected --speeds and --mix (measured pairs), or --cluster and --jobs (predicted pairs), found %s",
        measured ? "options of both" : "neither whole");
  }
  if (!measured) {
    if (!sources.gpus.empty())
      return InvalidArgument("--gpus: expected with --speeds, found --cluster, which has GPUs");
    if (sources.cores_per_gpu || sources.memory_gib_per_gpu) {
      return InvalidArgument(
          "--cores-per-gpu, --memory-gib-per-gpu: expected with --speeds, found --cluster, which has both");
    }
    return LoadPredicted(sources);
  }
  if (sources.mix.empty()) return InvalidArgument("--mix: expected with --speeds, found none");
  return LoadMeasured(sources);
}

}  // namespace horus::cli
