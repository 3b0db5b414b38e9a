# SPDX-License-Identifier: Apache-2.0
# Run with -P at each build: writes OUTPUT, a C++ file that defines horus::cli::kRevision, where the revision of SOURCE
# differs from what it says. REVISION goes before what git tells; neither: "unknown".
set(_revision "${REVISION}")
if(NOT _revision AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE _revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
endif()
if(_failed OR NOT _revision MATCHES "^[0-9A-Za-z._+-]+$")
  set(_revision unknown)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[// Generated at each build; do not edit.
#include "cli/print.h"
namespace horus::cli {
const char* const kRevision = "@_revision@";
}  // namespace horus::cli
]])
