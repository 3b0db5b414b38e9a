// SPDX-License-Identifier: Apache-2.0
// demand: from a loaded graph to its demand on several GPU types through the C ABI, asked anew and again, per net of
// the zoo.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/rows.h"
#include "horus/horus.h"

namespace horus::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGpus[] = {"k80", "p100-pcie-16gb", "v100-sxm2-16gb", "a100-40gb", "h100-sxm"};
constexpr size_t kGpuCount = std::size(kGpus);

void Must(horus_status status, const horus_error& error, const std::string& what) {
  if (status == HORUS_OK) return;
  std::fprintf(stderr, "demand: %s: %s\n", what.c_str(), error.message);
  std::exit(1);
}

class Asker {
 public:
  Asker() {
    for (horus_demand& demand : demands_) demand = horus_demand(HORUS_DEMAND_INIT);
    for (size_t i = 0; i < kGpuCount; ++i) out_[i] = &demands_[i];
    Must(horus_predictor_default(&predictor_, &error_), error_, "predictor");
    Must(horus_catalogue_default(&catalogue_, &error_), error_, "catalogue");
  }
  ~Asker() {
    horus_predictor_free(predictor_);
    horus_catalogue_free(catalogue_);
  }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  // Microseconds that `times` equal questions take each.
  double Ask(const horus_graph* graph, int64_t batch, size_t gpus, int times) {
    horus_run_spec run = HORUS_RUN_SPEC_INIT;
    run.batch = batch;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
      Must(horus_predictor_demand(predictor_, catalogue_, graph, &run, gpus, kGpus, out_, &error_), error_, "demand");
    }
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / times;
  }

 private:
  horus_error error_ = HORUS_ERROR_INIT;
  horus_predictor* predictor_ = nullptr;
  horus_catalogue* catalogue_ = nullptr;
  horus_demand demands_[kGpuCount];
  horus_demand* out_[kGpuCount];
};

void Measure(const Options& options, std::vector<Row>* rows) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator("examples/models/graphs")) {
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (options.smoke && files.size() > 3) files.resize(3);
  const int repeats = options.smoke ? 1 : 15, cached_repeats = options.smoke ? 1 : 1000;
  Asker asker;
  std::vector<double> all_us, all_cached_us, all_cached5_us;
  for (const fs::path& file : files) {
    horus_error error = HORUS_ERROR_INIT;
    horus_graph* graph = nullptr;
    Must(horus_graph_from_file(file.c_str(), nullptr, &graph, &error), error, file.string());
    horus_graph_info info = HORUS_GRAPH_INFO_INIT;
    Must(horus_graph_get_info(graph, &info, &error), error, file.string());
    std::vector<double> us;
    for (int i = 0; i < repeats; ++i) us.push_back(asker.Ask(graph, 8 + i, kGpuCount, 1));  // a new batch: never cached
    asker.Ask(graph, 8, kGpuCount, 1);
    all_cached_us.push_back(asker.Ask(graph, 8, 1, cached_repeats));
    all_cached5_us.push_back(asker.Ask(graph, 8, kGpuCount, cached_repeats));
    all_us.push_back(Quantile(us, 0.5));
    rows->push_back(
        {"demand_5gpus_us/" + file.stem().string(), all_us.back(), "us", 0, true, "",
         absl::StrFormat("loaded graph to demands on 5 GPU types, %d nodes, %d batches never asked before, median",
                         info.nodes, repeats)});
    horus_graph_free(graph);
  }
  if (all_us.empty()) return;
  const std::string most = absl::StrFormat("slowest net %.0f us", Quantile(all_us, 1));
  rows->push_back({"demand_5gpus_us", Quantile(all_us, 0.5), "us", 500, true, most, "median over the nets of the zoo"});
  rows->push_back({"demand_cached_us", Quantile(all_cached_us, 0.5), "us", 1, true, "",
                   "the same question again, one GPU type; median over the nets of the zoo"});
  rows->push_back({"demand_cached_5gpus_us", Quantile(all_cached5_us, 0.5), "us", 0, true, "",
                   "the same question again, 5 GPU types"});
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
