// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader reads the jobs that wait or run, again and again, for a tenth of what squeue --json costs: squeue prints the fields that
// are needed, and scontrol tells what a job holds, once each time that it starts.
//
// Names and comments are their users', and may hold any byte. So each field ends with a text that nobody else knows: it is made
// up anew by each process, and handed over where other users cannot see it.
type Reader struct {
	end      string // of each field
	listed   []listed
	runs     map[uint64]holding
	excluded map[uint64]string // of jobs that wait: squeue of 22.05 tells it in another form of output only
	asked    time.Time         // when excluded was
	Wrong    string            // why the last picture was read from JSON; "" = it was not
}

// listed is a job as squeue tells it, and what is needed to know it again in what scontrol tells.
type listed struct {
	Job
	shown   string // number that scontrol tells it alone by: 9_3 of an array
	account string // as it stands there
	from    string // host of its sbatch
}

// holding is what a job holds while it runs.
type holding struct {
	key  string
	gres []string
	held []Held
}

// holdsSince is a text that changes when a job holds something else.
func (l listed) holdsSince() string {
	return fmt.Sprint(l.Started, " ", l.Restarts, " ", l.Hosts, " ", l.CPUs, " ", l.MemMiB)
}

// stale are excluded nodes that are so old. A job that is placed on a node that it excludes since is placed anew.
const stale = 15 * time.Second

// tries at a picture of which no part changed while it was read.
const tries = 3

var errMoved = errors.New("jobs started or ended while they were read")

// random text of so many bytes, twice as long.
func random(bytes int) string {
	raw := make([]byte, bytes)
	_, _ = rand.Read(raw)
	return hex.EncodeToString(raw)
}

// field of squeue -O, and where its value goes.
type field struct {
	name string
	take func(l *listed, value string) error
}

// none are what Slurm prints for nothing.
func none(value string) string {
	if value == "(null)" || value == "N/A" {
		return ""
	}
	return value
}

func said(into func(l *listed) *string) func(*listed, string) error {
	return func(l *listed, value string) error { *into(l) = none(value); return nil }
}

// seconds since 1970, as SLURM_TIME_FORMAT=%s makes them.
func seconds(into func(l *listed) *int64) func(*listed, string) error {
	return func(l *listed, value string) (err error) {
		if value = none(value); value != "" && value != "Unknown" && value != "None" {
			*into(l), err = strconv.ParseInt(value, 10, 64)
		}
		return err
	}
}

// count is "3", "1K" for 1,024, and "2-4" where a job leaves it open.
func count(into func(l *listed) *int) func(*listed, string) error {
	return func(l *listed, value string) (err error) { *into(l), err = number1024(value); return err }
}

func number1024(value string) (int, error) {
	value, _, _ = strings.Cut(value, "-")
	unit := 1.0
	for i, letter := range []string{"K", "M"} {
		if short, is := strings.CutSuffix(value, letter); is {
			value, unit = short, float64(int(1024)<<(10*i))
		}
	}
	number, err := strconv.ParseFloat(value, 64)
	return int(number * unit), err
}

// minutes of "2-03:04:05", "03:04:05" or "04:05", rounded up; 0 = no limit.
func minutes(value string) (int64, error) {
	if value = none(value); value == "" || value == "UNLIMITED" || value == "NOT_SET" || value == "Partition_Limit" {
		return 0, nil
	}
	days, clock, is := strings.Cut(value, "-")
	if !is {
		days, clock = "0", value
	}
	seconds, err := strconv.ParseInt(days, 10, 64)
	seconds *= 24
	parts := strings.Split(clock, ":")
	for i, part := range append(make([]string, max(0, 3-len(parts))), parts...) {
		number, wrong := int64(0), error(nil)
		if part != "" {
			number, wrong = strconv.ParseInt(part, 10, 64)
		}
		err = cmp.Or(err, wrong)
		if i == 0 {
			seconds += number
		} else {
			seconds = seconds*60 + number
		}
	}
	if err == nil && len(parts) > 3 {
		err = fmt.Errorf("expected days-hours:minutes:seconds, found %.40q", value)
	}
	return (seconds + 59) / 60, err
}

func request(into func(l *listed) *string) func(*listed, string) error {
	return func(l *listed, value string) error { *into(l) = plain(none(value)); return nil }
}

