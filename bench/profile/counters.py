# SPDX-License-Identifier: Apache-2.0
"""Activity of SMs, tensor cores and DRAM over a window: NVML's hardware counters (Hopper and later), else DCGM, else none.

Each source has mark() and between(first, last), which gives {column: mean in per cent} of the time between two marks.
"""
import math
import os
import shutil
import subprocess
import sys
import threading
import time

import link

DCGMI = "dcgmi"
LINK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "link.py")
# nvmlGpmMetricId_t, and the fields of DCGM (DCGM_FI_PROF_*) that hold the same as shares of 1.
GPM_METRICS = {"graphics_active_pct": 1, "sm_active_pct": 2, "sm_occupancy_pct": 3, "tensor_active_pct": 5,
               "dram_active_pct": 10}
DCGM_FIELDS = {"graphics_active_pct": 1001, "sm_active_pct": 1002, "sm_occupancy_pct": 1003, "tensor_active_pct": 1004,
               "dram_active_pct": 1005}
DCGM_PERIOD_MS, DCGM_START_S = 100, 5.0


class Nothing:
    """A GPU whose counters nobody tells."""

    name = None

    def mark(self):
        return None

    def between(self, first, last):
        return {}

    def close(self):
        pass


class Gpm(Nothing):
    """NVML's own, as averages between two samples of the counters."""

    name = "nvml"

    def __init__(self, gpu):
        self.gpu, self.nvml, self.works = gpu, gpu.nvml, True

    @staticmethod
    def supported(gpu):
        found = gpu.ask("nvmlGpmQueryDeviceSupport") if hasattr(gpu.nvml, "nvmlGpmQueryDeviceSupport") else None
        return bool(found and found.isSupportedDevice)

    def mark(self):
        if not self.works:
            return None
        try:
            sample = self.nvml.nvmlGpmSampleAlloc()
            self.nvml.nvmlGpmSampleGet(self.gpu.handle, sample)
            return sample
        except self.nvml.NVMLError as error:
            self.works, self.gpu.refusals["nvmlGpmSampleGet"] = False, str(error)
            return None

    def free(self, sample):
        if sample is not None:
            self.nvml.nvmlGpmSampleFree(sample)

    def between(self, first, last):
        if first is None or last is None:
            self.free(first)
            return {}
        try:
            ask = self.nvml.c_nvmlGpmMetricsGet_t()
            ask.version, ask.numMetrics = self.nvml.NVML_GPM_METRICS_GET_VERSION, len(GPM_METRICS)
            ask.sample1, ask.sample2 = first, last
            for place, metric in enumerate(GPM_METRICS.values()):
                ask.metrics[place].metricId = metric
            self.nvml.nvmlGpmMetricsGet(ask)
            return {name: ask.metrics[place].value for place, name in enumerate(GPM_METRICS)
                    if ask.metrics[place].nvmlReturn == self.nvml.NVML_SUCCESS}
        except (self.nvml.NVMLError, AttributeError) as error:
            self.works, self.gpu.refusals["nvmlGpmMetricsGet"] = False, str(error)
            return {}
        finally:
            self.free(first)
            self.free(last)


class Dcgm(Nothing):
    """What `dcgmi dmon` prints ten times a second; it needs DCGM's service (nv-hostengine) to run."""

    name = "dcgm"

    def __init__(self, gpu):
        fields = ",".join(map(str, DCGM_FIELDS.values()))
        self.rows, self.said, self.told = [], "", threading.Event()
        self.process = subprocess.Popen(  # through link.py, so that it ends with the profiler, however that ends
            [sys.executable, LINK, str(os.getpid()), DCGMI, "dmon", "-i", str(gpu.index), "-e", fields, "-d",
             str(DCGM_PERIOD_MS)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        self.told.wait(DCGM_START_S)

    def read(self):
        for line in self.process.stdout:
            row = row_of(line)
            if row:
                self.rows.append((time.monotonic(), row))
                self.told.set()
            elif not line.startswith(("#", "ID")):
                self.said = line.strip() or self.said
        self.told.set()

    def mark(self):
        now = time.monotonic()
        self.rows = [one for one in self.rows if one[0] > now - 600]
        return now

    def between(self, first, last):
        inside = [row for at, row in self.rows if first <= at <= last]
        means = {}
        for name in DCGM_FIELDS:
            found = [row[name] for row in inside if row[name] is not None]
            if found:
                means[name] = sum(found) / len(found)
        return means

    def close(self):
        self.process.kill()
        link.end(self.process, DCGM_START_S)
        self.thread.join(timeout=5)


def row_of(line):
    """{column: per cent or none} of a line such as 'GPU 0   0.981   0.912   N/A ...'; none of any other line."""
    words = line.split()
    if len(words) != 2 + len(DCGM_FIELDS) or words[0] != "GPU":
        return None
    return {name: share(word) for name, word in zip(DCGM_FIELDS, words[2:])}


def share(word):
    """Per cent of a share such as 0.981; none of N/A and other words."""
    try:
        value = float(word)
    except ValueError:
        return None
    return 100 * value if math.isfinite(value) else None


def of(gpu):
    """The best source that this machine has; `refusals` of the GPU says why DCGM told nothing."""
    if Gpm.supported(gpu):
        found = Gpm(gpu)
        found.free(found.mark())
        if found.works:  # a driver may keep the counters to the administrator
            return found
    if shutil.which(DCGMI):
        found = Dcgm(gpu)
        if found.rows:
            return found
        found.close()
        gpu.refusals[DCGMI] = found.said or f"no figures within {DCGM_START_S:.0f} s"
    return Nothing()
