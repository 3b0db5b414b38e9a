// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/learn"
)

// devicesOf tells devices as they are learned from, and puts the pods on them into `tenants`, by their keys.
func (o *Observer) devicesOf(occupied []mirror.Occupied, tenants map[string]mirror.Tenant) []learn.Device {
	out := make([]learn.Device, len(occupied))
	for i, device := range occupied {
		out[i] = learn.Device{Node: device.Node, ID: device.Device.UUID, GPUType: device.Horus.GPUType, SharingMode: device.Horus.SharingMode}
		for _, tenant := range device.Tenants {
			key := string(tenant.Pod.UID)
			kind, demand := o.kindOf(device.Horus.GPUType, tenant)
			tenants[key] = tenant
			out[i].Tenants = append(out[i].Tenants, learn.Tenant{
				Key: key, Pod: tenant.Pod.Namespace + "/" + tenant.Pod.Name, Kind: kind, Demand: demand, GPUs: tenant.GPUs,
			})
		}
	}
	return out
}

// kindOf a tenant on a GPU type, and its demand there; none where it names no profile.
func (o *Observer) kindOf(gpuType string, tenant mirror.Tenant) (learn.Kind, horus.Demand) {
	name := tenant.Pod.Annotations[objects.ProfileAnnotation]
	at, err := o.Catalogue.Find(gpuType)
	if name == "" || err != nil {
		return learn.Kind{}, horus.Demand{}
	}
	for _, demand := range tenant.Job.Demands {
		if its, err := o.Catalogue.Find(demand.GPUType); err == nil && its == at && demand.Demand.ProfileID != 0 {
			return learn.Kind{Owner: tenant.Pod.Namespace, Profile: name, GPUType: demand.GPUType}, demand.Demand
		}
	}
	return learn.Kind{}, horus.Demand{}
}
