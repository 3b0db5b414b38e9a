// SPDX-License-Identifier: Apache-2.0
// Reads truth, then beliefs, then traces, and keeps a digest of each: what a run's result depends on.
#include "cli/grid_inputs.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "horus/version.h"
#include "io/sensitivity_file.h"
#include "lab/io/dataset_file.h"
#include "lab/io/speeds_file.h"
#include "lab/truth/learner.h"
#include "place/state/requests.h"

namespace horus::cli {
namespace {

using ModelPtr = std::shared_ptr<const InterferenceModel>;

uint64_t HashOf(double value, uint64_t seed) { return Hash64(&value, sizeof value, seed); }

uint64_t HashOf(const SpeedTable& table, uint64_t hash) {
  for (const auto* names : {&table.profiles, &table.gpus}) {
    for (const std::string& name : *names) hash = Hash64(name, hash);
    hash = CombineHash(hash, names->size());
  }
  for (const double speed : table.alone) hash = HashOf(speed, hash);
  for (const PairSpeed& pair : table.pairs) {
    for (const uint32_t part : {pair.gpu, pair.a, pair.b}) hash = CombineHash(hash, part);
    for (const double part : {pair.speed_a, pair.speed_b}) hash = HashOf(part, hash);
  }
  return hash;
}

uint64_t HashOf(const DemandsByName& beliefs) {
  uint64_t hash = beliefs.size();
  for (const auto& [name, demands] : beliefs) {
    hash = Hash64(name, hash);
    for (const TypeDemand& one : demands) hash = CombineHash(hash, HashOfDemand(one));
  }
  return hash;
}

// What a file states goes before what is there. And a line that tells all of it apart.
absl::Status LoadSensitivities(const std::string& path, std::string_view what, SensitivitiesByName& named,
                               std::string& content) {
  if (!path.empty()) {
    HORUS_ASSIGN_OR_RETURN(SensitivitiesByName read, ReadSensitivities(path));
    read.merge(named);
    named = std::move(read);
  }
  if (named.empty()) return absl::OkStatus();
  uint64_t hash = named.size();
  for (const auto& [name, matrix] : named) hash = CombineHash(Hash64(name, hash), matrix.get()->Hash());
  absl::StrAppendFormat(&content, "%s sensitivity %016x\n", what, hash);
  return absl::OkStatus();
}

std::string TellModel(std::string_view what, const InterferenceModel& model) {
  return absl::StrFormat("%s %s %016x\n", std::string(what), std::string(model.name()), model.epoch());
}

absl::Status LoadSpeeds(const GridFile& file, LoadedGrid& loaded) {
  GridTruth& truth = loaded.grid.truth;
  SpeedsReader reader;
  std::map<std::string, GpuTypeId> named;
  for (const GridSpeeds& speeds : file.truth.speeds) {
    HORUS_RETURN_IF_ERROR(reader.Read(speeds.file));
    named.insert(speeds.gpus.begin(), speeds.gpus.end());
  }
  truth.unmeasured_alone = file.truth.unmeasured_alone;
  truth.speeds = reader.Table(truth.unmeasured_alone ? SpeedsReader::Gangs::kAlone : SpeedsReader::Gangs::kLeftOut);
  truth.many = file.truth.many;
  const std::vector<std::string>& gpus = truth.speeds->gpus;
  for (const auto& [name, type] : named) {
    if (std::ranges::find(gpus, name) != gpus.end()) continue;
    const std::vector<std::string_view> known(gpus.begin(), gpus.end());
    return InvalidArgument("%s: truth.speeds: gpus: %s", file.path, ExpectedOneOf(known, name));
  }
  for (const std::string& name : gpus) {
    const auto at = named.find(name);
    absl::StatusOr<GpuTypeId> type = at == named.end() ? file.catalogue->Find(name) : at->second;
    if (!type.ok()) {
      return InvalidArgument("%s: truth.speeds: gpus: expected a type for %s of the files, found none", file.path,
                             Quoted(name));
    }
    truth.types.push_back(*type);
  }
  if (!file.truth.reference.empty()) {
    const auto at = std::ranges::find(gpus, file.truth.reference);
    if (at == gpus.end()) {
      const std::vector<std::string_view> names(gpus.begin(), gpus.end());
      return InvalidArgument("%s: truth.reference: %s", file.path, ExpectedOneOf(names, file.truth.reference));
    }
    truth.reference = static_cast<uint32_t>(at - gpus.begin());
  }
  if (reader.skipped().no_alone > 0)
    loaded.notes.push_back(absl::StrFormat("%d pairs left out: jobs without a speed alone", reader.skipped().no_alone));
  return absl::OkStatus();
}

// Jobs by name, with demands on the types of the cluster; and what they state of their sensitivity.
absl::StatusOr<DemandsByName> LoadDemands(const GridFile& file, SensitivitiesByName& sensitivities) {
  HORUS_ASSIGN_OR_RETURN(const auto predictor, LoadPredictor(file.beliefs.bundle));
  DemandShelf shelf(file.catalogue, predictor);
  const std::vector<GpuTypeId> present = TypesOf(file.nodes);
  DemandsByName beliefs;
  Progress progress;
  if (absl::EndsWith(file.beliefs.jobs, ".csv")) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<TableJob> jobs, ReadJobTable(file.beliefs.jobs));
    for (const TableJob& job : jobs) {
      progress.Update("analysing jobs:", beliefs.size(), jobs.size());
      HORUS_ASSIGN_OR_RETURN(const std::vector<Demand> demands, At(job.where + ": graph", shelf.Demands(job.model)));
      ProfileDemands& one = beliefs[job.name];
      for (const GpuTypeId type : present) one.push_back({type, demands[type.value()]});
    }
    return beliefs;
  }
  HORUS_ASSIGN_OR_RETURN(const std::vector<JobRequest> jobs, ReadJobsFile(file.beliefs.jobs, *file.catalogue));
  for (const JobRequest& request : jobs) {
    progress.Update("analysing jobs:", beliefs.size(), jobs.size());
    if (request.spec.name.empty()) return InvalidArgument("%s: expected a name: the profile's", request.where);
    HORUS_ASSIGN_OR_RETURN(JobSpec job, shelf.Complete(request, present));
    if (job.sensitivity.get() != nullptr) sensitivities[job.name] = job.sensitivity;
    beliefs[job.name] = std::move(job.demands);
  }
  return beliefs;
}

