# SPDX-License-Identifier: Apache-2.0
# Run with -P: writes OUTPUT, a C++ file that defines `extern const unsigned char NAME[]` and its size from the bytes of INPUT.
file(READ "${INPUT}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
# A string literal: compilers read megabytes of it at once.
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
file(WRITE "${OUTPUT}" "// Generated from a committed file; do not edit.
#include <cstddef>
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
namespace horus {
extern const unsigned char ${NAME}[];
extern const std::size_t ${NAME}Size;
const unsigned char ${NAME}[] = \"${bytes}\";
const std::size_t ${NAME}Size = ${size};
}  // namespace horus
")
