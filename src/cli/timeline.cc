// SPDX-License-Identifier: Apache-2.0
// Writes events as rows.
#include "cli/timeline.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/record.h"
#include "io/csv.h"

namespace horus::cli {
namespace {

constexpr auto kEvents =
    std::to_array<const char*>({"arrive", "start", "fail", "finish", "reject", "preempt", "out-of-memory", "migrate",
                                "interrupt", "profiled", "node-down", "node-up"});  // as the enum

std::string EventName(SimEventKind kind) {
  const auto at = static_cast<size_t>(kind);
  return at < kEvents.size() ? kEvents[at] : absl::StrCat("event-", at);
}

}  // namespace

Timeline::Timeline(std::FILE* file, std::string path, const Grid& grid) : file_(file), path_(std::move(path)) {
  for (const NodeSpec& spec : grid.nodes) {
    Node& node = nodes_[spec.id];
    node.name = CsvField(NameOf(spec));
    for (const DeviceSpec& device : spec.devices) {
      node.types.push_back(CsvField(grid.catalogue->at(device.type).name));
    }
  }
  std::fputs("time_us,event,job,node,gpus,gpu_type,profile\n", file_);
}

absl::StatusOr<std::unique_ptr<Timeline>> Timeline::Open(const std::string& path, const Grid& grid) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file != nullptr) return std::unique_ptr<Timeline>(new Timeline(file, path, grid));
  return MakeError(absl::StatusCode::kUnavailable, "%s: cannot write: %s", path, std::string(std::strerror(errno)));
}

Timeline::~Timeline() {
  if (file_ != nullptr) std::fclose(file_);
}

void Timeline::Add(const Trace& trace, const SimEvent& event) {
  const TraceJob* const job = event.job == kNotStated ? nullptr : &trace.jobs[event.job];
  const std::string head =
      absl::StrFormat("%d,%s,%s,", event.time_us, EventName(event.kind), job == nullptr ? "" : absl::StrCat(job->id));
  const std::string tail = (job == nullptr ? "" : CsvField(ProfileOf(trace, *job))) + "\n";
  if (event.slots.empty()) {
    std::fputs((head + ",,," + tail).c_str(), file_);
    return;
  }
  std::map<std::pair<NodeId, std::string>, std::string> gpus;  // a job's slots may lie in any order
  for (const Slot& slot : event.slots) {
    const std::vector<std::string>& types = nodes_[slot.node].types;
    const bool has_type = slot.device != kNoDevice && static_cast<size_t>(slot.device) < types.size();
    std::string& list = gpus[{slot.node, has_type ? types[static_cast<size_t>(slot.device)] : std::string()}];
    if (slot.device != kNoDevice) absl::StrAppend(&list, list.empty() ? "" : " ", slot.device);
  }
  for (const auto& [place, list] : gpus) {
    std::fputs((head + nodes_[place.first].name + "," + list + "," + place.second + "," + tail).c_str(), file_);
  }
}

absl::Status Timeline::Close() {
  const bool failed = std::ferror(file_) != 0;
  if (std::fclose(std::exchange(file_, nullptr)) == 0 && !failed) return absl::OkStatus();
  return MakeError(absl::StatusCode::kUnavailable, "%s: cannot write all of it", path_);
}

}  // namespace horus::cli
