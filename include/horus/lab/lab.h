/* SPDX-License-Identifier: Apache-2.0 */
/* The laboratory: what researchers need beside a placer. libhorus_lab has all of libhorus and this; a program links one
 * of the two. Its ABI is not frozen with that of horus.h: a program is compiled for one release of it.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_LAB_H_
#define HORUS_LAB_LAB_H_

#include "horus/horus.h"
#include "horus/lab/features.h"  /* what a step costs, the feature row */
#include "horus/lab/files.h"     /* files, where the build reads them; lists of jobs */
#include "horus/lab/latency.h"   /* of requests to an inference job */
#include "horus/lab/memory.h"    /* that handles hold */
#include "horus/lab/policies.h"  /* options of the policies that are here alone */
#include "horus/lab/potential.h" /* what sharing could give, before any policy */
#include "horus/lab/sim.h"       /* a trace on a cluster: what becomes of the jobs */
#include "horus/lab/trace.h"     /* jobs that came: what simulations play */
#include "horus/lab/train.h"     /* models from measured runs and pairs */

#endif /* HORUS_LAB_LAB_H_ */
