// SPDX-License-Identifier: Apache-2.0

// Package file writes files that others read meanwhile.
package file

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Replace a file: readers see the old one or the new one. It keeps its mode, and its owner where it may.
func Replace(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".horus-")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	mode := os.FileMode(0o644)
	if old, missing := os.Stat(path); missing == nil {
		mode = old.Mode().Perm()
		if owner, is := old.Sys().(*syscall.Stat_t); is {
			_ = file.Chown(int(owner.Uid), int(owner.Gid)) // only root may give files away
		}
	}
	err = cmp.Or(err, file.Chmod(mode), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
