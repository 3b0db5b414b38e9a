// SPDX-License-Identifier: Apache-2.0

// Package file writes files that others read meanwhile.
package file

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
)

// Replace a file: readers see the old one or the new one.
func Replace(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".horus-")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	err = cmp.Or(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
