# SPDX-License-Identifier: Apache-2.0
"""How fast a job's own input pipeline is with so many CPU cores and so much host memory: measured at a few cores, computed elsewhere.

Optimistic profiling (Synergy, OSDI 2022), without a GPU::

    def loader(workers):                              # any iterable of batches; no framework is needed
        return DataLoader(dataset, batch_size=256, num_workers=workers)

    found = profile_inputs(loader)                    # from horus.profile
    print(found.report(step_ms=120))
    job = horus.Job(id=1, sensitivity=found.with_gpu_step(120).sensitivity(fair_cores=3, fair_memory_gib=62.5), ...)

The law between measured counts is that of `horus.profile.law`, the memory axis that of `horus.profile.storage`.
"""

from __future__ import annotations

import csv
import io
import os
import pathlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import FileError, InvalidArgument
from .law import InputRate, Law, Measured, explore
from .runs import FromFile, InputRun, Pipeline, PipelineError, Timing, measure, usable_cores
from .storage import DiskSpeed, InputStorage, measure_disk

if TYPE_CHECKING:
    from ..place import Sensitivity

__all__ = ["DiskSpeed", "InputProfile", "InputRate", "InputRun", "InputStorage", "PipelineError", "measure_disk", "profile_inputs"]

MAX_COUNTS = 256  # of an axis of a sensitivity
NOTED_SHARE = 0.1  # of time between epochs, and of speed that more cores lost, above which a report says so
MIB_PER_GIB = 1024
MILLI = 1000
US_PER_S = 1e6
MS_PER_S = 1e3


