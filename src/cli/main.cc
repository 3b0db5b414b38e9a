// SPDX-License-Identifier: Apache-2.0
// The horus command: parses the command line and runs one subcommand.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <regex>
#include <sstream>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/print.h"

namespace horus::cli {
namespace {

// ---- That a command writes over none of the files it was given.
// Cost: a look at the file system for each two files named.

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kOutputs = {"--predictions", "--out", "--prometheus",
                                                      "--timeline",    "--to",  "--html"};

struct Given {
  std::string option, path;
};

void Collect(const CLI::App& app, std::vector<Given>& given) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.find("FILE") == std::string::npos && type.find("PATH") == std::string::npos) continue;
    for (const std::string& path : option->results()) given.push_back({option->get_name(), path});
  }
  for (const CLI::App* below : app.get_subcommands()) Collect(*below, given);
}

bool AreOne(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::exists(a, error)) return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  const fs::path whole = fs::absolute(a, error).lexically_normal();
  return whole == fs::absolute(b, error).lexically_normal();
}

// INVALID_ARGUMENT when a file to write is one that another option reads or writes; devices and pipes may be.
absl::Status CheckOutputs(const CLI::App& command) {
  std::vector<Given> given;
  Collect(command, given);
  for (const Given& output : given) {
    if (std::ranges::find(kOutputs, output.option) == kOutputs.end()) continue;
    for (const Given& other : given) {
      if (&other == &output || !AreOne(output.path, other.path)) continue;
      return InvalidArgument("%s: expected a file that no other option names, found %s of %s", output.option,
                             output.path, other.option);
    }
  }
  return absl::OkStatus();
}

struct Example {
  std::string_view line, what;
  bool of_lab = false;
};
constexpr Example kExamples[] = {
    {"inspect resnet50.onnx --batch 64 --gpu a100-40gb",
     "what one training step costs, and what it demands of an A100"},
    {"place --cluster cluster.yaml --jobs jobs.yaml --explain",
     "on which GPUs the jobs should run, beside whom, and why"},
    {"shadow --cluster cluster.yaml --jobs jobs.yaml --log decisions.csv",
     "what another scheduler's decisions cost, beside ours"},
    {"potential --cluster cluster.yaml --jobs jobs.yaml", "what sharing could give the cluster at best", true},
    {"import nodes-and-pods.json --out cluster", "these files of a Kubernetes cluster, out of what kubectl prints"},
    {"simulate grid.yaml --policy horus --timeline events.csv",
     "one simulated run: its metrics, and what happened when", true},
    {"compare grid.yaml --out results", "policies against each other in a simulated cluster", true},
    {"train --data rows.csv --out model.hbundle", "a predictor that has learned from measured runs", true},
    {"profile run --out rows --minutes 30", "what jobs demand of this GPU, measured alone and side by side"},
    {"report shadow.json potential.json -o page.html", "what shadow, place and potential found, as one page"},
    {"traces show jobs.csv", "what a trace of jobs holds", true},
    {"gpus", "the GPU types that are known"},
    {"models", "the language models that are known by name"},
};
constexpr char kExits[] = R"(
Exit codes: 0 decided (refused jobs included; with --strict 3), 1 internal error, 2 bad input.
`horus COMMAND --help` explains a command.)";

// Examples of the commands that this build has.
std::string Footer() {
  std::string text = "\nExamples:\n";
  for (const Example& example : kExamples) {
    if (example.of_lab && !kHasLaboratory) continue;
    absl::StrAppendFormat(&text, "  horus %s\n      %s\n", example.line, example.what);
  }
  return text + kExits;
}

constexpr char kSeeHelp[] = "\nRun with --help for more information.";

// The command named last on the command line.
const CLI::App& Innermost(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return commands.empty() ? app : Innermost(*commands.front());
}

std::string WholeName(const CLI::App& command) {
  return (command.get_parent() == nullptr ? "" : WholeName(*command.get_parent()) + " ") + command.get_name();
}

std::string UnknownWord(const CLI::App& command, const std::string& word) {
  const bool is_option = word.starts_with('-');
  const std::string found = is_option ? word.substr(0, word.find('=')) : word;
  std::vector<std::string> names;
  if (is_option) {
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(below->get_name());
  }
  std::string expected = is_option ? "an option of this command" : names.empty() ? "no more arguments" : "a command";
  if (!is_option && names.empty()) {
    std::string needed;
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_required() && !option->get_lnames().empty())
        needed += " " + option->get_name() + " " + option->get_type_name();
    }
    if (!needed.empty()) expected = "options," + needed;
  }
  return absl::StrFormat("%s: expected %s, found %s%s", WholeName(command), expected, Quoted(found),
                         DidYouMean(found, std::vector<std::string_view>(names.begin(), names.end())));
}

