// SPDX-License-Identifier: Apache-2.0

package horus_test

import (
	"context"
	"errors"
	"testing"

	"libhorus.org/horus"
)

// What a stranger writes into a node or job is taken or refused with a status; a refusal changes nothing.
func FuzzNodesAndJobsAreTakenOrRefused(f *testing.F) {
	f.Add("node", "a100-40gb", "GPU-0", "zone", "tenant", int64(1_000), int64(2_000), int32(1), int32(1), float32(30))
	f.Add("", "", "", "", "", int64(-1), int64(1)<<62, int32(-7), int32(1)<<30, float32(-1))
	f.Fuzz(func(t *testing.T, name, gpuType, id, key, tenant string, cpu, memory int64, tasks, gpus int32, util float32) {
		c := must[*horus.Cluster](t)(horus.NewCluster(nil))
		defer c.Close()
		ok(t, c.AddNode(node(1)))
		p := must[*horus.Placer](t)(horus.NewPlacer(horus.PlacerOptions{}))
		defer p.Close()
		state := stateOf(t, c)
		var e *horus.Error
		err := c.AddNode(horus.Node{
			ID: 2, Name: name, CPUMilli: cpu, MemMiB: memory, Labels: []horus.Label{{Key: key, Value: name}},
			Devices: []horus.Device{{GPUType: gpuType, ID: id, MaxTenants: tasks, Card: gpus}},
		})
		if err != nil && (!errors.As(err, &e) || e.Message == "" || stateOf(t, c) != state) {
			t.Fatalf("expected a status with a message and the state kept, found %v", err)
		}
		j := horus.Job{
			ID: 3, Name: name, Tenant: tenant, Tasks: tasks, GPUsPerTask: gpus, CPUMilli: cpu, MemMiB: memory,
			SlowdownBound: util, Selectors: []horus.Label{{Key: key, Value: tenant}}, Groups: []string{name},
			Demands: []horus.TypeDemand{{GPUType: gpuType, Demand: horus.Demand{GPUUtilPct: util, MemMiB: memory}}},
		}
		state = stateOf(t, c)
		plan, err := p.Plan(context.Background(), c, []horus.Job{j}, nil)
		if err != nil {
			if !errors.As(err, &e) || e.Message == "" || stateOf(t, c) != state {
				t.Fatalf("expected a status with a message and the state kept, found %v", err)
			}
			return
		}
		defer plan.Close()
		d := must[horus.Decision](t)(plan.Decision(0))
		if err := c.Apply(plan); err != nil {
			t.Fatal(err)
		}
		jobs := must[[]uint64](t)(c.Jobs())
		if (d.Verdict == horus.Place) != (len(jobs) == 1) {
			t.Fatalf("a job is there exactly where its verdict is to place it: %v, %v", d.Verdict, jobs)
		}
	})
}
