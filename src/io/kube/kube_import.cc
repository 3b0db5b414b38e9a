// SPDX-License-Identifier: Apache-2.0
// Nodes first, then the pods whose devices are told, then the others, then gangs.
#include "io/kube/kube_import.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include "base/text.h"
#include "io/kube/kube_engine.h"

namespace horus {
namespace {

// Written by machines, dozens a node, and rarely what a pod selects: kept where one does.
constexpr std::string_view kFeatureLabels[] = {"feature.node.kubernetes.io/", "nvidia.com/", "beta.kubernetes.io/"};
// Labels of ours: which nodes admit pods of one kind, and which offer GPUs in the way in which pods of one kind get
// them.
constexpr char kAdmits[] = "libhorus.org/admits-";
constexpr char kOffers[] = "libhorus.org/offers-";
constexpr char kYes[] = "yes";
constexpr char kInference[] = "inference";
constexpr size_t kMostKinds = 500;      // of rules; a node has at most 1,024 labels
constexpr size_t kMostOwnLabels = 500;  // of a node

// A pod on its way to a job, or several that share a claim.
struct Member {
  const KubePod* pod = nullptr;         // of several: all that they ask for together
  std::vector<const KubePod*> sharers;  // that one, or these
  KubeAsk ask;
  size_t node = 0;  // where it runs
  bool runs = false;
  KubeShape shape;
  int64_t held_milli = 0;  // thousandths of each of its GPUs, as it asked for them
  std::vector<int32_t> gpus;
  std::string architecture;    // of its engine
  std::string why_not_engine;  // why it does not count as its command line says
};

std::string JobName(const KubePod& pod) { return pod.name_space + "/" + (pod.group.empty() ? pod.name : pod.group); }

class Importer {
 public:
  Importer(const KubeState& state, const Catalogue& catalogue, const ImportOptions& options)
      : state_(state), catalogue_(catalogue), options_(options) {}

  ImportedCluster Run() {
    for (const KubePod& pod : state_.pods) {
      for (const auto& [key, value] : pod.node_selector) selected_.insert(key);
    }
    for (const KubePod& pod : state_.pods) AddMeasured(pod);
    for (const KubeNode& node : state_.nodes) AddNode(node);
    std::vector<Member> members;
    for (Member& member : Joined()) AddMember(std::move(member), members);
    for (Member& member : members) PlaceTold(member);
    for (Member& member : members) PlaceAssumed(member);
    // Whole GPUs are for those of whom something is known, as far as they go round.
    for (Member& member : members) ShapeWaiting(member, /*described=*/true);
    for (Member& member : members) ShapeWaiting(member, /*described=*/false);
    std::erase_if(members, [](const Member& member) { return member.shape.gpus == 0; });
    for (const Member& member : members) CountEngine(member);
    std::vector<KubeHolder> holders;
    for (Member& member : members) {
      if (!member.runs || member.gpus.empty()) continue;
      const KubeRequests& asked = member.pod->requests;
      holders.push_back({&member.node, &member.gpus, asked.cpu_milli, MibCeil(asked.mem_bytes)});
    }
    parted_ = PartNodes(catalogue_, holders, out_, origin_);
    MakeJobs(members);
    Count();
    return std::move(out_);
  }

 private:
  std::vector<std::reference_wrapper<const KubePod>> Sorted() const {
    std::vector<std::reference_wrapper<const KubePod>> sorted(state_.pods.begin(), state_.pods.end());
    std::ranges::sort(sorted, [](const KubePod& a, const KubePod& b) {
      const bool a_waits = a.node.empty(), b_waits = b.node.empty();
      return std::tie(a_waits, a.scheduled_s, a.name_space, a.name) <
             std::tie(b_waits, b.scheduled_s, b.name_space, b.name);
    });
    return sorted;
  }

  // Of the pods of a gang each figure's largest.
  void AddMeasured(const KubePod& pod) {
    const auto at = options_.measured.find({pod.name_space, pod.name});
    if (at == options_.measured.end()) return;
    ++met_;
    Demand& most = measured_.try_emplace(JobName(pod), at->second).first->second;
    const auto raise = [](auto& to, const auto& other) {
      to = {std::max(to.estimate, other.estimate), std::max(to.upper, other.upper)};
    };
    raise(most.gpu_util_pct, at->second.gpu_util_pct);
    raise(most.mem_bw_util_pct, at->second.mem_bw_util_pct);
    raise(most.mem_mib, at->second.mem_mib);
  }

