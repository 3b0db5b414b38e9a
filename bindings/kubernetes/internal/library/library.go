// SPDX-License-Identifier: Apache-2.0

// Package library is libhorus as the scheduler asks it: one cluster and one placer, in this process or in a child process that
// may crash or hang without it.
package library

import (
	"context"
	"errors"

	"libhorus.org/horus"
	"libhorus.org/learn"
)

// ErrGone says that the child process is not there. It comes back by Start, empty.
var ErrGone = errors.New("libhorus is not there: its process ended, and starts again")

// Library is used by one caller at a time.
type Library struct{ backend }

// backend answers requests. An error of the library is in the reply; what do returns is about the way there.
type backend interface {
	do(ctx context.Context, request *request, reply *reply) error
	// Start brings it back, empty, after it was gone.
	Start() error
	// Gone says whether it is.
	Gone() bool
	// Prepare reads a model: the built-in one, corrected by observations, a snapshot of them; none = not corrected. It may take seconds,
	// and other calls may go on meanwhile.
	Prepare(observations []byte) (Prepared, error)
	// Close ends it.
	Close()
}

// Planned is the decision on one job, with what it does to those beside it.
type Planned struct {
	horus.Decision
	Effects []horus.Effect
}

type operation int

const (
	find operation = iota
	addNode
	changeNode
	removeNode
	drain
	adopt
	release
	verdicts
	plan
	planBatch
	planWithout
	appraise
	regret
	correct
	review
)

// request and reply carry what the operation needs, the rest is zero and costs nothing on the way.
type request struct {
	Op      operation
	GPUType string
	Profile string
	Node    horus.Node
	Job     horus.Job
	Jobs    []horus.Job
	ID      uint64
	Device  uint32
	On      bool
	IDs     []uint64
	Gone    []uint64
	Slots   []horus.Slot
	Bytes   []byte
	Options horus.RebalanceOptions
	Batch   horus.BatchOptions

	prepared *horus.Placer // of Bytes, in this process
}

type reply struct {
	Status    horus.Status // 0 = it went well
	Message   string
	Reason    horus.Reason
	Verdicts  horus.NodeVerdicts
	Planned   []Planned
	Appraisal horus.Appraisal
	Regret    horus.Regret
	Reviews   []horus.TenantReview
	Moves     []horus.Migration
}

func (l *Library) ask(ctx context.Context, in request) (out reply, err error) {
	if err := l.do(ctx, &in, &out); err != nil {
		return out, err
	}
	if out.Status != 0 {
		return out, &horus.Error{Status: out.Status, Message: out.Message}
	}
	return out, nil
}

func (l *Library) tell(in request) error {
	_, err := l.ask(context.Background(), in)
	return err
}

// Find says whether a GPU type is known, and a MIG profile of it, unless that is "".
func (l *Library) Find(gpuType, profile string) error {
	return l.tell(request{Op: find, GPUType: gpuType, Profile: profile})
}

// AddNode is horus.Cluster's, as are those that follow.
func (l *Library) AddNode(node horus.Node) error { return l.tell(request{Op: addNode, Node: node}) }

// ChangeNode describes a node anew; who is there stays.
func (l *Library) ChangeNode(node horus.Node) error {
	return l.tell(request{Op: changeNode, Node: node})
}

// RemoveNode takes an empty node away.
func (l *Library) RemoveNode(id uint64) error { return l.tell(request{Op: removeNode, ID: id}) }

// Drain closes a device to new jobs, or opens it.
func (l *Library) Drain(node uint64, device uint32, on bool) error {
	return l.tell(request{Op: drain, ID: node, Device: device, On: on})
}

// Adopt takes a job in where it is, and tells the rule that it breaks there.
func (l *Library) Adopt(job horus.Job, slots []horus.Slot) (horus.Reason, error) {
	out, err := l.ask(context.Background(), request{Op: adopt, Job: job, Slots: slots})
	return out.Reason, err
}

// Release ends a job.
func (l *Library) Release(job uint64) error { return l.tell(request{Op: release, ID: job}) }

// Verdicts is horus.Placer's, as are those that follow.
func (l *Library) Verdicts(job horus.Job, nodes []uint64) (horus.NodeVerdicts, error) {
	out, err := l.ask(context.Background(), request{Op: verdicts, Job: job, IDs: nodes})
	return out.Verdicts, err
}

// Plan decides jobs one after the other among the nodes.
func (l *Library) Plan(ctx context.Context, jobs []horus.Job, nodes []uint64) ([]Planned, error) {
	out, err := l.ask(ctx, request{Op: plan, Jobs: jobs, IDs: nodes})
	return out.Planned, err
}

// PlanBatch decides jobs that wait in a queue together.
func (l *Library) PlanBatch(ctx context.Context, jobs []horus.Job, nodes []uint64, options horus.BatchOptions) ([]Planned, error) {
	out, err := l.ask(ctx, request{Op: planBatch, Jobs: jobs, IDs: nodes, Batch: options})
	return out.Planned, err
}

// PlanWithout decides jobs as if others had gone.
func (l *Library) PlanWithout(gone []uint64, jobs []horus.Job) ([]Planned, error) {
	out, err := l.ask(context.Background(), request{Op: planWithout, Gone: gone, Jobs: jobs})
	return out.Planned, err
}

// Appraise tells what a place would do.
func (l *Library) Appraise(job horus.Job, slots []horus.Slot) (horus.Appraisal, error) {
	out, err := l.ask(context.Background(), request{Op: appraise, Job: job, Slots: slots})
	return out.Appraisal, err
}

