// SPDX-License-Identifier: Apache-2.0

package library

import (
	"context"
	"errors"

	"libhorus.org/horus"
	"libhorus.org/learn"
)

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