  // Pods that share a claim have the same GPUs, wherever that is: they are one job.
  std::vector<Member> Joined() {
    using Claim = std::pair<std::string, std::string>;
    const auto pods = Sorted();
    std::vector<size_t> before;  // an earlier pod that it shares a claim with, through others too; itself
    const auto first = [&](size_t i) {
      while (before[i] != i) i = before[i] = before[before[i]];
      return i;
    };
    std::map<Claim, size_t> users;
    std::map<size_t, std::string> names;
    for (const KubePod& pod : pods) {
      size_t at = before.size();
      before.push_back(at);
      for (const std::string& name : pod.claims) {
        const auto claim = state_.claims.find({pod.name_space, name});
        if (claim == state_.claims.end() || !HasGpus(claim->second)) continue;
        const size_t other = first(users.try_emplace(claim->first, at).first->second);
        if (other == at) continue;
        before[std::max(at, other)] = std::min(at, other);
        at = std::min(at, other);
        names.emplace(at, name);
      }
    }
    std::map<size_t, std::vector<const KubePod*>> sharers;
    for (size_t i = 0; i < pods.size(); ++i) sharers[first(i)].push_back(&pods[i].get());
    std::vector<Member> joined;
    for (auto& [at, all] : sharers) {
      const KubePod* pod = all.front();
      if (all.size() > 1) {
        sharers_ += all.size();
        pod = &shared_.emplace_back(JoinKubePods(all, names.at(at)));
      }
      joined.push_back({.pod = pod, .sharers = std::move(all)});
    }
    return joined;
  }

  std::string RackOf(const KubeNode& node) const {
    for (const std::string& label : options_.rack_labels) {
      if (std::string rack = KubeLabel(node.labels, label); !rack.empty()) return rack;
    }
    return KubeRack(node.labels);
  }

  KubeTexts LabelsOf(const KubeNode& node) const {
    KubeTexts labels;
    for (const auto& [key, value] : node.labels) {
      const bool feature = std::ranges::any_of(
          kFeatureLabels, [&name = key](std::string_view prefix) { return name.starts_with(prefix); });
      // An empty value is a label, too, which cluster.yaml cannot say: a pod that selects it is left out below.
      const bool wanted = selected_.contains(key) || (!feature && labels.size() < kMostOwnLabels);
      if (wanted && !value.empty()) labels[key] = value;
    }
    return labels;
  }

  void AddNode(const KubeNode& node) {
    const auto slices = state_.slices.find(node.name);
    KubeNodeGpus found = FindKubeGpus(
        catalogue_, node, slices == state_.slices.end() ? std::span<const KubeSlice>() : std::span(slices->second));
    if (!found.note.empty() && !found.gpus.empty())
      out_.notes.push_back(Formatted("%s: %s; its GPUs are known by %s.", node.name, found.note, found.source));
    if (found.gpus.empty()) {
      other_nodes_.insert(node.name);
      if (found.problem.empty()) {
        ++out_.nodes_without_gpus;
      } else {
        out_.left_out.push_back({true, node.name, std::move(found.problem)});
      }
      return;
    }
    ImportedNode made{.name = node.name,
                      .state = !node.ready     ? AdminState::kDown
                               : node.cordoned ? AdminState::kDrained
                                               : AdminState::kUp,
                      .cordoned = node.ready && node.cordoned,
                      .cpu_milli = node.allocatable.cpu_milli,
                      .mem_mib = node.allocatable.mem_bytes / kBytesPerMib,
                      .rack = RackOf(node),
                      .labels = LabelsOf(node),
                      .gpus = std::move(found.gpus),
                      .source = std::move(found.source)};
    node_by_name_[node.name] = out_.nodes.size();
    used_.emplace_back(made.gpus.size(), 0);
    for (const KubeGpu& gpu : made.gpus) {
      offered_.insert(gpu.resource);
      pools_.emplace(gpu.pool, made.name);
    }
    origin_.push_back(&node);
    out_.nodes.push_back(std::move(made));
    if (const auto use = state_.host_use.find(node.name); use != state_.host_use.end())
      TakeHost(out_.nodes.size() - 1, use->second);
  }

  void TakeHost(size_t node, const KubeRequests& requests) {
    ImportedNode& on = out_.nodes[node];
    on.cpu_milli = std::max<int64_t>(0, on.cpu_milli - requests.cpu_milli);
    on.mem_mib = std::max<int64_t>(0, on.mem_mib - MibCeil(requests.mem_bytes));
  }

  // What it takes of its node is no longer free. Nobody knows which GPUs those are, so the node takes nothing new.
  void LeaveOut(const Member& member, std::string reason) {
    if (member.runs) {
      TakeHost(member.node, member.pod->requests);
      ImportedNode& node = out_.nodes[member.node];
      node.cordoned = false;
      if (node.state == AdminState::kUp) {
        node.state = AdminState::kDrained;
        out_.notes.push_back(Formatted(
            "%s: drained, since nobody can tell which of its GPUs a pod that was left out holds.", node.name));
      }
    }
    for (const KubePod* const pod : member.sharers)
      out_.left_out.push_back({false, pod->name_space + "/" + pod->name, reason});
  }

  // Where it is bound, or where its claims hold GPUs for it already.
  std::string NodeOf(const KubePod& pod) const {
    for (const std::string& name : pod.node.empty() ? pod.claims : std::vector<std::string>()) {
      const auto claim = state_.claims.find({pod.name_space, name});
      if (claim == state_.claims.end()) continue;
      for (const KubeAllocated& one : claim->second.allocated) {
        if (one.driver != kKubeGpuDriver) continue;
        const auto node = pools_.find(one.pool);
        return node == pools_.end() ? one.pool : node->second;
      }
    }
    return pod.node;
  }

