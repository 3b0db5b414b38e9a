# SPDX-License-Identifier: Apache-2.0
"""What host memory does to an input pipeline: how much of an epoch comes from the page cache, and how fast cache and disk are.

An epoch takes the longer of computing and fetching (Synergy, OSDI 2022; `EpochSeconds` of src/place/job/sensitivity.h). Fetching reads
what is cached at the speed of memory and the rest at that of the disk. How much is cached depends on who caches:

- `fixed`: a cache that keeps the same part of the dataset for good (MinIO's, CoorDL's): memory / dataset of every epoch.
- `lru-sequential`: one that drops what was used longest ago, read in the same order every epoch: nothing until all of it fits.
- `lru-shuffled`: the same, read in a new order every epoch: 1 - t + t ln t with t = 1 - memory / dataset. Between two uses of
  a file lie the others of the rest of one epoch and the start of the next; it is a hit if they fit.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from ..errors import FileError, InvalidArgument, Unsupported

__all__ = ["CACHES", "DiskSpeed", "InputStorage", "measure_disk"]

MIB = 1 << 20


def _fixed(share: float) -> float:
    return share


def _sequential(share: float) -> float:
    return float(share >= 1)


def _shuffled(share: float) -> float:
    missing = 1 - share
    return 1 - missing + missing * math.log(missing) if missing > 0 else 1.0


CACHES: dict[str, Callable[[float], float]] = {"fixed": _fixed, "lru-sequential": _sequential, "lru-shuffled": _shuffled}


@dataclass(frozen=True)
class InputStorage:
    """What an epoch reads, and from where.

    `dataset_mib`: that one epoch reads, all GPUs of the job together. `epoch_batches`: in it, all GPUs together. `mem_mib`: the
    points of the memory axis, per GPU, ascending. `disk_mib_s`, `memory_mib_s`: of reading, as `measure_disk` finds them.
    `process_mib`: memory per GPU that the process needs and cannot cache with. `gpus`: of the job, all on one node. `cache`:
    "fixed", "lru-sequential" or "lru-shuffled". Raises InvalidArgument."""

    dataset_mib: float
    epoch_batches: float
    mem_mib: tuple[int, ...]
    disk_mib_s: float
    memory_mib_s: float
    process_mib: float = 0
    gpus: int = 1
    cache: str = "fixed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mem_mib", tuple(self.mem_mib))
        for name in ("dataset_mib", "epoch_batches", "disk_mib_s", "memory_mib_s", "gpus"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidArgument(f"storage: {name}: expected above 0, found {getattr(self, name):g}")
        if not 0 <= self.process_mib < math.inf:
            raise InvalidArgument(f"storage: process_mib: expected 0 or more, found {self.process_mib:g}")
        if not self.mem_mib or sorted({*self.mem_mib}) != [*self.mem_mib] or self.mem_mib[0] <= 0:
            raise InvalidArgument(f"storage: mem_mib: expected memory per GPU in MiB, ascending from above 0, found {self.mem_mib}")
        if self.cache not in CACHES:
            raise InvalidArgument(f"storage: cache: expected one of {', '.join(CACHES)}, found {self.cache!r}")

    def hits(self, mem_mib: float) -> float:
        """The share of an epoch that comes from memory, with so much of it per GPU."""
        room = max(0.0, mem_mib - self.process_mib) * self.gpus
        return CACHES[self.cache](min(1.0, room / self.dataset_mib))

    def fetch_s(self, mem_mib: float) -> float:
        """Seconds that fetching an epoch takes."""
        cached = self.dataset_mib * self.hits(mem_mib)
        return cached / self.memory_mib_s + (self.dataset_mib - cached) / self.disk_mib_s

    def limit(self, mem_mib: float) -> float:
        """Batches per second per GPU that fetching lets pass."""
        return self.epoch_batches / self.gpus / self.fetch_s(mem_mib)


@dataclass(frozen=True)
class DiskSpeed:
    """Reading in order in MiB/s: from the disk, and what the page cache holds."""

    disk_mib_s: float
    memory_mib_s: float


def measure_disk(path: str | os.PathLike[str], *, size_mib: int = 256, repeats: int = 3, cache: bool = False) -> DiskSpeed:
    """Reads a file at `path`, or a temporary one of `size_mib` in the folder `path`, with nothing of it cached and then with all.

    The fastest of `repeats` counts: others use the disk too. A disk with a cache of its own (a virtual one) looks faster than it
    is. `cache`: once measured on this node and file system, the answer comes from XDG_CACHE_HOME/horus/disk.json. Raises FileError;
    Unsupported where the page cache cannot be emptied of the file (a file system in memory); InvalidArgument for a file under 1 MiB."""
    at = pathlib.Path(path)
    try:
        key = f"{platform.node()} {at.stat().st_dev}"
        known = _remembered() if cache else {}
        if key in known:
            return known[key]
        with _file(at, size_mib) as descriptor:
            found = _speeds(descriptor, at, repeats)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{error.filename or at}: {error.strerror}") from error
    if cache:
        _remember({**known, key: found})
    return found


@contextlib.contextmanager
def _file(at: pathlib.Path, size_mib: int) -> Iterator[int]:
    if not at.is_dir():
        with at.open("rb", buffering=0) as given:
            yield given.fileno()
        return
    with tempfile.TemporaryFile(dir=at, buffering=0) as made:
        block = os.urandom(MIB)  # a file system that compresses gains nothing
        for _ in range(size_mib):
            made.write(block)
        os.fsync(made.fileno())
        yield made.fileno()


def _speeds(descriptor: int, at: pathlib.Path, repeats: int) -> DiskSpeed:
    size = os.fstat(descriptor).st_size
    if size < MIB:
        raise InvalidArgument(f"{at}: expected a file of 1 MiB or more, found {size} bytes")
    uncached, cached = [], []
    for _ in range(max(1, repeats)):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if _is_cached(descriptor, size):
            raise Unsupported(f"{at}: expected a file system that can be read without the page cache, found that it keeps its pages")
        uncached.append(_read_s(descriptor))
        cached.append(_read_s(descriptor))
    return DiskSpeed(size / MIB / min(uncached), size / MIB / min(cached))


def _is_cached(descriptor: int, size: int) -> bool:
    """Whether the middle of the file can be had without waiting for a disk."""
    try:
        return os.preadv(descriptor, [bytearray(1)], size // 2, os.RWF_NOWAIT) == 1
    except OSError:  # not now; or a file system that does not know the question
        return False


def _read_s(descriptor: int) -> float:
    buffer = bytearray(MIB)
    begin, offset = time.perf_counter(), 0
    while True:
        count = os.preadv(descriptor, [buffer], offset)
        if count == 0:
            return time.perf_counter() - begin
        offset += count


def _remembered_file() -> pathlib.Path:
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "horus" / "disk.json"


def _remembered() -> dict[str, DiskSpeed]:
    try:
        found = json.loads(_remembered_file().read_text(encoding="utf-8"))
        return {str(key): DiskSpeed(float(one["disk_mib_s"]), float(one["memory_mib_s"])) for key, one in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # none, or damaged: measured again


def _remember(known: dict[str, DiskSpeed]) -> None:
    file = _remembered_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps({key: asdict(one) for key, one in known.items()}, indent=1) + "\n", encoding="utf-8")
    partial.replace(file)
