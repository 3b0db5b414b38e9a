// SPDX-License-Identifier: Apache-2.0
// Nodes first, then the pods whose devices are told, then the others, then gangs.
#include "io/kube/kube_import.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "io/kube/kube_admits.h"
#include "io/kube/kube_gpu_names.h"
#include "io/kube/kube_profile.h"

namespace horus {
namespace {

constexpr std::array<const char*, 6> kRackLabels = {"topology.kubernetes.io/rack",
                                                    "network.topology.nvidia.com/leaf",
                                                    "topology.k8s.aws/network-node-layer-3",
                                                    "cloud.google.com/gce-topology-subblock",
                                                    "rack",
                                                    "topology.kubernetes.io/zone"};
// Written by machines, dozens a node, and rarely what a pod selects: kept where one does.
constexpr std::array<std::string_view, 3> kFeatureLabels = {"feature.node.kubernetes.io/", "nvidia.com/",
                                                            "beta.kubernetes.io/"};
// Labels of ours: which nodes admit pods of one kind, and which offer a resource.
constexpr char kAdmits[] = "libhorus.org/admits-";
constexpr char kOffers[] = "libhorus.org/offers-";
constexpr char kYes[] = "yes";
constexpr size_t kMostKinds = 500;      // of rules; a node has at most 1,024 labels
constexpr size_t kMostOwnLabels = 500;  // of a node
constexpr std::string_view kVendor = "nvidia.com/";

// A pod on its way to a job.
struct Member {
  const KubePod* pod = nullptr;
  KubeAsk ask;
  size_t node = 0;  // where it runs
  bool runs = false;
  KubeShape shape;
  std::vector<int32_t> gpus;
};

class Importer {
 public:
  Importer(const KubeState& state, const Catalogue& catalogue, const ImportOptions& options)
      : state_(state), catalogue_(catalogue), options_(options) {}

