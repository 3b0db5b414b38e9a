// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Catalogue is the known GPU types. Immutable. Where a function takes a *Catalogue, nil is the built-in one.
type Catalogue struct{ handle[*C.horus_catalogue] }

func freeCatalogue(p *C.horus_catalogue) { C.horus_catalogue_free(p) }

// GPU is one type. Rates are dense peaks at the boost clock; 0 = not supported.
type GPU struct {
	Name              string // kebab-case, such as "a100-40gb"
	DisplayName       string
	Architecture      string
	Source            string // where the numbers come from
	ComputeCapability int    // major * 10 + minor
	SMs               int
	MemMiB            int64
	MemBandwidthMBs   int64
	FP32GFLOPS        int64
	FP16GFLOPS        int64
}

// DefaultCatalogue is the built-in catalogue.
func DefaultCatalogue() (*Catalogue, error) {
	var out *C.horus_catalogue
	err := call(func(_ *arena, e *C.horus_error) C.horus_status { return C.horus_catalogue_default(&out, e) })
	if err != nil {
		return nil, err
	}
	c := &Catalogue{}
	own(&c.handle, out, freeCatalogue)
	return c, nil
}

// Close frees the catalogue; what was made from it keeps what it needs.
func (c *Catalogue) Close() error { c.close(freeCatalogue); return nil }

// Find returns the position of the type called `name`: its name or an alias, in any case, with or without its brand.
// Errors: ErrNotFound, with near names.
func (c *Catalogue) Find(name string) (int, error) {
	var index C.size_t
	err := c.shared(func(p *C.horus_catalogue) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status {
			n := a.required("name", name)
			if a.err != nil {
				return 0
			}
			return C.horus_catalogue_find(p, n, &index, e)
		})
	})
	return int(index), err
}

// FindProfile is Find of a type of which there are MIG instances of that profile, such as "1g.10gb".
// Errors: ErrNotFound, also where the type has no such profile.
func (c *Catalogue) FindProfile(name, profile string) (int, error) {
	index, err := c.Find(name)
	if err != nil {
		return index, err
	}
	err = c.shared(func(p *C.horus_catalogue) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status {
			out := row[C.horus_gpu](a)
			out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
			status := C.horus_catalogue_get(p, C.size_t(index), out, e)
			for _, mig := range unsafe.Slice(out.mig_profiles, out.mig_count) {
				if C.GoString(mig.name) == profile {
					return status
				}
			}
			a.err = &Error{Status: ErrNotFound, Message: fmt.Sprintf("profile: expected one of the %d MIG profiles of %s, found %q",
				out.mig_count, C.GoString(out.name), profile)}
			return status
		})
	})
	return index, err
}

// Len is the number of types; 0 of a closed catalogue.
func (c *Catalogue) Len() int {
	n := 0
	_ = c.shared(func(p *C.horus_catalogue) error { n = int(C.horus_catalogue_count(p)); return nil })
	return n
}

// At returns the type at `index`. Errors: ErrNotFound.
func (c *Catalogue) At(index int) (GPU, error) {
	var gpu GPU
	err := c.shared(func(p *C.horus_catalogue) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status {
			out := row[C.horus_gpu](a)
			out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
			status := C.horus_catalogue_get(p, C.size_t(index), out, e)
			gpu = GPU{
				Name: C.GoString(out.name), DisplayName: C.GoString(out.display_name),
				Architecture: C.GoString(out.architecture), Source: C.GoString(out.source),
				ComputeCapability: int(out.compute_capability), SMs: int(out.sm_count), MemMiB: int64(out.mem_mib),
				MemBandwidthMBs: int64(out.mem_bandwidth_mb_s), FP32GFLOPS: int64(out.fp32_gflops),
				FP16GFLOPS: int64(out.fp16_gflops),
			}
			return status
		})
	})
	return gpu, err
}

// with runs f with the C catalogue; nil stands for the built-in one.
func (c *Catalogue) with(f func(*C.horus_catalogue) error) error {
	if c == nil {
		return f(nil)
	}
	return c.shared(f)
}
