// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// A claim has its devices from the write of its status on, and its pod is bound by the next write. Who dies between the two
// leaves a pod that holds devices and is on no node.

// SetClaim looks again at the pods of a claim.
func (m *Mirror) SetClaim(claim *resourceapi.ResourceClaim) {
	defer m.enter()()
	for _, one := range m.awaiting(claim) {
		m.setPod(one.object, one.first)
	}
	for _, consumer := range claim.Status.ReservedFor {
		if m.Early && m.pods[consumer.UID] == nil {
			m.claim(claim.Namespace, consumer.Name, consumer.UID)
		}
	}
	switch {
	case m.poolOf(claim) == "":
		m.free(claim.UID)
	case len(claim.Status.ReservedFor) > 0:
		m.waiting.drop(claim.UID)
		m.drop(claim.UID) // its stand-in
	case len(m.claims[claim.UID]) == 0 && len(m.awaiting(claim)) == 0:
		m.setPod(standIn(claim), false)
	}
}

// awaiting are the pods that name a claim, and wait.
func (m *Mirror) awaiting(claim *resourceapi.ResourceClaim) (out []waiting) {
	for _, waiters := range m.waiting.nodes {
		for uid, one := range waiters {
			if uid != claim.UID && objects.NamesClaim(one.object, claim) {
				out = append(out, one)
			}
		}
	}
	return out
}

// claim takes in a pod that waits to be bound, with what its claims have.
func (m *Mirror) claim(namespace, name string, uid types.UID) {
	if object := m.lookups.Pod(namespace, name); object != nil && object.UID == uid && object.Spec.NodeName == "" {
		m.setPod(object, false)
	}
}

// DeleteClaim frees what a claim had for pods that are not bound.
func (m *Mirror) DeleteClaim(claim *resourceapi.ResourceClaim) {
	defer m.enter()()
	m.free(claim.UID)
}

func (m *Mirror) free(claim types.UID) {
	m.waiting.drop(claim)
	for uid, p := range m.claims[claim] {
		if p.hold == claimed {
			m.drop(uid)
			if len(p.claims) > 1 {
				m.setPod(p.object, false)
			}
		}
	}
}

// standIn is a pod for a claim that has devices and names no pod: nobody knows whether who comes shares them.
func standIn(claim *resourceapi.ResourceClaim) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		Spec:       v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{{Name: claim.Name, ResourceClaimName: &claim.Name}}},
	}
}

// standDown ends the wait of stand-ins of a pod's claims: the pod is here now.
func (m *Mirror) standDown(object *v1.Pod) {
	claims, _ := m.claimsOf(object)
	for _, claim := range claims {
		if claim.UID != object.UID {
			m.waiting.drop(claim.UID)
		}
	}
}

// claimsOf a pod that have devices; all says whether those are all that it names.
func (m *Mirror) claimsOf(object *v1.Pod) (claims []*resourceapi.ResourceClaim, all bool) {
	for _, name := range objects.ClaimNames(object) {
		if claim, err := m.lookups.Claim(object.Namespace, name); err == nil && claim.Status.Allocation != nil {
			claims = append(claims, claim)
		}
	}
	return claims, len(claims) == len(object.Spec.ResourceClaims)
}

// early is a pool of the devices that a pod's claims have before it is bound.
func (m *Mirror) early(object *v1.Pod) (pool string) {
	if !m.Early {
		return ""
	}
	claims, _ := m.claimsOf(object)
	for _, claim := range claims {
		pool = cmp.Or(pool, m.poolOf(claim))
	}
	return pool
}

// poolOf the devices that a claim has; "" = it has none of ours.
func (m *Mirror) poolOf(claim *resourceapi.ResourceClaim) string {
	for _, result := range ptr.Deref(claim.Status.Allocation, resourceapi.AllocationResult{}).Devices.Results {
		if result.Driver == m.settings.Driver {
			return result.Pool
		}
	}
	return ""
}

// link notes by which claims a pod has its devices; those that were reserved for it are written into its claims later.
func (m *Mirror) link(p *pod) {
	if p.claims != nil {
		return
	}
	claims, _ := m.claimsOf(p.object)
	for _, claim := range claims {
		if m.poolOf(claim) == "" {
			continue
		}
		if m.claims[claim.UID] == nil {
			m.claims[claim.UID] = map[types.UID]*pod{}
		}
		p.claims, m.claims[claim.UID][p.object.UID] = append(p.claims, claim.UID), p
		if p.object.UID != claim.UID {
			m.waiting.drop(claim.UID)
			m.drop(claim.UID) // its stand-in
		}
	}
}

// Follow takes in a pod whose claims have devices already, and names a pod on one of these that does not share it; "" = none.
func (m *Mirror) Follow(object *v1.Pod) (beside string) {
	defer m.enter()()
	m.setPod(object, false)
	p := m.pods[object.UID]
	if p == nil {
		return ""
	}
	for _, other := range m.nodes[p.node].pods {
		if slices.ContainsFunc(p.slots, func(slot horus.Slot) bool { return slices.Contains(other.slots, slot) }) && !m.mayShare(p, other) {
			beside = max(beside, m.nameOf(other.id))
		}
	}
	return beside
}

// Has says whether devices are held for a pod.
func (m *Mirror) Has(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods[uid] != nil
}

// mayShare: both agree to it, or have the device by one claim.
func (m *Mirror) mayShare(a, b *pod) bool {
	m.link(a)
	m.link(b)
	anyone := a.job.Share == horus.ShareAnyone && b.job.Share == horus.ShareAnyone
	return a == b || slices.ContainsFunc(a.claims, func(claim types.UID) bool { return slices.Contains(b.claims, claim) }) ||
		(!a.job.Exclusive && !b.job.Exclusive && (anyone || a.job.Tenant == b.job.Tenant))
}

// OverCommitted counts the devices that have pods which do not share them with each other, or more memory taken than they have.
func (m *Mirror) OverCommitted() (count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	on := map[horus.Slot][]*pod{}
	for _, p := range m.pods {
		for _, slot := range p.slots {
			if m.tenants[slot] > 1 {
				on[slot] = append(on[slot], p)
			}
		}
	}
	for _, n := range m.nodes {
		for i, device := range n.view.Horus.Devices {
			if pods := on[horus.Slot{Node: n.id, Device: uint32(i)}]; len(pods) > 0 && m.over(pods, device.MemMiB) {
				count++
			}
		}
	}
	return count
}

func (m *Mirror) over(pods []*pod, memMiB int64) bool {
	counted, taken := map[types.UID]bool{}, int64(0)
	for i, p := range pods {
		if slices.ContainsFunc(pods[:i], func(other *pod) bool { return !m.mayShare(p, other) }) {
			return true
		}
		if len(p.claims) == 0 || !counted[p.claims[0]] {
			taken += objects.ReservedMiB(p.job)
		}
		for _, claim := range p.claims {
			counted[claim] = true
		}
	}
	return memMiB > 0 && taken > memMiB
}
