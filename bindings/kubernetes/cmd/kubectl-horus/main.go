// SPDX-License-Identifier: Apache-2.0

// Command kubectl-horus is a plugin of kubectl: why a pod is where it is, and profiles of models.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/plugin"
)

func main() {
	root := rootCommand(os.Stdout, os.Stderr)
	if err := root.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "kubectl horus:", err)
		os.Exit(1)
	}
}

func rootCommand(out, problems io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-horus", Short: "Placement of pods with GPUs", SilenceUsage: true, SilenceErrors: true,
	}
	root.SetOut(plain(out))
	root.SetErr(plain(problems))
	root.AddCommand(explainCommand(), profileCommand())
	return root
}

// oneLine leaves of a stranger's text what a terminal shows and does not obey: no control characters, those of C1 included, nothing
// that turns the direction of writing, and no line that looks like ours.
var oneLine = runes.Map(func(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
})

// plain is a writer of many lines for which the same holds, whatever stands in what is printed.
func plain(out io.Writer) io.Writer {
	breaks := runes.Predicate(func(r rune) bool { return r == '\n' || r == '\t' })
	return transform.NewWriter(out, runes.If(breaks, nil, oneLine))
}

func explainCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	cmd := &cobra.Command{
		Use: "explain POD", Short: "Why a pod is where it is, or why it waits", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
			if err != nil {
				return err
			}
			config, err := flags.ToRESTConfig()
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			pod, err := client.CoreV1().Pods(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				return err
			}
			events, err := client.CoreV1().Events(namespace).List(cmd.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
			if err != nil {
				return err
			}
			return explain(cmd.OutOrStdout(), pod, events.Items)
		},
	}
	flags.AddFlags(cmd.Flags())
	return cmd
}

// explain tells a decision in a user's words.
func explain(out io.Writer, pod *v1.Pod, events []v1.Event) error {
	defer tell(out, events)
	name := pod.Namespace + "/" + pod.Name
	if pod.Spec.NodeName == "" {
		fmt.Fprintf(out, "%s waits", name)
		for _, condition := range pod.Status.Conditions {
			if condition.Type == v1.PodScheduled && condition.Message != "" {
				fmt.Fprintf(out, ": %s", oneLine.String(condition.Message))
			}
		}
		fmt.Fprintln(out)
		return nil
	}
	told := pod.Annotations[objects.DecisionAnnotation]
	if told == "" {
		fmt.Fprintf(out, "%s is on %s, where %s put it. Horus had no say.\n", name, pod.Spec.NodeName, oneLine.String(pod.Spec.SchedulerName))
		return nil
	}
	var d plugin.Decision
	if err := json.Unmarshal([]byte(told), &d); err != nil {
		return fmt.Errorf("annotation %s of %s: %w", objects.DecisionAnnotation, name, err)
	}
	fmt.Fprintf(out, "%s is on %s", name, pod.Spec.NodeName)
	if len(d.Devices) > 0 {
		fmt.Fprintf(out, ", %s", oneLine.String(strings.Join(d.Devices, ", ")))
	}
	fmt.Fprintln(out)
	if len(d.Beside) == 0 {
		fmt.Fprintln(out, "  alone on its GPUs when it came")
	} else {
		fmt.Fprintf(out, "  beside %s: expected at %.2f times its step time alone, at most %.2f in 9 of 10 cases\n",
			oneLine.String(strings.Join(d.Beside, ", ")), d.Slowdown, d.SlowdownUpper)
	}
	if d.Trial {
		fmt.Fprintln(out, "  a trial: sharing pays by expectation, not yet by the bounds")
	}
	if d.EvidenceProfile == "" {
		fmt.Fprintln(out, "  nothing was known of the job but its requests")
	} else {
		fmt.Fprintf(out, "  by JobProfile %s\n", oneLine.String(d.EvidenceProfile))
	}
	fmt.Fprintf(out, "  in the library's words: %s\n", oneLine.String(d.Text))
	return nil
}

// tell the events that are ours, the oldest first.
func tell(out io.Writer, events []v1.Event) {
	slices.SortStableFunc(events, func(a, b v1.Event) int { return when(a).Compare(when(b)) })
	for _, event := range events {
		if strings.HasPrefix(event.Reason, "Horus") {
			fmt.Fprintf(out, "  %s: %s\n", oneLine.String(event.Reason), oneLine.String(event.Message))
		}
	}
}

func when(event v1.Event) time.Time {
	if event.EventTime.IsZero() {
		return event.LastTimestamp.Time
	}
	return event.EventTime.Time
}