// The first word of the command line that no command knows; empty where all was known.
std::string Unknown(const CLI::App& parser) {
  const CLI::App& command = Innermost(parser);
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const std::string& word : app->remaining()) {
      if (word != "--") return UnknownWord(command, word);
    }
  }
  return "";
}

// What the parser of options says, in the words of our own errors; long arguments as it says them.
std::string Reworded(const CLI::App& command, std::string problem) {
  static const std::pair<std::regex, const char*> kForms[] = {
      {std::regex("A subcommand is required"), "expected a command, found none"},
      {std::regex("(.+) is required"), "expected $1, found none"},
      {std::regex("(.+): \\d+ required (.+) missing"), "$1: expected $2, found none"},
      {std::regex("(.+): At Most 1 required but received (\\d+)"), "$1: expected once, found $2 times"},
      {std::regex("(.+): Value (.*) not in range ([\\d.]+?)(?:\\.0+)? to 1797\\d{300,}.*"),
       "$1: expected a number of at least $3, found '$2'"},
      {std::regex("(.+): Value (.*) not in range (\\d+(?:\\.\\d*[1-9])?)\\.?0* to (\\d+(?:\\.\\d*[1-9])?)\\.?0*"),
       "$1: expected a number from $3 to $4, found '$2'"},
      {std::regex("(.+): (.*) not in \\{(.*)\\}"), "$1: expected one of $3, found '$2'"},
  };
  constexpr size_t kMostBytes = 1000;  // the standard's expressions recurse
  problem.resize(problem.find('\n'));
  std::smatch parts;
  for (const auto& [form, said] : kForms) {
    if (problem.size() > kMostBytes || !std::regex_match(problem, parts, form)) continue;
    std::string text = parts.format(said);
    if (text.find("expected one of") != std::string::npos) {
      const std::vector<std::string> words = absl::StrSplit(parts[3].str(), ',');
      text += DidYouMean(parts[2].str(), std::vector<std::string_view>(words.begin(), words.end()));
    }
    return WholeName(command) + ": " + text;
  }
  return WholeName(command) + ": " + problem;
}

int Run(int argc, char** argv) {
  if (const auto failed = HandOver(argc, argv)) return *failed;
  CLI::App parser(
      "Answers for a deep-learning job, described by its computation graph: on which GPUs of a cluster it should\n"
      "run, beside whom, and at what expected slowdown.",
      "horus");
  parser.set_version_flag("--version", "horus " + VersionText(), "Print the version");
  parser.require_subcommand(1);
  parser.footer(Footer());
  const Command commands[] = {AddInspect(parser),  AddPlace(parser),   AddShadow(parser), AddPotential(parser),
                              AddImport(parser),   AddGpus(parser),    AddModels(parser), AddTraces(parser),
                              AddSimulate(parser), AddCompare(parser), AddTrain(parser),  AddCalibrate(parser),
                              AddEvaluate(parser), AddReport(parser)};
  AddHandOvers(parser);
  try {
    parser.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive as "errors" of code 0.
    std::ostringstream problem;
    if (parser.exit(error, std::cout, problem) == 0) return kExitDecided;
    // What nobody knows is why something else is missing.
    const std::string unknown = Unknown(parser);
    return FailToParse((unknown.empty() ? Reworded(Innermost(parser), problem.str()) : unknown) + kSeeHelp);
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const absl::Status outputs = CheckOutputs(*command.app);
    return outputs.ok() ? command.run() : Fail(outputs);
  }
  return kExitInternal;
}

}  // namespace

}  // namespace horus::cli

int main(int argc, char** argv) {
  try {
    const int code = horus::cli::Run(argc, argv);
    // A full disk or a closed pipe must not look like success.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      std::fputs("horus: cannot write to stdout\n", stderr);
      return code == horus::cli::kExitDecided ? horus::cli::kExitInternal : code;
    }
    return code;
  } catch (const std::bad_alloc& error) {  // says so without memory
    std::fprintf(stderr, "horus: internal error: %s\n", error.what());
    return horus::cli::kExitInternal;
  } catch (const std::exception& error) {
    horus::cli::PrintProblem(std::string("internal error: ") + error.what());
    return horus::cli::kExitInternal;
  }
}
