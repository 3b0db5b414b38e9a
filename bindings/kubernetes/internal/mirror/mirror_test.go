// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/internal/objects"
)

const driver = "gpu.nvidia.com"

// world is what the API server has.
type world struct {
	*Mirror
	claims map[string]*resourceapi.ResourceClaim
	known  map[string]*v1.Pod
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{claims: map[string]*resourceapi.ResourceClaim{}, known: map[string]*v1.Pod{}}
	settings := objects.Settings{Driver: driver, DeviceClasses: []string{driver}, Resource: "nvidia.com/gpu"}
	lookups := objects.Lookups{
		Claim: func(_, name string) (*resourceapi.ResourceClaim, error) {
			if claim := w.claims[name]; claim != nil {
				return claim, nil
			}
			return nil, errors.New("not found")
		},
		Pod: func(_, name string) *v1.Pod { return w.known[name] },
		Profile: func(string, string) (objects.Profile, error) {
			return objects.ProfileOf(map[string]any{"demands": []any{map[string]any{"gpuType": "t4", "gpuUtilPct": 15, "memMiB": 2_000}}}, nil)
		},
	}
	lib, err := library.Local(library.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Mirror = New(settings, lookups, lib)
	return w
}

var anyDevice = Rules{Matches: func(*resourceapi.Device) bool { return true }}

// on tells how many pods the library has on a GPU of n1.
func (w world) on(device uint32) (int, error) {
	found, err := w.library.Appraise(horus.Job{ID: 1 << 40, Demands: objects.Unknown(0)}, []horus.Slot{{Node: w.nodes["n1"].id, Device: device}})
	return int(found.Tenants) - 1, err // it counts the job that is asked for
}

func (w world) node(name string, gpus int) {
	w.SetNode(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": "Tesla-T4"}},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)}},
	})
}

func (w world) slice(node string, devices ...string) {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	shared, product := true, "Tesla T4"
	for _, name := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: name, AllowMultipleAllocations: &shared,
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"productName": {StringValue: &product}}})
	}
	w.SetSlice(s)
}

func podOn(name, node string, whole int64) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{NodeName: node}}
	p.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(whole, resource.DecimalSI)}}}}
	return p
}

// claimer is a pod that shares, with a claim of its name; `device` is allocated, "" = not yet.
func (w world) claimer(name, node, device string) *v1.Pod {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("claim-" + name)}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
		{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driver, Count: 1}},
	}}}}
	w.claims[name] = claim
	if device != "" {
		w.allocate(name, node, device)
	}
	p := podOn(name, node, 0)
	p.Annotations = map[string]string{objects.ProfileAnnotation: "light", objects.ShareAnnotation: "same-tenant"}
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	return p
}

func (w world) allocate(name, node, device string) {
	w.claims[name].Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: types.UID(name)}}
	w.claims[name].Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Driver: driver, Pool: node, Device: device}},
	}}
}

func (w world) reason(t *testing.T, pod *v1.Pod, node string) horus.Reason {
	t.Helper()
	view, err := w.Read(pod)
	if err != nil {
		t.Fatal(err)
	}
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	for _, p := range w.pods { // as the scheduler knows it too
		if p.node == node && p.hold == bound {
			info.AddPod(p.object)
		}
	}
	verdicts, err := w.Verdicts(view, []fwk.NodeInfo{info})
	if err != nil {
		t.Fatal(err)
	}
	return verdicts[0].Reason
}

func TestObjectsInAnyOrderGiveOneState(t *testing.T) {
	steps := func(w world) []func() {
		bound := w.claimer("a", "n1", "gpu-1")
		return []func(){
			func() { w.node("n1", 0) }, func() { w.slice("n1", "gpu-0", "gpu-1") }, func() { w.SetPod(bound) }, func() { w.SetPod(bound) },
			func() { w.SetPod(w.claimer("b", "n1", "gpu-1")) },
		}
	}
	for rotation := range 5 {
		w := newWorld(t)
		all := steps(w)
		for i := range all {
			all[(i+rotation)%len(all)]()
		}
		if c := w.Counts(); c != (Counts{Nodes: 1, Devices: 2, Pods: 2}) {
			t.Errorf("order %d: expected a node, two GPUs and two pods, found %+v", rotation, c)
		}
		info, err := w.on(1)
		if err != nil || info != 2 {
			t.Errorf("order %d: expected both on gpu-1, found %+v, %v", rotation, info, err)
		}
	}
}

func TestAPodWaitsForItsClaimAndIsTakenInThen(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.slice("n1", "gpu-0")
	w.SetPod(w.claimer("a", "n1", ""))
	if c := w.Counts(); c.Pods != 0 || c.Waiting != 1 {
		t.Fatalf("expected it to wait, found %+v", c)
	}
	w.allocate("a", "n1", "gpu-0")
	w.SetClaim(w.claims["a"])
	if c := w.Counts(); c.Pods != 1 || c.Waiting != 0 {
		t.Errorf("expected it taken in, found %+v", c)
	}
}

