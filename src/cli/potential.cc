// SPDX-License-Identifier: Apache-2.0
// horus potential: what sharing could give a cluster, before any policy.
#include "lab/bound/potential.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/potential_inputs.h"
#include "cli/print.h"
#include "cli/report.h"

namespace horus::cli {
namespace {

// ---- What `horus potential` found out, before it is printed as text, JSON or CSV.

struct PotentialReport : PotentialInputs {
  double clip_percentile = 100;
  PotentialOptions asked;
  int64_t unknown_jobs = 0;  // of the profiles that are so
  std::vector<PotentialCase> cases;
};

// A terminal shows so much of long lists and names.
constexpr size_t kWidth = 80;
constexpr size_t kCarryingPairs = 5;
constexpr size_t kShownPairBytes = 36;
constexpr size_t kShownLeftOut = 5;
constexpr double kLeastGainTold = 0.0005;  // less is the solver's noise; chosen
constexpr double kMostPerGpu = 1e6;        // cores or GiB, as of a node
constexpr int kPotentialJsonVersion = 1;

std::string CaseName(const PotentialReport& report, const PotentialCase& one) {
  return one.gpu ? report.table.gpus[*one.gpu] : "all types together";
}

std::string Shown(const std::string& name) { return Printable(name, kShownPairBytes); }

// Best rate without pairs, and what jobs that run add to it by sharing GPUs today; none where nothing runs.
std::optional<double> TodayOf(const PotentialReport& report, const PotentialCase& one) {
  if (report.shared_today.empty() || !one.potential) return std::nullopt;
  return one.potential->exclusive + (one.gpu ? report.shared_today[*one.gpu] : report.all_shared_today);
}

// Over today's rate where that is known, else over one job a GPU.
double GainOf(const PotentialReport& report, const PotentialCase& one, const PotentialAtBound& row) {
  const std::optional<double> today = TodayOf(report, one);
  return today ? row.rate.bound / *today - 1 : row.gain;
}

bool Pays(const PotentialReport& report, const PotentialCase& one, const PotentialAtBound& row) {
  return row.pays && GainOf(report, one, row) >= report.asked.least_gain;
}

// Whether jobs run there that nothing but requests is known of.
bool HasUnknown(const PotentialReport& report, const PotentialCase& one) {
  for (uint32_t profile = 0; profile < report.unknown.size(); ++profile) {
    for (uint32_t gpu = 0; gpu < report.table.gpus.size() && report.unknown[profile]; ++gpu) {
      if (gpu == one.gpu.value_or(gpu) && report.table.Alone(gpu, profile) > 0) return true;
    }
  }
  return false;
}

// "Sharing pays on v100: +27.8 % by expectation; bounded at 1.5x +0.0 %, at 2x +8.2 %." What is admitted by expectation
// stands in the row without a bound; where there is none the bounds stand alone.
std::string VerdictText(const PotentialReport& report, const PotentialCase& one) {
  const std::string where = one.gpu ? "on " + Printable(CaseName(report, one)) : "on all types together";
  if (!one.potential) return absl::StrFormat("Nothing of the mix runs %s.", where);
  const bool unknown = HasUnknown(report, one);
  if (one.potential->run == 0 && unknown) return "Nothing can be said of sharing " + where + ".";
  if (one.potential->run == 0) return absl::StrFormat("Nothing shares %s: no pair is known to run.", where);
  bool pays = false, gains = false;
  std::string expected, bounded;
  for (const PotentialAtBound& row : one.potential->at) {
    const double part = GainOf(report, one, row);
    pays |= Pays(report, one, row);
    gains |= part >= kLeastGainTold;
    const std::string gain = absl::StrFormat("%+.1f %%", kPct * part);
    if (std::isinf(row.slowdown_bound)) {
      expected = gain + " by expectation";
    } else {
      absl::StrAppendFormat(&bounded, "%s at %sx %s", bounded.empty() ? "bounded" : ",", Plain(row.slowdown_bound),
                            gain);
    }
  }
  const bool shares = TodayOf(report, one).value_or(0) > one.potential->exclusive;
  std::string verdict = absl::StrCat(unknown && !pays ? "of jobs that are known, " : "", shares ? "more " : "",
                                     pays ? "sharing pays" : "sharing does not pay");
  verdict[0] = absl::ascii_toupper(static_cast<unsigned char>(verdict[0]));
  const std::string told = !gains ? "it gains nothing, whatever the bound"
                                  : expected + (expected.empty() || bounded.empty() ? "" : "; ") + bounded;
  const bool elsewhere = std::ranges::any_of(report.cases, [&](const PotentialCase& other) {
    return other.potential && std::ranges::any_of(other.potential->at, [&](const PotentialAtBound& row) {
             return Pays(report, other, row);
           });
  });
  return absl::StrFormat("%s %s: %s.%s", verdict, where, told,
                         pays || one.gpu || !elsewhere
                             ? ""
                             : " Together the types do the whole mix in its proportions, so that jobs which run on "
                               "few GPUs, and share with nobody there, hold the others up; a type by itself counts "
                               "the jobs that run on it.");
}

std::string LeftOutText(const PotentialReport& report, const PotentialCase& one) {
  std::vector<std::string> names;
  for (const uint32_t profile : one.left_out) {
    if (names.size() == kShownLeftOut) {
      names.push_back("...");
      break;
    }
    names.push_back(Shown(report.table.profiles[profile]));
  }
  return names.empty() ? ""
                       : absl::StrFormat(" %d profiles %s: %s.", one.left_out.size(),
                                         one.gpu ? "do not run there" : "whose units differ by type are not in it",
                                         absl::StrJoin(names, ", "));
}

// A kind of GPU on a line of its own, its bounds below it: a name may be as long as the line.
std::string CasesText(const PotentialReport& report) {
  Table table(">BOUND|>TODAY|>ONE JOB A GPU|>SHARED|>GAIN|>PAIRS|>OF ALL|PAYS");
  std::vector<std::string> names;  // above each row, where it is the first of a kind
  for (const PotentialCase& one : report.cases) {
    if (!one.potential || one.potential->run == 0) continue;  // the verdict says it
    const std::optional<double> today = TodayOf(report, one);
    for (const PotentialAtBound& row : one.potential->at) {
      names.push_back(&row != one.potential->at.data()
                          ? ""
                          : absl::StrFormat("  %s, %.4g GPUs\n", Printable(CaseName(report, one)), one.gpus));
      table.AddRow({Factor(row.slowdown_bound), today ? absl::StrFormat("%.4g", *today) : "-",
                    absl::StrFormat("%.4g", row.rate.exclusive), absl::StrFormat("%.4g", row.rate.bound),
                    absl::StrFormat("%.1f %%", kPct * GainOf(report, one, row)),
                    absl::StrFormat("%d of %d", row.admitted, one.potential->run), Percent(kPct * row.admitted_of_mix),
                    Pays(report, one, row)    ? "yes"
                    : HasUnknown(report, one) ? "unknown"
                                              : "no"});
    }
  }
  if (table.empty()) return "";
  std::string text = "\nWork, in GPUs that work alone: as today, with one job a GPU, with pairs at best\n";
  const std::vector<std::string> lines = absl::StrSplit(table.Render("  ", kWidth), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0 && i <= names.size()) text += names[i - 1];
    text += lines[i] + (i + 1 < lines.size() ? "\n" : "");
  }
  if (report.cases.size() == 1) return text;
  return text + "  All types together count GPUs of " + Printable(report.table.gpus[report.reference]) + ".\n";
}

std::string GainText(std::optional<double> gain) { return gain ? absl::StrFormat("%.1f %%", kPct * *gain) : "-"; }

// What other cores and memory than the fair share give, without and with sharing.
std::string HostsText(const PotentialReport& report) {
  Table table("~GPU|>BOUND|>FAIR|>RESIZED|>SHARED|>BOTH|>RESIZED GAIN|>SHARED GAIN|>BOTH GAIN");
  for (const PotentialCase& one : report.cases) {
    if (!one.potential) continue;
    for (const PotentialAtBound& row : one.potential->at) {
      if (!row.rate.resizing || !row.rate.both) return "";
      const bool first = &row == one.potential->at.data();
      table.AddRow({first ? Printable(CaseName(report, one)) : "", Factor(row.slowdown_bound),
                    absl::StrFormat("%.4g", row.rate.exclusive), absl::StrFormat("%.4g", row.rate.resizing->rate),
                    absl::StrFormat("%.4g", row.rate.bound), absl::StrFormat("%.4g", row.rate.both->rate),
                    GainText(row.resizing_gain), GainText(row.gain), GainText(row.both_gain)});
    }
  }
  if (table.empty()) return "";
  return "\nBest rate with the fair share of cores and memory, with others, with pairs on it, and with both\n" +
         table.Render("  ", kWidth);
}

// Under the loosest bound.
std::string CarriersText(const PotentialReport& report) {
  Table table("GPU|>GPUS|~ONE|~OTHER|>SPEEDS");
  for (const PotentialCase& one : report.cases) {
    if (!one.potential || (!one.gpu && report.cases.size() > 1)) continue;  // the same pairs again
    const PotentialAtBound& last = one.potential->at.back();
    for (const WorkUse& use : PairsThatCarry(last.rate.uses, kCarryingPairs)) {
      std::string speeds;
      for (const PairSpeed& pair : report.table.pairs) {
        if (pair.gpu != use.gpu || pair.a != use.a || pair.b != use.b) continue;
        speeds = absl::StrFormat("%.2f + %.2f", pair.speed_a, pair.speed_b);
      }
      table.AddRow({Printable(report.table.gpus[use.gpu]), Percent(kPct * use.gpus / one.gpus),
                    Shown(report.table.profiles[use.a]), Shown(report.table.profiles[use.b]), speeds});
    }
  }
  if (table.empty()) return "";
  return "\nPairs that the best packing runs most, at the loosest bound (one of several)\n" +
         table.Render("  ", kWidth);
}

Json PairsJson(const PotentialReport& report, const std::vector<WorkUse>& uses) {
  Json pairs = Json::array();
  for (const WorkUse& use : PairsThatCarry(uses, kCarryingPairs)) {
    pairs.push_back({{"gpu", report.table.gpus[use.gpu]},
                     {"job_a", report.table.profiles[use.a]},
                     {"job_b", report.table.profiles[use.b]},
                     {"gpus", use.gpus},
                     {"rate", use.rate}});
  }
  return pairs;
}

Json BoundJson(const PotentialReport& report, const PotentialCase& one, const PotentialAtBound& row) {
  Json json = {{"slowdown_bound", std::isinf(row.slowdown_bound) ? Json(nullptr) : Json(row.slowdown_bound)},
               {"pairs_admitted", row.admitted},
               {"pairs_admitted_of_mix_pct", kPct * row.admitted_of_mix},
               {"exclusive_rate", row.rate.exclusive},
               {"shared_rate", row.rate.bound},
               {"gain_pct", kPct * row.gain},
               {"gain_over_today_pct", TodayOf(report, one) ? Json(kPct * GainOf(report, one, row)) : Json(nullptr)},
               {"makespan_cut_pct", kPct * row.makespan_cut},
               {"pays", Pays(report, one, row)},
               {"pairs", PairsJson(report, row.rate.uses)}};
  if (row.rate.resizing && row.rate.both) {
    json["resized_rate"] = row.rate.resizing->rate;
    json["both_rate"] = row.rate.both->rate;
    json["resized_gain_pct"] = kPct * *row.resizing_gain;
    json["both_gain_pct"] = kPct * *row.both_gain;
    json["both_pairs"] = PairsJson(report, row.rate.both->uses);
  }
  return json;
}

Json CaseJson(const PotentialReport& report, const PotentialCase& one) {
  const auto name = [&](uint32_t profile) { return report.table.profiles[profile]; };
  Json bounds = Json::array(), quantiles = Json::array();
  if (one.potential) {
    for (const PotentialAtBound& row : one.potential->at) bounds.push_back(BoundJson(report, one, row));
    for (size_t i = 0; i < one.potential->at_quantiles.size(); ++i) {
      Json row = BoundJson(report, one, one.potential->at_quantiles[i]);
      row["pct"] = report.asked.quantiles_pct[i];
      quantiles.push_back(std::move(row));
    }
  }
  return {{"gpu", one.gpu ? Json(report.table.gpus[*one.gpu]) : Json(nullptr)},
          {"gpus", one.gpus},
          {"today_rate", TodayOf(report, one) ? Json(*TodayOf(report, one)) : Json(nullptr)},
          {"profiles_left_out", JsonList(one.left_out, name)},
          {"pairs", one.potential ? one.potential->pairs : 0},
          {"pairs_run", one.potential ? one.potential->run : 0},
          {"pairs_apart", one.potential ? one.potential->apart : 0},
          {"verdict", VerdictText(report, one)},
          {"bounds", bounds},
          {"quantiles", quantiles}};
}

std::string PotentialText(const PotentialReport& report) {
  std::string text = absl::StrFormat("%d jobs or shares of %d profiles, speeds of pairs: %s\n", report.jobs.size(),
                                     report.table.profiles.size(), report.source);
  if (report.clip_percentile < kPct)
    text += absl::StrFormat("Jobs that take longer than percentile %g count so long.\n", report.clip_percentile);
  for (const std::string& note : report.notes) text += Paragraph(Printable(note, note.size()), "", kWidth);
  text += CasesText(report) + HostsText(report) + CarriersText(report) + "\n";
  for (const PotentialCase& one : report.cases)
    text += Paragraph(VerdictText(report, one) + LeftOutText(report, one), "", kWidth);
  text += absl::StrFormat("Sharing \"does not pay\" where not even the best plan gains %g %%.\n",
                          kPct * report.asked.least_gain);
  return text;
}

std::string PotentialJson(const PotentialReport& report) {
  Json gpus = Json::object();
  for (const PotentialCase& one : report.cases) {
    if (one.gpu) gpus[report.table.gpus[*one.gpu]] = one.gpus;
  }
  Json json = {{"schema", "horus-potential"}, {"version", kPotentialJsonVersion}};
  AddRecord(json);
  json.update({{"cluster", {{"gpus", std::move(gpus)}}},
               {"source", report.source},
               {"jobs", report.jobs.size()},
               {"jobs_of_requests_alone", report.unknown_jobs},
               {"gpus_free", report.gpus_free ? Json(*report.gpus_free) : Json(nullptr)},
               {"profiles", report.table.profiles},
               {"reference", report.table.gpus[report.reference]},
               {"clip_percentile", report.clip_percentile},
               {"least_gain_pct", kPct * report.asked.least_gain},
               {"notes", report.notes},
               {"cases", JsonList(report.cases, [&](const PotentialCase& one) { return CaseJson(report, one); })}});
  return JsonText(json);
}

constexpr char kPotentialFooter[] = R"(
Examples:
  horus potential --speeds throughputs.json --mix jobs.trace --clip 99
  horus potential --speeds throughputs.json --mix mix.csv --gpus v100=64 --gpus p100=64 --bound 1.5
  horus potential --cluster now.yaml --jobs waiting.yaml        of horus import: beside how jobs share today
  horus potential --cluster cluster.yaml --jobs jobs.yaml --sensitivities sensitivity.csv

The best rate of work that any packing of single jobs and pairs can reach, by linear programming, beside the best
rate without sharing; per GPU type, and for all together; for each bound on slowdowns. No policy passes it.
docs/shadow.md says how the figures are meant, docs/files.md has the files.)";
const std::vector<double> kQuantilesPct = {10, 25, 50, 75, 90};  // of the JSON, where nobody asks for others

