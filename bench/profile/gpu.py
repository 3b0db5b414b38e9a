# SPDX-License-Identifier: Apache-2.0
"""What NVML says of one GPU: who is on it, its samples while jobs run, its description. Reads only, changes nothing."""
import collections
import contextlib
import importlib.util
import os
import sys
import threading
import time

PACKED_NVML = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvml")  # a copy that `pack` brought along
SAMPLE_PERIOD_S = 0.05  # 20 Hz; NVML itself refreshes utilisation every 0.1 to 1 s
MIB = 1 << 20
IDLE_UTIL_PCT = 5  # above it somebody computes
SETTLE_S = 3.0  # what a process leaves in the figures when it ends is gone by then
IDLE_USED_MIB = 1024  # a driver alone holds less
WHOLE_EVERY = 5  # samples: memory, clocks and temperature four times a second
SILENT_S = 30.0  # a GPU that told nothing for so long is lost; a busy driver may take seconds
SLOW_HZ = 10  # fewer samples a second are said
NOT_TOLD = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE, of an nvidia-ml-py that hands it on
PROCESS_LISTS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses",
                 "nvmlDeviceGetMPSComputeRunningProcesses")
SAMPLE_FIELDS = ("at", "util", "mem_util", "power_w", "sm_mhz", "mem_mhz", "used_mib", "process_mib", "temperature_c")
Sample = collections.namedtuple("Sample", SAMPLE_FIELDS)


class NoNvml(RuntimeError):
    """NVML cannot be used here."""


class NotWhole(RuntimeError):
    """The GPU is partitioned."""


class GpuLost(RuntimeError):
    """The GPU does not answer any more."""


class Busy(RuntimeError):
    """Somebody else uses the GPU."""


def open_nvml():
    if importlib.util.find_spec("pynvml") is None:
        sys.path.append(PACKED_NVML)
    try:
        import pynvml
    except ModuleNotFoundError:
        raise NoNvml("the Python package nvidia-ml-py is not installed (pip install nvidia-ml-py)") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoNvml(f"NVML does not answer: {error}. It is libnvidia-ml.so.1 of the NVIDIA driver: expected a machine "
                     "with a driver that `nvidia-smi` can reach") from None
    return pynvml