@dataclass(frozen=True)
class InputProfile:
    """What was found: a rate for every number of cores, and what it took. Rates are batches per second per GPU."""

    name: str
    """Of the pipeline."""
    counts: tuple[int, ...]
    """Of cores per GPU, ascending."""
    runs: tuple[InputRun, ...]
    """What was measured, by cores."""
    seconds: float
    """That measuring took."""
    storage: InputStorage | None = None
    """The memory axis; None = memory changes nothing."""
    step_ms: float = 0
    """Of the GPU: then rates are those of the whole job; 0 = of the pipeline alone."""

    def rate(self, cores: float, memory_gib: float | None = None) -> InputRate:
        """The rate with `cores` per GPU (above 0, up to the largest count) and this host memory per GPU (None = plenty).

        Raises InvalidArgument."""
        try:
            found = self._law.at(cores)
        except ValueError as wrong:
            raise InvalidArgument(str(wrong)) from None
        if self.storage is not None and memory_gib is not None:
            found = found.at_most(self.storage.limit(memory_gib * MIB_PER_GIB))
        return found.at_most(MS_PER_S / self.step_ms) if self.step_ms else found

    @property
    def rates(self) -> tuple[InputRate, ...]:
        """A rate for every count of cores, with plenty of memory."""
        return tuple(map(self.rate, self.counts))

    @property
    def _law(self) -> Law:
        return Law(Measured(run.cores, run.rate, run.error) for run in self.runs)

    def with_gpu_step(self, step_ms: float) -> InputProfile:
        """The whole job, whose GPU needs `step_ms` (above 0) for a batch: the slower of pipeline and GPU."""
        return replace(self, step_ms=_above_0(step_ms, "step_ms"))

    def cores_for(self, step_ms: float, slack: float = 0.03) -> int | None:
        """The fewest cores with which the pipeline keeps a GPU busy that needs `step_ms` for a batch, up to `slack` of its rate; None =
        no count of them does."""
        wanted = (1 - slack) * MS_PER_S / _above_0(step_ms, "step_ms")
        pipeline = replace(self, step_ms=0)
        return next((cores for cores in self.counts if pipeline.rate(cores).rate >= wanted), None)

    def sensitivity(self, fair_cores: float, fair_memory_gib: float, *, cores: Sequence[float] | None = None) -> Sensitivity:
        """Speeds relative to the fair share of a node, per GPU, for `horus.Job`. Fair shares are above 0, of cores up to the largest
        count. `cores`: points of that axis, ascending, in parts of a core too; None = the counts.

        Of the pipeline alone, its step time at the fair share goes along as `host_us`. Raises InvalidArgument."""
        from .. import place

        fair, axis = self._fair(fair_cores, fair_memory_gib), self._axis(cores)
        mem_mib = self._memory(fair_memory_gib)
        return place.Sensitivity(cpu_milli=[round(MILLI * one) for one in axis], mem_mib=mem_mib, host_us=self._host_us(fair),
                                 speeds=[self.rate(one, mib / MIB_PER_GIB).rate / fair for one in axis for mib in mem_mib])

    def csv(self, name: str, fair_cores: float, fair_memory_gib: float, *, cores: Sequence[float] | None = None) -> str:
        """Rows of a file of sensitivities (docs/files.md) with a header: `name` is the profile's, the rest as for `sensitivity`."""
        fair = self._fair(fair_cores, fair_memory_gib)
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(("profile", "cpu_cores", "memory_gib", "speed") + (() if self.step_ms else ("host_us",)))
        for one in self._axis(cores):
            for mib in self._memory(fair_memory_gib):
                speed = self.rate(one, mib / MIB_PER_GIB).rate / fair
                row = [name, f"{one:g}", f"{mib / MIB_PER_GIB:.6g}", f"{speed:.6g}"]
                rows.writerow(row if self.step_ms else [*row, f"{self._host_us(fair):.6g}"])
        return out.getvalue()

    def write(self, path: str | os.PathLike[str], name: str, fair_cores: float, fair_memory_gib: float, *,
              cores: Sequence[float] | None = None) -> None:
        """Writes `csv`. Raises FileError, InvalidArgument."""
        text = self.csv(name, fair_cores, fair_memory_gib, cores=cores)
        try:
            pathlib.Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise FileError(f"{os.fspath(path)}: {error.strerror}") from error

    def _host_us(self, fair: float) -> float:
        return 0 if self.step_ms else US_PER_S / fair

    def _axis(self, cores: Sequence[float] | None) -> Sequence[float]:
        if cores is None:
            return self.counts
        if not cores or sorted({*cores}) != [*cores]:
            raise InvalidArgument(f"cores: expected counts in ascending order, found {[*cores]}")
        return cores

    def _fair(self, cores: float, memory_gib: float) -> float:
        for value, what in ((cores, "fair_cores"), (memory_gib, "fair_memory_gib")):
            _above_0(value, what)
        if cores > self.counts[-1]:
            raise InvalidArgument(f"fair_cores: expected at most the {self.counts[-1]} cores that were measured, found {cores:g}")
        return self.rate(cores, memory_gib).rate

    def _memory(self, fair_memory_gib: float) -> list[int]:
        return [max(1, round(fair_memory_gib * MIB_PER_GIB))] if self.storage is None else [*self.storage.mem_mib]

    def report(self, step_ms: float = 0) -> str:
        """A table: what was measured and computed, with its error; with `step_ms` also how many cores a GPU needs."""
        lines = [f"{self.name}: input pipeline, {len(self.runs)} of {len(self.counts)} core counts measured in {self.seconds:.0f} s",
                 "cores  batches/s             +-"]
        for one in self.rates:
            kind = "measured" if one.measured else "computed"
            lines.append(f"{one.cores:5g}  {one.rate:9.4g}  {kind}  {one.error:5.1%}")
        lines += self._remarks()
        step_ms = step_ms or self.step_ms
        if step_ms:
            needs = self.cores_for(step_ms)
            enough = f"{needs} cores keep it busy" if needs else f"{self.counts[-1]} cores do not keep it busy"
            lines.append(f"GPU: {step_ms:g} ms a step, {MS_PER_S / step_ms:.4g} batches/s: {enough}")
        if self.storage is not None:
            lines += ["memory GiB  from memory  fetches at most, batches/s"]
            lines += [f"{mib / MIB_PER_GIB:10.4g}  {self.storage.hits(mib):11.0%}  {self.storage.limit(mib):10.4g}"
                      for mib in self.storage.mem_mib]
        return "\n".join(lines)

    def _remarks(self) -> list[str]:
        """On runs that are not what a reader of the table would think."""
        lines, best = [], 0.0
        for run in self.runs:
            if run.rate < best * (1 - NOTED_SHARE):
                lines.append(f"{run.cores} cores made {run.rate:.4g} batches/s, less than fewer cores; they count as fast")
            if run.restarting >= NOTED_SHARE:
                lines.append(f"{run.cores} core{'s'[:run.cores > 1]}: {run.restarting:.0%} of the time went by between epochs, of which "
                             f"there were {run.restarts + 1}")
            best = max(best, run.rate)
        return lines

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"name": self.name, "seconds": self.seconds, "step_ms": self.step_ms, "runs": [asdict(run) for run in self.runs],
                "storage": None if self.storage is None else asdict(self.storage),
                "rates": [{**asdict(one), "error": one.error} for one in self.rates]}


