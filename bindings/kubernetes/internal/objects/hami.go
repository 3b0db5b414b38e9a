// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"libhorus.org/horus"
)

// What HAMi writes on a pod when it binds it, and its device plugin reads.
const (
	hamiNode       = "hami.io/vgpu-node"
	hamiTime       = "hami.io/vgpu-time"
	hamiToAllocate = "hami.io/vgpu-devices-to-allocate" // the device plugin takes each container out that it served
	HAMiAllocated  = "hami.io/vgpu-devices-allocated"
	hamiPhase      = "hami.io/bind-phase"
	hamiBindTime   = "hami.io/bind-time"
)

// What a pod asks of HAMi, beside GPUs.
const (
	HAMiMem      = v1.ResourceName("nvidia.com/gpumem")            // MiB of each GPU
	HAMiPercent  = v1.ResourceName("nvidia.com/gpumem-percentage") // of each GPU's memory
	hamiCores    = v1.ResourceName("nvidia.com/gpucores")          // % of each GPU
	hamiPriority = v1.ResourceName("nvidia.com/priority")
	HAMiUseType  = "nvidia.com/use-gputype"
	HAMiNoType   = "nvidia.com/nouse-gputype"
	hamiUseUUID  = "nvidia.com/use-gpuuuid"
	hamiNoUUID   = "nvidia.com/nouse-gpuuuid"
	hamiNUMA     = "nvidia.com/numa-bind"
	hamiMode     = "nvidia.com/vgpu-mode"
	hamiGPUs     = "hami.io/gpu-scheduler-policy"
	hamiNodes    = "hami.io/node-scheduler-policy"
)

const (
	wholePercent = 100
	mostGPUMem   = 1 << 24     // MiB; a larger number is not meant in MiB
	hamiCore     = "hami-core" // GPUs whose memory and cores HAMi-core divides; the other modes are mig and mps
	mostTenants  = 256         // of a device, in the library
)

// HAMiAsk is what a pod asks of each GPU that HAMi shares.
type HAMiAsk struct {
	MemMiB, MemPercent int64 // at most one of them; none = all memory
	CoresPercent       int64 // most of its time; 0 = no limit
	useTypes, noTypes  string
	useUUIDs, noUUIDs  string
}

func (a HAMiAsk) ofCores() bool { return a.CoresPercent > 0 && a.CoresPercent < wholePercent }

// of a container.
func (a HAMiAsk) of(c *v1.Container) HAMiAsk {
	a.MemMiB, a.MemPercent, a.CoresPercent = quantity(c, HAMiMem), quantity(c, HAMiPercent), quantity(c, hamiCores)
	return a
}

// Part says whether others may have the rest. 100 % of the cores are HAMi's way to ask for a GPU alone.
func (a HAMiAsk) Part() bool {
	return (a.MemMiB > 0 || (a.MemPercent > 0 && a.MemPercent < wholePercent)) && a.CoresPercent < wholePercent
}

// on is the memory of a device that it gets, as HAMi rounds.
func (a HAMiAsk) on(deviceMiB int64) int64 {
	switch {
	case a.MemMiB > 0:
		return a.MemMiB
	case a.MemPercent > 0:
		return deviceMiB * a.MemPercent / wholePercent
	}
	return deviceMiB
}

// Names says whether annotations name the GPUs that it may have.
func (a HAMiAsk) Names() bool { return a.useTypes+a.noTypes+a.useUUIDs+a.noUUIDs != "" }

// Key stands for what Allows goes by.
func (a HAMiAsk) Key() string {
	return strings.Join([]string{a.useTypes, a.noTypes, a.useUUIDs, a.noUUIDs}, "\x00")
}

