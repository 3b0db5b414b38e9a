// SPDX-License-Identifier: Apache-2.0

// Package smi tells the use of a node's GPUs, as text for Prometheus, by what nvidia-smi says: for nodes without NVIDIA's DCGM
// exporter.
package smi

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// columns that are asked for: position on the node, UUID, share of the last second or less in which a kernel ran (%), MiB in use.
const columns = "index,uuid,utilization.gpu,memory.used"

// patience is how long nvidia-smi may take: it hangs beside a broken driver.
const patience = 5 * time.Second

// Handler answers with what `program` tells at that time.
func Handler(program string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, program, "--query-gpu="+columns, "--format=csv,noheader,nounits").Output()
		text := ""
		if err == nil {
			text, err = Text(string(out))
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("%s: %v", program, err), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, text)
	})
}

// Text for Prometheus of what nvidia-smi printed. What a card does not tell ("[N/A]") is left out.
func Text(printed string) (string, error) {
	reader := csv.NewReader(strings.NewReader(printed))
	reader.TrimLeadingSpace, reader.FieldsPerRecord = true, len(strings.Split(columns, ","))
	rows, err := reader.ReadAll()
	if err != nil {
		return "", fmt.Errorf("expected lines of %s: %w", columns, err)
	}
	var busy, memory strings.Builder
	for _, row := range rows {
		labels := fmt.Sprintf("{gpu=%q,UUID=%q}", row[0], row[1])
		if percent, err := strconv.ParseFloat(row[2], 64); err == nil {
			fmt.Fprintf(&busy, "horus_gpu_busy_ratio%s %g\n", labels, percent/100)
		}
		if mib, err := strconv.ParseFloat(row[3], 64); err == nil {
			fmt.Fprintf(&memory, "horus_gpu_memory_used_mib%s %g\n", labels, mib)
		}
	}
	return "# TYPE horus_gpu_busy_ratio gauge\n" + busy.String() + "# TYPE horus_gpu_memory_used_mib gauge\n" + memory.String(), nil
}
