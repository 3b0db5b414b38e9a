// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Setting is one field of scontrol update.
type Setting struct{ Field, Value string }

// Step of a change: the controller makes all of it or nothing.
type Step []Setting

// Change of a waiting job, step by step; one that is refused ends it.
type Change struct {
	Job   uint64
	Steps []Step
}

// word is a setting that scontrol takes as one word: it knows quotes around a value, and nothing that would escape one. It
// keeps the quotes as part of the value.
func (s Setting) word() string {
	value := strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\'':
			return '`'
		case r < ' ' || r == 0x7f:
			return ' '
		}
		return r
	}, s.Value)
	if strings.Contains(value, " ") {
		value = `"` + value + `"`
	}
	return s.Field + "=" + value
}

func (s Step) line(job uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "update JobId=%d", job)
	for _, one := range s {
		b.WriteString(" " + one.word())
	}
	return b.String()
}

// mark stands after each step in what scontrol is told; it names what it does not know on the stream of errors.
const mark = "~step"

// teller is a scontrol that reads commands. It is in a group of its own, and ends at the end of its input: who kills the
// daemon lets it end the step that it is at, and no other.
type teller struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	heard *bufio.Scanner
}

func newTeller(ctx context.Context) (*teller, error) {
	t := &teller{cmd: exec.CommandContext(ctx, "scontrol")}
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	said, err := t.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	t.heard = bufio.NewScanner(said)
	return t, t.cmd.Start()
}

// say one step. The first error is Slurm's answer, the second means that scontrol is gone.
func (t *teller) say(job uint64, step Step) (refused, gone error) {
	if _, err := fmt.Fprintf(t.in, "%s\n%s\n", step.line(job), mark); err != nil {
		return nil, fmt.Errorf("scontrol: %w", err)
	}
	var heard []string
	for t.heard.Scan() {
		text := strings.TrimSpace(t.heard.Text())
		if strings.HasSuffix(text, "invalid keyword: "+mark) {
			if len(heard) > 0 {
				return fmt.Errorf("job %d: %s", job, strings.Join(heard, "; ")), nil
			}
			return nil, nil
		}
		if text != "" {
			heard = append(heard, text)
		}
	}
	return nil, fmt.Errorf("scontrol ended: %.300s", strings.Join(heard, "; "))
}

// slow is a step in whose time slurmctld may have been started anew.
const slow = 100 * time.Millisecond

// Tell makes changes, in order, and returns what each was answered: nil where all of it was made. After `atMost` it begins no
// more of them, so that there are fewer answers than changes. Nor does it tell another controller than that of `boot`, as Config
// told it before what the changes rest on was read ("" = any): one that was killed has forgotten some seconds.
func (c Client) Tell(ctx context.Context, changes []Change, atMost time.Duration, boot string) ([]error, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	same := func() error {
		if boot == "" {
			return nil
		}
		config, err := c.Config(ctx)
		if err == nil && config.Boot != boot {
			err = ErrAnother
		}
		return err
	}
	if err := same(); err != nil {
		return nil, err
	}
	t, err := newTeller(ctx)
	if err != nil {
		return nil, fmt.Errorf("scontrol: %w", err)
	}
	var answers []error
	for begin := time.Now(); len(answers) < len(changes) && (len(answers) == 0 || time.Since(begin) < atMost); {
		change := changes[len(answers)]
		var refused error
		for _, step := range change.Steps {
			begin := time.Now()
			var gone error
			refused, gone = t.say(change.Job, step)
			if gone == nil && (time.Since(begin) > slow || refused != nil) {
				gone = same()
			}
			if gone != nil {
				_ = t.in.Close()
				_ = t.cmd.Wait()
				return answers, gone
			}
			if refused != nil {
				break
			}
		}
		answers = append(answers, refused)
	}
	_ = t.in.Close()
	_ = t.cmd.Wait() // its status is that of the marks, which it does not know
	return answers, nil
}

// Retype is what makes a waiting job ask for `perNode` on each node, whatever it asks for now. `apart` says that what it asks
// for has to be taken away before, by a step of its own.
//
// Slurm 22.05 keeps a request in four places. What a job is told to ask for is added to what it asked for before, type by type,
// and a sum "with and without type identification" is refused. A request without types is taken away with the same step where
// it lies in another place than the new one, and apart where it lies in the same. A job that asks for nothing any more must not
// become eligible meanwhile: slurmctld 22.05.8 ends with a fault of memory. What has types keeps them for ever: another type
// would be one device more, and to take them away and state others ends slurmctld too. A request for gpu never becomes one
// for shard, nor the other way round.
//
// Slurm 24.11 puts the new request in the place of the old one, whatever that was (`replaces`): one step does.
func Retype(now Tres, perNode string, replaces bool) (apart bool, set []Setting) {
	for _, place := range []Setting{{"TresPerJob", now.PerJob}, {"TresPerSocket", now.PerSocket}, {"TresPerTask", now.PerTask}} {
		if place.Value != "" {
			set = append(set, Setting{place.Field, ""})
		}
	}
	apart = !replaces && now.PerNode != "" && !Typed(now.PerNode) && now.PerNode != perNode
	return apart, append(set, Setting{"TresPerNode", perNode})
}

// Typed says whether a request such as "gres:shard:a100_0:2" names types.
func Typed(request string) bool {
	all := GresOf(request)
	return len(all) > 0 && all[0].Type != ""
}

// replacing is the first version of which it was tried that a request takes the place of the one before.
var replacing = [2]int{24, 11}

var versioned = regexp.MustCompile(`([0-9]+)\.([0-9]+)\.[0-9]+`)

// Replaces says whether a request takes the place of the one before: see Retype. A controller is as new as its commands, or newer.
func (Client) Replaces(ctx context.Context) (bool, error) {
	out, err := output(ctx, command{name: "scontrol", args: []string{"--version"}})
	if err != nil {
		return false, err
	}
	return ReplacesOf(out)
}

// ErrAnother means that slurmctld was started anew: it may not know any more what changes rest on.
var ErrAnother = errors.New("slurmctld was started anew")

// Config of the controller.
type Config struct {
	Basic bool   // jobs start in the order of submission: PriorityType=priority/basic
	Boot  string // when it was started
}

var (
	basic  = regexp.MustCompile(`(?m)^PriorityType\s*=\s*priority/basic$`)
	booted = regexp.MustCompile(`(?m)^BOOT_TIME\s*=\s*(\S+)$`)
)

// Config asks for it.
func (Client) Config(ctx context.Context) (Config, error) {
	out, err := output(ctx, command{name: "scontrol", args: []string{"show", "config"}})
	if err != nil {
		return Config{}, err
	}
	config := Config{basic.MatchString(out), "unknown"}
	if m := booted.FindStringSubmatch(out); m != nil {
		config.Boot = m[1]
	}
	return config, nil
}

// ReplacesOf is Replaces of a version. Since that one Slurm also remembers that a GPU is shared once one of its jobs has ended.
func ReplacesOf(version string) (bool, error) {
	m := versioned.FindStringSubmatch(version)
	if m == nil {
		return false, fmt.Errorf("expected a version of Slurm such as 24.11.5, found %.80q", version)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return slices.Compare([]int{major, minor}, replacing[:]) >= 0, nil
}
