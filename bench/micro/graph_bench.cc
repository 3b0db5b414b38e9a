// SPDX-License-Identifier: Apache-2.0
// graph: time from an ONNX file to a bound graph by number of nodes, beside libonnx; and what weights in a file cost.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/heap.h"
#include "bench/micro/onnx_baseline.h"
#include "bench/micro/synthetic_onnx.h"
#include "bench/rows.h"
#include "graph/reader.h"
#include "graph/shaped.h"
#include "predict/predictor.h"

namespace horus::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBertNodes = 1'400;
constexpr int64_t kBertHidden = 768;
constexpr int64_t kBatch = 32;
constexpr int kOnnxRepeats = 5;
constexpr double kBertAimMs = 3;
constexpr double kLargeAimMs = 500;  // 100,000 nodes
constexpr double kGrowthAim = 1.5;   // time per node, largest net over the next smaller
constexpr double kPayloadAimRatio = 1.5;
constexpr double kPayloadAimMib = 64;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "graph: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status().ToString());
  return *std::move(value);
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "horus_graph_bench_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) Fail("cannot make a temporary folder");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string File(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

template <typename Work>
double Milliseconds(int repeats, const Work& work) {
  std::vector<double> ms;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto made = work();  // freed after the clock stops, as libonnx's is
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return Quantile(ms, 0.5);
}

ShapedGraph Bind(const std::string& path) {
  ShapedGraph bound = Must(BindShapes(Must(ReadOnnxFile(path)), {.batch = kBatch}));
  if (bound.coverage.ops != bound.coverage.ops_with_known_shapes) Fail(path + ": shapes stay unknown");
  return bound;
}

// A field of /proc/self/status, in MiB.
double StatusMib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::strtod(line.c_str() + field.size() + 1, nullptr) / 1024;
  }
  return 0;
}

// Growth of the peak of resident memory while `work` runs.
template <typename Work>
double ResidentGrowthMib(const Work& work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // sets the peak to what is resident now
  const double before = StatusMib("VmHWM");
  work();
  return StatusMib("VmHWM") - before;
}

// Time per node of one net, in milliseconds.
double MeasureNet(const SyntheticNet& net, const TemporaryFolder& folder, double aim_ms, int repeats,
                  std::vector<Row>* rows) {
  const std::string path = folder.File(net.name + ".onnx");
  const std::string bytes = net.Bytes();
  std::ofstream(path, std::ios::binary) << bytes;
  ResetHeapUse();
  Bind(path);
  const HeapUse heap = CurrentHeapUse();
  const double bind_ms = Milliseconds(repeats, [&path] { return Bind(path); });
  RunSpec run;
  run.dims.batch = kBatch;
  const double analyse_ms = Milliseconds(repeats, [&] { return Must(Analyse(Must(ReadOnnxFile(path)), run)); });
  std::vector<double> theirs;
  for (int i = 0; i < std::min(repeats, kOnnxRepeats); ++i) {
    if (const std::optional<double> ms = OnnxMilliseconds(bytes)) theirs.push_back(*ms);
  }
  const std::string beside = theirs.empty() ? "" : absl::StrFormat("libonnx %.2f ms", Quantile(theirs, 0.5));
  const std::string size = absl::StrFormat("%s/%d", net.name, net.node_count);
  const std::string protocol = absl::StrFormat("file of %d KiB without weights, batch %d, %d repeats, median",
                                               bytes.size() / 1024, kBatch, repeats);
  rows->push_back({"graph_ms/" + size, bind_ms, "ms", aim_ms, true, beside,
                   "file to bound graph; libonnx: bytes in memory to inferred shapes; " + protocol});
  rows->push_back({"graph_features_ms/" + size, analyse_ms, "ms", aim_ms, true, beside,
                   "file to costs, memory and feature row; " + protocol});
  rows->push_back({"graph_allocations_per_node/" + size,
                   static_cast<double>(heap.allocations) / static_cast<double>(net.node_count), "1", 0, true, "",
                   protocol});
  rows->push_back({"graph_peak_bytes_per_node/" + size,
                   static_cast<double>(heap.peak_bytes) / static_cast<double>(net.node_count), "B", 0, true, "",
                   protocol + "; growth of the heap"});
  return bind_ms / static_cast<double>(net.node_count);
}

// The same transformer with a gigabyte of payloads and with none.
void MeasurePayloads(bool smoke, const TemporaryFolder& folder, std::vector<Row>* rows) {
  constexpr int64_t kWide = 1'152;  // 12 layers of it hold 1 GB
  const SyntheticNet net = Transformer(smoke ? 1 : kBertNodes, kWide);
  int64_t payload = 0;
  for (const SyntheticWeight& weight : net.weights) payload += weight.payload_bytes();
  const std::string full = folder.File("full.onnx");
  const std::string bare = folder.File("bare.onnx");
  if (!net.WriteWithPayloads(full)) Fail("cannot write " + full);
  std::ofstream(bare, std::ios::binary) << net.Bytes();
  const double growth_mib = ResidentGrowthMib([&full] { Bind(full); });
  const int repeats = smoke ? 1 : 21;
  std::vector<double> full_ms, bare_ms;  // in turn, so that both see the same machine
  for (int i = 0; i < repeats; ++i) {
    bare_ms.push_back(Milliseconds(1, [&bare] { return Bind(bare); }));
    full_ms.push_back(Milliseconds(1, [&full] { return Bind(full); }));
  }
  const double full_median = Quantile(full_ms, 0.5);
  const double bare_median = Quantile(bare_ms, 0.5);
  const std::string protocol = absl::StrFormat(
      "transformer of %d nodes, %d MB of float32 payloads in holes of the file, file to bound graph, %d repeats, "
      "median",
      net.node_count, payload / 1'000'000, repeats);
  rows->push_back({"graph_payload_ratio", full_median / bare_median, "1", kPayloadAimRatio, true,
                   absl::StrFormat("without payloads %.3f ms, with %.3f ms", bare_median, full_median), protocol});
  rows->push_back({"graph_payload_rss_mib", growth_mib, "MiB", kPayloadAimMib, true, "",
                   protocol + "; growth of the peak of resident memory"});
}

void Measure(const Options& options, std::vector<Row>* rows) {
  const TemporaryFolder folder;
  MeasurePayloads(options.smoke, folder, rows);
  MeasureNet(Transformer(options.smoke ? 1 : kBertNodes, kBertHidden), folder, kBertAimMs, options.smoke ? 1 : 31,
             rows);
  std::vector<int64_t> sizes = {1'000, 10'000, 100'000};
  if (options.smoke) sizes = {100, 1'000};
  for (const bool chain : {true, false}) {
    std::vector<double> per_node;
    for (const int64_t nodes : sizes) {
      const double aim = nodes == 100'000 ? kLargeAimMs : 0;
      const int repeats = options.smoke ? 1 : nodes >= 100'000 ? 5 : 15;
      per_node.push_back(
          MeasureNet(chain ? Chain(nodes) : Transformer(nodes, kBertHidden), folder, aim, repeats, rows));
    }
    rows->push_back(
        {absl::StrFormat("graph_growth/%s", chain ? "chain" : "transformer"),
         per_node.back() / per_node[per_node.size() - 2], "1", kGrowthAim, true, "",
         absl::StrFormat("time per node, %d nodes over %d; 1 is linear", sizes.back(), sizes[sizes.size() - 2])});
  }
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
