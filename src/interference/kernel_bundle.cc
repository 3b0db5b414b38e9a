// SPDX-License-Identifier: Apache-2.0
// The Gaussian process as a bundle's target, and what a target must keep to be one.
#include <utility>

#include "base/status.h"
#include "interference/kernel_model.h"

namespace horus {
namespace {

constexpr double kMostMagnitude = 1e6;  // of any number in a target: z is a logarithm of at most 1,000
constexpr double kLeastScale = 1e-4;    // of a column, and of the settings that divide

std::vector<double> SettingsOf(const KernelSettings& s) {
  return {s.level, s.slope, s.curve, s.job, s.interaction, s.pair, s.campaign, s.noise, s.length, s.across};
}
constexpr size_t kSettings = 10;

absl::Status Corrupt(std::string_view series, const std::string& expected, const std::string& found) {
  return DataLoss("target horus: series %s: expected %s, found %s", series, expected, found);
}

// Of any number of rows of so many values.
absl::StatusOr<std::span<const double>> ReadRows(const BundleTarget& target, std::string_view name, size_t values) {
  const NamedSeries* series = FindSeries(target.calibration, name);
  if (series == nullptr) return Corrupt(name, "one", "none");
  const size_t count = series->values.size();
  return ReadSeries(target, name, count - count % values, kMostMagnitude);
}

// A whole number below `limit`, or kUnseen.
uint32_t Position(double value, size_t limit) {
  return value >= 0 && value < static_cast<double>(limit) && value == std::floor(value) ? static_cast<uint32_t>(value)
                                                                                        : kUnseen;
}

absl::Status ReadScales(const BundleTarget& target, KernelState& state) {
  HORUS_ASSIGN_OR_RETURN(const auto s, ReadSeries(target, "settings", kSettings, kMostMagnitude));
  state.settings = {s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9]};
  if (std::any_of(s.begin(), s.end(), [](double value) { return value < 0; }) || s[8] < kLeastScale || s[9] > 1)
    return Corrupt("settings", "none below 0, a length above 0, a correlation up to 1", "others");
  HORUS_ASSIGN_OR_RETURN(const auto centre, ReadSeries(target, "centre", kPointColumns, kMostMagnitude));
  HORUS_ASSIGN_OR_RETURN(const auto scale, ReadSeries(target, "scale", kPointColumns, kMostMagnitude));
  HORUS_ASSIGN_OR_RETURN(const auto mean, ReadSeries(target, "mean", 1, kMostMagnitude));
  std::copy(centre.begin(), centre.end(), state.centre.begin());
  std::copy(scale.begin(), scale.end(), state.scale.begin());
  state.mean = mean[0];
  if (std::any_of(scale.begin(), scale.end(), [](double value) { return value < kLeastScale; }))
    return Corrupt("scale", "values above 0", "others");
  return absl::OkStatus();
}

// Rows of device, job and the point's columns, ascending.
absl::Status ReadEntries(const PairHeader& header, const BundleTarget& target, KernelState& state) {
  constexpr size_t kRow = 2 + kPointColumns;
  HORUS_ASSIGN_OR_RETURN(const auto entries, ReadRows(target, "entries", kRow));
  if (entries.size() / kRow > kMostKernelEntries) {
    return Corrupt("entries", "at most " + std::to_string(kMostKernelEntries) + " entries",
                   std::to_string(entries.size() / kRow));
  }
  state.blocks.resize(header.devices.size());
  std::pair<uint32_t, uint32_t> last = {0, 0};
  for (size_t at = 0; at < entries.size(); at += kRow) {
    const std::pair<uint32_t, uint32_t> here = {Position(entries[at], header.devices.size()),
                                                Position(entries[at + 1], header.profiles.size())};
    if (here.first == kUnseen || here.second == kUnseen || (at > 0 && here <= last))
      return Corrupt("entries", "ascending positions of the header", "entry " + std::to_string(at / kRow));
    last = here;
    KernelBlock& block = state.blocks[here.first];
    block.jobs.push_back(here.second);
    std::copy_n(entries.begin() + static_cast<int64_t>(at) + 2, kPointColumns, block.points.emplace_back().begin());
  }
  // Bounded: at most kMostKernelEntries jobs in all blocks.
  for (KernelBlock& block : state.blocks) block.weights.assign(block.size() * block.size(), 0);
  return absl::OkStatus();
}

absl::Status ReadWeights(const BundleTarget& target, KernelState& state) {
  HORUS_ASSIGN_OR_RETURN(const auto places, ReadRows(target, "weight_places", 1));
  HORUS_ASSIGN_OR_RETURN(const auto weights, ReadSeries(target, "weights", places.size(), kMostMagnitude));
  size_t cells = 0;  // of all blocks before
  size_t block = 0;
  double last = -1;
  for (size_t i = 0; i < places.size(); ++i) {
    while (block < state.blocks.size() &&
           places[i] >= static_cast<double>(cells + state.blocks[block].weights.size())) {
      cells += state.blocks[block++].weights.size();
    }
    if (block == state.blocks.size() || places[i] <= last || places[i] != std::floor(places[i]))
      return Corrupt("weight_places", "ascending positions within the blocks", std::to_string(places[i]));
    last = places[i];
    state.blocks[block].weights[static_cast<size_t>(places[i]) - cells] = weights[i];
  }
  return absl::OkStatus();
}

}  // namespace

BundleTarget ToTarget(const KernelState& state) {
  NamedSeries entries{.name = "entries", .values = {}}, places{.name = "weight_places", .values = {}},
      weights{.name = "weights", .values = {}};
  size_t cell = 0;
  for (size_t d = 0; d < state.blocks.size(); ++d) {
    const KernelBlock& block = state.blocks[d];
    for (size_t k = 0; k < block.size(); ++k) {
      entries.values.push_back(static_cast<double>(d));
      entries.values.push_back(block.jobs[k]);
      entries.values.insert(entries.values.end(), block.points[k].begin(), block.points[k].end());
    }
    for (const double weight : block.weights) {
      if (weight != 0) {
        places.values.push_back(static_cast<double>(cell));
        weights.values.push_back(weight);
      }
      ++cell;
    }
  }
  return {.name = std::string(kKernelName),
          .link = Link::kIdentity,
          .calibration = {{"settings", SettingsOf(state.settings)},
                          {"centre", {state.centre.begin(), state.centre.end()}},
                          {"scale", {state.scale.begin(), state.scale.end()}},
                          {"mean", {state.mean}},
                          std::move(entries),
                          std::move(places),
                          std::move(weights)},
          .forest = {}};
}

absl::StatusOr<KernelState> KernelFromTarget(const PairHeader& header, const BundleTarget& target) {
  KernelState state;
  HORUS_RETURN_IF_ERROR(CheckPairTarget(target, kKernelName, /*features=*/0, Link::kIdentity));
  HORUS_RETURN_IF_ERROR(ReadScales(target, state));
  HORUS_RETURN_IF_ERROR(ReadEntries(header, target, state));
  HORUS_RETURN_IF_ERROR(ReadWeights(target, state));
  for (KernelBlock& block : state.blocks) block.Complete();
  return state;
}

absl::StatusOr<std::unique_ptr<const PairModel>> ReadKernelModel(const PairHeader& header, const BundleTarget& target) {
  HORUS_ASSIGN_OR_RETURN(KernelState state, KernelFromTarget(header, target));
  return std::make_unique<const KernelModel>(header, std::move(state));
}

}  // namespace horus
