// SPDX-License-Identifier: Apache-2.0
// Rules of the ONNX reader.
#include "graph/reader.h"

#include <gtest/gtest.h>

namespace horus {
namespace {

TEST(Reader, RefusesAnEmptyFile) { EXPECT_FALSE(ReadOnnx({}).ok()); }

}  // namespace
}  // namespace horus
