// SPDX-License-Identifier: Apache-2.0

// Package direct does from C what tests compare the Go package with: the calls of the benchmarks, and how much C memory is used.
package direct

/*
#cgo pkg-config: horus
#include <malloc.h>
#include <stdlib.h>
#include <horus/horus.h>

typedef struct { horus_cluster* cluster; horus_placer* placer; uint64_t* ids; int32_t* verdicts; double* costs; int32_t* reasons; size_t nodes; } direct;

static void direct_job(horus_job* job, horus_demand* demand, const horus_demand** demands, const char** types) {
  *demand = (horus_demand)HORUS_DEMAND_INIT;
  demand->gpu_util_pct = 40;
  demand->mem_mib = 6000;
  demands[0] = demand;
  types[0] = "a100-40gb";
  *job = (horus_job)HORUS_JOB_INIT;
  job->id = 1000000;
  job->cpu_milli = 1000;
  job->mem_mib = 1024;
  job->demand_count = 1;
  job->gpu_types = types;
  job->demands = demands;
}

static int direct_new(direct* d, size_t nodes, size_t gpus) {
  static const char* types[64];
  size_t i;
  for (i = 0; i < 64; ++i) types[i] = "a100-40gb";
  if (horus_cluster_create(NULL, &d->cluster, NULL) != HORUS_OK || horus_placer_create(NULL, &d->placer, NULL) != HORUS_OK) return 1;
  d->nodes = nodes;
  d->ids = calloc(nodes, sizeof *d->ids);
  d->verdicts = calloc(nodes, sizeof *d->verdicts);
  d->costs = calloc(nodes, sizeof *d->costs);
  d->reasons = calloc(nodes, sizeof *d->reasons);
  for (i = 0; i < nodes; ++i) {
    horus_node node = HORUS_NODE_INIT;
    node.id = d->ids[i] = i + 1;
    node.cpu_milli = 128000;
    node.mem_mib = 1 << 20;
    node.device_count = (uint32_t)gpus;
    node.gpu_types = types;
    if (horus_cluster_add_node(d->cluster, &node, NULL) != HORUS_OK) return 1;
  }
  return 0;
}

static int direct_verdicts(direct* d, size_t times) {
  horus_job job;
  horus_demand demand;
  const horus_demand* demands[1];
  const char* types[1];
  direct_job(&job, &demand, demands, types);
  for (; times > 0; --times) {
    if (horus_placer_verdicts(d->placer, d->cluster, &job, d->nodes, d->ids, d->verdicts, d->costs, d->reasons, NULL) != HORUS_OK) return 1;
  }
  return 0;
}

static int direct_plan(direct* d, size_t times) {
  horus_job job;
  horus_demand demand;
  const horus_demand* demands[1];
  const char* types[1];
  const horus_job* jobs[1] = {&job};
  direct_job(&job, &demand, demands, types);
  for (; times > 0; --times) {
    horus_plan* plan = NULL;
    horus_decision decision = HORUS_DECISION_INIT;
    if (horus_placer_plan(d->placer, d->cluster, 1, jobs, 1, &d->ids[times % d->nodes], NULL, NULL, &plan, NULL) != HORUS_OK) return 1;
    if (horus_plan_get(plan, 0, &decision, NULL) != HORUS_OK || decision.verdict != HORUS_VERDICT_PLACE) return 1;
    horus_plan_free(plan);
  }
  return 0;
}

static int direct_info(direct* d, size_t times) {
  for (; times > 0; --times) {
    horus_device_info info = HORUS_DEVICE_INFO_INIT;
    if (horus_cluster_get_device(d->cluster, 1, 0, &info, 0, NULL, NULL, NULL) != HORUS_OK) return 1;
  }
  return 0;
}
*/
import "C"

// HeapBytes that C and C++ hold in this process (glibc).
func HeapBytes() uint64 {
	held := C.mallinfo2()
	return uint64(held.uordblks) + uint64(held.hblkhd)
}

// Cluster is one of `nodes` empty nodes with a placer, used from C alone.
type Cluster struct{ d C.direct }

// New makes one. It lives as long as the process.
func New(nodes, gpus int) *Cluster {
	c := &Cluster{}
	must(C.direct_new(&c.d, C.size_t(nodes), C.size_t(gpus)))
	return c
}

func must(failed C.int) {
	if failed != 0 {
		panic("direct: a call failed")
	}
}

// Verdicts asks all nodes for one job, so many times.
func (c *Cluster) Verdicts(times int) { d := c.d; must(C.direct_verdicts(&d, C.size_t(times))) }

// PlanOnOne plans one job on one node, so many times.
func (c *Cluster) PlanOnOne(times int) { d := c.d; must(C.direct_plan(&d, C.size_t(times))) }

// Device asks for one device, so many times.
func (c *Cluster) Device(times int) { d := c.d; must(C.direct_info(&d, C.size_t(times))) }
