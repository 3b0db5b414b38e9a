// SPDX-License-Identifier: Apache-2.0
// Reads the command line from /proc and counts GPUs by type.
#include "cli/record.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "horus/version.h"

namespace horus::cli {
namespace {

constexpr size_t kMaxProcBytes = size_t{1} << 24;

// In single quotes where a shell would take a byte for something else.
std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

void CountGpus(const Catalogue& catalogue, const NodeSpec& node, Json& gpus) {
  for (const DeviceSpec& device : node.devices) {
    Json& count = gpus[std::string(catalogue.at(device.type).name)];
    count = count.is_null() ? 1 : count.get<int64_t>() + 1;
  }
}

}  // namespace

std::string VersionText() {
  return absl::StrCat(HORUS_VERSION_MAJOR, ".", HORUS_VERSION_MINOR, ".", HORUS_VERSION_PATCH);
}

std::string CommandLine() {
  std::string bytes = ReadFile("/proc/self/cmdline", kMaxProcBytes).value_or("");
  if (bytes.empty()) return "";
  if (bytes.back() == '\0') bytes.pop_back();  // each word ends with one
  std::string line;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(bytes, '\0'))) {
    absl::StrAppend(&line, line.empty() ? "" : " ", ShellWord(word));
  }
  return line;
}

void AddRecord(Json& document) {
  document["horus"] = VersionText();
  document["revision"] = kRevision;
  document["command"] = CommandLine();
}

Json ClusterJson(const Catalogue& catalogue, std::span<const NodeSpec> nodes) {
  Json gpus = Json::object();
  for (const NodeSpec& node : nodes) CountGpus(catalogue, node, gpus);
  return {{"gpus", std::move(gpus)}};
}

Json ClusterWithNodesJson(const Catalogue& catalogue, std::span<const NodeSpec> nodes) {
  Json cluster = ClusterJson(catalogue, nodes);
  Json& list = cluster["nodes"] = Json::array();
  for (const NodeSpec& node : nodes) {
    Json gpus = Json::object();
    CountGpus(catalogue, node, gpus);
    list.push_back({{"name", NameOf(node)}, {"gpus", std::move(gpus)}});
  }
  return cluster;
}

std::string NameOf(const NodeSpec& node) { return node.name.empty() ? absl::StrCat(node.id) : node.name; }

}  // namespace horus::cli
