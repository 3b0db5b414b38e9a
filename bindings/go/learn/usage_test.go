// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"fmt"
	"math"
	"testing"
)

// What the DCGM exporter tells of a GPU that is shared by replicas (--kubernetes-virtual-gpus): before 4.8 each pod's rows repeat the
// device's figure, from then on they are of its own processes.
func TestRowsOfPodsAreToldFromThoseOfTheDevice(t *testing.T) {
	for _, one := range []struct {
		what   string
		util   []float64 // of pods a, b and so on, in %
		device float64   // DCGM_FI_PROF_GR_ENGINE_ACTIVE; 0 = not exported
		active float64   // NaN = nobody can say
		shares []float64
	}{
		{"each its own", []float64{24, 30}, 0, 0.54, []float64{0.24, 0.30}},
		{"each its own, and the device's beside them", []float64{24, 30}, 0.6, 0.6, []float64{0.24 / 0.9, 0.30 / 0.9}},
		{"the device's for each", []float64{99, 99, 99}, 0, 0.99, nil},
		{"the device's for each, which is idle half of the time", []float64{45, 45}, 0.44, 0.44, nil},
		{"two that do the same", []float64{45, 45}, 0.88, 0.88, []float64{0.44, 0.44}},
		{"the same, of whatever", []float64{45, 45}, 0, math.NaN(), nil},
		{"more than there is", []float64{80, 60}, 0, math.NaN(), nil},
		{"one pod", []float64{70}, 0, 0.7, nil},
	} {
		text := "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
		for i, value := range one.util {
			for replica := range 2 { // each pod asks for two of them
				text += fmt.Sprintf("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",pci_bus_id=\"00000000:00:05.0\",device=\"nvidia0\",modelName=\"NVIDIA A100-SXM4-80GB\","+
					"Hostname=\"n\",container=\"main\",namespace=\"team\",pod=\"%c\",vgpu=\"%d\"} %g\n", 'a'+i, 2*i+replica, value)
			}
		}
		if one.device > 0 {
			text += fmt.Sprintf("# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge\nDCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"GPU-1\"} %g\n", one.device)
		}
		found, err := parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		seen := NoUsages()
		seen.Add(found, ByUUID)
		active, shares := seen.of["GPU-1"].active, seen.shares["GPU-1"]
		if math.IsNaN(active) != math.IsNaN(one.active) || math.Abs(active-one.active) > 1e-9 || len(shares) != len(one.shares) {
			t.Errorf("%s: expected %g and %v, found %g and %v", one.what, one.active, one.shares, active, shares)
			continue
		}
		for i, want := range one.shares {
			if got := shares[fmt.Sprintf("team/%c", 'a'+i)]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: expected %v, found %v", one.what, one.shares, shares)
			}
		}
	}
}
