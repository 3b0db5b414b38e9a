// SPDX-License-Identifier: Apache-2.0
// Hash64 over bytes: the one door of xxHash.
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace horus {

uint64_t Hash64(const void* data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }

}  // namespace horus
