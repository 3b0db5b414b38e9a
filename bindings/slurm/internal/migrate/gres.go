// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/slurm/internal/slurm"
)

// gpuLine is a line of gres.conf with GPUs, or what was found in its place.
type gpuLine struct {
	s     *statement
	found bool     // it stands in no file
	nodes []string // with GPUs, for which it is
	part  bool     // they are not all that it names, or names none and they are not all
	files []string
	model string
}

// gpuLines of gres.conf. Those of nodes whose GPUs are detected are replaced by what was found there.
func gpuLines(devices []*statement, c *cluster, found string) ([]*gpuLine, error) {
	lines, err := c.found(devices, found)
	if err != nil {
		return nil, err
	}
	detected := map[string]bool{}
	for _, l := range lines {
		for _, name := range l.nodes {
			detected[name] = true
		}
	}
	for _, s := range devices {
		switch name := strings.ToLower(s.get("Name")); name {
		case "gpu":
			l, err := c.gpuLine(s, detected)
			if err != nil {
				return nil, fmt.Errorf("gres.conf:%d: %w", s.at, err)
			}
			lines = append(lines, l)
		case "shard", "mps":
			return nil, fmt.Errorf("gres.conf:%d: expected no %s yet, found some: take the lines away, they are written anew for each GPU", s.at, name)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("gres.conf: expected lines with Name=gpu, found none")
	}
	return lines, nil
}

// gpuLine reads a line; what nodes have that are detected it does not say.
func (c *cluster) gpuLine(s *statement, detected map[string]bool) (*gpuLine, error) {
	l := &gpuLine{s: s, model: s.get("Type"), nodes: c.names}
	if name := s.get("NodeName"); name != "" {
		var err error
		if l.nodes, err = slurm.Hosts(name); err != nil {
			return nil, err
		}
		for _, one := range l.nodes {
			if c.of[one] == nil {
				return nil, fmt.Errorf("expected nodes that have GPUs in slurm.conf, found %s", one)
			}
		}
	}
	all := len(l.nodes)
	l.nodes = slices.DeleteFunc(slices.Clone(l.nodes), func(name string) bool { return detected[name] })
	if l.part = len(l.nodes) < all; len(l.nodes) == 0 {
		return l, nil
	}
	if many := s.get("MultipleFiles"); many != "" {
		return nil, fmt.Errorf("expected one file for a GPU, found MultipleFiles=%s: instances of a GPU (MIG) are not shared", many)
	}
	file := s.get("File") + s.get("Files")
	var err error
	if l.files, err = slurm.Hosts(file); err != nil || len(l.files) == 0 { // /dev/nvidia[0-3] is written as host lists are
		return nil, fmt.Errorf("expected File=/dev/nvidia…, found %q", file)
	}
	if count := s.get("Count"); count != "" && count != strconv.Itoa(len(l.files)) {
		return nil, fmt.Errorf("expected as many files as Count=%s says, found %d", count, len(l.files))
	}
	return l, nil
}

// number is which GPU of its model on a node the first of a line is.
type number struct {
	model string
	first int
}

// compare both files for each node, and count the GPUs of each model.
func (c *cluster) compare(lines []*gpuLine) (map[*gpuLine]map[string]number, error) {
	have := map[string][]*gpuLine{}
	numbers := map[*gpuLine]map[string]number{}
	for _, l := range lines {
		numbers[l] = map[string]number{}
		for _, name := range l.nodes {
			have[name] = append(have[name], l)
		}
	}
	for _, line := range c.lines {
		var first map[string]int
		var order []string
		for _, name := range line.names {
			counts, models, err := line.compare(name, have[name], numbers)
			if err != nil {
				return nil, err
			}
			if first == nil {
				first, order = counts, models
			} else if !maps.Equal(first, counts) {
				return nil, fmt.Errorf("slurm.conf:%d: expected nodes that have the same GPUs, found %s on %s and %s on %s: give each kind a line",
					line.s.at, told(first), line.names[0], told(counts), name)
			}
		}
		line.want, line.order = first, order
	}
	return numbers, nil
}

// compare what a line of slurm.conf and some of gres.conf say of a node. Types may be missing in one of them.
func (l *nodeLine) compare(name string, lines []*gpuLine, numbers map[*gpuLine]map[string]number) (map[string]int, []string, error) {
	counts, order, seen := map[string]int{}, []string(nil), map[string]bool{}
	for _, one := range lines {
		for _, file := range one.files {
			if seen[file] {
				return nil, nil, fmt.Errorf("gres.conf:%d: expected each file once for a node, found %s twice for %s", one.s.at, file, name)
			}
			seen[file] = true
		}
		model := one.model
		if model == "" && len(l.order) == 1 {
			model = l.order[0]
		}
		if !slices.Contains(order, model) {
			order = append(order, model)
		}
		numbers[one][name] = number{model, counts[model]}
		counts[model] += len(one.files)
	}
	same := maps.Equal(counts, l.want)
	if same {
		order = l.order
	}
	if total, untyped := l.want[""]; untyped && len(l.want) == 1 {
		same = total == len(seen)
	}
	if !same {
		return nil, nil, fmt.Errorf("node %s: expected in gres.conf a file for each of the GPUs of slurm.conf:%d, %s, found %s", name, l.s.at, told(l.want), told(counts))
	}
	return counts, order, nil
}

// told are counts of models, "4 of a100, 2 without a type".
func told(counts map[string]int) string {
	var out []string
	for _, model := range slices.Sorted(maps.Keys(counts)) {
		of := "of " + model
		if model == "" {
			of = "without a type"
		}
		out = append(out, fmt.Sprintf("%d %s", counts[model], of))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// write each GPU by itself, and its shards; where a GPU has another number on some nodes, for those by themselves.
func (l *gpuLine) write(numbers map[*gpuLine]map[string]number, shards int) {
	var order []number
	groups := map[number][]string{}
	for _, name := range l.nodes {
		n := numbers[l][name]
		if groups[n] == nil {
			order = append(order, n)
		}
		groups[n] = append(groups[n], name)
	}
	var out []string
	for _, n := range order {
		for i, file := range l.files {
			one := &statement{text: strings.TrimSpace(l.s.text)}
			if l.part || len(order) > 1 {
				one.set("NodeName", strings.Join(groups[n], ","))
			}
			one.set("Type", typeOf(n.model, n.first+i))
			one.drop("Files")
			one.set("File", file)
			one.drop("Count")
			share := &statement{text: one.text}
			share.set("Name", "shard")
			share.drop("Links") // of GPUs alone
			share.set("Count", strconv.Itoa(shards))
			out = append(out, one.text, share.text)
		}
	}
	if len(out) > 0 {
		out[0] += l.s.comment
		l.s.comment = ""
	}
	l.s.text, l.s.changed = strings.Join(out, "\n"), true
}
