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