struct PotentialArguments {
  PotentialSources sources;
  std::vector<std::string> bounds;
  double least_gain_pct = kPct * kLeastGainThatPays;
  double clip_percentile = kPct;
  std::optional<std::vector<double>> quantiles_pct;
  bool json = false;
  PageOptions page;
};

absl::StatusOr<std::vector<double>> ParseBounds(const std::vector<std::string>& texts) {
  if (texts.empty()) return PotentialOptions{}.slowdown_bounds;
  std::vector<double> bounds;
  for (const std::string& text : texts) {
    double bound = std::numeric_limits<double>::infinity();
    if (text != "none" && !(CLI::detail::lexical_cast(text, bound) && bound >= 1))
      return InvalidArgument("--bound: expected a number of at least 1, or none, found %s", Quoted(text));
    bounds.push_back(bound);
  }
  return bounds;
}

absl::StatusOr<PotentialReport> MakePotentialReport(const PotentialArguments& options) {
  PotentialReport report;
  PotentialOptions& asked = report.asked;
  report.clip_percentile = options.clip_percentile;
  asked.least_gain = options.least_gain_pct / kPct;
  HORUS_ASSIGN_OR_RETURN(asked.slowdown_bounds, ParseBounds(options.bounds));
  PotentialInputs& inputs = report;
  HORUS_ASSIGN_OR_RETURN(inputs, LoadPotential(options.sources));
  if (options.clip_percentile < kPct && !inputs.has_trace)
    return InvalidArgument("--clip: expected a trace, whose jobs have durations, found none");
  if (options.quantiles_pct && !options.json) return InvalidArgument("--quantiles: expected --json, found none");
  report.unknown_jobs = std::ranges::count_if(
      inputs.jobs, [&](const MixJob& job) { return !inputs.unknown.empty() && inputs.unknown[job.profile]; });
  asked.other_units = inputs.other_units;
  asked.hosts = inputs.hosts;
  if (options.json) asked.quantiles_pct = options.quantiles_pct.value_or(kQuantilesPct);
  HORUS_ASSIGN_OR_RETURN(report.cases, PotentialOfCluster(inputs.table, inputs.jobs, inputs.gpus, inputs.reference,
                                                          options.clip_percentile, asked));
  return report;
}

