// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

var precisions = map[string]horus.Precision{
	"fp32": horus.FP32, "tf32": horus.TF32, "amp-fp16": horus.AMPFP16, "amp-bf16": horus.AMPBF16, "fp16": horus.FP16, "bf16": horus.BF16,
}

var optimizers = map[string]horus.Optimizer{
	"sgd": horus.SGD, "momentum": horus.Momentum, "adam": horus.Adam, "adamw": horus.AdamW, "adafactor": horus.Adafactor,
	"adam-8bit": horus.Adam8Bit, "rmsprop": horus.RMSprop, "adagrad": horus.Adagrad,
}

type profileFlags struct {
	name, precision, optimizer string
	gpus                       []string
	batch                      int64
	inference                  bool
	dims                       map[string]int64
}

func profileCommand() *cobra.Command {
	var flags profileFlags
	cmd := &cobra.Command{
		Use: "profile MODEL.onnx", Args: cobra.ExactArgs(1),
		Short: "A JobProfile of a model, predicted from its graph; pipe it to kubectl apply -f -",
		RunE: func(cmd *cobra.Command, args []string) error {
			return profile(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.name, "name", "", "name of the JobProfile; the file's otherwise")
	cmd.Flags().StringSliceVar(&flags.gpus, "gpus", []string{"a100-80gb", "h100-sxm"}, "GPU types that the job may run on")
	cmd.Flags().Int64Var(&flags.batch, "batch", 0, "samples per GPU and step; 0 = as the file says")
	cmd.Flags().StringVar(&flags.precision, "precision", "fp32", "fp32, tf32, amp-fp16, amp-bf16, fp16 or bf16")
	cmd.Flags().StringVar(&flags.optimizer, "optimizer", "sgd", "of training: sgd, momentum, adam, adamw, adafactor, adam-8bit, rmsprop or adagrad")
	cmd.Flags().BoolVar(&flags.inference, "inference", false, "serve instead of train")
	cmd.Flags().StringToInt64Var(&flags.dims, "dim", nil, "named dimensions of the inputs, such as seq=512")
	return cmd
}

func profile(out, problems io.Writer, path string, flags profileFlags) error {
	run := horus.RunSpec{Batch: flags.batch}
	var known bool
	if run.Precision, known = precisions[flags.precision]; !known {
		return fmt.Errorf("--precision: expected fp32, tf32, amp-fp16, amp-bf16, fp16 or bf16, found %q", flags.precision)
	}
	if run.Optimizer, known = optimizers[flags.optimizer]; !known {
		return fmt.Errorf("--optimizer: expected sgd, momentum, adam, adamw, adafactor, adam-8bit, rmsprop or adagrad, found %q", flags.optimizer)
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
		rows[i] = map[string]any{
			"gpuType": flags.gpus[i], "gpuUtilPct": d.GPUUtilPct, "gpuUtilPctUpper": d.GPUUtilPctUpper,
			"memBwUtilPct": d.MemBWUtilPct, "memBwUtilPctUpper": d.MemBWUtilPctUpper, "memMiB": d.MemMiB,
			"memMiBUpper": d.MemMiBUpper, "stepTimeUs": d.StepTimeUs, "stepTimeUsUpper": d.StepTimeUsUpper,
			"gradientMiB": d.GradientMiB, "operatorUs": d.OperatorUs, "powerW": d.PowerW, "powerWUpper": d.PowerWUpper,
			"prediction": objects.PredictionOf(d),
		}
		if largest[i].Largest > 0 {
			rows[i]["largestBatch"] = largest[i].Largest
		}
	}
	name := flags.name
	if name == "" {
		name = objectName(filepath.Base(path))
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

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// objectName makes a file's name one that Kubernetes takes.
func objectName(file string) string {
	stem := strings.TrimSuffix(file, filepath.Ext(file))
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(stem), "-"), "-")
}
