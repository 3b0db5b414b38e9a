// SPDX-License-Identifier: Apache-2.0
// horus import: the files of the other commands out of a Kubernetes cluster's objects.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "graph/from_config.h"
#include "io/kube/kube_import.h"
#include "io/kube/kube_objects.h"
#include "io/placement.h"

namespace horus::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kImportFooter[] = R"(
Reads what kubectl prints, and talks to no cluster. Nothing is written to Kubernetes.

Examples:
  kubectl get nodes,pods,resourceslices,resourceclaims -A -o json | horus import - --out cluster
      without DRA: kubectl get nodes,pods -A -o json; with the scheduler's CRD: jobprofiles, too
  horus import nodes.json pods.json --out cluster --rack-label example.com/row
  horus place --cluster cluster/now.yaml --jobs cluster/waiting.yaml

Exit code 3: written, but nodes or pods with GPUs had to be left out; each is told with the reason.
docs/shadow.md says what is read of which objects.)";

constexpr int kImportJsonVersion = 1;
constexpr size_t kShownNames = 3;
constexpr size_t kShownReasons = 20;  // a terminal's page; --json tells all
constexpr size_t kShownNotes = 10;
constexpr size_t kLongestReason = 300;

struct ImportFlags {
  std::vector<std::string> files, gpus_files;
  std::string out, profiles, measured;
  ImportOptions import;
  bool json = false;
};

// By type, instance, way to share and source.
struct Kind {
  std::string type, shared, source;
  friend auto operator<=>(const Kind&, const Kind&) = default;
};
struct KindCount {
  size_t nodes = 0, gpus = 0;
};

std::string SharedAs(const Catalogue& catalogue, const KubeGpu& gpu) {
  std::string text = gpu.mode == SharingMode::kMig
                         ? "mig " + catalogue.at(gpu.type).mig[static_cast<size_t>(gpu.mig_profile)].name
                         : std::string();
  if (gpu.counts_memory) return absl::StrFormat("HAMi, %d at most", gpu.replicas);
  if (gpu.replicas > 1)
    absl::StrAppendFormat(&text, "%s%d by %s", text.empty() ? "" : ", ", gpu.replicas, SharingModeName(gpu.mode));
  return text.empty() ? "whole" : text;
}

std::map<Kind, KindCount> KindsOf(const Catalogue& catalogue, const ImportedCluster& imported) {
  std::map<Kind, KindCount> kinds;
  for (const ImportedNode& node : imported.nodes) {
    std::map<Kind, size_t> here;
    for (const KubeGpu& gpu : node.gpus) ++here[{catalogue.at(gpu.type).name, SharedAs(catalogue, gpu), node.source}];
    for (const auto& [kind, gpus] : here) {
      ++kinds[kind].nodes;
      kinds[kind].gpus += gpus;
    }
  }
  return kinds;
}

std::string KindsText(const Catalogue& catalogue, const ImportedCluster& imported) {
  size_t gpus = 0;
  Table table("GPU TYPE|>NODES|>GPUS|OFFERED AS|~KNOWN BY");
  for (const auto& [kind, count] : KindsOf(catalogue, imported)) {
    gpus += count.gpus;
    table.AddRow({Printable(kind.type), std::to_string(count.nodes), std::to_string(count.gpus), kind.shared,
                  Printable(kind.source)});
  }
  size_t drained = 0, down = 0;
  for (const ImportedNode& node : imported.nodes) {
    drained += node.state == AdminState::kDrained ? 1 : 0;
    down += node.state == AdminState::kDown ? 1 : 0;
  }
  std::string text = absl::StrFormat("%d nodes with %d GPUs or parts of them", imported.nodes.size(), gpus);
  if (drained > 0) absl::StrAppendFormat(&text, ", %d nodes drained", drained);
  if (down > 0) absl::StrAppendFormat(&text, ", %d nodes down", down);
  return text + "\n" + (table.empty() ? "" : table.Render("  "));
}

struct JobCount {
  size_t run = 0, wait = 0, whole = 0;
};

// Of the jobs that wait: who finds a place now, and whose place is beside others.
struct Startable {
  uint64_t jobs = 0, beside = 0;
};

JobCount CountJobs(const ImportedCluster& imported) {
  JobCount count;
  for (const ImportedJob& job : imported.jobs) {
    ++(job.on.empty() ? count.wait : count.run);
    count.whole += job.shape.gpu_milli == kMilliPerGpu || job.shape.exclusive ? 1 : 0;
  }
  return count;
}

