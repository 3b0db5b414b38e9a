// SPDX-License-Identifier: Apache-2.0
// What several commands have alike: options, each with what its help calls its value, such as FILE or N, and what they
// read: GPU files and model bundles; measured runs and pairs; a cluster with its jobs, and how the placer is set.
//
// Enters:  options, paths, GPU types.   Leaves: values, or errors that name option, or file and place.
// Units:   slowdown = shared / alone.
// Cost:    that of reading; a graph and run that several rows or jobs share is analysed once.
// Thread class: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/model.h"
#include "interference/pair_model.h"
#include "interference/registry.h"
#include "io/cluster_file.h"
#include "io/demand_shelf.h"
#include "io/jobs_file.h"
#include "lab/io/pairs_file.h"
#include "lab/models/train_pairs.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "predict/predictor.h"
#include "predict/training_set.h"

namespace horus {

struct PlacementReport;

namespace cli {

CLI::Option* AddOption(CLI::App& app, const std::string& name, auto& value, const std::string& what,
                       const std::string& called) {
  return app.add_option(name, value, what)->type_name(called);
}

// A number from `least` to `most`.
template <typename Value, typename Bound>
CLI::Option* AddRanged(CLI::App& app, const std::string& name, Value& value, const std::string& what,
                       const std::string& called, Bound least, Bound most) {
  return AddOption(app, name, value, what, called)->check(CLI::Range(least, most));
}

// One that is given once for each of its values.
CLI::Option* AddRepeated(CLI::App& app, const std::string& name, auto& values, const std::string& what,
                         const std::string& called) {
  return AddOption(app, name, values, what, called)->allow_extra_args(false);
}

void AddGpusFileOption(CLI::App& app, std::vector<std::string>& files);

// The built-in catalogue and after it the types of `files`.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Catalogue>> LoadCatalogue(std::span<const std::string> files);

inline constexpr size_t kMaxBundleBytes = size_t{1} << 30;

// Names in place of a bundle's path: the built-in one, and the analytical prior alone.
inline constexpr std::string_view kBuiltinBundle = "builtin";
inline constexpr std::string_view kNoBundle = "none";

// That of the bundle; the built-in one for an empty path.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Predictor>> LoadPredictor(const std::string& bundle);

// ---- Measured runs.

// The rows of all files in order, but for those of nets or families named in `without` (one that no row has is
// refused).
[[nodiscard]] absl::StatusOr<TrainingSet> LoadTrainingSet(std::span<const std::string> files,
                                                          std::span<const std::string> without,
                                                          const Catalogue& catalogue);

// ---- Measured pairs turned into what training and evaluation of interference models read; what both commands share.

// Options of the commands that work on pairs instead of --data.
struct PairInputs {
  std::vector<std::string> pairs, gpus_files;
  std::string jobs, demands, bundle;
};
void AddPairOptions(CLI::App& app, PairInputs& inputs);

// Exactly one of --data and --pairs; with --pairs none of `only_data`, with --data none of `only_pairs`.
[[nodiscard]] absl::Status CheckDataOrPairs(const CLI::App& app, std::span<const char* const> only_data,
                                            std::span<const char* const> only_pairs);

// --promise and --seed where they were given, else the defaults of pairs.
[[nodiscard]] PairTrainOptions PairOptionsOf(const CLI::App& app, double promise, uint32_t seed);

struct LoadedPairs {
  std::shared_ptr<const Catalogue> catalogue;
  PairSet set;
  PairsSkipped skipped;
};

// The jobs that a pair names, in the order of the job table; the pairs in file order; demands as they were
// measured, else as `predictor` predicts them, on each GPU type of the pairs.
[[nodiscard]] absl::StatusOr<LoadedPairs> LoadPairSet(const PairInputs& inputs,
                                                      std::shared_ptr<const Catalogue> catalogue,
                                                      std::shared_ptr<const Predictor> predictor);

// Both of the above, and catalogue and predictor as the options name them.
[[nodiscard]] absl::StatusOr<LoadedPairs> LoadPairSet(const PairInputs& inputs);

// One line a kind of entry that was no pair; empty if there was none.
[[nodiscard]] std::string SkippedText(const PairsSkipped& skipped);

// ---- The interference model that a command's options choose.
// Cost: that of reading; with pairs, an analysis of each job that they name.

struct InterferenceChoice {
  std::string name{kDefaultInterferenceModel};
  std::string bundle;              // of `horus train --pairs`; empty = the built-in models
  std::vector<std::string> pairs;  // files; where they measured, their table answers in place of the model
  std::string pair_jobs;
};
void AddInterferenceOptions(CLI::App& app, InterferenceChoice& choice);

[[nodiscard]] absl::Status CheckChoice(const InterferenceChoice& choice);

[[nodiscard]] absl::StatusOr<std::shared_ptr<const InterferenceModel>> LoadInterference(
    const InterferenceChoice& choice, std::shared_ptr<const Catalogue> catalogue,
    std::shared_ptr<const Predictor> predictor);

// ---- How the placer is set on the command line, and the jobs that run already.

struct PlacingOptions {
  std::string cluster, jobs;  // files
  std::string policy = "horus";
  InterferenceChoice interference;
  std::string slowdown_bound;  // as it was typed; that of `placer` is not read
  PlacerOptions placer;
  std::vector<std::string> gpus_files;
  std::string bundle;
  bool one_by_one = false;  // of `horus place`: in the order of priority and submission
};
// `jobs`: what the jobs are to the command.
void AddPlacingOptions(CLI::App& app, const std::string& jobs, PlacingOptions& options);
// The options of the placer that commands of this kind tell (kTold...).
void AddPlacerOptions(CLI::App& app, uint8_t told, PlacerOptions& options);

// Whether the figures of a job say no more than what it asked for: a share of a GPU, or a busy one.
[[nodiscard]] bool IsRequestAlone(const JobSpec& job);

[[nodiscard]] absl::StatusOr<std::unique_ptr<Placer>> MakePlacer(const PlacingOptions& options,
                                                                 std::shared_ptr<const InterferenceModel> model);

struct PlacingInputs {
  ClusterFile file;
  std::vector<JobRequest> requests;
  Cluster cluster;  // with the jobs that run
  std::shared_ptr<const InterferenceModel> model;
  std::unique_ptr<Placer> placer;
  std::unique_ptr<DemandShelf> shelf;
  std::vector<GpuTypeId> present;
};
[[nodiscard]] absl::StatusOr<PlacingInputs> LoadPlacing(const PlacingOptions& options);
// What `horus place` finds; `prometheus`: file for what the placer did, empty = none.
[[nodiscard]] absl::StatusOr<PlacementReport> PlaceFiles(const PlacingOptions& options,
                                                         const std::string& prometheus = "");

// "table, horus": measured pairs first.
[[nodiscard]] std::string NameOf(const InterferenceChoice& choice);

}  // namespace cli
}  // namespace horus
