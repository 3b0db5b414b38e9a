// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// State of a node or a device.
type State int32

// States. Drained: residents stay, nothing new comes. Down: residents are reported.
const (
	Up      State = C.HORUS_STATE_UP
	Drained State = C.HORUS_STATE_DRAINED
	Down    State = C.HORUS_STATE_DOWN
)

// SharingMode says how tenants share a device.
type SharingMode int32

// Sharing modes; 0 is MIG with a MIG profile, else TimeSlice.
const (
	Exclusive SharingMode = C.HORUS_SHARING_EXCLUSIVE
	TimeSlice SharingMode = C.HORUS_SHARING_TIME_SLICE
	MPS       SharingMode = C.HORUS_SHARING_MPS
	MIG       SharingMode = C.HORUS_SHARING_MIG
	// TimeSliceOrMPS is of a cluster's device alone, which can change while it is empty: Decision.SharingMode says which.
	TimeSliceOrMPS SharingMode = C.HORUS_SHARING_TIME_SLICE_OR_MPS
)

// WholeNode as the device of SetState is the node itself.
const WholeNode = ^uint32(0)

// NoDevice is the device of a task without GPUs.
const NoDevice = ^uint32(0)

// Device is a GPU, or one MIG instance of a card. Cards and NVLink islands are numbered from 1, so that 0 is "not stated".
type Device struct {
	GPUType      string // name or alias of the catalogue
	ID           string // the caller's, such as the driver's UUID; unique in the node
	SharingMode  SharingMode
	MIGProfile   string // "3g.20gb" of a MIG instance
	Card         int32  // 1 to 32,768: MIG instances of one card share it, and only they do; 0 = a card of its own
	NVLinkIsland int32  // devices with the same number share NVLink; 0 = none
	PCIeSwitch   int32
	Socket       int32
	MaxTenants   int32 // 0 = the placer's limit
	MemMiB       int64 // as the driver reports it; 0 = the catalogue's
}

// Node is one machine.
type Node struct {
	ID         uint64 // the caller's; unique in the cluster
	Name       string
	CPUMilli   int64 // thousandths of a core
	MemMiB     int64 // host memory
	StorageMBs int64 // 0 = not tracked
	NetworkMBs int64 // to other nodes, one direction; 0 = 12,000 (100 Gbit/s)
	Rack       uint64
	Labels     []Label
	Devices    []Device
}

func (n *Node) c(a *arena) *C.horus_node {
	count := len(n.Devices)
	types, profiles, ids := rows[*C.char](a, count), rows[*C.char](a, count), rows[*C.char](a, count)
	modes, cards, islands := rows[C.int32_t](a, count), rows[C.int32_t](a, count), rows[C.int32_t](a, count)
	switches, sockets, tenants := rows[C.int32_t](a, count), rows[C.int32_t](a, count), rows[C.int32_t](a, count)
	memory := rows[C.int64_t](a, count)
	for i := range n.Devices {
		d := &n.Devices[i]
		types[i] = a.required("Devices.GPUType", d.GPUType)
		profiles[i], ids[i] = a.text("Devices.MIGProfile", d.MIGProfile), a.text("Devices.ID", d.ID)
		modes[i], cards[i], islands[i] = C.int32_t(d.SharingMode), C.int32_t(d.Card-1), C.int32_t(d.NVLinkIsland-1)
		switches[i], sockets[i] = C.int32_t(d.PCIeSwitch), C.int32_t(d.Socket)
		tenants[i], memory[i] = C.int32_t(d.MaxTenants), C.int64_t(d.MemMiB)
	}
	out := row[C.horus_node](a)
	out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
	out.device_count, out.id, out.name = C.uint32_t(count), C.uint64_t(n.ID), a.text("Name", n.Name)
	out.cpu_milli, out.mem_mib = C.int64_t(n.CPUMilli), C.int64_t(n.MemMiB)
	out.storage_mb_s, out.network_mb_s = C.int64_t(n.StorageMBs), C.int64_t(n.NetworkMBs)
	out.rack = C.uint64_t(n.Rack)
	out.gpu_types, out.mig_profiles = unsafe.SliceData(types), unsafe.SliceData(profiles)
	out.device_ids, out.sharing_modes = unsafe.SliceData(ids), unsafe.SliceData(modes)
	out.physical_gpus, out.nvlink_islands = unsafe.SliceData(cards), unsafe.SliceData(islands)
	out.pcie_switches, out.sockets = unsafe.SliceData(switches), unsafe.SliceData(sockets)
	out.max_tenants, out.gpu_mem_mib = unsafe.SliceData(tenants), unsafe.SliceData(memory)
	out.label_count = C.size_t(len(n.Labels))
	out.label_keys, out.label_values = a.labels("Labels", n.Labels)
	return out
}