// ---- Who says what jobs run: of each, jobs and the GPUs that they hold, a GPU divided by its jobs.
constexpr std::array<std::pair<const char*, const char*>, 5> kKnownBy = {{{"job_profile", "a JobProfile"},
                                                                          {"measured", "--measured"},
                                                                          {"pattern", "--profiles"},
                                                                          {"engine", "its command line"},
                                                                          {"nobody", "nobody"}}};

struct Described {
  size_t jobs = 0;
  double gpus = 0, gpus_pct = 0;
  std::map<std::string, double> tenants;  // GPUs of each
};

std::array<Described, kKnownBy.size()> DescribedBy(const ImportedCluster& imported) {
  std::map<std::pair<size_t, int32_t>, double> sharers;
  for (const ImportedJob& job : imported.jobs) {
    for (const ImportedPlace& on : job.on) ++sharers[{on.node, on.gpu}];
  }
  std::array<Described, kKnownBy.size()> described;
  for (const ImportedJob& job : imported.jobs) {
    Described& by = described[static_cast<size_t>(job.known_by)];
    ++by.jobs;
    for (const ImportedPlace& on : job.on) by.tenants[job.tenant] += 1 / sharers.at({on.node, on.gpu});
  }
  for (Described& by : described) {
    for (const auto& [tenant, gpus] : by.tenants) by.gpus += gpus;
    by.gpus_pct = sharers.empty() ? 0 : 100 * by.gpus / static_cast<double>(sharers.size());
  }
  return described;
}

std::string DescribedText(const ImportedCluster& imported) {
  if (imported.jobs.empty()) return "";
  Table table("WHO SAYS WHAT JOBS RUN|>JOBS|>GPUS|>OF GPUS IN USE|~");
  const auto described = DescribedBy(imported);
  std::vector<std::pair<double, std::string>> most;
  for (const auto& [tenant, gpus] : described.back().tenants) most.emplace_back(-gpus, tenant);
  std::ranges::sort(most);
  std::vector<std::string> where;
  for (size_t i = 0; i < std::min(most.size(), kShownNames); ++i)
    where.push_back(
        absl::StrFormat("%s (%.4g GPU%s)", Printable(most[i].second), -most[i].first, most[i].first == -1 ? "" : "s"));
  if (most.size() > kShownNames) where.emplace_back("...");
  for (size_t i = 0; i < kKnownBy.size(); ++i) {
    const Described& by = described[i];
    const bool nobody = i + 1 == kKnownBy.size();
    if (by.jobs == 0 && !nobody) continue;
    table.AddRow({kKnownBy[i].second, std::to_string(by.jobs), absl::StrFormat("%.4g", by.gpus),
                  absl::StrFormat("%.0f %%", by.gpus_pct),
                  nobody && !where.empty() ? "namespaces: " + absl::StrJoin(where, ", ") : ""});
  }
  return "\n" + table.Render("  ");
}

std::string EnginesText(const ImportedCluster& imported) {
  if (imported.engines.empty()) return "";
  Table table("ENGINE|MODEL|>GPUS|>MEMORY|>PODS|~COUNTS AS");
  for (const auto& [engine, pods] : imported.engines) {
    const bool unknown = engine.by == KnownBy::kNobody;
    table.AddRow({engine.name, engine.model.empty() ? "not told" : Printable(engine.model), std::to_string(engine.gpus),
                  engine.memory_share == 0 ? "?" : absl::StrFormat("%.3g %%", 100 * engine.memory_share),
                  std::to_string(pods),
                  engine.by == KnownBy::kEngine ? engine.architecture + ", always busy"
                  : unknown                     ? "requests: " + Printable(engine.why_not, kLongestReason)
                            : std::string("said by ") + kKnownBy[static_cast<size_t>(engine.by)].second});
  }
  return "\nEngines of language models, by command lines; these do not tell the load\n" + table.Render("  ");
}