// Allows says whether the pod's annotations admit a GPU: types are parts of its name in any case, UUIDs are whole.
func (a HAMiAsk) Allows(device *resourceapi.Device) bool {
	product, uuid := strings.ToUpper(text(device, "productName")), text(device, "uuid")
	lists := func(list string, matches func(string) bool) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(one string) bool {
			one = strings.TrimSpace(one)
			return one != "" && matches(one)
		})
	}
	ofType := func(one string) bool { return strings.Contains(product, strings.ToUpper(one)) }
	ofUUID := func(one string) bool { return one == uuid }
	return (strings.TrimSpace(a.useTypes) == "" || lists(a.useTypes, ofType)) && !lists(a.noTypes, ofType) &&
		(strings.TrimSpace(a.useUUIDs) == "" || lists(a.useUUIDs, ofUUID)) && !lists(a.noUUIDs, ofUUID)
}

// asksHAMi says whether a pod asks for what HAMi alone has. Annotations count where it asks for GPUs.
func asksHAMi(pod *v1.Pod, gpus bool) bool {
	annotations := []string{HAMiUseType, HAMiNoType, hamiUseUUID, hamiNoUUID, hamiNUMA, hamiMode, hamiGPUs, hamiNodes}
	if gpus && slices.ContainsFunc(annotations, func(name string) bool { return pod.Annotations[name] != "" }) {
		return true
	}
	return slices.ContainsFunc(containersOf(pod), func(c *v1.Container) bool {
		return slices.ContainsFunc([]v1.ResourceName{HAMiMem, HAMiPercent, hamiCores, hamiPriority}, func(name v1.ResourceName) bool { return quantity(c, name) != 0 })
	})
}

