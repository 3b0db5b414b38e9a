// SPDX-License-Identifier: Apache-2.0
// The page of `horus report`: what shadow, place and potential print as JSON, for people, in one HTML file.
//
// Enters:  such documents.   Leaves: a page that holds them and its own script, and fetches nothing.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace horus::cli {

extern const char kReportPage[];  // report.html with the hashes of its script and style

struct PageOptions {
  std::string path;           // empty: no page
  double gpu_hour_price = 0;  // 0: not stated
};

// --html FILE, --gpu-hour-price.
void AddPageOptions(CLI::App& app, PageOptions& options);

// Writes the page of one document, if one is asked for.
[[nodiscard]] absl::Status WritePage(const PageOptions& options, const std::string& json);

// Whether it is for the Python program: a folder, a timeline, another of the commands' documents.
[[nodiscard]] bool IsForPython(const std::string& path);

}  // namespace horus::cli