std::string PodsText(const ImportedCluster& imported) {
  const JobCount jobs = CountJobs(imported);
  std::string text = absl::StrFormat("\n%d pods with GPUs: %d jobs run, %d wait\n", imported.pods, jobs.run, jobs.wait);
  Table table("|>|~");
  const auto add = [&](const char* what, size_t count, const char* meaning) {
    if (count > 0) table.AddRow({what, std::to_string(count), meaning});
  };
  add("GPUs told", imported.told, "pods whose GPUs a claim or an annotation names");
  add("GPUs assumed", imported.assumed, "pods that run somewhere on their node: put on its least used GPUs");
  add("whole GPUs", jobs.whole, "jobs that share with nobody");
  add("other pods", imported.pods_without_gpus, "without GPUs: what they take of their nodes is taken off");
  add("done", imported.pods_done, "pods that ended, or were deleted before they ran");
  add("other nodes", imported.nodes_without_gpus, "without GPUs, not read");
  return text + (table.empty() ? "" : table.Render("  "));
}

std::string LeftOutText(const ImportedCluster& imported) {
  if (imported.left_out.empty()) return "";
  std::map<std::pair<bool, std::string>, std::vector<std::string>> reasons;
  size_t nodes = 0;
  for (const ImportLeftOut& one : imported.left_out) {
    reasons[{!one.is_node, one.reason}].push_back(one.name);
    nodes += one.is_node ? 1 : 0;
  }
  std::string text =
      absl::StrFormat("\nLeft out: %d nodes and %d pods with GPUs\n", nodes, imported.left_out.size() - nodes);
  Table table("~WHAT|~WHY");
  size_t shown = 0;
  for (const auto& [reason, names] : reasons) {
    if (++shown > kShownReasons) break;
    std::string which = reason.first ? "pod " : "node ";
    if (names.size() > 1) which = absl::StrFormat("%d %ss ", names.size(), reason.first ? "pod" : "node");
    for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) which += (i > 0 ? ", " : "") + Printable(names[i]);
    table.AddRow({which + (names.size() > kShownNames ? ", ..." : ""), Printable(reason.second, kLongestReason)});
  }
  text += table.Render("  ");
  if (reasons.size() > kShownReasons)
    absl::StrAppendFormat(&text, "  and %d more reasons: --json\n", reasons.size() - kShownReasons);
  if (nodes > 0) text += "  GPU types of your own: --gpus-file FILE, docs/files.md.\n";
  return text;
}

std::string NotesText(const std::vector<std::string>& notes) {
  std::string text;
  for (size_t i = 0; i < std::min(notes.size(), kShownNotes); ++i)
    text += Paragraph(Printable(notes[i], kLongestReason));
  if (notes.size() > kShownNotes)
    absl::StrAppendFormat(&text, "And %d more notes: --json\n", notes.size() - kShownNotes);
  return text.empty() ? "" : "\n" + text;
}

std::string NextText(const ImportFlags& options, const ImportedCluster& imported, const Startable& startable) {
  const JobCount jobs = CountJobs(imported);
  std::string start;
  if (jobs.wait > 0) {
    start = absl::StrFormat("\n%d jobs wait. Now would start: %d on GPUs of their own", jobs.wait,
                            startable.jobs - startable.beside);
    if (startable.beside > 0)
      absl::StrAppendFormat(&start, ", %d beside others (on whole GPUs where DRA or HAMi share them)",
                            startable.beside);
    absl::StrAppend(&start, "\n");
  }
  const std::string at = Printable(options.out, options.out.size());
  std::string text = absl::StrFormat("%s\nWritten to %s. Next:\n", start, at);
  if (jobs.run > 0) {
    absl::StrAppendFormat(
        &text, "  horus shadow --cluster %s/cluster.yaml --jobs %s/jobs.yaml --log %s/decisions.csv\n", at, at, at);
  }
  if (!imported.jobs.empty() && kHasLaboratory)
    absl::StrAppendFormat(&text, "  horus potential --cluster %s/now.yaml --jobs %s/waiting.yaml\n", at, at);
  if (jobs.wait > 0)
    absl::StrAppendFormat(&text, "  horus place --cluster %s/now.yaml --jobs %s/waiting.yaml\n", at, at);
  if (DescribedBy(imported).back().jobs > 0) {
    text +=
        "Of jobs that nobody described only requests are known: with whole GPUs they share with nobody.\n"
        "Say what they run by --profiles, or what Prometheus measured by --measured: docs/shadow.md.\n";
  }
  return text;
}

