// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"libhorus.org/learn"
	"libhorus.org/slurm/internal/file"
)

// state is what a file keeps.
type state struct {
	Now    learn.Model `json:"now"`
	Before learn.Model `json:"before"`
	Alone  []known     `json:"alone"`
}

// known of a kind of job alone.
type known struct {
	Owner   string `json:"owner"`
	Profile string `json:"profile"`
	learn.Observed
}

// unreadable is what the name of a file gets that holds something else.
const unreadable = ".unreadable"

// load a file. One that cannot be read as what was learned is put aside, and all is learned anew: it must keep no job waiting.
func load(path string) (state, error) {
	if path == "" {
		return state{}, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	var out state
	err = json.Unmarshal(text, &out)
	for _, model := range []learn.Model{out.Now, out.Before} {
		if err == nil && len(model.Observations) > 0 {
			err = model.Check()
		}
	}
	if err == nil {
		return out, nil
	}
	slog.Error("what was learned is not read, and is learned anew", "file", path, "kept as", path+unreadable, "error", err)
	return state{}, os.Rename(path, path+unreadable)
}

func (s *state) put(alone map[learn.Kind]learn.Observed) {
	s.Alone = nil
	for kind, one := range alone {
		s.Alone = append(s.Alone, known{kind.Owner, kind.Profile, one})
	}
	slices.SortFunc(s.Alone, func(a, b known) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Profile, b.Profile), cmp.Compare(a.GPUType, b.GPUType))
	})
}

func (s *state) save(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Replace(path, string(text)+"\n")
}
