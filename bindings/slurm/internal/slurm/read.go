// SPDX-License-Identifier: Apache-2.0

// Package slurm asks a Slurm controller and tells it, through its own commands: nothing of Slurm is linked. So the
// licence of Slurm (GPL-2.0-or-later) asks nothing of the programs that use this package.
package slurm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// number is an integer of Slurm's JSON: plain in 22.05, {"set":…, "infinite":…, "number":…} from 23.02 on. What is not
// set is 0.
type number int64

func (n *number) UnmarshalJSON(raw []byte) error {
	*n = 0
	var plain *int64
	if json.Unmarshal(raw, &plain) == nil {
		if plain != nil {
			*n = number(*plain)
		}
		return nil
	}
	var one struct {
		Set      bool    `json:"set"`
		Infinite bool    `json:"infinite"`
		Number   float64 `json:"number"`
	}
	if err := json.Unmarshal(raw, &one); err != nil {
		return fmt.Errorf("expected a number of Slurm, found %.40s", raw)
	}
	if one.Set && !one.Infinite {
		*n = number(one.Number)
	}
	return nil
}

// words is a text in 22.05 and a list of texts from 23.11 on.
type words []string

func (w *words) UnmarshalJSON(raw []byte) error {
	*w = nil
	var one *string
	if json.Unmarshal(raw, &one) == nil {
		if one != nil {
			*w = words{*one}
		}
		return nil
	}
	var all []string
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("expected a text or a list of texts, found %.40s", raw)
	}
	*w = all
	return nil
}

// Job is what placing needs to know of a job.
type Job struct {
	ID           uint64
	Array        bool // an array or one of its tasks
	Het          bool // a part of a heterogeneous job
	Name         string
	User         string
	Account      string
	Partition    string
	State        string // such as PENDING
	Reason       string
	Comment      string
	AdminComment string
	Priority     int64
	Submitted    int64 // s since 1970, as the next
	Eligible     int64
	Started      int64
	Ended        int64
	Dependency   string
	Features     string
	Required     string // host list
	Excluded     string // host list
	Hosts        string // host list of where it runs
	Promised     string // host list of where Slurm means to start it, at Started, while it waits; "" = it has not said
	NodeCount    int
	CPUs         int   // of all its nodes
	MemMiB       int64 // of all its nodes; 0 = not stated, so all memory of a node
	Reservation  string
	Licenses     string
	WholeNodes   bool // --exclusive
	Tres         Tres
	Gres         []string // of each node in the order of Hosts, as gres_detail tells it
	Held         []Held   // what it holds of each node; only of jobs that run
	TimeLimitMin int64    // 0 = none
	Tasks        int
	Restarts     int
	WorkDir      string
}

// Tres is what a job asks for, in the four places where Slurm keeps it.
type Tres struct{ PerJob, PerNode, PerSocket, PerTask string }

// Held of a node.
type Held struct {
	Node   string
	CPUs   int
	MemMiB int64
}

// Pending says whether the job waits; Running whether it holds devices.
func (j Job) Pending() bool { return j.State == "PENDING" }

// Running says whether the job holds what it was given: it runs, ends or is stopped.
func (j Job) Running() bool {
	return j.State == "RUNNING" || j.State == "SUSPENDED" || slices.Contains(states, j.State)
}

// states of a job that holds something, beside RUNNING and SUSPENDED: what happens to it.
var states = []string{"COMPLETING", "CONFIGURING", "STOPPED", "STAGE_OUT", "SIGNALING", "RESIZING"}

type rawJob struct {
	JobID      number `json:"job_id"`
	ArrayID    number `json:"array_job_id"`
	HetID      number `json:"het_job_id"`
	Name       string `json:"name"`
	User       string `json:"user_name"`
	Account    string `json:"account"`
	Partition  string `json:"partition"`
	State      words  `json:"job_state"`
	Reason     string `json:"state_reason"`
	Comment    text   `json:"comment"`
	Admin      text   `json:"admin_comment"`
	Priority   number `json:"priority"`
	Submitted  number `json:"submit_time"`
	Eligible   number `json:"eligible_time"`
	Started    number `json:"start_time"`
	Ended      number `json:"end_time"`
	Dependency string `json:"dependency"`
	Features   string `json:"features"`
	Required   string `json:"required_nodes"`
	Excluded   string `json:"excluded_nodes"`
	Hosts      string `json:"nodes"`
	NodeCount  number `json:"node_count"`
	CPUs       number `json:"cpus"`
	Reserved   string `json:"resv_name"`
	Licenses   string `json:"licenses"`
	Shared     words  `json:"shared"`
	PerJob     string `json:"tres_per_job"`
	PerNode    string `json:"tres_per_node"`
	PerSocket  string `json:"tres_per_socket"`
	PerTask    string `json:"tres_per_task"`
	Asked      string `json:"tres_req_str"`
	Gres       words  `json:"gres_detail"`
	TimeLimit  number `json:"time_limit"`
	Tasks      number `json:"tasks"`
	Restarts   number `json:"restart_cnt"`
	WorkDir    string `json:"current_working_directory"`
	Resources  *struct {
		Allocated json.RawMessage `json:"allocated_nodes"` // 22.05
		Nodes     json.RawMessage `json:"nodes"`           // 24.11
	} `json:"job_resources"`
}

