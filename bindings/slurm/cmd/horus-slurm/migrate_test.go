// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	oneGres  = "# devices\nName=gpu File=/dev/nvidia0\n"
	oneSlurm = "ClusterName=c\n# nodes\n\nGresTypes=gpu\nNodeName=n Gres=gpu:1\n\nPartitionName=p Nodes=ALL\n"
)

// folder with a configuration of one GPU.
func folder(t *testing.T) (dir string, read func(name string) string, write func(name, text string)) {
	dir = t.TempDir()
	read = func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return string(text)
	}
	write = func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("gres.conf", oneGres)
	write("slurm.conf", oneSlurm)
	return dir, read, write
}

func migrated(t *testing.T, args ...string) error {
	t.Helper()
	return runMigrate(context.Background(), args)
}

// kept are the names of files beside both.
func kept(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.*-horus"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.Join(all, " "), dir+"/", "")
}

func TestWhatMigrateChangedIsTakenBackAndLaterEditsAreKept(t *testing.T) {
	dir, read, write := folder(t)
	if err := migrated(t, dir); err != nil || !strings.Contains(read("slurm.conf"), "Gres=gpu:gpu_0:1,shard:gpu_0:8") || !strings.Contains(read("gres.conf"), "Type=gpu_0") {
		t.Fatalf("expected both files anew, found %v\n%s%s", err, read("gres.conf"), read("slurm.conf"))
	}
	if info, err := os.Stat(filepath.Join(dir, "slurm.conf")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("expected the mode from before, found %v, %v", info.Mode(), err)
	}
	if err := migrated(t, dir); err == nil || !strings.Contains(err.Error(), "expected a configuration that was not migrated") {
		t.Errorf("expected no second migration, found %v", err)
	}
	write("slurm.conf", strings.Replace(read("slurm.conf"), "ClusterName=c\n", "ClusterName=c\nMaxJobCount=9\n", 1)+"PartitionName=q\n")
	if err := migrated(t, "--undo", dir); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(oneSlurm, "ClusterName=c\n", "ClusterName=c\nMaxJobCount=9\n", 1) + "PartitionName=q\n"
	if read("gres.conf") != oneGres || read("slurm.conf") != want || kept(t, dir) != "" {
		t.Errorf("expected\n%sfound\n%s%s and %s", want, read("gres.conf"), read("slurm.conf"), kept(t, dir))
	}
	if err := migrated(t, dir); err != nil {
		t.Errorf("expected that it can be migrated again, found %v", err)
	}
}

func TestUndoChangesBothFilesOrNone(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(dir string, read func(string) string, write func(string, string))
		back  bool
	}{
		"an edit in what migrate wrote": {func(_ string, read func(string) string, write func(string, string)) {
			write("slurm.conf", strings.Replace(read("slurm.conf"), "shard:gpu_0:8", "shard:gpu_0:16", 1))
		}, false},
		"a file that is kept is missing": {func(dir string, _ func(string) string, _ func(string, string)) {
			os.Remove(filepath.Join(dir, "slurm.conf.before-horus"))
		}, false},
		"it ended between both files": {func(_ string, _ func(string) string, write func(string, string)) { write("slurm.conf", oneSlurm) }, true},
	} {
		dir, read, write := folder(t)
		if err := migrated(t, dir); err != nil {
			t.Fatal(err)
		}
		c.spoil(dir, read, write)
		gres, slurm := read("gres.conf"), read("slurm.conf")
		if c.back {
			gres, slurm = oneGres, oneSlurm
		}
		if err := migrated(t, "--undo", dir); (err == nil) != c.back || err != nil && !strings.HasSuffix(err.Error(), "nothing was changed") {
			t.Errorf("%s: expected %v, found %v", what, c.back, err)
		}
		if read("gres.conf") != gres || read("slurm.conf") != slurm {
			t.Errorf("%s: expected\n%s%sfound\n%s%s", what, gres, slurm, read("gres.conf"), read("slurm.conf"))
		}
	}
}

func TestMigrateWritesBothFilesOrNone(t *testing.T) {
	for what, spoil := range map[string]func(dir string, write func(string, string)){
		"counts that differ": func(_ string, write func(string, string)) {
			write("slurm.conf", strings.Replace(oneSlurm, "gpu:1", "gpu:2", 1))
		},
		"a file that cannot be written": func(dir string, _ func(string, string)) {
			_ = os.MkdirAll(filepath.Join(dir, "slurm.conf.after-horus", "x"), 0o755)
		},
	} {
		dir, read, write := folder(t)
		spoil(dir, write)
		slurm := read("slurm.conf")
		err := migrated(t, dir)
		if err == nil || read("gres.conf") != oneGres || read("slurm.conf") != slurm || strings.Contains(kept(t, dir), "before") {
			t.Errorf("%s: expected an error and both files as they were, found %v, %s\n%s%s", what, err, kept(t, dir), read("gres.conf"), read("slurm.conf"))
		}
	}
}
