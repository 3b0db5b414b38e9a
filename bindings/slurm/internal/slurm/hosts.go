// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

const mostHosts = 100_000 // of one list

// Hosts are the names of a host list such as "a[1-3,07],b".
func Hosts(list string) ([]string, error) {
	var out []string
	for rest := list; rest != ""; {
		var one string
		depth, end := 0, len(rest)
		for i, r := range rest {
			if r == '[' {
				depth++
			} else if r == ']' {
				depth--
			} else if r == ',' && depth == 0 {
				end = i
				break
			}
		}
		one, rest = rest[:end], strings.TrimPrefix(rest[end:], ",")
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
