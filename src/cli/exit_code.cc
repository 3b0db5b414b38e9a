// SPDX-License-Identifier: Apache-2.0
// Errors on stderr.
#include "cli/exit_code.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cli/table.h"

namespace horus::cli {
namespace {

std::string WholePrintable(std::string_view text) { return Printable(text, text.size()); }

}  // namespace

void PrintProblem(std::string_view what) { std::fprintf(stderr, "horus: %s\n", WholePrintable(what).c_str()); }

int FailToParse(std::string_view problem) {
  if (problem.ends_with('\n')) problem.remove_suffix(1);
  for (const absl::string_view line : absl::StrSplit(absl::string_view(problem.data(), problem.size()), '\n')) {
    std::fprintf(stderr, "%s\n", WholePrintable({line.data(), line.size()}).c_str());
  }
  return kExitBadInput;
}

int Fail(const absl::Status& status) {
  PrintProblem({status.message().data(), status.message().size()});
  return status.code() == absl::StatusCode::kInternal ? kExitInternal : kExitBadInput;
}

}  // namespace horus::cli
