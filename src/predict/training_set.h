// SPDX-License-Identifier: Apache-2.0
// TrainingSet: measured runs as models read them: a feature row, where it ran, what belongs together, what was
// measured.
//
// Enters:  rows from a dataset file or from a caller's columns.
// Leaves:  a plain value with its check and fingerprint.
// Units:   of the quantities; NaN = not measured.
// Cost:    about 600 bytes a row.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "predict/quantity.h"

namespace horus {

struct GpuType;
struct JobProfile;

struct TrainingRow {
  std::vector<float> features;  // FeatureCount(); NaN = missing
  std::string gpu;              // canonical type name; an undescribed GPU has a name of its own
  std::string family;           // rows of one family are never split between training and calibration
  std::string model;            // the net
  std::string campaign;         // whose rows share a site; may be empty
  std::array<double, kQuantityCount> measured = [] {
    std::array<double, kQuantityCount> none;
    none.fill(std::numeric_limits<double>::quiet_NaN());
    return none;
  }();
  std::string where;  // "rows.csv:12", for errors and reports
  // Only of rows that come with a graph; for evaluation, training reads neither.
  std::array<double, kQuantityCount> analytic_upper = {};  // Analytic::upper; 0 = the default factor on the roofline
  bool understood = true;
};

// Sets features and analytic bounds to those of a job; null = on a GPU of which nothing is known: its columns are
// missing, but for the job's peak.
void Describe(const JobProfile& job, const GpuType* gpu, TrainingRow& row);

// The roofline's own answer for a row: its columns hold it; power has none (0).
[[nodiscard]] double RooflineOf(Quantity quantity, const std::vector<float>& features);

struct TrainingSet {
  std::vector<TrainingRow> rows;
};

// Every row has all features, none infinite; a name for GPU, family and model; measured values above zero (utilisation
// from zero) and at most InfoOf(quantity).most. Errors name the row's place, column, unit, expected and found.
[[nodiscard]] absl::Status CheckTrainingSet(const TrainingSet& set);

// Of all that training reads, in order.
[[nodiscard]] uint64_t FingerprintOf(const TrainingSet& set);

}  // namespace horus
