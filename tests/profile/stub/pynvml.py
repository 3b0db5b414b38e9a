# SPDX-License-Identifier: Apache-2.0
"""What the profiler uses of nvidia-ml-py, for machines without it: the same calls of the same libnvidia-ml.so.1."""
import ctypes

(NVML_SUCCESS, NVML_ERROR_UNINITIALIZED, NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND,
 NVML_ERROR_GPU_IS_LOST) = 0, 1, 12, 13, 15
NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_GPU_UTILIZATION_SAMPLES = 1, 2, 0, 1
uint, wide = ctypes.c_uint, ctypes.c_ulonglong
library = None


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__({NVML_ERROR_LIBRARY_NOT_FOUND: "NVML Shared Library Not Found",
                          NVML_ERROR_GPU_IS_LOST: "GPU is lost"}.get(value, f"error {value}"))
        self.value = value


class Structure(ctypes.Structure):
    pass


def structure(**fields):
    return type("Made", (Structure,), {"_fields_": list(fields.items())})


Rates = structure(gpu=uint, memory=uint)
Memory = structure(total=wide, free=wide, used=wide)
Process = structure(pid=uint, usedGpuMemory=wide, gpu_instance=uint, compute_instance=uint)


class Value(ctypes.Union):
    _fields_ = [("number", ctypes.c_double), ("uiVal", uint), ("wide", wide)]


Sample = structure(timeStamp=wide, sampleValue=Value)


def call(name, *arguments):
    if not hasattr(library, name):
        raise NVMLError(NVML_ERROR_FUNCTION_NOT_FOUND)
    code = getattr(library, name)(*arguments)
    if code:
        raise NVMLError(code)


def asked(name, kind, *arguments):
    found = kind()
    call(name, *arguments, ctypes.byref(found))
    return found if isinstance(found, Structure) else found.value


def nvmlInit():
    global library
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise NVMLError(NVML_ERROR_LIBRARY_NOT_FOUND) from None
    call("nvmlInitWithFlags", 0)


def nvmlDeviceGetCount():
    return asked("nvmlDeviceGetCount_v2", uint)


def nvmlDeviceGetHandleByIndex(index):
    return ctypes.c_void_p(asked("nvmlDeviceGetHandleByIndex_v2", ctypes.c_void_p, index))


def string(name, *arguments):
    text = ctypes.create_string_buffer(96)
    call(name, *arguments, text, 96)
    return text.value.decode()


def nvmlDeviceGetName(device):
    return string("nvmlDeviceGetName", device)


def nvmlSystemGetDriverVersion():
    return string("nvmlSystemGetDriverVersion")


def nvmlDeviceGetUtilizationRates(device):
    return asked("nvmlDeviceGetUtilizationRates", Rates, device)


def nvmlDeviceGetPowerUsage(device):
    return asked("nvmlDeviceGetPowerUsage", uint, device)


def nvmlDeviceGetClockInfo(device, clock):
    return asked("nvmlDeviceGetClockInfo", uint, device, clock)


def nvmlDeviceGetMemoryInfo(device):
    return asked("nvmlDeviceGetMemoryInfo", Memory, device)


def nvmlDeviceGetComputeRunningProcesses(device):
    found, count = (Process * 64)(), uint(64)
    call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), found)
    return found[:count.value]


def nvmlDeviceGetCudaComputeCapability(device):
    major, minor = ctypes.c_int(), ctypes.c_int()
    call("nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def nvmlDeviceGetMigMode(device):
    current, pending = uint(), uint()
    call("nvmlDeviceGetMigMode", device, ctypes.byref(current), ctypes.byref(pending))
    return [current.value, pending.value]


def nvmlDeviceGetComputeMode(device):
    return asked("nvmlDeviceGetComputeMode", ctypes.c_int, device)


def nvmlSystemGetProcessName(pid):
    return string("nvmlSystemGetProcessName", pid)


def nvmlDeviceGetSamples(device, kind, since):
    found, count, value_kind = (Sample * 128)(), uint(128), ctypes.c_int()
    call("nvmlDeviceGetSamples", device, kind, wide(since), ctypes.byref(value_kind), ctypes.byref(count), found)
    return value_kind.value, found[:count.value]