// Slot is a device that a task of a job is on; NoDevice for a task without GPUs.
type Slot struct {
	Node   uint64
	Device uint32 // index within the node
	Task   uint32 // of the gang, from 0
}

// slotColumns are slots as the library takes them.
func slotColumns(a *arena, slots []Slot) (*C.uint64_t, *C.uint32_t, *C.uint32_t) {
	nodes, devices, tasks := rows[C.uint64_t](a, len(slots)), rows[C.uint32_t](a, len(slots)), rows[C.uint32_t](a, len(slots))
	for i, slot := range slots {
		nodes[i], devices[i], tasks[i] = C.uint64_t(slot.Node), C.uint32_t(slot.Device), C.uint32_t(slot.Task)
	}
	return unsafe.SliceData(nodes), unsafe.SliceData(devices), unsafe.SliceData(tasks)
}

// readSlots asks for slots, twice where there are more than usual.
func readSlots(ask func(slots *C.horus_slots, count *C.size_t, e *C.horus_error) C.horus_status) ([]Slot, error) {
	var out []Slot
	_, err := grown(8, func(capacity int, count *C.size_t) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status {
			c := row[C.horus_slots](a)
			c.struct_size, c.capacity = C.uint32_t(unsafe.Sizeof(*c)), C.size_t(capacity)
			nodes, devices, tasks := rows[C.uint64_t](a, capacity), rows[C.uint32_t](a, capacity), rows[C.uint32_t](a, capacity)
			c.node_ids, c.devices, c.tasks = unsafe.SliceData(nodes), unsafe.SliceData(devices), unsafe.SliceData(tasks)
			status := ask(c, count, e)
			if status == C.HORUS_OK {
				out = make([]Slot, int(*count))
				for i := range out {
					out[i] = Slot{Node: uint64(nodes[i]), Device: uint32(devices[i]), Task: uint32(tasks[i])}
				}
			}
			return status
		})
	})
	return out, err
}

// readIDs asks for ids, twice where there are more than usual.
func readIDs(guess int, ask func(capacity C.size_t, ids *C.uint64_t, count *C.size_t, e *C.horus_error) C.horus_status) ([]uint64, error) {
	var out []uint64
	n, err := grown(guess, func(capacity int, count *C.size_t) error {
		out = make([]uint64, capacity)
		return call(func(_ *arena, e *C.horus_error) C.horus_status {
			return ask(C.size_t(capacity), (*C.uint64_t)(unsafe.SliceData(out)), count, e)
		})
	})
	if err != nil {
		return nil, err
	}
	return out[:n], nil
}

// Cluster is nodes, devices and the jobs on them.
type Cluster struct{ handle[*C.horus_cluster] }

func freeCluster(p *C.horus_cluster) { C.horus_cluster_free(p) }

func newCluster(catalogue *Catalogue, make func(a *arena, types *C.horus_catalogue, out **C.horus_cluster, e *C.horus_error) C.horus_status) (*Cluster, error) {
	var out *C.horus_cluster
	err := catalogue.with(func(types *C.horus_catalogue) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status { return make(a, types, &out, e) })
	})
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	own(&c.handle, out, freeCluster)
	return c, nil
}

// NewCluster is an empty cluster over the types of the catalogue.
func NewCluster(catalogue *Catalogue) (*Cluster, error) {
	return newCluster(catalogue, func(_ *arena, types *C.horus_catalogue, out **C.horus_cluster, e *C.horus_error) C.horus_status {
		return C.horus_cluster_create(types, out, e)
	})
}