absl::StatusOr<std::string> Answer(const PotentialArguments& options) {
  HORUS_ASSIGN_OR_RETURN(const PotentialReport report, MakePotentialReport(options));
  if (!options.page.path.empty()) HORUS_RETURN_IF_ERROR(WritePage(options.page, PotentialJson(report)));
  return options.json ? PotentialJson(report) : PotentialText(report);
}

void AddFiles(CLI::App& app, PotentialSources& sources) {
  AddRepeated(app, "--speeds", sources.speeds, "Measured speeds alone and in pairs (Gavel's JSON); may be repeated",
              "FILE");
  AddOption(app, "--mix", sources.mix, "The work that comes: traces of Gavel, or a CSV of profile and share",
            "FILE...");
  AddRepeated(app, "--gpus", sources.gpus, "With --speeds: how many GPUs of a type (default: one of each)", "TYPE[=N]");
  AddOption(app, "--cluster", sources.cluster, "YAML file with nodes and GPUs, for predicted pairs", "FILE");
  AddOption(app, "--jobs", sources.jobs, "YAML file with the jobs; each brings the same work unless --mix says",
            "FILE");
  AddOption(app, "--sensitivities", sources.sensitivities,
            "CSV of what cores and host memory do to profiles: other shares than the fair one count too", "FILE");
  AddRanged(app, "--cores-per-gpu", sources.cores_per_gpu, "With --speeds: cores that nodes have for each GPU", "CORES",
            0.001, kMostPerGpu);
  AddRanged(app, "--memory-gib-per-gpu", sources.memory_gib_per_gpu, "With --speeds: host memory likewise", "GIB",
            0.001, kMostPerGpu);
  AddInterferenceOptions(app, sources.interference);
  AddPlacerOptions(app, kToldFitting, sources.limits);
  AddGpusFileOption(app, sources.gpus_files);
  AddOption(app, "--bundle", sources.bundle, "Trained models that refine the predictions", "FILE");
}

}  // namespace