var fields = []field{
	{"JobID", func(l *listed, v string) (err error) { l.ID, err = strconv.ParseUint(v, 10, 64); return err }},
	{"JobArrayID", func(l *listed, v string) error { l.shown, l.Array = v, strings.Contains(v, "_"); return nil }},
	{"HetJobID", func(l *listed, v string) error { l.Het = none(v) != ""; return nil }},
	{"Name", func(l *listed, v string) error { l.Name = v; return nil }},
	{"UserName", said(func(l *listed) *string { return &l.User })},
	{"Account", func(l *listed, v string) error { l.Account, l.account = none(v), v; return nil }},
	{"Partition", said(func(l *listed) *string { return &l.Partition })},
	{"State", said(func(l *listed) *string { return &l.State })},
	{"Reason", said(func(l *listed) *string { return &l.Reason })},
	{"Comment", said(func(l *listed) *string { return &l.Comment })},
	{"admin_comment", said(func(l *listed) *string { return &l.AdminComment })},
	{"PriorityLong", func(l *listed, v string) (err error) { l.Priority, err = strconv.ParseInt(v, 10, 64); return err }},
	{"SubmitTime", seconds(func(l *listed) *int64 { return &l.Submitted })},
	{"EligibleTime", seconds(func(l *listed) *int64 { return &l.Eligible })},
	{"StartTime", seconds(func(l *listed) *int64 { return &l.Started })},
	{"Dependency", said(func(l *listed) *string { return &l.Dependency })},
	{"Feature", said(func(l *listed) *string { return &l.Features })},
	{"ReqNodes", said(func(l *listed) *string { return &l.Required })},
	{"NodeList", said(func(l *listed) *string { return &l.Hosts })},
	{"SchedNodes", said(func(l *listed) *string { return &l.Promised })},
	{"TimeLimit", func(l *listed, v string) (err error) { l.TimeLimitMin, err = minutes(v); return err }},
	{"NumNodes", count(func(l *listed) *int { return &l.NodeCount })},
	{"NumCPUs", count(func(l *listed) *int { return &l.CPUs })},
	{"tres", func(l *listed, v string) error { l.MemMiB = TresMiB(v); return nil }},
	{"Reservation", said(func(l *listed) *string { return &l.Reservation })},
	{"Licenses", said(func(l *listed) *string { return &l.Licenses })},
	{"OverSubscribe", func(l *listed, v string) error { l.WholeNodes = v == "NO"; return nil }},
	{"tres-per-job", request(func(l *listed) *string { return &l.Tres.PerJob })},
	{"tres-per-node", request(func(l *listed) *string { return &l.Tres.PerNode })},
	{"tres-per-socket", request(func(l *listed) *string { return &l.Tres.PerSocket })},
	{"tres-per-task", request(func(l *listed) *string { return &l.Tres.PerTask })},
	{"NumTasks", count(func(l *listed) *int { return &l.Tasks })},
	{"RestartCnt", count(func(l *listed) *int { return &l.Restarts })},
	{"WorkDir", said(func(l *listed) *string { return &l.WorkDir })},
	{"AllocNodes", func(l *listed, v string) error { l.from = v; return nil }},
}

// quiet is the environment of commands whose output is read: nothing that changes it but what is told.
func quiet(more ...string) []string {
	out := slices.DeleteFunc(os.Environ(), func(one string) bool {
		return strings.HasPrefix(one, "SQUEUE_") || strings.HasPrefix(one, "SINFO_") || strings.HasPrefix(one, "SCONTROL_") || strings.HasPrefix(one, "SLURM_TIME_FORMAT=")
	})
	return append(append(out, "SLURM_TIME_FORMAT=%s"), more...)
}

// Look lists the jobs that wait or run. What it returns changes whenever one of them does.
func (r *Reader) Look(ctx context.Context) (mark string, err error) {
	if r.end == "" {
		r.end = "|" + random(6)
	}
	var format []string
	for _, one := range fields {
		format = append(format, one.name+":0"+r.end)
	}
	out, err := output(ctx, command{
		name: "squeue", args: []string{"--local", "--noheader", "--all", "--states=PENDING,RUNNING,SUSPENDED," + strings.Join(states, ",")}, env: quiet("SQUEUE_FORMAT2=" + strings.Join(format, ",")),
	})
	if err != nil {
		return "", err
	}
	r.listed, err = parseList(out, r.end)
	if err != nil {
		r.listed, r.Wrong = nil, err.Error()
		return random(6), nil // Jobs reads it otherwise
	}
	r.Wrong = ""
	return out, nil
}