// text is a comment, which 22.05 tells as one and later versions as a list of one.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	var all words
	err := all.UnmarshalJSON(raw)
	*t = text(strings.Join(all, " "))
	return err
}

func (r rawJob) job() Job {
	j := Job{
		ID: uint64(r.JobID), Array: r.ArrayID != 0, Het: r.HetID != 0, Name: r.Name, User: r.User, Account: r.Account,
		Partition: r.Partition, Reason: r.Reason, Comment: string(r.Comment), AdminComment: string(r.Admin),
		Priority: int64(r.Priority), Submitted: int64(r.Submitted), Eligible: int64(r.Eligible), Started: int64(r.Started),
		Ended: int64(r.Ended), Dependency: r.Dependency, Features: r.Features, Required: r.Required, Excluded: r.Excluded,
		Hosts: r.Hosts, NodeCount: max(1, int(r.NodeCount)), CPUs: int(r.CPUs), MemMiB: TresMiB(r.Asked),
		Reservation: r.Reserved, Licenses: r.Licenses, WholeNodes: slices.Contains(r.Shared, "none"),
		Tres: Tres{plain(r.PerJob), plain(r.PerNode), plain(r.PerSocket), plain(r.PerTask)}, Gres: r.Gres, TimeLimitMin: int64(r.TimeLimit),
		Tasks: max(1, int(r.Tasks)), Restarts: int(r.Restarts), WorkDir: r.WorkDir,
	}
	// A list has what a job is, then what happens to it: RUNNING, COMPLETING. One text is the latter where there is one.
	for i, state := range r.State {
		if i == 0 || slices.Contains(states, state) {
			j.State = state
		}
	}
	if r.Resources != nil && j.Running() {
		j.Held = heldOf(r.Resources.Allocated, r.Resources.Nodes)
	}
	return j
}

// heldOf reads what a job holds, as 22.05 or as 24.11 tells it. Of another shape nothing is read: the job's own figures are used.
func heldOf(allocated, nodes json.RawMessage) (out []Held) {
	var old []struct {
		Name    string `json:"nodename"`
		Memory  number `json:"memory_allocated"`
		Sockets map[string]struct {
			Cores map[string]json.RawMessage `json:"cores"`
		} `json:"sockets"`
	}
	_ = json.Unmarshal(allocated, &old)
	for _, n := range old {
		held := Held{Node: n.Name, MemMiB: int64(n.Memory)}
		for _, s := range n.Sockets {
			held.CPUs += len(s.Cores)
		}
		out = append(out, held)
	}
	var later struct {
		Nodes []struct {
			Name   string                     `json:"name"`
			CPUs   struct{ Count number }     `json:"cpus"`
			Memory struct{ Allocated number } `json:"memory"`
		} `json:"allocation"`
	}
	_ = json.Unmarshal(nodes, &later)
	for _, n := range later.Nodes {
		out = append(out, Held{Node: n.Name, CPUs: int(n.CPUs.Count), MemMiB: int64(n.Memory.Allocated)})
	}
	return out
}

// TresMiB is the memory of a list such as "cpu=1,mem=62.50G,node=1"; 0 where it names none.
func TresMiB(list string) int64 {
	for _, one := range strings.Split(list, ",") {
		amount, is := strings.CutPrefix(one, "mem=")
		if !is || amount == "" {
			continue
		}
		unit := map[byte]float64{'K': 1.0 / 1024, 'M': 1, 'G': 1024, 'T': 1 << 20, 'P': 1 << 30}[amount[len(amount)-1]]
		if unit != 0 {
			amount = amount[:len(amount)-1]
		} else {
			unit = 1
		}
		value, err := strconv.ParseFloat(amount, 64)
		if err != nil {
			return 0
		}
		return int64(value * unit)
	}
	return 0
}

// Node is what placing needs to know of a node.
type Node struct {
	Name       string
	Address    string // where it is reached
	CPUs       int
	MemMiB     int64
	Gres       string // as configured, such as "gpu:a100_0:1,shard:a100_0:8"
	Up         bool   // takes jobs
	Partitions []string
	Tiers      map[string]int // PriorityTier of each partition; nil = not told
	Features   []string
}

type rawNode struct {
	Name       string  `json:"name"`
	Address    string  `json:"address"`
	CPUs       number  `json:"cpus"`
	Memory     number  `json:"real_memory"`
	Gres       string  `json:"gres"`
	State      words   `json:"state"`
	Flags      words   `json:"state_flags"`
	Partitions words   `json:"partitions"`
	Features   listing `json:"active_features"`
}

// listing is "a,b" in 22.05 and a list later.
type listing []string

func (l *listing) UnmarshalJSON(raw []byte) error {
	var all words
	err := all.UnmarshalJSON(raw)
	*l = nil
	for _, one := range all {
		*l = append(*l, strings.FieldsFunc(one, func(r rune) bool { return r == ',' })...)
	}
	return err
}