  ImportedCluster Run() {
    for (const KubePod& pod : state_.pods) {
      for (const auto& [key, value] : pod.node_selector) selected_.insert(key);
    }
    for (const KubeNode& node : state_.nodes) AddNode(node);
    std::vector<Member> members;
    for (const KubePod& pod : Sorted()) AddMember(pod, members);
    for (Member& member : members) PlaceTold(member);
    for (Member& member : members) PlaceAssumed(member);
    for (Member& member : members) ShapeWaiting(member);
    std::erase_if(members, [](const Member& member) { return member.shape.gpus == 0; });
    MakeJobs(members);
    LabelOffers();
    Count();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::vector<std::reference_wrapper<const KubePod>> Sorted() const;
  void AddNode(const KubeNode& node);
  void AddMember(const KubePod& pod, std::vector<Member>& members);
  void PlaceTold(Member& member);
  void PlaceAssumed(Member& member);
  void ShapeWaiting(Member& member);
  void MakeJobs(const std::vector<Member>& members);
  void LabelOffers();
  void Count();

  [[nodiscard]] std::string RackOf(const KubeNode& node) const;
  [[nodiscard]] KubeTexts LabelsOf(const KubeNode& node) const;
  [[nodiscard]] const KubeGpu* SampleFor(const KubeAsk& ask) const;
  [[nodiscard]] std::string UniqueName(std::string name);
  // The label of ours that the pod's rules ask for; empty: every node admits it. Nullopt: too many kinds.
  [[nodiscard]] std::optional<std::string> LabelOfRules(const KubePod& pod);
  void Settle(Member& member);
  void Shape(Member& member, const KubeGpu& sample);
  [[nodiscard]] bool KnowsProfile(const std::string& key, const KubePod& pod);
  void LeaveOut(const Member& member, std::string reason);
  void TakeHost(size_t node, const KubeRequests& requests);

  const KubeState& state_;
  const Catalogue& catalogue_;
  const ImportOptions& options_;
  ImportedCluster out_;
  std::map<std::string, size_t> node_by_name_;  // of those in `out_`
  std::set<std::string> other_nodes_;           // left out, or without GPUs
  std::vector<const KubeNode*> origin_;         // of the nodes in `out_`
  std::vector<std::vector<int64_t>> used_;      // thousandths of each device
  std::set<std::string> selected_;              // label keys
  std::set<std::string> names_;
  std::set<std::string> unknown_profiles_;
  std::map<KubeRules, std::string> kinds_;
  size_t by_expression_ = 0;
  size_t gated_ = 0;
};

std::vector<std::reference_wrapper<const KubePod>> Importer::Sorted() const {
  std::vector<std::reference_wrapper<const KubePod>> sorted(state_.pods.begin(), state_.pods.end());
  std::sort(sorted.begin(), sorted.end(), [](const KubePod& a, const KubePod& b) {
    const bool a_waits = a.node.empty(), b_waits = b.node.empty();
    return std::tie(a_waits, a.scheduled_s, a.name_space, a.name) <
           std::tie(b_waits, b.scheduled_s, b.name_space, b.name);
  });
  return sorted;
}

std::string Importer::RackOf(const KubeNode& node) const {
  for (const std::string& label : options_.rack_labels) {
    if (std::string rack = KubeLabel(node.labels, label); !rack.empty()) return rack;
  }
  for (const char* const label : kRackLabels) {
    if (std::string rack = KubeLabel(node.labels, label); !rack.empty()) return rack;
  }
  return "";
}

KubeTexts Importer::LabelsOf(const KubeNode& node) const {
  KubeTexts labels;
  for (const auto& [key, value] : node.labels) {
    const bool feature = std::any_of(kFeatureLabels.begin(), kFeatureLabels.end(),
                                     [&](std::string_view prefix) { return key.starts_with(prefix); });
    // An empty value is a label, too, which cluster.yaml cannot say: a pod that selects it is left out below.
    const bool wanted = selected_.contains(key) || (!feature && labels.size() < kMostOwnLabels);
    if (wanted && !value.empty()) labels[key] = value;
  }
  return labels;
}

void Importer::AddNode(const KubeNode& node) {
  const auto slices = state_.slices.find(node.name);
  KubeNodeGpus found = FindKubeGpus(
      catalogue_, node, slices == state_.slices.end() ? std::span<const KubeSlice>() : std::span(slices->second));
  if (!found.note.empty() && !found.gpus.empty()) {
    out_.notes.push_back(Formatted("%s: %s; its GPUs are known by %s.", node.name, found.note, found.source));
  }
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
                    .cpu_milli = node.cpu_milli,
                    .mem_mib = node.mem_bytes / kBytesPerMib,
                    .rack = RackOf(node),
                    .labels = LabelsOf(node),
                    .gpus = std::move(found.gpus),
                    .source = std::move(found.source)};
  node_by_name_[node.name] = out_.nodes.size();
  used_.emplace_back(made.gpus.size(), 0);
  origin_.push_back(&node);
  out_.nodes.push_back(std::move(made));
  if (const auto use = state_.host_use.find(node.name); use != state_.host_use.end()) {
    TakeHost(out_.nodes.size() - 1, {use->second.cpu_milli, use->second.mem_bytes, {}});
  }
}

void Importer::TakeHost(size_t node, const KubeRequests& requests) {
  ImportedNode& on = out_.nodes[node];
  on.cpu_milli = std::max<int64_t>(0, on.cpu_milli - requests.cpu_milli);
  on.mem_mib = std::max<int64_t>(0, on.mem_mib - MibCeil(requests.mem_bytes));
}

// What it takes of its node is no longer free. Nobody knows which GPUs those are, so the node takes nothing new.
void Importer::LeaveOut(const Member& member, std::string reason) {
  if (member.runs) {
    TakeHost(member.node, member.pod->requests);
    ImportedNode& node = out_.nodes[member.node];
    if (node.state == AdminState::kUp) {
      node.state = AdminState::kDrained;
      out_.notes.push_back(
          Formatted("%s: drained, since nobody can tell which of its GPUs a pod that was left out holds.", node.name));
    }
  }
  out_.left_out.push_back({false, member.pod->name_space + "/" + member.pod->name, std::move(reason)});
}

void Importer::AddMember(const KubePod& pod, std::vector<Member>& members) {
  Member member{.pod = &pod};
  if (!pod.node.empty()) {
    const auto at = node_by_name_.find(pod.node);
    if (at == node_by_name_.end()) {
      // Without GPUs by a claim of another kind it is none of ours.
      const absl::StatusOr<KubeAsk> ask = AskOf(pod, state_);
      if (ask.ok() && ask->count == 0) {
        ++out_.pods_without_gpus;
        return;
      }
      LeaveOut(member, other_nodes_.contains(pod.node) ? "its node is left out, or has no GPUs"
                                                       : "its node is not among the objects");
      return;
    }
    member.node = at->second;
    member.runs = true;
  }
  absl::StatusOr<KubeAsk> ask = AskOf(pod, state_);
  if (!ask.ok()) return LeaveOut(member, std::string(ask.status().message()));
  if (ask->count == 0) {
    ++out_.pods_without_gpus;
    if (member.runs) TakeHost(member.node, pod.requests);
    return;
  }
  by_expression_ += ask->by_expression ? 1 : 0;
  gated_ += pod.gated ? 1 : 0;
  member.ask = *std::move(ask);
  member.shape.gpus = 0;  // not settled
  members.push_back(std::move(member));
}

// What its requests say of it, and what its profile does.
void Importer::Shape(Member& member, const KubeGpu& sample) {
  member.shape = ShapeOf(member.ask, sample, catalogue_);
  const KubePod& pod = *member.pod;
  if (pod.terms.profile.empty() || sample.mode == SharingMode::kMig || sample.replicas > 1) return;
  const std::string key = pod.name_space + "/" + pod.terms.profile;
  if (!KnowsProfile(key, pod)) return;
  member.shape.profile = key;
  if (const absl::Status status = AddTerms(pod.terms, member.ask, member.shape); !status.ok()) {
    out_.notes.push_back(
        Formatted("%s/%s: %s; it shares with nobody.", pod.name_space, pod.name, std::string(status.message())));
  }
}

bool Importer::KnowsProfile(const std::string& key, const KubePod& pod) {
  if (out_.profiles.contains(key)) return true;
  if (unknown_profiles_.contains(key)) return false;
  const auto at = state_.profiles.find({pod.name_space, pod.terms.profile});
  absl::StatusOr<std::vector<TypeDemand>> demands = InvalidArgument("it is not among the objects");
  if (at != state_.profiles.end()) demands = DemandsOf(at->second, catalogue_);
  if (demands.ok()) {
    out_.profiles[key] = {at->second.kind, *std::move(demands)};
    return true;
  }
  unknown_profiles_.insert(key);
  out_.notes.push_back(Formatted("JobProfile %s: %s; pods that name it count by their requests.", key,
                                 std::string(demands.status().message())));
  return false;
}

// The shape that its devices give it, and what it takes of them.
void Importer::Settle(Member& member) {
  const std::vector<KubeGpu>& gpus = out_.nodes[member.node].gpus;
  Shape(member, gpus[static_cast<size_t>(member.gpus.front())]);
  member.gpus.resize(static_cast<size_t>(member.shape.gpus));
  constexpr int64_t kSome = 500;  // of whoever states no share; only orders the devices
  for (const int32_t gpu : member.gpus) {
    used_[member.node][static_cast<size_t>(gpu)] += member.shape.gpu_milli > 0 ? member.shape.gpu_milli : kSome;
  }
}

void Importer::PlaceTold(Member& member) {
  if (!member.runs || member.ask.told.empty()) return;
  const std::vector<KubeGpu>& gpus = out_.nodes[member.node].gpus;
  for (const KubeTold& told : member.ask.told) {
    const auto at = std::find_if(gpus.begin(), gpus.end(), [&](const KubeGpu& gpu) {
      return told.uuid.empty() ? gpu.pool == told.pool && gpu.name == told.device && !gpu.name.empty()
                               : gpu.uuid == told.uuid;
    });
    if (at == gpus.end()) {
      return LeaveOut(member, Formatted("it holds GPU %s, which its node does not tell",
                                        Quoted(told.uuid.empty() ? told.pool + "/" + told.device : told.uuid)));
    }
    member.gpus.push_back(static_cast<int32_t>(at - gpus.begin()));
  }
  // Containers of one pod may use one card; a job has each of its GPUs once.
  std::sort(member.gpus.begin(), member.gpus.end());
  member.gpus.erase(std::unique(member.gpus.begin(), member.gpus.end()), member.gpus.end());
  member.ask.count = static_cast<int64_t>(member.gpus.size());
  ++out_.told;
  Settle(member);
}

void Importer::PlaceAssumed(Member& member) {
  if (!member.runs || !member.ask.told.empty()) return;
  const std::vector<KubeGpu>& gpus = out_.nodes[member.node].gpus;
  std::vector<int32_t> fit;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].resource == member.ask.resource) fit.push_back(static_cast<int32_t>(i));
  }
  const bool replicas = !fit.empty() && gpus[static_cast<size_t>(fit.front())].replicas > 1 &&
                        !gpus[static_cast<size_t>(fit.front())].counts_memory;
  const auto wanted = replicas ? size_t{1} : static_cast<size_t>(member.ask.count);
  if (fit.size() < wanted) {
    return LeaveOut(member, Formatted("it holds %d of %s, and its node offers %d", member.ask.count,
                                      member.ask.resource, fit.size()));
  }
  const std::vector<int64_t>& used = used_[member.node];
  std::stable_sort(fit.begin(), fit.end(),
                   [&](int32_t a, int32_t b) { return used[static_cast<size_t>(a)] < used[static_cast<size_t>(b)]; });
  fit.resize(wanted);
  std::sort(fit.begin(), fit.end());
  member.gpus = std::move(fit);
  ++out_.assumed;
  Settle(member);
}

