// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Gres is an amount of one type of one generic resource: "shard:a100_0:8" or, of a job, "gpu:a100_0:1(IDX:0)".
type Gres struct {
	Name, Type string // Type "" = any
	Count      int
	Index      string // of what Slurm tells of a job: "0", "0,3", "" = none
}

// A type may be all digits where a count follows it: "gpu:2080:4".
var gresForm = regexp.MustCompile(`^(?:gres[:/])?(gpu|shard)(?:(?::([^:(=]+))?[:=]([0-9]+)|:([^:(=]*[^0-9:(=][^:(=]*))?(?:\((?:(?:S|IDX):)?([^)]*)\))?$`)

// positions of devices, "0,3". Of shards 24.11 tells how many each GPU of the node gave, "2/4,0/4,0/4,1/4".
func positions(told string) string {
	if !strings.Contains(told, "/") {
		return told
	}
	var out []string
	for i, one := range strings.Split(told, ",") {
		if !strings.HasPrefix(one, "0/") {
			out = append(out, strconv.Itoa(i))
		}
	}
	return strings.Join(out, ",")
}

// plain is a request as 22.05 writes it: 24.11 has "gres/gpu=1" for "gres:gpu:1".
func plain(request string) string {
	all := strings.Split(request, ",")
	for i, one := range all {
		if rest, is := strings.CutPrefix(one, "gres/"); is {
			all[i] = "gres:" + strings.Replace(rest, "=", ":", 1)
		}
	}
	return strings.Join(all, ",")
}

// GresOf a list; what is neither gpu nor shard is left out.
func GresOf(list string) []Gres {
	var out []Gres
	for _, one := range splitOutside(list) {
		m := gresForm.FindStringSubmatch(one)
		if m == nil {
			continue
		}
		g := Gres{Name: m[1], Type: m[2] + m[4], Count: 1, Index: positions(m[5])}
		if m[3] != "" {
			g.Count, _ = strconv.Atoi(m[3])
		}
		out = append(out, g)
	}
	return out
}

// splitOutside splits at commas that lie in no brackets.
func splitOutside(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		return r == ',' && depth == 0
	})
}

const mostHosts = 100_000 // of one list

// Hosts are the names of a host list such as "a[1-3,07],b"; what is empty between commas is none.
func Hosts(list string) ([]string, error) {
	var out []string
	for _, one := range splitOutside(list) {
		names, err := expand(one)
		if err != nil {
			return nil, fmt.Errorf("host list %.80q: %w", list, err)
		}
		if out = append(out, names...); len(out) > mostHosts {
			return nil, fmt.Errorf("host list %.80q: expected at most %d hosts", list, mostHosts)
		}
	}
	return out, nil
}

// expand one entry, its first bracket first.
func expand(one string) ([]string, error) {
	open := strings.IndexByte(one, '[')
	if open < 0 {
		return []string{one}, nil
	}
	shut := strings.IndexByte(one, ']')
	if shut < open {
		return nil, fmt.Errorf("expected brackets that close, found %q", one)
	}
	tails, err := expand(one[shut+1:])
	if err != nil {
		return nil, err
	}
	var out []string
	for _, part := range strings.Split(one[open+1:shut], ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || to < from || to-from > mostHosts {
			return nil, fmt.Errorf("expected a number or a range, found %q", part)
		}
		for n := from; n <= to; n++ {
			for _, tail := range tails {
				out = append(out, fmt.Sprintf("%s%0*d%s", one[:open], len(low), n, tail))
			}
		}
	}
	return out, nil
}
