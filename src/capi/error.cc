// SPDX-License-Identifier: Apache-2.0
// Maps statuses to codes and copies messages into the caller's error struct.
#include "capi/error.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "absl/strings/cord.h"

namespace horus::capi {
namespace {

constexpr char kCodeUrl[] = "horus/status";
// Codes travel as one character, 'A' = 0: there are at most 20.
constexpr char kFirstCode = 'A';

horus_status CodeOfAbsl(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return HORUS_OK;
    case absl::StatusCode::kInvalidArgument:
      return HORUS_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return HORUS_NOT_FOUND;
    case absl::StatusCode::kAlreadyExists:
      return HORUS_EXISTS;
    case absl::StatusCode::kAborted:
      return HORUS_CONFLICT;
    case absl::StatusCode::kCancelled:
      return HORUS_CANCELLED;
    case absl::StatusCode::kResourceExhausted:
      return HORUS_LIMIT;
    case absl::StatusCode::kDataLoss:
      return HORUS_CORRUPT;
    case absl::StatusCode::kOutOfRange:
      return HORUS_VERSION;
    case absl::StatusCode::kFailedPrecondition:
      return HORUS_STATE;
    case absl::StatusCode::kUnimplemented:
      return HORUS_UNSUPPORTED;
    case absl::StatusCode::kUnavailable:
      return HORUS_IO;
    default:
      return HORUS_INTERNAL;
  }
}

// Length of the longest prefix of `text` that fits `room` and splits no UTF-8 sequence.
size_t FittingPrefix(std::string_view text, size_t room) {
  if (text.size() <= room) return text.size();
  size_t length = room;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0u) == 0x80u) --length;
  return length;
}

}  // namespace

absl::Status CError(horus_status code, std::string_view message) {
  absl::Status status(absl::StatusCode::kUnknown, absl::string_view(message.data(), message.size()));
  status.SetPayload(kCodeUrl, absl::Cord(std::string(1, static_cast<char>(kFirstCode + code))));
  return status;
}

absl::Status At(std::string_view where, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status placed(status.code(), Formatted("%s: %s", std::string(where), std::string(status.message())));
  if (const auto payload = status.GetPayload(kCodeUrl); payload.has_value()) placed.SetPayload(kCodeUrl, *payload);
  return placed;
}

horus_status CodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kCodeUrl);
  if (!payload.has_value()) return CodeOfAbsl(status.code());
  return std::string(*payload)[0] - kFirstCode;
}

void CopyLine(std::string_view text, char* out, size_t capacity) {
  const size_t length = FittingPrefix(text, capacity - 1);
  std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), out,
                 [](char c) { return static_cast<unsigned char>(c) < 0x20 ? ' ' : c; });
  out[length] = '\0';
}

horus_status Fail(horus_error* error, horus_status code, std::string_view message) {
  if (error == nullptr) return code;
  const size_t size = std::min<size_t>(error->struct_size, sizeof(horus_error));
  if (size >= offsetof(horus_error, status) + sizeof error->status) error->status = code;
  if (size <= offsetof(horus_error, message)) return code;
  CopyLine(message, error->message, size - offsetof(horus_error, message));
  return code;
}

}  // namespace horus::capi
