// SPDX-License-Identifier: Apache-2.0
// Maps statuses to codes and copies messages into the caller's error struct.
#include "capi/error.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "base/text.h"

namespace horus::capi {
namespace {

constexpr char kCodeUrl[] = "horus/status";
// Codes travel as one character, 'A' = 0: there are at most 20.
constexpr char kFirstCode = 'A';

constexpr std::pair<absl::StatusCode, horus_status> kCodes[] = {
    {absl::StatusCode::kOk, HORUS_OK},
    {absl::StatusCode::kInvalidArgument, HORUS_ERR_INVALID_ARGUMENT},
    {absl::StatusCode::kNotFound, HORUS_ERR_NOT_FOUND},
    {absl::StatusCode::kAlreadyExists, HORUS_ERR_EXISTS},
    {absl::StatusCode::kAborted, HORUS_ERR_CONFLICT},
    {absl::StatusCode::kCancelled, HORUS_ERR_CANCELLED},
    {absl::StatusCode::kResourceExhausted, HORUS_ERR_LIMIT},
    {absl::StatusCode::kDataLoss, HORUS_ERR_CORRUPT},
    {absl::StatusCode::kOutOfRange, HORUS_ERR_VERSION},
    {absl::StatusCode::kFailedPrecondition, HORUS_ERR_STATE},
    {absl::StatusCode::kUnimplemented, HORUS_ERR_UNSUPPORTED},
    {absl::StatusCode::kUnavailable, HORUS_ERR_IO},
};
horus_status CodeOfAbsl(absl::StatusCode code) {
  const auto* at = std::ranges::find(kCodes, code, &std::pair<absl::StatusCode, horus_status>::first);
  return at == std::end(kCodes) ? HORUS_ERR_INTERNAL : at->second;
}

}  // namespace

absl::Status CError(horus_status code, std::string_view message) {
  absl::Status status(absl::StatusCode::kUnknown, absl::string_view(message.data(), message.size()));
  status.SetPayload(kCodeUrl, absl::Cord(std::string(1, static_cast<char>(kFirstCode + code))));
  return status;
}

absl::Status Require(std::initializer_list<NamedPointer> pointers) {
  for (const NamedPointer& argument : pointers) {
    if (argument.pointer == nullptr) return InvalidArgument("%s: expected a pointer, found NULL", argument.name);
  }
  return absl::OkStatus();
}

horus_status CodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kCodeUrl);
  if (!payload.has_value()) return CodeOfAbsl(status.code());
  return std::string(*payload)[0] - kFirstCode;
}

void CopyLine(std::string_view text, char* out, size_t capacity) {
  const char* const last = out + capacity - 1;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);  // 0: a path may be of any bytes
    const size_t taken = std::max<size_t>(length, 1);
    if (taken > static_cast<size_t>(last - out)) break;
    const bool control = IsControl(text.substr(0, taken));
    if (length == 0 || control) {
      *out++ = control ? ' ' : '?';
    } else {
      out = std::copy_n(text.data(), taken, out);
    }
    text.remove_prefix(taken);
  }
  *out = '\0';
}

horus_status Fail(horus_error* error, horus_status code, std::string_view message) {
  if (error == nullptr) return code;
  const size_t size = std::min<size_t>(error->struct_size, sizeof(horus_error));
  if (size >= offsetof(horus_error, status) + sizeof error->status) error->status = code;
  if (size <= offsetof(horus_error, message)) return code;
  CopyLine(message, error->message, size - offsetof(horus_error, message));
  return code;
}

// ---- What becomes of an exception that reached the boundary.

horus_status FailOnException(horus_error* error) {
  try {
    throw;
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;
#endif
  } catch (const std::bad_alloc&) {
    return Fail(error, HORUS_ERR_NO_MEMORY, "an allocation failed");
  } catch (const std::length_error&) {
    return Fail(error, HORUS_ERR_NO_MEMORY, "a count is larger than memory can hold");
  } catch (const std::exception& exception) {
    return Fail(error, HORUS_ERR_INTERNAL, exception.what());
  } catch (...) {
    return Fail(error, HORUS_ERR_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace horus::capi
