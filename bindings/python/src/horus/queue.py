# SPDX-License-Identifier: Apache-2.0
"""Queues: who goes first, by a discipline chosen by name. Usable alone, beside a placer or without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import instance, integer, text
from ._core import QueuedJob, QueueOptions

__all__ = ["Queue", "QueueOptions", "QueuedJob", "queues"]

_TIME = 2**60


def queues() -> list[str]:
    """Names of the queue disciplines."""
    return _core.queue_names()


class Queue:
    """Jobs that want service, in the order of one discipline. Priority comes before every discipline; ties go to the
    earlier submission, then to the lower id. Times are the caller's clock, in microseconds."""

    __slots__ = ("_discipline", "_handle")

    def __init__(self, discipline: str = "fifo", **options: Any) -> None:
        """`discipline`: a name of `queues()`. Options: the fields of horus.QueueOptions. Raises NotFound."""
        self._discipline = text(discipline, "discipline")
        self._handle = _core.QueueHandle(self._discipline, QueueOptions(**options))

    def push(self, job: QueuedJob) -> None:
        """Raises Exists (id), InvalidArgument (field)."""
        self._handle.push(instance(job, QueuedJob, "job"))

    def remove(self, job: int) -> None:
        """The job leaves unserved: nobody is charged for it. Raises NotFound."""
        self._handle.remove(integer(job, "job"))

    def serve(self, job: int, now_us: int) -> None:
        """The job starts and leaves: drf charges its owner, horus-plus its cluster. Raises NotFound."""
        self._handle.serve(integer(job, "job"), integer(now_us, "now_us", -_TIME, _TIME))

    def pop(self, now_us: int) -> int | None:
        """Serves the first job: its id, or None of an empty queue."""
        return self._handle.pop(integer(now_us, "now_us", -_TIME, _TIME))

    def window(self, now_us: int, count: int) -> npt.NDArray[np.uint64]:
        """Ids of the first `count` jobs, in the order in which `pop` would serve them. Nothing leaves."""
        return self._handle.window(integer(now_us, "now_us", -_TIME, _TIME), integer(count, "count", 0, 2**32))

    def update(self, job: int, *, attained_gpu_us: int | None = None, remaining_us: int | None = None) -> None:
        """New attained service and remaining time; None = as it was. Raises NotFound."""
        self._handle.update(integer(job, "job"),
                            -1 if attained_gpu_us is None else integer(attained_gpu_us, "attained_gpu_us", 0, 2**63 - 1),
                            -1 if remaining_us is None else integer(remaining_us, "remaining_us", 0, 2**63 - 1))

    def job(self, job: int) -> QueuedJob:
        """The job as it stands. Raises NotFound."""
        return self._handle.get(integer(job, "job"))

    def set_capacity(self, gpu_milli: int, cpu_milli: int = 0, mem_mib: int = 0) -> None:
        """drf, tetris: the cluster grew or shrank."""
        self._handle.set_capacity(*_amounts(gpu_milli, cpu_milli, mem_mib))

    def set_owner_usage(self, owner: int, gpu_milli: int, cpu_milli: int = 0, mem_mib: int = 0) -> None:
        """drf: what the owner's running jobs hold; replaces what was charged to it."""
        self._handle.set_owner_usage(integer(owner, "owner"), *_amounts(gpu_milli, cpu_milli, mem_mib))

    @property
    def discipline(self) -> str:
        """Its name."""
        return self._discipline

    @property
    def look_ahead(self) -> int:
        """How many of the first jobs the discipline means to be tried until one fits."""
        return self._handle.look_ahead()

    @property
    def bytes_held(self) -> int:
        """Memory in bytes."""
        return self._handle.bytes_held()

    def __len__(self) -> int:
        return len(self._handle)

    def __repr__(self) -> str:
        return f"<horus.Queue {self._discipline!r}: {len(self)} jobs>"

    def _repr_html_(self) -> str:
        return _table.pairs_to_html(repr(self), {"discipline": self._discipline, "jobs": len(self),
                                                 "look ahead": self.look_ahead})


def _amounts(*values: int) -> tuple[int, int, int]:
    gpu, cpu, mem = (integer(value, name, 0, 2**63 - 1)
                     for value, name in zip(values, ("gpu_milli", "cpu_milli", "mem_mib")))
    return gpu, cpu, mem