func (r rawNode) node() Node {
	return Node{
		Name: r.Name, Address: cmp.Or(r.Address, r.Name), CPUs: int(r.CPUs), MemMiB: int64(r.Memory), Gres: r.Gres, Partitions: r.Partitions,
		Features: r.Features, Up: up(append(slices.Clone(r.State), r.Flags...)),
	}
}

// up says whether a node takes jobs, by the states that Slurm tells of it.
func up(states []string) bool {
	takes := false
	for _, state := range states {
		switch strings.ToUpper(state) {
		case "IDLE", "MIXED", "ALLOCATED", "COMPLETING", "PLANNED":
			takes = true
		case "DRAIN", "DOWN", "FAIL", "NOT_RESPONDING", "MAINTENANCE", "REBOOT_REQUESTED", "REBOOT_ISSUED", "POWERED_DOWN", "POWERING_DOWN", "INVALID_REG", "UNKNOWN", "ERROR", "FUTURE":
			return false
		}
	}
	return takes
}

// Client runs Slurm's commands. The zero value finds them by PATH.
type Client struct{}

// command of Slurm's, and what it is told.
type command struct {
	name      string
	args, env []string // env nil = ours
	in        string
	anyStatus bool // it ends as it likes
}

func output(ctx context.Context, c command) (string, error) {
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = strings.NewReader(c.in), &out, &said, c.env
	err := cmd.Run()
	if ended := new(exec.ExitError); c.anyStatus && errors.As(err, &ended) && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %.300s", c.name, strings.Join(c.args, " "), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// Jobs that the controller knows, of all partitions, those that ended lately too. A Reader costs a tenth.
func (Client) Jobs(ctx context.Context) ([]Job, error) {
	out, err := output(ctx, command{name: "squeue", args: []string{"--json", "--all", "--states=all"}, env: quiet()})
	if err != nil {
		return nil, err
	}
	return ParseJobs([]byte(out))
}

// ParseJobs reads what squeue --json prints.
func ParseJobs(printed []byte) ([]Job, error) {
	var list struct {
		Jobs   []rawJob          `json:"jobs"`
		Errors []json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(printed, &list); err != nil {
		return nil, fmt.Errorf("squeue --json: %w", err)
	}
	if len(list.Errors) > 0 {
		return nil, fmt.Errorf("squeue --json: %.300s", list.Errors[0])
	}
	jobs := make([]Job, len(list.Jobs))
	for i, raw := range list.Jobs {
		jobs[i] = raw.job()
	}
	return jobs, nil
}

// Nodes of the cluster's partitions.
func (Client) Nodes(ctx context.Context) ([]Node, error) {
	format := "NodeList:0|,CPUs:0|,Memory:0|,StateComplete:0|,PartitionName:0|,Features_act:0|,Gres:0|,NodeAddr:0|,PriorityTier:0|"
	out, err := output(ctx, command{name: "sinfo", args: []string{"--noheader", "--all", "--Node", "--Format=" + format}, env: quiet()})
	if err != nil {
		return nil, err
	}
	return parseNodeList(out)
}

// parseNodeList reads a line for each node and partition. What is in it is an administrator's.
func parseNodeList(out string) ([]Node, error) {
	var nodes []Node
	at := map[string]int{}
	for line := range strings.Lines(out) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(words) != 10 {
			return nil, fmt.Errorf("sinfo -O: expected 9 fields, found %.200q", line)
		}
		i, known := at[words[0]]
		if !known {
			n := Node{Name: words[0], Up: up(strings.Split(words[3], "+")), Gres: none(words[6]), Address: cmp.Or(none(words[7]), words[0]), Tiers: map[string]int{}}
			var err1, err2 error
			n.CPUs, err1 = number1024(words[1])
			n.MemMiB, err2 = strconv.ParseInt(words[2], 10, 64)
			if err := cmp.Or(err1, err2); err != nil {
				return nil, fmt.Errorf("sinfo -O: node %s: %w", n.Name, err)
			}
			if features := none(words[5]); features != "" {
				n.Features = strings.Split(features, ",")
			}
			i, nodes = len(nodes), append(nodes, n)
			at[n.Name] = i
		}
		if partition := none(words[4]); partition != "" {
			nodes[i].Partitions = append(nodes[i].Partitions, partition)
			nodes[i].Tiers[partition], _ = strconv.Atoi(words[8])
		}
	}
	return nodes, nil
}

// ParseNodes reads what sinfo --json prints in 22.05, and scontrol show nodes --json later.
func ParseNodes(printed []byte) ([]Node, error) {
	var list struct {
		Nodes  []rawNode         `json:"nodes"`
		Errors []json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(printed, &list); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	if len(list.Errors) > 0 {
		return nil, fmt.Errorf("nodes: %.300s", list.Errors[0])
	}
	if list.Nodes == nil {
		return nil, errors.New("nodes: expected what sinfo --json prints in 22.05, and scontrol show nodes --json later, found no nodes in it")
	}
	nodes := make([]Node, len(list.Nodes))
	for i, raw := range list.Nodes {
		nodes[i] = raw.node()
	}
	return nodes, nil
}
