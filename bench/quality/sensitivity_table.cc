// SPDX-License-Identifier: Apache-2.0
// Reads tables of speed over cores and host memory.
#include "bench/quality/sensitivity_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <tuple>

namespace horus::bench {
namespace {

constexpr std::array<const char*, 6> kColumns = {"fair_cpu_per_gpu", "model",   "gpus",
                                                 "cpu_cores",        "dram_gb", "norm_tput"};
enum Column : size_t { kFairCpu = 0, kModel = 1, kGpus = 2, kCores = 3, kDram = 4, kSpeed = 5 };

// The tasks of the nets in Synergy's evaluation; bert and vae by what they do.
const std::map<std::string, TaskKind, std::less<>>& Tasks() {
  static const std::map<std::string, TaskKind, std::less<>> tasks = {
      {"alexnet", TaskKind::kImage},    {"bert", TaskKind::kLanguage},        {"deepspeech", TaskKind::kSpeech},
      {"gnmt", TaskKind::kLanguage},    {"lstm", TaskKind::kLanguage},        {"m5", TaskKind::kSpeech},
      {"mobilenet", TaskKind::kImage},  {"res18", TaskKind::kImage},          {"res50", TaskKind::kImage},
      {"shufflenet", TaskKind::kImage}, {"transformer", TaskKind::kLanguage}, {"vae", TaskKind::kImage}};
  return tasks;
}

TaskKind TaskOf(const std::string& model) {
  const auto found = Tasks().find(model);
  return found == Tasks().end() ? TaskKind::kOther : found->second;
}

[[noreturn]] void Fail(const std::string& where, const std::string& what) {
  std::fprintf(stderr, "synergy: %s: %s\n", where.c_str(), what.c_str());
  std::exit(1);
}

// The tables quote nothing.
std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) {
    while (!field.empty() && field.back() == '\r') field.pop_back();
    fields.push_back(field);
  }
  return fields;
}

double Number(const std::string& where, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) Fail(where, "expected a number, found '" + text + "'");
  return value;
}

// (cores per GPU, model, GPUs) -> (thousandths of a core, MiB) -> speed.
using Cells = std::map<std::pair<int64_t, int64_t>, float>;
using Tables = std::map<std::tuple<int32_t, std::string, int32_t>, Cells>;

void ReadTable(const std::filesystem::path& path, Tables& tables) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return;
  const std::vector<std::string> header = Fields(line);
  std::array<size_t, kColumns.size()> at = {};
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const auto found = std::find(header.begin(), header.end(), kColumns[i]);
    if (found == header.end()) return;  // another table
    at[i] = static_cast<size_t>(found - header.begin());
  }
  for (int row = 1; std::getline(file, line); ++row) {
    const std::string where = path.filename().string() + ": row " + std::to_string(row);
    const std::vector<std::string> fields = Fields(line);
    if (fields.size() != header.size()) Fail(where, "expected as many fields as the header has");
    const auto number = [&](Column column) { return Number(where, fields[at[column]]); };
    const auto fair = static_cast<int32_t>(number(kFairCpu));
    const auto gpus = static_cast<int32_t>(number(kGpus));
    tables[{fair, fields[at[kModel]], gpus}][{std::llround(1000 * number(kCores)),
                                              std::llround(1024 * number(kDram))}] = static_cast<float>(number(kSpeed));
  }
}

Sensitivity ToMatrix(const std::string& where, const Cells& cells) {
  std::set<int64_t> cpu, mem;
  for (const auto& [cell, speed] : cells) {
    cpu.insert(cell.first);
    mem.insert(cell.second);
  }
  std::vector<float> speeds;
  for (const int64_t cores : cpu) {
    for (const int64_t mib : mem) {
      const auto found = cells.find({cores, mib});
      speeds.push_back(found == cells.end() ? 0 : found->second);
    }
  }
  auto matrix = Sensitivity::Create({cpu.begin(), cpu.end()}, {mem.begin(), mem.end()}, speeds);
  if (!matrix.ok()) Fail(where, matrix.status().ToString());
  return *matrix;
}

MeasuredModels ToModels(const Tables& tables) {
  MeasuredModels models;
  for (const auto& [key, cells] : tables) {
    const auto& [fair, name, gpus] = key;
    std::vector<MeasuredModel>& list = models[fair];
    if (list.empty() || list.back().name != name) list.push_back({.name = name, .task = TaskOf(name), .by_gpus = {}});
    list.back().by_gpus.emplace(gpus, ToMatrix(name, cells));
  }
  for (auto& [fair, list] : models) {
    std::erase_if(list, [](const MeasuredModel& model) { return !model.by_gpus.contains(1); });
  }
  return models;
}

}  // namespace

const Sensitivity& MeasuredModel::For(int32_t gpus) const {
  const auto found = by_gpus.find(gpus);
  return found == by_gpus.end() ? by_gpus.at(1) : found->second;
}

MeasuredModels ReadSensitivities(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Tables tables;
  for (const std::filesystem::path& path : files) ReadTable(path, tables);
  return ToModels(tables);
}

// Speed = min(cores / 3, limit), with more memory the limit rises; below the dataset's least memory 0.1.
MeasuredModels MadeUpSensitivities() {
  constexpr int32_t kFair = 3;
  struct Law {
    const char* name;
    double limit;       // in fair shares of cores
    double limit_more;  // with twice the fair memory
    double least_gb;
  };
  constexpr Law kLaws[] = {{"alexnet", 2, 3, 62.5}, {"res18", 2.4, 2.4, 62.5}, {"gnmt", 1, 1, 0},
                           {"lstm", 1, 1, 0},       {"m5", 1.5, 2.5, 62.5},    {"deepspeech", 1, 1, 62.5}};
  Tables tables;
  for (const Law& law : kLaws) {
    for (const int cores : {1, 2, 3, 4, 5, 6, 9, 12, 24}) {
      for (const double gb : {20.83, 62.5, 125.0, 250.0}) {
        const double limit = gb >= 125 ? law.limit_more : law.limit;
        const double speed = gb < law.least_gb                     ? 0.1
                             : law.limit <= 1 && law.least_gb == 0 ? 1
                                                                   : std::min(cores / 3.0, limit);
        tables[{kFair, law.name, 1}][{1000 * cores, std::llround(1024 * gb)}] = static_cast<float>(speed);
      }
    }
  }
  return ToModels(tables);
}

}  // namespace horus::bench
