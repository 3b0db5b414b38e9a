// SPDX-License-Identifier: Apache-2.0
// Whole files in and out, with a limit on what is read and no half-written results.
//
// Enters:  a path; bytes.   Leaves: bytes, or an error that names path and cause.
#pragma once

#include "base/status.h"

namespace horus {

// UNAVAILABLE when the file cannot be read (a folder included), RESOURCE_EXHAUSTED above `max_bytes`.
[[nodiscard]] absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

// The same of a file that another file names: UNAVAILABLE where it is not a regular file, for to open a pipe may wait
// for ever and to open a device may do something.
[[nodiscard]] absl::StatusOr<std::string> ReadNamedFile(const std::string& path, size_t max_bytes);

// Writes beside `path` and renames, so that a reader sees the old file or the new one, never a part. The new file has
// the mode of the old one; a link stays, and where it leads is written. UNAVAILABLE on failure and for what is no
// regular file; the old file is then untouched, unless the message says that only the folder's sync failed. Survives a
// loss of power once it returned. A process that is killed inside may leave "<path>.new-<16 hexadecimal digits>"
// behind.
[[nodiscard]] absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// The same for programs, whose users may name a pipe or a device: it is written to as it is.
[[nodiscard]] absl::Status WriteFileOrDevice(const std::string& path, std::string_view bytes);

// `relative` as seen from the folder of `file`; absolute paths stay as they are.
[[nodiscard]] std::string PathBeside(const std::string& file, const std::string& relative);

// The same text however a file's path is written; `path` itself where there is no such file.
[[nodiscard]] std::string OnePathOf(const std::string& path);

}  // namespace horus
