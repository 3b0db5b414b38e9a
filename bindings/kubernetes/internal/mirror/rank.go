// SPDX-License-Identifier: Apache-2.0

package mirror

import "slices"

// Distance of ids at either end; between two neighbours there is room for 40 halvings, and names in random order need some
// 4.3 ln(nodes) of them (the height of a random search tree).
const stride = 1 << 40

// ranked keeps names in order and gives each an id that orders alike, so that of equal places the library takes the one
// whose node comes first by name, in whatever order nodes became known.
type ranked struct {
	names []string
	ids   []uint64
	spare uint64 // of the next id that had no room at its place
}

func (r *ranked) add(name string) uint64 {
	at, _ := slices.BinarySearch(r.names, name)
	var id uint64
	switch {
	case len(r.names) == 0:
		id = 1 << 63
	case at == 0:
		id = r.ids[0] - stride
	case at == len(r.names):
		id = r.ids[at-1] + stride
	default:
		id = r.ids[at-1] + (r.ids[at]-r.ids[at-1])/2
	}
	if slices.Contains(r.ids, id) { // crowded: any other will do
		r.spare++
		id = r.spare
	}
	r.names, r.ids = slices.Insert(r.names, at, name), slices.Insert(r.ids, at, id)
	return id
}

func (r *ranked) drop(name string) {
	if at, found := slices.BinarySearch(r.names, name); found {
		r.names, r.ids = slices.Delete(r.names, at, at+1), slices.Delete(r.ids, at, at+1)
	}
}
