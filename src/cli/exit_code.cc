// SPDX-License-Identifier: Apache-2.0
// Errors on stderr.
#include "cli/exit_code.h"

#include <cstdio>
#include <string>

namespace horus::cli {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "horus: %s\n", std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kInternal ? kExitInternal : kExitBadInput;
}

}  // namespace horus::cli
