// SPDX-License-Identifier: Apache-2.0

package smi

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libhorus.org/learn"
)

func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestALearnerReadsWhatIsTold(t *testing.T) {
	server := httptest.NewServer(Handler(program(t, `echo '0, GPU-aa, 40, 1024
1, GPU-bb, [N/A], 0'`)))
	defer server.Close()
	found, err := learn.Scrape(context.Background(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if busy := found["horus_gpu_busy_ratio"].GetMetric(); len(busy) != 1 || busy[0].GetGauge().GetValue() != 0.4 || !strings.Contains(busy[0].String(), "GPU-aa") {
		t.Errorf("expected GPU-aa busy for 0.4 of the time, and no word of GPU-bb, found %v", busy)
	}
	if memory := found["horus_gpu_memory_used_mib"].GetMetric(); len(memory) != 2 || memory[0].GetGauge().GetValue() != 1024 {
		t.Errorf("expected the memory of both, found %v", memory)
	}
}

func TestWhatNvidiaSmiCannotTellIsAnError(t *testing.T) {
	for script, says := range map[string]string{
		"echo No devices were found; exit 6": "exit status 6",
		"echo '0, GPU-aa'":                   "expected lines of index,uuid",
	} {
		server := httptest.NewServer(Handler(program(t, script)))
		if _, err := learn.Scrape(context.Background(), server.URL); err == nil || !strings.Contains(err.Error(), "found 503") {
			t.Errorf("%s: expected status 503, found %v", script, err)
		}
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 500)
		n, _ := response.Body.Read(body)
		response.Body.Close()
		if !strings.Contains(string(body[:n]), says) {
			t.Errorf("%s: expected %q, found %q", script, says, body[:n])
		}
		server.Close()
	}
}
