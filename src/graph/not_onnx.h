// SPDX-License-Identifier: Apache-2.0
// What a file is that people take for an ONNX model: a pointer of git-lfs, an error page, another format's weights.
//
// Enters:  the first bytes of what did not parse.
// Leaves:  the error of the parse, or a better one where the bytes begin as another kind of file does.
// Units:   bytes.
// Cost:    none.                      Thread class: pure functions.
#ifndef HORUS_GRAPH_NOT_ONNX_H_
#define HORUS_GRAPH_NOT_ONNX_H_

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace horus {

inline constexpr size_t kTellingBytes = 512;  // more are not looked at

// Only of what failed: a model may begin with any bytes.
[[nodiscard]] absl::Status NameForeignFile(std::string_view head, const absl::Status& failed);

}  // namespace horus

#endif  // HORUS_GRAPH_NOT_ONNX_H_