std::string ReportJson(const ImportFlags& options, const Catalogue& catalogue, const ImportedCluster& imported,
                       const Startable& startable) {
  Json kinds = Json::array(), left_out = Json::array(), described = Json::array(), engines = Json::array();
  for (const auto& [kind, count] : KindsOf(catalogue, imported)) {
    kinds.push_back({{"gpu_type", kind.type},
                     {"offered_as", kind.shared},
                     {"known_by", kind.source},
                     {"nodes", count.nodes},
                     {"gpus", count.gpus}});
  }
  for (const ImportLeftOut& one : imported.left_out)
    left_out.push_back({{"kind", one.is_node ? "node" : "pod"}, {"name", one.name}, {"reason", one.reason}});
  const auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(value); };
  for (const auto& [engine, pods] : imported.engines) {
    engines.push_back({{"engine", engine.name},
                       {"model", text(engine.model)},
                       {"gpus", engine.gpus},
                       {"context_tokens", engine.context == 0 ? Json(nullptr) : Json(engine.context)},
                       {"memory_pct", engine.memory_share == 0 ? Json(nullptr) : Json(100 * engine.memory_share)},
                       {"by", kKnownBy[static_cast<size_t>(engine.by)].first},
                       {"architecture", text(engine.architecture)},
                       {"why_not", text(engine.why_not)},
                       {"pods", pods}});
  }
  const auto known = DescribedBy(imported);
  for (size_t i = 0; i < known.size(); ++i) {
    described.push_back(
        {{"by", kKnownBy[i].first}, {"jobs", known[i].jobs}, {"gpus", known[i].gpus}, {"gpus_pct", known[i].gpus_pct}});
  }
  const JobCount jobs = CountJobs(imported);
  Json json = {{"schema", "horus-import"}, {"version", kImportJsonVersion}};
  AddRecord(json);
  json.update({{"out", options.out},
               {"nodes", imported.nodes.size()},
               {"nodes_without_gpus", imported.nodes_without_gpus},
               {"gpus", kinds},
               {"pods", imported.pods},
               {"pods_told", imported.told},
               {"pods_assumed", imported.assumed},
               {"pods_without_gpus", imported.pods_without_gpus},
               {"pods_done", imported.pods_done},
               {"jobs_run", jobs.run},
               {"jobs_wait", jobs.wait},
               {"jobs_startable", startable.jobs},
               {"jobs_startable_beside", startable.beside},
               {"jobs_whole", jobs.whole},
               {"described", described},
               {"engines", engines},
               {"left_out", left_out},
               {"notes", imported.notes}});
  return JsonText(json);
}

absl::Status Write(const ImportFlags& options, const ImportFiles& files) {
  std::error_code error;
  fs::create_directories(options.out, error);
  if (!fs::is_directory(options.out, error))
    return Unavailable("--out: expected a folder that can be written, found %s", options.out);
  for (const auto& [name, text] : files.texts)
    HORUS_RETURN_IF_ERROR(WriteFileAtomically((fs::path(options.out) / name).string(), text));
  return absl::OkStatus();
}

