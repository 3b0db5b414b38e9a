// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"libhorus.org/kubernetes/internal/model"
)

// tryModelAgain is when a model that was not taken is tried again: the child process may have been gone.
const tryModelAgain = time.Minute

// followModel takes over what the observer learned, each time that it learned more. A model that cannot be read leaves the one
// that counts.
func (pl *Horus) followModel(ctx context.Context) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(pl.args.Learned)
	if err != nil || name == "" {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(pl.handle.ClientSet(), tryModelAgain, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
	taken := "" // its version as the API server counts
	take := func(o any) {
		object := o.(*v1.ConfigMap)
		if object.ResourceVersion == taken {
			return
		}
		learned, err := model.Of(object)
		if err == nil {
			err = pl.mirror.Learn(learned.Observations)
		}
		if err != nil {
			modelsRefused.Inc()
			klog.ErrorS(err, "Horus: the model is not taken")
			return
		}
		taken = object.ResourceVersion
		modelVersion.Set(float64(learned.Version))
		klog.InfoS("Model", "version", learned.Version, "windows", learned.Windows)
	}
	if _, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: take, UpdateFunc: func(_, now any) { take(now) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return nil
}
