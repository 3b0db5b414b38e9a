// SPDX-License-Identifier: Apache-2.0

// Command kubectl-horus is a plugin of kubectl: why a pod is where it is, and profiles of models.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
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
	"sigs.k8s.io/yaml"

	"libhorus.org/horus"
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

var precisions = map[string]horus.Precision{
	"fp32": horus.FP32, "tf32": horus.TF32, "amp-fp16": horus.AMPFP16, "amp-bf16": horus.AMPBF16, "fp16": horus.FP16, "bf16": horus.BF16,
}

var optimizers = map[string]horus.Optimizer{
	"sgd": horus.SGD, "momentum": horus.Momentum, "adam": horus.Adam, "adamw": horus.AdamW, "adafactor": horus.Adafactor,
	"adam-8bit": horus.Adam8Bit, "rmsprop": horus.RMSprop, "adagrad": horus.Adagrad, "adamw-bf16": horus.AdamWBf16,
}

type profileFlags struct {
	name, precision, optimizer string
	gpus                       []string
	batch                      int64
	inference                  bool
	dims                       map[string]int64
	framework                  string
	load                       horus.ServiceLoad
	firstTokenMs, tokenMs      float64
}

var engines = map[string]horus.Framework{"vllm": horus.VLLM, "sglang": horus.SGLang, "tensorrt-llm": horus.TensorRTLLM}