absl::StatusOr<ModelPtr> MakeModel(const GridFile& file, const Grid& grid, const std::string& name) {
  if (name == kOracle) return OracleOf(grid);
  if (name == kIgnorant) return std::make_shared<const IgnorantModel>();
  const GridBeliefSource& beliefs = file.beliefs;
  HORUS_ASSIGN_OR_RETURN(ModelPtr model,
                         At(file.path, LoadInterference({.name = name.empty() ? beliefs.interference : name,
                                                         .bundle = beliefs.interference_bundle},
                                                        file.catalogue, nullptr)));
  if (!name.empty() || beliefs.predictions.empty()) return model;
  std::map<std::string, uint64_t> ids;
  for (const auto& [profile, demands] : grid.beliefs) ids[profile] = demands.front().demand.profile_id;
  HORUS_ASSIGN_OR_RETURN(const std::vector<PredictedPair> rows, ReadPredicted(beliefs.predictions));
  return ModelOfPredicted(rows, ids, *file.catalogue, std::move(model));
}

// That something is believed of, but for those of several GPUs.
std::vector<std::string> SingleGpuProfiles(const Grid& grid) {
  std::set<std::string> gangs;
  if (grid.truth.speeds) {
    for (const GangProfile& gang : grid.truth.speeds->gangs) gangs.insert(grid.truth.speeds->profiles[gang.profile]);
  }
  std::vector<std::string> names;
  for (const auto& [name, demands] : grid.beliefs) {
    if (!gangs.contains(name)) names.push_back(name);
  }
  return names;
}