class Gpu:
    def __init__(self, index=None):
        self.nvml = open_nvml()
        self.count = self.nvml.nvmlDeviceGetCount()
        index = self.visible() if index is None else index
        if not 0 <= index < self.count:
            raise NoNvml(f"--index {index}: NVML lists {self.count} GPUs, numbered from 0")
        self.index, self.handle = index, self.nvml.nvmlDeviceGetHandleByIndex(index)
        self.second_memory = True
        self.refusals = {}  # what this GPU or driver does not tell, and why
        if self.ask("nvmlDeviceGetUtilizationRates") is None and self.memory() is None:
            raise NoNvml(f"GPU {index} tells neither utilisation nor memory: "
                         f"{self.refusals['nvmlDeviceGetUtilizationRates']}")

    def visible(self):
        """The first of CUDA_VISIBLE_DEVICES, where a batch system chose a GPU; else the first."""
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
        if first.isdigit():
            return int(first)
        for index in range(self.count if first else 0):
            with contextlib.suppress(self.nvml.NVMLError, AttributeError):
                if text(self.nvml.nvmlDeviceGetUUID(self.nvml.nvmlDeviceGetHandleByIndex(index))).startswith(first):
                    return index
        return 0

    def require_whole(self):
        """Raises NotWhole where the card is partitioned: processes would see a slice, NVML tells of the card."""
        mode = self.ask("nvmlDeviceGetMigMode")
        if mode and mode[0]:
            raise NotWhole(f"GPU {self.index} is partitioned (MIG mode is on): expected a whole GPU; another --index, or its "
                           "administrator switches MIG off")

    def ask(self, name, *arguments):
        """One NVML query; none where it is not supported."""
        lost = (self.nvml.NVML_ERROR_GPU_IS_LOST, self.nvml.NVML_ERROR_UNINITIALIZED,
                getattr(self.nvml, "NVML_ERROR_RESET_REQUIRED", 16))
        try:
            return getattr(self.nvml, name)(self.handle, *arguments)
        except self.nvml.NVMLError as error:
            if error.value in lost:
                raise GpuLost(f"GPU {self.index} does not answer any more: {error}") from None
            self.refusals[name] = str(error)
        except AttributeError:
            self.refusals[name] = "this nvidia-ml-py does not know it"
        except getattr(self.nvml, "NVMLLibraryMismatchError", ()) as error:
            self.refusals[name] = f"driver and nvidia-ml-py differ: {error}"
        return None

    def name(self):
        return text(self.ask("nvmlDeviceGetName"))

    def uuid(self):
        return text(self.ask("nvmlDeviceGetUUID"))

    def memory(self):
        """Totals of the card; the second version of the query leaves out what the driver keeps for itself."""
        second = getattr(self.nvml, "nvmlMemory_v2", None)
        found = self.ask("nvmlDeviceGetMemoryInfo", second) if second and self.second_memory else None
        if found is None:
            self.second_memory, found = False, self.ask("nvmlDeviceGetMemoryInfo")
        return found

    def total_mib(self):
        found = self.memory()
        return found.total // MIB if found else None

    def used_mib(self):
        """What the card holds; none where it is not told."""
        found = self.memory()
        return found.used / MIB if found else None

    def processes(self):
        """Process id -> MiB (none where the driver does not say, in containers say) of everyone on the GPU."""
        found = {}
        for name in PROCESS_LISTS:
            for one in self.ask(name) or ():
                told = one.usedGpuMemory not in (None, NOT_TOLD)
                found[one.pid] = one.usedGpuMemory / MIB if told else found.get(one.pid)
        return found

    def strangers(self, own):
        """The processes on the GPU that are not `own`, by id.

        A container may be told the ids of another namespace: then our own are not among them, and only their number tells.
        """
        found = self.processes()
        others = {pid: mib for pid, mib in found.items() if pid not in own}
        translated = own and len(others) == len(found)
        return {} if translated and len(others) <= len(own) else others

    def named(self, processes):
        return "; ".join(f"process {pid} ({self.process_name(pid)}" + (f", {mib:.0f} MiB" if mib is not None else "") + ")"
                         for pid, mib in processes.items())

    def compute_mode(self):
        return self.ask("nvmlDeviceGetComputeMode")

    def capability(self):
        """(major, minor) of its CUDA compute capability; none where it is not told."""
        return self.ask("nvmlDeviceGetCudaComputeCapability")

    def process_name(self, pid):
        with contextlib.suppress(self.nvml.NVMLError):
            return text(self.nvml.nvmlSystemGetProcessName(pid))
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/comm") as file:
                return file.read().strip()
        return "unknown"

    def require_idle(self):
        """Raises Busy, saying by whom, when somebody else is on the GPU."""
        others = self.processes()
        if others:
            raise Busy(f"GPU {self.index} is in use by {self.named(others)}")
        until = time.monotonic() + SETTLE_S
        while True:
            rates, used = self.ask("nvmlDeviceGetUtilizationRates"), self.used_mib()
            if not (rates and rates.gpu > IDLE_UTIL_PCT) and (used or 0) <= IDLE_USED_MIB:
                return
            if time.monotonic() > until:
                raise Busy(f"GPU {self.index} is in use by processes that NVML does not list (of another container or "
                           f"user): utilisation {rates.gpu if rates else '?'} %, {used or 0:.0f} MiB in use")
            time.sleep(SAMPLE_PERIOD_S)

    def sample(self, pids, whole=True):
        """Utilisation and power, and, of a whole sample, what moves slowly and costs the driver more to tell."""
        rates, power = self.ask("nvmlDeviceGetUtilizationRates"), watts(self.ask("nvmlDeviceGetPowerUsage"))
        first = time.monotonic(), rates.gpu if rates else None, rates.memory if rates else None, power
        if not whole:
            return Sample(*first, *[None] * (len(SAMPLE_FIELDS) - len(first)))
        mine = [mib for pid, mib in self.processes().items() if pid in pids and mib is not None] if pids else []
        return Sample(*first, self.ask("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_SM),
                      self.ask("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_MEM), self.used_mib(),
                      sum(mine) if mine else None,
                      self.ask("nvmlDeviceGetTemperature", self.nvml.NVML_TEMPERATURE_GPU))

    def refreshes(self, since_s, until_s):
        """Utilisation figures that the driver itself made in a time (of time.time()); none where it keeps no record."""
        found = self.ask("nvmlDeviceGetSamples", self.nvml.NVML_GPU_UTILIZATION_SAMPLES, int(since_s * 1e6))
        if not found:
            return None
        return [one.sampleValue.uiVal for one in found[1] if since_s * 1e6 <= one.timeStamp <= until_s * 1e6]

    def describe(self):
        """For the manifest: what the card is and how it is set, as found."""
        nvml = self.nvml
        system = lambda name: text(quiet(getattr(nvml, name, None), nvml))
        return {
            "name": self.name(), "count": self.count, "total_mib": self.total_mib(),
            "driver": system("nvmlSystemGetDriverVersion"), "nvml": system("nvmlSystemGetNVMLVersion"),
            "cuda_driver": quiet(getattr(nvml, "nvmlSystemGetCudaDriverVersion_v2", None), nvml),
            "clock_sm_max_mhz": self.ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
            "clock_mem_max_mhz": self.ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
            "power_limit_w": watts(self.ask("nvmlDeviceGetEnforcedPowerLimit")),
            "compute_mode": self.compute_mode(), "compute_capability": self.capability(), "mig_mode": self.ask("nvmlDeviceGetMigMode"),
            "persistence_mode": self.ask("nvmlDeviceGetPersistenceMode")
        }


def quiet(query, nvml):
    try:
        return query() if query else None
    except nvml.NVMLError:
        return None


def watts(milliwatts):
    return milliwatts / 1e3 if milliwatts is not None else None


def text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else value


class Sampler:
    """Samples a GPU in a thread of its own; the profiler itself computes nothing meanwhile."""

    def __init__(self, gpu, period_s=SAMPLE_PERIOD_S, silent_s=SILENT_S):
        self.gpu, self.period_s, self.silent_s, self.pids, self.samples, self.trouble = gpu, period_s, silent_s, (), [], None
        self.heard = time.monotonic()  # when the GPU last told anything
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def loop(self):
        due = time.monotonic()
        while not self.stopped.is_set():
            try:
                samples = self.samples  # before the ids: what was asked for the last job is not of the next one
                sample = self.gpu.sample(self.pids, len(samples) % WHOLE_EVERY == 0)
            except Exception as error:  # told to whoever asks next; a thread has nobody to raise to
                self.trouble = error if isinstance(error, GpuLost) else GpuLost(f"{type(error).__name__}: {error}")
                return
            samples.append(sample)
            if any(value is not None for value in sample[1:]):
                self.heard = time.monotonic()
            due += self.period_s
            self.stopped.wait(max(0.0, due - time.monotonic()))
            due = max(due, time.monotonic() - self.period_s)

    def silent(self):
        return time.monotonic() - self.heard > self.silent_s

    def check(self):
        if self.trouble:
            raise self.trouble
        if self.silent():
            time.sleep(1.0)  # a profiler that was stopped and goes on hears at once
            if self.silent():
                raise GpuLost(f"GPU {self.gpu.index} has told nothing for {self.silent_s:.0f} s")

    def watch(self, pids):
        """Forgets what was, and counts the memory of these processes from now on."""
        self.pids = frozenset(pids)
        self.samples = []

    def look(self):
        """A whole sample at once: of a short run the thread may take none."""
        self.samples.append(self.gpu.sample(self.pids))

    def stop(self):
        self.stopped.set()
        self.thread.join(timeout=5)


def values(samples, name):
    return [value for value in (getattr(one, name) for one in samples) if value is not None]


def mean(numbers):
    return sum(numbers) / len(numbers) if numbers else None


def summarise(samples, since, until):
    """The window's figures; memory takes every sample since the sampler began to watch."""
    inside = [one for one in samples if since <= one.at <= until]
    util, power = values(inside, "util"), values(inside, "power_w")
    pairs = [(one.util, one.mem_util) for one in inside]
    changes = 1 + sum(a != b for a, b in zip(pairs, pairs[1:])) if pairs else 0
    lasted = inside[-1].at - inside[0].at if inside else 0
    return {
        "samples": len(inside), "sample_hz": round((len(inside) - 1) / lasted, 1) if lasted else None,
        "samples_distinct": changes, "gpu_util_pct": mean(util),
        "gpu_util_max_pct": max(util) if util else None, "mem_bw_util_pct": mean(values(inside, "mem_util")),
        "power_w": mean(power), "sm_mhz": mean(values(inside, "sm_mhz")), "mem_mhz": mean(values(inside, "mem_mhz")),
        "temperature_c": mean(values(inside, "temperature_c")),
        "device_used_mib": max(values(samples, "used_mib"), default=None),
        "process_mib": max(values(samples, "process_mib"), default=None),
    }
