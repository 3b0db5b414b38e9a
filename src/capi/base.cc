// SPDX-License-Identifier: Apache-2.0
// horus/base.h: names of statuses, the library's versions and names.
#include "horus/base.h"

#include "base/status_names.h"
#include "capi/handles.h"
#include "place/policies/policies.h"

#define HORUS_TEXT_INNER_(x) #x
#define HORUS_TEXT_(x) HORUS_TEXT_INNER_(x)

static_assert(horus::kStatusNames.size() == HORUS_ERR_INTERNAL + 1 && horus::kStatusOk == HORUS_OK &&
              horus::kStatusConflict == HORUS_ERR_CONFLICT);

namespace {

// The names are literals: ended by NUL.
std::vector<const char*> EndedByNull(const auto& names) {
  std::vector<const char*> list;
  for (const std::string_view name : names) list.push_back(name.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

const char* horus_status_name(horus_status status) {
  return status < 0 || status > HORUS_ERR_INTERNAL ? "UNKNOWN" : horus::kStatusNames[static_cast<size_t>(status)];
}

horus_status horus_library_get_info(horus_library_info* info, horus_error* error) {
  return horus::capi::Guard(error, [&] {
    static const auto policies = EndedByNull(horus::PolicyNames());
    static const auto disciplines = EndedByNull(horus::QueueNames());
    static const auto interference = EndedByNull(horus::InterferenceModelNames());
    static const auto models = EndedByNull(horus::capi::KnownModels());
    horus_library_info value = HORUS_LIBRARY_INFO_INIT;
    value.abi_number = HORUS_ABI_NUMBER;
    value.version =
        HORUS_TEXT_(HORUS_VERSION_MAJOR) "." HORUS_TEXT_(HORUS_VERSION_MINOR) "." HORUS_TEXT_(HORUS_VERSION_PATCH);
    value.policies = policies.data();
    value.disciplines = disciplines.data();
    value.interference = interference.data();
    value.models = models.data();
    return horus::capi::Answer(value, info);
  });
}

horus_status horus_abi_check(uint32_t header_abi, horus_error* error) {
  return horus::capi::Guard(error, [&] {
    if (header_abi == HORUS_ABI_NUMBER) return absl::OkStatus();
    return horus::MakeError(absl::StatusCode::kOutOfRange,
                            "ABI: this library has %d.%d, the program was compiled for %d.%d", HORUS_ABI,
                            HORUS_ABI_REVISION, header_abi >> 16, header_abi & 0xFFFFu);
  });
}
