// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// WhatIfGone decides the jobs, in their order, as if the residents `gone` had left: a scheduler's dry run of preemption.
// Nothing happens, and Apply refuses the plan. Errors: as Plan; ErrNotFound (a resident).
func (p *Placer) WhatIfGone(cluster *Cluster, gone []uint64, jobs []Job) (*Plan, error) {
	var out *C.horus_plan
	err := p.use(cluster, func(a *arena, placer *C.horus_placer, c *C.horus_cluster, e *C.horus_error) C.horus_status {
		changes, pointers := rows[C.horus_change](a, len(gone)), rows[*C.horus_change](a, len(gone))
		for i, job := range gone {
			changes[i].struct_size = C.uint32_t(unsafe.Sizeof(changes[i]))
			changes[i].kind, changes[i].job_id = C.HORUS_CHANGE_RELEASE, C.uint64_t(job)
			pointers[i] = &changes[i]
		}
		wanted := putJobs(a, jobs)
		if a.err != nil {
			return 0
		}
		return C.horus_placer_what_if(placer, c, C.size_t(len(gone)), unsafe.SliceData(pointers), C.size_t(len(jobs)), wanted,
			nil, nil, &out, e)
	})
	if err != nil {
		return nil, err
	}
	plan := &Plan{}
	own(&plan.handle, out, freePlan)
	return plan, nil
}
