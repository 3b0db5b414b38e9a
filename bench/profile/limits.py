# SPDX-License-Identifier: Apache-2.0
"""How long things may take, in seconds, and how much is measured of a run."""
import clocks

LOOK_S = 0.2  # how often a wait looks whether the GPU is still there
START_S = 180.0  # imports of the framework, from a cold disk
WAKE_S = 60.0  # opening a context, as a client of MPS too
LOAD_S = 120.0  # building a net of a billion weights on a slow host
PATIENCE_S = 20.0  # the least that a job gets for loading and for its warm-up when the time is nearly up
EXPORT_S = 600.0  # the exporter on torch.export takes minutes for a large net
FAREWELL_S = 10.0  # a process that was asked to end
WARM_S, WARM_STEPS = 1.0, 5  # NVML's longest refresh; allocator and algorithm choice settle in a few steps
WINDOW_S, WINDOW_STEPS = 2.0, 20
WINDOW_MAX_S = 20.0  # a run of slow steps ends here with the steps it made


def plan(window_s=WINDOW_S, steps=WINDOW_STEPS, warm_s=WARM_S, max_s=WINDOW_MAX_S):
    """What a worker is told about a run; `skip` steps began before the window."""
    return {"warm_s": warm_s, "warm_steps": WARM_STEPS, "min_s": window_s, "min_steps": steps,
            "skip": clocks.BEGUN_BEFORE, "max_s": max_s}