func parseList(out, end string) ([]listed, error) {
	var all []listed
	for rest := out; rest != ""; {
		var l listed
		for _, one := range fields {
			value, after, is := strings.Cut(rest, end)
			if !is {
				return nil, fmt.Errorf("squeue -O: expected %s:, found %.40q", one.name, rest)
			}
			if err := one.take(&l, value); err != nil {
				return nil, fmt.Errorf("squeue -O: job %d: %s: %w", l.ID, one.name, err)
			}
			rest = after
		}
		var is bool
		if rest, is = strings.CutPrefix(rest, "\n"); !is {
			return nil, fmt.Errorf("squeue -O: job %d: expected the end of a line, found %.40q", l.ID, rest)
		}
		l.NodeCount, l.Tasks = max(1, l.NodeCount), max(1, l.Tasks)
		if !l.Running() {
			l.Hosts = ""
		}
		all = append(all, l)
	}
	return all, nil
}

// Jobs are those of the last Look, with what they hold and exclude. Where some changed meanwhile, or anything does not read as
// expected, all are read again: they belong together.
func (r *Reader) Jobs(ctx context.Context) ([]Job, error) {
	for try := 0; r.Wrong == "" && try < tries; try++ {
		if try > 0 {
			if _, err := r.Look(ctx); err != nil {
				return nil, err
			}
			if r.Wrong != "" {
				break
			}
		}
		err := cmp.Or(r.exclude(ctx), r.hold(ctx))
		if err == nil {
			return r.whole(), nil
		}
		if !errors.Is(err, errMoved) {
			r.Wrong = err.Error()
		}
	}
	r.Wrong = cmp.Or(r.Wrong, errMoved.Error())
	jobs, err := Client{}.Jobs(ctx)
	return slices.DeleteFunc(jobs, func(j Job) bool { return !j.Pending() && !j.Running() }), err
}

// whole jobs: what was read of them put together.
func (r *Reader) whole() []Job {
	jobs := make([]Job, len(r.listed))
	seen := make(map[uint64]bool, len(jobs))
	for i, l := range r.listed {
		jobs[i], seen[l.ID] = l.Job, true
		if l.Pending() {
			jobs[i].Excluded = r.excluded[l.ID]
		} else {
			jobs[i].Gres, jobs[i].Held = r.runs[l.ID].gres, r.runs[l.ID].held
		}
	}
	maps.DeleteFunc(r.runs, func(id uint64, _ holding) bool { return !seen[id] })
	return jobs
}

// exclude asks which nodes waiting jobs exclude, if it is not known of all or long ago.
func (r *Reader) exclude(ctx context.Context) error {
	unknown := func(l listed) bool {
		_, is := r.excluded[l.ID]
		return l.Pending() && !is
	}
	if time.Since(r.asked) < stale && !slices.ContainsFunc(r.listed, unknown) {
		return nil
	}
	out, err := output(ctx, command{name: "squeue", args: []string{"--local", "--noheader", "--all", "--states=PENDING", "--format=%A %x"}, env: quiet()})
	if err != nil {
		return err
	}
	r.excluded, r.asked = map[uint64]string{}, time.Now()
	for line := range strings.Lines(out) {
		number, nodes, _ := strings.Cut(strings.TrimSpace(line), " ")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return fmt.Errorf("squeue: expected the number of a job and nodes, found %.40q", line)
		}
		r.excluded[id] = none(nodes)
	}
	if slices.ContainsFunc(r.listed, unknown) {
		return errMoved
	}
	return nil
}

