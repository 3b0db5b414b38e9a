// SPDX-License-Identifier: Apache-2.0
// The additive rule: what several others cost a tenant, from what each of them costs it alone.
//
// Enters:  for every ordered two tenants of a device the slowdown of the first beside the second, and its bound.
// Leaves:  one slowdown a tenant: 1 + the sum over the others of (slowdown beside that one - 1).
// Units:   slowdown = step time shared / step time alone.
// Cost:    about 2 ns a pair, no allocation.   Thread class: pure function.
#ifndef HORUS_INTERFERENCE_COMBINE_H_
#define HORUS_INTERFERENCE_COMBINE_H_

#include <span>

#include "interference/model.h"

namespace horus {

// A slowdown below 1 counts as 1, a bound below its slowdown as that slowdown, a NaN as kMaxSlowdown.
[[nodiscard]] PairExcess CountExcess(float slowdown, float upper);

// Adds one more tenant's part; the sum stays below what kMaxSlowdown says.
void AddExcess(PairExcess& sum, const PairExcess& part);

// 1 + the sum.
[[nodiscard]] Slowdown SlowdownOf(const PairExcess& sum);

// pairs[i * n + j] is the slowdown of tenant i beside tenant j, pair_uppers likewise its bound, for n = out.size(); the
// diagonals are not read. Counted as CountExcess does: sums are of whole millionths, so no order of the tenants can
// show; and as nothing negative is added, one tenant more never lowers anybody's slowdown or bound.
void CombinePairs(std::span<const float> pairs, std::span<const float> pair_uppers, std::span<Slowdown> out);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_COMBINE_H_
