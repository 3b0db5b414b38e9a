// SPDX-License-Identifier: Apache-2.0
#include "cli/outputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"

namespace horus::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kOutputs = {"--predictions", "--out", "--prometheus", "--timeline", "--to"};

struct Given {
  std::string option, path;
};

void Collect(const CLI::App& app, std::vector<Given>& given) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.find("FILE") == std::string::npos && type.find("PATH") == std::string::npos) continue;
    for (const std::string& path : option->results()) given.push_back({option->get_name(), path});
  }
  for (const CLI::App* below : app.get_subcommands()) Collect(*below, given);
}

bool AreOne(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::exists(a, error)) return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  const fs::path whole = fs::absolute(a, error).lexically_normal();
  return whole == fs::absolute(b, error).lexically_normal();
}

}  // namespace

absl::Status CheckOutputs(const CLI::App& command) {
  std::vector<Given> given;
  Collect(command, given);
  for (const Given& output : given) {
    if (std::find(kOutputs.begin(), kOutputs.end(), output.option) == kOutputs.end()) continue;
    for (const Given& other : given) {
      if (&other == &output || !AreOne(output.path, other.path)) continue;
      return InvalidArgument("%s: expected a file that no other option names, found %s of %s", output.option,
                             output.path, other.option);
    }
  }
  return absl::OkStatus();
}

}  // namespace horus::cli
