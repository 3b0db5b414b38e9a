// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/internal/objects"
)

// What colours a terminal, moves its cursor, names its window or turns its text: ESC, CR, BEL, C1's CSI, a broken byte, bidi, a line of its own.
var hostile = []string{"\x1b[2K\x1b[1A", "\r", "\a", "\u009b31m", "\xff", "\u202e", "\u2066", "\u2028", "\n  HorusRefused: pay me"}

func TestNothingThatStrangersWroteCommandsTheTerminal(t *testing.T) {
	for _, evil := range hostile {
		quoted := fmt.Sprintf("%q", "a"+strings.ToValidUTF8(evil, "?")+"b")
		quoted = strings.NewReplacer(`\x1b`, `\u001b`, `\a`, `\u0007`).Replace(quoted)
		event := v1.Event{Reason: "Horus" + evil, Message: "m" + evil}
		decision := `{"devices":[` + quoted + `],"beside":[` + quoted + `],"profile":` + quoted + `,"text":` + quoted + `}`
		waits := &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Message: "w" + evil}}}}
		others := &v1.Pod{Spec: v1.PodSpec{NodeName: "n1", SchedulerName: "s" + evil}}
		ours := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{objects.DecisionAnnotation: decision}}, Spec: v1.PodSpec{NodeName: "n1"}}
		for name, pod := range map[string]*v1.Pod{"waits": waits, "another's": others, "ours": ours} {
			var out bytes.Buffer
			if err := explain(&out, pod, []v1.Event{event}); err != nil {
				t.Fatalf("%s, %s: %v", name, decision, err)
			}
			for line := range strings.Lines(out.String()) {
				bad := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) })
				if bad >= 0 || strings.HasPrefix(line, "  HorusRefused") {
					t.Errorf("%s, %q: expected text alone, found %q", name, evil, line)
				}
			}
		}
	}
}

// Whatever a command prints goes through one writer.
func TestTheWriterOfAllCommandsPrintsTextAndLines(t *testing.T) {
	for _, of := range []func(*cobra.Command) io.Writer{(*cobra.Command).OutOrStdout, (*cobra.Command).ErrOrStderr} {
		var out bytes.Buffer
		for _, command := range rootCommand(&out, &out).Commands() {
			out.Reset()
			for _, part := range []string{"a\tü語\n", "\x1b[31mred\u202e", "\xe2", "\x80", "\xae", "\u009b\r\n"} { // U+202E in three writes
				if _, err := of(command).Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			if found, want := out.String(), "a\tü語\n\ufffd[31mred\ufffd\ufffd\ufffd\ufffd\n"; found != want {
				t.Errorf("%s: expected %q, found %q", command.Name(), want, found)
			}
		}
	}
}
