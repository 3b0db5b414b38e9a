// SPDX-License-Identifier: Apache-2.0
// horus/base.h: names of statuses, versions of the library.
#include "horus/base.h"

#include "base/status_names.h"
#include "capi/error.h"

#define HORUS_TEXT_INNER_(x) #x
#define HORUS_TEXT_(x) HORUS_TEXT_INNER_(x)

static_assert(horus::kStatusNames.size() == HORUS_ERR_INTERNAL + 1 && horus::kStatusOk == HORUS_OK &&
              horus::kStatusConflict == HORUS_ERR_CONFLICT);

const char* horus_status_name(horus_status status) {
  return status < 0 || status > HORUS_ERR_INTERNAL ? "UNKNOWN" : horus::kStatusNames[static_cast<size_t>(status)];
}

const char* horus_version_text(void) {
  return HORUS_TEXT_(HORUS_VERSION_MAJOR) "." HORUS_TEXT_(HORUS_VERSION_MINOR) "." HORUS_TEXT_(HORUS_VERSION_PATCH);
}

uint32_t horus_abi_number(void) { return HORUS_ABI_NUMBER; }

horus_status horus_abi_check(uint32_t header_abi, horus_error* error) {
  return horus::capi::Guard(error, [&]() -> absl::Status {
    if (header_abi == HORUS_ABI_NUMBER) return absl::OkStatus();
    return horus::MakeError(absl::StatusCode::kOutOfRange,
                            "ABI: this library has %d.%d, the program was compiled for %d.%d", HORUS_ABI,
                            HORUS_ABI_REVISION, header_abi >> 16, header_abi & 0xFFFFu);
  });
}
