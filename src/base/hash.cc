// SPDX-License-Identifier: Apache-2.0
// Hash64 over bytes: the one door of xxHash; and the secret of the process.
#include "base/hash.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>

#include "base/seeded_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace horus {

uint64_t Hash64(const void* data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }

namespace {

uint64_t Draw() {
  uint64_t secret = 0;
  if (getentropy(&secret, sizeof secret) == 0) return secret;
  // No such call in here: what an attacker from outside knows least is where the loader put the stack, and when.
  const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return CombineHash(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&secret)), now);
}

}  // namespace

uint64_t ProcessSecret() {
  static const uint64_t secret = Draw();
  return secret;
}

}  // namespace horus
