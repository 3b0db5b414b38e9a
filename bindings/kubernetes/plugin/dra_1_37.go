// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"k8s.io/apimachinery/pkg/runtime"
	kubeschedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// dynamicResourcesArgs are upstream's defaults.
func dynamicResourcesArgs() (runtime.Object, error) {
	given := &kubeschedulerv1.DynamicResourcesArgs{}
	scheme.Scheme.Default(given)
	out := &config.DynamicResourcesArgs{}
	return out, scheme.Scheme.Convert(given, out, nil)
}
