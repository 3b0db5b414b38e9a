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
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"libhorus.org/kubernetes/advise"
	"libhorus.org/kubernetes/internal/webhook"
)

const (
	requestWithin  = 10 * time.Second // headers and body
	endpointsLearn = 5 * time.Second  // that this replica ends
	shutdownWithin = 10 * time.Second
	shortestLife   = 6 * time.Second // of a certificate: its times are whole seconds
)

type flags struct {
	kubeconfig, address, names, driver, classes, resource string
	certificates                                          webhook.Certificates
}

func main() {
	var f flags
	flag.StringVar(&f.kubeconfig, "kubeconfig", "", "file by which the API server is reached; in a pod none is needed")
	flag.StringVar(&f.address, "address", ":8443", "address of the HTTPS server")
	flag.StringVar(&f.names, "names", "", "DNS names and addresses by which the API server calls, with commas between")
	flag.StringVar(&f.certificates.Namespace, "namespace", "", "namespace of the Secret")
	flag.StringVar(&f.certificates.Secret, "secret", "", "Secret that keeps the certificates")
	flag.StringVar(&f.certificates.Webhook, "webhook", "", "MutatingWebhookConfiguration whose caBundle is kept")
	flag.DurationVar(&f.certificates.Lifetime, "certificate-lifetime", 90*24*time.Hour, "of a certificate; the next one is made when a third is left")
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
	c := &f.certificates
	for name, value := range map[string]string{"names": f.names, "namespace": c.Namespace, "secret": c.Secret, "webhook": c.Webhook} {
		if value == "" {
			return fmt.Errorf("--%s: expected a value, found none", name)
		}
	}
	if c.Lifetime < shortestLife {
		return fmt.Errorf("--certificate-lifetime: expected %v at least, found %v", shortestLife, c.Lifetime)
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "horus-advise"
	if c.Client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	others, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	c.Names = strings.Split(f.names, ",")
	settings := advise.Settings{Driver: f.driver, DeviceClasses: strings.Split(f.classes, ","), Resource: v1.ResourceName(f.resource)}
	watched, err := webhook.Watch(ctx, settings, c.Client, others)
	if err != nil {
		return err
	}
	go c.Run(ctx)
	webhook.Register()
	return serve(ctx, f.address, c, watched, &webhook.Handler{Settings: settings, Types: watched.Types, Profile: watched.Profile})
}

func serve(ctx context.Context, address string, c *webhook.Certificates, watched *webhook.Watched, handler http.Handler) error {
	var ending atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("POST /advise", handler)
	mux.Handle("GET /metrics", legacyregistry.Handler())
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ending.Load() || !watched.Synced() || !c.Ready() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{
		Addr: address, Handler: mux, ReadTimeout: requestWithin, WriteTimeout: requestWithin, IdleTimeout: 2 * time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.Get},
	}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ending.Store(true)
		time.Sleep(endpointsLearn)
		bounded, cancel := context.WithTimeout(context.Background(), shutdownWithin)
		defer cancel()
		ended <- server.Shutdown(bounded)
	}()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