// Models that cannot be read or run are told here, with the place of their profile.
absl::Status CheckModels(const std::vector<KubePattern>& patterns, const std::shared_ptr<const Catalogue>& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const auto predictor, LoadPredictor("none"));
  DemandShelf shelf(catalogue, predictor);
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId any, catalogue->Find("a100-40gb"));
  for (const KubePattern& pattern : patterns) {
    if (!pattern.job.model || pattern.job.model->service) continue;  // services hang on the type
    if (pattern.is_architecture()) {
      const ModelRun& model = *pattern.job.model;
      HORUS_RETURN_IF_ERROR(At(pattern.job.where + ".model", ReadModel(model.path, model.config).status()));
      continue;
    }
    HORUS_RETURN_IF_ERROR(shelf.Complete(pattern.job, std::span(&any, 1)).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Startable> StartableOf(const ImportFlags& options) {
  const auto at = [&](const char* name) { return (fs::path(options.out) / name).string(); };
  HORUS_ASSIGN_OR_RETURN(
      const PlacementReport report,
      PlaceFiles({.cluster = at("now.yaml"), .jobs = at("waiting.yaml"), .gpus_files = options.gpus_files}));
  std::set<JobId> beside;
  for (const TenantOutcome& tenant : report.tenants) {
    if (tenant.others > 0) beside.insert(tenant.job);
  }
  Startable startable{.jobs = report.Count(Verdict::kPlace)};
  for (const Decision& decision : report.plan.decisions) startable.beside += beside.count(decision.job);
  return startable;
}

absl::StatusOr<std::string> Import(ImportFlags& options, ImportedCluster& imported) {
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.gpus_files));
  if (!options.profiles.empty()) {
    HORUS_ASSIGN_OR_RETURN(options.import.patterns, ReadKubePatterns(options.profiles, *catalogue));
    HORUS_RETURN_IF_ERROR(CheckModels(options.import.patterns, catalogue));
  }
  if (!options.measured.empty()) HORUS_SET_OR_RETURN(options.import.measured, ReadKubeMeasured(options.measured));
  KubeState state;
  Progress progress;
  uint64_t objects = 0;
  for (const std::string& file : options.files) {
    HORUS_RETURN_IF_ERROR(ReadKubeFile(file, [&](std::string_view kind, const KubeView& object) {
      progress.Update("reading objects:", ++objects, 0);
      return state.Add(kind, object);
    }));
  }
  const std::string files = absl::StrJoin(options.files, ", ");
  if (state.nodes.empty())
    return InvalidArgument("%s: expected nodes (kubectl get nodes,pods -A -o json), found none", files);
  HORUS_ASSIGN_OR_RETURN(const auto predictor, LoadPredictor(""));
  DemandShelf shelf(catalogue, predictor);
  options.import.predict = [&](const ModelRun& run) { return shelf.Demands(run); };
  imported = ImportCluster(state, *catalogue, options.import);
  if (imported.nodes.empty()) {
    const auto first = imported.left_out.begin();  // a node where there is one
    return InvalidArgument(
        "%s: expected nodes with GPUs, found none among %d; %s", files, state.nodes.size(),
        first == imported.left_out.end() ? "nothing tells of GPUs" : first->name + ": " + first->reason);
  }
  const auto is_measured = [&](const KubePod& pod) {
    return options.import.measured.contains({pod.name_space, pod.name});
  };
  if (!options.measured.empty() && std::ranges::none_of(state.pods, is_measured)) {
    imported.notes.insert(imported.notes.begin(),
                          absl::StrFormat("%s says nothing of these pods: it tells of %d. Each sample needs the labels "
                                          "namespace and pod (or exported_namespace and exported_pod) as kubectl "
                                          "names pods; the query of docs/shadow.md asks for them.",
                                          options.measured, options.import.measured.size()));
  }
  std::vector<std::string> gpus_files;
  for (const std::string& file : options.gpus_files) gpus_files.push_back(fs::absolute(file).string());
  HORUS_ASSIGN_OR_RETURN(const ImportFiles texts, WriteImport(imported, catalogue, gpus_files));
  if (texts.too_long > 0) {
    imported.notes.push_back(
        absl::StrFormat("%d gangs are too large for a line of decisions.csv and not in it.", texts.too_long));
  }
  HORUS_RETURN_IF_ERROR(Write(options, texts));
  Startable startable;
  if (CountJobs(imported).wait > 0) HORUS_SET_OR_RETURN(startable, StartableOf(options));
  return options.json
             ? ReportJson(options, *catalogue, imported, startable)
             : KindsText(*catalogue, imported) + PodsText(imported) + DescribedText(imported) + EnginesText(imported) +
                   LeftOutText(imported) + NotesText(imported.notes) + NextText(options, imported, startable);
}

int Run(ImportFlags& options) {
  ImportedCluster imported;
  const int code = Print(Import(options, imported));
  return code == kExitDecided && !imported.left_out.empty() ? kExitRefused : code;
}

}  // namespace

Command AddImport(CLI::App& parser) {
  auto options = std::make_shared<ImportFlags>();
  CLI::App* app = parser.add_subcommand("import", "Make cluster.yaml and jobs.yaml of a Kubernetes cluster");
  AddOption(*app, "FILE", options->files, "JSON of kubectl get -o json; several are one cluster; - is standard input",
            "")
      ->required();
  AddOption(*app, "--out", options->out, "Folder to write to; it is made, and files of earlier imports are replaced",
            "DIR")
      ->required();
  AddRepeated(*app, "--rack-label", options->import.rack_labels,
              "Label that tells a node's rack, before those that are known; may be repeated", "KEY");
  AddOption(*app, "--profiles", options->profiles, "What jobs run, by patterns of pods: docs/shadow.md", "FILE");
  AddOption(*app, "--measured", options->measured,
            "What Prometheus saw of pods: its answer to the query of docs/shadow.md", "FILE");
  AddGpusFileOption(*app, options->gpus_files);
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kImportFooter);
  return {app, [options] { return Run(*options); }};
}

}  // namespace horus::cli
