// SPDX-License-Identifier: Apache-2.0

// Command horus-observer learns from pods that run, and says which are better moved.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/feed"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/model"
	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/internal/observe"
	"libhorus.org/kubernetes/plugin"
	"libhorus.org/learn"
)

type options struct {
	observe.Options
	kubeconfig string
	config     string
	listen     string
	evict      bool
	perHour    float64
}

func main() {
	var o options
	klog.InitFlags(nil)
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; none = the pod's service account")
	flag.StringVar(&o.config, "config", "/etc/horus/scheduler.yaml", "the scheduler's configuration: what a GPU is, how it places, and where the model is kept (learned)")
	flag.StringVar(&o.listen, "listen", ":10260", "address of /metrics, /healthz")
	flag.DurationVar(&o.Every, "every", 15*time.Second, "between two looks at exporters and jobs")
	flag.DurationVar(&o.Shortest.Window, "window", time.Minute, "for how long a device is watched at a time, and a pod warms up before")
	flag.Float64Var(&o.Shortest.Steps, "steps", 10, "that each pod makes in a window")
	flag.DurationVar(&o.Commit, "commit", 10*time.Minute, "between two models")
	flag.Func("exporter", "NAMESPACE/LABELS:PORT of pods that export the use of GPUs, such as gpu-operator/app=nvidia-dcgm-exporter:9400; may be repeated", o.exporter)
	flag.BoolVar(&o.evict, "evict", false, "evict pods that are better moved, within their disruption budgets; else they are told")
	flag.Float64Var(&o.perHour, "evictions-per-hour", 6, "at most")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "horus-observer:", err)
		os.Exit(1)
	}
}

func (o *options) exporter(given string) error {
	namespace, rest, _ := strings.Cut(given, "/")
	at := strings.LastIndexByte(rest, ':')
	if namespace == "" || at <= 0 || at == len(rest)-1 {
		return fmt.Errorf("expected NAMESPACE/LABELS:PORT, found %q", given)
	}
	selector, err := labels.Parse(rest[:at])
	if err != nil {
		return err
	}
	o.Exporters = append(o.Exporters, observe.Exporter{Namespace: namespace, Labels: selector, Port: rest[at+1:]})
	return nil
}

func (o *options) run(ctx context.Context) error {
	if o.Every <= 0 || o.Shortest.Window < o.Every || o.Commit < o.Every || o.Shortest.Steps < 1 || o.perHour < 0 || len(o.Exporters) == 0 {
		return errors.New("expected -every > 0, -window and -commit at least as long, -steps of 1 or more, -evictions-per-hour of 0 or more and an -exporter")
	}
	text, err := os.ReadFile(o.config)
	if err != nil {
		return err
	}
	args, err := plugin.ArgsOf(text)
	if err != nil {
		return fmt.Errorf("%s: %w", o.config, err)
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(args.Learned)
	if name == "" {
		return fmt.Errorf("%s: learned: expected NAMESPACE/NAME of the model's ConfigMap, found none", o.config)
	}
	client, objectsClient, err := feed.Connect(o.kubeconfig)
	if err != nil {
		return err
	}
	observe.Register()
	go serve(o.listen)
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s_%d", host, os.Getpid())})
	if err != nil {
		return err
	}
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer cancel()
				failed = o.lead(ctx, args, model.Store{Client: client, Namespace: namespace, Name: name}, objectsClient)
			},
			OnStoppedLeading: func() {},
		},
	})
	return failed
}

// lead observes as long as it holds the lease.
func (o *options) lead(ctx context.Context, args plugin.Args, store model.Store, objectsClient dynamic.Interface) error {
	lib, err := library.Local(args.Placer())
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(store.Client, 0)
	pods := factory.Core().V1().Pods().Lister()
	claims := factory.Resource().V1().ResourceClaims().Lister()
	var profiles *feed.Profiles
	m := mirror.New(args.Settings(), objects.Lookups{
		Claim: func(namespace, name string) (*resourceapi.ResourceClaim, error) {
			return claims.ResourceClaims(namespace).Get(name)
		},
		Profile: func(namespace, name string) (objects.Profile, error) { return profiles.Get(namespace, name) },
		Pod: func(namespace, name string) *v1.Pod {
			found, _ := pods.Pods(namespace).Get(name) // with an error nil
			return found
		},
	}, lib)
	profiles, err = feed.FollowProfiles(ctx, objectsClient, func(profile *unstructured.Unstructured) {
		m.ProfileChanged(profile.GetNamespace(), profile.GetName())
	})
	if err != nil {
		return err
	}
	alone := map[learn.Kind]learn.Observed{}
	for _, profile := range profiles.All() {
		for _, seen := range objects.ObservedOf(profile.Object["status"]) {
			alone[learn.Kind{Owner: profile.GetNamespace(), Profile: profile.GetName(), GPUType: seen.GPUType}] = seen
		}
	}
	now, before, err := store.Load(ctx)
	if err != nil {
		klog.ErrorS(err, "Horus: the model is not read; it is learned from nothing")
		now, before = learn.Model{}, learn.Model{}
	}
	learner, err := learn.NewLearner(now, before, alone)
	if err != nil {
		return err
	}
	catalogue, err := horus.DefaultCatalogue()
	if err != nil {
		return err
	}
	if err := m.Learn(now.Observations); err != nil {
		return err
	}
	synced, err := feed.Follow(ctx, factory, m, feed.Pods{Set: func(*v1.Pod) {}, Gone: func(*v1.Pod) {}})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: store.Client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown()
	observer := observe.Observer{
		Options: o.Options, Mirror: m, Pods: pods, Dynamic: objectsClient, Store: store, Learner: learner, Catalogue: catalogue, Profiles: profiles.Object,
		Events: broadcaster.NewRecorder(scheme.Scheme, "horus-observer"), Evict: o.evict, Limiter: rate.NewLimiter(rate.Limit(o.perHour/time.Hour.Seconds()), 1),
	}
	observer.Run(ctx)
	return ctx.Err()
}

func serve(address string) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", legacyregistry.Handler())
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	klog.ErrorS(server.ListenAndServe(), "Horus: metrics are not served", "address", address)
}
