// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// hamiNode has two T4 of that memory, which 3 pods each may share.
func (w world) hamiNode(name string, memMiB int) {
	w.settings.HAMi = true
	w.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		objects.HAMiRegisterAnnotation: fmt.Sprintf("GPU-%s-0,3,%d,100,NVIDIA-Tesla T4,0,true:GPU-%s-1,3,%d,100,NVIDIA-Tesla T4,0,true:", name, memMiB, name, memMiB),
	}}})
}

func hamiPod(name, node, resource, value, allocated string) *v1.Pod {
	p := podOn(name, node, 1)
	if resource != "" {
		p.Spec.Containers[0].Resources.Limits[v1.ResourceName("nvidia.com/"+resource)] = quantityOf(value)
	}
	if allocated != "" {
		p.Annotations = map[string]string{"hami.io/vgpu-devices-allocated": allocated}
	}
	return p
}

func quantityOf(value string) resource.Quantity { return resource.MustParse(value) }

func TestWhatHAMiGaveIsHeldWhoeverGaveIt(t *testing.T) {
	w := newWorld(t)
	w.hamiNode("n1", 15_000)
	w.SetPod(hamiPod("part", "n1", "gpumem", "5000", "GPU-n1-1,NVIDIA,5000,0:;"))
	w.SetPod(hamiPod("whole", "n1", "", "", "GPU-n1-0,NVIDIA,15000,100:;"))
	if first, err := w.on(0); first != 1 || err != nil {
		t.Errorf("expected the whole GPU's pod, found %d, %v", first, err)
	}
	if second, err := w.on(1); second != 1 || err != nil {
		t.Errorf("expected the part's pod, found %d, %v", second, err)
	}
	for _, one := range []struct {
		value string
		want  horus.Reason
	}{{"10001", horus.ReasonGPUMemory}, {"9000", horus.ReasonNone}} {
		p := hamiPod("new", "", "gpumem", one.value, "")
		p.Annotations = map[string]string{objects.ProfileAnnotation: "light", objects.BoundAnnotation: "100"}
		if found := w.reason(t, p, "n1"); found != one.want {
			t.Errorf("%s MiB beside 5000 of 15000: expected %v, found %v", one.value, one.want, found)
		}
	}
	told := 0
	w.Contradicts = func(*v1.Pod, string) { told++ }
	w.SetPod(hamiPod("lost", "n1", "gpumem", "5000", "GPU-n1-1,NVIDIA:;"))
	w.SetPod(hamiPod("untold", "n1", "", "", ""))
	if counts := w.Counts(); counts.Waiting != 2 || counts.Pods != 2 || told != 2 {
		t.Errorf("expected two pods of which nobody can tell what they hold, and both told, found %+v, told %d", counts, told)
	}
	w.SetPod(hamiPod("untold", "n1", "", "", "GPU-n1-1,NVIDIA,100,0:;"))
	if counts := w.Counts(); counts.Waiting != 1 || counts.Pods != 3 {
		t.Errorf("expected one to be told, found %+v", counts)
	}
}

// recorded is a pod as the scheduler bound it, with what its annotation says now.
func recorded(name, node, mib, given, says string) *v1.Pod {
	p := hamiPod(name, node, "gpumem", mib, says)
	p.Status.Conditions = []v1.PodCondition{{Type: "libhorus.org/hami-devices", Status: v1.ConditionTrue, Message: node + " " + given}}
	return p
}

// An owner may write the annotations of his pod, at any time.
func TestWhatAnOwnerWritesOverWhatHAMiGaveChangesNothingAndIsTold(t *testing.T) {
	const given = "GPU-n1-0,NVIDIA,12000,0:;"
	first := hamiPod("p", "n1", "gpumem", "12000", given)
	for name, one := range map[string]struct {
		before, after *v1.Pod // as it was seen first, and later; nil = the scheduler starts now
	}{
		"less memory":                {first, hamiPod("p", "n1", "gpumem", "12000", "GPU-n1-0,NVIDIA,1,0:;")},
		"another GPU":                {first, hamiPod("p", "n1", "gpumem", "12000", "GPU-n1-1,NVIDIA,12000,0:;")},
		"none":                       {first, hamiPod("p", "n1", "gpumem", "12000", "")},
		"nonsense":                   {first, hamiPod("p", "n1", "gpumem", "12000", "GPU-n1-7,NVIDIA,-1,900:;")},
		"less, before a restart":     {nil, hamiPod("p", "n1", "gpumem", "12000", "GPU-n1-0,NVIDIA,1,0:;")},
		"more, before a restart":     {nil, hamiPod("p", "n1", "gpumem", "12000", "GPU-n1-0,NVIDIA,15000,100:;")},
		"another, though recorded":   {nil, recorded("p", "n1", "12000", given, "GPU-n1-1,NVIDIA,12000,0:;")},
		"none, though recorded":      {nil, recorded("p", "n1", "12000", given, "")},
		"all GPUs, though recorded":  {nil, recorded("p", "n1", "12000", given, "GPU-n1-0,NVIDIA,15000,100:GPU-n1-1,NVIDIA,15000,100:;")},
		"recorded, and changed then": {recorded("p", "n1", "12000", given, given), recorded("p", "n1", "12000", given, "GPU-n1-1,NVIDIA,1,0:;")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var told []string
			w.Contradicts = func(_ *v1.Pod, sentence string) { told = append(told, sentence) }
			w.hamiNode("n1", 15_000)
			if one.before != nil {
				if w.SetPod(one.before); len(told) > 0 || w.Counts().Contradicting != 0 {
					t.Errorf("expected nothing said of what was given, found %q", told)
				}
			}
			w.SetPod(one.after)
			w.hamiNode("n1", 15_001) // the node is built anew, and reads its pods again
			w.SetPod(one.after)
			on, err := w.on(0)
			if other, _ := w.on(1); on != 1 || other != 0 || err != nil {
				t.Fatalf("expected it on the GPU that it was given, found %d there and %d on the other, %v", on, other, err)
			}
			patient := map[string]string{objects.ProfileAnnotation: "light", objects.BoundAnnotation: "100"}
			w.SetPod(hamiPod("fills", "n1", "", "", "GPU-n1-1,NVIDIA,15001,100:;"))
			for mib, want := range map[string]horus.Reason{"2502": horus.ReasonGPUMemory, "2501": horus.ReasonNone} {
				p := hamiPod("new", "", "gpumem", mib, "")
				p.Annotations = patient
				if found := w.reason(t, p, "n1"); found != want {
					t.Errorf("%s MiB beside 12000 of 15001, less 500 that stay free: expected %v, found %v", mib, want, found)
				}
			}
			if len(told) != 1 || w.Counts().Contradicting != 1 {
				t.Errorf("expected it told once, found %q, %+v", told, w.Counts())
			}
		})
	}
	w := newWorld(t)
	w.hamiNode("n1", 15_000)
	stale := recorded("p", "n1", "12000", given, "GPU-n1-1,NVIDIA,12000,0:;")
	stale.Status.Conditions[0].Message = "n2 GPU-n2-0,NVIDIA,12000,0:;" // of an attempt that was cut off
	w.SetPod(stale)
	if on, err := w.on(1); on != 1 || err != nil {
		t.Errorf("expected the record of another node not to count, found %d, %v", on, err)
	}
}

