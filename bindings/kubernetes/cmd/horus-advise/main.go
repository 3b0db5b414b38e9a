// SPDX-License-Identifier: Apache-2.0

// Command horus-advise is a mutating admission webhook: it fills in what people guess, from the JobProfile that a pod names. See
// package advise.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"libhorus.org/kubernetes/advise"
	"libhorus.org/kubernetes/internal/feed"
	"libhorus.org/kubernetes/internal/webhook"
)

const within = 10 * time.Second // headers and body of a request, and the end

type flags struct{ kubeconfig, address, certificates, driver, classes, resource string }

func main() {
	var f flags
	flag.StringVar(&f.kubeconfig, "kubeconfig", "", "file by which the API server is reached; in a pod none is needed")
	flag.StringVar(&f.address, "address", ":8443", "address of the HTTPS server")
	flag.StringVar(&f.certificates, "certificates", "/etc/horus-advise", "folder with tls.crt and tls.key, as a Secret is mounted; what changes there is served")
	flag.StringVar(&f.driver, "driver", "gpu.nvidia.com", "DRA driver whose devices are GPUs")
	flag.StringVar(&f.classes, "device-classes", "gpu.nvidia.com,mig.nvidia.com", "device classes whose requests ask for them")
	flag.StringVar(&f.resource, "extended-resource", "nvidia.com/gpu", "whole GPUs of a device plugin")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, &f); err != nil {
		fmt.Fprintln(os.Stderr, "horus-advise:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f *flags) error {
	client, others, err := feed.Connect(f.kubeconfig)
	if err != nil {
		return err
	}
	settings := advise.Settings{Driver: f.driver, DeviceClasses: strings.Split(f.classes, ","), Resource: v1.ResourceName(f.resource)}
	handler, synced, err := webhook.Watch(ctx, settings, client, others)
	if err != nil {
		return err
	}
	webhook.Register()
	return f.serve(ctx, handler, synced)
}

// certificate is what is mounted now. Who changes the Secret, and when, is cert-manager's or the chart's matter.
func (f *flags) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(f.certificates, v1.TLSCertKey), filepath.Join(f.certificates, v1.TLSPrivateKeyKey))
	if err != nil {
		return nil, err
	}
	webhook.Expiry.Set(float64(pair.Leaf.NotAfter.Unix()))
	return &pair, nil
}

func (f *flags) serve(ctx context.Context, handler http.Handler, synced func() bool) error {
	mux := http.NewServeMux()
	mux.Handle("POST /advise", handler)
	mux.Handle("GET /metrics", legacyregistry.Handler())
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if synced() {
			fmt.Fprintln(w, "ok")
		} else {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{
		Addr: f.address, Handler: mux, ReadTimeout: within, WriteTimeout: within, IdleTimeout: 2 * time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: f.certificate},
	}
	ended := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		ended <- server.Shutdown(bounded)
	})
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
