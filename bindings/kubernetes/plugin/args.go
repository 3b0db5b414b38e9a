// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/objects"
)

// Modes and failure policies.
const (
	Shadow = "shadow" // binds nothing; tells what others' choices cost beside ours
	Place  = "place"  // chooses node and device of the pods that name this scheduler

	Fail   = "Fail"
	Ignore = "Ignore"
)

// Args are the plugin's arguments in the scheduler's configuration.
type Args struct {
	Mode             string   `json:"mode"`             // "shadow" (the default) or "place"
	Driver           string   `json:"driver"`           // of GPUs' ResourceSlices; "gpu.nvidia.com"
	DeviceClasses    []string `json:"deviceClasses"`    // whose requests ask for GPUs or MIG instances; ["gpu.nvidia.com", "mig.nvidia.com"]
	ExtendedResource string   `json:"extendedResource"` // of whole GPUs; "nvidia.com/gpu"
	HAMi             HAMiArgs `json:"hami"`
	AllNodes         bool     `json:"allNodes"`      // pods may go to nodes that are not this scheduler's by their label
	Candidates       int      `json:"candidates"`    // nodes that the rest of the scheduler looks at; 32, -1 = all that fit
	MaxTenants       int32    `json:"maxTenants"`    // of a GPU; 3
	SharingQuota     float32  `json:"sharingQuota"`  // share of GPUs that may have several tenants; 0 = all, -1 = none
	SlowdownBound    float32  `json:"slowdownBound"` // of pods that state none; 0 = the library's

	// Of each namespace, the GPUs that its pods may share at a time: a pod beyond comes in alone, or where its namespace shares
	// already. "*" = every other namespace. Without an entry there is no limit.
	SharedGPUs map[string]int `json:"sharedGPUs"`
	// Choose: of the pods of one priority that wait and share, those go first whose work is worth most, and not the oldest. Nobody
	// is passed over who waits for Patience; 1h.
	Choose   bool            `json:"choose"`
	Patience metav1.Duration `json:"patience"`

	CallTimeout metav1.Duration `json:"callTimeout"` // of a call of the library; a longer one ends the process that it runs in; 30s

	Learned string `json:"learned"` // NAMESPACE/NAME of the ConfigMap with what the observer learned; "" = the library's own model

	// Isolated runs the library in a child process, for use inside a cluster's first scheduler: its crash is not the scheduler's.
	Isolated      bool   `json:"isolated"`
	FailurePolicy string `json:"failurePolicy"` // while it is gone, pods with GPUs wait (Fail) or are placed without it (Ignore)
}

// HAMiArgs are about nodes whose GPUs HAMi shares.
type HAMiArgs struct {
	Enabled    bool            `json:"enabled"`    // pods are placed there; shadow mode sees them always
	LockExpiry metav1.Duration `json:"lockExpiry"` // of a node's lock, HAMi's HAMI_NODELOCK_EXPIRE; 5m
}

const (
	defaultLockExpiry = 5 * time.Minute // HAMi's
	leastLockExpiry   = time.Second
	leastPatience     = time.Second

	defaultCallTimeout = 30 * time.Second
	leastCallTimeout   = time.Second

	defaultCandidates = 32
	mostCandidates    = 1 << 20
)

// parseArgs reads what stands in pluginConfig; fields that nobody knows are refused.
func parseArgs(raw runtime.Object) (Args, error) {
	args := Args{
		Mode: Shadow, Driver: "gpu.nvidia.com", DeviceClasses: []string{"gpu.nvidia.com", "mig.nvidia.com"}, ExtendedResource: "nvidia.com/gpu",
		Candidates: defaultCandidates, CallTimeout: metav1.Duration{Duration: defaultCallTimeout}, FailurePolicy: Fail,
		Choose: true, Patience: metav1.Duration{Duration: time.Hour},
		HAMi: HAMiArgs{LockExpiry: metav1.Duration{Duration: defaultLockExpiry}},
	}
	unknown, given := raw.(*runtime.Unknown)
	if given && len(unknown.Raw) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(unknown.Raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&args); err != nil {
			return args, fmt.Errorf("pluginConfig of %s: %w", Name, err)
		}
	}
	for _, rule := range []struct {
		broken          bool
		field, expected string
		found           any
	}{
		{args.Mode != Shadow && args.Mode != Place, "mode", Shadow + " or " + Place, args.Mode},
		{args.Driver == "", "driver", "the name of a DRA driver", "none"},
		{args.ExtendedResource == "", "extendedResource", "a resource's name", "none"},
		{args.Learned != "" && strings.Count(args.Learned, "/") != 1, "learned", "NAMESPACE/NAME", args.Learned},
		{args.Candidates == 0 || args.Candidates < -1 || args.Candidates > mostCandidates, "candidates", fmt.Sprintf("-1 (all) or 1 to %d", mostCandidates), args.Candidates},
		{args.FailurePolicy != Fail && args.FailurePolicy != Ignore, "failurePolicy", Fail + " or " + Ignore, args.FailurePolicy},
		{args.FailurePolicy == Ignore && !args.Isolated, "failurePolicy", "isolated beside Ignore, since the library ends the scheduler otherwise", "none"},
		{args.CallTimeout.Duration < leastCallTimeout, "callTimeout", leastCallTimeout.String() + " or more", args.CallTimeout.Duration},
		{args.Patience.Duration < leastPatience, "patience", leastPatience.String() + " or more", args.Patience.Duration},
		{args.HAMi.LockExpiry.Duration < leastLockExpiry, "hami.lockExpiry", leastLockExpiry.String() + " or more", args.HAMi.LockExpiry.Duration},
	} {
		if rule.broken {
			return args, fmt.Errorf("pluginConfig of %s: %s: expected %s, found %v", Name, rule.field, rule.expected, rule.found)
		}
	}
	for namespace, gpus := range args.SharedGPUs {
		if gpus < 0 {
			return args, fmt.Errorf("pluginConfig of %s: sharedGPUs of %s: expected 0 or more, found %d", Name, namespace, gpus)
		}
	}
	return args, nil
}

// quota of a namespace, if it has one.
func (a Args) quota(namespace string) (gpus int, limited bool) {
	if gpus, limited = a.SharedGPUs[namespace]; !limited {
		gpus, limited = a.SharedGPUs["*"]
	}
	return gpus, limited
}

func (a Args) Settings() objects.Settings {
	return objects.Settings{
		Driver: a.Driver, DeviceClasses: a.DeviceClasses, Resource: v1.ResourceName(a.ExtendedResource), HAMi: a.HAMi.Enabled || a.Mode == Shadow,
	}
}

func (a Args) Placer() library.Options {
	return library.Options{MemHeadroomMiB: -1, MaxTenants: a.MaxTenants, SharingQuota: a.SharingQuota, SlowdownBound: a.SlowdownBound}
}

// ArgsOf a scheduler's configuration file: those of the first profile that has the plugin.
func ArgsOf(configuration []byte) (Args, error) {
	var found kubeschedulerv1.KubeSchedulerConfiguration
	if err := yaml.Unmarshal(configuration, &found); err != nil {
		return Args{}, err
	}
	for _, profile := range found.Profiles {
		for _, config := range profile.PluginConfig {
			if config.Name == Name {
				return parseArgs(&runtime.Unknown{Raw: config.Args.Raw})
			}
		}
	}
	return Args{}, fmt.Errorf("profiles: expected one with pluginConfig of %s, found none", Name)
}
