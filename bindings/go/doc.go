// SPDX-License-Identifier: Apache-2.0

// Package horus answers: on which GPUs should this deep-learning job run, beside whom, at what expected slowdown?
// It is libhorus (a C++ library) through its C ABI.
//
// A scheduler keeps a [Cluster] as its nodes and jobs are, asks a [Placer] for verdicts or plans, and applies them:
//
//	cluster, _ := horus.NewCluster(nil)
//	cluster.AddNode(horus.Node{ID: 1, CPUMilli: 32_000, MemMiB: 131_072, Devices: []horus.Device{{GPUType: "a100-40gb"}}})
//	placer, _ := horus.NewPlacer(horus.PlacerOptions{})
//	plan, _ := placer.Plan(ctx, cluster, []horus.Job{job}, nil)
//	cluster.Apply(plan)
//
// Zero means "default" unless a field says otherwise. Units are in the names: MiB, milli (thousandths), Us (microseconds).
//
// # Handles
//
// Graph, Predictor, Catalogue, Interference, Observations, Cluster, Placer, Plan and Metrics hold C memory. Close gives it
// back; it may be called twice and from any goroutine, and waits for calls that run. A handle that is forgotten is closed
// when the garbage collector finds it. Every method of a closed handle answers [ErrClosed].
//
// All handles are safe for concurrent use. A Placer and an Observations serve one call at a time, a Cluster many readers
// or one writer; Apply and Release count as readers, for the library itself lets them in while a plan is made.
//
// # Errors
//
// Every error of the library is an [*Error] with a [Status]:
//
//	if errors.Is(err, horus.ErrConflict) { /* a node moved since the plan saw it: plan again */ }
//
// Where a context ended a call, errors.Is finds the context's error too.
//
// # Building
//
// The package needs cgo, a C compiler and an installed libhorus that pkg-config finds (pkg-config --modversion horus).
package horus
