# SPDX-License-Identifier: Apache-2.0
"""What a campaign would run in its time, found by running it on paper: same plan, made-up costs and results, no GPU."""
import collections
import hashlib
import io
import sys
import types

import budget
import campaign
import counters
import crew
import store as stores

# Seconds, guessed from the parts of a run; a campaign itself learns them as it goes.
LOAD_S = 1.0  # building a net, ending the run before
PROCESS_S = 5.0  # context and libraries of a process whose imports were made beside the run before
GROUP_S = 2.0  # what members cost each other: loading and slower steps


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Card:
    """A GPU that is idle, knows everything and remembers nothing."""

    count, index = 1, 0

    def used_mib(self):
        return 0.0

    def total_mib(self):
        return None  # every group fits

    def strangers(self, _):
        return {}

    def capability(self):
        return None

    def compute_mode(self):
        return None


class Hands:
    """Stands for the module crew: processes that start and measurements that take their time, on paper."""

    def __init__(self, clock):
        self.clock = clock

    def Worker(self, _, environment):
        return Worker(self.clock, environment)

    def measure(self, workers, jobs, _, plan):
        self.clock.now += plan["warm_s"] + plan["min_s"] + (LOAD_S if len(jobs) == 1 else LOAD_S + GROUP_S)
        results = [{"step_mean_us": 1e4, "step_p95_us": 1e4, "steps": 20, "framework": "pytorch"} for _ in jobs]
        spread = int(hashlib.sha256(jobs[0].name.encode()).hexdigest(), 16)  # somewhere in the plane, always there
        return results, {"gpu_util_pct": spread % 101, "mem_bw_util_pct": spread % 61, "process_mib": 2000.0,
                         "device_used_mib": 2000.0, "samples": 40, "samples_distinct": 10}


class Worker:
    pid, alive, began = 0, True, True

    def __init__(self, clock, environment):
        self.clock, self.environment, self.awake = clock, environment, None

    def wake(self, _):
        if self.awake is None:
            self.clock.now += PROCESS_S
            self.awake = {}

    def end(self):
        pass

    kill = end


class Daemon:
    """MPS that starts at once."""

    def __init__(self, _):
        self.environment = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Paper(stores.Store):
    """A store that reads what is there and writes nothing."""

    def make_folder(self, path):
        pass

    def add(self, run):
        self.runs.append(run)


class Dry(campaign.Campaign):
    def write_graphs(self):
        pass


def planned(options, chosen):
    """The runs of a campaign with these options, as its journal would hold them, without those that are there already."""
    clock = Clock()
    sampler = types.SimpleNamespace(check=lambda: None, stop=lambda: None)
    probe = crew.Probe(Card(), sampler, counters.Nothing())
    store = Paper(options.out or "/nonexistent", "planned")
    before = len(store.runs)
    options.device, options.gpu, options.in_use_ok = "cuda", "any", True
    time_left = budget.Budget(options.minutes, clock)
    job = Dry(options, chosen, probe, store, time_left, budget.Progress(time_left, io.StringIO()), Hands(clock), Daemon)
    job.run(options.kinds, options.sharing)
    return store.runs[before:]


def show(options, chosen, out=None):
    out = out or sys.stdout
    runs = planned(options, chosen)
    alone = [run for run in runs if run["kind"] == "isolated"]
    base = options.warm + options.window + LOAD_S
    print(f"{options.minutes:g} minutes, at {base:g} s a run, {PROCESS_S:g} s more for each process, "
          f"{base + GROUP_S:g} s a group:", file=out)
    print(f"isolated  {len(alone):5}  {len({run['net'] for run in alone})} nets of {len({run['family'] for run in alone})} "
          f"families; {sum(run['repeat'] for run in alone)} repeats", file=out)
    groups = collections.Counter((len(run["jobs"]), run["sharing_mode"]) for run in runs if run["kind"] == "shared")
    for size, name in ((2, "pairs"), (3, "triples")):
        modes = [(mode, count) for (of, mode), count in sorted(groups.items()) if of == size]
        again = sum(run["repeat"] for run in runs if run["kind"] == "shared" and len(run["jobs"]) == size)
        print(f"{name:8}  {sum(count for _, count in modes):5}  "
              + ", ".join(f"{count} {mode}" for mode, count in modes) + f"; {again} repeats", file=out)
    if options.list:
        for run in alone:
            print(run["job"] + (" (repeat)" if run["repeat"] else ""), file=out)
