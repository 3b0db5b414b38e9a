// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"libhorus.org/slurm/internal/shadow"
	"libhorus.org/slurm/internal/slurm"
)

func runShadow(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm shadow", flag.ContinueOnError)
	types := flags.String("types", "", "`GRES_TYPE=GPU,…`: which GPU of horus gpus a gres type is, where its name does not say")
	out := flags.String("out", "shadow", "`FOLDER` of the files")
	nodesFile := flags.String("nodes", "", "`FILE` of what sinfo --json printed; else sinfo is asked")
	wordsFile := flags.String("words", "", "`FILE` with a line \"NAME-PATTERN model=net.onnx,batch=64\" for each kind of job")
	if err := parse(flags, args, 1); err != nil {
		return err
	}
	options := shadow.Options{Out: *out}
	var err error
	if options.Types, err = pairs(*types); err != nil {
		return err
	}
	if *wordsFile != "" {
		file, err := os.Open(*wordsFile)
		if err != nil {
			return err
		}
		defer file.Close()
		if options.Words, err = shadow.ReadWords(file); err != nil {
			return fmt.Errorf("%s: %w", *wordsFile, err)
		}
	}
	var nodes []slurm.Node
	if *nodesFile != "" {
		text, err := os.ReadFile(*nodesFile)
		if err != nil {
			return err
		}
		nodes, err = slurm.ParseNodes(text)
		if err != nil {
			return fmt.Errorf("%s: %w", *nodesFile, err)
		}
	} else if nodes, err = (slurm.Client{}).Nodes(ctx); err != nil {
		return err
	}
	log, err := os.Open(flags.Arg(0))
	if err != nil {
		return err
	}
	defer log.Close()
	report, err := shadow.Convert(options, nodes, log, flags.Arg(0))
	for i, text := range report.Bad {
		if i == 10 {
			fmt.Fprintf(os.Stderr, "and %d lines more\n", len(report.Bad)-i)
			break
		}
		fmt.Fprintln(os.Stderr, "left out:", text)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d runs of jobs with GPUs, %d of which words say what they use; %d on nodes that are gone, %d lines left out\n", report.Jobs, report.Known, report.Left, len(report.Bad))
	if report.Known < report.Jobs {
		fmt.Println("the others are taken to use their GPUs whole, so nobody shares with them: say by --words what they use")
	}
	fmt.Printf("next: horus shadow --cluster %[1]s/cluster.yaml --jobs %[1]s/jobs.yaml --log %[1]s/decisions.csv\n", *out)
	fmt.Printf("      horus potential --cluster %[1]s/cluster.yaml --jobs %[1]s/jobs.yaml --interference horus\n", *out)
	return nil
}

func runRecord(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm record", flag.ContinueOnError)
	period := flags.Duration("period", 10*time.Second, "time between two looks at the controller; at most its MinJobAge")
	if err := parse(flags, args, 1); err != nil {
		return err
	}
	file, err := os.OpenFile(flags.Arg(0), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if at, err := file.Seek(0, io.SeekEnd); err != nil {
		return err
	} else if at == 0 {
		if _, err := file.WriteString(shadow.Header); err != nil {
			return err
		}
	}
	recorder := shadow.NewRecorder(file)
	for {
		jobs, err := (slurm.Client{}).Jobs(ctx)
		if err == nil {
			err = recorder.Look(jobs, time.Now().Unix())
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "horus-slurm record:", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(*period):
		}
	}
}