  void AddMember(Member member, std::vector<Member>& members) {
    const KubePod& pod = *member.pod;
    if (const std::string node = NodeOf(pod); !node.empty()) {
      const auto at = node_by_name_.find(node);
      if (at == node_by_name_.end()) {
        // Without GPUs by a claim of another kind it is none of ours.
        const absl::StatusOr<KubeAsk> ask = AskOf(pod, state_, offered_);
        if (ask.ok() && ask->count == 0) {
          ++out_.pods_without_gpus;
          return;
        }
        const bool known = other_nodes_.contains(node);
        const bool no_slices = known && ask.ok() && !ask->told.empty() && !state_.slices.contains(node);
        return LeaveOut(member, no_slices ? WhyUntold(pod, ask->told.front(), state_)
                                : known   ? "its node is left out, or has no GPUs"
                                          : "its node is not among the objects");
      }
      member.node = at->second;
      member.runs = true;
    }
    absl::StatusOr<KubeAsk> ask = AskOf(pod, state_, offered_);
    if (!ask.ok()) return LeaveOut(member, std::string(ask.status().message()));
    if (ask->count == 0) {
      ++out_.pods_without_gpus;
      if (member.runs) TakeHost(member.node, pod.requests);
      return;
    }
    kai_ += pod.part.asks() ? 1 : 0;
    class_stands_for_resource_ |= pod.by_class;
    by_expression_ += ask->by_expression && !member.runs ? 1 : 0;
    gated_ += pod.gated ? 1 : 0;
    member.ask = *std::move(ask);
    member.shape.gpus = 0;  // not settled
    members.push_back(std::move(member));
  }

  // What its requests say of it, and what its profile does.
  void Shape(Member& member, const KubeGpu& sample) {
    member.shape = ShapeOf(member.ask, sample, catalogue_);
    constexpr int64_t kSome = 500;  // of whoever states no share; only orders the devices
    member.held_milli = member.shape.gpu_milli > 0 ? member.shape.gpu_milli : kSome;
    several_replicas_ += member.ask.count > 1 && sample.replicas > 1 && !sample.counts_memory ? 1 : 0;
    if (member.ask.by_expression && member.runs) member.shape.only = sample.type;
    const KubePod& pod = *member.pod;
    const std::string key = pod.name_space + "/" + pod.terms.profile;
    const bool parts = sample.mode == SharingMode::kMig || sample.replicas > 1;
    if (pod.terms.profile.empty() || parts || !KnowsProfile(key, pod)) {
      Describe(member, sample);
      // Nobody knows what it would do on another type.
      if (member.runs && member.shape.profile.empty()) member.shape.only = sample.type;
      return;
    }
    member.shape.profile = key;
    const std::vector<TypeDemand>& demands = out_.profiles.at(key).demands;
    if (std::ranges::none_of(demands, [&](const TypeDemand& one) { return one.type == member.shape.only; }))
      member.shape.only = GpuTypeId();
    if (const absl::Status status = AddTerms(pod.terms, member.ask, member.shape); !status.ok()) {
      out_.notes.push_back(
          Formatted("%s/%s: %s; it shares with nobody.", pod.name_space, pod.name, std::string(status.message())));
    }
  }

  // As measured, else as a pattern says. It then shares as the pattern says, and no longer by what it asked for.
  void Describe(Member& member, const KubeGpu& sample) {
    const KubePod& pod = *member.pod;
    KubeShape& shape = member.shape;
    if (member.sharers.size() > 1) return;  // a pattern is of one pod
    const bool mig = sample.mode == SharingMode::kMig;
    const KubePattern* const pattern = FindPattern(options_.patterns, pod);
    matched_.insert(pattern);
    ImportedProfile profile{.by = KnownBy::kMeasured, .kind = {}, .demands = {}, .pattern = pattern};
    std::string key;
    if (pod.engine != nullptr && (pattern == nullptr || !pattern->says_kind)) profile.kind = kInference;
    // The exporter tells of devices: of a pod that shares one it says what all of its pods do.
    const auto seen = member.runs ? measured_.find(JobName(pod)) : measured_.end();
    const bool whole = shape.gpu_milli == kMilliPerGpu && !mig;
    const std::tuple sibling(pod.name_space, pod.owner, shape.gpus);
    if (seen != measured_.end() && whole) {
      constexpr float kMostPct = 99.9F;  // 100 and nothing else reads as a request
      Demand demand = seen->second;
      const int64_t most_mib = std::max<int64_t>(1, catalogue_.at(sample.type).mem_mib - kHeadroomMib);
      demand.mem_mib = {std::min(demand.mem_mib.estimate, most_mib), std::min(demand.mem_mib.upper, most_mib)};
      demand.gpu_util_pct.estimate = std::min(kMostPct, demand.gpu_util_pct.estimate);
      profile.demands.push_back({sample.type, demand});
      key = Formatted("measured %s on %s, %s", seen->first, catalogue_.at(sample.type).name,
                      pattern ? pattern->job.where : "");
      if (!pod.owner.empty()) {
        std::string& known = siblings_.try_emplace(sibling, key).first->second;
        if (out_.profiles.contains(known) && out_.profiles.at(known).demands.front().type != sample.type) known.clear();
      }
    } else if (const auto at = siblings_.find(sibling); !member.runs && whole && !(pattern && pattern->says_demand()) &&
                                                        at != siblings_.end() && !at->second.empty()) {
      key = at->second;  // as a pod of the same ReplicaSet or Job does
    } else {
      measured_on_parts_ += seen != measured_.end() ? 1 : 0;
      const KubeEngine* const engine = pod.engine.get();
      std::vector<Demand> steps;
      const bool unknown = engine != nullptr && !WhyUnknown(member, sample, engine->run, steps).empty();
      if (pattern == nullptr || !pattern->says_demand() || (pattern->is_architecture() && engine != nullptr) ||
          (pattern->is_load && unknown))
        return engine != nullptr ? DescribeEngine(member, sample, std::move(profile)) : void();
      if (pattern->is_load && engine != nullptr) profile.run = engine->run;
      if (pattern->is_load ? engine == nullptr || engine->run.config.tensor_parallel != shape.gpus
                           : !pattern->Fits(shape.gpus, member.runs ? sample.type : GpuTypeId())) {
        if (unfit_.insert(pattern).second) {
          out_.notes.push_back(
              Formatted("%s: %s matches with another number or type of GPUs, or is no engine, and counts by its "
                        "requests, as others may.",
                        pattern->job.where, JobName(pod)));
        }
        return;
      }
      profile.by = KnownBy::kPattern;
      profile.kind.clear();
      key = "pattern " + pattern->job.where + (profile.run ? " of " + engine->RunText() : "");
      HoldEngine(member, sample, steps, profile, key);
    }
    out_.profiles.try_emplace(key, std::move(profile));
    shape.profile = std::move(key);
    shape.gpu_milli = mig ? kMilliPerGpu : 0;  // an instance has one tenant
  }