// RestoreCluster is a cluster from the bytes of Snapshot; later decisions are those of the original.
// Errors: ErrCorrupt, ErrVersion, ErrNotFound (type), ErrLimit.
func RestoreCluster(catalogue *Catalogue, snapshot []byte) (*Cluster, error) {
	return newCluster(catalogue, func(_ *arena, types *C.horus_catalogue, out **C.horus_cluster, e *C.horus_error) C.horus_status {
		return C.horus_cluster_restore(types, unsafe.Pointer(unsafe.SliceData(snapshot)), C.size_t(len(snapshot)), out, e)
	})
}

// RestoreClusterFile is a cluster from a file of SnapshotFile. Errors: ErrIO, and those of RestoreCluster.
func RestoreClusterFile(catalogue *Catalogue, path string) (*Cluster, error) {
	return newCluster(catalogue, func(a *arena, types *C.horus_catalogue, out **C.horus_cluster, e *C.horus_error) C.horus_status {
		name := a.required("path", path)
		if a.err != nil {
			return 0
		}
		return C.horus_cluster_restore_file(types, name, out, e)
	})
}

// Close frees the cluster.
func (c *Cluster) Close() error { c.close(freeCluster); return nil }

// write runs a call that nobody else may overlap.
func (c *Cluster) write(f func(a *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status) error {
	return c.alone(func(p *C.horus_cluster) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status { return f(a, p, e) })
	})
}

// read runs a call that may overlap others.
func (c *Cluster) read(f func(a *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status) error {
	return c.shared(func(p *C.horus_cluster) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status { return f(a, p, e) })
	})
}

// AddNode adds a node. Errors: ErrExists (id), ErrInvalidArgument (field, expected, found), ErrNotFound (GPU type).
func (c *Cluster) AddNode(node Node) error {
	return c.write(func(a *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
		n := node.c(a)
		if a.err != nil {
			return 0
		}
		return C.horus_cluster_add_node(p, n, e)
	})
}

// ChangeNode replaces the description of node.ID. Errors: ErrNotFound, ErrState (a resident would lose its place, or its
// device would have another ID), as AddNode.
func (c *Cluster) ChangeNode(node Node) error {
	return c.write(func(a *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
		n := node.c(a)
		if a.err != nil {
			return 0
		}
		return C.horus_cluster_change_node(p, n, e)
	})
}

// RemoveNode removes a node. Errors: ErrNotFound, ErrState (jobs are there: release them first).
func (c *Cluster) RemoveNode(id uint64) error {
	return c.write(func(_ *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
		return C.horus_cluster_remove_node(p, C.uint64_t(id), e)
	})
}

// SetState sets the state of a device of a node, or of the node (WholeNode). What is there stays. Errors: ErrNotFound.
func (c *Cluster) SetState(node uint64, device uint32, state State) error {
	return c.write(func(_ *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
		return C.horus_cluster_set_state(p, C.uint64_t(node), C.uint32_t(device), C.int32_t(state), 0, nil, nil, e)
	})
}

// Adopt takes in a job that runs already, even where the library would not have placed it. The reason is the first
// constraint that it breaks where it runs, or ReasonNone.
// Errors: ErrExists, ErrNotFound (a place), ErrInvalidArgument (a number of slots other than the job has), ErrLimit.
func (c *Cluster) Adopt(job Job, slots []Slot) (Reason, error) {
	var reason C.int32_t
	err := c.write(func(a *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
		j := putJob(a, &job)
		nodes, devices, tasks := slotColumns(a, slots)
		if a.err != nil {
			return 0
		}
		return C.horus_cluster_adopt(p, j, C.size_t(len(slots)), nodes, devices, tasks, &reason, e)
	})
	return Reason(reason), err
}

// Apply carries out a plan, or nothing of it. Errors: ErrConflict (a node that it uses changed since: plan again),
// ErrExists (a job of it is resident: applying twice is harmless), ErrNotFound, ErrState.
func (c *Cluster) Apply(plan *Plan) error {
	return plan.shared(func(pl *C.horus_plan) error {
		return c.read(func(_ *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
			return C.horus_cluster_apply(p, pl, e)
		})
	})
}

