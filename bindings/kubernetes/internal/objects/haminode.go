// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"libhorus.org/horus"
)

// HAMiRegisterAnnotation is where HAMi's device plugin lists the GPUs of its node.
const HAMiRegisterAnnotation = "hami.io/node-nvidia-register"

const (
	hamiCore    = "hami-core" // GPUs whose memory and cores HAMi-core divides; the other modes are mig and mps
	mostTenants = 256         // of a device, in the library
)

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