  // MiB of such a GPU that its engine sees. Replicas hold no memory back: it is the card.
  int64_t SeenMib(const Member& member, const KubeGpu& sample, GpuTypeId type) const {
    const KubeShape& shape = member.shape;
    if (sample.mode == SharingMode::kMig)
      return catalogue_.at(sample.type).mig[static_cast<size_t>(sample.mig_profile)].mem_mib;
    if (sample.counts_memory && shape.mem_mib > 0) return shape.mem_mib;
    // Bounded: MiB of a card, in thousandths.
    return catalogue_.at(type).mem_mib * (sample.counts_memory ? shape.mem_milli : kMilliPerGpu) / kMilliPerGpu;
  }

  // Of a pod that runs: its engine holds what it was told to take, whatever a pattern says of what comes. How much that
  // were on another type nobody says.
  void HoldEngine(Member& member, const KubeGpu& sample, const std::vector<Demand>& steps, ImportedProfile& profile,
                  std::string& key) const {
    const KubeEngine* const engine = member.pod->engine.get();
    if (!member.runs || engine == nullptr || engine->memory == EngineMemory::kUnknown) return;
    const int64_t seen = SeenMib(member, sample, sample.type);
    const int64_t taken = TakenMib(*engine, seen, steps.empty() ? 0 : steps[sample.type.value()].mem_mib.estimate);
    const int64_t holds = std::min(taken, std::max<int64_t>(1, seen - kHeadroomMib));
    for (auto [type, demand] : profile.pattern->job.spec.demands) {
      if (type.valid() && type != sample.type) continue;
      demand.mem_mib.estimate = std::max(demand.mem_mib.estimate, holds);
      demand.mem_mib.upper = std::max(demand.mem_mib.estimate, demand.mem_mib.upper);
      profile.demands = {{sample.type, demand}};
    }
    if (profile.demands.empty()) member.shape.holds_mib = holds;
    member.shape.only = sample.type;
    key += Formatted(" with %d MiB of %s", holds, catalogue_.at(sample.type).name);
  }

  // Why its steps cannot be predicted; else `steps` are they, by type.
  std::string WhyUnknown(const Member& member, const KubeGpu& sample, const ModelRun& run,
                         std::vector<Demand>& steps) const {
    const KubeEngine& engine = *member.pod->engine;
    if (!engine.why_not.empty() && (run.path.empty() || engine.why_not != kUnknownModel)) return engine.why_not;
    if (member.shape.gpus % engine.gpus() != 0) {
      return Formatted("it asks for %d GPUs, and its engine parts the model among %d", member.shape.gpus,
                       engine.gpus());
    }
    absl::StatusOr<std::vector<Demand>> predicted = InvalidArgument("nobody predicts here");
    if (options_.predict) predicted = options_.predict(run);
    if (!predicted.ok()) return std::string(predicted.status().message());
    steps = *std::move(predicted);
    const int64_t needs = steps[sample.type.value()].mem_mib.estimate;
    const int64_t takes = TakenMib(engine, catalogue_.at(sample.type).mem_mib, needs);
    constexpr double kSlack = 0.9;  // predictions of memory err
    if (!member.runs || kSlack * static_cast<double>(needs) <= static_cast<double>(takes)) return "";
    return Formatted("%s needs %d MiB, and it is told to take %d", run.path, needs, takes);
  }

