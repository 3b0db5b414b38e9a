// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
)

// Our own part of the scheduling of a pod: PreFilter's question and Reserve, the pods staying.
func BenchmarkPod(b *testing.B) {
	b.Run("inProcess", func(b *testing.B) { benchmarkPod(b, library.Local) })
	b.Run("isolated", func(b *testing.B) {
		benchmarkPod(b, func(options library.Options) (library.Library, error) {
			return library.Child(options, time.Minute)
		})
	})
}

// TestMain is the child process, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == library.Argument {
		if err := library.Serve(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func benchmarkPod(b *testing.B, start func(library.Options) (library.Library, error)) {
	for _, nodes := range []int{500, 5_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			args := Args{Driver: "gpu.nvidia.com", ExtendedResource: "nvidia.com/gpu", Candidates: defaultCandidates}
			lib, err := start(library.Options{})
			if err != nil {
				b.Fatal(err)
			}
			m := mirror.New(args.Settings(), objects.Lookups{
				Claim: func(string, string) (*resourceapi.ResourceClaim, error) { return nil, nil },
			}, lib)
			pl := &Horus{args: args, mirror: m}
			infos := make([]fwk.NodeInfo, nodes)
			for i := range infos {
				n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{"nvidia.com/gpu.product": "Tesla-T4"}}}
				n.Status.Allocatable = v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(8, resource.DecimalSI)}
				m.SetNode(n)
				info := framework.NewNodeInfo()
				info.SetNode(n)
				infos[i] = info
			}
			i := 0
			for b.Loop() {
				i++
				pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", UID: types.UID(fmt.Sprint(i))}}
				pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}
				view, err := m.Read(pod)
				if err != nil {
					b.Fatal(err)
				}
				c, err := pl.ask(view, mirror.Rules{}, pod, infos, "", false)
				if err != nil || len(c.kept) == 0 {
					b.Fatal(len(c.kept), err)
				}
				for name := range c.kept {
					if _, err := m.Reserve(pod, view, name, nil); err != nil {
						b.Fatal(err)
					}
					break
				}
			}
		})
	}
}