Command AddPotential(CLI::App& parser) {
  auto options = std::make_shared<PotentialArguments>();
  CLI::App* app = parser.add_subcommand("potential", "What sharing could give a cluster, before any policy");
  AddFiles(*app, options->sources);
  AddOption(*app, "--reference", options->sources.reference,
            "GPU type whose time counts the work of a mixed cluster, and shares (default: the first)", "TYPE");
  AddRepeated(*app, "--bound", options->bounds,
              "Most that sharing may slow a job, or none; may be repeated (default: 1.25, 1.5, 2, 2.5, none)",
              "FACTOR");
  AddOption(*app, "--quantiles", options->quantiles_pct,
            "JSON: also at bounds that so many % of the pairs keep (default: 10,25,50,75,90)", "PCT,...")
      ->delimiter(',')
      ->check(CLI::Range(0.0, kPct));
  AddRanged(*app, "--least-gain", options->least_gain_pct, "Gain of the best plan from which on sharing pays, in %",
            "PCT", 0.0, 1000.0)
      ->capture_default_str();
  AddRanged(*app, "--clip", options->clip_percentile, "Jobs of a trace longer than this percentile count so long",
            "PERCENTILE", 0.0, 100.0)
      ->capture_default_str();
  app->add_flag("--json", options->json, "Print JSON");
  AddPageOptions(*app, options->page);
  app->footer(kPotentialFooter);
  return {app, [options] { return Print(Answer(*options)); }};
}

}  // namespace horus::cli
