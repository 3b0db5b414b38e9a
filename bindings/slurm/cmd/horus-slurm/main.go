// SPDX-License-Identifier: Apache-2.0

// horus-slurm places the jobs of a Slurm cluster by libhorus. It drives squeue, sinfo and scontrol; it neither links
// libslurm nor is loaded into Slurm.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"libhorus.org/horus"
	"libhorus.org/slurm/internal/place"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/smi"
)

// command is one of ours; it reads its arguments and returns what went wrong.
type command struct {
	name, takes, does string
	run               func(ctx context.Context, args []string) error
}

var commands []command

func init() { // parse, which they call, reads the list
	commands = []command{
		{"run", "", "places the jobs of some partitions until it is stopped", runDaemon},
		{"aside", "", "leaves all jobs that wait to Slurm, as they were submitted; stop run first", runAside},
		{"migrate", "FOLDER", "gives each GPU of a folder's gres.conf and slurm.conf a type of its own; --undo", runMigrate},
		{"record", "FILE", "writes down jobs that end, and their devices, for shadow", runRecord},
		{"exporter", "", "tells the use of a node's GPUs by nvidia-smi, where no DCGM exporter does", runExporter},
		{"shadow", "FILE", "turns what Slurm wrote down about jobs into the files of horus shadow and horus potential", runShadow},
	}
}

// usage of all commands; each tells its options by --help.
func usage(out io.Writer) {
	fmt.Fprintln(out, "usage: horus-slurm COMMAND [OPTIONS]   (docs/slurm.md)")
	for _, one := range commands {
		fmt.Fprintf(out, "  %-8s %s\n", one.name, one.does)
	}
}

// errUsage is what was told already.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	switch name {
	case "-h", "--help":
		usage(os.Stdout)
		return
	case "--version":
		fmt.Println("horus-slurm", horus.Version())
		return
	}
	for _, one := range commands {
		if one.name != name {
			continue
		}
		err := one.run(ctx, os.Args[2:])
		switch {
		case errors.Is(err, flag.ErrHelp):
		case errors.Is(err, errUsage):
			os.Exit(2)
		case err != nil:
			fmt.Fprintf(os.Stderr, "horus-slurm %s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	usage(os.Stderr)
	os.Exit(2)
}

// parse reads options; others are told and end with errUsage.
func parse(flags *flag.FlagSet, args []string, operands int) error {
	flags.Usage = func() {
		for _, one := range commands {
			if flags.Name() == "horus-slurm "+one.name {
				fmt.Fprintf(flags.Output(), "usage: %s\n%s\n", strings.TrimSpace(flags.Name()+" [OPTIONS] "+one.takes), one.does)
			}
		}
		flags.PrintDefaults()
	}
	err := flags.Parse(args)
	if err == nil && flags.NArg() != operands {
		fmt.Fprintf(os.Stderr, "%s: expected %d arguments, found %d\n", flags.Name(), operands, flags.NArg())
		return errUsage
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return errUsage
	}
	return err
}

func runAside(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm aside", flag.ContinueOnError)
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	client := slurm.Client{}
	jobs, err := client.Jobs(ctx)
	if err != nil {
		return err
	}
	replaces, err := client.Replaces(ctx)
	if err != nil {
		return err
	}
	changes := place.Aside(jobs, time.Now().Unix(), replaces)
	answers, err := client.Tell(ctx, changes, time.Hour, "")
	if err != nil {
		return err
	}
	refused := 0
	for _, err := range answers {
		if err != nil {
			refused++
			fmt.Fprintln(os.Stderr, err)
		}
	}
	fmt.Printf("%d jobs left to Slurm\n", len(answers)-refused)
	if refused > 0 {
		return fmt.Errorf("%d jobs were refused: they start when their time has come", refused)
	}
	return nil
}

func runExporter(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm exporter", flag.ContinueOnError)
	listen := flags.String("listen", ":9400", "`ADDRESS` of /metrics")
	program := flags.String("nvidia-smi", "nvidia-smi", "`PROGRAM` that is asked at each scrape")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	return serve(ctx, *listen, smi.Handler(*program))
}

// serve /metrics until the context ends.
func serve(ctx context.Context, address string, metrics http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	server := http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
