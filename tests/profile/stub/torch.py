# SPDX-License-Identifier: Apache-2.0
"""As much of torch as a worker itself touches; stub/training.py stands for the rest.

While the file no_mps lies in the folder $FAKE_NVML, clients of MPS cannot use the device.
"""
import os
import types

__version__ = "2.0.0+stub"
version = types.SimpleNamespace(cuda=None)
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: None, benchmark=False))


def device(name):
    if "CUDA_MPS_PIPE_DIRECTORY" in os.environ and os.path.exists(os.path.join(os.environ["FAKE_NVML"], "no_mps")):
        raise RuntimeError("MPS client failed to connect")
    return types.SimpleNamespace(type=name)
