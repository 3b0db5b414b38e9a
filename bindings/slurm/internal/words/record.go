// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Verb is where a job stands with us.
type Verb string

// Verbs.
const (
	Waits  Verb = "waits"  // we look for a place for it
	Placed Verb = "placed" // it was given a place and may start there
	Left   Verb = "left"   // Slurm is to place it, and the sentence says why
)

// Record is an admin comment of ours: fields for us, then a sentence for people. All that we need to remember of a job is
// in it.
type Record struct {
	Verb  Verb
	From  int64  // of a job that waits: it may not start before, in s since 1970
	At    int64  // when it was placed, or its sentence was written
	Asked string // what it asked for when it was submitted, such as gres:shard:2; "-" = nothing
	Nodes string // host list that its user gave, which a place takes the room of
	On    string // of a job that is placed: its devices, "n1/a100_0+n1/a100_1"
	Mem   int64  // MiB of device memory that was counted for it on each
	Slow  string // slowdown that is expected, and its bound: "1.12..1.30"
	Grant        // what bin/horus-grant tells the job
	Text  string
}

// Grant is what a job that has a place is to keep to there, by itself.
type Grant struct {
	Engine   string // arguments of its engine, "--max-num-seqs 64": the library's, of which none has a + or a semicolon
	SMCapPct int64  // most of the SMs under MPS; 0 = all
	LimitMiB int64  // of device memory under MPS; 0 = none
}

// mostText of a sentence, in bytes: Slurm keeps admin comments in memory for every job.
const mostText = 480

func (r Record) String() string {
	var b strings.Builder
	b.WriteString(Prefix + string(r.Verb))
	put := func(key, value string) {
		if value != "" && value != "0" {
			b.WriteString(" " + key + "=" + value)
		}
	}
	put("from", strconv.FormatInt(r.From, 10))
	put("at", strconv.FormatInt(r.At, 10))
	put("asked", strings.ReplaceAll(r.Asked, ",", "+"))
	put("nodes", r.Nodes)
	put("on", r.On)
	put("mem_mib", strconv.FormatInt(r.Mem, 10))
	put("slowdown", r.Slow)
	put("engine", strings.ReplaceAll(r.Engine, " ", "+"))
	put("sm_cap_pct", strconv.FormatInt(r.SMCapPct, 10))
	put("limit_mib", strconv.FormatInt(r.LimitMiB, 10))
	text := r.Text
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	fmt.Fprintf(&b, "; %s", text)
	return b.String()
}

// RecordOf an admin comment; false where it is none of ours.
func RecordOf(admin string) (Record, bool) {
	rest, is := strings.CutPrefix(strings.Trim(admin, `"`), Prefix) // scontrol keeps the quotes
	if !is {
		return Record{}, false
	}
	head, text, _ := strings.Cut(rest, ";")
	fields := strings.Fields(head)
	if len(fields) == 0 {
		return Record{}, false
	}
	r := Record{Verb: Verb(fields[0]), Text: strings.TrimSpace(text)}
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "from":
			r.From, _ = strconv.ParseInt(value, 10, 64)
		case "at":
			r.At, _ = strconv.ParseInt(value, 10, 64)
		case "asked":
			r.Asked = strings.ReplaceAll(value, "+", ",")
		case "nodes":
			r.Nodes = value
		case "on":
			r.On = value
		case "mem_mib":
			r.Mem, _ = strconv.ParseInt(value, 10, 64)
		case "slowdown":
			r.Slow = value
		case "engine":
			r.Engine = strings.ReplaceAll(value, "+", " ")
		case "sm_cap_pct":
			r.SMCapPct, _ = strconv.ParseInt(value, 10, 64)
		case "limit_mib":
			r.LimitMiB, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return r, slices.Contains([]Verb{Waits, Placed, Left}, r.Verb)
}
