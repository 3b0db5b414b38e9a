// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <stdlib.h>
#include <horus/horus.h>
*/
import "C"

import (
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// arena is C memory for the arguments of one call. What it gives is zeroed and valid until the call ends, and holds no Go
// pointer, so the library may be handed structs that point to it.
type arena struct {
	block  *block
	failed *C.horus_error   // for the library to fill in
	more   []unsafe.Pointer // blocks beyond the first, freed when the call ends
	left   []byte           // of the last block
	err    error            // the first argument that cannot be converted
}

// block is the first memory of an arena, kept between calls.
type block struct{ memory unsafe.Pointer }

const (
	blockBytes = 16 << 10
	alignment  = 16
)

var arenas = sync.Pool{New: func() any {
	b := &block{memory: C.malloc(blockBytes)}
	runtime.AddCleanup(b, func(memory unsafe.Pointer) { C.free(memory) }, b.memory)
	return &arena{block: b}
}}

func takeArena() *arena {
	a := arenas.Get().(*arena)
	const errorBytes = int(unsafe.Sizeof(C.horus_error{})) // not zeroed: the library fills it in
	a.failed = (*C.horus_error)(a.block.memory)
	a.left = unsafe.Slice((*byte)(a.block.memory), blockBytes)[errorBytes:]
	return a
}

func (a *arena) give() {
	for _, memory := range a.more {
		C.free(memory)
	}
	*a = arena{block: a.block}
	arenas.Put(a)
}

// bytes returns n zeroed bytes.
func (a *arena) bytes(n int) unsafe.Pointer {
	n = (n + alignment - 1) &^ (alignment - 1)
	if n > len(a.left) {
		size := max(n, 4*blockBytes)
		memory := C.malloc(C.size_t(size)) // Go ends the program where this fails
		a.more = append(a.more, memory)
		a.left = unsafe.Slice((*byte)(memory), size)
	}
	out := a.left[:n]
	a.left = a.left[n:]
	clear(out) // as bytes: the collector must not read what was there as pointers
	return unsafe.Pointer(unsafe.SliceData(out))
}

// rows returns n zeroed values; nil for none.
func rows[T any](a *arena, n int) []T {
	if n == 0 {
		return nil
	}
	var one T
	return unsafe.Slice((*T)(a.bytes(n*int(unsafe.Sizeof(one)))), n)
}

// row returns one zeroed value.
func row[T any](a *arena) *T { return &rows[T](a, 1)[0] }

// text copies a string; nil for the empty one. `field` names it where it cannot be a C string.
func (a *arena) text(field, value string) *C.char {
	if value == "" {
		return nil
	}
	if at := strings.IndexByte(value, 0); at >= 0 && a.err == nil {
		a.err = invalid("%s: expected text without a zero byte, found one at byte %d", field, at)
	}
	memory := a.bytes(len(value) + 1)
	copy(unsafe.Slice((*byte)(memory), len(value)), value)
	return (*C.char)(memory)
}

// required is text that may be empty but never nil.
func (a *arena) required(field, value string) *C.char {
	if value == "" {
		return (*C.char)(a.bytes(1))
	}
	return a.text(field, value)
}

// texts copies strings; nil for none.
func (a *arena) texts(field string, values []string) **C.char {
	if len(values) == 0 {
		return nil
	}
	out := rows[*C.char](a, len(values))
	for i, value := range values {
		out[i] = a.required(field, value)
	}
	return &out[0]
}

// failure is the error that the library filled in.
func failure(status C.horus_status, e *C.horus_error) error {
	return &Error{Status: Status(status), Message: C.GoString(&e.message[0])}
}

// call runs one C call with memory for its arguments. Where an argument cannot be converted, f answers anything and is
// to make no call: it asks a.err.
func call(f func(a *arena, e *C.horus_error) C.horus_status) error {
	a := takeArena()
	defer a.give()
	e := a.failed
	e.struct_size, e.status, e.message[0] = C.uint32_t(unsafe.Sizeof(*e)), C.HORUS_OK, 0
	status := f(a, e)
	if a.err != nil {
		return a.err
	}
	if status != C.HORUS_OK {
		return failure(status, e)
	}
	return nil
}

// handle is the C object behind a Go one, with the lock that keeps it from being freed during a call.
type handle[P comparable] struct {
	mu      sync.RWMutex
	pointer P // nil once closed
	cleanup runtime.Cleanup
}

// own makes `pointer` the object of h, freed by Close or by the collector.
func own[P comparable](h *handle[P], pointer P, free func(P)) {
	h.pointer = pointer
	h.cleanup = runtime.AddCleanup(h, free, pointer)
}

// close frees the object once; calls that run end first.
func (h *handle[P]) close(free func(P)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pointer == *new(P) {
		return
	}
	h.cleanup.Stop()
	free(h.pointer)
	h.pointer = *new(P)
}

// shared runs f while others may read too.
func (h *handle[P]) shared(f func(P) error) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.pointer == *new(P) {
		return ErrClosed
	}
	err := f(h.pointer)
	runtime.KeepAlive(h)
	return err
}

// alone runs f while nobody else uses the object.
func (h *handle[P]) alone(f func(P) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pointer == *new(P) {
		return ErrClosed
	}
	err := f(h.pointer)
	runtime.KeepAlive(h)
	return err
}

// grown asks for a list whose length the library tells: with `guess` rows, then with as many as it says.
func grown(guess int, ask func(capacity int, count *C.size_t) error) (int, error) {
	for capacity := guess; ; {
		var count C.size_t
		err := ask(capacity, &count)
		var e *Error
		if err == nil && int(count) <= capacity {
			return int(count), nil
		}
		if err == nil { // it only counted
			capacity = int(count)
			continue
		}
		if e, _ = err.(*Error); e == nil || e.Status != Status(C.HORUS_ERR_BUFFER_TOO_SMALL) || int(count) <= capacity {
			return 0, err
		}
		capacity = int(count)
	}
}
