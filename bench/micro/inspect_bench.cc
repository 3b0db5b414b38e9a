// SPDX-License-Identifier: Apache-2.0
// inspect: time and memory from an ONNX file to its demand on one GPU type, per net of the zoo.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/heap.h"
#include "bench/rows.h"
#include "device/catalogue.h"
#include "graph/reader.h"
#include "predict/predictor.h"

namespace horus::bench {
namespace {

namespace fs = std::filesystem;

template <typename T>
T Must(absl::StatusOr<T> value, const std::string& what) {
  if (!value.ok()) {
    std::fprintf(stderr, "inspect: %s: %s\n", what.c_str(), value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

void Measure(const Options& options, std::vector<Row>* rows) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator("examples/models/graphs")) {
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (options.smoke && files.size() > 3) files.resize(3);
  const std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  const GpuType& gpu = catalogue->at(Must(catalogue->Find("a100-40gb"), "catalogue"));
  const std::shared_ptr<const Predictor> predictor = Predictor::Default();
  RunSpec run;
  run.dims.batch = 32;
  const int repeats = options.smoke ? 1 : 15;
  std::vector<double> all_ms;
  for (const fs::path& file : files) {
    std::vector<double> ms;
    size_t operators = 0;
    int64_t peak_bytes = 0;
    int64_t allocations = 0;
    for (int i = 0; i < repeats; ++i) {
      ResetHeapUse();
      const auto start = std::chrono::steady_clock::now();
      const std::shared_ptr<const Graph> graph = Must(ReadOnnxFile(file.string()), file.string());
      const JobProfile profile = Must(Analyse(graph, run), file.string());
      const Demand demand = predictor->Predict(profile, gpu);
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      if (demand.mem_mib.estimate <= 0) std::exit(1);
      operators = profile.shaped->ops.size();
      peak_bytes = CurrentHeapUse().peak_bytes;
      allocations = CurrentHeapUse().allocations;
    }
    const std::string net = file.stem().string();
    const std::string protocol = absl::StrFormat(
        "file to demand on one GPU type, batch 32, %d operators, %d repeats, median", operators, repeats);
    all_ms.push_back(Quantile(ms, 0.5));
    rows->push_back({"inspect_ms/" + net, all_ms.back(), "ms", 0, true, "", protocol});
    rows->push_back({"inspect_peak_kib/" + net, static_cast<double>(peak_bytes) / 1024, "KiB", 0, true, "",
                     protocol + "; growth of the heap"});
    rows->push_back({"inspect_allocations/" + net, static_cast<double>(allocations), "1", 0, true, "", protocol});
  }
  if (!all_ms.empty()) {
    rows->push_back({"inspect_ms_median", Quantile(all_ms, 0.5), "ms", 0, true, "", "median over the nets of the zoo"});
    rows->push_back({"inspect_ms_max", Quantile(all_ms, 1), "ms", 0, true, "", "slowest net of the zoo"});
  }
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
