// SPDX-License-Identifier: Apache-2.0

package horus

/*
#cgo pkg-config: horus
#include <horus/horus.h>
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"unsafe"
)

// Status says what kind of failure an [*Error] is. It is an error itself, so that errors.Is finds it.
type Status int32

// What can go wrong.
const (
	ErrInvalidArgument Status = C.HORUS_ERR_INVALID_ARGUMENT // an argument or field is wrong; the message names it
	ErrInvalidStruct   Status = C.HORUS_ERR_INVALID_STRUCT   // this package is newer than the library that it met
	ErrNotFound        Status = C.HORUS_ERR_NOT_FOUND        // no such id, name or index
	ErrExists          Status = C.HORUS_ERR_EXISTS           // the id is in use; of Apply: the job is placed already
	ErrConflict        Status = C.HORUS_ERR_CONFLICT         // a node moved since the plan saw it; plan again
	ErrCancelled       Status = C.HORUS_ERR_CANCELLED        // the context ended the call
	ErrLimit           Status = C.HORUS_ERR_LIMIT            // a documented limit was exceeded; the message names it
	ErrCorrupt         Status = C.HORUS_ERR_CORRUPT          // bytes are damaged or not of the format expected
	ErrVersion         Status = C.HORUS_ERR_VERSION          // bytes or ABI of a version that is not read
	ErrState           Status = C.HORUS_ERR_STATE            // not possible in the present state
	ErrUnsupported     Status = C.HORUS_ERR_UNSUPPORTED      // not part of this build of the library
	ErrIO              Status = C.HORUS_ERR_IO               // a file cannot be opened, read or written
	ErrNoMemory        Status = C.HORUS_ERR_NO_MEMORY        // an allocation failed
	ErrInternal        Status = C.HORUS_ERR_INTERNAL         // a bug of libhorus
)

// Error is the status in words.
func (s Status) Error() string { return "horus: " + s.Name() }

// Name is the constant's name of the C ABI without its prefix, such as "CONFLICT".
func (s Status) Name() string { return C.GoString(C.horus_status_name(C.horus_status(s))) }

// ErrClosed is the answer of a handle after Close.
var ErrClosed = errors.New("horus: the handle is closed")

// Error is what the library answered.
type Error struct {
	Status  Status
	Message string // one line that names the place, what was expected and what was found
	cause   error  // of the context, where that ended the call
}

func (e *Error) Error() string { return "horus: " + e.Status.Name() + ": " + e.Message }

// Unwrap lets errors.Is find the status, and the context's error.
func (e *Error) Unwrap() []error {
	if e.cause != nil {
		return []error{e.Status, e.cause}
	}
	return []error{e.Status}
}

// invalid is an argument that this package refuses before the library sees it.
func invalid(format string, args ...any) error {
	return &Error{Status: ErrInvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// ended adds the context's error where it was the context that cancelled.
func ended(ctx context.Context, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Status == ErrCancelled {
		e.cause = context.Cause(ctx)
	}
	return err
}

// Version is the release of the library at run time, such as "0.2.0".
func Version() string { return C.GoString(libraryInfo().version) }

// libraryInfo is the release and the names of the library; a call that cannot fail.
func libraryInfo() C.horus_library_info {
	var info C.horus_library_info
	_ = call(func(a *arena, e *C.horus_error) C.horus_status {
		out := row[C.horus_library_info](a)
		out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
		status := C.horus_library_get_info(out, e)
		info = *out
		return status
	})
	return info
}

// namesOf reads a list of names that ends with NULL.
func namesOf(list **C.char) []string {
	var names []string
	for ; *list != nil; list = (**C.char)(unsafe.Add(unsafe.Pointer(list), unsafe.Sizeof(*list))) {
		names = append(names, C.GoString(*list))
	}
	return names
}

// CheckABI says whether this package may call the library that it was loaded with. Call it once at the start: a
// program that meets another revision would misread its structs.
func CheckABI() error {
	return call(func(_ *arena, e *C.horus_error) C.horus_status {
		return C.horus_abi_check(C.HORUS_ABI_NUMBER, e)
	})
}
