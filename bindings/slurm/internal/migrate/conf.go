// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"regexp"
	"strings"
)

// statement is a line of a configuration with those that a backslash continues. One that is not changed is written as it was.
type statement struct {
	at      int    // line of the file, from 1
	raw     string // as it was
	text    string // without its comment, on one line
	comment string // with the blanks before it
	changed bool
}

var (
	hash    = regexp.MustCompile(`^((?:\\.|[^#\\])*?)(\s*#.*)$`) // what a backslash precedes begins no comment
	pair    = regexp.MustCompile(`(?:^|\s)([A-Za-z0-9_.]+)\s*=\s*("[^"]*"|\S+)`)
	include = regexp.MustCompile(`(?i)^\s*include\s+\S`)
)

// parse a file. What it includes would have to be read, and written, too: so nothing may be.
func parse(file, text string) ([]*statement, error) {
	var out []*statement
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		s := &statement{at: i + 1, raw: lines[i]}
		s.text = s.raw
		for strings.HasSuffix(s.text, `\`) && i+1 < len(lines) {
			i++
			s.raw += "\n" + lines[i]
			s.text = strings.TrimSuffix(s.text, `\`) + " " + lines[i]
		}
		if m := hash.FindStringSubmatch(s.text); m != nil {
			s.text, s.comment = m[1], m[2]
		}
		if include.MatchString(s.text) {
			return nil, fmt.Errorf("%s:%d: expected all in this file, found %s: put its lines here", file, s.at, strings.TrimSpace(s.text))
		}
		out = append(out, s)
	}
	return out, nil
}

func (s *statement) String() string {
	if s.changed {
		return s.text + s.comment
	}
	return s.raw
}

// find the value of a key; -1 where it is not there.
func (s *statement) find(key string) (from, to int) {
	for _, m := range pair.FindAllStringSubmatchIndex(s.text, -1) {
		if strings.EqualFold(s.text[m[2]:m[3]], key) {
			return m[4], m[5]
		}
	}
	return -1, -1
}

// get the value of a key, without quotes; "" where it is not there.
func (s *statement) get(key string) string {
	if from, to := s.find(key); from >= 0 {
		return strings.Trim(s.text[from:to], `"`)
	}
	return ""
}

// set the value of a key. One that is not there is put at the end, but NodeName, which has to be the first.
func (s *statement) set(key, value string) {
	s.changed = true
	from, to := s.find(key)
	switch {
	case from >= 0:
		if s.text[from] == '"' {
			value = `"` + value + `"`
		}
		s.text = s.text[:from] + value + s.text[to:]
	case key == "NodeName":
		s.text = key + "=" + value + " " + strings.TrimSpace(s.text)
	default:
		s.text = strings.TrimRight(s.text, " \t\r") + " " + key + "=" + value
	}
}

// drop a key and its value.
func (s *statement) drop(key string) {
	for _, m := range pair.FindAllStringSubmatchIndex(s.text, -1) {
		if strings.EqualFold(s.text[m[2]:m[3]], key) {
			s.text, s.changed = s.text[:m[0]]+s.text[m[1]:], true
			return
		}
	}
}

func join(all []*statement) string {
	lines := make([]string, len(all))
	for i, s := range all {
		lines[i] = s.String()
	}
	return strings.Join(lines, "\n")
}