// Regret compares somebody's place with the placer's own.
func (l *Library) Regret(ctx context.Context, job horus.Job, theirs []horus.Slot, nodes []uint64) (horus.Regret, error) {
	out, err := l.ask(ctx, request{Op: regret, Job: job, Slots: theirs, IDs: nodes})
	return out.Regret, err
}

// Use places by a model from now on.
func (l *Library) Use(model Prepared) error {
	return l.tell(request{Op: correct, Bytes: model.observations, prepared: model.placer})
}

// Prepared is a model that Use takes.
type Prepared struct {
	observations []byte
	placer       *horus.Placer // of a library in this process
}

// Review looks at the jobs that share.
func (l *Library) Review(options horus.RebalanceOptions) ([]horus.TenantReview, []horus.Migration, error) {
	out, err := l.ask(context.Background(), request{Op: review, Options: options})
	return out.Reviews, out.Moves, err
}

// Options of the placer, as horus.PlacerOptions has them.
type Options struct {
	MemHeadroomMiB int64
	MaxTenants     int32
	SharingQuota   float32
	SlowdownBound  float32
	Learned        []byte // observations that correct its model; see Library.Learn
}

// Local is libhorus in this process.
func Local(options Options) (*Library, error) {
	l, err := newLocal(options)
	if err != nil {
		return nil, err
	}
	return &Library{l}, nil
}

type local struct {
	options   Options
	catalogue *horus.Catalogue
	cluster   *horus.Cluster
	placer    *horus.Placer
}

func newLocal(options Options) (*local, error) {
	if err := horus.CheckABI(); err != nil {
		return nil, err
	}
	l := &local{options: options}
	var err error
	if l.catalogue, err = horus.DefaultCatalogue(); err != nil {
		return nil, err
	}
	if l.cluster, err = horus.NewCluster(l.catalogue); err != nil {
		return nil, err
	}
	model, err := l.Prepare(options.Learned)
	if err != nil {
		return l, err
	}
	l.placer = model.placer
	return l, nil
}

func (l *local) Prepare(observations []byte) (Prepared, error) {
	options := horus.PlacerOptions{
		MemHeadroomMiB: l.options.MemHeadroomMiB, MaxTenants: l.options.MaxTenants, SharingQuota: l.options.SharingQuota,
		SlowdownBound: l.options.SlowdownBound,
	}
	if len(observations) > 0 {
		learned, err := learn.Corrected(l.catalogue, observations)
		if err != nil {
			return Prepared{}, err
		}
		defer learned.Close()
		options.Interference = learned
	}
	placer, err := horus.NewPlacer(options)
	return Prepared{observations, placer}, err
}

func (l *local) Start() error { return nil }
func (l *local) Gone() bool   { return false }
func (l *local) Close()       {}

func (l *local) do(ctx context.Context, in *request, out *reply) error {
	var told *horus.Error
	err := l.answer(ctx, in, out)
	if errors.As(err, &told) && ctx.Err() == nil {
		out.Status, out.Message = told.Status, told.Message
		return nil
	}
	return err
}

func (l *local) answer(ctx context.Context, in *request, out *reply) (err error) {
	ids := in.IDs
	if ids == nil {
		ids = []uint64{} // none; nil would be all
	}
	switch in.Op {
	case find:
		if _, err = l.catalogue.Find(in.GPUType); err == nil && in.Profile != "" {
			_, err = l.catalogue.FindProfile(in.GPUType, in.Profile)
		}
	case addNode:
		err = l.cluster.AddNode(in.Node)
	case changeNode:
		err = l.cluster.ChangeNode(in.Node)
	case removeNode:
		err = l.cluster.RemoveNode(in.ID)
	case drain:
		state := horus.Up
		if in.On {
			state = horus.Drained
		}
		err = l.cluster.SetState(in.ID, in.Device, state)
	case adopt:
		out.Reason, err = l.cluster.Adopt(in.Job, in.Slots)
	case release:
		err = l.cluster.Release(in.ID)
	case verdicts:
		err = l.placer.Verdicts(l.cluster, in.Job, ids, &out.Verdicts)
		out.Verdicts.Verdicts = nil // the reasons say as much, and go through a pipe
	case plan:
		out.Planned, err = planned(l.placer.Plan(ctx, l.cluster, in.Jobs, ids))
	case planBatch:
		out.Planned, err = planned(l.placer.PlanBatch(ctx, l.cluster, in.Jobs, ids, in.Batch))
	case planWithout:
		out.Planned, err = planned(l.placer.WhatIfGone(l.cluster, in.Gone, in.Jobs))
	case appraise:
		out.Appraisal, err = l.placer.Appraise(l.cluster, in.Job, in.Slots)
	case regret:
		out.Regret, err = l.placer.Regret(ctx, l.cluster, in.Job, in.Slots, ids)
	case correct:
		model := Prepared{placer: in.prepared}
		if model.placer == nil { // of a parent, which waits
			model, err = l.Prepare(in.Bytes)
		}
		if err == nil {
			l.placer.Close()
			l.placer = model.placer
		}
	case review:
		out.Reviews, out.Moves, err = l.review(in.Options)
	}
	return err
}

func (l *local) review(options horus.RebalanceOptions) (reviews []horus.TenantReview, moves []horus.Migration, err error) {
	plan, err := l.placer.Review(l.cluster, options)
	if err != nil {
		return nil, nil, err
	}
	defer plan.Close()
	if reviews, err = plan.Reviews(); err == nil {
		moves, err = plan.Migrations()
	}
	return reviews, moves, err
}

func planned(plan *horus.Plan, err error) ([]Planned, error) {
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	out := make([]Planned, plan.Len())
	for i := range out {
		if out[i].Decision, err = plan.Decision(i); err != nil {
			return nil, err
		}
		if out[i].Effects, err = plan.Effects(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}