func profileCommand() *cobra.Command {
	var flags profileFlags
	cmd := &cobra.Command{
		Use: "profile MODEL", Args: cobra.ExactArgs(1),
		Short: "A JobProfile of a model, predicted from its graph; pipe it to kubectl apply -f -",
		Long: "A JobProfile of an ONNX file; or, with --requests-per-s or --users, of a served language model: a config.json, or a name\n" +
			"that `horus models` lists.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return profile(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.name, "name", "", "name of the JobProfile; the file's otherwise")
	cmd.Flags().StringSliceVar(&flags.gpus, "gpus", []string{"a100-80gb", "h100-sxm"}, "GPU types that the job may run on")
	cmd.Flags().Int64Var(&flags.batch, "batch", 0, "samples per GPU and step; 0 = as the file says")
	cmd.Flags().StringVar(&flags.precision, "precision", "fp32", "fp32, tf32, amp-fp16, amp-bf16, fp16 or bf16")
	cmd.Flags().StringVar(&flags.optimizer, "optimizer", "sgd", "of training: sgd, momentum, adam, adamw, adafactor, adam-8bit, rmsprop, adagrad or adamw-bf16")
	cmd.Flags().BoolVar(&flags.inference, "inference", false, "serve instead of train")
	cmd.Flags().Float64Var(&flags.load.RequestsPerS, "requests-per-s", 0, "of a language model: requests of independent users")
	cmd.Flags().Float64Var(&flags.load.Concurrency, "users", 0, "or users who ask again once they are answered")
	cmd.Flags().Float64Var(&flags.load.TokensIn, "tokens-in", 1024, "tokens of a prompt, mean")
	cmd.Flags().Float64Var(&flags.load.TokensOut, "tokens-out", 256, "tokens of an answer, mean")
	cmd.Flags().Float64Var(&flags.load.Longest, "longest", 0, "tokens of the longest request; 0 = four times the mean")
	cmd.Flags().Float64Var(&flags.firstTokenMs, "first-token-ms", 0, "promised time to the first token; 0 = none")
	cmd.Flags().Float64Var(&flags.tokenMs, "token-ms", 0, "promised time of each further token; 0 = none")
	cmd.Flags().StringVar(&flags.framework, "framework", "vllm", "engine of a language model: vllm, sglang or tensorrt-llm")
	cmd.Flags().StringToInt64Var(&flags.dims, "dim", nil, "named dimensions of the inputs, such as seq=512")
	return cmd
}

func profile(out, problems io.Writer, path string, flags profileFlags) error {
	if flags.load.RequestsPerS != 0 || flags.load.Concurrency != 0 {
		return serviceProfile(out, path, flags)
	}
	run := horus.RunSpec{Batch: flags.batch}
	var known bool
	if run.Precision, known = precisions[flags.precision]; !known {
		return fmt.Errorf("--precision: expected fp32, tf32, amp-fp16, amp-bf16, fp16 or bf16, found %q", flags.precision)
	}
	if run.Optimizer, known = optimizers[flags.optimizer]; !known {
		return fmt.Errorf("--optimizer: expected sgd, momentum, adam, adamw, adafactor, adam-8bit, rmsprop, adagrad or adamw-bf16, found %q", flags.optimizer)
	}
	kind := "training"
	if flags.inference {
		kind, run.Mode = "inference", horus.Inference
	}
	for name, size := range flags.dims {
		run.Dims = append(run.Dims, horus.Dim{Name: name, Size: size})
	}
	graph, err := horus.ReadGraph(path)
	if err != nil {
		return err
	}
	defer graph.Close()
	predictor, err := horus.NewPredictor()
	if err != nil {
		return err
	}
	defer predictor.Close()
	demands, err := predictor.Demand(nil, graph, run, flags.gpus...)
	if err != nil {
		return err
	}
	run.Batch = 0
	largest, err := predictor.LargestBatch(nil, graph, run, flags.gpus...)
	if err != nil { // such as a graph of a fixed batch
		fmt.Fprintf(problems, "# no largestBatch: %v\n", err)
		largest = make([]horus.Solution, len(demands))
	}
	rows := make([]map[string]any, len(demands))
	for i, d := range demands {
		if d.Flags&(horus.Outside|horus.Uncalibrated) != 0 {
			fmt.Fprintf(problems, "# %s: unlike what the prediction was made for: measure it before its bounds are relied on\n", flags.gpus[i])
		}
		rows[i] = demandRow(flags.gpus[i], d)
		if largest[i].Largest > 0 {
			rows[i]["largestBatch"] = largest[i].Largest
		}
	}
	return writeProfile(out, flags.name, path, kind, rows)
}

// serviceProfile is of a language model under a load.
func serviceProfile(out io.Writer, path string, flags profileFlags) error {
	run := horus.RunSpec{Mode: horus.Inference, Precision: horus.BF16}
	var known bool
	if run.Framework, known = engines[flags.framework]; !known {
		return fmt.Errorf("--framework: expected vllm, sglang or tensorrt-llm, found %q", flags.framework)
	}
	config := path
	if strings.HasSuffix(path, ".json") {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		config = string(text)
	}
	graph, err := horus.GraphFromConfig(config, horus.ConfigOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer graph.Close()
	predictor, err := horus.NewPredictor()
	if err != nil {
		return err
	}
	defer predictor.Close()
	flags.load.FirstTokenUs, flags.load.TokenUs = int64(flags.firstTokenMs*1e3), int64(flags.tokenMs*1e3)
	services, err := predictor.Serve(nil, graph, run, flags.load, flags.gpus...)
	if err != nil {
		return err
	}
	var rows []map[string]any
	for i, s := range services {
		if s.Verdict != horus.Served {
			continue
		}
		row := demandRow(flags.gpus[i], s.Demand)
		row["duty"], row["slowdownBound"], row["engineArguments"] = s.Demand.Duty, s.Demand.SlowdownBound, s.EngineArguments
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s: expected a GPU type of --gpus that serves the load, found none; horus inspect says why", path)
	}
	return writeProfile(out, flags.name, path, "inference", rows)
}

func demandRow(gpuType string, d horus.Demand) map[string]any {
	return map[string]any{
		"gpuType": gpuType, "gpuUtilPct": d.GPUUtilPct, "gpuUtilPctUpper": d.GPUUtilPctUpper,
		"memBwUtilPct": d.MemBWUtilPct, "memBwUtilPctUpper": d.MemBWUtilPctUpper, "memMiB": d.MemMiB,
		"memMiBUpper": d.MemMiBUpper, "stepTimeUs": d.StepTimeUs, "stepTimeUsUpper": d.StepTimeUsUpper,
		"gradientMiB": d.GradientMiB, "operatorUs": d.OperatorUs, "powerW": d.PowerW, "powerWUpper": d.PowerWUpper,
		"prediction": objects.PredictionOf(d),
	}
}

func writeProfile(out io.Writer, name, path, kind string, rows []map[string]any) error {
	if name == "" {
		stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(stem), "-"), "-")
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": objects.Group + "/" + objects.Version, "kind": "JobProfile", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"kind": kind, "demands": rows},
	})
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`) // of Kubernetes