// A device that the pod might get: a whole one where there is one, else the largest part.
const KubeGpu* Importer::SampleFor(const KubeAsk& ask) const {
  const KubeGpu* sample = nullptr;
  for (const ImportedNode& node : out_.nodes) {
    for (const KubeGpu& gpu : node.gpus) {
      const bool offers =
          ask.resource.empty() ? gpu.mode != SharingMode::kMig && !gpu.name.empty() : gpu.resource == ask.resource;
      if (!offers) continue;
      const auto rank = [](const KubeGpu& one) {
        return std::tuple(one.mode == SharingMode::kMig, one.counts_memory ? 1 : one.replicas);
      };
      if (sample == nullptr || rank(gpu) < rank(*sample)) sample = &gpu;
    }
  }
  return sample;
}

void Importer::ShapeWaiting(Member& member) {
  if (member.runs) return;
  const KubeGpu* const sample = SampleFor(member.ask);
  if (sample == nullptr) {
    LeaveOut(member, Formatted("no node that was read offers %s",
                               member.ask.resource.empty() ? "GPUs by claims" : member.ask.resource));
    return;
  }
  Shape(member, *sample);
}

std::string Importer::UniqueName(std::string name) {
  const std::string plain = name;
  for (size_t i = 2; !names_.insert(name).second; ++i) name = Formatted("%s#%d", plain, i);
  return name;
}

