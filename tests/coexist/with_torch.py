# SPDX-License-Identifier: Apache-2.0
"""libhorus and PyTorch in one process: each loaded first and last, its symbols global and local.

Usage: with_torch.py COEXIST_WORK_LIBRARY. Exit status 77 where this interpreter has no torch. Each way is a process of its own.
"""

import ctypes
import importlib.util
import itertools
import os
import subprocess
import sys


def torch_works():
    import torch

    layer = torch.nn.Linear(8, 4)
    loss = layer(torch.ones(2, 8)).square().sum()
    loss.backward()
    assert layer.weight.grad.abs().sum() > 0


def horus_works(library):
    assert ctypes.CDLL(library, mode=sys.getdlopenflags()).coexist_work() == 0


def one_way(library, order, scope):
    sys.setdlopenflags(os.RTLD_NOW | (os.RTLD_GLOBAL if scope == "global" else os.RTLD_LOCAL))
    steps = [lambda: horus_works(library), torch_works]
    if order == "last":
        steps.reverse()
    for step in steps + steps:
        step()


def main():
    library = sys.argv[1]
    if len(sys.argv) == 4:
        one_way(*sys.argv[1:])
        return 0
    if importlib.util.find_spec("torch") is None:
        print(f"SKIPPED: {sys.executable} has no torch")
        return 77
    failed = []
    for order, scope in itertools.product(("first", "last"), ("global", "local")):
        status = subprocess.run([sys.executable, __file__, library, order, scope], check=False).returncode
        print(f"libhorus {order}, symbols {scope}: {'works' if status == 0 else f'exit status {status}'}")
        if status != 0:
            failed.append((order, scope))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