  // As its command line says: the memory that the engine takes, and steps of one request, as if it were always at work:
  // nobody tells its load. What a faster GPU were worth to it nobody knows either: where it runs it keeps to the type.
  void DescribeEngine(Member& member, const KubeGpu& sample, ImportedProfile profile) {
    const KubeEngine& engine = *member.pod->engine;
    KubeShape& shape = member.shape;
    ModelRun run = engine.run;
    if (profile.pattern != nullptr && profile.pattern->is_architecture()) run.path = profile.pattern->job.model->path;
    std::vector<Demand> steps;
    member.why_not_engine = WhyUnknown(member, sample, run, steps);
    const bool known = member.why_not_engine.empty();
    member.architecture = run.path;
    if (!known && (shape.gpu_milli == kMilliPerGpu || engine.memory == EngineMemory::kUnknown)) return;
    const bool mig = sample.mode == SharingMode::kMig;
    std::set<GpuTypeId> types = {sample.type};
    for (const ImportedNode& node : out_.nodes) {
      for (const KubeGpu& gpu : node.gpus) {
        if (!member.runs) types.insert(gpu.type);
      }
    }
    for (const GpuTypeId type : types) {
      const int64_t seen = SeenMib(member, sample, type);
      Demand demand = known ? steps[type.value()] : Demand{};
      if (known && demand.mem_mib.estimate > seen && !member.runs) continue;
      const int64_t taken =
          std::min(TakenMib(engine, seen, demand.mem_mib.estimate), std::max<int64_t>(1, seen - kHeadroomMib));
      demand.mem_mib = {taken, taken};
      if (!known) demand.gpu_util_pct = {100, 100};
      profile.demands.push_back({type, demand});
    }
    if (profile.demands.empty()) {
      member.why_not_engine = run.path + " fits no GPU type here";
      return;
    }
    profile.by = known ? KnownBy::kEngine : KnownBy::kNobody;
    const std::string key =
        Formatted("engine %s, %s %s", engine.RunText(), profile.pattern ? profile.pattern->job.where : "",
                  shape.needs + (member.runs ? " on " + catalogue_.at(sample.type).name : ""));
    out_.profiles.try_emplace(key, std::move(profile));
    shape.profile = key;
    if (known) shape.gpu_milli = mig ? kMilliPerGpu : 0;
  }

  void CountEngine(const Member& member) {
    if (member.pod->engine == nullptr || member.sharers.size() > 1) return;
    const KubeEngine& engine = *member.pod->engine;
    const std::string& profile = member.shape.profile;
    const KnownBy by = profile.empty() ? KnownBy::kNobody : out_.profiles.at(profile).by;
    ++out_.engines[{.name = std::string(engine.name),
                    .model = engine.model,
                    .gpus = member.shape.gpus,
                    .context = engine.context,
                    .memory_share = engine.memory == EngineMemory::kUnknown ? 0 : engine.memory_share,
                    .by = by,
                    .architecture = by == KnownBy::kEngine ? member.architecture : "",
                    .why_not = by == KnownBy::kNobody ? member.why_not_engine : ""}];
  }

  bool KnowsProfile(const std::string& key, const KubePod& pod) {
    if (out_.profiles.contains(key)) return true;
    if (unknown_profiles_.contains(key)) return false;
    const auto at = state_.profiles.find({pod.name_space, pod.terms.profile});
    absl::StatusOr<std::vector<TypeDemand>> demands = InvalidArgument("it is not among the objects");
    if (at != state_.profiles.end()) demands = DemandsOf(at->second, catalogue_);
    if (demands.ok()) {
      out_.profiles[key] = {KnownBy::kJobProfile, at->second.kind, *std::move(demands), nullptr};
      return true;
    }
    unknown_profiles_.insert(key);
    out_.notes.push_back(Formatted("JobProfile %s: %s; pods that name it count by their requests.", key,
                                   std::string(demands.status().message())));
    return false;
  }

  // The shape that its devices give it, and what it takes of them.
  void Settle(Member& member) {
    const std::vector<KubeGpu>& gpus = out_.nodes[member.node].gpus;
    Shape(member, gpus[static_cast<size_t>(member.gpus.front())]);
    member.gpus.resize(static_cast<size_t>(member.shape.gpus));
    for (const int32_t gpu : member.gpus) used_[member.node][static_cast<size_t>(gpu)] += member.held_milli;
  }

  void PlaceTold(Member& member) {
    if (!member.runs || member.ask.told.empty()) return;
    const std::vector<KubeGpu>& gpus = out_.nodes[member.node].gpus;
    for (const KubeTold& told : member.ask.told) {
      const auto at = std::ranges::find_if(gpus, [&](const KubeGpu& gpu) {
        return told.uuid.empty() ? gpu.pool == told.pool && gpu.name == told.device && !gpu.name.empty()
                                 : gpu.uuid == told.uuid;
      });
      if (at == gpus.end()) return LeaveOut(member, WhyUntold(*member.pod, told, state_));
      member.gpus.push_back(static_cast<int32_t>(at - gpus.begin()));
    }
    // Containers of one pod may use one card; a job has each of its GPUs once.
    std::ranges::sort(member.gpus);
    member.gpus.erase(std::unique(member.gpus.begin(), member.gpus.end()), member.gpus.end());
    member.ask.count = static_cast<int64_t>(member.gpus.size());
    out_.told += member.sharers.size();
    Settle(member);
  }

