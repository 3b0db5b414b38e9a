/* SPDX-License-Identifier: Apache-2.0 */
/* libhorus: on which GPUs should this deep-learning job run, beside whom, at what expected slowdown?
 * The whole C ABI, one header a topic, in the order in which a job walks through the library.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_HORUS_H_
#define HORUS_HORUS_H_

#include "horus/base.h"         /* status, errors, versions */
#include "horus/cluster.h"      /* nodes, devices, jobs; apply, release, snapshot */
#include "horus/demand.h"       /* GPU catalogue, predicted demand */
#include "horus/files.h"        /* people's files, where the build reads them */
#include "horus/graph.h"        /* ONNX graph -> cost and features */
#include "horus/interference.h" /* demands on one device -> slowdown of each tenant */
#include "horus/learn.h"        /* training on measured runs; observations of running jobs */
#include "horus/learn_pairs.h"  /* training on measured pairs; correcting by observed slowdowns */
#include "horus/metrics.h"      /* a log and counters */
#include "horus/modes.h"        /* batches, rebalancing, what-ifs, preemption */
#include "horus/place.h"        /* plans, decisions, verdicts */
#include "horus/potential.h"    /* what sharing could give, before any policy */
#include "horus/queue.h"        /* who goes first */
#include "horus/sim.h"          /* a trace on a cluster: what becomes of the jobs */
#include "horus/trace.h"        /* jobs that came: what simulations play */

#endif /* HORUS_HORUS_H_ */
