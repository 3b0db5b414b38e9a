// SPDX-License-Identifier: Apache-2.0
// Plans of the module.
#ifndef HORUS_PYTHON_PLAN_H_
#define HORUS_PYTHON_PLAN_H_

#include "cluster.h"

namespace horus_python {

using PlanHandle = Handle<horus_plan, horus_plan_free>;

}  // namespace horus_python

#endif  // HORUS_PYTHON_PLAN_H_
