// SPDX-License-Identifier: Apache-2.0

package horus_test

import (
	"context"
	"fmt"
	"testing"

	"libhorus.org/horus"
	"libhorus.org/horus/internal/direct"
)

var sizes = []int{100, 1_000, 5_000}

const gpusPerNode = 8

func bigCluster(b *testing.B, nodes int) (*horus.Cluster, *horus.Placer, []uint64) {
	c := must[*horus.Cluster](b)(horus.NewCluster(nil))
	b.Cleanup(func() { c.Close() })
	ids := make([]uint64, nodes)
	for i := range ids {
		ids[i] = uint64(i + 1)
		n := horus.Node{ID: ids[i], CPUMilli: 128_000, MemMiB: 1 << 20}
		for range gpusPerNode {
			n.Devices = append(n.Devices, horus.Device{GPUType: gpu})
		}
		ok(b, c.AddNode(n))
	}
	return c, placerOf(b, horus.PlacerOptions{}), ids
}

func pod() horus.Job {
	return horus.Job{ID: 1_000_000, CPUMilli: 1_000, MemMiB: 1_024, Demands: []horus.TypeDemand{
		{GPUType: gpu, Demand: horus.Demand{GPUUtilPct: 40, MemMiB: 6_000}},
	}}
}

// A pod over all nodes, from Go and from C.
func BenchmarkVerdicts(b *testing.B) {
	for _, nodes := range sizes {
		b.Run(fmt.Sprintf("nodes=%d/from=go", nodes), func(b *testing.B) {
			c, p, ids := bigCluster(b, nodes)
			var out horus.NodeVerdicts
			one := pod()
			for b.Loop() {
				ok(b, p.Verdicts(c, one, ids, &out))
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/from=c", nodes), func(b *testing.B) {
			d := direct.New(nodes, gpusPerNode)
			b.ResetTimer()
			d.Verdicts(b.N)
		})
	}
}

// The device on the node that a scheduler chose.
func BenchmarkPlanOnOneNode(b *testing.B) {
	for _, nodes := range sizes {
		b.Run(fmt.Sprintf("nodes=%d/from=go", nodes), func(b *testing.B) {
			c, p, ids := bigCluster(b, nodes)
			jobs := []horus.Job{pod()}
			i := 0
			for b.Loop() {
				plan, err := p.Plan(context.Background(), c, jobs, ids[i%nodes:i%nodes+1])
				ok(b, err)
				if d, err := plan.Decision(0); err != nil || d.Verdict != horus.Place {
					b.Fatal(d, err)
				}
				plan.Close()
				i++
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/from=c", nodes), func(b *testing.B) {
			d := direct.New(nodes, gpusPerNode)
			b.ResetTimer()
			d.PlanOnOne(b.N)
		})
	}
}

// An ordinary call.
func BenchmarkDevice(b *testing.B) {
	b.Run("from=go", func(b *testing.B) {
		c, _, _ := bigCluster(b, 1)
		for b.Loop() {
			if _, err := c.Device(1, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("from=c", func(b *testing.B) {
		d := direct.New(1, gpusPerNode)
		b.ResetTimer()
		d.Device(b.N)
	})
}
