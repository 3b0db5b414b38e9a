// SPDX-License-Identifier: Apache-2.0

package horus_test

import (
	"context"
	"fmt"
	"log"

	"libhorus.org/horus"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A job is placed, with the reason in words.
func Example() {
	cluster, err := horus.NewCluster(nil)
	check(err)
	defer cluster.Close()
	check(cluster.AddNode(horus.Node{
		ID: 1, Name: "dgx-1", CPUMilli: 64_000, MemMiB: 262_144,
		Devices: []horus.Device{{GPUType: "a100-40gb"}, {GPUType: "a100-40gb"}},
	}))
	placer, err := horus.NewPlacer(horus.PlacerOptions{})
	check(err)
	defer placer.Close()

	demand := horus.Demand{GPUUtilPct: 85, MemMiB: 9_000} // or Predictor.Demand, from an ONNX graph
	plan, err := placer.Plan(context.Background(), cluster, []horus.Job{{
		ID: 7, Name: "resnet50", CPUMilli: 4_000, MemMiB: 16_384,
		Demands: []horus.TypeDemand{{GPUType: "a100-40gb", Demand: demand}},
	}}, nil)
	check(err)
	defer plan.Close()
	decision, err := plan.Decision(0)
	check(err)
	fmt.Println(decision.Verdict, decision.Slots)
	check(cluster.Apply(plan))
	// Output: place [{1 0 0}]
}

// The filter and score steps of a scheduler: one call for all nodes, then the device on the node that the scheduler chose.
func Example_filterAndScore() {
	cluster, err := horus.NewCluster(nil)
	check(err)
	defer cluster.Close()
	for id := uint64(1); id <= 3; id++ {
		check(cluster.AddNode(horus.Node{
			ID: id, CPUMilli: 16_000, MemMiB: 65_536, Devices: []horus.Device{{GPUType: "t4", ID: fmt.Sprintf("GPU-%d", id)}},
		}))
	}
	running := horus.Job{ID: 1, Demands: []horus.TypeDemand{{Demand: horus.Demand{GPUUtilPct: 90, MemMiB: 12_000}}}}
	_, err = cluster.Adopt(running, []horus.Slot{{Node: 1}}) // what runs already is taken in
	check(err)
	placer, err := horus.NewPlacer(horus.PlacerOptions{})
	check(err)
	defer placer.Close()

	pod := horus.Job{ID: 2, CPUMilli: 1_000, MemMiB: 1_024, Demands: []horus.TypeDemand{{Demand: horus.Demand{GPUUtilPct: 40, MemMiB: 6_000}}}}
	nodes := []uint64{1, 2, 3}
	var verdicts horus.NodeVerdicts
	check(placer.Verdicts(cluster, pod, nodes, &verdicts))
	for i, node := range nodes { // Filter
		fmt.Println("node", node, verdicts.Verdicts[i], verdicts.Reasons[i])
	}
	chosen := []uint64{3} // Score is verdicts.Costs, lower is better; other plugins have their say too

	plan, err := placer.Plan(context.Background(), cluster, []horus.Job{pod}, chosen) // Reserve
	check(err)
	defer plan.Close()
	check(cluster.Apply(plan)) // ErrConflict: the node moved meanwhile, plan again
	slots, err := cluster.JobSlots(2)
	check(err)
	device, err := cluster.Device(slots[0].Node, slots[0].Device)
	check(err)
	fmt.Println("runs on", device.ID)
	check(cluster.Release(2)) // Unreserve, or the pod's end
	// Output:
	// node 1 defer gpu_memory
	// node 2 place none
	// node 3 place none
	// runs on GPU-3
}