  void PlaceAssumed(Member& member) {
    if (!member.runs || !member.ask.told.empty()) return;
    const std::vector<KubeGpu>& gpus = out_.nodes[member.node].gpus;
    std::vector<int32_t> fit;
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (gpus[i].resource == member.ask.resource) fit.push_back(static_cast<int32_t>(i));
    }
    KubeShape shape{.gpus = member.ask.count};
    if (!fit.empty()) shape = ShapeOf(member.ask, gpus[static_cast<size_t>(fit.front())], catalogue_);
    const std::vector<int64_t>& used = used_[member.node];
    std::ranges::stable_sort(
        fit, [&](int32_t a, int32_t b) { return used[static_cast<size_t>(a)] < used[static_cast<size_t>(b)]; });
    const size_t offered = fit.size();
    std::vector<std::string> groups = member.ask.groups;
    groups.resize(static_cast<size_t>(shape.gpus));  // Bounded: at most kMaxDevicesPerNode
    for (const std::string& group : groups) {
      const auto known = group.empty() ? group_gpus_.end() : group_gpus_.find({member.node, group});
      int32_t gpu = known == group_gpus_.end() ? (fit.empty() ? -1 : fit.front()) : known->second;
      // Bounded: thousandths of one device, and at most 500 for each pod.
      const bool full = gpu >= 0 && known == group_gpus_.end() && !gpus[0].counts_memory &&
                        used[static_cast<size_t>(gpu)] + std::max<int64_t>(1, shape.gpu_milli) > kMilliPerGpu;
      if (gpu < 0 || full) {
        return LeaveOut(member, Formatted("it holds %d of %s, and its node offers %d, less what other pods hold",
                                          member.ask.count, member.ask.resource, offered));
      }
      std::erase(fit, gpu);
      member.gpus.push_back(gpu);
      if (!group.empty()) group_gpus_[{member.node, group}] = gpu;
    }
    std::ranges::sort(member.gpus);
    ++out_.assumed;
    class_stands_for_resource_ |= !gpus[static_cast<size_t>(member.gpus.front())].name.empty();
    Settle(member);
  }

  // A device that the pod might get, of nodes where it may go: one that is free rather than one that is not, then a
  // whole one rather than the largest part. What is free it keeps from those that come after it.
  const KubeGpu* SampleFor(const Member& member) {
    const KubeAsk& ask = member.ask;
    const std::string rules = LabelOfRules(*member.pod).value_or("");
    const KubeGpu* sample = nullptr;
    std::tuple<bool, bool, bool, bool, int64_t> best;
    size_t on = 0;
    const auto free_parts = [&](size_t node, size_t gpu) {
      // Bounded: at most 1,024 replicas of a device, in thousandths.
      return (kMilliPerGpu - used_[node][gpu]) * out_.nodes[node].gpus[gpu].replicas / kMilliPerGpu;
    };
    const auto is_one = [&](const KubeGpu& gpu) {
      return (ask.resource.empty() ? gpu.mode != SharingMode::kMig && !gpu.name.empty()
                                   : gpu.resource == ask.resource) &&
             (!ask.hami || gpu.counts_memory);
    };
    for (size_t i = 0; i < out_.nodes.size(); ++i) {
      const ImportedNode& node = out_.nodes[i];
      const bool may = (rules.empty() || node.labels.contains(rules)) &&
                       std::ranges::all_of(member.pod->node_selector, [&](const auto& label) {
                         return KubeLabel(origin_[i]->labels, label.first) == label.second;
                       });
      int64_t free = 0;
      for (size_t k = 0; k < node.gpus.size(); ++k) free += is_one(node.gpus[k]) ? free_parts(i, k) : 0;
      const bool taken = node.state != AdminState::kUp || free < ask.count;
      for (const KubeGpu& gpu : node.gpus) {
        if (!is_one(gpu)) continue;
        const std::tuple rank(!may, taken, gpu.counts_memory, gpu.mode == SharingMode::kMig, gpu.replicas);
        if (sample != nullptr && rank >= best) continue;
        sample = &gpu;
        best = rank;
        on = i;
      }
    }
    int64_t left = sample == nullptr || std::get<0>(best) || std::get<1>(best) || sample->counts_memory ? 0 : ask.count;
    for (size_t k = 0; left > 0 && k < used_[on].size(); ++k) {
      const KubeGpu& gpu = out_.nodes[on].gpus[k];
      const int64_t parts = is_one(gpu) ? std::min(left, free_parts(on, k)) : 0;
      used_[on][k] += parts * kMilliPerGpu / gpu.replicas;  // Bounded: as above
      left -= parts;
    }
    return sample;
  }

  void ShapeWaiting(Member& member, bool described) {
    const bool is_described =
        !member.pod->terms.profile.empty() || FindPattern(options_.patterns, *member.pod) != nullptr;
    if (member.runs || is_described != described) return;
    const KubeGpu* const sample = SampleFor(member);
    if (sample == nullptr) {
      LeaveOut(member, Formatted("no node that was read offers %s", member.ask.resource.empty() ? "GPUs by claims"
                                                                    : member.ask.hami           ? "GPUs by HAMi"
                                                                                                : member.ask.resource));
      return;
    }
    Shape(member, *sample);
  }