func TestAPodWhoseProfileComesLateSharesFromThenOn(t *testing.T) {
	w := newWorld(t)
	known := w.lookups.Profile
	w.lookups.Profile = func(string, string) (objects.Profile, error) { return objects.Profile{}, errors.New("not found") }
	w.node("n1", 0)
	w.slice("n1", "gpu-0")
	w.SetPod(w.claimer("a", "n1", "gpu-0"))
	w.lookups.Profile = known
	second := w.claimer("b", "", "")
	if reason := w.reason(t, second, "n1"); reason == horus.ReasonNone {
		t.Fatal("expected a pod of which nothing is known to share with nobody")
	}
	w.ProfileChanged("team", "light")
	if reason := w.reason(t, second, "n1"); reason != horus.ReasonNone {
		t.Errorf("expected both on the GPU, found %v", reason)
	}
}

func TestWhatEndsGivesItsGPUsBack(t *testing.T) {
	for name, end := range map[string]func(world, *v1.Pod){
		"deleted":    func(w world, p *v1.Pod) { w.DeletePod(p.UID) },
		"succeeded":  func(w world, p *v1.Pod) { done := p.DeepCopy(); done.Status.Phase = v1.PodSucceeded; w.SetPod(done) },
		"unreserved": func(w world, p *v1.Pod) { w.Unreserve(p.UID) },
	} {
		w := newWorld(t)
		w.node("n1", 1)
		p := podOn("a", "n1", 1)
		if name == "unreserved" {
			p.Spec.NodeName = ""
			view, _ := w.Read(p)
			if _, err := w.Reserve(p, view, "n1", nil); err != nil {
				t.Fatal(err)
			}
		} else {
			w.SetPod(p)
		}
		if reason := w.reason(t, podOn("b", "", 1), "n1"); reason == horus.ReasonNone {
			t.Errorf("%s: expected the GPU to be taken", name)
		}
		end(w, p)
		end(w, p)
		if reason := w.reason(t, podOn("b", "", 1), "n1"); reason != horus.ReasonNone || w.Counts().Pods != 0 {
			t.Errorf("%s: expected the GPU free, found %v", name, reason)
		}
	}
}

func TestABoundPodKeepsItsGPUsWhateverUnreserveSays(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 1)
	w.SetPod(podOn("a", "n1", 1))
	w.Unreserve("a")
	if w.Counts().Pods != 1 {
		t.Error("expected the pod to stay")
	}
}

func TestAPodBoundElsewhereThanReservedIsWhereTheServerSays(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 1)
	w.node("n2", 1)
	p := podOn("a", "", 1)
	view, _ := w.Read(p)
	if _, err := w.Reserve(p, view, "n1", nil); err != nil {
		t.Fatal(err)
	}
	w.SetPod(podOn("a", "n2", 1))
	if one, two := w.reason(t, podOn("b", "", 1), "n1"), w.reason(t, podOn("b", "", 1), "n2"); one != horus.ReasonNone || two == horus.ReasonNone {
		t.Errorf("expected n1 free and n2 taken, found %v and %v", one, two)
	}
}

func TestANodeThatLosesGPUsKeepsItsPodsWhereTheyAre(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.slice("n1", "gpu-0", "gpu-1", "gpu-2")
	w.SetPod(w.claimer("a", "n1", "gpu-2"))
	w.slice("n1", "gpu-1", "gpu-2") // gpu-0 fell off the bus: every position moves
	info, err := w.on(1)
	if err != nil || info != 1 {
		t.Errorf("expected the pod on gpu-2, now at position 1, found %+v, %v", info, err)
	}
	w.slice("n1", "gpu-1") // and its own
	if c := w.Counts(); c.Pods != 0 || c.Waiting != 1 {
		t.Errorf("expected it to wait for its GPU, found %+v", c)
	}
	w.slice("n1", "gpu-1", "gpu-2")
	if c := w.Counts(); c.Pods != 1 || c.Waiting != 0 {
		t.Errorf("expected it back, found %+v", c)
	}
	w.DeleteNode("n1")
	w.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	if c := w.Counts(); c.Pods != 1 || c.Nodes != 1 {
		t.Errorf("expected the node back with its pod, found %+v", c)
	}
}

