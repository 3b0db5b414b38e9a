# SPDX-License-Identifier: Apache-2.0
"""The profiler's side of its workers: starting, ordering and ending them, and one measurement of jobs side by side."""
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import counters
import gpu
import link
import limits

WORKER = pathlib.Path(__file__).resolve().parent / "worker.py"
LOG_TAIL = 400  # characters of a dead worker's last words


class Died(RuntimeError):
    """A worker ended without being asked."""


class Failed(RuntimeError):
    """A worker says that its job cannot be run; `outcome` is oom, error, died or timeout."""

    def __init__(self, outcome, error, member=0, at=""):
        super().__init__(error)
        self.outcome, self.member, self.at = outcome, member, at


class Worker:
    """One process; it imports at once and touches the GPU only when woken."""

    def __init__(self, device, environment=None):
        self.log, self.environment = tempfile.TemporaryFile(), environment or {}
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), device, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.log, env={**os.environ, **self.environment}, start_new_session=True)
        self.reader = link.Reader(self.process.stdout.fileno())
        self.awake = None  # what it says about itself once it is woken
        self.began = self.ended = False

    @property
    def pid(self):
        return self.process.pid

    def tell(self, do, **more):
        try:
            link.write(self.process.stdin.fileno(), {"do": do, **more})
        except (BrokenPipeError, OSError):
            raise self.died() from None

    def died(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.poll()
        self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, self.log.tell() - LOG_TAIL))
        words = self.log.read().decode(errors="replace").strip()
        how = "did not end" if code is None else f"signal {-code}" if code < 0 else f"exit status {code}"
        return Died(f"the process ended ({how})" + (f"; its last words: {words}" if words else ""))

    def hear(self, seconds):
        """The next message, or none within the time."""
        try:
            return self.reader.poll(max(0.0, seconds))
        except link.Closed:
            raise self.died() from None

    def expect(self, event, seconds, check=lambda: None, member=0):
        """Waits for an event; failures of the job, of the process and of patience raise Failed."""
        until = time.monotonic() + seconds
        while True:
            check()
            try:
                message = self.hear(min(limits.LOOK_S, until - time.monotonic()))
            except Died as error:
                raise Failed("died", str(error), member) from None
            if message and message["event"] == "failed":
                raise Failed(message["outcome"], message["error"], member, message["at"])
            if message and message["event"] == event:
                return message
            if time.monotonic() > until:
                raise Failed("timeout", f"no '{event}' within {seconds:.0f} s", member)

    def wake(self, check=lambda: None):
        if self.awake is None:
            if not self.began:
                self.expect("ready", limits.START_S, check)
                self.began = True
            self.tell("wake")
            self.awake = self.expect("awake", limits.WAKE_S, check)

    @property
    def alive(self):
        return not self.ended and self.process.poll() is None

    def end(self):
        """Ends the process and waits until it is gone, so that its memory is the next one's."""
        if self.ended:
            return
        self.ended = True
        with contextlib.suppress(Died, OSError, ValueError):
            self.tell("exit")
        link.end(self.process, limits.FAREWELL_S)
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()

    def kill(self):
        self.process.kill()
        self.end()


@dataclasses.dataclass
class Probe:
    """What watches the GPU while workers run: the GPU itself and its sampler."""

    gpu: gpu.Gpu
    sampler: gpu.Sampler
    counters: counters.Nothing
    baseline_mib: float = 0.0

    def beyond_baseline(self, used_mib):
        """What the card holds more than before the workers; none where it is not told."""
        return None if used_mib is None or self.baseline_mib is None else max(0.0, used_mib - self.baseline_mib)


def measure(workers, jobs, probe, plan):
    """Loads a job into each worker, runs all of them, and measures while all run.

    Returns one result a member and what the GPU showed meanwhile. Raises Failed, naming the member, after the others
    were stopped; a worker that died or hangs is the caller's to replace.
    """
    check = probe.sampler.check
    running = []
    try:
        for worker, job in zip(workers, jobs):
            worker.tell("load", job=job.order())
        loaded = [worker.expect("loaded", plan["patience_s"], check, member) for member, worker in enumerate(workers)]
        probe.sampler.watch([worker.pid for worker in workers])  # only now: before, the last job's memory was there
        context = context_mib(probe, workers, loaded)
        for worker in workers:
            worker.tell("run", **plan)
            running.append(worker)
        await_all(workers, "warm", plan, check)
        first, since = probe.counters.mark(), time.time()
        for worker in workers:
            worker.tell("window")
        await_all(workers, "enough", plan, check)
        ended = time.monotonic()  # all ran until now; a step that ends later had a neighbour less
        last, until = probe.counters.mark(), time.time()
        probe.sampler.look()
        for worker in workers:
            worker.tell("stop", until=ended)
        results = [worker.expect("result", plan["patience_s"] + plan["max_s"], check, member) for member, worker in enumerate(workers)]
    except Died as error:
        stop(running, workers, None, False)
        raise Failed("died", str(error), next((i for i, one in enumerate(workers) if one.process.poll() is not None),
                                              0)) from None
    except Failed as error:
        stop(running, workers, workers[error.member], error.outcome in ("died", "timeout"))
        raise
    seen = gpu.summarise(probe.sampler.samples, max(one["opened"] for one in results),
                         min(one["closed"] for one in results))
    made = probe.gpu.refreshes(since, until)
    if made:
        seen["samples_distinct"], seen["gpu_util_driver_pct"] = len(made), gpu.mean(made)
    seen.update(probe.counters.between(first, last), context_mib=context)
    for result, one in zip(results, loaded):
        result["framework"] = one["framework"]
    return results, seen


def await_all(workers, event, plan, check):
    """Every worker says it; while one waits for another, it goes on running."""
    for member, worker in enumerate(workers):
        worker.expect(event, plan["patience_s"] + plan["max_s"], check, member)


def context_mib(probe, workers, loaded):
    """The memory of a process beyond its allocator's, right after loading; of one process alone."""
    if len(workers) > 1:
        return None
    sample = probe.gpu.sample([workers[0].pid])
    total = sample.process_mib if sample.process_mib is not None else probe.beyond_baseline(sample.used_mib)
    return None if total is None else max(0.0, total - loaded[0]["reserved_mib"])


def stop(running, workers, culprit, hopeless):
    """Stops the members that run, so that the next job finds them listening; who does not obey is killed."""
    for member, worker in enumerate(workers):
        if worker is culprit and hopeless:
            worker.kill()
            continue
        try:
            if worker in running and worker is not culprit:
                worker.tell("stop", until=0)
            worker.tell("unload")
            worker.expect("unloaded", limits.PATIENCE_S, member=member)
        except (Died, Failed):
            worker.kill()