// containersOf are in the order in which HAMi lists them.
func containersOf(pod *v1.Pod) (out []*v1.Container) {
	for i := range pod.Spec.InitContainers {
		out = append(out, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	return out
}

// quantity of a limit, or of a request without one, as HAMi reads it.
func quantity(c *v1.Container, name v1.ResourceName) int64 {
	found, limited := c.Resources.Limits[name]
	if !limited {
		found = c.Resources.Requests[name]
	}
	return found.Value()
}

func (out *Pod) hami(settings Settings, pod *v1.Pod) error {
	a := &out.HAMi
	a.useTypes, a.noTypes = pod.Annotations[HAMiUseType], pod.Annotations[HAMiNoType]
	a.useUUIDs, a.noUUIDs = pod.Annotations[hamiUseUUID], pod.Annotations[hamiNoUUID]
	first := true
	var err error
	for _, c := range containersOf(pod) {
		ask := a.of(c)
		for _, one := range []struct {
			name        v1.ResourceName
			found, most int64
			unit        string
		}{{HAMiMem, ask.MemMiB, mostGPUMem, " MiB"}, {HAMiPercent, ask.MemPercent, wholePercent, ""}, {hamiCores, ask.CoresPercent, wholePercent, ""}} {
			if err == nil && (one.found < 0 || one.found > one.most) {
				err = fmt.Errorf("container %s: %s: expected 0 to %d%s, found %d", c.Name, one.name, one.most, one.unit, one.found)
			}
		}
		asksForPart := ask.MemMiB != 0 || ask.MemPercent != 0 || ask.CoresPercent != 0
		switch gpus := quantity(c, settings.Resource); {
		case err != nil:
		case ask.MemMiB > 0 && ask.MemPercent > 0:
			err = fmt.Errorf("container %s: expected %s or %s, found both", c.Name, HAMiMem, HAMiPercent)
		case gpus == 0 && asksForPart:
			err = fmt.Errorf("container %s: expected %s beside %s, %s or %s, found none: HAMi's webhook completes only its own scheduler's pods",
				c.Name, settings.Resource, HAMiMem, HAMiPercent, hamiCores)
		case gpus > 0 && first:
			*a, first = ask, false
		case gpus > 0 && ask != *a:
			out.Beyond = "containers that ask for different parts of GPUs are not placed: ask for the same in each"
		}
		if quantity(c, hamiPriority) != 0 {
			out.Beyond = fmt.Sprintf("container %s: %s is set up by HAMi's webhook for its own scheduler's pods: leave it out", c.Name, hamiPriority)
		}
		if c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false) && asksForPart {
			out.Beyond = fmt.Sprintf("container %s is privileged: it would see all GPUs, past HAMi's limits", c.Name)
		}
	}
	if a.Part() {
		out.Horus.Exclusive, out.Horus.Share = false, horus.ShareAnyone // as HAMi shares
	}
	out.reserve(a.MemMiB)
	out.Horus.Demands = a.demands(a.MemMiB)
	if a.Part() && a.ofCores() && out.Horus.GPUsPerTask == 1 {
		out.Horus.GPUMilli = int32(a.CoresPercent * 10)
	}
	out.beyondHAMi(pod)
	return err
}

// demands of a job of which no more is known than its limits.
func (a HAMiAsk) demands(memMiB int64) []horus.TypeDemand {
	out := Unknown(memMiB)
	if a.ofCores() {
		out[0].Demand.GPUUtilPct = float32(a.CoresPercent)
	}
	return out
}

func (out *Pod) beyondHAMi(pod *v1.Pod) {
	for _, name := range []string{hamiGPUs, hamiNodes} {
		if found := pod.Annotations[name]; found != "" {
			out.Beyond = fmt.Sprintf("annotation %s: %q is HAMi's own scheduler's: leave it out", name, found)
		}
	}
	if on, err := strconv.ParseBool(pod.Annotations[hamiNUMA]); err == nil && on {
		out.Beyond = "annotation " + hamiNUMA + ": GPUs of one NUMA node are not looked for: leave it out"
	}
	if mode := pod.Annotations[hamiMode]; mode != "" && !strings.Contains(mode, hamiCore) {
		out.Beyond = fmt.Sprintf("annotation %s: expected %s, found %q, which is not placed", hamiMode, hamiCore, mode)
	}
	if out.HAMi.Part() && out.HAMi.ofCores() && out.Horus.GPUsPerTask > 1 {
		out.Beyond = fmt.Sprintf("%s below 100 of several GPUs are not placed: ask for one GPU, or for all cores", hamiCores)
	}
}

// Sized is a pod as a job on devices of that memory. It differs only for pods that ask for a percentage.
func (p Pod) Sized(deviceMiB int64) Pod {
	if p.Backend != HAMi || !p.HAMi.Part() || p.HAMi.MemPercent == 0 {
		return p
	}
	if p.reserve(p.HAMi.on(deviceMiB)); !p.profiled {
		p.Horus.Demands = p.HAMi.demands(p.AskedMiB)
	}
	return p
}

// SizedByNode says whether Sized differs by node.
func (p Pod) SizedByNode() bool { return p.Backend == HAMi && p.HAMi.Part() && p.HAMi.MemPercent > 0 }

// HAMiBinding is what HAMi's device plugin is to find on a bound pod: of each container the devices that it gets. Those of init
// containers are given on to the containers, as the kubelet does.
func HAMiBinding(settings Settings, pod *v1.Pod, view Pod, node string, devices []Device, now time.Time) map[string]string {
	cores := view.HAMi.CoresPercent
	if !view.HAMi.Part() && cores == 0 {
		cores = wholePercent // which keeps HAMi's scheduler away
	}
	var list strings.Builder
	next := int64(0)
	for i, c := range containersOf(pod) {
		gpus := quantity(c, settings.Resource)
		for _, device := range devices[next : next+gpus] {
			fmt.Fprintf(&list, "%s,NVIDIA,%d,%d:", device.UUID, view.HAMi.on(device.MemMiB), cores)
		}
		list.WriteByte(';')
		if i >= len(pod.Spec.InitContainers) || isSidecar(c) {
			next += gpus
		}
	}
	unix := strconv.FormatInt(now.Unix(), 10)
	return map[string]string{
		hamiNode: node, hamiTime: unix, hamiBindTime: unix, hamiPhase: "allocating",
		hamiToAllocate: list.String(), HAMiAllocated: list.String(),
	}
}

// hamiRecord is a condition of the pods that this scheduler bound: node and list. HAMi's annotations are the owner's to write, as all
// annotations are; the status of a pod is not.
const hamiRecord = v1.PodConditionType("libhorus.org/hami-devices")

// HAMiRecord of what a pod is given on a node, as HAMiBinding lists it.
func HAMiRecord(node string, binding map[string]string, now time.Time) v1.PodCondition {
	return v1.PodCondition{
		Type: hamiRecord, Status: v1.ConditionTrue, Reason: "Bound", LastTransitionTime: metav1.NewTime(now), Message: node + " " + binding[HAMiAllocated],
	}
}

// RecordedByHAMi is what the record of a bound pod lists; "" = it has none.
func RecordedByHAMi(pod *v1.Pod) string {
	for i := range pod.Status.Conditions {
		if node, list, _ := strings.Cut(pod.Status.Conditions[i].Message, " "); pod.Status.Conditions[i].Type == hamiRecord && node == pod.Spec.NodeName {
			return list
		}
	}
	return ""
}

// ListedByHAMi is what the record of a pod lists, else its annotation.
func ListedByHAMi(pod *v1.Pod) string {
	return cmp.Or(RecordedByHAMi(pod), pod.Annotations[HAMiAllocated])
}

// HAMiHeld is what a pod has of a GPU.
type HAMiHeld struct{ MemMiB, CoresPercent int64 }

// HeldByHAMi tells the devices of a bound pod by a list in HAMi's words, in its order; those that containers share once, with the sum
// of their parts, by UUID. `ofNode` are the node's. Where the list says else than the pod's limits, which nobody changes, or more than
// there is, these count, and doubt says so.
func HeldByHAMi(settings Settings, pod *v1.Pod, list string, ofNode []Device) (devices []Device, held map[string]HAMiHeld, doubt string, err error) {
	held = map[string]HAMiHeld{}
	sums := map[string]HAMiHeld{}
	listed := strings.Split(strings.TrimSuffix(list, ";"), ";")
	inits := min(len(listed)-len(pod.Spec.Containers), len(pod.Spec.InitContainers)) // older versions list none
	containers := containersOf(pod)[len(pod.Spec.InitContainers)-max(inits, 0):]
	for i := range max(len(listed), len(containers)) {
		var parts []string
		if i < len(listed) {
			parts = strings.FieldsFunc(listed[i], func(r rune) bool { return r == ':' })
		}
		asked := int64(0)
		if i < len(containers) {
			asked = quantity(containers[i], settings.Resource)
		}
		if asked != int64(len(parts)) {
			return nil, nil, "", fmt.Errorf("annotation %s: container %d: expected the %d GPUs that it asks for, found %d", HAMiAllocated, i, asked, len(parts))
		}
		passes := i < inits && !isSidecar(&pod.Spec.InitContainers[i]) // it ends before the containers begin
		for _, part := range parts {
			uuid, found, err := hamiPart(part)
			if err != nil {
				return nil, nil, "", fmt.Errorf("annotation %s: %w", HAMiAllocated, err)
			}
			at := slices.IndexFunc(ofNode, func(d Device) bool { return d.UUID == uuid })
			if at < 0 {
				return nil, nil, "", fmt.Errorf("annotation %s: device %s: expected a healthy GPU of node %s", HAMiAllocated, uuid, pod.Spec.NodeName)
			}
			has := found.as(containers[i], ofNode[at].MemMiB)
			if has != found {
				doubt = fmt.Sprintf("annotation %s: device %s: expected %d MiB and %d %% of cores at most, by the pod's limits and the GPU, found %d MiB and %d %%: the first count",
					HAMiAllocated, uuid, has.MemMiB, has.CoresPercent, found.MemMiB, found.CoresPercent)
			}
			sum := HAMiHeld{sums[uuid].MemMiB + has.MemMiB, sums[uuid].CoresPercent + has.CoresPercent}
			if _, known := held[uuid]; !known {
				devices = append(devices, ofNode[at])
			}
			held[uuid] = HAMiHeld{max(held[uuid].MemMiB, sum.MemMiB), max(held[uuid].CoresPercent, sum.CoresPercent)}
			if !passes {
				sums[uuid] = sum
			}
		}
	}
	if len(devices) == 0 {
		return nil, nil, "", fmt.Errorf("annotation %s: expected the pod's devices, found %.200q", HAMiAllocated, list)
	}
	return devices, held, doubt, nil
}

// as the container's limits state it, and the card has it. HAMi's defaults may make a part of all that they leave open.
func (h HAMiHeld) as(c *v1.Container, cardMiB int64) HAMiHeld {
	h = HAMiHeld{min(h.MemMiB, cardMiB), min(h.CoresPercent, wholePercent)}
	ask := HAMiAsk{}.of(c)
	if ask.MemMiB > 0 || ask.MemPercent > 0 {
		h.MemMiB = min(ask.on(cardMiB), cardMiB)
	}
	if ask.CoresPercent > 0 || ask.Part() {
		h.CoresPercent = ask.CoresPercent
	}
	return h
}

// hamiPart reads UUID,type,MiB,cores.
func hamiPart(device string) (uuid string, out HAMiHeld, err error) {
	fields := strings.Split(device, ",")
	if len(fields) < 4 || fields[0] == "" {
		return "", out, fmt.Errorf("expected UUID,type,MiB,cores of each device, found %.200q", device)
	}
	if out.MemMiB, err = strconv.ParseInt(fields[2], 10, 32); err != nil || out.MemMiB < 0 {
		return "", out, fmt.Errorf("device %.200s: expected a number of MiB, found %.200q", fields[0], fields[2])
	}
	if out.CoresPercent, err = strconv.ParseInt(fields[3], 10, 32); err != nil || out.CoresPercent < 0 {
		return "", out, fmt.Errorf("device %.200s: expected a percentage of cores, found %.200q", fields[0], fields[3])
	}
	uuid, _, _ = strings.Cut(fields[0], "[") // older versions name an instance of MIG behind the card
	return uuid, out, nil
}

// Holding is a pod as a job that has these parts of devices, whatever it asked for.
func (p Pod) Holding(devices []Device, held map[string]HAMiHeld) Pod {
	var memory, cores int64
	whole := true
	for _, device := range devices {
		one := held[device.UUID]
		memory, cores = max(memory, one.MemMiB), max(cores, one.CoresPercent)
		whole = whole && (one.MemMiB >= device.MemMiB || one.CoresPercent >= wholePercent)
	}
	p.HAMi.CoresPercent = cores
	p.Horus.GPUMilli, p.Horus.Exclusive = 0, whole
	p.reserve(memory)
	if !whole && p.Backend == Whole {
		p.Horus.Share = horus.ShareAnyone
	}
	if !whole && len(devices) == 1 && p.HAMi.ofCores() {
		p.Horus.GPUMilli = int32(cores * 10)
	}
	if !p.profiled {
		p.Horus.Demands = p.HAMi.demands(memory)
	}
	return p
}

// HAMiRegisterAnnotation is where HAMi's device plugin lists the GPUs of its node.
const HAMiRegisterAnnotation = "hami.io/node-nvidia-register"

// hamiDevice is a GPU as HAMi registers it. HAMi leaves out what is zero: without health it is not healthy.
type hamiDevice struct {
	ID     string `json:"id"`
	Count  int64  `json:"count"`  // pods that may share it
	DevMem int64  `json:"devmem"` // MiB
	Type   string `json:"type"`
	Mode   string `json:"mode"`
	Health bool   `json:"health"`
}

// fromHAMi takes the healthy GPUs in HAMi's order.
func fromHAMi(out Node, settings Settings, node *v1.Node, find Finder) Node {
	refuse := func(format string, args ...any) Node {
		out.Horus.Devices, out.Devices, out.Raw = nil, nil, nil
		out.Problem = fmt.Sprintf("node %s: annotation %s: ", node.Name, HAMiRegisterAnnotation) + fmt.Sprintf(format, args...)
		return out
	}
	if !settings.HAMi {
		return refuse("HAMi shares these GPUs, and it is off here: switch it on with gpus.hami.enabled")
	}
	registered, err := readHAMiNode(node.Annotations[HAMiRegisterAnnotation])
	if err != nil {
		return refuse("%v", err)
	}
	if len(registered) > mostDevices {
		return refuse("expected at most %d devices, found %d", mostDevices, len(registered))
	}
	for i, one := range registered {
		product := one.Type
		unknown := find(product, "")
		if label := node.Labels[productLabel]; unknown != nil && find(label, "") == nil {
			product, unknown = label, nil
		}
		switch {
		case one.ID == "" || strings.ContainsAny(one.ID, ",:;"):
			return refuse("device %d: id: expected a UUID, found %q", i, one.ID)
		case one.Mode != "" && one.Mode != hamiCore:
			return refuse("device %s: mode: expected %s, found %q, which is not placed", one.ID, hamiCore, one.Mode)
		case one.Count < 1:
			return refuse("device %s: count: expected 1 or more, found %d", one.ID, one.Count)
		case one.DevMem < 1:
			return refuse("device %s: devmem: expected 1 MiB or more, found %d", one.ID, one.DevMem)
		case unknown != nil:
			return refuse("device %s: type: %v", one.ID, unknown)
		case !one.Health:
			out.Skipped[Unhealthy]++
			continue
		}
		out.Horus.Devices = append(out.Horus.Devices, horus.Device{
			GPUType: product, ID: one.ID, SharingMode: horus.TimeSlice, MaxTenants: int32(min(one.Count, mostTenants)), MemMiB: one.DevMem,
		})
		out.Devices = append(out.Devices, Device{Name: one.ID, UUID: one.ID, MemMiB: one.DevMem})
		out.Raw = append(out.Raw, &resourceapi.Device{
			Name: one.ID,
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"uuid": {StringValue: &one.ID}, "productName": {StringValue: &one.Type},
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{attributeMemory: {Value: *resource.NewQuantity(one.DevMem*mib, resource.BinarySI)}},
		})
	}
	if len(out.Devices) == 0 {
		return refuse("expected a healthy device, found none of %d", len(registered))
	}
	out.Backend = HAMi
	return out
}

// readHAMiNode reads a JSON list, or "UUID,count,MiB,cores,type,numa,health:" of each device with or without ",index,mode".
func readHAMiNode(text string) (out []hamiDevice, err error) {
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, fmt.Errorf("expected a JSON list of devices: %w", err)
		}
		return out, nil
	}
	for i, device := range strings.Split(text, ":") {
		if device == "" {
			continue
		}
		fields := strings.Split(device, ",")
		if len(fields) != 7 && len(fields) != 9 {
			return nil, fmt.Errorf("device %d: expected UUID,count,MiB,cores,type,numa,health[,index,mode], found %q", i, device)
		}
		one := hamiDevice{ID: fields[0], Type: fields[4]}
		if one.Count, err = strconv.ParseInt(fields[1], 10, 32); err != nil {
			return nil, fmt.Errorf("device %d: count: expected a whole number, found %q", i, fields[1])
		}
		if one.DevMem, err = strconv.ParseInt(fields[2], 10, 32); err != nil {
			return nil, fmt.Errorf("device %d: devmem: expected a whole number of MiB, found %q", i, fields[2])
		}
		if one.Health, err = strconv.ParseBool(fields[6]); err != nil {
			return nil, fmt.Errorf("device %d: health: expected true or false, found %q", i, fields[6])
		}
		if len(fields) == 9 {
			one.Mode = fields[8]
		}
		out = append(out, one)
	}
	return out, nil
}