  std::string UniqueName(std::string name) {
    const std::string plain = name;
    for (size_t i = 2; !names_.insert(name).second; ++i) name = Formatted("%s#%d", plain, i);
    return name;
  }

  // The label of ours that the pod's rules ask for; empty: every node admits it. Nullopt: too many kinds.
  std::optional<std::string> LabelOfRules(const KubePod& pod) {
    if (const auto known = kinds_.find(pod.rules); known != kinds_.end()) return known->second;
    std::vector<bool> admits;
    for (const KubeNode* const node : origin_) admits.push_back(Admits(pod.rules, *node));
    std::string label;
    if (std::ranges::find(admits, false) != admits.end()) {
      if (kinds_.size() >= kMostKinds) return std::nullopt;
      label = kAdmits + std::to_string(kinds_.size() + 1);
      for (size_t i = 0; i < admits.size(); ++i) {
        if (admits[i]) out_.nodes[i].labels[label] = kYes;
      }
    }
    kinds_.emplace(pod.rules, label);
    return label;
  }

  // The label of ours that its way to get GPUs asks for; empty: every node offers it.
  std::string LabelOfNeeds(const std::string& needs) {
    const auto [known, is_new] = ways_.try_emplace(needs);
    if (!is_new) return known->second;
    // GPUs of slices by their resource: where a plugin offers them beside the driver, or a class stands for it.
    std::vector<size_t> offer, by_class;
    for (size_t i = 0; i < out_.nodes.size(); ++i) {
      const std::vector<KubeGpu>& gpus = out_.nodes[i].gpus;
      const auto gpu = std::ranges::find_if(gpus, [&](const KubeGpu& one) { return Offers(one, needs, catalogue_); });
      if (gpu == gpus.end()) continue;
      const bool by_resource = gpu->name.empty() || needs.starts_with(kByClaim) || class_stands_for_resource_ ||
                               origin_[i]->allocatable.resources.contains(gpu->resource);
      (by_resource ? offer : by_class).push_back(i);
    }
    if (offer.empty()) offer = std::move(by_class);
    if (offer.size() == out_.nodes.size()) return known->second;
    known->second = kOffers + needs;
    for (const size_t i : offer) out_.nodes[i].labels[known->second] = kYes;
    return known->second;
  }

  // What nodes must have for the pods; false, and left out, where that cannot be said.
  bool AddSelector(const Member& member, KubeTexts& selector) {
    std::set<std::string> labels = {LabelOfNeeds(member.shape.needs)};
    bool many_kinds = false;
    for (const KubePod* const pod : member.sharers) {
      const std::optional<std::string> label = LabelOfRules(*pod);
      many_kinds |= !label;
      labels.insert(label.value_or(""));
    }
    labels.erase("");
    const bool empty = std::ranges::any_of(selector, [](const auto& one) { return one.second.empty(); });
    if (many_kinds || empty || labels.size() + selector.size() > kMaxSelectorsPerJob) {  // Bounded: in memory
      LeaveOut(member, many_kinds ? Formatted("more than %d kinds of tolerations and affinities", kMostKinds)
                       : empty    ? "it selects nodes by an empty label"
                                  : "it selects nodes by too many labels");
      return false;
    }
    for (const std::string& one : labels) selector[one] = kYes;
    return true;
  }

  // Pods of one group that are alike and run, or wait, are the tasks of one job.
  void MakeJobs(const std::vector<Member>& members) {
    using Key = std::tuple<std::string, std::string, bool, KubeShape, int64_t, int64_t, KubeTexts, int32_t>;
    std::map<Key, size_t> gangs;
    for (const Member& member : members) {
      const KubePod& pod = *member.pod;
      KubeTexts selector = pod.node_selector;
      if (!AddSelector(member, selector)) continue;
      ImportedJob job{.name = JobName(pod),
                      .tenant = pod.name_space,
                      .submit_s = pod.created_s,
                      .placed_s = pod.scheduled_s,
                      .priority = pod.priority,
                      .cpu_milli = pod.requests.cpu_milli,
                      .mem_mib = MibCeil(pod.requests.mem_bytes),
                      .shape = member.shape,
                      .node_selector = std::move(selector)};
      if (!job.shape.profile.empty()) job.known_by = out_.profiles.at(job.shape.profile).by;
      for (const int32_t gpu : member.gpus) job.on.push_back({member.node, gpu});
      out_.pods += member.sharers.size();
      if (!pod.group.empty()) {
        KubeShape alike = job.shape;
        if (alike.profile.empty()) alike.only = GpuTypeId();  // of several types, if only requests are known
        const Key key(pod.name_space, pod.group, member.runs, alike, job.cpu_milli, job.mem_mib, job.node_selector,
                      job.priority);
        const auto [at, is_new] = gangs.emplace(key, out_.jobs.size());
        // Bounded: pods in memory, at most 1,024 GPUs each.
        if (!is_new && (out_.jobs[at->second].tasks + 1) * job.shape.gpus <= kMaxGpusPerJob) {
          ImportedJob& gang = out_.jobs[at->second];
          ++gang.tasks;
          if (gang.shape.only != job.shape.only) gang.shape.only = GpuTypeId();
          gang.submit_s = std::min(gang.submit_s, job.submit_s);
          gang.placed_s = std::max(gang.placed_s, job.placed_s);
          gang.on.insert(gang.on.end(), job.on.begin(), job.on.end());
          continue;
        }
        at->second = out_.jobs.size();
      }
      job.name = UniqueName(std::move(job.name));
      out_.jobs.push_back(std::move(job));
    }
    std::ranges::stable_sort(out_.jobs, {}, [](const ImportedJob& job) { return std::tie(job.submit_s, job.name); });
    const int64_t first = out_.jobs.empty() ? 0 : out_.jobs.front().submit_s;
    for (size_t i = 0; i < out_.jobs.size(); ++i) {
      out_.jobs[i].id = i + 1;
      out_.jobs[i].submit_s -= first;
      out_.jobs[i].placed_s -= first;
    }
  }

