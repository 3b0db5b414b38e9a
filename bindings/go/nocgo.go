// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package horus

// The compiler prints this name: it is the error message.
var _ = libhorus_needs_cgo__set_CGO_ENABLED_to_1_and_install_a_C_compiler_and_libhorus