absl::Status LoadTraces(const GridFile& file, LoadedGrid& loaded) {
  std::map<std::vector<std::string>, std::shared_ptr<const Trace>> read;  // by files and how they are read
  for (const GridFileWorkload& entry : file.workloads) {
    GridWorkload workload = entry.workload;
    if (entry.files.empty()) {
      if (entry.all_profiles) {
        workload.synthetic.profiles.clear();
        for (const std::string& name : SingleGpuProfiles(loaded.grid))
          workload.synthetic.profiles.push_back({.name = name});
      }
      loaded.grid.workloads.push_back(std::move(workload));
      continue;
    }
    std::vector<std::string> key = entry.files;
    key.push_back(std::string(TraceFormatName(entry.read.format)) + (entry.read.skip_bad ? " skip" : ""));
    std::shared_ptr<const Trace>& trace = read[key];
    if (trace == nullptr) {
      HORUS_ASSIGN_OR_RETURN(TraceRead one, ReadTraces(entry.files, entry.read));
      if (one.skipped > 0)
        loaded.notes.push_back(absl::StrFormat("%s: %d rows skipped", entry.files.front(), one.skipped));
      trace = std::make_shared<const Trace>(std::move(one.trace));
    }
    HORUS_ASSIGN_OR_RETURN(Trace prepared,
                           At("workload '" + workload.name + "'", PrepareTrace(loaded.grid, *trace, workload.edits)));
    if (prepared.jobs.size() < trace->jobs.size()) {
      const std::string note =
          absl::StrFormat("%s: %d of %d jobs count; %d have no speed alone", entry.files.front(), prepared.jobs.size(),
                          trace->jobs.size(), CountWithoutSpeed(loaded.grid, *trace));
      if (loaded.notes.empty() || loaded.notes.back() != note) loaded.notes.push_back(note);
    }
    absl::StrAppendFormat(&workload.content, "trace: %016x\n", TraceDigest(prepared));
    workload.trace = std::make_shared<const Trace>(std::move(prepared));
    loaded.grid.workloads.push_back(std::move(workload));
  }
  return absl::OkStatus();
}

std::string TellCluster(const Grid& grid) {
  uint64_t hash = grid.nodes.size();
  for (const NodeSpec& node : grid.nodes) hash = CombineHash(hash, HashNode(node, AdminState::kUp));
  return absl::StrFormat("cluster %016x\n", hash);
}

absl::Status LoadTruth(const GridFile& file, LoadedGrid& loaded) {
  GridTruth& truth = loaded.grid.truth;
  if (!file.truth.speeds.empty()) {
    HORUS_RETURN_IF_ERROR(LoadSpeeds(file, loaded));
    uint64_t hash = HashOf(*truth.speeds, truth.reference);
    for (const GpuTypeId type : truth.types) hash = CombineHash(hash, type.value());
    absl::StrAppendFormat(&loaded.grid.content, "truth %016x %d %d\n", hash, static_cast<int>(truth.many),
                          truth.unmeasured_alone ? 1 : 0);
    return absl::OkStatus();
  }
  HORUS_ASSIGN_OR_RETURN(truth.model,
                         At(file.path, LoadInterference({.name = file.truth.interference}, file.catalogue, nullptr)));
  loaded.grid.content += TellModel("truth", *truth.model);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedGrid> LoadGrid(const GridFile& file) {
  LoadedGrid loaded;
  Grid& grid = loaded.grid;
  static_cast<GridFrame&>(grid) = file;
  grid.content = absl::StrFormat("library %d.%d.%d\n%sfailures %d %d\nslowdown_bound %.17g lp_bound %d\n",
                                 HORUS_VERSION_MAJOR, HORUS_VERSION_MINOR, HORUS_VERSION_PATCH, TellCluster(grid),
                                 grid.mean_up_us, grid.mean_down_us, grid.slowdown_bound, grid.lp_bound ? 1 : 0);
  HORUS_RETURN_IF_ERROR(LoadTruth(file, loaded));
  HORUS_RETURN_IF_ERROR(LoadSensitivities(file.truth.sensitivity, "truth", grid.truth.sensitivities, grid.content));
  HORUS_ASSIGN_OR_RETURN(const DemandsByName demands, LoadDemands(file, grid.sensitivities));
  HORUS_RETURN_IF_ERROR(LoadSensitivities(file.beliefs.sensitivity, "beliefs", grid.sensitivities, grid.content));
  grid.beliefs = CompleteBeliefs(grid, demands);
  if (grid.beliefs.empty()) {
    return InvalidArgument("%s: beliefs.jobs: expected profiles that the truth knows on the cluster's GPUs, found none",
                           file.path);
  }
  absl::StrAppendFormat(&grid.content, "beliefs %016x\n", HashOf(grid.beliefs));
  std::map<std::string, ModelPtr> models;  // by name
  for (const GridFilePolicy& entry : file.policies) {
    ModelPtr& model = models[entry.interference];
    if (model == nullptr) HORUS_SET_OR_RETURN(model, MakeModel(file, grid, entry.interference));
    GridPolicy policy = entry.policy;
    policy.model = model;
    policy.content += TellModel("model", *policy.model);
    grid.policies.push_back(std::move(policy));
  }
  HORUS_RETURN_IF_ERROR(LoadTraces(file, loaded));
  return loaded;
}

}  // namespace horus::cli
