// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"regexp"
	"strings"

	"libhorus.org/slurm/internal/slurm"
)

// What slurmd -G prints of a GPU, behind the name of the node that pdsh and clush put there, or that slurmd -N names.
var printed = regexp.MustCompile(`(?m)^(?:(\S+):\s+)?slurmd(?:-(\S+))?: Gres (Name=gpu .*)$`)

// environment that AutoDetect sets for jobs, and lines without it do not.
var environment = map[string]string{"nvml": "nvidia_gpu_env", "nvidia": "nvidia_gpu_env", "rsmi": "amd_gpu_env", "oneapi": "intel_gpu_env"}

// found are the GPUs of nodes with AutoDetect, which is turned off: it would not know the new types.
func (c *cluster) found(devices []*statement, text string) ([]*gpuLine, error) {
	printedBy, nodes := map[string]string{}, map[string][]string{} // what a node printed; nodes that printed the same
	for _, m := range printed.FindAllStringSubmatch(text, -1) {
		printedBy[m[1]+m[2]] += m[3] + "\n"
	}
	by, err := detects(devices)
	if err != nil {
		return nil, err
	}
	var order []string
	for _, name := range c.names {
		d := by[name]
		if d.how == "" {
			d = by[""]
		}
		if d.how == "" || d.how == "off" {
			continue
		}
		if printedBy[name] == "" {
			return nil, fmt.Errorf("gres.conf:%d: expected a line with File= for each kind of GPU, found AutoDetect=%s. Give what it finds by --found FILE, of "+
				`pdsh -w NODES "slurmd -G 2>&1" >FILE (there is none of %s)`, d.at, d.how, name)
		}
		what := d.how + "\n" + strings.TrimSpace(printedBy[name])
		if nodes[what] == nil {
			order = append(order, what)
		}
		nodes[what] = append(nodes[what], name)
	}
	var out []*gpuLine
	for _, what := range order {
		lines := strings.Split(what, "\n")
		for _, line := range lines[1:] {
			told, s := &statement{text: line}, &statement{text: "Name=gpu"}
			s.set("NodeName", strings.Join(nodes[what], ","))
			for _, key := range []string{"Type", "File", "MultipleFiles", "Count", "Cores", "Links"} {
				if value := told.get(key); value != "" && value != "(null)" {
					s.set(key, value)
				}
			}
			if flag := environment[lines[0]]; flag != "" {
				s.set("Flags", flag)
			}
			l, err := c.gpuLine(s, nil)
			if err != nil {
				return nil, fmt.Errorf("--found: node %s: %w", nodes[what][0], err)
			}
			l.found = true
			out = append(out, l)
		}
	}
	return out, nil
}

// detect is how GPUs of nodes are detected, and the line that says so.
type detect struct {
	how string
	at  int
}

// detects of nodes, and of "", which stands for all others. It turns them off.
func detects(devices []*statement) (map[string]detect, error) {
	by := map[string]detect{}
	for _, s := range devices {
		how := strings.ToLower(s.get("AutoDetect"))
		if how == "" {
			continue
		}
		names, err := slurm.Hosts(s.get("NodeName"))
		if err != nil {
			return nil, fmt.Errorf("gres.conf:%d: %w", s.at, err)
		}
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			by[name] = detect{how, s.at}
		}
		s.set("AutoDetect", "off")
	}
	return by, nil
}
