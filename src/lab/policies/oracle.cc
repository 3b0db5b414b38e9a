// SPDX-License-Identifier: Apache-2.0
// oracle: the objective of horus, for a placer whose model is the truth; a name of its own for tables.
#include "lab/policies/rivals.h"

namespace horus {

std::unique_ptr<Policy> MakeOraclePolicy(const PolicyOptions& options) { return MakeHorusPolicyAs("oracle", options); }

}  // namespace horus
