# SPDX-License-Identifier: Apache-2.0
"""As much of torch as a worker itself touches; stub/training.py stands for the rest."""
import types

__version__ = "2.0.0+stub"
version = types.SimpleNamespace(cuda=None)
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: None, benchmark=False))


def device(name):
    return types.SimpleNamespace(type=name)
