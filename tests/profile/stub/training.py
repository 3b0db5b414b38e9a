# SPDX-License-Identifier: Apache-2.0
"""Stands for the profiler's training.py: steps that sleep as long as the net's file says, and nets that fail.

A net is FILE.py:FUNCTION whose FUNCTION(batch) returns the seconds of a step and the MiB it takes.
"""
import contextlib
import os
import pathlib
import time

import zoo


def framework():
    return "pytorch"


def is_out_of_memory(error):
    return isinstance(error, MemoryError)


def synchronize(_):
    pass


class Step:
    def __init__(self, order, _):
        self.seconds, mib = zoo.load_function(order["net"])(order["batch"])
        with contextlib.suppress(OSError):
            pathlib.Path(os.environ["FAKE_NVML"], "procs", str(os.getpid())).write_text(str(mib))

    def __call__(self):
        time.sleep(self.seconds() if callable(self.seconds) else self.seconds)