def profile_inputs(make: Pipeline | str, *, cores: int | Sequence[int] | None = None, cpus: Sequence[int] | None = None,
                   workers_per_core: float = 1, max_runs: int = 5, tolerance: float = 0.03, budget_s: float = 120,
                   timeout_s: float = 120, warmup: int | None = None, start: str = "spawn", storage: InputStorage | None = None,
                   progress: Callable[[str], object] | None = None) -> InputProfile:
    """Measures how many batches per second an input pipeline makes at up to `max_runs` core counts, and computes the others.

    `make`: called with the number of workers, returns an iterable of batches (a DataLoader, a generator, ...); or "FILE.py:FUNCTION".
    It runs in a process of its own on part of the CPUs, and that ends with all processes of its group. One that ends is started
    again, and the time that takes counts. Files should be in the page cache already: what memory does is for `storage` to say.

    `cores`: per GPU, the most (counts 1, 2, ... up to it) or the counts themselves; None = what this process may use. `cpus`: which
    CPUs to use, the first ones first; None = those of this process. `tolerance`: stated error at which no more counts are measured.
    `budget_s`: for all runs together, which is an aim: each run times a second and three batches at least. `timeout_s`: the longest wait
    for a batch, imports before the first included. `warmup`: batches left out of each run; None = four a worker and four, in a quarter
    of the run's time at most.
    `start`: how its process starts, "spawn" or "fork" (for functions of no module; not in a program with threads).
    `progress`: told a line before and after each run.

    Raises InvalidArgument; PipelineError where the pipeline raises, dies, hangs or gives no batch."""
    pipeline = FromFile.parse(make) if isinstance(make, str) else make
    if not callable(pipeline):
        raise TypeError(f"make: expected a function of the number of workers, found {type(make).__name__}")
    usable = sorted(os.sched_getaffinity(0)) if cpus is None else [*cpus]
    counts = _counts(cores, usable, len(usable) if cpus is not None else usable_cores())
    if max_runs < min(2, len(counts)):
        raise InvalidArgument(f"max_runs: expected 2 or more, found {max_runs}")
    for value, what in ((workers_per_core, "workers_per_core"), (budget_s, "budget_s"), (timeout_s, "timeout_s"),
                        (tolerance, "tolerance")):
        _above_0(value, what)
    if start not in ("spawn", "fork", "forkserver"):
        raise InvalidArgument(f"start: expected spawn, fork or forkserver, found {start!r}")
    name = str(pipeline) if isinstance(pipeline, FromFile) else getattr(pipeline, "__name__", type(pipeline).__name__)
    tell = progress or (lambda line: None)
    found: list[InputRun] = []

    def run(count: int, left: int) -> Measured:
        spent = sum(one.seconds for one in found)
        timing = Timing(max(0.0, budget_s - spent) / left, tolerance / 3, timeout_s, warmup)
        one = measure(pipeline, name, usable[:count], max(1, round(workers_per_core * count)), timing, start=start)
        found.append(one)
        again = f", {one.restarting:.0%} of it between epochs" if one.restarting >= NOTED_SHARE else ""
        tell(f"{len(found)} of at most {min(max_runs, len(counts))}: {count} core{'s'[:count > 1]}: {one.rate:.4g} batches/s, "
             f"{one.seconds:.0f} s{again}")
        return Measured(count, one.rate, one.error)

    explore(run, counts, max_runs, tolerance)
    return InputProfile(name, tuple(counts), tuple(sorted(found, key=lambda one: one.cores)), sum(one.seconds for one in found), storage)


def _counts(cores: int | Iterable[int] | None, cpus: Sequence[int], usable: int) -> list[int]:
    counts = [*range(1, usable + 1)] if cores is None else [*range(1, cores + 1)] if isinstance(cores, int) else sorted({*cores})
    if not counts or counts[0] < 1 or counts[-1] > len(cpus):
        raise InvalidArgument(f"cores: expected counts from 1 to the {len(cpus)} CPUs of this process, found {cores}")
    if len(counts) > MAX_COUNTS:
        raise InvalidArgument(f"cores: expected at most {MAX_COUNTS} counts, found {len(counts)}; list some")
    return counts


def _above_0(value: float, what: str) -> float:
    if not 0 < value < float("inf"):
        raise InvalidArgument(f"{what}: expected above 0, found {value:g}")
    return value
