# SPDX-License-Identifier: Apache-2.0
"""What happened when, as columns: reads the timeline of `horus simulate` and measures it. Needs numpy alone.

A *spell* is one job on one GPU from a start, or a move, until it leaves. Times are microseconds, as in the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NEEDED_COLUMNS = ("time_us", "event", "job", "node", "gpus")
_COMES = {"start", "migrate"}
_LEAVES = {"finish", "fail", "preempt", "out-of-memory", "interrupt", "profiled"}
_OTHERS = {"arrive", "reject", "node-down", "node-up"}
NEVER = -1  # in arrive_us, start_us and finish_us: it did not happen
NOT_STATED = "not stated"


@dataclass
class Timeline:
    """One run. Columns of jobs have a row a job, those of spells a row a spell."""

    job_ids: list[str]
    arrive_us: Ints
    start_us: Ints  # the first start
    finish_us: Ints
    job_profile: Ints  # index in profiles
    job_gpu: Ints  # index in gpus of the first GPU of its last spell, NEVER without one
    spell_job: Ints
    spell_gpu: Ints
    spell_from_us: Ints
    spell_to_us: Ints
    gpus: list[tuple[str, int]]  # node, index
    gpu_type: list[str]  # of each GPU
    profiles: list[str]
    end_us: int
    counts: dict[str, int] = field(default_factory=dict)  # events by name

    def __repr__(self) -> str:
        return f"Timeline({len(self.job_ids)} jobs, {len(self.gpus)} GPUs, {len(self.spell_job)} spells)"


class _Builder:
    """Takes events in the order of the file."""

    def __init__(self, profile_of: Mapping[str, str], type_of: Mapping[str, str]) -> None:
        self.profile_of, self.type_of = profile_of, type_of
        self.jobs: dict[str, int] = {}
        self.arrive: list[int] = []
        self.start: list[int] = []
        self.finish: list[int] = []
        self.profile: list[int] = []
        self.last_gpu: list[int] = []
        self.profiles: dict[str, int] = {}
        self.gpus: dict[tuple[str, int], int] = {}
        self.types: list[str] = []
        self.spells: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
        self.open: dict[int, list[tuple[int, int]]] = {}  # job: (gpu, since)
        self.counts: dict[str, int] = {}
        self.last: tuple[int, str, str] | None = None  # a job on several nodes has a row for each
        self.end = 0

    def job(self, name: str, profile: str) -> int:
        at = self.jobs.get(name)
        if at is not None:
            return at
        at = self.jobs[name] = len(self.jobs)
        stated = profile or self.profile_of.get(name, NOT_STATED)
        self.profile.append(self.profiles.setdefault(stated, len(self.profiles)))
        for column in (self.arrive, self.start, self.finish, self.last_gpu):
            column.append(NEVER)
        return at

    def close(self, job: int, now: int) -> None:
        jobs, gpus, since, until = self.spells
        for gpu, start in self.open.pop(job, ()):
            jobs.append(job)
            gpus.append(gpu)
            since.append(start)
            until.append(now)

    def open_on(self, job: int, node: str, indices: str, gpu_type: str, now: int) -> None:
        places = self.open.setdefault(job, [])
        for text in indices.split():
            key = (node, int(text))
            gpu = self.gpus.get(key)
            if gpu is None:
                gpu = self.gpus[key] = len(self.gpus)
                self.types.append(gpu_type or self.type_of.get(node, NOT_STATED))
            if not places:
                self.last_gpu[job] = gpu
            places.append((gpu, now))

    def add(self, now: int, event: str, name: str, node: str, indices: str, profile: str, gpu_type: str) -> None:
        self.end = max(self.end, now)
        same_event = self.last == (now, event, name)
        self.last = (now, event, name)
        if not same_event:
            self.counts[event] = self.counts.get(event, 0) + 1
        if not name:
            return  # a node's event
        job = self.job(name, profile)
        if event in _COMES:
            if not same_event:
                self.close(job, now)
            if self.start[job] == NEVER:
                self.start[job] = now
            self.open_on(job, node, indices, gpu_type, now)
        elif event in _LEAVES:
            self.close(job, now)
            if event == "finish":
                self.finish[job] = now
        elif event == "arrive":
            self.arrive[job] = now

    def build(self) -> Timeline:
        for job in list(self.open):
            self.close(job, self.end)
        as_ints = lambda column: np.asarray(column, dtype=np.int64)  # noqa: E731
        spells = [as_ints(column) for column in self.spells]
        return Timeline(
            list(self.jobs), as_ints(self.arrive), as_ints(self.start), as_ints(self.finish),
            as_ints(self.profile), as_ints(self.last_gpu), *spells, list(self.gpus), self.types,
            list(self.profiles), self.end, self.counts)


def read_timeline(path: str, profile_of: Mapping[str, str] | None = None,
                  type_of: Mapping[str, str] | None = None) -> Timeline:
    """Reads a CSV file of `horus simulate --timeline`.

    profile_of: job id to job type, type_of: node to GPU type; the columns `profile` and `gpu_type` go before them.
    ValueError: a column is missing, or a value is not what it should be; says file, line, expected and found.
    """
    builder = _Builder(profile_of or {}, type_of or {})
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        missing = [name for name in NEEDED_COLUMNS if name not in header]
        if missing:
            raise ValueError(f"{path}: line 1: expected the columns {', '.join(NEEDED_COLUMNS)} of a timeline of "
                             f"horus simulate, found {', '.join(header)[:200] or 'nothing'}")
        try:
            _read_rows(rows, header, builder)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path}: line {rows.line_num}: {error}") from None
    return builder.build()


def _read_rows(rows: Iterator[list[str]], header: list[str], builder: _Builder) -> None:
    at = [header.index(name) for name in NEEDED_COLUMNS]
    profile_at = header.index("profile") if "profile" in header else None
    type_at = header.index("gpu_type") if "gpu_type" in header else None
    known = _COMES | _LEAVES | _OTHERS
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"expected {len(header)} fields, found {len(row)}")
        time, event, job, node, gpus = (row[i] for i in at)
        if event not in known:
            raise ValueError(f"event: expected one of {', '.join(sorted(known))}, found {event[:80]!r}")
        builder.add(int(time), event, job, node, gpus, "" if profile_at is None else row[profile_at],
                    "" if type_at is None else row[type_at])


def from_events(events: Iterable[Mapping[str, Any]], profile_of: Mapping[str, str] | None = None,
                type_of: Mapping[str, str] | None = None) -> Timeline:
    """Events as mappings with the columns of the file; `gpus` is text, or the indices themselves."""
    builder = _Builder(profile_of or {}, type_of or {})
    for event in events:
        gpus = event.get("gpus", "")
        indices = gpus if isinstance(gpus, str) else " ".join(str(index) for index in gpus)
        job = event.get("job", "")
        builder.add(int(event["time_us"]), event["event"], "" if job is None else str(job), str(event.get("node", "")),
                    indices, event.get("profile", ""), event.get("gpu_type", ""))
    return builder.build()