func TestTheSchedulersOwnPictureCountsWhereItIsAhead(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 1)
	left := podOn("left", "n1", 1)
	w.SetPod(left)
	view, _ := w.Read(podOn("b", "", 1))
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for _, one := range []struct {
		pod  *v1.Pod
		fits bool
	}{{nil, true}, {podOn("assumed", "n1", 1), false}} { // the deletion, then a pod that another profile assumed
		if one.pod != nil {
			info.AddPod(one.pod)
		}
		verdicts, err := w.Verdicts(view, []fwk.NodeInfo{info})
		if err != nil || (verdicts[0].Reason == horus.ReasonNone) != one.fits {
			t.Errorf("with %v there: expected %v, found %v, %v", one.pod, one.fits, verdicts, err)
		}
	}
}

func TestReserveLooksAgain(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.slice("n1", "gpu-0")
	p := w.claimer("a", "", "")
	view, err := w.Read(p)
	if err != nil {
		t.Fatal(err)
	}
	choice, err := w.Choose(view, "n1", anyDevice)
	if err != nil || len(choice.Slots) != 1 || choice.Devices[0].Name != "gpu-0" {
		t.Fatalf("expected gpu-0, found %+v, %v", choice, err)
	}
	alone := w.claimer("b", "n1", "gpu-0")
	alone.Annotations = nil
	w.SetPod(alone) // meanwhile somebody came who shares with nobody
	if again, err := w.Reserve(p, view, "n1", &choice); !errors.Is(err, ErrNoPlace) || again.Decision.Reason == horus.ReasonNone {
		t.Errorf("expected no place and why, found %+v, %v", again, err)
	}
}

func TestWhatWasChosenGoesByItsNameNotItsPosition(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.slice("n1", "gpu-0", "gpu-1")
	p := w.claimer("a", "", "")
	view, _ := w.Read(p)
	choice, err := w.Choose(view, "n1", anyDevice)
	if err != nil {
		t.Fatal(err)
	}
	w.slice("n1", "gpu-1") // position 0 is another GPU now
	if _, err := w.Reserve(p, view, "n1", &choice); !errors.Is(err, ErrNoPlace) {
		t.Errorf("expected no place, found %v", err)
	}
}

func TestReservationsOutliveAChangeOfTheirNode(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.slice("n1", "gpu-1")
	p := w.claimer("a", "", "")
	view, _ := w.Read(p)
	choice, err := w.Choose(view, "n1", anyDevice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reserve(p, view, "n1", &choice); err != nil {
		t.Fatal(err)
	}
	w.slice("n1", "gpu-0", "gpu-1")
	info, err := w.on(1)
	if err != nil || info != 1 {
		t.Errorf("expected it on gpu-1, at position 1 now, found %+v, %v", info, err)
	}
}

func TestABoundPodHoldsWhatItsClaimSaysWhateverItAskedFor(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.slice("n1", "gpu-0")
	odd := w.claimer("odd", "n1", "gpu-0")
	w.claims["odd"].Spec.Devices.Requests[0].Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll // not placed here
	w.SetPod(odd)
	if reason := w.reason(t, w.claimer("b", "", ""), "n1"); reason == horus.ReasonNone {
		t.Error("expected the GPU to be taken")
	}
}

func TestEachChoiceIsJudgedOnce(t *testing.T) {
	w := newWorld(t)
	judged := 0
	w.Seen = func(View) { judged++ }
	w.node("n1", 0)
	w.SetPod(w.claimer("a", "n1", ""))
	w.slice("n1", "gpu-0")
	w.allocate("a", "n1", "gpu-0")
	for range 2 {
		w.SetClaim(w.claims["a"])
	}
	w.slice("n1", "gpu-0", "gpu-1")
	w.slice("n1") // it waits again
	w.slice("n1", "gpu-0")
	w.ProfileChanged("team", "light")
	if judged != 1 || w.Counts().Pods != 1 {
		t.Errorf("expected one judgement of one pod, found %d of %d", judged, w.Counts().Pods)
	}
}

func TestPreemptionIsTriedOutOnOneNode(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 1)
	w.node("n2", 1)
	w.SetPod(podOn("a", "n1", 1))
	w.SetPod(podOn("b", "n2", 1))
	view, _ := w.Read(podOn("c", "", 1))
	for _, one := range []struct {
		gone  []types.UID
		first []objects.Pod
		fits  bool
	}{{nil, nil, false}, {[]types.UID{"b"}, nil, false}, {[]types.UID{"a"}, nil, true}, {[]types.UID{"a"}, []objects.Pod{view}, false}} {
		reason, err := w.FitsWithout(view, "n1", one.gone, one.first)
		if err != nil || (reason == horus.ReasonNone) != one.fits {
			t.Errorf("without %v and after %d others: expected %v, found %v, %v", one.gone, len(one.first), one.fits, reason, err)
		}
	}
	if w.Counts().Pods != 2 {
		t.Error("a trial changed the state")
	}
}