  void Count() {
    out_.pods_done = state_.pods_done;
    out_.pods_without_gpus += state_.pods_without_gpus;
    const auto note = [&](size_t count, std::string_view text) {
      if (count > 0) out_.notes.push_back(std::to_string(count) + std::string(text));
    };
    if (out_.pods_done + state_.pods.size() + state_.pods_without_gpus == 0)
      out_.notes.emplace_back("No pods are among the objects: nothing tells what runs and waits.");
    note(by_expression_,
         " pods select GPUs of their claims by expressions, which are not read: they are placed by number.");
    note(kai_, " pods ask for parts of GPUs by annotations of KAI or Run:ai.");
    note(several_replicas_,
         " pods ask for several replicas of shared GPUs, and nobody tells whether these lie on one GPU: they count as "
         "parts of as few GPUs as may be.");
    note(
        parted_,
        " nodes have whole GPUs, replicas or instances of several profiles: each kind is listed as a node of its own.");
    note(sharers_, " pods share claims: those of one claim are one job, called like the claim.");
    note(gated_, " pods that wait are held back by scheduling gates.");
    note(measured_on_parts_,
         " measured pods have parts of GPUs: figures of the whole GPU are not theirs alone, and not used.");
    if (measured_.empty() && !options_.measured.empty()) {
      const auto& [name_space, name] = options_.measured.begin()->first;
      note(options_.measured.size(), " pods were measured, and none is among the objects: " + name_space + "/" + name);
    } else {
      note(options_.measured.size() - met_, " measured pods are not among the objects with GPUs.");
    }
    std::vector<std::string_view> unmatched;
    for (const KubePattern& pattern : options_.patterns) {
      if (!matched_.contains(&pattern)) unmatched.push_back(pattern.job.where);
    }
    note(unmatched.size(), " profiles are the first match of no pod with GPUs: " + QuotedSome(unmatched, 3));
    for (const auto& [driver, slices] : state_.other_drivers)
      note(slices, " resource slices of driver " + Quoted(driver) + " are not read.");
    note(state_.slices_without_node, " resource slices that belong to no single node are not read.");
  }

  const KubeState& state_;
  const Catalogue& catalogue_;
  const ImportOptions& options_;
  ImportedCluster out_;
  std::map<std::string, size_t> node_by_name_;                    // of those in `out_`
  std::set<std::string> other_nodes_;                             // left out, or without GPUs
  std::vector<const KubeNode*> origin_;                           // of the nodes in `out_`
  std::vector<std::vector<int64_t>> used_;                        // thousandths of each device
  std::map<std::pair<size_t, std::string>, int32_t> group_gpus_;  // of KAI, by node and group
  std::set<std::string> offered_;                                 // resources that are GPUs
  std::set<std::string> selected_;                                // label keys
  std::set<std::string> names_;
  std::set<std::string> unknown_profiles_;
  std::map<std::string, Demand> measured_;  // by name of job
  // Profile of a pod that was measured, by namespace, owner and number of GPUs; empty: on several GPU types.
  std::map<std::tuple<std::string, std::string, int32_t>, std::string> siblings_;
  std::set<const KubePattern*> matched_, unfit_;
  size_t met_ = 0, measured_on_parts_ = 0;  // measured pods among the objects; those that have parts of GPUs
  std::map<KubeRules, std::string> kinds_;
  size_t kai_ = 0;
  std::map<std::string, std::string> ways_;   // label by KubeShape::needs
  std::deque<KubePod> shared_;                // of those that share claims, all that they ask for
  std::map<std::string, std::string> pools_;  // node by pool of its slices
  bool class_stands_for_resource_ = false;
  size_t parted_ = 0;
  size_t sharers_ = 0;
  size_t by_expression_ = 0;
  size_t several_replicas_ = 0;
  size_t gated_ = 0;
};

}  // namespace

ImportedCluster ImportCluster(const KubeState& state, const Catalogue& catalogue, const ImportOptions& options) {
  return Importer(state, catalogue, options).Run();
}

}  // namespace horus