// hold asks what those hold that started since.
func (r *Reader) hold(ctx context.Context) error {
	if r.runs == nil {
		r.runs = map[uint64]holding{}
	}
	var ask []listed
	for _, l := range r.listed {
		if l.Running() && r.runs[l.ID].key != l.holdsSince() {
			ask = append(ask, l)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	// What shows the name that nobody else knows ends a job's answer.
	var in strings.Builder
	after := func(i int) string { return fmt.Sprintf("h%sx%d", strings.TrimPrefix(r.end, "|"), i) }
	for i, l := range ask {
		fmt.Fprintf(&in, "show job %s\nshow hostnames %s\n", l.shown, after(i))
	}
	// Its status is that of a job that is gone. Without --local each job is asked for in two calls, the first for a federation.
	out, err := output(ctx, command{name: "scontrol", args: []string{"--local", "--details"}, env: quiet(), in: in.String(), anyStatus: true})
	if err != nil {
		return err
	}
	for i, l := range ask {
		told, rest, is := strings.Cut(out, "\n"+after(i)+"\n")
		if !is {
			return fmt.Errorf("scontrol show hostnames: expected %s, found none", after(i))
		}
		out = rest
		one, err := parseRun(l, told)
		if err != nil {
			return err
		}
		r.runs[l.ID] = one
	}
	return nil
}

// parseRun reads what scontrol --details show job tells of a job that was listed.
func parseRun(l listed, told string) (holding, error) {
	one := holding{key: l.holdsSince()}
	rest, err := sameRun(l, told)
	if err != nil {
		return one, err
	}
	hosts, err := Hosts(l.Hosts)
	if err != nil {
		return one, err
	}
	lines, _, whole := strings.Cut(rest, "\n   MinCPUsNode=")
	if !whole {
		return one, fmt.Errorf("scontrol show job %s: expected MinCPUsNode=, found none", l.shown)
	}
	of := map[string][]string{} // words of a node
	for _, line := range strings.Split(lines, "\n") {
		found, is := strings.CutPrefix(line, "     Nodes=")
		words := strings.Fields(found)
		if !is || len(words) == 0 {
			continue
		}
		names, err := Hosts(words[0])
		if err != nil {
			return one, err
		}
		for _, name := range names {
			of[name] = words[1:]
		}
	}
	for _, host := range hosts {
		if len(of[host]) == 0 && l.State == "COMPLETING" {
			continue
		}
		gres, held, err := heldBy(host, of[host])
		if err != nil {
			return one, fmt.Errorf("scontrol show job %s: %w", l.shown, err)
		}
		one.gres, one.held = append(one.gres, gres), append(one.held, held)
	}
	return one, nil
}

// sameRun is the part of an answer that begins before the lines of nodes, if it tells of the run that was listed. Texts of users
// stand before it. They are known from the list, and passed over.
func sameRun(l listed, told string) (string, error) {
	at := strings.Index(told, fmt.Sprintf("JobId=%d ", l.ID))
	if at < 0 {
		return "", errMoved // it is gone
	}
	rest, between := told[at:], ""
	for _, known := range []struct{ key, value, then string }{
		{" JobName=", l.Name, "\n   "}, {" Account=", l.account, " QOS="}, {" AllocNode:Sid=", l.from, ":"},
	} {
		before, after, found := strings.Cut(rest, known.key)
		after, is := strings.CutPrefix(after, known.value+known.then)
		if !found || !is {
			return "", fmt.Errorf("scontrol show job %s: expected%s as squeue tells it, found %.80q", l.shown, known.key, before)
		}
		between, rest = between+before, after
	}
	for key, want := range map[string]string{" Restarts=": fmt.Sprint(l.Restarts, " "), " StartTime=": fmt.Sprint(l.Started, " ")} {
		if _, found, is := strings.Cut(between, key); !is || !strings.HasPrefix(found, want) {
			return "", errMoved
		}
	}
	if _, found, is := strings.Cut(rest, "\n   NodeList="); !is || !strings.HasPrefix(found, l.Hosts+"\n") {
		return "", errMoved
	}
	return rest, nil
}

// heldBy reads the words "CPU_IDs=0-3 Mem=100 GRES=gpu:a100_0:1(IDX:0)" of a node.
func heldBy(host string, words []string) (gres string, held Held, err error) {
	held.Node = host
	if len(words) != 3 {
		return "", held, fmt.Errorf("expected CPU_IDs, Mem and GRES of %s, found %q", host, words)
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "CPU_IDs":
			held.CPUs, err = idCount(value)
		case "Mem":
			held.MemMiB, err = strconv.ParseInt(value, 10, 64)
		case "GRES":
			gres = value
		}
		if err != nil {
			return "", held, fmt.Errorf("%s: %w", word, err)
		}
	}
	return gres, held, nil
}

// idCount is how many numbers a list such as "0-3,8" has.
func idCount(list string) (int, error) {
	numbers, err := Hosts("[" + list + "]")
	return len(numbers), err
}