func TestTamperedPodsAreCountedByWhatTheyHold(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 2)
	for i, annotations := range []map[string]string{{objects.ShareAnnotation: "everyone"}, {objects.BoundAnnotation: "-3"}} {
		p := podOn(fmt.Sprint(i), "n1", 1)
		p.Annotations = annotations
		w.SetPod(p)
	}
	huge := podOn("huge", "n1", 1<<40)
	w.SetPod(huge)
	if c := w.Counts(); c.Pods != 2 || c.Waiting != 1 {
		t.Errorf("expected two taken in and the impossible one left out, found %+v", c)
	}
	if reason := w.reason(t, podOn("c", "", 1), "n1"); reason == horus.ReasonNone {
		t.Error("expected both GPUs taken")
	}
}

func TestDevicesThatNobodyPlacesAreCounted(t *testing.T) {
	w := newWorld(t)
	w.slice("n1", "gpu-0", "gpu-1")
	w.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	if found := w.Skipped(); len(found) != 0 {
		t.Errorf("expected none, found %v", found)
	}
	product := "Tesla T4"
	device := func(name string) resourceapi.Device {
		return resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"productName": {StringValue: &product}}}
	}
	partition, node, mig, profile := device("gpu-1"), "n1", "mig", "1g.10gb"
	partition.Attributes["type"], partition.Attributes["profile"] = resourceapi.DeviceAttribute{StringValue: &mig}, resourceapi.DeviceAttribute{StringValue: &profile} // no T4 has it
	of := func(name string, node *string, devices ...resourceapi.Device) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: node, Pool: resourceapi.ResourcePool{Name: name, Generation: 2, ResourceSliceCount: 1}, Devices: devices,
		}}
	}
	w.SetSlice(of("n1", &node, device("gpu-0"), partition))
	w.SetSlice(of("anywhere", nil, device("a"), device("b")))
	if found, counts := w.Skipped(), w.Counts(); found[objects.UnknownProfile] != 1 || found[objects.NoNode] != 2 || counts.Devices != 1 || counts.Unused != 0 {
		t.Errorf("expected an instance of an unknown profile and two devices of no node beside a GPU, found %v, %+v", found, counts)
	}
	w.SetSlice(of("n1", &node, partition))
	w.DeleteSlice(of("anywhere", nil))
	if found, counts := w.Skipped(), w.Counts(); found[objects.UnknownProfile] != 1 || found[objects.NoNode] != 0 || counts.Devices != 0 {
		t.Errorf("expected a node without a GPU that is placed, found %v, %+v", found, counts)
	}
}

// They are meant to be so, and nobody is placed there.
func TestNodesThatADevicePluginSharesAreNoAlarm(t *testing.T) {
	w := newWorld(t)
	w.SetNode(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
	})
	w.SetPod(podOn("a", "n1", 1))
	if c := w.Counts(); c.Unused != 0 || c.Waiting != 0 || w.Skipped()[objects.ByPlugin] != 8 {
		t.Errorf("expected a node of 8 replicas left alone, found %+v, %v", c, w.Skipped())
	}
}

// Whether it is being bound or somebody else bound it.
func TestAProfileThatContradictsAClaimIsToldOnce(t *testing.T) {
	w := newWorld(t)
	var told []string
	w.Contradicts = func(pod *v1.Pod, sentence string) { told = append(told, pod.Name+": "+sentence) }
	w.slice("n1", "gpu-0", "gpu-1")
	w.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	small := w.claimer("small", "n1", "gpu-0")
	w.claims["small"].Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}}
	w.SetPod(small)
	w.ProfileChanged("team", "light")
	if len(told) != 1 || w.Counts().Contradicting != 1 {
		t.Fatalf("expected 2000 MiB beside 1024 told once, found %q, %+v", told, w.Counts())
	}
	next := w.claimer("next", "", "")
	next.Annotations[objects.BoundAnnotation] = "100"
	for device, want := range map[uint32]horus.Reason{0: horus.ReasonGPUMemory, 1: horus.ReasonNone} {
		view, err := w.Read(next)
		if err != nil {
			t.Fatal(err)
		}
		view.Horus.ID, view.Horus.GPUMemRequestMiB = 1<<40, 14_000 // of 16,384 MiB, of which 500 stay free
		if found, err := w.library.Appraise(view.Horus, []horus.Slot{{Node: w.nodes["n1"].id, Device: device}}); found.Reason != want || err != nil {
			t.Errorf("gpu-%d: expected %v, found %v, %v", device, want, found.Reason, err)
		}
	}
	w.DeletePod(small.UID)
	if counts := w.Counts(); counts.Contradicting != 0 {
		t.Errorf("expected none once it is gone, found %+v", counts)
	}
}
