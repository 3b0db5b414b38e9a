// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"time"

	"libhorus.org/slurm/internal/smi"
)

func runExporter(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("horus-slurm exporter", flag.ContinueOnError)
	listen := flags.String("listen", ":9400", "`ADDRESS` of /metrics")
	program := flags.String("nvidia-smi", "nvidia-smi", "`PROGRAM` that is asked at each scrape")
	if err := parse(flags, args, 0); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", smi.Handler(*program))
	server := http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