std::optional<std::string> Importer::LabelOfRules(const KubePod& pod) {
  const KubeRules rules = RulesOf(pod);
  if (const auto known = kinds_.find(rules); known != kinds_.end()) return known->second;
  std::vector<bool> admits;
  for (const KubeNode* const node : origin_) admits.push_back(Admits(rules, *node));
  std::string label;
  if (std::find(admits.begin(), admits.end(), false) != admits.end()) {
    if (kinds_.size() >= kMostKinds) return std::nullopt;
    label = kAdmits + std::to_string(kinds_.size() + 1);
    for (size_t i = 0; i < admits.size(); ++i) {
      if (admits[i]) out_.nodes[i].labels[label] = kYes;
    }
  }
  kinds_.emplace(rules, label);
  return label;
}

// Pods of one group that are alike and run, or wait, are the tasks of one job.
void Importer::MakeJobs(const std::vector<Member>& members) {
  using Key = std::tuple<std::string, std::string, bool, KubeShape, int64_t, int64_t, KubeTexts, int32_t>;
  std::map<Key, size_t> gangs;
  for (const Member& member : members) {
    const KubePod& pod = *member.pod;
    KubeTexts selector = pod.node_selector;
    const std::optional<std::string> label = LabelOfRules(pod);
    constexpr size_t kMostSelectors = kMaxSelectorsPerJob - 2;
    const bool empty =
        std::any_of(selector.begin(), selector.end(), [](const auto& one) { return one.second.empty(); });
    if (!label || empty || selector.size() > kMostSelectors) {
      LeaveOut(member, !label  ? Formatted("more than %d kinds of tolerations and affinities", kMostKinds)
                       : empty ? "it selects nodes by an empty label"
                               : "it selects nodes by too many labels");
      continue;
    }
    if (!label->empty()) selector[*label] = kYes;
    if (!member.shape.needs.empty()) selector[kOffers + member.shape.needs.substr(kVendor.size())] = kYes;
    ImportedJob job{.name = pod.name_space + "/" + (pod.group.empty() ? pod.name : pod.group),
                    .tenant = pod.name_space,
                    .submit_s = pod.created_s,
                    .placed_s = pod.scheduled_s,
                    .priority = pod.priority,
                    .cpu_milli = pod.requests.cpu_milli,
                    .mem_mib = MibCeil(pod.requests.mem_bytes),
                    .shape = member.shape,
                    .node_selector = std::move(selector)};
    for (const int32_t gpu : member.gpus) job.on.push_back({member.node, gpu});
    ++out_.pods;
    if (!pod.group.empty()) {
      const Key key(pod.name_space, pod.group, member.runs, job.shape, job.cpu_milli, job.mem_mib, job.node_selector,
                    job.priority);
      const auto [at, is_new] = gangs.emplace(key, out_.jobs.size());
      // Bounded: pods in memory, at most 1,024 GPUs each.
      if (!is_new && (out_.jobs[at->second].tasks + 1) * job.shape.gpus <= kMaxGpusPerJob) {
        ImportedJob& gang = out_.jobs[at->second];
        ++gang.tasks;
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
  std::stable_sort(out_.jobs.begin(), out_.jobs.end(), [](const ImportedJob& a, const ImportedJob& b) {
    return std::tie(a.submit_s, a.name) < std::tie(b.submit_s, b.name);
  });
  const int64_t first = out_.jobs.empty() ? 0 : out_.jobs.front().submit_s;
  for (size_t i = 0; i < out_.jobs.size(); ++i) {
    out_.jobs[i].id = i + 1;
    out_.jobs[i].submit_s -= first;
    out_.jobs[i].placed_s -= first;
  }
}

void Importer::LabelOffers() {
  std::set<std::string> needed;
  for (const ImportedJob& job : out_.jobs) {
    if (!job.shape.needs.empty()) needed.insert(job.shape.needs);
  }
  for (ImportedNode& node : out_.nodes) {
    for (const KubeGpu& gpu : node.gpus) {
      if (needed.contains(gpu.resource)) node.labels[kOffers + gpu.resource.substr(kVendor.size())] = kYes;
    }
  }
}

void Importer::Count() {
  out_.pods_done = state_.pods_done;
  out_.pods_without_gpus += state_.pods_without_gpus;
  if (by_expression_ > 0) {
    out_.notes.push_back(
        Formatted("%d pods select GPUs of their claims by expressions, which are not read: they are "
                  "placed by number.",
                  by_expression_));
  }
  if (gated_ > 0) out_.notes.push_back(Formatted("%d pods that wait are held back by scheduling gates.", gated_));
  for (const auto& [driver, slices] : state_.other_drivers) {
    out_.notes.push_back(Formatted("%d resource slices of driver %s are not read.", slices, Quoted(driver)));
  }
  if (state_.slices_without_node > 0) {
    out_.notes.push_back(
        Formatted("%d resource slices that belong to no single node are not read.", state_.slices_without_node));
  }
}

}  // namespace

ImportedCluster ImportCluster(const KubeState& state, const Catalogue& catalogue, const ImportOptions& options) {
  return Importer(state, catalogue, options).Run();
}

}  // namespace horus