// Release removes a job. Errors: ErrNotFound, so that a second release is harmless.
func (c *Cluster) Release(job uint64) error {
	return c.read(func(_ *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
		return C.horus_cluster_release(p, C.uint64_t(job), e)
	})
}

// ClusterInfo is totals over a cluster.
type ClusterInfo struct {
	Nodes, Devices, DevicesUsed, Jobs, Slots uint64
	GPUUtilPct                               float64 // predicted, mean over all devices
	GPUMemMiB, GPUMemReservedMiB             int64
	CPUMilli, CPUUsedMilli                   int64
	MemMiB, MemUsedMiB                       int64
	StateHash                                uint64 // equal for equal states, whatever led there
	BytesHeld                                uint64
}

// Info is the totals.
func (c *Cluster) Info() (ClusterInfo, error) {
	var info ClusterInfo
	err := c.read(func(a *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
		out := row[C.horus_cluster_info](a)
		out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
		status := C.horus_cluster_get_info(p, out, e)
		info = ClusterInfo{
			Nodes: uint64(out.nodes), Devices: uint64(out.devices), DevicesUsed: uint64(out.devices_used),
			Jobs: uint64(out.jobs), Slots: uint64(out.slots), GPUUtilPct: float64(out.gpu_util_pct),
			GPUMemMiB: int64(out.gpu_mem_mib), GPUMemReservedMiB: int64(out.gpu_mem_reserved_mib),
			CPUMilli: int64(out.cpu_milli), CPUUsedMilli: int64(out.cpu_used_milli),
			MemMiB: int64(out.mem_mib), MemUsedMiB: int64(out.mem_used_mib),
			StateHash: uint64(out.state_hash), BytesHeld: uint64(out.bytes_held),
		}
		return status
	})
	return info, err
}

// Nodes are the ids of all nodes, ascending.
func (c *Cluster) Nodes() ([]uint64, error) {
	var ids []uint64
	err := c.shared(func(p *C.horus_cluster) (err error) {
		ids, err = readIDs(1_024, func(capacity C.size_t, out *C.uint64_t, count *C.size_t, e *C.horus_error) C.horus_status {
			return C.horus_cluster_nodes(p, capacity, out, count, e)
		})
		return err
	})
	return ids, err
}

// Jobs are the ids of all resident jobs, ascending.
func (c *Cluster) Jobs() ([]uint64, error) {
	var ids []uint64
	err := c.shared(func(p *C.horus_cluster) (err error) {
		ids, err = readIDs(1_024, func(capacity C.size_t, out *C.uint64_t, count *C.size_t, e *C.horus_error) C.horus_status {
			return C.horus_cluster_jobs(p, capacity, out, count, e)
		})
		return err
	})
	return ids, err
}

// DeviceInfo is a device as it stands.
type DeviceInfo struct {
	ID             string
	GPUTypeIndex   int // position in the catalogue
	SharingMode    SharingMode
	MIGProfile     string
	NodeState      State
	DeviceState    State
	MemMiB         int64
	MemReservedMiB int64 // by the tenants' requests
	MemLimitMiB    int64 // sum of the tenants' limits
	MemUsedMiB     int64 // by the tenants' estimates
	GPUUtilPct     float64
	GPUMilliUsed   int64
	Jobs           []uint64 // tenants, ascending
}

