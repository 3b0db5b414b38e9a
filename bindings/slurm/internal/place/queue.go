// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"libhorus.org/horus"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

// tierOf a job: the highest PriorityTier of its partitions.
func (s *pass) tierOf(job slurm.Job) (tier int) {
	for _, name := range strings.Split(job.Partition, ",") {
		tier = max(tier, s.tiers[name])
	}
	return tier
}

// order is that in which Slurm starts jobs. Those that it holds back for a limit come last: they get what others leave.
func (s *pass) order(a, b *candidate) int {
	last := func(c *candidate) int {
		if c.limit {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(last(a), last(b)), -cmp.Compare(s.tierOf(a.job), s.tierOf(b.job)), -cmp.Compare(a.job.Priority, b.job.Priority),
		cmp.Compare(a.job.Submitted, b.job.Submitted), cmp.Compare(a.job.ID, b.job.ID))
}

// limited is whose limits a job counts to, as far as squeue tells.
func (c *candidate) limited() string { return c.job.User + "|" + c.job.Account + "|" + c.job.Partition }

// eligible jobs of Slurm's own may start as soon as there is room, and take GPUs.
func (s *pass) eligible(job slurm.Job) bool {
	gpus := job.WholeNodes || job.Tres != slurm.Tres{}
	return gpus && job.Priority > 0 && job.Eligible <= s.now && job.Dependency == "" && isOrdinary(job.Reason)
}

// evaluations bound what a choice costs that finds room for all.
const evaluations = 20_000

// chunk of the queue that is planned in one call: those of a kind that finds no place are left out afterwards.
const chunk = 64

// peers have one priority. By priority/basic each job has its own, one less than the job before: where nobody changed that, they
// have one too.
func (s *pass) peers(a, b *candidate) bool {
	apart := a.job.Priority - b.job.Priority
	return a.limit == b.limit && s.tierOf(a.job) == s.tierOf(b.job) && (apart == 0 || s.planner.basic && apart == int64(b.job.ID-a.job.ID))
}

// plan places the queue in its order. Slurm's priorities order it and no more: a job's work counts as much as another's. Of peers
// with no job of Slurm's own between them, those go first whose work is worth most where they would be pinned.
func (s *pass) plan(ctx context.Context, queue []*candidate) error {
	for _, c := range queue {
		if c.theirs && s.eligible(c.job) {
			if _, count := asksOfNode(c.job, max(1, c.job.NodeCount)); count > 0 {
				s.wanted = min(cmp.Or(s.wanted, count), count)
			}
		}
	}
	full := map[string]horus.Decision{} // kinds that found no place, and why
	looked := map[string]int{}          // jobs of each user
	var now []*candidate
	var before *candidate // of ours, with no job of Slurm's own since that may start
	flush := func() error {
		some := now
		now = nil
		if len(some) == 0 {
			return nil
		}
		return s.restricted(some[0], func() error {
			patience := s.planner.options.PatienceS
			if patience < 0 || len(some) == 1 {
				return s.planSome(ctx, some, false, full)
			}
			var first, rest []*candidate
			for _, c := range some {
				if s.now-c.since(s) >= patience {
					first = append(first, c)
				} else {
					rest = append(rest, c)
				}
			}
			if err := s.planSome(ctx, first, false, full); err != nil {
				return err
			}
			return s.planSome(ctx, rest, true, full)
		})
	}
	for _, c := range queue {
		opens := ""
		if !c.theirs {
			opens = s.openTo(c)
		}
		alone := c.theirs && s.eligible(c.job) || c.hasPlace() || c.only != nil || opens != ""
		if before != nil && !c.theirs && !s.peers(before, c) {
			before = nil
		}
		if alone || len(now) == chunk || before == nil && s.planner.options.PatienceS > 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		if c.theirs {
			if s.eligible(c.job) {
				before = nil
				if !s.starts(c.job) {
					s.promise(c.job)
				}
			}
			continue
		}
		before = c
		c.kind += opens
		by, user := s.heldBack[c.limited()], c.job.User
		refused, is := full[c.kind]
		switch {
		case c.hasPlace():
			if stays, err := s.stays(c); stays || err != nil {
				if err != nil {
					return err
				}
				s.promise(c.job)
				continue
			}
			now = append(now, c)
		case by != 0:
			s.wait(c, fmt.Sprintf("behind job %d of the same user, which Slurm holds back for a limit", by), "limit")
		case looked[user] >= s.planner.options.Depth:
			s.wait(c, fmt.Sprintf("behind %d others of its user", looked[user]), "depth")
		case is:
			if s.mayBeKept(c) {
				if err := flush(); err != nil {
					return err
				}
			}
			if !s.keep(c, refused) {
				s.wait(c, refused.Text, refused.Reason.String())
			}
		default:
			looked[user]++
			now = append(now, c)
		}
		if alone {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// starts takes a job of Slurm's own in where it starts at its next turn, if there are free GPUs for it. One that does not start
// there for as long as Slurm may take has a reason that we do not see.
func (s *pass) starts(job slurm.Job) bool {
	kind := fmt.Sprint(job.Tres, job.WholeNodes, job.NodeCount, job.Tasks, job.CPUs, job.MemMiB, job.TimeLimitMin, job.Partition, "|", job.Features, "|", job.Required, "|", job.Excluded)
	if s.blocked[kind] {
		return false
	}
	nodes := max(1, job.NodeCount)
	gres, count := asksOfNode(job, nodes)
	var pieces []piece
	for i := len(s.byID) - 1; i >= 0 && len(pieces) < nodes; i-- { // as Slurm takes those that are alike: see layout
		n := s.byID[i]
		count := count
		if count == math.MaxInt {
			count = len(n.devices)
		}
		one := piece{node: n, cpus: up(job.CPUs, nodes), memMiB: job.MemMiB / int64(nodes)}
		for at := len(n.devices) - 1; at >= 0 && len(one.devices) < count; at-- {
			if d := &n.devices[at]; d.tenants == 0 && (gres == "" || gres == d.gres) && s.open(&candidate{job: job}, d) {
				one.devices = append(one.devices, uint32(at))
			}
		}
		if count == 0 || len(one.devices) < count || !s.mayUse(job, n) {
			continue
		}
		as, slots := s.resides(job, one)
		if found, err := s.planner.placer.Appraise(s.cluster, as, slots); err == nil && found.Reason == horus.ReasonNone {
			pieces = append(pieces, one)
		}
	}
	if s.blocked[kind] = len(pieces) < nodes; s.blocked[kind] {
		return false
	}
	s.fits[job.ID] = cmp.Or(s.planner.fits[job.ID], s.now)
	if s.now-s.fits[job.ID] > s.planner.options.GraceS {
		return false
	}
	s.takeIn(job, pieces)
	return true
}

// mayUse says whether a job of Slurm's own may run on a node.
func (s *pass) mayUse(job slurm.Job, n *node) bool {
	required, err := slurm.Hosts(job.Required)
	excluded, wrong := slurm.Hosts(job.Excluded)
	for _, name := range featuresOf(job) {
		if !slices.Contains(n.labels, horus.Label{Key: "feature/" + name, Value: "1"}) {
			return false
		}
	}
	return n.up && err == nil && wrong == nil && !moreThanAll(job) && (job.Required == "" || slices.Contains(required, n.name)) && !slices.Contains(excluded, n.name) &&
		slices.ContainsFunc(strings.Split(job.Partition, ","), func(name string) bool {
			return slices.Contains(n.labels, horus.Label{Key: "partition/" + name, Value: "1"})
		})
}

// promise closes the nodes that Slurm means to give to a job: to all behind it in the queue that would hold a part of one longer.
// Backfill starts nobody there, whatever is free beside the job. Who is promised what another has by now gets the node that is free
// first.
func (s *pass) promise(job slurm.Job) {
	hosts, err := slurm.Hosts(job.Promised)
	if job.Promised == "" || err != nil || job.Started <= 0 {
		return
	}
	for _, host := range hosts {
		n, till := s.nodes[host], job.Started
		if n != nil && s.taken[n.id] {
			n, till = s.next(job, len(hosts))
		}
		if n == nil {
			continue
		}
		s.taken[n.id] = true
		for i := range n.devices {
			if d := &n.devices[i]; d.closed == 0 || till < d.closed {
				s.close(n, uint32(i), till)
			}
		}
	}
}

// next is the node that is promised to nobody and is free for a job first, and when.
func (s *pass) next(job slurm.Job, nodes int) (best *node, till int64) {
	if len(s.taken) == len(s.byID) {
		return nil, 0
	}
	gres, count := asksOfNode(job, nodes)
	for _, n := range s.byID {
		if s.taken[n.id] || count == 0 || !s.mayUse(job, n) {
			continue
		}
		var ends []int64
		for _, d := range n.devices {
			if gres == "" || gres == d.gres {
				ends = append(ends, max(d.ends, s.now))
			}
		}
		if len(ends) == 0 || count > len(ends) && count != math.MaxInt {
			continue
		}
		slices.Sort(ends)
		if at := ends[min(count, len(ends))-1]; best == nil || at < till {
			best, till = n, at
		}
	}
	return best, till
}

// asksOfNode is how many GPUs a job takes of each of its nodes, and of which type; "" = any. All of them are more than a node has.
func asksOfNode(job slurm.Job, nodes int) (gres string, count int) {
	if job.WholeNodes || job.Tres.PerSocket != "" {
		return "", math.MaxInt
	}
	for request, times := range map[string]int{job.Tres.PerNode: nodes, job.Tres.PerJob: 1, job.Tres.PerTask: job.Tasks} {
		for _, g := range slurm.GresOf(request) {
			if g.Name == "shard" {
				g.Count = nodes // one GPU of each
			} else {
				g.Count *= times
			}
			gres, count = g.Type, count+up(g.Count, nodes)
		}
	}
	return gres, count
}

// close a device till a time to who would hold it longer.
func (s *pass) close(n *node, at uint32, till int64) {
	n.devices[at].closed = till
	s.closed++
	_ = s.cluster.SetState(n.id, at, horus.Drained) // which fails for a device that is not there
}

// open says whether a device may be given to a job.
func (s *pass) open(c *candidate, d *device) bool {
	short := c.job.TimeLimitMin > 0 && s.now+60*c.job.TimeLimitMin <= d.closed
	return (c.gres == "" || c.gres == d.gres) && (d.closed == 0 || short)
}

// differs names devices that are open to a job and closed to others, or the other way round.
func (s *pass) differs(c *candidate, each func(n *node, at uint32)) {
	if c.gres == "" && (s.closed == 0 || c.job.TimeLimitMin == 0) {
		return
	}
	for _, n := range s.byID {
		for i := range n.devices {
			if d := &n.devices[i]; s.open(c, d) != (d.closed == 0) {
				each(n, uint32(i))
			}
		}
	}
}

// openTo is part of a job's kind: what is open to it and not to others. A job that has any is planned by itself.
func (s *pass) openTo(c *candidate) (out string) {
	s.differs(c, func(n *node, at uint32) { out += fmt.Sprintf("|%d/%d", n.id, at) })
	return out
}

// restricted does something while what is open to a job is open, and nothing else.
func (s *pass) restricted(c *candidate, do func() error) error {
	var wrong error
	set := func(back bool) {
		s.differs(c, func(n *node, at uint32) {
			state := horus.Drained
			if s.open(c, &n.devices[at]) != back {
				state = horus.Up
			}
			wrong = cmp.Or(wrong, s.cluster.SetState(n.id, at, state))
		})
	}
	set(false)
	err := do()
	set(true)
	return cmp.Or(wrong, err)
}

// stays takes a job in where it was placed, if those before it in the queue leave it room there. Else whoever gets its place has to
// wait for the next pass: Slurm may just be starting it.
func (s *pass) stays(c *candidate) (stays bool, err error) {
	if c.record.Verb == words.Waits {
		return false, nil // a GPU is kept for it; it may have a place by now
	}
	n, at := s.at(c.record.On)
	if n != nil && n.up && s.open(c, &n.devices[at]) && (c.limit || s.now-c.record.At <= s.planner.options.GraceS) {
		err = s.restricted(c, func() error {
			as, slots := s.resides(c.job, s.pinned(c.job, n, at))
			found, err := s.planner.placer.Appraise(s.cluster, as, slots)
			stays = found.Reason == horus.ReasonNone
			return err
		})
	}
	if stays {
		s.result.Pinned++
		s.awaited(c.job, c.record)
	} else {
		s.contested[c.record.On] = true
	}
	return stays, err
}

// choose among jobs where there is room for some and not for all: `plan` has them one by one.
func (s *pass) choose(ctx context.Context, jobs []horus.Job, plan *horus.Plan) (*horus.Plan, error) {
	placed := 0
	for i := range plan.Len() {
		if decision, err := plan.Decision(i); err == nil && decision.Verdict == horus.Place {
			placed++
		}
	}
	if placed == 0 || placed == len(jobs) {
		return plan, nil
	}
	plan.Close()
	return s.planner.placer.PlanBatch(ctx, s.cluster, jobs, nil, horus.BatchOptions{MaxEvaluations: evaluations})
}

// spare are free GPUs that are open to a job, of nodes where a job of Slurm's own that waits would find as many as it asks for.
func (s *pass) spare(c *candidate, each func(n *node, at uint32)) {
	for _, n := range s.byID {
		var free []uint32
		for i := range n.devices {
			if d := &n.devices[i]; n.up && d.tenants == 0 && s.open(c, d) {
				free = append(free, uint32(i))
			}
		}
		if s.wanted == 0 || len(free) < s.wanted {
			continue
		}
		for _, at := range free {
			each(n, at)
		}
	}
}

// planSome jobs in their order, or peers whose work is worth most first. Where jobs of Slurm's own wait for free GPUs, those that
// share go beside each other if they can, and else onto such a GPU.
func (s *pass) planSome(ctx context.Context, some []*candidate, peers bool, full map[string]horus.Decision) error {
	spared := false
	var wrong error
	set := func(state horus.State) func(n *node, at uint32) {
		return func(n *node, at uint32) {
			spared, wrong = true, cmp.Or(wrong, s.cluster.SetState(n.id, at, state))
		}
	}
	if len(some) > 0 {
		s.spare(some[0], set(horus.Drained))
	}
	if spared {
		left, err := s.ask(ctx, some, peers, nil)
		s.spare(some[0], set(horus.Up))
		if err = cmp.Or(err, wrong); err != nil {
			return err
		}
		some = left
	}
	_, err := s.ask(ctx, some, peers, full)
	return err
}

// ask the library for places. Who finds none waits, for the reason that is written into `full`; where that is nil, it is left.
func (s *pass) ask(ctx context.Context, some []*candidate, peers bool, full map[string]horus.Decision) (left []*candidate, err error) {
	if len(some) == 0 {
		return nil, nil
	}
	jobs := make([]horus.Job, len(some))
	byID := map[uint64]*candidate{}
	for i, c := range some {
		c.horus.SubmitUs = int64(i)
		jobs[i], byID[c.horus.ID] = c.horus, c
	}
	plan, err := s.planner.placer.Plan(ctx, s.cluster, jobs, some[0].only)
	if err == nil && peers {
		plan, err = s.choose(ctx, jobs, plan)
	}
	if err != nil {
		if len(some) > 1 { // one of them is wrong: each by itself
			for _, c := range some {
				one, err := s.ask(ctx, []*candidate{c}, false, full)
				if left = append(left, one...); err != nil {
					return nil, err
				}
			}
			return left, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		s.leave(some[0], err.Error())
		return nil, nil
	}
	defer plan.Close()
	if err := s.cluster.Apply(plan); err != nil {
		return nil, err
	}
	for i := range plan.Len() {
		decision, err := plan.Decision(i)
		if err != nil {
			return nil, err
		}
		c := byID[decision.JobID]
		switch {
		case decision.Verdict == horus.Place:
			s.place(c, decision)
		case full == nil:
			left = append(left, c)
		case decision.Verdict == horus.Reject || decision.PredictedNever: // Slurm may try what we would not
			s.reject(c, decision)
		default:
			full[c.kind] = decision
			if !s.keep(c, decision) {
				s.wait(c, decision.Text, decision.Reason.String())
			}
		}
	}
	return left, nil
}

// A job that finds no place is not to be passed for ever by jobs behind it. So Slurm is shown the first of those on a GPU that is
// to become free: where others share it, it asks for all of its shards, and so starts once nobody is there; or as soon as a pass
// finds it a place. Not at once: bound to one GPU, it holds up its node and Slurm's queue where any GPU would do.

// mayBeKept says whether a GPU may be kept for a job: for one that has waited, or for which Slurm may preempt those that run.
func (s *pass) mayBeKept(c *candidate) bool {
	devices := 0
	for _, n := range s.byID {
		devices += len(n.devices)
	}
	return !c.limit && s.ahead < max(1, devices/8) && (s.waited(c) || s.lowest < s.tierOf(c.job))
}

func (s *pass) waited(c *candidate) bool { return s.now-s.from(c) > s.planner.options.GraceS }

// keep a GPU for a job.
func (s *pass) keep(c *candidate, refused horus.Decision) bool {
	if !s.mayBeKept(c) {
		return false
	}
	waited := s.waited(c)
	var best struct {
		node *node
		at   uint32
		rank [3]int64
	}
	for _, n := range s.byID {
		if !n.up || c.only != nil && !slices.Contains(c.only, n.id) || slices.ContainsFunc(c.horus.Selectors, func(l horus.Label) bool { return !slices.Contains(n.labels, l) }) {
			continue
		}
		for i := range n.devices {
			d := &n.devices[i]
			preempts := d.tenants > 0 && d.tier < s.tierOf(c.job)
			if !s.open(c, d) || d.shards == 0 || c.memory(d.model) > int64(d.shards)*d.unit || !waited && !preempts {
				continue
			}
			rank := [3]int64{1, d.ends, int64(d.tenants)}
			if preempts { // Slurm may take no shards back: first from whole GPUs
				rank = [3]int64{0, int64(d.sharing), d.ends}
			}
			if c.record.Verb == words.Waits && c.record.On == n.name+"/"+d.gres {
				rank = [3]int64{-1}
			}
			if best.node == nil || slices.Compare(rank[:], best.rank[:]) < 0 {
				best.node, best.at, best.rank = n, uint32(i), rank
			}
		}
	}
	if best.node == nil {
		return false
	}
	s.ahead++
	s.result.Kept++
	d := &best.node.devices[best.at]
	text := refused.Text + "; " + best.node.name + "/" + d.gres + " is kept for it"
	if !s.planner.options.Replaces && d.sharing > 0 {
		// Slurm 22.05 forgets over a restart who holds shards, and would start it beside them: it waits unseen till they end.
		s.wait(c, text, refused.Reason.String())
	} else {
		s.waits(c, refused.Reason.String())
		count, mem := d.shards, int64(d.shards)*d.unit
		if d.sharing == 0 { // it starts alone, and others may come beside it then
			count, mem = c.shards(d)
		}
		if best.rank[0] >= 0 || !strings.HasSuffix(c.job.Tres.PerNode, fmt.Sprintf(":%s:%d", d.gres, count)) {
			s.pin(c, best.node, best.at, count, words.Record{Verb: words.Waits, At: s.now, Mem: mem, Text: text})
		}
	}
	s.close(best.node, best.at, 1)
	s.promise(c.job)
	return true
}

// since when a job waits, in s since 1970.
func (c *candidate) since(s *pass) int64 { return max(c.job.Submitted, s.from(c)) }

// waits counts a job that waits, for a reason.
func (s *pass) waits(c *candidate, reason string) {
	s.result.Waiting++
	s.result.Oldest = max(s.result.Oldest, s.now-min(s.now, c.since(s)))
	if s.result.Reasons == nil {
		s.result.Reasons = map[string]int{}
	}
	s.result.Reasons[reason]++
}
