// SPDX-License-Identifier: Apache-2.0
// What happened when in a simulation, as a CSV that is written while it runs.
//
// Enters:  events.                       Leaves: rows time_us,event,job,node,gpus,gpu_type,profile; several for
//          jobs on several nodes, or on several types of GPU of one.
// Units:   microseconds of the trace's clock; GPUs by their index on the node, apart by spaces.
// Cost:    linear; a buffer is all it holds.   Thread class: one thread at a time.
#ifndef HORUS_CLI_TIMELINE_H_
#define HORUS_CLI_TIMELINE_H_

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/grid.h"

namespace horus::cli {

class Timeline {
 public:
  // UNAVAILABLE: the file cannot be written.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Timeline>> Open(const std::string& path, const Grid& grid);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void Add(const Trace& trace, const SimEvent& event);
  // UNAVAILABLE when something could not be written.
  [[nodiscard]] absl::Status Close();

 private:
  Timeline(std::FILE* file, std::string path, const Grid& grid);

  std::FILE* file_;
  std::string path_;
  struct Node {
    std::string name;                // as a field of the file
    std::vector<std::string> types;  // of its GPUs, likewise
  };
  std::map<NodeId, Node> nodes_;
};

}  // namespace horus::cli

#endif  // HORUS_CLI_TIMELINE_H_