// Device tells a device of a node. Errors: ErrNotFound.
func (c *Cluster) Device(node uint64, device uint32) (DeviceInfo, error) {
	var info DeviceInfo
	err := c.shared(func(p *C.horus_cluster) error {
		jobs, err := readIDs(8, func(capacity C.size_t, ids *C.uint64_t, count *C.size_t, e *C.horus_error) C.horus_status {
			a := takeArena()
			defer a.give()
			out := row[C.horus_device_info](a)
			out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
			status := C.horus_cluster_get_device(p, C.uint64_t(node), C.uint32_t(device), out, capacity, ids, count, e)
			info = DeviceInfo{
				ID: C.GoString(out.device_id), GPUTypeIndex: int(out.gpu_type), SharingMode: SharingMode(out.sharing_mode),
				MIGProfile: C.GoString(out.mig_profile), NodeState: State(out.node_state),
				DeviceState: State(out.device_state), MemMiB: int64(out.mem_mib),
				MemReservedMiB: int64(out.mem_reserved_mib), MemLimitMiB: int64(out.mem_limit_mib),
				MemUsedMiB: int64(out.mem_used_mib), GPUUtilPct: float64(out.gpu_util_pct),
				GPUMilliUsed: int64(out.gpu_milli_used),
			}
			return status
		})
		info.Jobs = jobs
		return err
	})
	return info, err
}

// Resident is a job of the cluster.
type Resident struct {
	Job           Job  // all that was stated of it, as it can be planned again
	Adopted       bool // it came by Adopt
	OverCommitted bool // adopted where a constraint would have refused it
	SMCapPct      int  // under which it runs, stated or chosen; 0 = none
	Probe         bool // alone as a probe, which Job does not state
}

// Job tells a resident job. Errors: ErrNotFound.
func (c *Cluster) Job(id uint64) (Resident, error) {
	var out Resident
	err := c.shared(func(p *C.horus_cluster) error {
		_, err := grown(4<<10, func(capacity int, count *C.size_t) error {
			return call(func(a *arena, e *C.horus_error) C.horus_status {
				info := row[C.horus_job_info](a)
				info.struct_size = C.uint32_t(unsafe.Sizeof(*info))
				status := C.horus_cluster_get_job(p, C.uint64_t(id), info, C.size_t(capacity), a.bytes(capacity), count, e)
				if status == C.HORUS_OK {
					out = Resident{
						Job: jobOf(info.job), Adopted: info.adopted == 1, OverCommitted: info.over_committed == 1,
						SMCapPct: int(info.sm_cap_pct), Probe: info.probe == 1,
					}
				}
				return status
			})
		})
		return err
	})
	return out, err
}

// JobSlots are the devices of a resident job. Errors: ErrNotFound.
func (c *Cluster) JobSlots(job uint64) ([]Slot, error) {
	var slots []Slot
	err := c.shared(func(p *C.horus_cluster) (err error) {
		slots, err = readSlots(func(out *C.horus_slots, count *C.size_t, e *C.horus_error) C.horus_status {
			return C.horus_cluster_job_slots(p, C.uint64_t(job), out, count, e)
		})
		return err
	})
	return slots, err
}

// Snapshot is the whole state as versioned, checksummed bytes; equal states give equal bytes.
func (c *Cluster) Snapshot() ([]byte, error) {
	var out []byte
	err := c.shared(func(p *C.horus_cluster) (err error) {
		out, err = readBytes(func(capacity C.size_t, bytes unsafe.Pointer, count *C.size_t, e *C.horus_error) C.horus_status {
			return C.horus_cluster_snapshot(p, capacity, bytes, count, e)
		})
		return err
	})
	return out, err
}

// SnapshotFile writes the snapshot to a file, which a reader sees old or new, whole, even if the machine stops. Errors: ErrIO.
func (c *Cluster) SnapshotFile(path string) error {
	return c.read(func(a *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
		name := a.required("path", path)
		if a.err != nil {
			return 0
		}
		return C.horus_cluster_snapshot_file(p, name, e)
	})
}

// readBytes asks for bytes: their number first.
func readBytes(ask func(capacity C.size_t, bytes unsafe.Pointer, count *C.size_t, e *C.horus_error) C.horus_status) ([]byte, error) {
	var out []byte
	n, err := grown(0, func(capacity int, count *C.size_t) error {
		out = make([]byte, capacity)
		return call(func(_ *arena, e *C.horus_error) C.horus_status {
			return ask(C.size_t(capacity), unsafe.Pointer(unsafe.SliceData(out)), count, e)
		})
	})
	if err != nil {
		return nil, err
	}
	return out[:n], nil
}
