# SPDX-License-Identifier: Apache-2.0
"""What NVML says of one GPU: who is on it, its samples while jobs run, its description. Reads only, changes nothing."""
import collections
import contextlib
import threading
import time

SAMPLE_PERIOD_S = 0.05  # 20 Hz; NVML itself refreshes utilisation every 0.1 to 1 s
MIB = 1 << 20
IDLE_UTIL_PCT = 5  # above it somebody computes
SETTLE_S = 3.0  # what a process leaves in the figures when it ends is gone by then
IDLE_USED_MIB = 1024  # a driver alone holds less
# nvmlGpmMetricId_t: figures averaged between two samples of the hardware counters (Hopper and later).
GPM_METRICS = {"graphics_active_pct": 1, "sm_active_pct": 2, "sm_occupancy_pct": 3, "tensor_active_pct": 5,
               "dram_active_pct": 10}
SAMPLE_FIELDS = ("at", "util", "mem_util", "power_w", "sm_mhz", "mem_mhz", "used_mib", "process_mib", "temperature_c")
Sample = collections.namedtuple("Sample", SAMPLE_FIELDS)


class NoNvml(RuntimeError):
    """NVML cannot be used here."""


class GpuLost(RuntimeError):
    """The GPU does not answer any more."""


class Busy(RuntimeError):
    """Somebody else uses the GPU."""


def open_nvml():
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
    def __init__(self, index=0):
        self.nvml = open_nvml()
        self.count = self.nvml.nvmlDeviceGetCount()
        if not 0 <= index < self.count:
            raise NoNvml(f"--index {index}: NVML lists {self.count} GPUs, numbered from 0")
        self.index, self.handle = index, self.nvml.nvmlDeviceGetHandleByIndex(index)
        self.second_memory = True
        self.refusals = {}  # what this GPU or driver does not tell, and why
        self.gpm = self.gpm_supported()

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
        if found is None:
            raise NoNvml(f"GPU {self.index} does not tell its memory: {self.refusals['nvmlDeviceGetMemoryInfo']}")
        return found

    def total_mib(self):
        return self.memory().total // MIB

    def used_mib(self):
        return self.memory().used / MIB

    def processes(self):
        """Process id -> MiB (none where the driver does not say) of everyone on the GPU."""
        found = {}
        for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses",
                     "nvmlDeviceGetMPSComputeRunningProcesses"):
            for one in self.ask(name) or ():
                found[one.pid] = one.usedGpuMemory / MIB if one.usedGpuMemory is not None else None
        return found

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
            said = "; ".join(f"process {pid} ({self.process_name(pid)}"
                             + (f", {mib:.0f} MiB" if mib is not None else "") + ")" for pid, mib in others.items())
            raise Busy(f"GPU {self.index} is in use by {said}")
        until = time.monotonic() + SETTLE_S
        while True:
            rates, used = self.ask("nvmlDeviceGetUtilizationRates"), self.used_mib()
            if not (rates and rates.gpu > IDLE_UTIL_PCT) and used <= IDLE_USED_MIB:
                return
            if time.monotonic() > until:
                raise Busy(f"GPU {self.index} is in use by processes that NVML does not list (of another container or "
                           f"user): utilisation {rates.gpu if rates else '?'} %, {used:.0f} MiB in use")
            time.sleep(SAMPLE_PERIOD_S)

    def sample(self, pids):
        rates = self.ask("nvmlDeviceGetUtilizationRates")
        power = self.ask("nvmlDeviceGetPowerUsage")
        mine = [mib for pid, mib in self.processes().items() if pid in pids and mib is not None] if pids else []
        return Sample(time.monotonic(), rates.gpu if rates else None, rates.memory if rates else None,
                      power / 1e3 if power is not None else None,
                      self.ask("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_SM),
                      self.ask("nvmlDeviceGetClockInfo", self.nvml.NVML_CLOCK_MEM), self.used_mib(),
                      sum(mine) if mine else None,
                      self.ask("nvmlDeviceGetTemperature", self.nvml.NVML_TEMPERATURE_GPU))

    def refreshes(self, since_s, until_s):
        """Utilisation figures that the driver itself made in a time (of time.time()); none where it keeps no record."""
        found = self.ask("nvmlDeviceGetSamples", self.nvml.NVML_GPU_UTILIZATION_SAMPLES, int(since_s * 1e6))
        if not found:
            return None
        return [one.sampleValue.uiVal for one in found[1] if since_s * 1e6 <= one.timeStamp <= until_s * 1e6]

    def gpm_supported(self):
        support = self.ask("nvmlGpmQueryDeviceSupport") if hasattr(self.nvml, "nvmlGpmQueryDeviceSupport") else None
        return bool(support and support.isSupportedDevice)

    def counters(self):
        """A sample of the hardware counters, to be given to `activity` with a later one; none where there are none."""
        if not self.gpm:
            return None
        try:
            sample = self.nvml.nvmlGpmSampleAlloc()
            self.nvml.nvmlGpmSampleGet(self.handle, sample)
            return sample
        except self.nvml.NVMLError as error:
            self.gpm, self.refusals["nvmlGpmSampleGet"] = False, str(error)
            return None

    def activity(self, first, last):
        """Mean activity of SMs, tensor cores and DRAM between two samples, in per cent."""
        if first is None or last is None:
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
            self.gpm, self.refusals["nvmlGpmMetricsGet"] = False, str(error)
            return {}
        finally:
            for sample in (first, last):
                self.nvml.nvmlGpmSampleFree(sample)

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
            "compute_mode": self.ask("nvmlDeviceGetComputeMode"), "mig_mode": self.ask("nvmlDeviceGetMigMode"),
            "persistence_mode": self.ask("nvmlDeviceGetPersistenceMode"), "hardware_counters": self.gpm,
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

    def __init__(self, gpu, period_s=SAMPLE_PERIOD_S):
        self.gpu, self.period_s, self.pids, self.samples, self.trouble = gpu, period_s, (), [], None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def loop(self):
        due = time.monotonic()
        while not self.stopped.is_set():
            try:
                self.samples.append(self.gpu.sample(self.pids))
            except Exception as error:  # told to whoever asks next; a thread has nobody to raise to
                self.trouble = error if isinstance(error, GpuLost) else GpuLost(f"{type(error).__name__}: {error}")
                return
            due += self.period_s
            self.stopped.wait(max(0.0, due - time.monotonic()))
            due = max(due, time.monotonic() - self.period_s)

    def check(self):
        if self.trouble:
            raise self.trouble

    def watch(self, pids):
        """Forgets what was, and counts the memory of these processes from now on."""
        self.pids, self.samples = frozenset(pids), []

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
    return {
        "samples": len(inside), "samples_distinct": changes, "gpu_util_pct": mean(util),
        "gpu_util_max_pct": max(util) if util else None, "mem_bw_util_pct": mean(values(inside, "mem_util")),
        "power_w": mean(power), "sm_mhz": mean(values(inside, "sm_mhz")), "mem_mhz": mean(values(inside, "mem_mhz")),
        "temperature_c": mean(values(inside, "temperature_c")),
        "device_used_mib": max(values(samples, "used_mib"), default=None),
        "process_mib": max(values(samples, "process_mib"), default=None),
    }