// While a card is not healthy its pods wait, and they are back with it.
func TestAPodOfACardThatHAMiTakesOffIsBackWithIt(t *testing.T) {
	w := newWorld(t)
	w.hamiNode("n1", 15_000)
	w.SetPod(hamiPod("part", "n1", "gpumem", "5000", "GPU-n1-1,NVIDIA,5000,0:;"))
	w.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{objects.HAMiRegisterAnnotation: "GPU-n1-0,3,15000,100,NVIDIA-Tesla T4,0,true:"}}})
	if counts := w.Counts(); counts.Waiting != 1 || counts.Devices != 1 {
		t.Errorf("expected it to wait, found %+v", counts)
	}
	w.hamiNode("n1", 15_000)
	if second, err := w.on(1); second != 1 || err != nil {
		t.Errorf("expected it back, found %d, %v", second, err)
	}
}

func TestAWholeGPUIsFoundOnHAMisNodesAndAPartOnNoOthers(t *testing.T) {
	w := newWorld(t)
	w.hamiNode("n1", 15_000)
	w.node("n2", 1)
	whole := podOn("whole", "", 1)
	for _, node := range []string{"n1", "n2"} {
		if found := w.reason(t, whole, node); found != horus.ReasonNone {
			t.Errorf("%s: expected a place for a whole GPU, found %v", node, found)
		}
	}
	if found := w.reason(t, hamiPod("part", "", "gpumem", "1000", ""), "n2"); found != horus.ReasonGPUType {
		t.Errorf("expected no part of a GPU where nobody divides it, found %v", found)
	}
	view, err := w.Read(whole)
	if err != nil {
		t.Fatal(err)
	}
	choice, err := w.Reserve(whole, view, "n1", nil)
	if err != nil || choice.Backend != objects.HAMi || choice.Devices[0].UUID == "" {
		t.Fatalf("expected a device by its name, found %+v, %v", choice, err)
	}
	w.hamiNode("n1", 14_000) // the node is built anew under it
	if first, err := w.on(choice.Slots[0].Device); first != 1 || err != nil {
		t.Errorf("expected it where it was reserved, found %d, %v", first, err)
	}
}

// Half of a small GPU is less than half of a large one.
func TestAPercentageIsOfTheNodesOwnMemory(t *testing.T) {
	w := newWorld(t)
	w.hamiNode("large", 15_000)
	w.hamiNode("small", 7_500)
	for i, node := range []string{"large", "small"} {
		for device, mib := range map[int]int{0: 8_000, 1: 2_500} {
			w.SetPod(hamiPod(fmt.Sprint(node, device), node, "gpumem", fmt.Sprint(mib>>i), fmt.Sprintf("GPU-%s-%d,NVIDIA,%d,0:;", node, device, mib>>i)))
		}
	}
	half := hamiPod("half", "", "gpumem-percentage", "60", "")
	half.Annotations = map[string]string{objects.ProfileAnnotation: "light", objects.BoundAnnotation: "100"}
	view, err := w.Read(half)
	if err != nil {
		t.Fatal(err)
	}
	for node, fits := range map[string]bool{"large": true, "small": true} { // 9,000 of 12,500 MiB and 4,500 of 6,250
		if found := w.reason(t, half, node); (found == horus.ReasonNone) != fits {
			t.Errorf("%s: expected a place %v, found %v", node, fits, found)
		}
	}
	choice, err := w.Choose(view, "small", Rules{Selectors: view.HAMi.Key(), Matches: view.HAMi.Allows})
	if err != nil || choice.Devices[0].UUID != "GPU-small-1" {
		t.Fatalf("expected the device with room, found %+v, %v", choice, err)
	}
	if _, err := w.Reserve(half, view, "small", &choice); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reserve(hamiPod("next", "", "", "", ""), view, "small", nil); !errors.Is(err, ErrNoPlace) {
		t.Errorf("expected no room for a second, found %v", err)
	}
}
